//! A run whose counts do not add up: a defect of ours, of which the report is what there is to look at.

use std::process::ExitCode;

use nicforge_lab::live::{parse_live, run_live_over};
use nicforge_platform::live::LiveError;
use nicforge_platform::live::ports::{Port, PortCounters};
use nicforge_units::Time;

use super::*;

/// A port that says that a frame went out whenever it is asked for one that came in.
#[derive(Default)]
struct Multiplies(PortCounters);

impl Port for Multiplies {
    fn receive(&mut self, _budget: usize, _each: &mut dyn FnMut(&[u8])) -> Result<usize, LiveError> {
        self.0.sent += 1;
        Ok(0)
    }

    fn send(&mut self, _frame: &[u8], _now: Time) -> Result<(), LiveError> {
        Ok(())
    }

    fn counters(&self) -> &PortCounters {
        &self.0
    }

    fn counters_mut(&mut self) -> &mut PortCounters {
        &mut self.0
    }
}

#[test]
fn a_run_that_does_not_add_up_fails_and_has_a_report() {
    let text = "[live]\nname = \"x\"\nduration_s = 0.1\n[settings]\ninterface = \"priv_ring\"\napp = \"l2fwd\"\n\
                [[port]]\nread = \"a\"\n[[port]]\nread = \"b\"\n";
    let config = parse_live(text, Path::new("x.toml"), &catalogue()).unwrap();
    let ports = || Box::new(Multiplies::default()) as Box<dyn Port>;
    let run = run_live_over(&config, vec![ports(), ports()], &AtomicBool::new(false), &mut |_| {});
    let folder = tempfile::tempdir().unwrap();
    let results = RunPlace::of_next(Some(folder.path()), "x");
    let mut made = Made::default();
    made.folder_of_report(&results.folder).unwrap();
    let written = write_down(&config, run, Instant::now(), &results, &mut made).unwrap();
    assert!(written.lost.is_some_and(|error| error.report() == ExitCode::FAILURE));
    let report = std::fs::read_to_string(results.folder.join("report.json")).unwrap();
    assert_eq!(report, to_json(&written.record));
    assert!(written.snapshot.device.nics.iter().any(|nic| nic.port.sent > 0));
    assert!(results.folder.join("report.html").exists());
}
