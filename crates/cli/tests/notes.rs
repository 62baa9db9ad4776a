//! What is no error and said all the same, on standard error.

mod common;

use common::{folder, nicforge, stderr};
use nicforge_units::Time;
use nicforge_wire::capture::{CaptureFormat, CaptureWriter};

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
        &["with those in physical rings", short],
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
        let tiny = format!("interface = \"{interface}\"\nrx_entries = 8\nwindow_ms = 100\n");
        warns(&tiny, &["Shared rings of 8 entries cannot absorb a burst"]);
    }
    // One core that puts in buffers for eight, and one of two for four each.
    for (interface, sets) in [(BISECT, 1), (EMULATED, 1), (BISECT, 2)] {
        let few = format!("ax_rings = {sets}\nassociation_sets = {sets}\n");
        let sizes = format!("packet_bytes = 500\n{}", sized(16, 1024, 1024));
        let says =
            "no buffers but those that one other core puts in: as soon as that one is overloaded";
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
        (
            "associations = \"0, 0-1, 1\"",
            "no Bx ring is associated with Ax ring 2",
        ),
        (
            "associations = \"0,, 2\"",
            "Bx ring 1 is associated with no Ax ring",
        ),
        (
            "associations = \"0, 1, 2 2\"",
            "Bx ring 2 is associated with Ax ring 2 twice",
        ),
        (
            "associations = \"0, 1, 3\"",
            "there is no Ax ring 3: there are 3",
        ),
        ("associations = \"0, 1\"", "2 Bx rings for 3 queues"),
        (
            "associations = \"0; 1; 2\"",
            "takes groups of numbers of rings",
        ),
        ("ax_links = \"0 5\"", "there is no Bx ring 5: there are 3"),
        (
            "ax_links = \"0 1\"\nax_rings = 3",
            "Ax ring 2 is linked to no Bx ring",
        ),
        ("ax_links = 0", "takes numbers of rings"),
        (
            "associations = \"0, 1, 2\"\nassociation_sets = 3",
            "both say which rings belong together",
        ),
    ] {
        let (code, said) = check(&format!("{settings}\n"));
        assert_eq!(code, Some(2), "{settings}: {said}");
        assert!(
            said.contains(parts) && said.contains("s.toml:"),
            "{settings}: {said}"
        );
    }
}

