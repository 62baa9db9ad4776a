//! Wrong usage and input: exit code 2, the place and the remedy, and nothing written.

use crate::common::{files, folder, nicforge, stderr, stdout};

/// Runs with `arguments` after writing `text` to `s.toml`; asserts code 2, nothing written,
/// nothing on standard output, and all of `parts` in the error.
fn refused(text: &str, arguments: &[&str], parts: &[&str]) {
    let folder = folder();
    std::fs::write(folder.path().join("s.toml"), text).unwrap();
    let before = files(folder.path());
    let output = nicforge(&folder, arguments);
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {error}");
    assert_eq!(stdout(&output), "");
    for part in parts {
        assert!(error.contains(part), "`{part}` in: {error}");
    }
    assert_eq!(files(folder.path()), before, "nothing is written");
}

const HEADER: &str = "[scenario]\nname = \"s\"\nmachine = \"xeon-4216-cx5\"\n";

#[test]
fn a_wrong_scenario() {
    let text = format!("{HEADER}[settings]\nrx_entries = 100\n");
    for command in ["run", "check"] {
        refused(&text, &[command, "s.toml"], &["error: s.toml:5:14: ", "64 or 128 would do"]);
    }
}

/// As [`refused`], of `run` and `check` alike: what one says the other says.
fn both_refuse(settings: &str, parts: &[&str]) {
    let text = format!("{HEADER}[settings]\n{settings}\n");
    for command in ["run", "check"] {
        refused(&text, &[command, "s.toml"], parts);
    }
}

#[test]
fn more_memory_than_is_modelled() {
    both_refuse(
        "app = \"kvs\"\nkvs_log_mib = 65536",
        &["error: s.toml:6:", "over 63 GiB at most", "fewer `table_entries`"],
    );
}

#[test]
fn more_rings_than_control_memory_holds() {
    both_refuse("rx_entries = 65536", &["error: s.toml:5:", "control memory"]);
    both_refuse(
        "rx_entries = 128\ninterface = \"rx_bisect\"\nbx_entries = 65536",
        &["error: s.toml:7:", "use fewer or smaller rings"],
    );
    let set = ["check", "scenarios/nat-200g.toml", "--set", "rx_entries=65536"];
    refused("", &set, &["error: --set rx_entries=65536: "]);
}

#[test]
fn a_target_without_flows() {
    both_refuse("flows = 3\ntarget_share = 0.5", &["error: s.toml:6:", "a target share needs flows"]);
    both_refuse(
        "flow_choice = \"single\"\ntarget_share = 0.5",
        &["error: s.toml:6:", "another choice than a single flow"],
    );
    // Where each NIC has one queue, no flow is for another.
    both_refuse("cores = 2\ntarget_share = 0.5", &["error: s.toml:6:", "a target share needs flows"]);
}

#[test]
fn shares_of_queues_that_cannot_be() {
    for (ratio, says) in [
        ("0.5", "cannot get 0.5 times the packets of the idlest"),
        ("-2.0", "`busiest_to_idlest` cannot be -2"),
        ("inf", "`busiest_to_idlest` cannot be inf"),
        ("nan", "`busiest_to_idlest` cannot be NaN"),
        ("1001", "takes a number, 0 to 1000 times"),
    ] {
        let settings = format!("busiest_to_idlest = {ratio}");
        both_refuse(&settings, &["error: s.toml:5:", says]);
    }
    for (other, says) in [
        ("target_share = 0.3", "target_share and busiest_to_idlest both say"),
        ("flow_choice = \"single\"", "a single flow is of one queue"),
        ("flows = 9", "flows is steered to queue"),
    ] {
        let settings = format!("{other}\nbusiest_to_idlest = 3.25");
        both_refuse(&settings, &["error: s.toml:6:", says]);
    }
}

/// A folder with `files`, and `settings` that name them: both commands say `parts`.
fn files_refused(files: &[(&str, &str)], settings: &str, parts: &[&str]) {
    let folder = folder();
    let text = format!("{HEADER}[settings]\n{settings}\n");
    std::fs::write(folder.path().join("s.toml"), text).unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    for command in ["run", "check"] {
        let output = nicforge(&folder, &[command, "s.toml"]);
        let error = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{command}: {error}");
        for part in parts {
            assert!(error.contains(part), "`{part}` in: {error}");
        }
    }
}

#[test]
fn files_that_say_something_else() {
    let sizes = "packet_sizes = \"empirical\"\nsize_file = \"sizes\"";
    for (text, wrong) in [
        ("64 1\n64\n", "sizes: line 2: \"64\" is not `bytes weight`"),
        ("# none\n", "sizes: a size table needs at least one size"),
        ("12 1\n", "sizes: line 1: a frame of 12 bytes"),
        ("64 1e308\n128 1e308\n", "sizes: line 1: a weight of 1e308; it is 0 or more, 1e100 at most"),
    ] {
        files_refused(&[("sizes", text)], sizes, &["error: s.toml:6:", wrong]);
    }
    let routes = "app = \"l3fwd\"\nroutes_file = \"routes\"";
    for (text, wrong) in
        [("", "routes: has no route"), ("0.0.0.0/0 0\n10.0.0.0/8 7\n", "routes:2: there is no port 7, only 0 to 1")]
    {
        files_refused(&[("routes", text)], routes, &["error: s.toml:6:", wrong]);
    }
    let pcap = "arrival = \"replay\"\npcap = \"bad.pcap\"";
    let parts = ["error: s.toml:6:", "bad.pcap: ", "stopped at byte 0"];
    files_refused(&[("bad.pcap", "no capture")], pcap, &parts);
}

