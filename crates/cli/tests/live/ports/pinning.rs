use super::*;

/// The cores that each thread of process `id` may use (proc(5)).
fn cores_of_threads(id: u32) -> Vec<String> {
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).unwrap();
    let of_thread = |entry: std::io::Result<std::fs::DirEntry>| {
        let status = std::fs::read_to_string(entry.unwrap().path().join("status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        line.unwrap().trim().to_owned()
    };
    threads.map(of_thread).collect()
}

/// Device and worker stand on a core each while frames pass, and on none in particular if that is
/// not wanted.
#[test]
fn threads_stand_on_cores_of_their_own() {
    let mine = std::thread::available_parallelism().unwrap().get();
    if mine < 2 {
        crate::skip::skipped("there is one core, and pinning needs two");
        return;
    }
    let Some(hosts) = Hosts::up("pin") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    for (pin, pinned) in [("yes", 2), ("no", 0)] {
        let more = format!("threads = \"apart\"\npin = \"{pin}\"");
        let file = nat_with(&folder, "interface", "interface", &more);
        let gateway = hosts.start(&file, &["cores=1"]);
        wait_for_answers(&hosts);
        let cores = cores_of_threads(gateway.id());
        let mut alone: Vec<&String> = cores.iter().filter(|c| c.parse::<u32>().is_ok()).collect();
        assert_eq!(alone.len(), pinned, "{pin}: {cores:?}");
        alone.sort();
        alone.dedup();
        assert_eq!(alone.len(), pinned, "{pin}, a core each: {cores:?}");
        gateway.stop();
    }
}
