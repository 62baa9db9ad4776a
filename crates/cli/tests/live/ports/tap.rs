use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::time::Duration;

use super::*;
use crate::support::netns::tap_file;
use crate::support::traffic::exchange;

/// Runs a script in the gateway's place; what it said.
fn shell(hosts: &Hosts, script: &str) -> String {
    let mut shell = hosts.on("gateway", "sh");
    let done = shell.args(["-c", script]).output().unwrap();
    String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned()
}

const TAP_UP: &str = "ip link set nf-tap address 02:00:00:00:03:02 mtu 9000 up; \
    ip addr replace 10.99.3.2/24 dev nf-tap; ip route replace 10.99.2.0/24 via 10.99.3.1";
/// Frames of nearly 9000 bytes that nobody may cut, until all answers come.
const PING: &str = "for try in $(seq 40); do \
    ping -q -M do -s 8900 -c 3 -i 0.2 -W 1 10.99.2.2 | grep ' 0% packet loss' && break; done";

/// The gateway's own kernel is the private host, over a TAP device with jumbo frames that goes down and
/// comes back.
#[test]
fn a_tap_device_carries_jumbo_frames_and_outlives_its_link() {
    let Some(hosts) = Hosts::up("tapjumbo") else {
        return;
    };
    ip(&hosts, "gateway", "link set nf-outside mtu 9000");
    ip(&hosts, "server", "link set eth0 mtu 9000");
    let folder = tempfile::tempdir().unwrap();
    let file = tap_file(folder.path());
    let mut live = hosts.on("gateway", env!("CARGO_BIN_EXE_nicforge"));
    live.arg("live").arg(&file);
    live.arg("--out").arg(folder.path().join("out"));
    let live = Program::start(live.stdout(Stdio::piped()));
    let there = "for try in $(seq 100); do ip link show nf-tap >/dev/null 2>&1 && break; sleep 0.1; done";
    let pings = || {
        let said = shell(&hosts, &format!("{there}; {TAP_UP}; {PING}"));
        assert!(said.contains(" 0% packet loss"), "{said}");
    };
    pings();
    let listener = hosts.run("server", || crate::support::netns::bound(|| TcpListener::bind("10.99.2.2:7000")));
    std::thread::scope(|scope| {
        scope.spawn(|| exchange(listener.accept().unwrap().0, None));
        let connection = hosts.run("gateway", || TcpStream::connect("10.99.2.2:7000").unwrap());
        exchange(connection, Some(9));
    });
    // Frames for another host's hardware address are not the router's.
    let neighbour = |what: &str| format!("ip neigh {what} 10.99.3.1 lladdr 02:00:00:00:00:77 dev nf-tap");
    let astray = format!("{}; ping -q -c 2 -i 0.2 -W 1 10.99.2.2; {}", neighbour("replace"), neighbour("del"));
    let said = shell(&hosts, &astray);
    assert!(said.contains(" 100% packet loss"), "{said}");
    ip(&hosts, "gateway", "link set nf-tap down");
    // Long enough for a line of the table, which comes once a second.
    std::thread::sleep(Duration::from_millis(2_500));
    pings();
    // The port looks every 50 ms: what is over sooner is not seen.
    std::thread::sleep(Duration::from_millis(500));
    let wanted = ["other_host", "port 0 DOWN", "up, MTU 9000, 1 times down, MTU changed 1 times"];
    stops_saying(live, &wanted);
}
