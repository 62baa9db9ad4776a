//! What is said about rings.

use super::*;
use crate::common::{folder, nicforge, stderr};

/// What lies in buffers is the target's frames, as far as they are its.
#[test]
fn rings_full_of_a_targets_frames() {
    let small = format!("{BISECT}cores = 8\nax_entries = 1024\npacket_bytes = 64\n");
    warns(&small, &[]);
    let target = |share: &str| format!("{small}target_packet_bytes = 1500\ntarget_share = {share}\n");
    let says = ["8 Ax rings of 1024 buffers of 1500 B are 12288000 B"];
    warns(&target("1.0"), &says);
    let says = ["8 Ax rings of 1024 buffers of 782 B are"];
    warns(&target("0.5"), &says);
    warns(&target("0.0"), &["nothing uses `target_packet_bytes`"]);
}

#[test]
fn rings_that_rx_bisect_advises_against() {
    let sized = |cores: u32, ax: u32, bx: u32| format!("cores = {cores}\nax_entries = {ax}\nbx_entries = {bx}\n");
    // The same rings cost twice the cache where a core plays the NIC.
    let fourteen = sized(14, 128, 512);
    let short = "Bx rings of 512 entries cannot absorb a burst";
    warns(&format!("{BISECT}{fourteen}"), &[short]);
    warns(&format!("{EMULATED}{fourteen}"), &["with those in physical rings", short]);
    warns(&format!("{BISECT}{}", sized(16, 128, 1024)), &[]);
    let sets = format!("{BISECT}{}association_sets = 2\n", sized(16, 128, 1024));
    warns(&sets, &["4 Ax rings of 128 hold fewer buffers"]);
    for interface in [BISECT, EMULATED] {
        // A burst that the reception ring could absorb finds no buffer.
        let few = sized(4, 128, 1024);
        warns(&format!("{interface}{few}"), &["use Ax rings of at least 512 (rxBisect, section 4.5, condition 2)"]);
        // It ends at the reception ring while buffers lie idle.
        let short = sized(4, 128, 64);
        warns(
            &format!("{interface}{short}"),
            &["use Bx rings of at least 128", "use at least 1024 (the machine's nic.burst_entries)"],
        );
    }
    let tiny = format!("{BISECT}{}", sized(16, 8, 8));
    let says = ["8 entries cannot absorb", "smaller than such NICs have"];
    warns(&tiny, &says);
    for interface in ["sh_ring", "sh_ring_dynamic"] {
        let tiny = format!("interface = \"{interface}\"\nrx_entries = 8\nwindow_ms = 100\n");
        warns(&tiny, &["Shared rings of 8 entries cannot absorb a burst"]);
    }
    // One core that puts in buffers for eight, and one of two for four each.
    for (interface, sets) in [(BISECT, 1), (EMULATED, 1), (BISECT, 2)] {
        let few = format!("ax_rings = {sets}\nassociation_sets = {sets}\n");
        let sizes = format!("packet_bytes = 500\n{}", sized(16, 1024, 1024));
        let says = "no buffers but those that one other core puts in: as soon as that one is overloaded";
        warns(&format!("{interface}{few}{sizes}"), &[says]);
    }
    let private = EMULATED.replace("rx_bisect", "priv_ring");
    warns(&format!("{private}cores = 4\nrx_entries = 64\n"), &[]);
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
    assert!(said.contains("set association_sets to 2"), "{said}");
    // There are three rings, two of which belong to cores of the first set.
    let (code, said) = check("association_sets = 3\nax_rings = 3\n");
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("set association_sets to 2"), "{said}");
    assert_eq!(check("association_sets = 3\nax_rings = 8\n").0, Some(0));
}

/// Rings that are named one by one: what cannot be is refused where it is written.
#[test]
fn rings_that_are_named_belong_together() {
    let folder = folder();
    let check = |settings: &str| {
        let text = format!("{SCENARIO}{BISECT}cores = 6\n{settings}");
        std::fs::write(folder.path().join("s.toml"), text).unwrap();
        let output = nicforge(&folder, &["check", "s.toml"]);
        (output.status.code(), stderr(&output))
    };
    let (code, said) = check("associations = \"0-1, 0-1, 2\"\nax_links = \"0 1 2\"\n");
    assert_eq!(code, Some(0), "{said}");
    for (settings, parts) in [
        ("associations = \"0, 0-1, 1\"", "no Bx ring is associated with Ax ring 2"),
        ("associations = \"0,, 2\"", "Bx ring 1 is associated with no Ax ring"),
        ("associations = \"0, 1, 2 2\"", "Bx ring 2 is associated with Ax ring 2 twice"),
        ("associations = \"0, 1, 3\"", "there is no Ax ring 3: there are 3"),
        ("associations = \"0, 1\"", "2 Bx rings for 3 queues"),
        ("associations = \"0; 1; 2\"", "takes groups of numbers of rings"),
        ("ax_links = \"0 5\"", "there is no Bx ring 5: there are 3"),
        ("ax_links = \"0 1\"\nax_rings = 3", "Ax ring 2 is linked to no Bx ring"),
        ("ax_links = 0", "takes numbers of rings"),
        ("associations = \"0, 1, 2\"\nassociation_sets = 3", "both say which rings belong together"),
    ] {
        let (code, said) = check(&format!("{settings}\n"));
        assert_eq!(code, Some(2), "{settings}: {said}");
        assert!(said.contains(parts) && said.contains("s.toml:"), "{settings}: {said}");
    }
}

