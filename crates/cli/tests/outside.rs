//! Crates outside this repository: what `nicforge new` writes runs, simulated and live, and passes the suites.
//!
//! The templates are parts of this test, with their suites. With NICFORGE_OUTSIDE_CRATE set, which .ci/run does, crates are also
//! written and built, and their commands run.

mod common;
#[path = "../src/new/app/src/my_app.rs"]
mod my_app;
#[path = "../src/new/interface/src/my_ring.rs"]
mod my_ring;
#[path = "../src/new/stage/src/my_stage.rs"]
mod my_stage;
#[path = "../../wire/tests/common/skip.rs"]
mod skip;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use common::{stderr, stdout};
use nicforge_lab::machine::parse_machine;
use nicforge_lab::run::{PointRun, RunIo, run_point};
use nicforge_lab::scenario::parse_scenario;
use nicforge_lab::settings::Catalogue;

fn catalogue() -> Arc<Catalogue> {
    let registry = nicforge::Registry::shipped();
    let registry = registry.interface::<my_ring::MyRing>().application::<my_app::MyApp>();
    Arc::new(Catalogue::new(registry.stage::<my_stage::MyStage>()))
}

/// The variants of a template's scenario, run.
fn run(scenario: &str) -> Vec<(String, PointRun)> {
    let machine = parse_machine(include_str!("../../../machines/xeon-4216-cx5.toml"), Path::new("m.toml")).unwrap();
    let scenario = parse_scenario(scenario, Path::new("s.toml"), &catalogue()).unwrap();
    let points = scenario.expand(&machine, &[], &catalogue()).unwrap();
    let run = |settings| run_point(&machine, settings, 1, &RunIo::default(), &mut |_, _| {}).unwrap();
    points.iter().map(|point| (point.variant.clone(), run(&point.settings))).collect()
}

#[test]
fn the_interface_template_runs_in_the_simulator() {
    let runs = run(include_str!("../src/new/interface/scenarios/my_ring.toml"));
    assert_eq!(runs.len(), 2);
    for (variant, run) in runs {
        assert!(run.metrics.throughput_mpps > 0.0, "{variant}");
    }
}

#[test]
fn the_app_template_runs_in_the_simulator_and_counts_its_drops() {
    let runs = run(include_str!("../src/new/app/scenarios/my_app.toml"));
    assert_eq!(runs.len(), 2);
    for (variant, run) in runs {
        assert!(run.metrics.throughput_mpps > 0.0, "{variant}");
    }
}

#[test]
fn the_stage_template_runs_in_the_simulator_and_drops_what_is_over_its_rate() {
    let runs = run(include_str!("../src/new/stage/scenarios/my_stage.toml"));
    let rate = |number: usize| runs[number].1.metrics.throughput_mpps;
    assert!(rate(0) > 2.0 && (0.9..1.1).contains(&rate(1)), "{} and {} Mpps", rate(0), rate(1));
}

#[cfg(target_os = "linux")]
#[test]
fn the_templates_run_live() {
    use nicforge_lab::live::{parse_live, run_live};
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for text in [
        include_str!("../src/new/interface/scenarios/my_ring_live.toml"),
        include_str!("../src/new/app/scenarios/my_app_live.toml"),
        include_str!("../src/new/stage/scenarios/my_stage_live.toml"),
    ] {
        let text = text.replace("captures/", &format!("{}/scenarios/captures/", root.display()));
        let text = text.replace("out/", &format!("{}/", folder.path().display()));
        let config = parse_live(&text, Path::new("live.toml"), &catalogue()).unwrap();
        run_live(&config, &Arc::default(), &mut |_| {}).unwrap();
        let written = folder.path().join(format!("{}.pcap", config.name()));
        assert!(std::fs::metadata(&written).unwrap().len() > 1000, "{}", written.display());
    }
}

/// Runs `command`, which must succeed.
fn ran(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}\n{}\n{}", stdout(&output), stderr(&output));
    output
}

