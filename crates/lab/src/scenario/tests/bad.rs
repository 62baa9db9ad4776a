//! Each mistake, the line it is reported at, and the remedy.

use super::*;
use crate::settings::Catalogue;

/// The error of `rest`, parsed and expanded.
fn error(rest: &str) -> String {
    points(rest, &[]).unwrap_err().to_string()
}

/// Asserts that `rest` fails at `place` and that the message has all of `parts`.
fn refused(rest: &str, place: &str, parts: &[&str]) {
    let error = error(rest);
    assert!(error.starts_with(&format!("s.toml:{place}: ")), "{place}: {error}");
    for part in parts {
        assert!(error.contains(part), "`{part}` in: {error}");
    }
}

#[test]
fn unknown_keys_get_the_nearest_name() {
    refused("[settings]\nrx_entrys = 128\n", "5:1", &["`rx_entrys`", "`rx_entries`?"]);
    refused("[sweep]\ncore = [2]\n", "5:1", &["`core`", "did you mean `cores`?"]);
    refused("[[variant]]\nname = \"a\"\nap = \"nat\"\n", "6:1", &["did you mean `app`?"]);
    refused("tittle = \"x\"\n", "4:1", &["key of [scenario]", "did you mean `title`?"]);
    refused("[setings]\n", "4:2", &["unknown section", "did you mean `settings`?"]);
    refused("[settings]\npacket_kib = 2\n", "5:1", &["did you mean `packet_bytes`?"]);
    refused(
        "[settings]\nring_size = 128\n",
        "5:1",
        &["unknown setting `ring_size`; `nicforge list settings` and docs/settings.md list all"],
    );
}

#[test]
fn keys_in_the_wrong_section_are_sent_to_the_right_one() {
    refused("cores = 4\n", "4:1", &["put it under [settings]"]);
    refused("[settings]\nseed = 4\n", "5:1", &["it stands in [scenario]"]);
}

#[test]
fn wrong_types_and_units() {
    refused("[settings]\ncores = \"four\"\n", "5:9", &["a whole number, 1 to 256 cores"]);
    refused("[settings]\npacket_bytes = \"1500 B\"\n", "5:16", &["packet_bytes = 1500"]);
    refused("[settings]\napp = 7\n", "5:7", &["`app` cannot be 7"]);
    refused("[settings]\ncores = 1979-05-27\n", "5:9", &["the date 1979-05-27"]);
    refused("seed = -1\n", "4:8", &["a whole number from 0"]);
    refused("settings = 3\n", "4:1", &["unknown key of [scenario] `settings`"]);
}

#[test]
fn values_out_of_range() {
    refused("[settings]\nrx_entries = 100\n", "5:14", &["power of two", "64 or 128"]);
    refused("[settings]\ncores = 0\n", "5:9", &["`cores` cannot be 0", "1 to 256"]);
    refused("[settings]\npacket_bytes = 40\n", "5:16", &["60 to 9216 bytes"]);
    refused("[settings]\npacket_bytes = 99999999999\n", "5:16", &["60 to 9216 bytes"]);
    refused("[settings]\noffered_gbps = nan\n", "5:16", &["`offered_gbps` cannot be NaN"]);
    refused("[settings]\napp = \"natt\"\n", "5:7", &["did you mean \"nat\"?"]);
    refused("[sweep]\nrx_entries = [\n64,\n65]\n", "7:1", &["64 or 128 would do"]);
}

#[test]
fn more_than_the_machine_has() {
    refused("[settings]\ncores = 32\n", "5:9", &["32 cores and 0 co-runners", "has 16 cores"]);
    refused("[settings]\nstream_cores = 1\n", "5:16", &["is at most 16"]);
    refused(
        "[settings]\nco_runner_socket = \"other\"\nstream_cores = 17\n",
        "6:16",
        &["17 co-runners", "is at most 16"],
    );
    refused(
        "[settings]\ninterface = \"emulated\"\nemulator_socket = \"same\"\n",
        "6:19",
        &["2 cores that play NICs", "is at most 14"],
    );
    refused(
        "[settings]\ninterface = \"emulated\"\nco_runner_socket = \"other\"\nstream_cores = 15\n",
        "7:16",
        &["2 cores that play NICs", "is at most 14", "emulator_socket"],
    );
    refused("[settings]\nnics = 4\n", "5:8", &["4 NICs wanted", "set nics to at most 2"]);
    refused("[settings]\nio_ways = 12\n", "5:11", &["has 11", "set io_ways to 0 to 11"]);
    refused("[sweep]\ncores = [2, 3]\n", "5:13", &["3 cores", "such as 2"]);
}

