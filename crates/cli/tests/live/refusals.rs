//! Live runs that cannot be: exit code 2, the place and the remedy, whatever is wrong. Needs no
//! privilege.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{folder, nicforge, stderr};
use crate::skip;

/// Between captures, with `settings` (lines 4 and on).
fn captures(settings: &str) -> String {
    format!(
        "[live]\nname = \"x\"\n[settings]\n{settings}\n[[port]]\n\
         read = \"scenarios/captures/sample.pcap\"\n"
    )
}

/// Asserts that `nicforge live x.toml` with `more` ends with 2 and says all of `parts`.
fn refused(text: &str, more: &[&str], parts: &[&str]) {
    let folder = folder();
    std::fs::write(folder.path().join("x.toml"), text).unwrap();
    let output = nicforge(&folder, &[&["live", "x.toml"], more].concat());
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{text}{more:?}: {error}");
    for part in parts {
        assert!(error.contains(part), "`{part}` in: {error}");
    }
}

#[test]
fn interfaces_that_are_simulated_only() {
    let why = "is one of whole systems";
    let text = captures("interface = \"sinic\"");
    refused(&text, &[], &["x.toml:4:", why, "use one of emulated, in_place, "]);
    refused(&captures("app = \"l2fwd\""), &["--set", "interface=sinic"], &["--set interface=sinic: ", why]);
}

/// Several ports may read captures: which one ends in the middle is said.
#[test]
fn a_card_that_runs_tcp_takes_neither_cores_nor_stages() {
    let text = |setting: &str| {
        let tcp = "[tcp]\naddress = [\"10.0.0.2/24\"]\nfast_path = \"card\"\n";
        captures(setting).replace("[[port]]", &format!("{tcp}[[port]]"))
    };
    refused(&text("cores = 2"), &[], &["x.toml:4:", "a card has one thread for TCP", "leave `cores` out"]);
    refused(&text("stages = \"trace\""), &[], &["x.toml:4:", "has no stages live", "leave `stages` out"]);
}

#[test]
fn one_thread_is_a_device_and_one_worker() {
    let text = |live: &str, settings| captures(settings).replace("\n[settings]", &format!("\n{live}\n[settings]"));
    let one = "threads = \"one\"";
    refused(&text(one, "cores = 2"), &[], &["x.toml:3:", "one thread cannot be several workers", "set cores to 1"]);
    let attach = format!("{one}\nattach = \"x.sock\"");
    refused(&text(&attach, ""), &[], &["x.toml:3:", "no threads of this process", "\"apart\""]);
    let idle = format!("{one}\nidle = \"interrupt\"");
    refused(&text(&idle, ""), &[], &["x.toml:3:", "interrupt itself", "set idle to \"sleep\""]);
    let steered = text(one, "interface = \"sh_ring_dynamic\"");
    refused(&steered, &[], &["x.toml:3:", "a thread of its own", "\"apart\""]);
}

#[test]
fn a_capture_that_is_cut_is_named() {
    let folder = folder();
    let sample = folder.path().join("scenarios/captures/sample.pcap");
    let bytes = std::fs::read(&sample).unwrap();
    std::fs::write(&sample, &bytes[..bytes.len() - 1]).unwrap();
    std::fs::write(folder.path().join("x.toml"), captures("app = \"l2fwd\"")).unwrap();
    let output = nicforge(&folder, &["live", "x.toml"]);
    let error = stderr(&output);
    // What is whole of it is played.
    assert_eq!(output.status.code(), Some(0), "{error}");
    let said = "capture scenarios/captures/sample.pcap: records left out: 1 cut off";
    assert!(error.contains(said), "{error}");
}

#[test]
fn interfaces_that_no_core_can_play() {
    let emulates = |name: &str| captures(&format!("interface = \"emulated\"\nemulates = \"{name}\""));
    refused(&emulates("split"), &[], &["x.toml:5:", "two buffers each", "; priv_ring, rx_bisect, "]);
    refused(&emulates("nothing"), &[], &["x.toml:5:", "priv_ring, "]);
}

#[test]
fn addresses_that_nobody_can_guess() {
    for (app, key) in [("nat", "external_address = "), ("lb", "server_address = ")] {
        let text = captures(&format!("app = \"{app}\""));
        refused(&text, &[], &["x.toml:4:", "does not know", key, "[app]"]);
    }
}