#[test]
fn what_is_no_file() {
    let nat = ["check", "scenarios/nat-capture.toml"];
    let with = |more: &[&'static str]| [&nat[..], more].concat();
    refused("", &with(&["--pcap", "machines"]), &["--pcap machines: it is a folder"]);
    both_refuse(
        "arrival = \"replay\"\npcap = \"machines\"",
        &["error: s.toml:6:8: ", "`pcap` names what is no file: machines"],
    );
    if cfg!(unix) {
        let parts = ["--pcap /dev/zero: it is a pipe or a device"];
        refused("", &with(&["--pcap", "/dev/zero"]), &parts);
    }
}

#[test]
fn more_memory_than_the_system_gives() {
    if !cfg!(target_os = "linux") {
        return;
    }
    let folder = folder();
    let run = "ulimit -v 4000000; exec \"$0\" run scenarios/nat-200g.toml --set app=kvs \
               --set kvs_log_mib=40000 --set interface=priv_ring --set rx_entries=128";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", run, env!("CARGO_BIN_EXE_nicforge")]);
    let output = command.current_dir(folder.path()).output().unwrap();
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("MiB of memory, and the system has not so much"), "{error}");
    assert!(!folder.path().join("out").exists());
}

#[test]
fn a_missing_scenario() {
    refused("", &["run", "none.toml"], &["error: none.toml: cannot be read"]);
    refused("", &["run", "scenarios"], &["error: scenarios: is no file"]);
}

#[test]
fn a_missing_machine() {
    let text = "[scenario]\nname = \"s\"\nmachine = \"xeon-4216\"\n";
    refused(text, &["run", "s.toml"], &["s.toml:3:11: ", "did you mean \"xeon-4216-cx5\"?"]);
}

#[test]
fn wrong_overrides() {
    let run = ["run", "scenarios/nat-200g.toml"];
    let with = |more: &[&'static str]| [&run[..], more].concat();
    refused("", &with(&["--set", "core=4"]), &["--set core=4: ", "did you mean `cores`?"]);
    refused("", &with(&["--set", "cores=0"]), &["--set cores=0: ", "1 to 256 cores"]);
    refused("", &with(&["--set", "io_ways=12"]), &["--set io_ways=12: ", "set io_ways to 0 to 11"]);
    refused("", &with(&["--pcap", "none.pcap"]), &["--pcap none.pcap: there is no such file"]);
    refused("", &with(&["--jobs", "0"]), &["'--jobs <N>'", "from 1 to 1024"]);
    refused("", &with(&["--seed", "x"]), &["--seed"]);
    refused(
        "",
        &with(&["--set", "cores=4", "--set", "cores=8"]),
        &["--set cores=8: `cores` is set by --set cores=4, too; keep one of the two"],
    );
    refused("", &with(&["--machine", "m5-10gb"]), &["--machine m5-10gb: ", "did you mean \"m5-10gbe\"?"]);
    refused("", &with(&["--quite"]), &["--quite", "--quiet"]);
}

#[test]
fn outputs_that_cannot_be() {
    let run = ["run", "scenarios/nat-200g.toml"];
    let with = |more: &[&'static str]| [&run[..], more].concat();
    refused("", &with(&["--out", "s.toml"]), &["--out s.toml: is a file"]);
    refused("", &with(&["--pcap-out", "x.pcap"]), &["needs one point, not 2"]);
    // These would run, and write none.
    let with = |set| ["--set", set, "--pcap-out", "x.pcap"];
    let search = ["run", "scenarios/nat-capture.toml"];
    refused(
        "",
        &[&search[..], &with("measure=no_drop_rate")].concat(),
        &["--pcap-out x.pcap: measure = \"no_drop_rate\" runs trials", "use --set measure=window"],
    );
    let system = "[scenario]\nname = \"s\"\nmachine = \"m5-10gbe\"\n[settings]\ninterface = \"sinic\"\n";
    refused(
        system,
        &[&["run", "s.toml"], &with("workload=tcp_receive")[..]].concat(),
        &["--pcap-out x.pcap: whole systems (workload = \"tcp_receive\")", "leave it out"],
    );
}

#[test]
fn a_wrong_machine_file() {
    let folder = folder();
    let file = folder.path().join("machines/xeon-4216-cx5.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("frequency_ghz", "frequency_mhz")).unwrap();
    let output = nicforge(&folder, &["run", "scenarios/nat-200g.toml"]);
    assert_eq!(output.status.code(), Some(2));
    let error = stderr(&output);
    assert!(error.contains("machines/xeon-4216-cx5.toml:"), "{error}");
    assert!(error.contains("did you mean `frequency_ghz`?"), "{error}");
    assert!(!folder.path().join("out").exists());
    for (wrong, right, says) in [
        ("frequency_ghz = { value = 2.1, ", "frequency_ghz = { value = \"2.1\", ", "without quotes"),
        ("frequency_ghz = { value = 2.1, ", "frequency_ghz = 2.1 #", "{ value = 2.1, source ="),
    ] {
        assert!(text.contains(wrong));
        std::fs::write(&file, text.replace(wrong, right)).unwrap();
        let output = nicforge(&folder, &["check", "scenarios/nat-200g.toml"]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
}

#[test]
fn flags_that_do_not_belong() {
    refused("", &["list", "apps", "--verbose"], &["--verbose goes with"]);
    refused("", &["list", "interface"], &["interfaces"]);
    refused("", &[], &["Usage: nicforge"]);
}
