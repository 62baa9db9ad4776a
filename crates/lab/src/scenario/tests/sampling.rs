//! Ranges and samples.

use nicforge_interfaces::options::RxRing;
use nicforge_options::Value;

use super::*;
use crate::run::options::{Llc, Rate};

fn entries(rest: &str) -> Vec<usize> {
    points(rest, &[]).unwrap().iter().map(|point| point.settings.read::<RxRing>().rx_entries).collect()
}

#[test]
fn a_range_has_even_values_and_those_of_whole_numbers_once() {
    let log = "[sweep]\nrx_entries = { from = 64, to = 4096, values = 7, spacing = \"log\" }\n";
    assert_eq!(entries(log), [64, 128, 256, 512, 1024, 2048, 4096]);
    let rest =
        "[sweep]\nio_ways = { from = 0, to = 2, values = 5 }\noffered_gbps = { from = 10, to = 40, values = 4 }\n";
    let points = points(rest, &[]).unwrap();
    let pairs: Vec<(usize, f64)> =
        points.iter().map(|p| (p.settings.read::<Llc>().io_ways, p.settings.read::<Rate>().offered_gbps)).collect();
    assert_eq!(pairs.len(), 3 * 4);
    assert_eq!(pairs[..5], [(0, 10.0), (0, 20.0), (0, 30.0), (0, 40.0), (1, 10.0)]);
}

const SAMPLE: &str = "[sample]\npoints = 16\noffered_gbps = { from = 0, to = 160 }\nio_ways = [2, 5]\n";

fn rates(rest: &str, overrides: &[&str]) -> Vec<f64> {
    points(rest, overrides).unwrap().iter().map(|point| point.settings.read::<Rate>().offered_gbps).collect()
}

#[test]
fn a_latin_hypercube_has_one_point_in_each_stratum() {
    let rest = SAMPLE.replace("from = 0", "from = 1");
    let mut strata: Vec<usize> = rates(&rest, &[]).iter().map(|rate| ((rate - 1.0) / 159.0 * 16.0) as usize).collect();
    assert!(!strata.is_sorted(), "in no order");
    strata.sort();
    assert_eq!(strata, (0..16).collect::<Vec<_>>());
    let ways: Vec<usize> = points(&rest, &[]).unwrap().iter().map(|p| p.settings.read::<Llc>().io_ways).collect();
    assert_eq!(ways.iter().filter(|ways| **ways == 2).count(), 8);
}

#[test]
fn a_sample_follows_the_seed_and_each_key_only_itself() {
    let rest = SAMPLE.replace("from = 0", "from = 1").replace("points = 16", "points = 16\nmethod = \"random\"");
    assert_eq!(rates(&rest, &[]), rates(&rest, &[]));
    assert_eq!(rates(&rest, &[]), rates(&rest, &["io_ways=2"]));
    assert_ne!(rates(&rest, &[]), rates(&format!("seed = 2\n{rest}"), &[]));
    assert_eq!(rates(&rest, &["offered_gbps=50"]), [50.0; 16]);
}

#[test]
fn a_sample_goes_with_variants_and_sweeps_and_shows_its_keys() {
    let rest = "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"b\"\n[sweep]\nrx_entries = [64, 128]\n\
                [sample]\npoints = 3\nburst = { from = 8, to = 32 }\n";
    let points = points(rest, &[]).unwrap();
    assert_eq!(points.len(), 2 * 2 * 3);
    assert!(points.iter().all(|point| point.params.contains_key("burst")));
    assert_eq!(points[0].params["burst"], points[3].params["burst"], "the same draws for each combination");
    assert!(matches!(points[0].settings.get("burst"), Some(Value::Integer(8..=32))));
}
