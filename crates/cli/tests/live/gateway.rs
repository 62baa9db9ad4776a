//! Real programs and the system's own TCP through a live NIC, between network namespaces. Needs
//! root; skipped with a line where that is not allowed.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use crate::support::interfaces::interfaces;
use crate::support::netns;
use crate::support::netns::{Hosts, has, tap_file};
use crate::support::program::Program;
use crate::support::programs::{Web, fetch};
use crate::support::traffic::{exchange, pattern, tagged_datagram, tcp_both_ways, udp_questions};

/// Share of all frames that may be lost for want of time: a sender that begins, or that finds the way free
/// again, sends more at once than rings hold when the workers of a busy machine get no core for some
/// milliseconds. TCP makes up for it once each time; that is some frames in a thousand. More than this is
/// a gateway that loses frames.
const OVERRUN: f64 = 0.02;

/// Nothing was dropped but ARP that is not for us and packets of connections that were over, and little for
/// want of time.
fn assert_clean(report: &serde_json::Value, interface: &str) {
    let metrics = &report["points"][0]["metrics"];
    let drops = metrics["drops"].as_object().unwrap();
    let mut late = 0;
    for (cause, count) in drops {
        let harmless = ["arp", "not_ipv4", "no_flow"].contains(&cause.as_str());
        // The machine may be busy with something else for a while; that is no corruption.
        let for_want_of_time = ["no_descriptor", "bx_full", "tx_ring_full", "socket_full"];
        let for_want_of_time = for_want_of_time.contains(&cause.as_str());
        assert!(harmless || for_want_of_time, "{interface}: {cause} {count}");
        late += if for_want_of_time { count.as_u64().unwrap() } else { 0 };
    }
    // `drop_fraction` is the share of all drops in the frames that arrived.
    let all: u64 = drops.values().filter_map(|count| count.as_u64()).sum();
    let dropped = metrics["drop_fraction"].as_f64().unwrap();
    let share = dropped * late as f64 / all.max(1) as f64;
    println!("{interface}: {:.4} % lost for want of time", share * 100.0);
    assert!(share <= OVERRUN, "{interface}: {share} lost, {drops:?}");
    assert!(metrics["throughput_gbps"].as_f64().unwrap() > 0.0);
    assert!(metrics["ddio_hit_rate"].is_null(), "unknown, so absent");
}

#[test]
fn nat_carries_ping_tcp_and_udp_on_every_interface() {
    let Some(hosts) = Hosts::up("nat") else {
        return;
    };
    for interface in interfaces() {
        let set = format!("interface={interface}");
        let gateway = hosts.gateway("nat-netns.toml", &[&set, "cores=2"], "10.99.2.2");
        assert!(hosts.pings("10.99.2.2", 20), "{interface}: ping");
        tcp_both_ways(&hosts, "10.99.2.2:7000", "10.99.2.2:7000", 4);
        udp_questions(&hosts, "10.99.2.2:53", "10.99.2.2:53", 1472);
        assert_clean(&gateway.stop(), interface);
    }
}

#[test]
fn a_load_balancer_carries_tcp_on_every_interface() {
    let Some(hosts) = Hosts::up("lb") else { return };
    for interface in interfaces() {
        let set = format!("interface={interface}");
        let gateway = hosts.gateway("lb-netns.toml", &[&set], "10.99.1.1");
        tcp_both_ways(&hosts, "10.99.1.1:7000", "10.99.2.2:7000", 3);
        assert_clean(&gateway.stop(), interface);
    }
}

/// A tag, which the kernel keeps apart from the frame on its way in, is there again on the way out.
#[test]
fn tagged_frames_go_through_nat() {
    let Some(hosts) = Hosts::up("vlan") else {
        return;
    };
    let gateway = hosts.gateway("nat-netns.toml", &["cores=2"], "10.99.2.2");
    let came = tagged_datagram(&hosts);
    let seen = etherparse::SlicedPacket::from_ethernet(&came).unwrap();
    let tags: Vec<u16> = seen.vlan_ids().iter().map(|id| id.value()).collect();
    assert_eq!(tags, [5]);
    let Some(etherparse::NetSlice::Ipv4(ip)) = &seen.net else { panic!("{came:02x?}") };
    assert_eq!(ip.header().source_addr().octets(), [10, 99, 2, 1]);
    gateway.stop();
}

