//! What a call of each application costs: nanoseconds of wall time per packet on flat memory,
//! without a model of caches. Read beside `simulation`, it says what share of a simulated
//! packet's time is the application itself.
//!
//!     cargo bench -p nicforge-apps --bench applications

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Instant;

use nicforge_apps::tables::Random;
use nicforge_apps::{AppConfig, Apps, Flow, Place, PortMap, Verdict, generate_routes};
use nicforge_nic::{Packet, PortId, RxFlags, Segment, TxOffload};
use nicforge_platform::{Addr, AddressSpace, Cpu, Flat, FlatCpu};
use nicforge_units::Time;
use nicforge_wire::headers::ip_protocol;

const PACKETS: u32 = 1_000_000;
const FRAME_BYTES: u32 = 1500;
/// As much of a frame as applications read.
const HEADER_BYTES: usize = 64;

/// Where flow number `flow` comes from and goes to.
fn ends(flow: u32) -> (SocketAddrV4, SocketAddrV4) {
    // Multiplying by an odd number spreads the destinations over all routes (Fibonacci hashing).
    let destination = Ipv4Addr::from_bits(flow.wrapping_mul(0x9e37_79b9));
    let source = Ipv4Addr::from_bits(0x0a00_0000 + flow);
    let end = SocketAddrV4::new;
    (end(source, 1025), end(destination, 53))
}

/// The beginning of a UDP frame of flow number `flow`, without checksums.
fn header(flow: u32) -> [u8; HEADER_BYTES] {
    let (source, destination) = ends(flow);
    let mut bytes = [0; HEADER_BYTES];
    bytes[12..14].copy_from_slice(&[8, 0]);
    bytes[14] = 0x45;
    bytes[16..18].copy_from_slice(&(FRAME_BYTES as u16 - 14).to_be_bytes());
    bytes[22..24].copy_from_slice(&[64, ip_protocol::UDP]);
    bytes[26..30].copy_from_slice(&source.ip().octets());
    bytes[30..34].copy_from_slice(&destination.ip().octets());
    bytes[34..36].copy_from_slice(&source.port().to_be_bytes());
    bytes[36..38].copy_from_slice(&destination.port().to_be_bytes());
    bytes[38..40].copy_from_slice(&(FRAME_BYTES as u16 - 34).to_be_bytes());
    bytes
}

fn measure(name: &str, flows: u32) {
    let mut config =
        AppConfig::new(name, PortMap::one_armed(1)).with("table_entries", 1_000_000).with("kvs_log_mib", 256);
    config.routes = generate_routes(1, 16_000, 0, 1).into();
    let mut space = AddressSpace::default();
    let buffer = space.data(u64::from(FRAME_BYTES), 64);
    let shared = Apps::shipped().share(&config, &mut space).unwrap();
    let app = Apps::shipped().build::<Flat>(&config, Place { core: 0, cores: 1 }, &mut space, &shared);
    let mut app = app.expect("a valid configuration");
    let mut cpu = FlatCpu::new(space.end());
    app.start(&mut cpu);
    for flow in 0..flows {
        let (source, destination) = ends(flow);
        let learnt = app.learn(&mut cpu, &Flow { source, destination, protocol: ip_protocol::UDP });
        learnt.expect("room for the flow");
    }
    let headers: Vec<_> = (0..flows).map(header).collect();
    let packet = Packet {
        mark: 0,
        mbuf: Addr(64),
        tail: Addr(0),
        references: Addr(0),
        head: Segment { at: buffer, len: FRAME_BYTES },
        rest: Segment::default(),
        port: PortId(0),
        rss_hash: 0,
        flags: RxFlags::default(),
        offload: TxOffload::default(),
        stamp: Time::ZERO,
    };
    let mut random = Random::new(1);
    let mut sent = 0u32;
    let started = Instant::now();
    for _ in 0..PACKETS {
        let header = &headers[random.below(u64::from(flows)) as usize];
        cpu.bytes_mut(buffer, HEADER_BYTES).copy_from_slice(header);
        let verdict = app.packet(&mut cpu, &mut packet.clone());
        sent += u32::from(matches!(verdict, Verdict::Transmit(_)));
    }
    let each = started.elapsed().as_secs_f64() * 1e9 / f64::from(PACKETS);
    let share = 100.0 * f64::from(sent) / f64::from(PACKETS);
    println!("{name:>10} {flows:>8} flows {each:>8.1} ns per packet, {share:.0} % sent");
}

fn main() {
    for name in Apps::shipped().names() {
        for flows in [100, 100_000] {
            measure(name, flows);
        }
    }
}