#[test]
fn ports_that_are_not_there() {
    let port =
        |kind: &str| format!("[live]\nname = \"x\"\n[settings]\napp = \"l2fwd\"\n[[port]]\n{kind} = \"nf-none\"\n");
    for kind in ["interface", "xdp"] {
        refused(&port(kind), &[], &["x.toml:5:1: interface nf-none: ", "; "]);
    }
    refused(&port("read"), &[], &["x.toml:5:1: capture nf-none: ", "; name captures that can be read"]);
}

#[test]
fn more_threads_than_cores() {
    let text = "[live]\nname = \"x\"\npin = \"yes\"\n[settings]\napp = \"l2fwd\"\ncores = 250\n\
                [[port]]\nread = \"scenarios/captures/sample.pcap\"\n";
    refused(text, &[], &["x.toml:3:1: 251 threads", "; use fewer workers"]);
}

#[test]
fn sockets_that_cannot_be_made() {
    let text = captures("app = \"l2fwd\"");
    refused(&text, &["--attach", "machines"], &["attach machines: ", "no socket; name another place"]);
    refused(&text, &["--attach", "nosuch/s"], &["--attach nosuch/s: ", "; name a path in a folder that is there"]);
    let folder = folder();
    std::fs::write(folder.path().join("x.toml"), text).unwrap();
    std::fs::write(folder.path().join("precious"), "mine").unwrap();
    let output = nicforge(&folder, &["live", "x.toml", "--attach", "precious"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let kept = std::fs::read_to_string(folder.path().join("precious"));
    assert_eq!(kept.unwrap(), "mine", "nobody's file is taken for a socket");
}

#[test]
fn runs_that_nobody_can_attach_to() {
    let folder = folder();
    let output = nicforge(&folder, &["attach", "nosuch"]);
    let error = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("attach nosuch: "), "{error}");
    assert!(error.contains("; start the run first"), "{error}");
}

#[test]
fn another_users_run() {
    if !rustix::process::geteuid().is_root() {
        skip::skipped("only root can run a command as somebody else");
        return;
    }
    let folder = folder();
    let all = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), all).unwrap();
    std::fs::write(folder.path().join("x.toml"), captures("app = \"l2fwd\"")).unwrap();
    let nicforge = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nicforge"));
        command.current_dir(folder.path()).stderr(Stdio::piped());
        command
    };
    let mut run = nicforge();
    let mut run = run.args(["live", "x.toml", "--attach", "s", "--quiet"]).spawn().unwrap();
    let socket = folder.path().join("s");
    let patience = Instant::now() + Duration::from_secs(30);
    let is_ready = || {
        let made = std::fs::metadata(&socket);
        made.is_ok_and(|made| made.permissions().mode() & 0o777 == 0o600)
    };
    while !is_ready() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut nobody = nicforge();
    let ended = nobody.uid(65_534).args(["attach", "s"]).output();
    run.kill().unwrap();
    run.wait().unwrap();
    match ended {
        Ok(ended) => {
            let error = stderr(&ended);
            assert_eq!(ended.status.code(), Some(2), "{error}");
            assert!(error.contains("; attach as the user who started the run"), "{error}");
        }
        Err(error) => skip::skipped(&format!("the command cannot be run as nobody here ({error})")),
    }
}

#[test]
fn servers_that_a_file_describes_wrongly() {
    let folder = folder();
    let servers = "app = \"lb\"\nservers_file = \"servers.txt\"";
    let text = captures(servers) + "[app]\nserver_address = \"10.200.0.1\"\n";
    std::fs::write(folder.path().join("x.toml"), text).unwrap();
    std::fs::write(folder.path().join("servers.txt"), "# mine\n10.200.0.1 2\n10.9.9.9 1\n").unwrap();
    let scenario = ["run", "scenarios/nat-capture.toml", "--set", "app=lb", "--set", "servers_file=servers.txt"];
    for arguments in [&["live", "x.toml"][..], &scenario] {
        let output = nicforge(&folder, arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains("servers.txt:3: 10.9.9.9 is none of the 32 servers"), "{arguments:?}: {said}");
    }
}

#[test]
fn a_mode_that_is_none() {
    let text = captures("app = \"l2fwd\"").replacen("[settings]", "attach_mode = \"rw\"\n[settings]", 1);
    refused(&text, &[], &["x.toml:3:", "`attach_mode`", "octal digits"]);
}
