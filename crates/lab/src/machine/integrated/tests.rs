//! The shipped machine against the data sheet, and places that a user's file adds.

use std::path::Path;

use nicforge_interfaces::sinic::DriverOptions;
use nicforge_options::ConfigError;

use super::super::{Machine, parse_machine};
use super::*;
use crate::settings::Catalogue;
use crate::settings::Settings;

const SHIPPED: &str = include_str!("../../../../../machines/m5-10gbe.toml");

fn parse(text: &str) -> Result<Machine, ConfigError> {
    parse_machine(text, Path::new("machines/mine.toml"))
}

fn shipped() -> Integrated {
    parse(SHIPPED).unwrap().integrated.unwrap()
}

/// The defaults as appendix A.4 prints them. Not here: the address, which is given out; delays for runs
/// without a memory model, and what "currently" has no effect there and is not here either (clock,
/// rx_delay, tx_delay, rx_filter). `dma_no_allocate` is a test of systems/attachment.rs.
const SHEET: [(&str, &str); 15] = [
    ("rx_fifo_size", "512kB"),
    ("tx_fifo_size", "512kB"),
    ("intr_delay", "10 μs"),
    ("rx_thread", "False"),
    ("tx_thread", "False"),
    ("rss", "False"),
    ("rx_max_copy", "1514B"),
    ("tx_max_copy", "16kB"),
    ("rx_max_intr", "10"),
    ("rx_fifo_threshold", "48kB"),
    ("tx_fifo_threshold", "16kB"),
    ("virtual_nic", "False"),
    ("zero_copy", "False"),
    ("delay_copy", "False"),
    ("virtual_addr", "False"),
];

/// A size as the sheet writes it.
fn bytes(size: Bytes) -> String {
    match size.0 % 1024 {
        0 => format!("{}kB", size.0 / 1024),
        _ => format!("{}B", size.0),
    }
}

/// A truth as the sheet writes it.
fn truth(is: bool) -> String {
    if is { "True".into() } else { "False".into() }
}

#[test]
fn a_device_is_set_up_as_appendix_a_4_has_it() {
    let machine = parse(SHIPPED).unwrap();
    let settings = Settings::for_machine(&Catalogue::shipped(), &machine);
    let machine = machine.integrated.unwrap();
    let (nic, sinic) = (&machine.nic, &machine.sinic);
    // What software is told besides comes from settings and from the interface's name.
    let advised = |name: &str| truth(sinic.advice != 0 || settings.interface().contains(name));
    let here = |option: &str| match option {
        "rx_fifo_size" => bytes(nic.rx_fifo),
        "tx_fifo_size" => bytes(nic.tx_fifo),
        "intr_delay" => format!("{} μs", nic.interrupt_delay.as_ns() / 1e3),
        "rx_thread" => truth(settings.read::<DriverOptions>().receive_thread),
        "tx_thread" => truth(settings.read::<DriverOptions>().transmit_thread),
        "rss" => truth(settings.read::<DriverOptions>().spread_receive),
        "rx_max_copy" => bytes(sinic.rx_max_copy),
        "tx_max_copy" => bytes(sinic.tx_max_copy),
        "rx_max_intr" => sinic.rx_max_intr.to_string(),
        "rx_fifo_threshold" => bytes(sinic.rx_fifo_mark),
        "tx_fifo_threshold" => bytes(sinic.tx_fifo_mark),
        "virtual_nic" => advised("v_sinic"),
        "zero_copy" => advised("zero_copy"),
        "delay_copy" => advised("delayed_copy"),
        "virtual_addr" => truth(Options::ADVICE & sinic.advice != 0),
        _ => "not compared".into(),
    };
    for (option, default) in SHEET {
        assert_eq!(here(option), default, "{option}");
    }
}

/// A place of a user's own: off the die by one bridge, and header lines to the cache.
const NEAR: &str = r#"
[placements.NEAR]
cpu_die_bridges = { value = 1, source = "own board" }
chipset_bridges = { value = 0, source = "own board" }
io_bridges = { value = 0, source = "own board" }
pcie = { value = 0, source = "own board" }
hypertransport = { value = 0, source = "own board" }
off_chip_memory = { value = 0, source = "own board" }
registers_at_cache = { value = 0, source = "own board" }
data_at_cache = { value = 0, source = "own board" }
lines_to_cache = { value = 2, source = "own board" }
"#;

#[test]
fn a_file_may_add_a_place_of_its_own() {
    let machine = parse(&format!("{SHIPPED}{NEAR}")).unwrap();
    let integrated = machine.integrated.as_ref().unwrap();
    assert_eq!(integrated.placements.len(), shipped().placements.len() + 1);
    let at = |name: &str| {
        let placement = integrated.placement(name).unwrap();
        Attachment::new(integrated, placement, integrated.frequency, integrated.l2.size)
    };
    let (near, on_die) = (at("NEAR"), at("OCM"));
    assert_eq!(near.lines_to_cache, 2);
    // Its one bridge there and back.
    let farther = near.hardware.pcie.mmio_read - on_die.hardware.pcie.mmio_read;
    assert_eq!(farther, integrated.bridges.cpu_die * 2);
    // What is found in the report, and where it is said to be from.
    let row = machine.rows.iter().find(|row| row.section == "placements.NEAR" && row.key == "lines_to_cache");
    assert_eq!(row.unwrap().source, "own board");
}

/// The error of a machine with `NEAR`, `from` replaced by `to` in it; the line is that of `at`.
#[track_caller]
fn refused(from: &str, to: &str, at: &str, says: &[&str]) {
    assert_eq!(NEAR.matches(from).count(), 1, "`{from}` stands once");
    let text = format!("{SHIPPED}{}", NEAR.replace(from, to));
    let error = parse(&text).unwrap_err().to_string();
    let line = 1 + text.lines().position(|line| line.starts_with(at)).unwrap();
    assert!(error.starts_with(&format!("machines/mine.toml:{line}:")), "line {line}: {error}");
    for part in says {
        assert!(error.contains(part), "`{part}` in: {error}");
    }
}

#[test]
fn a_place_that_cannot_be_is_refused_where_it_is_said() {
    refused("io_bridges", "io_brigdes", "io_brigdes", &["unknown key `io_brigdes`", "did you mean `io_bridges`?"]);
    let pcie = "pcie = { value = 0, source = \"own board\" }";
    refused(pcie, &pcie.replace('0', "2"), "pcie = { value = 2", &["`pcie`", "2", "0 to 1"]);
    let lines = "lines_to_cache = { value = 2, source = \"own board\" }";
    refused(
        lines,
        &lines.replace('2', "1.5"),
        "lines_to_cache = { value = 1.5",
        &["`lines_to_cache` takes a whole number"],
    );
    refused(lines, "lines_to_cache = 2", "lines_to_cache = 2", &["the number has no source", "source"]);
    // A key that is not there: at the place that lacks it.
    refused(lines, "", "[placements.NEAR]", &["`lines_to_cache` is missing here", "add lines_to_cache = { value = …"]);
}

#[test]
fn a_machine_without_placements_is_refused_with_a_remedy() {
    let first = SHIPPED.find("[placements.STE]").unwrap();
    let apps = SHIPPED.find("[apps.").unwrap();
    let text = format!("{}{}", &SHIPPED[..first], &SHIPPED[apps..]);
    let error = parse(&text).unwrap_err().to_string();
    assert!(error.starts_with("machines/mine.toml:"), "{error}");
    assert!(error.contains("no place for its NICs"), "{error}");
    assert!(error.contains("add [placements.NAME]"), "{error}");
}
