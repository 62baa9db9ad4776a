//! The key-value store on the live ground: values of hot items sent from memory of the NIC are
//! those that copies have.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use nicforge_lab::live::{parse_live, run_live};
use nicforge_lab::settings::Catalogue;
use nicforge_units::BitRate;
use nicforge_wire::capture::{CaptureFormat, CaptureReader, CaptureWriter};
use nicforge_wire::headers::MacAddress;
use nicforge_wire::rss::RssKey;
use nicforge_wire::traffic::{
    ArrivalModel, FlowChoice, FlowSpace, Line, PairSpace, RequestConfig, RequestProtocol, Requests, TrafficSource,
};

const REQUESTS: usize = 3_000;

/// GETs and PUTs of a few keys, for one queue.
fn write_requests(path: &Path) {
    let rate = BitRate::from_gbps(1.0);
    let requests = Requests::new(RequestConfig {
        protocol: RequestProtocol::Kvs,
        seed: 1,
        line: Line::ethernet(BitRate::from_gbps(100.0)),
        arrival: ArrivalModel::Constant { rate },
        clients: FlowSpace::new(1, 50).unwrap(),
        client_choice: FlowChoice::Uniform,
        pairs: PairSpace::new(1, 40, 16, 200).unwrap(),
        key_choice: FlowChoice::Uniform,
        put_key_choice: None,
        put_share: 0.3,
        delete_share: 0.0,
        queues: 1,
        rss_key: RssKey::default(),
        server: "10.0.0.1".parse().unwrap(),
        source: MacAddress([2, 0, 0, 0, 0, 1]),
        destination: MacAddress([2, 0, 0, 0, 0, 2]),
    });
    let mut source = TrafficSource::Requests(Box::new(requests.unwrap()));
    let file = std::fs::File::create(path).unwrap();
    let mut writer = CaptureWriter::new(file, CaptureFormat::Pcap).unwrap();
    for _ in 0..REQUESTS {
        let arrival = source.next().unwrap();
        writer.write(arrival.time, arrival.bytes).unwrap();
    }
    writer.finish().unwrap();
}

/// The replies to `requests`, and how many of them refer to memory of the NIC.
fn replies(requests: &Path, settings: &str) -> (Vec<Vec<u8>>, u64) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("replies.pcap");
    let text = format!(
        "[live]\nname = \"store\"\n[settings]\napp = \"kvs\"\n{settings}\n\
         [[port]]\nread = {requests:?}\nwrite = {out:?}\n"
    );
    let config = parse_live(&text, Path::new("test.toml"), &Catalogue::shipped()).unwrap();
    let run = run_live(&config, &AtomicBool::new(false), &mut |_| {}).unwrap();
    let counters = run.snapshot.workers.iter().flat_map(|worker| &worker.app);
    let lent = counters.filter(|(name, _)| *name == "hot_lent");
    let lent = lent.map(|(_, count)| count).sum();
    let mut reader = CaptureReader::open(&out).unwrap();
    let mut frames = Vec::new();
    while let Some(record) = reader.next_record().unwrap() {
        frames.push(record.bytes.to_vec());
    }
    (frames, lent)
}

#[test]
fn hot_values_are_sent_from_memory_of_the_nic_and_are_the_right_ones() {
    let folder = tempfile::tempdir().unwrap();
    let requests = folder.path().join("requests.pcap");
    write_requests(&requests);
    for interface in ["priv_ring", "split", "nm_nfv"] {
        let with = |hot: &str| {
            let settings = format!("interface = \"{interface}\"\nkvs_value_bytes = 200\n{hot}");
            replies(&requests, &settings)
        };
        let (expected, none) = with("");
        let hot = "kvs_hot_values = \"nicmem\"\nkvs_hot_kib = 16\nnicmem_kib = 256";
        let (came, lent) = with(hot);
        assert_eq!((expected.len(), none), (REQUESTS, 0), "{interface}");
        assert!(came == expected, "{interface}: other replies");
        // A value that was set anew is lent again when the NIC has read the old one, whenever that is: more
        // are lent where the device's thread gets more time.
        assert!(lent > REQUESTS as u64 / 10, "{interface}: {lent} were lent");
    }
}

#[test]
fn a_live_store_takes_no_items_as_given() {
    let text = "[live]\nname = \"store\"\n[settings]\napp = \"kvs\"\nkvs_hot_values = \"nicmem\"\n\
                kvs_hot_items = \"given\"\n[[port]]\nread = \"requests.pcap\"\n";
    let error = parse_live(text, Path::new("test.toml"), &Catalogue::shipped()).unwrap_err();
    assert!(error.to_string().contains("test.toml:6"), "{error}");
}
