//! Runs on captures on both grounds, and tshark as their judge.

use std::path::Path;
use std::process::Command;

use pcap_file::pcap::{PcapPacket, PcapWriter};
use tempfile::TempDir;

use crate::common::{nicforge, stderr};

/// What a simulation said on standard error.
const SIM_SAID: &str = "sim.stderr";

/// Whether tshark is installed.
pub fn is_there() -> bool {
    Command::new("tshark").arg("--version").output().is_ok()
}

/// The fields of each frame of a capture that a filter wants, as tshark reads them: with checksums verified and fragments
/// put together.
pub fn decoded(capture: &Path, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(capture).args(["-Y", filter, "-T", "fields", "-E", "separator=,", "-E", "occurrence=f"]);
    for on in ["ip.check_checksum", "udp.check_checksum", "ip.defragment", "ipv6.defragment"] {
        command.args(["-o", &format!("{on}:TRUE")]);
    }
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output = command.output().unwrap();
    assert!(output.status.success(), "tshark: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// The frames of a capture.
pub fn frames(capture: &Path) -> Vec<Vec<u8>> {
    let mut reader = pcap_file::pcap::PcapReader::new(std::fs::File::open(capture).unwrap()).unwrap();
    let mut frames = Vec::new();
    while let Some(packet) = reader.next_packet() {
        frames.push(packet.unwrap().data.into_owned());
    }
    frames
}

/// Writes a capture of `frames`, a millisecond apart.
pub fn write_capture(capture: &Path, frames: &[Vec<u8>]) {
    let mut writer = PcapWriter::new(std::fs::File::create(capture).unwrap()).unwrap();
    for (number, frame) in (0..).zip(frames) {
        let at = std::time::Duration::from_millis(number);
        writer.write_packet(&PcapPacket::new(at, frame.len() as u32, frame)).unwrap();
    }
}

fn drops(folder: &TempDir, out: &str) -> serde_json::Value {
    let json = std::fs::read(folder.path().join(out).join("report.json")).unwrap();
    let mut report: serde_json::Value = serde_json::from_slice(&json).unwrap();
    report["points"][0]["metrics"]["drops"].take()
}

/// Runs a live file of the folder; its drops by cause.
pub fn live(folder: &TempDir, file: &str) -> serde_json::Value {
    let output = nicforge(folder, &["live", file, "--quiet", "--out", "out-live"]);
    assert!(output.status.success(), "{file}: {}", stderr(&output));
    drops(folder, "out-live")
}

/// Simulates an application on a capture of the folder, with one port, and writes `sim.pcap`; its drops by cause.
pub fn simulate(folder: &TempDir, app: &str, capture: &str, settings: &[&str]) -> serde_json::Value {
    let app = format!("app={app}");
    let mut arguments = vec!["run", "scenarios/nat-capture.toml", "--quiet", "--force", "--out", "out-sim"];
    arguments.extend(["--pcap", capture, "--pcap-out", "sim.pcap"]);
    let usual = [app.as_str(), "nics=1", "offered_gbps=1", "table_entries=100000"];
    let key = |set: &str| set.split('=').next().map(str::to_owned);
    let own = |set: &&&str| settings.iter().any(|other| key(other) == key(set));
    usual.iter().filter(|set| !own(set)).chain(settings).for_each(|set| arguments.extend(["--set", set]));
    let output = nicforge(folder, &arguments);
    assert!(output.status.success(), "{capture}: {}", stderr(&output));
    std::fs::write(folder.path().join(SIM_SAID), stderr(&output)).unwrap();
    drops(folder, "out-sim")
}

/// What the last simulation said on standard error.
pub fn simulation_said(folder: &TempDir) -> String {
    std::fs::read_to_string(folder.path().join(SIM_SAID)).unwrap()
}
