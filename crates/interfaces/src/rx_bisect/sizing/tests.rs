//! What is warned of, and what not.

use super::*;

/// Two NICs with 8 cores each and 4 MiB of I/O ways: 16 x 128 x 1500 B = 3.07 MB fit.
fn sound() -> Sizing<'static> {
    Sizing {
        nics: 2,
        queues: 8,
        ax_rings: 8,
        sets: 1,
        written: None,
        ax_entries: 128,
        bx_entries: 1024,
        burst_entries: 1024,
        entries_min: 64,
        emulated: false,
        frame: Bytes(1500),
        io_capacity: Bytes(4 << 20),
    }
}

#[track_caller]
fn warns(sizing: &Sizing<'_>, says: &[&str]) {
    let warnings = sizing_warnings(sizing);
    assert_eq!(warnings.len(), says.len(), "{warnings:?}");
    for (warning, says) in warnings.iter().zip(says) {
        assert!(warning.contains(says), "{warning}");
    }
}

#[test]
fn the_papers_sizes_give_no_warning() {
    warns(&sound(), &[]);
}

#[test]
fn rings_of_all_nics_share_the_cache() {
    let larger = Sizing { ax_entries: 256, ..sound() };
    warns(&larger, &["at most 128 entries fit"]);
    let one_nic = Sizing { nics: 1, ..larger };
    warns(&one_nic, &[]);
    let no_ddio = Sizing { io_capacity: Bytes(0), ..larger };
    warns(&no_ddio, &[]);
    let tiny = Sizing { io_capacity: Bytes(1500), ..sound() };
    warns(&tiny, &["use fewer Ax rings"]);
}

/// 6.1 MB with the physical rings: half of it fits.
#[test]
fn physical_rings_take_cache_as_well() {
    let played = Sizing { emulated: true, ..sound() };
    let says = "with those in physical rings, are 6144000 B";
    warns(&played, &[says]);
    warns(&played, &["at most 64 entries fit"]);
    let half = Sizing { ax_rings: 4, ax_entries: 128, bx_entries: 512, burst_entries: 512, ..played };
    warns(&half, &[]);
    // Three rings of 128 are rounded up to 512: 14 x 128 x 1500 B are 2.7 MB.
    let rounded = Sizing { ax_rings: 3, bx_entries: 256, burst_entries: 256, io_capacity: Bytes(2_600_000), ..played };
    warns(&rounded, &["are 2688000 B"]);
    // In sets of one and of two rings they are not.
    let in_sets = Sizing { sets: 2, bx_entries: 128, burst_entries: 128, ..rounded };
    warns(&in_sets, &["3 of each NIC's 8 cores"]);
}

#[test]
fn a_burst_finds_buffers_on_its_own_nic() {
    let smaller = Sizing { ax_entries: 64, ..sound() };
    warns(&smaller, &["at least 128"]);
    // Twice the rings, but on another NIC, do not help.
    let more_nics = Sizing { nics: 4, ..smaller };
    warns(&more_nics, &["at least 128"]);
    let few_cores = Sizing { ax_rings: 3, ..sound() };
    warns(&few_cores, &["at least 512"]);
    let in_halves = Sizing { sets: 2, ..sound() };
    warns(&in_halves, &["4 Ax rings of 128 hold fewer"]);
}

#[test]
fn one_ring_is_one() {
    let alone = Sizing { nics: 1, ax_rings: 1, io_capacity: Bytes(150_000), ..sound() };
    let says = [
        "1 Ax ring of 128 buffers of 1500 B are 192000 B",
        "1 Ax ring of 128 holds fewer buffers than one Bx ring",
        "7 of each NIC's 8 cores have no buffers but those that one other core puts in",
    ];
    warns(&alone, &says);
}

#[test]
fn a_reception_ring_holds_more_than_one_core_allocates() {
    let swapped = Sizing { bx_entries: 64, burst_entries: 64, ..sound() };
    warns(&swapped, &["at least 128"]);
}

#[test]
fn a_set_that_hangs_on_one_core_is_warned_of() {
    let one = Sizing { ax_rings: 1, ax_entries: 1024, ..sound() };
    warns(&one, &["7 of each NIC's 8 cores"]);
    let two = Sizing { ax_rings: 2, ..one };
    warns(&two, &["at most 512 entries fit"]);
    let in_halves = Sizing { sets: 2, ..two };
    let alone = "6 of each NIC's 8 cores have no buffers but those that one other core puts in";
    warns(&in_halves, &["at most 512", alone]);
    // What is advised is more than there are, and enough.
    let six_in_three = Sizing { sets: 3, ax_rings: 6, ax_entries: 128, ..one };
    let advised = six_in_three.rings_for_two_allocators();
    assert!(advised > 6, "{advised}");
    let mended = Sizing { ax_rings: advised, ..six_in_three };
    assert_eq!(mended.hangs_on_one_core(), None);
    assert!(six_in_three.hangs_on_one_core().unwrap().contains(&format!("at least {advised}")));
    // Whoever has no neighbours hurts none.
    let each = Sizing { ax_rings: 8, ax_entries: 128, bx_entries: 128, burst_entries: 128, sets: 8, ..one };
    warns(&each, &[]);
}

#[test]
fn rings_that_no_burst_fits_are_warned_of() {
    let tiny = Sizing { ax_entries: 8, bx_entries: 8, ..sound() };
    warns(
        &tiny,
        &[
            "Bx rings of 8 entries cannot absorb a burst at the port's rate",
            "smaller than such NICs have: use at least 64",
        ],
    );
}

#[test]
fn no_rings_at_all_are_no_reason_to_panic() {
    let nothing = Sizing { ax_rings: 0, ..sound() };
    assert_eq!(sizing_warnings(&nothing).len(), 1);
}

/// Four Ax rings of one core, and four cores that have them all.
#[test]
fn rings_that_were_written_are_advised_on_as_they_are() {
    let mut topology = Topology::per_core(4, 128, 128);
    topology.links.iter_mut().for_each(|(_, bx)| *bx = 2);
    let counted = Sizing { queues: 4, ax_rings: 4, bx_entries: 128, burst_entries: 128, ..sound() };
    warns(&counted, &[]);
    let written = |topology| Sizing { written: Some(topology), ..counted };
    let alone = "associate each with Ax rings of two cores, or of its own";
    warns(&written(&topology), &[alone]);
    let mut mended = topology.clone();
    mended.links[0].1 = 0;
    warns(&written(&mended), &[]);
}

/// In pairs, each core with the other's ring alone.
#[test]
fn cores_that_only_have_each_others_buffers_are_warned_of() {
    let mut topology = Topology::per_core(4, 128, 128);
    for (bx, ax) in topology.bx.iter_mut().zip([1, 0, 3, 2]) {
        bx.associated = vec![ax];
    }
    let crossed =
        Sizing { queues: 4, ax_rings: 4, bx_entries: 128, burst_entries: 128, written: Some(&topology), ..sound() };
    warns(&crossed, &["4 of each NIC's 4 cores"]);
}
