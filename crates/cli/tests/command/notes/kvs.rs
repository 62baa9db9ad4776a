//! What is said about a key-value store.

use super::{notes, warns};
use crate::common::{folder, nicforge, stderr};

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
    warns(&gets, &[&format!("{replies}; set buffer_bytes to at least 4066")]);
    warns(&format!("{gets}kvs_preload_keys = 0\n"), &[]);
    let all = format!("{store}kvs_put_share = 1.0\n");
    warns(&all, &[&format!("{puts}; set buffer_bytes to at least 4194")]);
    let put = format!("{store}kvs_put_share = 0.2\n");
    warns(&format!("{put}buffer_bytes = 4194\n"), &[]);
    let some = ["PUTs of 4194 bytes do not fit buffers of 4160"];
    warns(&format!("{put}buffer_bytes = 4160\n"), &some);
    // Buffers are whole cache lines.
    warns(&format!("{put}buffer_bytes = 4161\n"), &[]);
}

/// A frame that is cut in two is no longer than one buffer all the same.
#[test]
fn long_frames_that_are_split() {
    let split = "interface = \"split\"\n";
    let store = "app = \"kvs\"\nkvs_keys = 1000\nkvs_put_share = 0.5\n";
    let puts = "PUTs of 2094 bytes do not fit buffers of 2048: all of them will be dropped (oversized_frame); set \
                buffer_bytes to at least 2094";
    warns(&format!("{store}{split}kvs_value_bytes = 1900\n"), &[puts]);
    warns(&format!("{store}{split}kvs_value_bytes = 1854\n"), &[]);
    let both = "replies to GETs of 4066 bytes do not fit buffers of 2048: GETs will be answered without";
    warns(&format!("{store}{split}kvs_value_bytes = 4000\n"), &[both]);
    warns(
        &format!("{split}packet_bytes = 2049\n"),
        &["frames of 2049 bytes do not fit buffers of 2048: all of them will be dropped"],
    );
    warns(&format!("{split}packet_bytes = 2048\n"), &[]);
}

#[test]
fn pairs_that_push_each_other_out_of_the_store() {
    let store = "app = \"kvs\"\nkvs_keys = 8192\nkvs_value_bytes = 880\n";
    warns(
        &format!("{store}kvs_index_slots = 8000\n"),
        &["of 8192 pairs that are put into the store before traffic begins about 7049 stay: buckets of 8 overflow"],
    );
    // With as many slots as pairs every seventh finds its bucket full, with twice as many hardly any.
    let keys = |slots: u32| format!("app = \"kvs\"\ncores = 16\nkvs_keys = 1048576\nkvs_index_slots = {slots}\n");
    let twice = "set kvs_index_slots to at least 2097152, which keeps nearly all";
    warns(&keys(1_048_576), &[twice]);
    warns(&keys(2_097_152), &[]);
    // Each core has a bucket at least.
    let few = "app = \"kvs\"\ncores = 16\nkvs_index_slots = 8\n";
    warns(&format!("{few}kvs_keys = 100\n"), &[]);
    warns(&format!("{few}kvs_keys = 1000\n"), &["about 128 stay"]);
    // 8192 times 16 B of header, 128 B of key and 880 B of value.
    warns(&format!("{store}kvs_log_mib = 8\n"), &[]);
    warns(
        &format!("{store}kvs_log_mib = 7\n"),
        &["about 7168 stay: they take 8 MiB with their headers, and later ones overwrite the earlier in logs of 7 MiB"],
    );
    // Small pairs are mostly header.
    let small = "app = \"kvs\"\nkvs_keys = 800000\nkvs_key_bytes = 8\nkvs_value_bytes = 8\n";
    let most = ["set kvs_log_mib to at least 25"];
    warns(&format!("{small}kvs_log_mib = 16\n"), &most);
    warns(&format!("{small}kvs_log_mib = 25\n"), &[]);
    let huge = "app = \"kvs\"\nkvs_keys = 100000000\nkvs_value_bytes = 8192\nkvs_index_slots = 1000000000\n\
                buffer_bytes = 9000\n";
    // What both keep is what the smaller keeps.
    let both = notes(&format!("{store}kvs_log_mib = 7\nkvs_index_slots = 8000\n"));
    for says in ["about 7049 stay", "and they take 8 MiB", "set kvs_index_slots", "and set kvs_log_mib"] {
        assert!(both[0].contains(says), "{both:?}");
    }
    let log = "app = \"kvs\"\nkvs_keys = 100000000\nkvs_log_mib = 1\n";
    let said = notes(log);
    for says in ["logs of 1 MiB", "set kvs_index_slots to at least 200000000", "about 897 stay"] {
        assert!(said[0].contains(says), "{said:?}");
    }
    let fewer = ["kvs_log_mib is at most 65536: put in fewer (kvs_preload_keys)"];
    warns(huge, &fewer);
    warns(&format!("{store}kvs_log_mib = 7\nkvs_preload_keys = 7168\n"), &[]);
}