/// The command that comes next is one for a shell.
#[test]
fn the_next_command_can_be_copied() {
    let folder = folder();
    std::fs::write(folder.path().join("s.toml"), SCENARIO).unwrap();
    let rings = "associations=0 1, 0 1";
    let set = [
        "--set",
        "interface=rx_bisect",
        "--set",
        "cores=4",
        "--set",
        rings,
    ];
    let output = nicforge(&folder, &[&["check", "s.toml"], &set[..]].concat());
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let next = said.lines().last().unwrap();
    assert!(next.ends_with(" --set 'associations=0 1, 0 1'"), "{said}");
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

/// PUTs have 66 bytes of headers, the key and the value; replies to GETs have no key.
#[test]
fn values_that_no_buffer_has_room_for() {
    let store = "app = \"kvs\"\nkvs_keys = 1000\nkvs_value_bytes = 4000\n";
    let puts = "PUTs of 4194 bytes do not fit buffers of 2048: all of them will be dropped (oversized_frame)";
    let replies = "replies to GETs of 4066 bytes do not fit buffers of 2048: GETs will be answered without the \
                   value (requests_too_large)";
    for share in ["0.5", "0.2"] {
        let both = format!("{puts}, and {replies}; set buffer_bytes to at least 4194");
        warns(&format!("{store}kvs_put_share = {share}\n"), &[&both]);
    }
    let gets = format!("{store}kvs_put_share = 0.0\n");
    warns(
        &gets,
        &[&format!("{replies}; set buffer_bytes to at least 4066")],
    );
    warns(&format!("{gets}kvs_preload_keys = 0\n"), &[]);
    let all = format!("{store}kvs_put_share = 1.0\n");
    warns(
        &all,
        &[&format!("{puts}; set buffer_bytes to at least 4194")],
    );
    let put = format!("{store}kvs_put_share = 0.2\n");
    warns(&format!("{put}buffer_bytes = 4194\n"), &[]);
    let some = ["PUTs of 4194 bytes do not fit buffers of 4193"];
    warns(&format!("{put}buffer_bytes = 4193\n"), &some);
    // Two buffers have room for a PUT, one for its reply.
    warns(
        &format!("{put}interface = \"split\"\n"),
        &["replies to GETs of 4066 bytes"],
    );
}

#[test]
fn headers_that_are_split() {
    for interface in ["split", "nm_nfv", "nm_nfv_minus"] {
        let split = |at: u32| format!("interface = \"{interface}\"\nsplit_at = {at}\n");
        for at in [1, 41] {
            let says = "cuts frames within the 42 bytes of headers that nat reads";
            warns(&split(at), &[says]);
        }
        for at in [0, 42, 64] {
            warns(&split(at), &[]);
        }
        warns(&format!("app = \"l2fwd\"\n{}", split(14)), &[]);
    }
}

/// What rings take up of a short trial is sent after its window, and nothing is lost.
#[test]
fn trials_that_rings_take_up() {
    let search = "cores = 4\noffered_gbps = 100\nmeasure = \"no_drop_rate\"\n";
    // 4 rings of 1024 frames of 12 kbit: 49.152 Mbit.
    let says = "receive rings hold 4096 frames of 1500 bytes, 49.2 Gbit/s for a window of 1 ms: the rate without loss \
                may be too high by so much of 100 Gbit/s; set window_ms to 10 or more";
    warns(&format!("{search}window_ms = 1\n"), &[says]);
    warns(&format!("{search}window_ms = 10\n"), &[]);
    warns("cores = 4\noffered_gbps = 100\nwindow_ms = 1\n", &[]);
    for (rings, frames) in [
        ("interface = \"sh_ring\"\nsharing = 2\n", "hold 2048 frames"),
        (
            "interface = \"rx_bisect\"\nax_entries = 512\n",
            "hold 2048 frames",
        ),
    ] {
        warns(&format!("{search}{rings}window_ms = 1\n"), &[frames]);
    }
}

/// The rest of the frames goes on; which do not is said before the run.
#[test]
fn frames_of_a_capture_that_no_buffer_has_room_for() {
    let folder = folder();
    let mut capture = CaptureWriter::new(Vec::new(), CaptureFormat::Pcap).unwrap();
    for len in [100, 3000, 2048, 2500] {
        capture.write(Time::ZERO, &vec![0; len]).unwrap();
    }
    let capture = capture.finish().unwrap();
    std::fs::write(folder.path().join("long.pcap"), capture).unwrap();
    let text = format!("{SCENARIO}cores = 2\n");
    std::fs::write(folder.path().join("s.toml"), text).unwrap();
    let notes = |set: &str| {
        let check = ["check", "s.toml", "--pcap", "long.pcap", "--set", set];
        let output = nicforge(&folder, &check);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stderr(&output)
    };
    let said = notes("buffer_bytes=2048");
    for part in [
        "long.pcap: 2 of 4 frames do not fit buffers of 2048 bytes",
        "the first is number 2, the longest has 3000 bytes",
        "set buffer_bytes to at least 3000",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert!(notes("buffer_bytes=2560").contains("1 of 4 frames"));
    assert!(!notes("buffer_bytes=3000").contains("frames do not fit"));
}

#[test]
fn variants_that_differ_in_nothing_that_counts() {
    let variants = "[[variant]]\nname = \"small\"\nrx_entries = 128\n\
                    [[variant]]\nname = \"large\"\nrx_entries = 1024\n";
    let folder = folder();
    let said = |text: &str, set: &[&str]| {
        let text = format!("{SCENARIO}{text}");
        std::fs::write(folder.path().join("s.toml"), text).unwrap();
        let output = nicforge(&folder, &[&["check", "s.toml"][..], set].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        stderr(&output)
    };
    assert_eq!(said(variants, &[]), "");
    let replaced = said(variants, &["--set", "rx_entries=512"]);
    assert!(
        replaced.contains("note: large is small again: no setting that counts differs"),
        "{replaced}"
    );
    // A table of another size is one for those who have a table.
    let tables = "[[variant]]\nname = \"plain\"\n\
                  [[variant]]\nname = \"tables\"\ntable_entries = 2000000\n\
                  [[variant]]\nname = \"shared\"\ninterface = \"sh_ring\"\n\
                  [sweep]\napp = [\"nat\", \"l2fwd\"]\n";
    let partly = said(tables, &[]);
    assert!(
        partly.contains("tables is plain again in 1 of 2 points: "),
        "{partly}"
    );
    assert!(!partly.contains("shared"), "{partly}");
}

/// Several interfaces share [settings], so there a key may be for another one.
#[test]
fn keys_that_are_asked_for_and_change_nothing() {
    let replay = ["check", "scenarios/nat-capture.toml", "--set"];
    for (set, key) in [
        ("packet_bytes=64", "packet_bytes"),
        ("packet_sizes=imix", "packet_sizes"),
        ("target_share=0.5", "target_share"),
        ("busiest_to_idlest=2", "busiest_to_idlest"),
    ] {
        let output = nicforge(&folder(), &[&replay[..], &[set]].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{said}");
        let note = format!("note: --set {set}: `{key}` has no effect: nothing uses it with ");
        assert!(said.contains(&note), "{said}");
        assert!(
            said.contains("arrival = \"replay\"; leave it out"),
            "{said}"
        );
    }
    let sweep = "cores = 16\n[sweep]\nrx_entries = [128, 1024]\n";
    warns(
        &format!("{BISECT}{sweep}"),
        &["`rx_entries` has no effect: nothing uses it with interface = \"rx_bisect\"; leave"],
    );
    let other = "[[variant]]\ninterface = \"rx_bisect\"\n[[variant]]\ninterface = \"priv_ring\"\n";
    warns(&sweep.replace("[sweep]", &format!("{other}[sweep]")), &[]);
    warns(&format!("{BISECT}cores = 16\nrx_entries = 128\n"), &[]);
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
fn shares_of_a_lone_queue() {
    let says = "busiest_to_idlest has no effect with 2 cores for 2 NICs, as each NIC has one queue";
    warns("cores = 2\nbusiest_to_idlest = 3\n", &[says]);
    warns("cores = 4\nbusiest_to_idlest = 3\n", &[]);
    warns("cores = 2\n", &[]);
}

#[test]
fn rings_that_are_never_shared() {
    let dynamic = "interface = \"sh_ring_dynamic\"\ncores = 16\nwarmup_ms = 40\n";
    // The ninth of 16 looks can be the one that decides.
    warns(
        &format!("{dynamic}window_ms = 49\n"),
        &["after 9 looks at the earliest, 90 ms, when the run has ended (89 ms)"],
    );
    warns(&format!("{dynamic}window_ms = 50\n"), &[]);
    let long = format!("{dynamic}window_ms = 500\n");
    let never = "never more than all looks speak for sharing";
    warns(&format!("{long}dynamic_on_share = 1.0\n"), &[never]);
    warns(
        &format!("{long}dynamic_off_share = 0.0\n"),
        &["private again at the next look"],
    );
    // No look can speak for sharing where never more than `dynamic_gbps` (170) come.
    let offered =
        "at most 170.0 Gbit/s are offered, and sharing needs more than dynamic_gbps = 170";
    warns(&format!("{long}offered_gbps = 170\n"), &[offered]);
    warns(&format!("{long}offered_gbps = 171\n"), &[]);
    warns(
        &format!("{long}offered_gbps = 171\ndynamic_gbps = 171.5\n"),
        &["at most 171.0 Gbit/s are offered"],
    );
    let wires = "at most 196.9 Gbit/s fit the wires of the NICs in use";
    warns(&format!("{long}dynamic_gbps = 197\n"), &[wires]);
    warns(&format!("{long}dynamic_gbps = 196\n"), &[]);
    let played = dynamic.replace("interface", "emulates");
    let played = format!("interface = \"emulated\"\n{played}window_ms = 49\n");
    warns(&played, &["after 9 looks at the earliest"]);
}

#[test]
fn pairs_that_push_each_other_out_of_the_store() {
    let store = "app = \"kvs\"\nkvs_keys = 8192\nkvs_value_bytes = 880\n";
    warns(
        &format!("{store}kvs_index_slots = 8000\n"),
        &["of 8192 pairs that are put into the store before traffic begins at most 8000 stay"],
    );
    // 8192 times 16 B of header, 128 B of key and 880 B of value.
    warns(&format!("{store}kvs_log_mib = 8\n"), &[]);
    warns(
        &format!("{store}kvs_log_mib = 7\n"),
        &["take 8 MiB with their headers: later ones overwrite the earlier in logs of 7 MiB"],
    );
    // Small pairs are mostly header.
    let small = "app = \"kvs\"\nkvs_keys = 800000\nkvs_key_bytes = 8\nkvs_value_bytes = 8\n";
    let most = ["set kvs_log_mib to at least 25"];
    warns(&format!("{small}kvs_log_mib = 16\n"), &most);
    warns(&format!("{small}kvs_log_mib = 25\n"), &[]);
    warns(
        &format!("{store}kvs_log_mib = 7\nkvs_preload_keys = 7168\n"),
        &[],
    );
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
