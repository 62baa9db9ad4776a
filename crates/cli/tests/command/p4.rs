//! P4 programs on simulated NICs, and what controllers are told of them.

use crate::common::{folder, nicforge, stderr, stdout};

/// In front of every interface of one server: the run's accounts hold, and the program's counters are in the report.
#[test]
fn a_program_runs_in_front_of_every_interface() {
    let folder = folder();
    for interface in nicforge_interfaces::Interfaces::shipped().of_rings() {
        let set = format!("interface=\"{interface}\"");
        let mut arguments =
            vec!["run", "scenarios/p4-router.toml", "--quiet", "--force", "--out", "out", "--set", &set];
        for short in ["window_ms=0.05", "warmup_ms=0.02", "flows=64", "cores=2", "offered_gbps=10"] {
            arguments.extend(["--set", short]);
        }
        if interface == "emulated" {
            continue;
        }
        let output = nicforge(&folder, &arguments);
        assert_eq!(output.status.code(), Some(0), "{interface}: {}", stderr(&output));
        let report = std::fs::read(folder.path().join("out/report.json")).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        let count = |name: &str| report["points"][0]["metrics"]["stages"][name].as_u64().unwrap();
        // What is routed comes from the wire; software's own frames pass the program, too, and leave.
        let routed = count("p4_router_routes_hits");
        assert!(routed > 0 && count("p4_received") > routed, "{interface}: {report}");
        assert_eq!(count("p4_sent"), count("p4_received"), "{interface}");
        let page = std::fs::read_to_string(folder.path().join("out/report.html")).unwrap();
        assert!(page.contains("p4_router_routes_hits"), "{interface}: the page has no counters of stages");
    }
}

#[test]
fn a_stage_without_its_program_or_with_controllers_in_a_simulation_is_refused() {
    let folder = folder();
    let listen = ["run", "scenarios/p4-router.toml", "--quiet", "--set", "p4_listen=\"127.0.0.1:9559\""];
    let output = nicforge(&folder, &listen);
    assert_ne!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("live"), "{}", stderr(&output));
    let none = ["run", "scenarios/in-place.toml", "--quiet", "--set", "stages=\"p4\""];
    let output = nicforge(&folder, &none);
    assert_ne!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("p4_program"), "{}", stderr(&output));
}

/// What happened to each packet, as text, as JSON and as comments of the packets.
#[test]
fn a_trace_is_text_json_and_comments() {
    let folder = folder();
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/captures/sample.pcap");
    let run = |more: &[&str]| {
        let arguments =
            ["p4", "run", "examples/p4/router.p4", "--entries", "examples/p4/routes.toml", "--pcap", capture];
        let output = nicforge(&folder, &[&arguments[..], more].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stdout(&output)
    };
    let text = run(&["--trace"]);
    let steps =
        ["state start", "extract hdr.ipv4", "table Router.routes: hdr.ipv4.dst = 0x", "-> hit", "emit hdr.ethernet"];
    for step in steps {
        assert!(text.contains(step), "{step}: {}", &text[..2000.min(text.len())]);
    }
    let lines = run(&["--json"]);
    let packets: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(packets.len(), text.matches("packet ").count());
    let table = |event: &serde_json::Value| event["event"] == "table" && event["table"] == "Router.routes";
    assert!(packets[0]["events"].as_array().unwrap().iter().any(table), "{}", packets[0]);
    assert_eq!(run(&["--trace-out", "trace.pcapng"]), "", "the trace is in the file alone");
    let file = std::fs::File::open(folder.path().join("trace.pcapng")).unwrap();
    let mut reader = pcap_file::pcapng::PcapNgReader::new(file).unwrap();
    let mut comments = Vec::new();
    while let Some(block) = reader.next_block() {
        if let pcap_file::pcapng::Block::EnhancedPacket(packet) = block.unwrap() {
            let comment = packet.options.iter().find_map(|option| match option {
                pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption::Comment(text) => {
                    Some(text.to_string())
                }
                _ => None,
            });
            comments.push(comment.unwrap());
        }
    }
    assert_eq!(comments.len(), packets.len());
    assert!(text.contains(&comments[0]), "{}", comments[0]);
    let arguments = ["p4", "run", "examples/p4/router.p4", "--pcap", capture, "--trace-out", "trace.pcap"];
    let refused = nicforge(&folder, &arguments);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("pcapng"), "{}", stderr(&refused));
}

