//! `flexkvs` on whole frames, beside Debian's memcached: the same requests have the same answers, byte for byte.

use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nicforge_apps::{AppConfig, PortMap, Verdict};
use nicforge_nic::PortId;
use nicforge_options::Values;
use nicforge_units::BitRate;
use nicforge_wire::headers::{
    MAGIC_REQUEST, MEMCACHED_HEADER_LEN, MEMCACHED_PORT, MacAddress, memcached_opcode as opcode,
};
use nicforge_wire::rss::RssKey;
use nicforge_wire::traffic::{
    ArrivalModel, FlowChoice, FlowSpace, Line, PairSpace, RequestConfig, RequestProtocol, Requests, TrafficSource,
};
use proptest::prelude::*;

use crate::support::{Bench, address, decode, fill_checksums, skip, udp};

const CLIENT: (&str, u16) = ("192.0.2.1", 50_000);
const SERVER: (&str, u16) = ("203.0.113.1", MEMCACHED_PORT);
/// A key, a value and flags are enough for what the tests store.
const ROOM: usize = 1400;

fn bench() -> Bench {
    let mut config = AppConfig::new("flexkvs", PortMap::one_armed(1));
    config.values = Values::default().with("flexkvs_log_mib", 8).with("flexkvs_buckets", 16);
    Bench::new(&config)
}

/// A request of one datagram.
#[derive(Clone, Debug)]
struct Request {
    opcode: u8,
    key: Vec<u8>,
    extras: Vec<u8>,
    value: Vec<u8>,
    cas: u64,
}

impl Request {
    fn new(opcode: u8, key: &[u8]) -> Request {
        Request { opcode, key: key.to_vec(), extras: Vec::new(), value: Vec::new(), cas: 0 }
    }

    fn set(opcode: u8, key: &[u8], value: &[u8]) -> Request {
        let extras = [0xde, 0xad, 0xbe, 0xef, 0, 0, 0, 0].to_vec();
        Request { extras, value: value.to_vec(), ..Request::new(opcode, key) }
    }

    /// The datagram's data: memcached's frame of UDP, its header, and the body.
    fn bytes(&self, number: u16) -> Vec<u8> {
        let body = self.extras.len() + self.key.len() + self.value.len();
        let mut bytes = Vec::with_capacity(MEMCACHED_HEADER_LEN + body);
        bytes.extend(number.to_be_bytes());
        bytes.extend([0, 0, 0, 1, 0, 0]);
        bytes.extend([MAGIC_REQUEST, self.opcode]);
        bytes.extend((self.key.len() as u16).to_be_bytes());
        bytes.extend([self.extras.len() as u8, 0, 0, 0]);
        bytes.extend((body as u32).to_be_bytes());
        bytes.extend(u32::from(number).wrapping_mul(0x9e37_79b9).to_be_bytes());
        bytes.extend(self.cas.to_be_bytes());
        bytes.extend(&self.extras);
        bytes.extend(&self.key);
        bytes.extend(&self.value);
        assert_eq!(bytes.len(), MEMCACHED_HEADER_LEN + body);
        bytes
    }
}

/// The data of the reply to a request, if there is one; the frame around it is checked.
fn ask(bench: &mut Bench, data: &[u8]) -> Option<Vec<u8>> {
    let frame = udp(CLIENT, SERVER, data);
    let (verdict, mut out) = bench.send(0, &frame);
    if verdict == Verdict::Drop("no_reply_wanted") {
        return None;
    }
    assert_eq!(verdict, Verdict::Transmit(PortId(0)));
    fill_checksums(&mut out, bench.offload);
    let seen = decode(&out).unwrap();
    assert_eq!((seen.l3_right, seen.l4_right), (true, Some(true)));
    assert_eq!(seen.source, (address(SERVER.0), SERVER.1));
    assert_eq!(seen.destination, (address(CLIENT.0), CLIENT.1));
    let sliced = etherparse::SlicedPacket::from_ethernet(&out).unwrap();
    let Some(etherparse::TransportSlice::Udp(udp)) = sliced.transport else {
        panic!("not UDP");
    };
    Some(udp.payload().to_vec())
}

/// Debian's memcached at a port of the loopback, without CAS; it ends with the value.
struct Memcached {
    child: Child,
    socket: UdpSocket,
}

impl Memcached {
    fn start() -> Option<Memcached> {
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new("memcached");
        command.args([
            "-C",
            "-u",
            "root",
            "-l",
            "127.0.0.1",
            "-p",
            "0",
            "-U",
            &port.to_string(),
            "-m",
            "64",
            "-t",
            "1",
        ]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().ok()?;
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(("127.0.0.1", port)).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let mut memcached = Memcached { child, socket };
        let noop = Request::new(opcode::NOOP, b"").bytes(1);
        let answers = (0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            memcached.ask(&noop).is_some()
        });
        assert!(answers, "memcached does not answer");
        Some(memcached)
    }

    /// The reply, if there is one. Where there is none, memcached 1.6 sends a frame header that announces no datagram.
    fn ask(&mut self, data: &[u8]) -> Option<Vec<u8>> {
        let mut reply = [0; 2048];
        self.socket.send(data).ok()?;
        let len = self.socket.recv(&mut reply).ok()?;
        (reply[4..6] != [0, 0]).then(|| reply[..len].to_vec())
    }
}

