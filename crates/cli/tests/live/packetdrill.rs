//! packetdrill's scripts over the live card: its calls are those of any program over `nicforge sockets`, and its packets
//! pass a link to the card's port, in real time.
//!
//! Needs root, nft, python3, and `NICFORGE_PACKETDRILL`, a checkout of google/packetdrill in which
//! `gtests/net/packetdrill/packetdrill` has been built. The scripts are those of `../shared/data/packetdrill/scripts.txt`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::skip;
use crate::support::netns::has;

/// Scripts that do not hold over the card, and why.
const LEFT_OUT: [(&str, &str); 2] = [
    ("epoll/epoll_in_edge.pkt", "data that nobody looked at gives no second edge"),
    ("syscall_bad_arg/sendmsg-empty-iov.pkt", "the library refuses SO_ZEROCOPY"),
];

/// Settings that the scripts make and this TCP does not have.
const NOT_OURS: [&str; 4] = ["tcp_fack", "tcp_recovery", "tcp_ecn_option", "tcp_fastopen_key"];

/// How long a packet takes at most between packetdrill and the program that it is, seconds.
const ON_THE_WAY: &str = "+.004";

/// Settings of the script's preamble, as `[tcp]` takes them.
fn settings(script: &str, defaults: &str) -> Vec<String> {
    let mut settings = Vec::new();
    let common = if script.contains("defaults.sh") { defaults } else { "" };
    for text in [common, script] {
        for (at, _) in text.match_indices("tcp_") {
            let prefix = &text[..at];
            if !prefix.ends_with("net.ipv4.") && !prefix.ends_with("net/ipv4/") {
                continue;
            }
            let Some((name, rest)) = text[at..].split_once('=') else { continue };
            if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') || NOT_OURS.contains(&name) {
                continue;
            }
            let value = match rest.strip_prefix('"') {
                Some(quoted) => quoted.split('"').next().unwrap_or_default(),
                None => rest.split([' ', '\n', '`']).next().unwrap_or_default(),
            };
            let value = value.replace("$((15*1024*1024))", "15728640").replace("$((256*1024))", "262144");
            settings.push(format!("{name}={value}"));
        }
    }
    if script.contains(" root fq") {
        settings.push("pacing=1".into());
    }
    settings
}

#[derive(Clone, Copy, PartialEq)]
enum Before {
    Packet,
    Listen,
    Other,
}

/// The script, where what happens at once after a packet or behind `listen` waits until that has come over the link.
fn with_a_wire(script: &str) -> String {
    let mut before = Before::Other;
    let mut lines = Vec::new();
    for line in script.lines() {
        let words = line.trim_start();
        let event = words.split_once(char::is_whitespace).map_or("", |(_, event)| event.trim_start());
        let is_call = event.split('(').next().is_some_and(|name| {
            event.contains('(')
                && !name.is_empty()
                && name.chars().all(|c| c.is_ascii_lowercase() || "_0123456789".contains(c))
        });
        let at_once = words.starts_with("+0 ") || words.starts_with("+0\t");
        let waits = match before {
            Before::Packet => is_call || event.starts_with("%{"),
            Before::Listen => event.starts_with('<'),
            Before::Other => false,
        };
        lines.push(if at_once && waits { format!("{ON_THE_WAY} {event}") } else { line.to_owned() });
        if words.starts_with(|c: char| c == '+' || c == '*' || c.is_ascii_digit()) {
            before = match event {
                _ if event.starts_with(['<', '>']) => Before::Packet,
                _ if event.starts_with("listen(") => Before::Listen,
                _ => Before::Other,
            };
        }
    }
    lines.join("\n") + "\n"
}