#[test]
fn rings_that_are_never_shared() {
    let dynamic = "interface = \"sh_ring_dynamic\"\ncores = 16\nwarmup_ms = 40\n";
    // The ninth of 16 looks can be the one that decides.
    warns(
        &format!("{dynamic}window_ms = 49\n"),
        &["90 ms, when the run has ended (89 ms); let the run last longer, or set dynamic_step_ms to at most 9.888"],
    );
    warns(&format!("{dynamic}window_ms = 50\n"), &[]);
    // Times are what they are, and what is proposed is enough.
    let sums = "interface = \"sh_ring_dynamic\"\ncores = 16\nwarmup_ms = 0.1\nwindow_ms = 0.05\n";
    let says =
        "0.153 ms, when the run has ended (0.15 ms); let the run last longer, or set dynamic_step_ms to at most 0.016";
    warns(&format!("{sums}dynamic_step_ms = 0.017\n"), &[says]);
    warns(&format!("{sums}dynamic_step_ms = 0.016\n"), &[]);
    // No step is so short.
    let short = "interface = \"sh_ring_dynamic\"\ncores = 16\nwarmup_ms = 0\nwindow_ms = 0.05\n";
    let said = notes(short);
    assert!(said[0].ends_with("(0.05 ms); let the run last longer"), "{said:?}");
    let long = format!("{dynamic}window_ms = 500\n");
    let never = "never more than all looks speak for sharing";
    warns(&format!("{long}dynamic_on_share = 1.0\n"), &[never]);
    warns(&format!("{long}dynamic_off_share = 0.0\n"), &["private again at the next look"]);
    // No look can speak for sharing where never more than `dynamic_gbps` (170) come.
    let offered = "at most 170.0 Gbit/s are offered, and sharing needs more than dynamic_gbps = 170";
    warns(&format!("{long}offered_gbps = 170\n"), &[offered]);
    warns(&format!("{long}offered_gbps = 171\n"), &[]);
    warns(&format!("{long}offered_gbps = 171\ndynamic_gbps = 171.5\n"), &["at most 171.0 Gbit/s are offered"]);
    let wires = "at most 196.9 Gbit/s fit the wires of the NICs in use";
    warns(&format!("{long}dynamic_gbps = 197\n"), &[wires]);
    warns(&format!("{long}dynamic_gbps = 196\n"), &[]);
    let links = "at most 58.2 GiB/s fit the PCIe links of the NICs in use";
    warns(&format!("{long}dynamic_memory_gib_per_s = 10000\n"), &[links]);
    warns(&format!("{long}dynamic_memory_gib_per_s = 58\n"), &[]);
    let gaps = "any difference counts as an overload";
    warns(&format!("{long}dynamic_gap_ratio = 0\n"), &[gaps]);
    let alone = "nothing to share: sharing = 1: shared rings have one core each";
    warns(&format!("{long}sharing = 1\n"), &[alone]);
    let lone = long.replace("cores = 16", "cores = 2");
    warns(&lone, &["nothing to share: each NIC has one queue"]);
    let played = dynamic.replace("interface", "emulates");
    let played = format!("interface = \"emulated\"\n{played}window_ms = 49\n");
    warns(&played, &["after 9 looks at the earliest"]);
}

#[test]
fn groups_of_cores_that_do_not_come_out_even() {
    let shared = "interface = \"sh_ring\"\ncores = 16\n";
    warns(shared, &[]);
    warns(&format!("{shared}sharing = 4\n"), &[]);
    warns(&format!("{shared}sharing = 7\n"), &["do not divide by sharing = 7: its last ring is shared by 1"]);
    warns(&format!("{shared}sharing = 9\n"), &["shared by 8 and not by 9"]);
}

#[test]
fn batched_lists_with_small_rings_take_fewer_packets_a_descriptor() {
    let batched = "interface = \"sh_ring_batched_list\"\ncores = 16\n";
    let says = |entries: usize, batch: usize| {
        let of = notes(&format!("{batched}rx_entries = {entries}\n"));
        let said =
            format!("rx_entries = {entries} with 8 cores a ring: its descriptors take {batch} instead of 4 packets");
        of.iter().any(|note| note.starts_with(&said) && note.contains("; 64 entries have room for 4"))
    };
    assert!(says(32, 2) && says(16, 1) && !says(64, 4));
    // What is proposed is enough.
    for enough in ["rx_entries = 64\n", "rx_entries = 32\nlist_batch = 2\n"] {
        let of = notes(&format!("{batched}{enough}"));
        assert!(!of.iter().any(|note| note.contains("packets each")), "{of:?}");
    }
}

#[test]
fn rings_and_queues_that_do_not_come_out_even() {
    let eight = format!("{BISECT}cores = 16\n");
    let queues = "8 queues of each NIC do not come out even over association_sets = 3: its sets have 3, 3, 2";
    let uneven = notes(&format!("{eight}association_sets = 3\n"));
    assert!(uneven.iter().any(|note| note == queues), "{uneven:?}");
    let rings = "6 Ax rings of each NIC do not come out even over association_sets = 4: its sets have 2, 1, 2, 1";
    let uneven = notes(&format!("{eight}ax_rings = 6\nassociation_sets = 4\nax_entries = 1024\n"));
    assert!(uneven.iter().any(|note| note == rings), "{uneven:?}");
    let says = "ax_rings = 9 do not come out even over 8 queues of each NIC: some cores fill 2 of them, the others 1";
    warns(&format!("{eight}ax_rings = 9\n"), &[says]);
    for even in ["ax_rings = 16\nax_entries = 64\n", "ax_rings = 4\nax_entries = 256\n"] {
        warns(&format!("{eight}{even}"), &[]);
    }
}