impl Drop for Memcached {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends the requests to both, and compares the replies.
fn compare(memcached: &mut Memcached, requests: &[Request]) {
    let mut bench = bench();
    for (number, request) in requests.iter().enumerate() {
        let data = request.bytes(number as u16);
        let (ours, theirs) = (ask(&mut bench, &data), memcached.ask(&data));
        assert_eq!(ours, theirs, "request {number}: {request:?}");
    }
}

#[test]
fn every_operation_has_memcached_s_answer() {
    let Some(mut memcached) = Memcached::start() else {
        return skip::skipped("the comparison needs memcached");
    };
    let (key, other, long) = (b"key".as_slice(), b"other".as_slice(), [b'k'; 250]);
    let stores =
        [opcode::SET, opcode::SET_QUIET, opcode::ADD, opcode::ADD_QUIET, opcode::REPLACE, opcode::REPLACE_QUIET];
    let gets = [opcode::GET, opcode::GET_QUIET, opcode::GET_KEY, opcode::GET_KEY_QUIET];
    let deletes = [opcode::DELETE, opcode::DELETE_QUIET];
    let mut requests = Vec::new();
    for store in stores {
        for value in [b"".as_slice(), b"value", &[7; 1000]] {
            requests.push(Request::set(store, key, value));
            requests.push(Request::set(store, other, value));
            requests.extend(gets.map(|get| Request::new(get, key)));
            requests.extend(deletes.map(|delete| Request::new(delete, key)));
            requests.extend(gets.map(|get| Request::new(get, key)));
            requests.push(Request::set(store, &long, value));
            requests.push(Request::new(opcode::GET_KEY, &long));
        }
    }
    requests.push(Request::new(opcode::NOOP, b""));
    // What each operation does not take.
    for opcode in stores.into_iter().chain(gets).chain(deletes) {
        requests.push(Request::new(opcode, b""));
    }
    compare(&mut memcached, &requests);
}

/// The requests of the simulator's clients find the pairs that the store began with.
#[test]
fn clients_of_the_simulator_are_answered() {
    let pairs = PairSpace::new(1, 500, 32, 64).unwrap();
    let mut bench = bench();
    let (mut key, mut value) = (Vec::new(), Vec::new());
    for index in 0..pairs.count() {
        pairs.key(index, &mut key);
        pairs.value(index, 0, &mut value);
        bench.store_pair(&key, &value);
    }
    let mut requests = TrafficSource::Requests(Box::new(
        Requests::new(RequestConfig {
            protocol: RequestProtocol::Memcached,
            seed: 1,
            line: Line::ethernet(BitRate::from_gbps(10.0)),
            arrival: ArrivalModel::Constant { rate: BitRate::from_gbps(1.0) },
            clients: FlowSpace::new(1, 50).unwrap(),
            client_choice: FlowChoice::Uniform,
            pairs,
            key_choice: FlowChoice::Uniform,
            put_key_choice: None,
            put_share: 0.1,
            delete_share: 0.0,
            queues: 1,
            rss_key: RssKey::default(),
            server: "10.0.0.1".parse().unwrap(),
            source: MacAddress([2, 0, 0, 0, 0, 1]),
            destination: MacAddress([2, 0, 0, 0, 0, 2]),
        })
        .unwrap(),
    ));
    for _ in 0..2_000 {
        let frame = requests.next().unwrap().bytes.to_vec();
        assert_eq!(bench.send(0, &frame).0, Verdict::Transmit(PortId(0)));
    }
    let counts = ["gets", "get_hits", "stores"].map(|name| bench.counter(name));
    assert_eq!(counts[0], counts[1]);
    assert_eq!(counts[0] + counts[2], 2_000);
    assert!(counts[2] > 100);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn random_requests_have_memcached_s_answers(
        steps in prop::collection::vec((0usize..12, 0u8..8, 0usize..ROOM - 300), 1..300),
    ) {
        let Some(mut memcached) = Memcached::start() else {
            skip::skipped("the comparison needs memcached");
            return Ok(());
        };
        let operations = [
            opcode::GET, opcode::GET_QUIET, opcode::GET_KEY, opcode::GET_KEY_QUIET, opcode::SET, opcode::SET_QUIET,
            opcode::ADD, opcode::ADD_QUIET, opcode::REPLACE, opcode::REPLACE_QUIET, opcode::DELETE, opcode::DELETE_QUIET,
        ];
        let requests: Vec<Request> = steps
            .into_iter()
            .map(|(operation, key, len)| {
                let (opcode, key) = (operations[operation], format!("key-{key}").into_bytes());
                if (4..10).contains(&operation) {
                    Request::set(opcode, &key, &vec![len as u8; len])
                } else {
                    Request::new(opcode, &key)
                }
            })
            .collect();
        compare(&mut memcached, &requests);
    }

    /// Whatever comes is answered or dropped under a cause, and what was stored stays.
    #[test]
    fn any_bytes_have_an_answer_or_a_cause(
        mut data in prop::collection::vec(any::<u8>(), 0..200),
        magic in any::<bool>(),
    ) {
        let mut bench = bench();
        let stored = Request::set(opcode::SET, b"stays", b"here").bytes(1);
        prop_assert!(ask(&mut bench, &stored).is_some());
        if magic && data.len() > 8 {
            data[..8].copy_from_slice(&[0, 9, 0, 0, 0, 1, 0, 0]);
            data[8] = MAGIC_REQUEST;
        }
        let (verdict, _) = bench.send(0, &udp(CLIENT, SERVER, &data));
        prop_assert!(matches!(verdict, Verdict::Drop(_) | Verdict::Transmit(_)));
        let reply = ask(&mut bench, &Request::new(opcode::GET, b"stays").bytes(2)).unwrap();
        prop_assert!(reply.ends_with(b"here"));
    }
}
