//! The TCP stack as a live run's worker, with unmodified programs over it. Needs root, and NICFORGE_PROGRAMS=1 for the
//! programs; skipped with a line elsewhere.

use crate::skip;
use crate::support::netns::{Hosts, example_file, has};
use crate::support::over::{Over, text};

#[test]
fn a_server_behind_the_nic_answers_a_client_of_the_kernel() {
    if !has("curl") {
        return skip::skipped("needs curl");
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(programs) = Over::at(folder.path()) else { return };
    let Some(hosts) = Hosts::up("tcp") else { return };
    let service = programs.service().display();
    let example = std::fs::read_to_string(example_file("tcp-netns.toml")).unwrap();
    let file = folder.path().join("tcp.toml");
    let page: Vec<u8> = (0..300_000u32).map(|n| (n >> 3) as u8).collect();
    std::fs::write(folder.path().join("page"), &page).unwrap();
    let runs = [
        ("rx_bisect", "cubic", 1, "host"),
        ("sh_ring", "timely", 1, "host"),
        ("nm_nfv", "dctcp", 1, "host"),
        ("priv_ring", "cubic", 3, "host"),
        ("priv_ring", "cubic", 1, "card"),
    ];
    for (interface, congestion, cores, place) in runs {
        let tcp = format!("[tcp]\nservice = \"{service}\"\ncongestion = {congestion:?}\nfast_path = {place:?}");
        std::fs::write(&file, example.replace("[tcp]", &tcp)).unwrap();
        let mut gateway = hosts.start(&file, &[&format!("interface={interface}"), &format!("cores={cores}")]);
        hosts.wait_for(&mut gateway, "10.99.1.1");
        let server = programs.serve(8000, &["python3", "-m", "http.server", "8000"]);
        let fetched = folder.path().join("fetched");
        let mut curl = hosts.on("client", "curl");
        curl.args(["-sS", "--fail", "--max-time", "20", "-o"]).arg(&fetched).arg("http://10.99.1.1:8000/page");
        text(&mut curl);
        assert!(std::fs::read(&fetched).unwrap() == page, "{interface}");
        let seen = programs.seen();
        assert!(seen.contains("LISTEN") && seen.contains("python3"), "{seen}");
        drop(server);
        let report = gateway.stop();
        let metrics = &report["points"][0]["metrics"];
        assert!(metrics["throughput_gbps"].as_f64().unwrap() > 0.0, "{interface}");
    }
    assert!(!programs.service().exists(), "the service's socket goes with it");
}
