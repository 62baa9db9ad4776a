//! The key-value store in whole runs: what leaves the NIC is right, whichever interface it is.

use std::collections::BTreeMap;

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use nicforge_lab::run::options::{PingPong, WindowOptions};
use nicforge_lab::run::{RunIo, run_point};
use nicforge_lab::settings::Settings;
use nicforge_record::Metrics;
use nicforge_wire::capture::CaptureReader;
use nicforge_wire::headers::{KVS_HEADER_LEN, KvsOperation, KvsStatus, KvsView};

use crate::common::machine::{machine, small};

/// Its index has room for all keys: none loses its slot.
fn store() -> Settings {
    small().with("app", "kvs").with("kvs_index_slots", 20_000).with("kvs_put_share", 0.5).with("kvs_value_bytes", 256)
}

fn run(settings: &Settings) -> Metrics {
    settings.check(machine()).unwrap();
    let point = run_point(machine(), settings, 1, &RunIo::default(), &mut |_, _| {});
    point.unwrap().metrics
}

/// The UDP payload of a frame whose checksums another implementation finds right.
fn payload(frame: &[u8]) -> Vec<u8> {
    let packet = SlicedPacket::from_ethernet(frame).unwrap();
    let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Udp(udp))) = (&packet.net, &packet.transport) else {
        panic!("not UDP over IPv4");
    };
    let header = ip.header().to_header();
    assert_eq!(header.calc_header_checksum(), header.header_checksum);
    let checksum = udp.to_header().calc_checksum_ipv4(&header, udp.payload());
    assert_eq!(checksum.unwrap(), udp.checksum());
    udp.payload().to_vec()
}

#[test]
fn every_reply_is_right_and_every_value_its_keys() {
    let interfaces = nicforge_interfaces::Interfaces::shipped().of_rings();
    let interfaces = interfaces.into_iter().map(|name| (name, "host"));
    // First with hot items in memory of the NIC, which are found while the run goes on.
    for (interface, hot) in [("priv_ring", "nicmem")].into_iter().chain(interfaces) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("replies.pcap");
        let settings = store()
            .with("interface", interface)
            .with("kvs_hot_values", hot)
            .with("kvs_hot_kib", 64)
            .with("kvs_hot_items", "sketch")
            .with("kvs_hot_preload", false)
            // Long enough for cores that read requests over the bus, line by line.
            .with("window_ms", 1.5);
        let io = RunIo { pcap_out: Some(path.clone()), ..RunIo::default() };
        run_point(machine(), &settings, 1, &io, &mut |_, _| {}).unwrap();
        let mut reader = CaptureReader::open(&path).unwrap();
        // A hash stands for its key; all values of a key begin with the same word.
        let mut words: BTreeMap<u64, [u8; 8]> = BTreeMap::new();
        let (mut gets, mut puts) = (0, 0);
        while let Some(frame) = reader.next_record().unwrap() {
            let bytes = payload(frame.bytes);
            let view = KvsView::new(&bytes[..]).unwrap();
            assert_eq!(view.status(), Some(KvsStatus::Done), "{interface}");
            let value = &bytes[KVS_HEADER_LEN..];
            match view.operation().unwrap() {
                KvsOperation::Get => {
                    gets += 1;
                    assert_eq!(value.len(), 256);
                    let word = value[..8].try_into().unwrap();
                    assert_eq!(*words.entry(view.hash()).or_insert(word), word);
                }
                KvsOperation::Put => {
                    puts += 1;
                    assert!(value.is_empty());
                }
                KvsOperation::Delete => panic!("nobody deletes"),
            }
        }
        let counts = (gets, puts, words.len());
        assert!(gets > 100 && puts > 100 && words.len() > 100, "{interface}: {counts:?}");
        let distinct: std::collections::BTreeSet<_> = words.values().collect();
        assert_eq!(distinct.len(), words.len(), "two keys share a value");
    }
}

/// A GET is answered in the buffer of its request, which may hold more than the usual 2048 bytes.
#[test]
fn values_are_as_long_as_the_buffers_that_there_are() {
    for interface in ["priv_ring", "sh_ring", "rx_bisect", "split"] {
        let settings = store()
            .with("interface", interface)
            .with("buffer_bytes", 9216)
            .with("kvs_value_bytes", 4000)
            .with("kvs_keys", 100)
            .with("offered_gbps", 20.0);
        let metrics = run(&settings);
        assert_eq!(metrics.get_hit_rate, Some(1.0), "{interface}");
        let reply = metrics.throughput_gbps * 1e3 / 8.0 / metrics.throughput_mpps;
        assert!(reply > 1500.0, "{interface}: {reply} bytes");
    }
}

#[test]
fn a_value_that_no_reply_has_room_for_is_no_hit_and_told() {
    let settings = store().with("kvs_put_share", 0.0).with("kvs_value_bytes", 4000).with("kvs_log_mib", 8);
    let metrics = run(&settings);
    assert_eq!(metrics.get_hit_rate, Some(0.0));
    assert!(metrics.requests_too_large.unwrap() > 100, "{metrics:?}");
    let fitting = run(&store());
    let refused = (fitting.requests_too_large, fitting.requests_misdirected);
    assert_eq!(refused, (None, None));
}

