//! What a right scenario expands to.

use nicforge_interfaces::options::RxRing;

use super::*;
use crate::run::options::{Capture, Llc};
use crate::settings::Catalogue;

#[test]
fn without_variant_or_sweep_there_is_one_point_named_after_the_interface() {
    let points = points("[settings]\ninterface = \"sh_ring\"\n", &[]).unwrap();
    assert_eq!(points.len(), 1);
    assert_eq!(points[0].variant, "sh_ring");
}

#[test]
fn cores_nics_and_ways_are_the_machines_unless_set() {
    let points = points("", &[]).unwrap();
    let settings = &points[0].settings;
    assert_eq!((settings.cores(), settings.nics(), settings.read::<Llc>().io_ways), (16, 2, 2));
}

#[test]
fn variants_come_first_and_the_last_swept_key_changes_fastest() {
    let rest = "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\ninterface = \"sh_ring\"\n\
                [sweep]\nrx_entries = [64, 128]\ncores = [2, 4]\n";
    let points = points(rest, &[]).unwrap();
    let rows: Vec<(&str, usize, usize)> = points
        .iter()
        .map(|point| (point.variant.as_str(), point.settings.read::<RxRing>().rx_entries, point.settings.cores()))
        .collect();
    assert_eq!(rows[..4], [("a", 64, 2), ("a", 64, 4), ("a", 128, 2), ("a", 128, 4)]);
    assert_eq!(rows[4], ("b", 64, 2));
    assert_eq!(rows.len(), 8);
    assert_eq!(points[4].settings.interface(), "sh_ring");
}

#[test]
fn a_swept_interface_names_the_variants() {
    let points = points("[sweep]\ninterface = [\"priv_ring\", \"sh_ring\"]\n", &[]).unwrap();
    assert_eq!(points[1].variant, "sh_ring");
}

#[test]
fn params_hold_the_common_and_every_varied_value() {
    let rest = "[settings]\nflow_choice = \"zipf\"\n[sweep]\nzipf_s = [0.5, 1]\n";
    let points = points(rest, &[]).unwrap();
    let keys: Vec<&str> = points[0].params.keys().map(String::as_str).collect();
    let expected =
        ["interface", "app", "cores", "rx_entries", "tx_entries", "io_ways", "offered_gbps", "packet_bytes", "zipf_s"];
    assert_eq!(keys, expected);
    assert_eq!(points[1].params["zipf_s"], 1.0);
}

#[test]
fn params_leave_out_what_the_point_does_not_use() {
    let rest = "[[variant]]\nname = \"own\"\nrx_entries = 64\n\
                [[variant]]\nname = \"shared\"\ninterface = \"sh_ring\"\nsharing = 2\n";
    let points = points(rest, &[]).unwrap();
    assert!(!points[0].params.contains_key("sharing"));
    assert_eq!(points[1].params["sharing"], 2);
    // A swept key stays, as the axis that all variants have.
    let rest = "[[variant]]\ninterface = \"priv_ring\"\n[[variant]]\ninterface = \"sh_ring\"\n\
                [sweep]\nsharing = [2, 4]\n";
    let points = super::points(rest, &[]).unwrap();
    assert_eq!(points[0].params["sharing"], 2);
}

#[test]
fn a_variant_whose_interface_is_replaced_says_so() {
    let rest = "[[variant]]\nname = \"priv_ring\"\ninterface = \"priv_ring\"\n\
                [[variant]]\nname = \"small\"\ninterface = \"priv_ring\"\nrx_entries = 64\n\
                [[variant]]\nname = \"other\"\nrx_entries = 128\n";
    let names = |set: &[&str]| -> Vec<String> {
        let points = points(rest, set).unwrap();
        points.into_iter().map(|point| point.variant).collect()
    };
    assert_eq!(names(&[]), ["priv_ring", "small", "other"]);
    assert_eq!(names(&["interface=priv_ring"]), names(&[]));
    let replaced = ["sh_ring for priv_ring", "sh_ring for small", "other"];
    assert_eq!(names(&["interface=sh_ring"]), replaced);
}

#[test]
fn variants_called_for_their_interface_stay_apart_where_another_replaces_them() {
    let rest = "[[variant]]\ninterface = \"priv_ring\"\n[[variant]]\ninterface = \"sh_ring\"\n";
    let points = points(rest, &["interface=priv_ring"]).unwrap();
    let names: Vec<&str> = points.iter().map(|point| &*point.variant).collect();
    assert_eq!(names, ["priv_ring", "priv_ring for sh_ring"]);
}

#[test]
fn set_replaces_settings_variants_and_sweeps() {
    let rest = "[settings]\ncores = 2\n[[variant]]\nname = \"a\"\nrx_entries = 128\n\
                [[variant]]\nname = \"b\"\n[sweep]\nio_ways = [0, 2]\n";
    let overrides = ["cores=4", "rx_entries=256", "io_ways = 5", "app=lb"];
    let points = points(rest, &overrides).unwrap();
    assert_eq!(points.len(), 2);
    for point in &points {
        let settings = &point.settings;
        assert_eq!(
            (settings.cores(), settings.read::<RxRing>().rx_entries, settings.read::<Llc>().io_ways),
            (4, 256, 5)
        );
        assert_eq!(settings.app(), "lb");
        assert_eq!(point.params["io_ways"], 5);
    }
}

#[test]
fn the_last_set_of_a_key_wins() {
    let points = points("", &["cores=4", "cores=8"]).unwrap();
    assert_eq!(points[0].settings.cores(), 8);
}

#[test]
fn files_are_found_beside_the_scenario() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.pcap"), "").unwrap();
    let text = with_header("[settings]\narrival = \"replay\"\npcap = \"x.pcap\"\n");
    let scenario = parse_scenario(&text, &folder.path().join("s.toml"), &Catalogue::shipped()).unwrap();
    let points = scenario.expand(&machine(), &[], &Catalogue::shipped()).unwrap();
    let found = points[0].settings.read::<Capture>().pcap.unwrap();
    assert_eq!(Path::new(&found), folder.path().join("x.pcap"));
}

#[test]
fn the_machine_is_found_above_the_scenario() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("scenarios/paper")).unwrap();
    std::fs::create_dir(folder.path().join("machines")).unwrap();
    let machine = folder.path().join("machines/xeon-4216-cx5.toml");
    std::fs::write(&machine, "").unwrap();
    let file = folder.path().join("scenarios/paper/s.toml");
    let scenario = parse_scenario(&with_header(""), &file, &Catalogue::shipped()).unwrap();
    assert_eq!(scenario.machine_file().unwrap(), machine);
}
