//! What is no error and said all the same, on standard error.

mod kvs;
mod rings;

use crate::common::{folder, nicforge, stderr};
use nicforge_units::Time;
use nicforge_wire::capture::{CaptureFormat, CaptureWriter};

const SCENARIO: &str = "[scenario]\nname = \"s\"\nmachine = \"xeon-4216-cx5\"\n[settings]\nnics = 2\n";

/// The notes on a scenario with `settings` on top of two NICs.
fn notes(settings: &str) -> Vec<String> {
    let folder = folder();
    std::fs::write(folder.path().join("s.toml"), format!("{SCENARIO}{settings}")).unwrap();
    let output = nicforge(&folder, &["check", "s.toml"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{settings}: {said}");
    let notes = said.lines().filter_map(|line| line.strip_prefix("note: "));
    notes.map(str::to_owned).collect()
}

#[track_caller]
fn warns(settings: &str, says: &[&str]) {
    let notes = notes(settings);
    assert_eq!(notes.len(), says.len(), "{notes:?}");
    for (note, says) in notes.iter().zip(says) {
        assert!(note.contains(says), "{note}");
    }
}

const BISECT: &str = "interface = \"rx_bisect\"\n";
const EMULATED: &str = "interface = \"emulated\"\nemulates = \"rx_bisect\"\n";

#[test]
fn all_of_them_and_nothing_else_where_it_is_to_be_quiet() {
    let said = |arguments: &[&str], settings: &[&str]| {
        let folder = folder();
        let mut whole = [arguments, &["--quiet"]].concat();
        whole.extend(settings.iter().flat_map(|set| ["--set", set]));
        let output = nicforge(&folder, &whole);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(output.stdout.is_empty());
        assert!(said.lines().all(|line| line.starts_with("note: ")), "{said}");
        assert!(said.contains("busiest_to_idlest"), "{said}");
        said
    };
    let short = ["busiest_to_idlest=2", "warmup_ms=0.001", "window_ms=0.001", "flows=100", "offered_gbps=0.001"];
    let of_run = said(&["run", "scenarios/in-place.toml"], &short);
    assert!(of_run.contains("no frame came in the window"), "{of_run}");
    if cfg!(target_os = "linux") {
        let one = ["busiest_to_idlest=2", "nics=1", "cores=1"];
        said(&["sim-vs-live", "scenarios/nat-capture.toml"], &one);
    }
}

/// The command that comes next is one for a shell.
#[test]
fn the_next_command_can_be_copied() {
    let folder = folder();
    std::fs::write(folder.path().join("s.toml"), SCENARIO).unwrap();
    let rings = "associations=0 1, 0 1";
    let set = ["--set", "interface=rx_bisect", "--set", "cores=4", "--set", rings];
    let output = nicforge(&folder, &[&["check", "s.toml"], &set[..]].concat());
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let next = said.lines().last().unwrap();
    assert!(next.ends_with(" --set 'associations=0 1, 0 1'"), "{said}");
}

#[test]
fn settings_under_which_all_is_lost() {
    warns("packet_bytes = 9000\n", &["frames of 9000 bytes do not fit buffers of 2048: all of them will be dropped"]);
    warns("packet_bytes = 9000\nbuffer_bytes = 9000\n", &[]);
    // Buffers are whole cache lines.
    warns("packet_bytes = 2112\nbuffer_bytes = 2050\n", &[]);
    warns("packet_bytes = 2113\nbuffer_bytes = 2050\n", &["frames of 2113 bytes do not fit buffers of 2112"]);
    let many = "flows = 10000000\ntable_entries = 1000\n";
    warns(many, &["at most 1000 have room in the table"]);
    warns(&format!("app = \"counter\"\n{many}"), &["will not be counted"]);
    warns("app = \"l2fwd\"\nflows = 10000000\n", &[]);
}

#[test]
fn headers_that_are_split() {
    for interface in ["split", "nm_nfv", "nm_nfv_minus"] {
        let split = |at: u32| format!("interface = \"{interface}\"\nsplit_at = {at}\n");
        for at in [1, 41] {
            let says = "cuts frames within the 42 bytes of headers that nat reads";
            warns(&split(at), &[says]);
        }
        for at in [0, 42, 64] {
            warns(&split(at), &[]);
        }
        warns(&format!("app = \"l2fwd\"\n{}", split(14)), &[]);
    }
}

/// What rings take up of a short trial is sent after its window, and nothing is lost.
#[test]
fn trials_that_rings_take_up() {
    let search = "cores = 4\noffered_gbps = 100\nmeasure = \"no_drop_rate\"\n";
    // 4 rings of 1024 frames of 12 kbit: 49.152 Mbit.
    let says = "receive rings hold 4096 frames of 1500 bytes, 49.2 Gbit/s for a window of 1 ms: the rate without loss \
                may be too high by so much of 100 Gbit/s; set window_ms to 10 or more";
    warns(&format!("{search}window_ms = 1\n"), &[says]);
    warns(&format!("{search}window_ms = 10\n"), &[]);
    let slow = search.replace("offered_gbps = 100", "offered_gbps = 0.01");
    let enough =
        "of 0.01 Gbit/s; the longest window_ms, 60000, is too short for them: use smaller rings, or offer more";
    warns(&format!("{slow}window_ms = 60000\n"), &[enough]);
    warns("cores = 4\noffered_gbps = 100\nwindow_ms = 1\n", &[]);
    for (rings, frames) in [
        ("interface = \"sh_ring\"\nsharing = 2\n", "hold 2048 frames"),
        ("interface = \"rx_bisect\"\nax_entries = 512\n", "hold 2048 frames"),
    ] {
        warns(&format!("{search}{rings}window_ms = 1\n"), &[frames]);
    }
}

/// The rest of the frames goes on; which do not is said before the run.
#[test]
fn frames_of_a_capture_that_no_buffer_has_room_for() {
    let folder = folder();
    let mut capture = CaptureWriter::new(Vec::new(), CaptureFormat::Pcap).unwrap();
    for len in [100, 3000, 2048, 2500] {
        capture.write(Time::ZERO, &vec![0; len]).unwrap();
    }
    let capture = capture.finish().unwrap();
    std::fs::write(folder.path().join("long.pcap"), capture).unwrap();
    let text = format!("{SCENARIO}cores = 2\n");
    std::fs::write(folder.path().join("s.toml"), text).unwrap();
    let notes = |set: &str| {
        let check = ["check", "s.toml", "--pcap", "long.pcap", "--set", set];
        let output = nicforge(&folder, &check);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stderr(&output)
    };
    let said = notes("buffer_bytes=2048");
    for part in [
        "long.pcap: 2 of 4 frames do not fit buffers of 2048 bytes",
        "the first is number 2, the longest has 3000 bytes",
        "set buffer_bytes to at least 3000",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert!(notes("buffer_bytes=2560").contains("1 of 4 frames"));
    // Cut in two a frame may be no longer.
    assert!(notes("interface=split").contains("2 of 4 frames do not fit buffers of 2048"));
    assert!(!notes("buffer_bytes=3000").contains("frames do not fit"));
    // 2496 is 39 lines, and 2500 none.
    assert!(notes("buffer_bytes=2496").contains("2 of 4 frames do not fit buffers of 2496"));
    assert!(notes("buffer_bytes=2497").contains("1 of 4 frames do not fit buffers of 2560"));
    shorten_fifo(&folder);
    let said = notes("buffer_bytes=3000");
    let fifo = "long.pcap: 3 of 4 frames do not fit the NIC's receive FIFO of 1024 bytes and will be dropped \
                (longer_than_fifo), the first is number 2, the longest has 3000 bytes; set rx_fifo_kib of machine \
                xeon-4216-cx5 to at least 3";
    assert!(said.contains(fifo), "{said}");
}

/// Gives the NICs of the usual machine a receive FIFO of 1 KiB.
fn shorten_fifo(folder: &tempfile::TempDir) {
    let machine = folder.path().join("machines/xeon-4216-cx5.toml");
    let text = std::fs::read_to_string(&machine).unwrap();
    let short = text.replace("rx_fifo_kib = { value = 512", "rx_fifo_kib = { value = 1");
    assert_ne!(short, text);
    std::fs::write(&machine, short).unwrap();
}

/// Such frames are lost at any rate: a search goes on without them.
#[test]
fn frames_that_the_fifo_has_no_room_for() {
    let folder = folder();
    shorten_fifo(&folder);
    let said = |settings: &str, command: &[&str]| {
        std::fs::write(folder.path().join("s.toml"), format!("{SCENARIO}cores = 2\n{settings}")).unwrap();
        let output = nicforge(&folder, &[command, &["s.toml"]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stderr(&output)
    };
    for (settings, bytes) in [
        ("packet_bytes = 1025\n", 1025),
        ("interface = \"split\"\npacket_bytes = 1025\n", 1025),
        ("app = \"kvs\"\nkvs_put_share = 0.5\n", 1218),
    ] {
        let note = format!(
            "frames of {bytes} bytes do not fit the NIC's receive FIFO of 1024: all of them will be dropped \
             (longer_than_fifo); set rx_fifo_kib of machine xeon-4216-cx5 to at least 2"
        );
        let said = said(settings, &["check"]);
        assert!(said.contains(&note), "{said}");
    }
    assert_eq!(said("packet_bytes = 1024\n", &["check"]), "");
    let search = "packet_sizes = \"bimodal\"\nsmall_share = 0.5\nmeasure = \"no_drop_rate\"\noffered_gbps = 1\n\
                  warmup_ms = 0.1\nwindow_ms = 0.5\nflows = 100\ntable_entries = 100\n";
    said(search, &["run", "--quiet", "--out", "out"]);
    let report = std::fs::read_to_string(folder.path().join("out/report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let metrics = &report["points"][0]["metrics"];
    assert!(metrics["drops"]["longer_than_fifo"].as_u64() > Some(0), "{metrics}");
    assert!(metrics["no_drop_gbps"].as_f64() > Some(0.9), "{metrics}");
}

#[test]
fn variants_that_differ_in_nothing_that_counts() {
    let variants = "[[variant]]\nname = \"small\"\nrx_entries = 128\n\
                    [[variant]]\nname = \"large\"\nrx_entries = 1024\n";
    let folder = folder();
    let said = |text: &str, set: &[&str]| {
        let text = format!("{SCENARIO}{text}");
        std::fs::write(folder.path().join("s.toml"), text).unwrap();
        let output = nicforge(&folder, &[&["check", "s.toml"][..], set].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stderr(&output)
    };
    assert_eq!(said(variants, &[]), "");
    let replaced = said(variants, &["--set", "rx_entries=512"]);
    assert!(replaced.contains("note: large is small again: no setting that counts differs"), "{replaced}");
    // A table of another size is one for those who have a table.
    let tables = "[[variant]]\nname = \"plain\"\n\
                  [[variant]]\nname = \"tables\"\ntable_entries = 2000000\n\
                  [[variant]]\nname = \"shared\"\ninterface = \"sh_ring\"\n\
                  [sweep]\napp = [\"nat\", \"l2fwd\"]\n";
    let partly = said(tables, &[]);
    assert!(partly.contains("tables is plain again in 1 of 2 points: "), "{partly}");
    assert!(!partly.contains("shared"), "{partly}");
}

/// A key belongs to the modules that read it; what no point uses of them is said.
#[test]
fn keys_of_modules_that_no_point_uses() {
    let replay = ["check", "scenarios/nat-capture.toml", "--set"];
    for (set, owner) in [
        ("packet_bytes=64", "packet_sizes = fixed"),
        ("packet_sizes=imix", "made-up frames"),
        ("target_share=0.5", "made-up frames"),
        ("busiest_to_idlest=2", "made-up frames"),
        ("flows=10", "made-up flows"),
        ("flow_choice=zipf", "made-up flows"),
        ("warmup_ms=3", "a window"),
        ("window_ms=1", "a window"),
    ] {
        let output = nicforge(&folder(), &[&replay[..], &[set]].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{said}");
        let (key, _) = set.split_once('=').unwrap();
        assert!(said.contains(&format!("note: --set {set}: nothing uses `{key}`")), "{said}");
        assert!(said.contains(owner), "{said}");
    }
    for (key, owner) in [
        ("target_packet_bytes = [64, 128]", "target_share above 0"),
        ("target_begins_ms = [1, 2]", "target_share"),
        ("nicmem_kib = [1, 2]", "interface nm_nfv, interface nm_nfv_minus"),
        ("co_runner_socket = [\"other\"]", "stream_cores or graph_cores"),
    ] {
        let (name, _) = key.split_once(' ').unwrap();
        let text = format!("cores = 4\n[sweep]\n{key}\n");
        warns(&text, &[&format!("nothing uses `{name}`")]);
        warns(&text, &[owner]);
    }
    for (settings, key) in [
        ("target_share = 0.5\n", "target_packet_bytes = [64]"),
        ("target_share = 0.5\n", "target_begins_ms = [1]"),
        ("app = \"synthetic\"\ntarget_accesses = 5\n", "target_begins_ms = [1]"),
        ("interface = \"nm_nfv\"\n", "nicmem_kib = [10000]"),
        ("copy = \"host_to_nicmem\"\n", "nicmem_kib = [10000]"),
        ("graph_cores = 1\n", "co_runner_socket = [\"other\"]"),
    ] {
        warns(&format!("cores = 4\n{settings}[sweep]\n{key}\n"), &[]);
    }
    let sweep = "cores = 16\n[sweep]\nrx_entries = [128, 1024]\n";
    warns(&format!("{BISECT}{sweep}"), &["nothing uses `rx_entries`"]);
    warns(&format!("{BISECT}cores = 16\nrx_entries = 128\n"), &["nothing uses `rx_entries`"]);
    // One point that uses it is enough.
    let other = "[[variant]]\ninterface = \"rx_bisect\"\n[[variant]]\ninterface = \"priv_ring\"\n";
    warns(&sweep.replace("[sweep]", &format!("{other}[sweep]")), &[]);
}

/// Clients that wait, and a capture that is played as it was, come as fast as they do.
#[test]
fn a_rate_that_nobody_keeps() {
    for set in ["arrival=ping_pong", "replay_timing=recorded"] {
        let check = ["check", "scenarios/nat-capture.toml", "--set", set];
        let said = |more: &[&str]| stderr(&nicforge(&folder(), &[&check, more].concat()));
        let rate = said(&["--set", "offered_gbps=50"]);
        assert!(rate.contains("nothing uses `offered_gbps`"), "{rate}");
        assert!(!said(&[]).contains("offered_gbps"), "not asked for");
    }
}

#[test]
fn a_target_that_never_begins() {
    let target = "target_share = 0.5\nwarmup_ms = 1\nwindow_ms = 2\n";
    warns(&format!("{target}target_begins_ms = 3\n"), &["the target begins at 3 ms, when the run has ended (3 ms)"]);
    warns(&format!("{target}target_begins_ms = 2.9\n"), &[]);
}

#[test]
fn shares_of_a_lone_queue() {
    let says = "busiest_to_idlest has no effect with 2 cores for 2 NICs, as each NIC has one queue";
    warns("cores = 2\nbusiest_to_idlest = 3\n", &[says]);
    warns("cores = 4\nbusiest_to_idlest = 3\n", &[]);
    warns("cores = 2\n", &[]);
}

#[test]
fn a_machine_may_be_named_as_scenarios_name_it() {
    let folder = folder();
    let check = ["check", "scenarios/nat-200g.toml", "--machine", "xeon-4216-cx5"];
    let output = nicforge(&folder, &check);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}