/// Each core has a part of the memory, and a value lies in one part.
#[test]
fn hot_values_that_have_no_place_in_memory_of_the_nic() {
    let store = "app = \"kvs\"\ncores = 16\nkvs_value_bytes = 1000\n";
    let nicmem = "kvs_hot_values = \"nicmem\"\n";
    let says = "kvs_hot_values = \"nicmem\" has no effect: each of 16 cores gets 960 bytes of NICs' memory, where no value \
                of 1000 bytes has a place; set kvs_hot_kib to at least 16";
    warns(&format!("{store}{nicmem}kvs_hot_kib = 15\n"), &[says]);
    warns(&format!("{store}{nicmem}kvs_hot_kib = 16\n"), &[]);
    warns(&format!("{store}{nicmem}kvs_hot_kib = 0\n"), &["gets 0 bytes"]);
    warns(store, &[]);
}

/// A recorded request is what it is.
#[test]
fn keys_that_make_requests_change_none_of_a_capture() {
    let check = ["check", "scenarios/nat-capture.toml", "--set", "app=kvs"];
    for (set, others) in [
        ("kvs_put_share=0.5", [].as_slice()),
        ("kvs_delete_share=0.5", &[]),
        ("kvs_key_choice=zipf", &[]),
        ("kvs_zipf_s=1", &["kvs_key_choice=zipf"]),
        ("hot_share=1", &["kvs_key_choice=hot_area"]),
        ("kvs_hot_kib=512", &[]),
        ("kvs_hot_kib=512", &["kvs_key_choice=hot_area"]),
    ] {
        let sets = others.iter().chain([&set]).flat_map(|set| ["--set", set]);
        let arguments: Vec<&str> = check.into_iter().chain(sets).collect();
        let said = stderr(&nicforge(&folder(), &arguments));
        let (key, _) = set.split_once('=').unwrap();
        let note = format!("note: --set {set}: nothing uses `{key}`");
        assert!(said.contains(&note), "{said}");
    }
    // What is in the store before, and how hot values are sent, counts for them, too.
    for set in ["kvs_keys=1000", "kvs_value_bytes=64", "kvs_hot_values=nicmem"] {
        let said = stderr(&nicforge(&folder(), &[&check[..], &["--set", set]].concat()));
        assert!(!said.contains("nothing uses"), "{said}");
    }
}

/// A hot area is of use to clients that ask for it, and to NICs that have it.
#[test]
fn a_hot_area_that_nobody_uses() {
    let sweep = "[sweep]\nkvs_hot_kib = [64, 128]\n";
    let why = "nothing uses `kvs_hot_kib`";
    warns(&format!("app = \"kvs\"\ncores = 4\n{sweep}"), &[why]);
    for uses in ["kvs_key_choice = \"hot_area\"", "kvs_hot_values = \"nicmem\""] {
        warns(&format!("app = \"kvs\"\ncores = 4\n{uses}\n{sweep}"), &[]);
    }
}