#[test]
fn keys_that_need_others() {
    refused("[settings]\narrival = \"replay\"\n", "5:11", &["no capture", "--pcap FILE"]);
    refused("[settings]\npacket_sizes = \"empirical\"\n", "5:16", &["set size_file"]);
    let search = "[settings]\narrival = \"ping_pong\"\nmeasure = \"no_drop_rate\"\n";
    refused(search, "6:11", &["a rate that it can vary"]);
}

/// A key of a module that no point uses is no error: the command line says so.
#[test]
fn keys_of_modules_that_no_point_uses_do_not_count() {
    for rest in [
        "[settings]\nburst_packets = 4\n",
        "[settings]\nservers = 4\n",
        "[settings]\napp = \"kvs\"\npacket_bytes = 64\n",
    ] {
        let points = points(rest, &[]).unwrap();
        let key = rest.lines().last().unwrap().split_once(' ').unwrap().0;
        assert!(!points[0].settings.counts(key), "{key}");
        assert!(!points[0].params.contains_key(key), "{key}");
    }
}

#[test]
fn cores_that_begin_after_the_end() {
    refused("[settings]\npolling_starts_ms = 15\n", "5:21", &["at 15 ms", "ended (15 ms)", "such as 0"]);
}

#[test]
fn missing_files() {
    let replay = "[settings]\narrival = \"replay\"\npcap = \"no/such.pcap\"\n";
    refused(replay, "6:8", &["`pcap` names a file that is not there: no/such.pcap"]);
    let routes = "[settings]\napp = \"l3fwd\"\nroutes_file = \"no/routes\"\n";
    refused(routes, "6:15", &["`routes_file`", "looked for no/routes"]);
    let sizes = "[settings]\npacket_sizes = \"empirical\"\nsize_file = \"no/sizes\"\n";
    refused(sizes, "6:13", &["`size_file`"]);
    let error = load_scenario(Path::new("no/such.toml"), &Catalogue::shipped()).unwrap_err().to_string();
    assert!(error.starts_with("no/such.toml: cannot be read"), "{error}");
}

#[test]
fn missing_machine() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("machines")).unwrap();
    std::fs::write(folder.path().join("machines/xeon-4216.toml"), "").unwrap();
    let file = folder.path().join("s.toml");
    let scenario = parse_scenario(&with_header(""), &file, &Catalogue::shipped()).unwrap();
    let error = scenario.machine_file().unwrap_err().to_string();
    assert!(error.contains("s.toml:3:11: there is no machine file"), "{error}");
    assert!(error.ends_with("did you mean \"xeon-4216\"?"), "{error}");
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("s.toml");
    let scenario = parse_scenario(&with_header(""), &file, &Catalogue::shipped()).unwrap();
    let error = scenario.machine_file().unwrap_err();
    let looked = format!("in {}, in a folder above it", elsewhere.path().display());
    assert!(error.wrong.contains(&looked), "{}", error.wrong);
    assert_eq!(error.right, "name a machine file by --machine FILE");
}

/// The folder of machines is seen by its relative and by its absolute path.
#[test]
fn known_machines_are_listed_once() {
    // Tests run in the crate's folder, two below the machines.
    let file = Path::new("../../scenarios/s.toml");
    let text = with_header("").replace("xeon-4216-cx5", "foo");
    let scenario = parse_scenario(&text, file, &Catalogue::shipped()).unwrap();
    let error = scenario.machine_file().unwrap_err();
    let (_, listed) = error.right.split_once("known: ").unwrap();
    let mut names: Vec<&str> = listed.split(", ").collect();
    assert!(names.contains(&"xeon-4216-cx5"), "{names:?}");
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count, "{listed}");
}

#[test]
fn missing_header_keys() {
    let error = parse("[settings]\n").unwrap_err().to_string();
    assert!(error.starts_with("s.toml: [scenario] has no `name`; add name ="), "{error}");
    let error = parse("\n[scenario]\nname = \"x\"\n").unwrap_err().to_string();
    assert!(error.starts_with("s.toml:2:1: [scenario] has no `machine`"), "{error}");
}

#[test]
fn names_stay_inside_their_folder() {
    for name in ["../x", "a/b", "", ".hidden", "a b"] {
        let text = format!("[scenario]\nname = \"{name}\"\nmachine = \"m\"\n");
        let error = parse(&text).unwrap_err().to_string();
        assert!(error.starts_with("s.toml:2:8: `name` cannot be"), "{error}");
    }
}