/// An interface that goes down and up again: the gateway waits, and goes on.
#[test]
fn a_link_that_goes_down_comes_back() {
    let Some(hosts) = Hosts::up("link") else {
        return;
    };
    let gateway = hosts.gateway("nat-netns.toml", &[], "10.99.2.2");
    let link = |state: &str| {
        let mut ip = hosts.on("gateway", "ip");
        let done = ip.args(["link", "set", "nf-outside", state]).status().unwrap();
        assert!(done.success());
    };
    for _ in 0..3 {
        link("down");
        assert!(!hosts.answers("10.99.2.2"), "nobody is there");
        link("up");
        let back = (0..20).any(|_| hosts.answers("10.99.2.2"));
        assert!(back, "the link is up again");
    }
    tcp_both_ways(&hosts, "10.99.2.2:7000", "10.99.2.2:7000", 1);
    gateway.stop();
}

/// The gateway's own kernel as the private host, over a TAP device.
#[test]
fn a_tap_device_is_a_port() {
    let Some(hosts) = Hosts::up("tap") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = tap_file(folder.path());
    let gateway = hosts.start(&file, &[]);
    let script = "for try in $(seq 100); do ip link show nf-tap >/dev/null 2>&1 && break; sleep 0.1; done; \
                  ip link set nf-tap address 02:00:00:00:03:02 up; ip addr add 10.99.3.2/24 dev nf-tap; \
                  ip route add 10.99.2.0/24 via 10.99.3.1; \
                  ping -q -c 5 -i 0.2 -W 2 10.99.2.2";
    let mut ping = hosts.on("gateway", "sh");
    let said = ping.args(["-c", script]).output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(said.contains(" 0% packet loss"), "{said}");
    let listener = hosts.run("server", || netns::bound(|| TcpListener::bind("10.99.2.2:7000")));
    std::thread::scope(|scope| {
        scope.spawn(|| exchange(listener.accept().unwrap().0, None));
        let connection = hosts.run("gateway", || TcpStream::connect("10.99.2.2:7000").unwrap());
        exchange(connection, Some(9));
    });
    gateway.stop();
}

/// A file of 100 MB from a web server, as a person would fetch it, and the same bytes arrive.
#[test]
fn curl_fetches_a_file_through_nat_on_every_interface() {
    let Some(hosts) = Hosts::up("curl") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file: Vec<u8> = pattern(3).repeat(25);
    std::fs::write(folder.path().join("file"), &file).unwrap();
    let Some(_web) = Web::start(&hosts, folder.path()) else {
        return;
    };
    for interface in interfaces() {
        let set = format!("interface={interface}");
        let gateway = hosts.gateway("nat-netns.toml", &[&set, "cores=2"], "10.99.2.2");
        let fetched = fetch(&hosts, "client", "10.99.2.2", "file");
        assert!(fetched == file, "{interface}: {} bytes came", fetched.len());
        assert_clean(&gateway.stop(), interface);
    }
}

#[test]
fn iperf_runs_through_nat_both_ways() {
    if !has("iperf3") {
        crate::skip::skipped("needs iperf3");
        return;
    }
    let Some(hosts) = Hosts::up("iperf") else {
        return;
    };
    let gateway = hosts.gateway("nat-netns.toml", &[], "10.99.2.2");
    for direction in [&[][..], &["-R"]] {
        let mut server = hosts.on("server", "iperf3");
        let server = Program::start_silent(server.args(["-s", "-1"]));
        let mut measured = serde_json::Value::Null;
        // The server needs a moment before it listens.
        for _ in 0..50 {
            let mut client = hosts.on("client", "iperf3");
            client.args(["-c", "10.99.2.2", "-J", "-P", "3", "-n", "60M"]);
            let said = client.args(direction).output().unwrap().stdout;
            measured = serde_json::from_slice(&said).unwrap_or_default();
            if measured["error"].is_null() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        drop(server);
        let bytes = measured["end"]["sum_received"]["bytes"].as_u64();
        assert!(bytes >= Some(50_000_000), "{direction:?}: {measured:#}");
    }
    assert_clean(&gateway.stop(), "the example's");
}

#[test]
fn a_second_run_on_the_same_interfaces_is_refused() {
    let Some(hosts) = Hosts::up("twice") else {
        return;
    };
    let gateway = hosts.gateway("nat-netns.toml", &[], "10.99.2.2");
    let mut second = hosts.on("gateway", env!("CARGO_BIN_EXE_nicforge"));
    second.arg("live").arg(netns::example_file("nat-netns.toml")).arg("--out").arg(gateway.out.path().join("second"));
    let output = second.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("nf-inside") && said.contains("another run"), "{said}");
    assert!(hosts.pings("10.99.2.2", 5), "the first one goes on");
    gateway.stop();
}
