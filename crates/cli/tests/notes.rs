//! What is no error and said all the same, on standard error.

mod common;

use common::{folder, nicforge, stderr};

const SCENARIO: &str =
    "[scenario]\nname = \"s\"\nmachine = \"xeon-4216-cx5\"\n[settings]\nnics = 2\n";

/// The notes on a scenario with `settings` on top of two NICs.
fn notes(settings: &str) -> Vec<String> {
    let folder = folder();
    std::fs::write(
        folder.path().join("s.toml"),
        format!("{SCENARIO}{settings}"),
    )
    .unwrap();
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
fn rings_that_rx_bisect_advises_against() {
    let sized = |cores: u32, ax: u32, bx: u32| {
        format!("cores = {cores}\nax_entries = {ax}\nbx_entries = {bx}\n")
    };
    // The same rings cost twice the cache where a core plays the NIC.
    let fourteen = sized(14, 128, 512);
    let short = "Bx rings of 512 entries cannot absorb a burst";
    warns(&format!("{BISECT}{fourteen}"), &[short]);
    warns(
        &format!("{EMULATED}{fourteen}"),
        &["with as many in physical rings", short],
    );
    warns(&format!("{BISECT}{}", sized(16, 128, 1024)), &[]);
    let sets = format!("{BISECT}{}association_sets = 2\n", sized(16, 128, 1024));
    warns(&sets, &["4 Ax rings of 128 hold fewer buffers"]);
    for interface in [BISECT, EMULATED] {
        // A burst that the reception ring could absorb finds no buffer.
        let few = sized(4, 128, 1024);
        warns(
            &format!("{interface}{few}"),
            &["use Ax rings of at least 512 (rxBisect, section 4.5, condition 2)"],
        );
        // It ends at the reception ring while buffers lie idle.
        let short = sized(4, 128, 64);
        warns(
            &format!("{interface}{short}"),
            &[
                "use Bx rings of at least 128",
                "use at least 1024 (the machine's nic.burst_entries)",
            ],
        );
    }
    let tiny = format!("{BISECT}{}", sized(16, 8, 8));
    let says = ["8 entries cannot absorb", "smaller than such NICs have"];
    warns(&tiny, &says);
    for interface in ["sh_ring", "sh_ring_dynamic"] {
        let tiny = format!("interface = \"{interface}\"\nrx_entries = 8\n");
        warns(&tiny, &["Shared rings of 8 entries cannot absorb a burst"]);
    }
    let private = EMULATED.replace("rx_bisect", "priv_ring");
    warns(&format!("{private}{}", sized(4, 128, 64)), &[]);
}

/// Rings of their own number and association are a scenario's choice; what cannot be is refused.
#[test]
fn association_sets_need_rings() {
    let folder = folder();
    let check = |settings: &str| {
        let text = format!("{SCENARIO}{BISECT}cores = 8\n{settings}");
        std::fs::write(folder.path().join("s.toml"), text).unwrap();
        let output = nicforge(&folder, &["check", "s.toml"]);
        (output.status.code(), stderr(&output))
    };
    assert_eq!(check("association_sets = 2\nax_rings = 2\n").0, Some(0));
    let (code, said) = check("association_sets = 4\nax_rings = 2\n");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("one would have none"), "{said}");
    assert!(said.contains("at most 2"), "{said}");
}

#[test]
fn settings_under_which_all_is_lost() {
    warns(
        "packet_bytes = 9000\n",
        &["frames of 9000 bytes do not fit buffers of 2048: all of them will be dropped"],
    );
    warns("packet_bytes = 9000\nbuffer_bytes = 9000\n", &[]);
    let many = "flows = 10000000\ntable_entries = 1000\n";
    warns(many, &["at most 1000 have room in the table"]);
    warns(
        &format!("app = \"counter\"\n{many}"),
        &["will not be counted"],
    );
    warns("app = \"l2fwd\"\nflows = 10000000\n", &[]);
}

#[test]
fn a_target_that_never_begins() {
    let target = "target_share = 0.5\nwarmup_ms = 1\nwindow_ms = 2\n";
    warns(
        &format!("{target}target_begins_ms = 3\n"),
        &["the target begins at 3 ms, when the run has ended (3 ms)"],
    );
    warns(&format!("{target}target_begins_ms = 2.9\n"), &[]);
}

#[test]
fn groups_of_cores_that_do_not_come_out_even() {
    let shared = "interface = \"sh_ring\"\ncores = 16\n";
    warns(shared, &[]);
    warns(&format!("{shared}sharing = 4\n"), &[]);
    warns(
        &format!("{shared}sharing = 7\n"),
        &["do not divide by sharing = 7: its last ring is shared by 1"],
    );
    warns(
        &format!("{shared}sharing = 9\n"),
        &["shared by 8 and not by 9"],
    );
}

#[test]
fn a_machine_may_be_named_as_scenarios_name_it() {
    let folder = folder();
    let check = [
        "check",
        "scenarios/nat-200g.toml",
        "--machine",
        "xeon-4216-cx5",
    ];
    let output = nicforge(&folder, &check);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}
