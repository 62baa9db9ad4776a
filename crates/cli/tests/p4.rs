//! P4 programs on simulated NICs, and what controllers are told of them.

mod common;

use common::{folder, nicforge, stderr, stdout};

/// In front of every interface of one server: the run's accounts hold, and the program's counters are in the report.
#[test]
fn a_program_runs_in_front_of_every_interface() {
    let folder = folder();
    for interface in nicforge_interfaces::Interfaces::shipped().of_rings() {
        let set = format!("interface=\"{interface}\"");
        let mut arguments = vec!["run", "scenarios/p4-router.toml", "--quiet", "--out", "out", "--set", &set];
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
    let folder = folder();
    let mut arguments = vec!["run", "scenarios/flexkvs.toml", "--quiet", "--out", "out"];
    for short in ["window_ms=0.2", "warmup_ms=0.1", "kvs_keys=2000"] {
        arguments.extend(["--set", short]);
    }
    let output = nicforge(&folder, &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = std::fs::read(folder.path().join("out/report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    let points = report["points"].as_array().unwrap();
    assert_eq!(points.len(), 3);
    for point in points {
        assert_eq!(point["metrics"]["get_hit_rate"].as_f64(), Some(1.0), "{}", point["variant"]);
    }
    let count = |name: &str| points[1]["metrics"]["stages"][name].as_u64().unwrap();
    assert!(count("p4_keyingress_cores_hits") > 1_000, "{}", points[1]["metrics"]["stages"]);
    assert_eq!(count("p4_keyingress_cores_misses"), 0);
}
