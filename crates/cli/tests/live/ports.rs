//! What interfaces of the system are like, and what ports make of it: AF_XDP, jumbo frames, links
//! that go down, MTUs that change, frames for others. Needs root; skipped with a line where that
//! is not allowed.

mod jumbo;
mod links;
mod pinning;
mod segments;
mod tap;
mod xdp;

use std::path::PathBuf;

use crate::support::netns::Hosts;
use crate::support::program::Program;

/// Asks `live`, whose output is piped, to stop; it must end well and have said all of `wanted`.
fn stops_saying(live: Program, wanted: &[&str]) {
    let ended = live.stop();
    let said = String::from_utf8(ended.stdout).unwrap();
    assert!(ended.status.success(), "{said}");
    for wanted in wanted {
        assert!(said.contains(wanted), "no `{wanted}`: {said}");
    }
}

/// A NAT between the two hosts, each of whose ports is of its own kind.
fn nat(folder: &tempfile::TempDir, inside: &str, outside: &str) -> PathBuf {
    nat_with(folder, inside, outside, "")
}

/// The same with `more` under [live].
fn nat_with(folder: &tempfile::TempDir, inside: &str, outside: &str, more: &str) -> PathBuf {
    let file = folder.path().join("nat.toml");
    let text = format!(
        "[live]\nname = \"nat\"\n{more}\n[settings]\ninterface = \"priv_ring\"\napp = \"nat\"\n\
         [app]\nexternal_address = \"10.99.2.1\"\n\
         [[port]]\n{inside} = \"nf-inside\"\naddress = \"10.99.1.1\"\nnext_hop = \"10.99.1.2\"\n\
         [[port]]\n{outside} = \"nf-outside\"\naddress = \"10.99.2.1\"\nnext_hop = \"10.99.2.2\"\n"
    );
    std::fs::write(&file, text).unwrap();
    file
}

/// Runs `ip` in the place of `host`.
fn ip(hosts: &Hosts, host: &str, words: &str) -> String {
    let mut command = hosts.on(host, "ip");
    let done = command.args(words.split(' ')).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "ip {words}: {said}");
    String::from_utf8(done.stdout).unwrap()
}

/// How many frames `report` counts as dropped for `cause`.
fn drops(report: &serde_json::Value, cause: &str) -> u64 {
    let drops = &report["points"][0]["metrics"]["drops"];
    drops[cause].as_u64().unwrap_or(0)
}

/// Waits until the server answers the client.
fn wait_for_answers(hosts: &Hosts) {
    let answers = (0..100).any(|_| hosts.answers("10.99.2.2"));
    assert!(answers, "nobody answers");
}