#[test]
fn hits_are_as_many_as_were_preloaded() {
    let share = |keys: u64| {
        let settings = store().with("kvs_put_share", 0.0).with("kvs_preload_keys", keys);
        run(&settings).get_hit_rate.unwrap()
    };
    assert_eq!((share(0), share(1000)), (0.0, 1.0));
    let half = share(500);
    assert!((0.45..0.55).contains(&half), "{half}");
}

#[test]
fn hot_keys_are_sent_from_nicmem_and_others_are_not() {
    let nicmem_share = |hot_share| {
        let settings = store()
            .with("kvs_key_choice", "hot_area")
            .with("hot_share", hot_share)
            .with("kvs_hot_values", "nicmem")
            .with("kvs_hot_kib", 64)
            .with("kvs_put_share", 0.0);
        let metrics = run(&settings);
        assert_eq!(metrics.get_hit_rate, Some(1.0));
        metrics.nicmem_get_share.unwrap()
    };
    // 256 keys over four cores, each with 64 places: one that has more such keys serves some from host memory.
    let none = nicmem_share(0.0);
    assert!(none < 0.05, "{none}");
    let all = nicmem_share(1.0);
    assert!((0.85..=1.0).contains(&all), "{all}");
    let half = nicmem_share(0.5);
    assert!((0.4..0.55).contains(&half), "{half}");
}

/// Two copies of a value are work of the store, and what is sent from memory of the NIC is not copied.
#[test]
fn only_values_that_are_copied_cost_copies() {
    let work = |hot, put_share| {
        // Cores keep up, so they answer in the window what they work on in it.
        let settings = store()
            .with("offered_gbps", 1)
            .with("window_ms", 2)
            .with("kvs_hot_items", "given")
            .with("kvs_key_choice", "hot_area")
            .with("hot_share", 1.0)
            .with("kvs_hot_values", hot)
            .with("kvs_hot_kib", 64)
            .with("kvs_put_share", put_share);
        run(&settings).cycles_per_packet.unwrap().app
    };
    // Values of 256 bytes, at 3 cycles a line: 24 cycles for a GET, 12 for a PUT. One in ten hot keys has no place.
    let (host, nicmem, puts) = (work("host", 0.0), work("nicmem", 0.0), work("host", 1.0));
    assert!((host - puts - 12.0).abs() < 1.0, "{host} {puts}");
    assert!((19.0..=24.5).contains(&(host - nicmem)), "{host} {nicmem}");
}

/// Places that nobody has go to whoever is asked for first.
#[test]
fn a_hot_area_that_is_not_loaded_before_is_for_all() {
    let nicmem_share = |kvs_hot_preload| {
        let settings = store()
            .with("kvs_key_choice", "hot_area")
            .with("hot_share", 0.0)
            .with("kvs_hot_values", "nicmem")
            .with("kvs_hot_kib", 64)
            .with("kvs_hot_items", "sketch")
            .with("kvs_hot_preload", kvs_hot_preload)
            .with("kvs_put_share", 0.0);
        run(&settings).nicmem_get_share.unwrap()
    };
    // 256 places for 1000 - 256 keys.
    let (loaded, empty) = (nicmem_share(true), nicmem_share(false));
    assert!(loaded < 0.05 && empty > 0.2, "{loaded}, {empty}");
}

#[test]
fn the_first_keys_are_the_likeliest_by_their_own_exponent() {
    let settings = store()
        .with("kvs_key_choice", "zipf")
        .with("kvs_zipf_s", 1.5)
        .with("zipf_s", 0.5)
        .with("kvs_put_share", 0.0)
        .with("kvs_preload_keys", 100);
    // Of 500 keys behind each NIC 50: 1 + 2^-1.5 + … + 50^-1.5 = 2.331 of 2.523 up to 500.
    let hits = run(&settings).get_hit_rate.unwrap();
    assert!((0.87..0.95).contains(&hits), "{hits}");
}

#[test]
fn an_index_that_is_too_small_forgets() {
    let settings = store().with("kvs_index_slots", 256).with("kvs_put_share", 0.0);
    // Eight buckets of eight for each core's 250 keys, which fill all of them.
    let hits = run(&settings).get_hit_rate.unwrap();
    assert!((0.22..0.29).contains(&hits), "{hits}");
}

#[test]
fn a_hot_area_without_a_value_in_it_is_refused() {
    let settings = store().with("kvs_key_choice", "hot_area").with("kvs_hot_kib", 1).with("kvs_value_bytes", 1024);
    let finding = settings.check(machine()).unwrap_err();
    assert_eq!(finding.right, "set kvs_hot_kib to at least 2");
}