#[test]
fn controllers_get_the_p4info_of_a_program() {
    let folder = folder();
    let output = nicforge(&folder, &["p4", "info", "examples/p4/router.p4"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("Router.routes"), "{}", stdout(&output));
    let output = nicforge(&folder, &["p4", "serve", "examples/p4/router.p4", "--listen", "0.0.0.0:9559"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("loopback"), "{}", stderr(&output));
}

#[test]
fn a_served_program_forwards_a_capture_and_ends_by_itself() {
    let folder = folder();
    let capture = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/captures/sample.pcap");
    let socket = format!("unix:{}", folder.path().join("p4.sock").display());
    let arguments =
        ["p4", "serve", "examples/p4/router.p4", "--entries", "examples/p4/routes.toml", "--listen", &socket];
    let rest = ["--pcap", capture, "--pcap-out", "out.pcap", "--seconds", "2"];
    let output = nicforge(&folder, &[&arguments[..], &rest[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("packets arrived"), "{}", stderr(&output));
    assert!(folder.path().join("out.pcap").is_file());
}

/// Whoever steers, the store answers; by key, the program finds a core for each request.
#[test]
fn a_program_steers_requests_by_key() {
    let points = points("scenarios/flexkvs.toml", &["window_ms=0.2", "warmup_ms=0.1", "kvs_keys=2000"]);
    // By connection, by key, with custom DMA, and with that on cores.
    assert_eq!(points.len(), 4);
    for point in &points {
        assert_eq!(point["metrics"]["get_hit_rate"].as_f64(), Some(1.0), "{}", point["variant"]);
    }
    let count = |name: &str| points[1]["metrics"]["stages"][name].as_u64().unwrap();
    assert!(count("p4_keyingress_cores_hits") > 1_000, "{}", points[1]["metrics"]["stages"]);
    assert_eq!(count("p4_keyingress_cores_misses"), 0);
}

/// The points of a scenario, run for a short time.
fn points(scenario: &str, short: &[&str]) -> Vec<serde_json::Value> {
    let folder = folder();
    let mut arguments = vec!["run", scenario, "--quiet", "--out", "out"];
    for set in short {
        arguments.extend(["--set", set]);
    }
    let output = nicforge(&folder, &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = std::fs::read(folder.path().join("out/report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    report["points"].as_array().unwrap().clone()
}

/// FlexNIC's steering knows nothing of the interface behind it: private and shared rings, rxBisect, memory of the NIC.
#[test]
fn a_program_steers_in_front_of_other_interfaces() {
    let points = points("scenarios/flexnic-steering.toml", &["window_ms=0.2", "warmup_ms=0.1", "kvs_keys=2000"]);
    let interfaces: Vec<_> = points.iter().map(|point| point["variant"].as_str().unwrap()).collect();
    assert_eq!(interfaces, ["priv_ring", "sh_ring", "rx_bisect", "nm_nfv"]);
    for point in &points {
        let stages = &point["metrics"]["stages"];
        assert_eq!(point["metrics"]["get_hit_rate"].as_f64(), Some(1.0), "{}", point["variant"]);
        assert!(stages["p4_keyingress_cores_hits"].as_u64().unwrap() > 1_000, "{stages}");
        assert_eq!(stages["p4_keyingress_cores_misses"].as_u64(), Some(0));
    }
}

/// Threads, the NIC, and two cores that play it: tuples reach their workers, and what ends in the NIC is no drop.
#[test]
fn flexstorm_runs_with_the_program_on_the_nic_and_on_cores() {
    let points = points("scenarios/flexstorm.toml", &["window_ms=0.5", "warmup_ms=0.2"]);
    let variants: Vec<_> = points.iter().map(|point| point["variant"].as_str().unwrap()).collect();
    assert_eq!(variants, ["software", "nic", "nic_on_cores"]);
    for point in &points {
        let metrics = &point["metrics"];
        assert!(metrics["tuples_mps"].as_f64().unwrap() > 0.1, "{point}");
        assert!(metrics["drops"].get("p4_drop").is_none(), "{}", metrics["drops"]);
        let busy = metrics["emulator_busy_fraction"].as_f64();
        assert_eq!(busy.is_some_and(|busy| busy > 0.0), point["variant"] == "nic_on_cores", "{busy:?}");
    }
}

/// A flow that no rule knows goes to the daemon, which leaves a rule: its next packets stay in the NIC.
#[test]
fn a_daemon_leaves_rules_with_the_nic() {
    let short = ["replay_loops=2", "offered_gbps=1"];
    let points = points("scenarios/paper/fx-09.toml", &short);
    let point = points.iter().find(|point| point["variant"] == "nic").unwrap();
    let stages = &point["metrics"]["stages"];
    let count = |name: &str| stages[name].as_u64().unwrap_or_else(|| panic!("{name}: {stages}"));
    assert!(count("rules_added") > 0 && count("p4_switchingress_flows_hits") > count("rules_added"), "{stages}");
    assert_eq!(count("rules_refused"), 0);
}