/// A copy of a script beside it, as its preamble names files by their place; it goes with the value.
struct Copy(PathBuf);

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn run(checkout: &Path, script: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(checkout.join(script)).map_err(|error| error.to_string())?;
    let defaults = std::fs::read_to_string(checkout.join("gtests/net/common/defaults.sh")).unwrap_or_default();
    let folder = tempfile::tempdir().unwrap();
    let sysctl: Vec<String> = settings(&text, &defaults).iter().map(|setting| format!("{setting:?}")).collect();
    let card = format!(
        "[live]\nname = \"packetdrill\"\n[tcp]\naddress = [\"192.168.0.1/16\"]\ngateway = [\"192.168.0.2\"]\n\
         fast_path = \"card\"\nservice = {:?}\nsysctl = [{}]\n[[port]]\ninterface = \"nf-card\"\n",
        folder.path().join("service"),
        sysctl.join(", ")
    );
    std::fs::write(folder.path().join("card.toml"), card).unwrap();
    std::fs::write(folder.path().join("relay.py"), include_str!("packetdrill/relay.py")).unwrap();
    let copy = Copy(checkout.join(script).with_extension("over-card.pkt"));
    std::fs::write(&copy.0, with_a_wire(&text)).unwrap();
    let output = Command::new("unshare")
        .args(["-n", "--", "sh", "-s"])
        .arg(folder.path())
        .arg(env!("CARGO_BIN_EXE_nicforge"))
        .arg(checkout.join("gtests/net/packetdrill/packetdrill"))
        .arg(copy.0.file_name().unwrap())
        .current_dir(copy.0.parent().unwrap())
        .stdin(script_file(folder.path()))
        .output()
        .map_err(|error| error.to_string())?;
    let log = std::fs::read_to_string(folder.path().join("live.log")).unwrap_or_default();
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("{said}\n{log}")) }
}

/// The shell's input.
fn script_file(folder: &Path) -> std::fs::File {
    let place = folder.join("over_card.sh");
    std::fs::write(&place, include_str!("packetdrill/over_card.sh")).unwrap();
    std::fs::File::open(place).unwrap()
}

#[test]
fn scripts_hold_over_the_card() {
    let Some(checkout) = std::env::var_os("NICFORGE_PACKETDRILL").map(PathBuf::from) else {
        return skip::skipped("NICFORGE_PACKETDRILL names no built checkout of packetdrill");
    };
    let namespace = Command::new("unshare").args(["-n", "true"]).status();
    if !["nft", "python3"].into_iter().all(has) || !namespace.is_ok_and(|status| status.success()) {
        return skip::skipped("scripts over the card need root, nft and python3");
    }
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/packetdrill/scripts.txt");
    let Ok(list) = std::fs::read_to_string(list) else {
        return skip::skipped("no list of scripts beside the project");
    };
    crate::support::over::build_library();
    let scripts: Vec<&str> = list.lines().filter_map(|line| line.strip_prefix("google/packetdrill ")).collect();
    let held = scripts.iter().filter(|script| !LEFT_OUT.iter().any(|(left, _)| script.ends_with(left)));
    let failures: Vec<String> = held
        .filter_map(|script| run(&checkout, Path::new(script)).err().map(|error| format!("{script}: {error}")))
        .collect();
    assert!(failures.is_empty(), "{} of {} scripts fail:\n{}", failures.len(), scripts.len(), failures.join("\n"));
}

#[test]
fn a_script_gets_a_wire() {
    let script = "   +0 listen(3, 1) = 0\n\n   +0 < S 0:0(0) win 1\n   +0 > S. 0:0(0) ack 1\n   +0 accept(3, ..., ...) = 4\n\
                  +.1 write(4, ..., 4) = 4\n   +0 > P. 1:5(4) ack 1\n   +0 %{ assert tcpi_snd_cwnd == 10 }%\n";
    let expected = "   +0 listen(3, 1) = 0\n\n+.004 < S 0:0(0) win 1\n   +0 > S. 0:0(0) ack 1\n+.004 accept(3, ..., ...) = 4\n\
                    +.1 write(4, ..., 4) = 4\n   +0 > P. 1:5(4) ack 1\n+.004 %{ assert tcpi_snd_cwnd == 10 }%\n";
    assert_eq!(with_a_wire(script), expected);
    let preamble = "`../common/defaults.sh\nsysctl -q net.ipv4.tcp_ecn=1  # fully\n`";
    let defaults = "sysctl -q net.ipv4.tcp_rmem=\"4096 540000 $((15*1024*1024))\"\nsysctl -q net.ipv4.tcp_fack=0\n";
    assert_eq!(settings(preamble, defaults), ["tcp_rmem=4096 540000 15728640", "tcp_ecn=1"]);
}