#[test]
fn a_deleted_key_is_not_found() {
    // Every request finds what the ones before left: a PUT's share of the keys that were touched.
    let settings =
        store().with("kvs_keys", 100).with("kvs_put_share", 0.2).with("kvs_delete_share", 0.6).with("window_ms", 0.2);
    let hits = run(&settings).get_hit_rate.unwrap();
    assert!((0.15..0.45).contains(&hits), "{hits}");
}

#[test]
fn a_log_that_is_too_small_forgets() {
    let settings = store().with("kvs_value_bytes", 1500).with("kvs_put_share", 0.0).with("kvs_log_mib", 1);
    // 1000 items of 16 + 128 + 1500 bytes in whole words, 1 MiB for them: 0.636 fit.
    let hits = run(&settings).get_hit_rate.unwrap();
    assert!((0.57..0.70).contains(&hits), "{hits}");
}

#[test]
fn a_closed_loop_keeps_its_requests_in_flight() {
    let closed = |in_flight| run(&store().with("arrival", "ping_pong").with("in_flight", in_flight));
    let (one, eight) = (closed(1), closed(8));
    assert!(one.drops.is_empty() && eight.drops.is_empty());
    let gain = eight.throughput_mpps / one.throughput_mpps;
    assert!((4.0..8.5).contains(&gain), "{gain}");
}

#[test]
fn settings_that_do_not_go_together_are_refused() {
    let refused = |change: fn(&mut Settings)| {
        let mut settings = store();
        change(&mut settings);
        settings.check(machine()).unwrap_err().keys[0]
    };
    let more_than_there_are = refused(|s| s.set("kvs_preload_keys", 1001));
    assert_eq!(more_than_there_are, "kvs_preload_keys");
    let more_than_all = refused(|s| {
        s.set("kvs_put_share", 0.6);
        s.set("kvs_delete_share", 0.5);
    });
    assert_eq!(more_than_all, "kvs_delete_share");
    let too_long = refused(|s| {
        s.set("kvs_key_bytes", 4096);
        s.set("kvs_value_bytes", 8192);
    });
    assert_eq!(too_long, "kvs_value_bytes");
}

/// A closed loop with rings that are too small for it.
fn dropping(interface: &str, in_flight: u32) -> Settings {
    store()
        .with("interface", interface)
        .with("arrival", "ping_pong")
        .with("rx_entries", 16)
        .with("ax_entries", 16)
        .with("bx_entries", 16)
        .with("in_flight", in_flight)
        .with("request_timeout_us", 80.0)
        .with("warmup_ms", 0.16)
        .with("window_ms", 0.8)
}

/// Little's law: each place in the loop is taken by a request that is answered, or by one that is
/// given up. Were dropped requests gone for ever, the loop would shrink to what its rings hold.
#[test]
fn a_closed_loop_stays_as_large_as_it_was_asked_to_be() {
    for interface in nicforge_interfaces::Interfaces::shipped().of_rings() {
        let settings = dropping(interface, 400);
        let metrics = run(&settings);
        let given_up = metrics.requests_timed_out.unwrap();
        assert!(given_up > 0 && !metrics.drops.is_empty(), "{interface}: {metrics:?}");
        let latency = metrics.latency_us.as_ref().unwrap();
        // An answer that comes too late takes no place: its request was given up.
        let in_time = latency.max < settings.read::<PingPong>().request_timeout_us;
        let answered = if in_time { latency.mean * metrics.throughput_mpps } else { 0.0 };
        let lost = given_up as f64 / settings.read::<WindowOptions>().window_ms / 1e3
            * settings.read::<PingPong>().request_timeout_us;
        let ports = settings.nics() as f64;
        let in_flight = (answered + lost) / ports / f64::from(settings.read::<PingPong>().in_flight);
        // Requests that were dropped together are given up together, ten times in the window or once less.
        assert!((0.8..1.2).contains(&in_flight), "{interface}: {in_flight} of all");
    }
}

#[test]
fn only_a_closed_loop_that_loses_requests_gives_any_up() {
    let open = run(&store());
    assert_eq!(open.requests_timed_out, None);
    for interface in nicforge_interfaces::Interfaces::shipped().of_rings() {
        let few = run(&dropping(interface, 4).with("request_timeout_us", 5000.0));
        assert!(few.drops.is_empty() && few.throughput_mpps > 0.1, "{interface}: {few:?}");
        assert_eq!(few.requests_timed_out, Some(0), "{interface}");
    }
}

/// Frames leave by other ports than they came in by; each loop stays whole all the same.
#[test]
fn a_routed_ping_pong_goes_on_at_both_ports() {
    let settings = small()
        .with("app", "l3fwd")
        .with("arrival", "ping_pong")
        .with("in_flight", 8)
        .with("warmup_ms", 0.1)
        .with("window_ms", 0.2);
    let metrics = run(&settings);
    assert!(metrics.drops.is_empty());
    assert_eq!(metrics.requests_timed_out, Some(0));
    let in_flight = metrics.throughput_mpps * metrics.latency_us.unwrap().mean;
    assert!((13.0..16.5).contains(&in_flight), "{in_flight} of 16");
}