#[test]
fn duplicates() {
    refused("[settings]\ncores = 2\ncores = 4\n", "6:1", &["duplicate key", "remove one"]);
    let twins = "[[variant]]\nname = \"a\"\n[[variant]]\nname = \"a\"\n";
    refused(twins, "7:1", &["two variants called `a`", "rename"]);
    refused("[[variant]]\n[[variant]]\n", "5:1", &["two variants go by the name `priv_ring`"]);
    refused("[[variant]]\n[[variant]]\nname = \"priv_ring\"\n", "6:1", &["two variants go by the name `priv_ring`"]);
    refused("[sweep]\ncores = [2, 2]\n", "5:13", &["has 2 twice"]);
    let both = "[[variant]]\nname = \"a\"\ncores = 2\n[sweep]\ncores = [2, 4]\n";
    refused(both, "6:9", &["set by a variant and swept too"]);
}

#[test]
fn sweeps_that_are_none_or_too_many() {
    refused("[sweep]\ncores = []\n", "5:9", &["is empty", "at least one value"]);
    refused("[sweep]\ncores = 4\n", "5:9", &["write a list: cores = [4]"]);
    let list = |from: u32| (from..from + 101).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
    let rest = format!("[sweep]\npacket_bytes = [{}]\nflows = [{}]\n", list(60), list(1));
    refused(&rest, "6:10", &["more than 10000 points", "shorten [sweep]"]);
}

#[test]
fn broken_toml() {
    refused("[settings]\ncores = \n", "5:9", &["write TOML"]);
    refused("[variant]\nname = \"a\"\n", "4:1", &["[[variant]]"]);
}

#[test]
fn overrides() {
    let error = |set: &str| points("", &[set]).unwrap_err().to_string();
    assert!(error("cores").starts_with("--set cores: no `=` in it; write --set key=value"));
    assert!(error("core=4").ends_with("did you mean `cores`?"));
    assert!(error("cores=many").starts_with("--set cores=many: `cores` cannot be \"many\""));
    assert!(error("rx_entries=100").contains("64 or 128 would do"));
    assert!(error("seed=3").contains("--seed"));
    assert!(error("io_ways=12").starts_with("--set io_ways=12: 12 I/O ways wanted"));
    assert!(error("pcap=no/x").contains("looked for no/x)"));
}

#[test]
fn ranges_and_samples() {
    let sweep = |range: &str, parts: &[&str]| refused(&format!("[sweep]\nburst = {range}\n"), "5:9", parts);
    sweep("{ from = 8 }", &["lacks an end", "burst = { from = 64, to = 4096, values = 7 }"]);
    sweep("{ from = 8, to = 64 }", &["does not say how many values"]);
    sweep("{ from = 64, to = 8, values = 3 }", &["goes from 64 to 8", "`from` is less than `to`"]);
    sweep("{ from = 0, to = 8, values = 3, spacing = \"log\" }", &["and above 0"]);
    sweep("{ from = 8, to = 99999999, values = 3 }", &["`burst` cannot be"]);
    refused("[sweep]\nburst = { fom = 8 }\n", "5:11", &["did you mean `from`?"]);
    refused("[sweep]\nburst = { from = 8, to = 9, values = 1 }\n", "5:38", &["`values` cannot be 1", "2 to 10000"]);
    refused("[sweep]\napp = { from = 8, to = 9, values = 2 }\n", "5:7", &["takes no numbers", "a list of its values"]);
    refused("[sample]\nburst = [8]\n", "4:1", &["no `points`"]);
    refused("[sample]\npoints = 4\n", "4:1", &["draws no key"]);
    refused("[sample]\npoints = 4\nmethod = \"latin\"\n", "6:10", &["`method` cannot be \"latin\""]);
    refused("[sample]\npoints = 4\nburst = 8\n", "6:9", &["the sample of `burst` is 8"]);
    refused("[sample]\npoints = 20000\nburst = [8]\n", "5:10", &["1 to 10000"]);
    let both = "[sweep]\nburst = [8, 16]\n[sample]\npoints = 4\nburst = [8]\n";
    refused(both, "8:9", &["`burst` is swept and sampled"]);
    let many = "[sweep]\nburst = [8, 16]\n[sample]\npoints = 9000\nio_ways = [2, 5]\n";
    refused(many, "6:2", &["more than 10000 points"]);
}
