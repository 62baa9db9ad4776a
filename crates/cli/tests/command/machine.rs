//! `nicforge machine measure`: a file that scenarios can use, and that says where each number comes
//! from. What the numbers are is nobody's business here.

use crate::common::{files, folder, nicforge, stderr, stdout};
use nicforge_lab::machine::load_machine;

#[test]
fn a_measured_machine_passes_the_check_of_a_scenario() {
    let folder = folder();
    let output = nicforge(&folder, &["machine", "measure", "--quick"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.contains("core.frequency_ghz"), "{said}");
    assert!(said.contains("copies within memory"), "{said}");
    assert!(said.contains("wrote machines/this-machine.toml"), "{said}");
    let file = "machines/this-machine.toml";
    let machine = load_machine(&folder.path().join(file)).unwrap();
    for row in &machine.rows {
        let told = ["measured: ", "the system", "not measured: "];
        let told = told.iter().any(|begin| row.source.starts_with(begin));
        assert!(told, "{}.{}: {}", row.section, row.key, row.source);
    }
    let measured = |key: &str| {
        let row = machine.rows.iter().find(|row| row.key == key).unwrap();
        row.source.starts_with("measured: ")
    };
    for key in [
        "frequency_ghz",
        "atomic_cycles",
        "hit_ns",
        "idle_latency_ns",
        "peak_gb_per_s",
        "mlp_independent",
        "mlp_streaming",
    ] {
        assert!(measured(key), "{key}");
    }
    let text = std::fs::read_to_string(folder.path().join(file)).unwrap();
    assert!(text.contains("# - copies within the nearest cache: "), "{text}");
    let check = |more: &[&str]| {
        let arguments = ["check", "scenarios/nat-200g.toml", "--set", "cores=1"];
        let set = ["--set", "nics=1"];
        nicforge(&folder, &[&arguments[..], &set, more].concat())
    };
    let checked = check(&["--machine", file]);
    assert_eq!(checked.status.code(), Some(0), "{}", stderr(&checked));
    assert!(stdout(&checked).contains("this-machine"), "{}", stdout(&checked));
    assert!(stdout(&checked).contains("--machine machines/this-machine.toml"));
    let unknown = check(&["--machine", "machines/none.toml"]);
    assert_eq!(unknown.status.code(), Some(2));
}

#[test]
fn a_file_that_is_there_stays() {
    let folder = folder();
    let before = files(folder.path());
    let shipped = "machines/xeon-4216-cx5.toml";
    let output = nicforge(&folder, &["machine", "measure", "--quick", "--out", shipped]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains(shipped) && said.contains("is there already"), "{said}");
    assert_eq!(files(folder.path()), before);
}