fn target() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the folder is inside the target folder")
}

/// A crate that `nicforge new` wrote and Cargo built.
struct Outside {
    folder: PathBuf,
    program: PathBuf,
}

impl Outside {
    /// Writes and builds it beside the others.
    fn build(beside: &Path, kind: &str, name: &str) -> Outside {
        let nicforge = env!("CARGO_BIN_EXE_nicforge");
        ran(Command::new(nicforge).args(["new", kind, name]).current_dir(beside));
        let folder = beside.join(name);
        // With the workspace's versions: what both need of other crates is built once.
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        std::fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
        let outside = Outside { program: target().join("release").join(name), folder };
        outside.cargo(&["build", "--release", "--bins"]);
        outside
    }

    /// Cargo as its author has it, with the workspace's profiles and beside its artefacts: crates of others are not built
    /// again.
    fn cargo(&self, arguments: &[&str]) {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(arguments).arg("--quiet").current_dir(&self.folder).env("CARGO_TARGET_DIR", target());
        for (key, value) in [
            ("DEV_OPT_LEVEL", "1"),
            ("DEV_DEBUG", "line-tables-only"),
            ("RELEASE_DEBUG", "line-tables-only"),
            ("RELEASE_LTO", "thin"),
            ("RELEASE_CODEGEN_UNITS", "4"),
        ] {
            let key = format!("CARGO_PROFILE_{key}");
            if std::env::var_os(&key).is_none() {
                cargo.env(key, value);
            }
        }
        ran(&mut cargo);
    }

    fn command(&self, arguments: &[&str]) -> String {
        stdout(&ran(Command::new(&self.program).args(arguments).current_dir(&self.folder)))
    }

    /// All that an author has.
    fn show(&self, listed: &str, name: &str, key: &str) {
        assert!(self.command(&["list", listed]).contains(name));
        assert!(self.command(&["list", "settings"]).contains(key));
        let scenario = &format!("scenarios/{name}.toml");
        let point = format!("--set={key}=9");
        assert!(self.command(&["check", scenario, &point]).contains("2 points"));
        let short = ["--set", "window_ms=0.2", "--set", "warmup_ms=0.1", "--quiet"];
        self.command(&[&["run", scenario], &short[..]].concat());
        self.command(&["live", &format!("scenarios/{name}_live.toml")]);
        for written in [format!("out/{name}/latest/report.html"), format!("out/{name}_live/latest/report.json")] {
            assert!(self.folder.join(&written).is_file(), "{written}");
        }
        let points = std::fs::read_to_string(self.folder.join(format!("out/{name}/latest/points.csv"))).unwrap();
        assert!(points.lines().any(|line| line.starts_with(name)), "{points}");
        let misspelt = format!("{}x=9", &key[..key.len() - 1]);
        let wrong = Command::new(&self.program)
            .args(["check", scenario, "--set", &misspelt])
            .current_dir(&self.folder)
            .output()
            .unwrap();
        assert_eq!(wrong.status.code(), Some(2));
        assert!(stderr(&wrong).contains(key), "{}", stderr(&wrong));
    }
}

#[test]
fn a_written_crate_has_every_command() {
    if std::env::var_os("NICFORGE_OUTSIDE_CRATE").is_none() {
        skip::skipped("set NICFORGE_OUTSIDE_CRATE to build crates outside the repository");
        return;
    }
    let beside = tempfile::tempdir().unwrap();
    let interface = Outside::build(beside.path(), "interface", "swift_ring");
    interface.show("interfaces", "swift_ring", "swift_ring_doorbell");
    // All kinds have one manifest, so one of them shows that an author can run the suites. The dev profile has what tests
    // need of other crates from the workspace's own tests.
    interface.cargo(&["test", "--bins"]);
    Outside::build(beside.path(), "app", "port_filter").show("apps", "port_filter", "port_filter_lowest_port");
    Outside::build(beside.path(), "stage", "gate_keeper").show("stages", "gate_keeper", "gate_keeper_mpps");
}
