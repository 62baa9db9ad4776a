//! The machine file: measured numbers, and for the rest those of a shipped machine, each with the
//! reason why it was not measured.

use std::path::Path;

use nicforge_lab::machine::{Machine, Row, parse_machine};

use super::measure::Found;
use super::system::System;

/// How the file of a measured machine begins.
pub const MEASURED: &str = "# Written by `nicforge machine measure`";
/// The machine whose numbers stand in.
const STAND_IN: &str = "xeon-4216-cx5";
const STAND_IN_FILE: &str = include_str!("../../../../machines/xeon-4216-cx5.toml");

/// The machine that stands in.
pub fn stand_in() -> Machine {
    // It is shipped with the program, and every build parses it in its tests.
    parse_machine(STAND_IN_FILE, Path::new(STAND_IN)).expect("the shipped machine file")
}

/// The text of the file.
pub fn text(system: &System, found: &Found) -> String {
    let processor = system.processor.as_deref().unwrap_or("a processor without a name");
    let mut text = format!(
        "{MEASURED} on this machine: {processor}.\n\
         # \"measured\" and \"the system\" are of this machine; \"not measured\" says why, and whose number\n\
         # stands in. What the file has no key for:\n"
    );
    for note in &found.notes {
        text.push_str(&format!("# - {note}\n"));
    }
    text.push_str(&format!("\n[machine]\ntitle = {}\n", quoted(&format!("{processor}, measured; the NIC stands in"))));
    let rows = stand_in().rows;
    let mut sections: Vec<&str> = Vec::new();
    for row in &rows {
        if !sections.contains(&&*row.section) {
            sections.push(&row.section);
        }
    }
    for section in sections {
        if section != "machine" {
            text.push_str(&format!("\n[{section}]\n"));
        }
        for row in rows.iter().filter(|row| row.section == section) {
            text.push_str(&line(row, found));
        }
    }
    text
}

fn line(row: &Row, found: &Found) -> String {
    let (value, source) = match found.row(&row.section, row.key) {
        Some(measured) => (measured.value, measured.how.clone()),
        None => {
            let reason = reason(&row.section, row.key);
            let fitted = row.fitted.as_ref().map_or("", |_| " and fitted there");
            let source = format!("not measured: {reason}; stands in from {STAND_IN}{fitted}: {}", row.source);
            (limited(row, found), source)
        }
    };
    let source = quoted(&source);
    format!("{} = {{ value = {value}, source = {source} }}\n", row.key)
}

/// A number that stands in, within what this machine's own allow.
fn limited(row: &Row, found: &Found) -> f64 {
    let ways = found.value("llc", "ways").filter(|_| row.key == "io_ways");
    ways.map_or(row.value, |ways| row.value.min(ways))
}

/// Why a number cannot be measured by a program without a NIC and without privilege.
fn reason(section: &str, key: &str) -> &'static str {
    match (section, key) {
        ("pcie", _) => "no device of ours is on the bus",
        ("nic", _) => "there is no NIC of this design",
        ("machine", "nics") => "there is no NIC of this design",
        ("llc", "io_ways") => "only some processors let devices write into the cache, and none says how far",
        ("llc" | "l2", _) => "the system does not say",
        ("dram", "channels") => "only the board knows",
        ("dram", "queueing") => "it needs a load that can be set finely",
        ("other_socket", _) => "threads are not bound to nodes here",
        ("core", "l2_streamer_lines" | "l1_kib" | "l2_pair_line" | "tlb_pages" | "write_combining_buffers") => {
            "it needs the processor's counters"
        }
        ("core", _) => "it is the work of a driver of another NIC",
        _ => "it is the work of software that is not ours",
    }
}

/// A TOML string.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
    // Control characters have no place in one line.
    let shown = escaped.chars().map(|c| if c.is_control() { ' ' } else { c });
    format!("\"{}\"", shown.collect::<String>())
}

#[cfg(test)]
mod tests {
    use nicforge_platform::sim::{Host, Lent, SimCore, SimCpu};
    use nicforge_platform::{AddressSpace, Cpu};

    use super::*;
    use crate::machine::measure::{Measured, memory_latency};

    #[test]
    fn nothing_measured_is_the_machine_that_stands_in_with_reasons() {
        let text = text(&System::default(), &Found::default());
        let machine = parse_machine(&text, Path::new("this.toml")).unwrap();
        let stand_in = stand_in();
        assert_eq!(machine.hardware, stand_in.hardware);
        assert_eq!(machine.work_cycles, stand_in.work_cycles);
        for row in &machine.rows {
            assert!(row.source.starts_with("not measured: "), "{}", row.source);
            assert!(row.source.contains("stands in from xeon-4216-cx5"));
        }
    }

    /// Nanoseconds per load of a walk through memory on a machine of which these were measured.
    fn simulated_walk(found: &Found) -> f64 {
        let text = text(&System::default(), found);
        let hardware = parse_machine(&text, Path::new("this.toml")).unwrap().hardware;
        let mut space = AddressSpace::default();
        // So far apart that none brings another along.
        let (loads, apart) = (64, 1 << 14);
        let first = space.data(loads * apart, apart);
        let (mut host, link) = (Lent::new(Host::new(&hardware, &space)), &hardware.pcie);
        let mut core = Lent::new(SimCore::new(0, &hardware.core, link.mmio_write, link.mmio_read));
        core.begin_burst();
        let mut cpu = SimCpu::on(&mut host, &mut core);
        let began = cpu.now();
        for load in 0..loads {
            let _: u64 = cpu.load(first + load * apart);
        }
        (cpu.now() - began).as_ns() / loads as f64
    }

    #[test]
    fn a_simulated_walk_takes_what_was_measured() {
        let mut found = Found::default();
        memory_latency(&mut found, 95e-9, "measured: a walk");
        let walk = simulated_walk(&found);
        assert!((walk - 95.0).abs() < 1.0, "{walk} ns with the cache that stands in");
        let mut found = Found::default();
        let (at, how) = (("llc", "hit_ns"), "measured".into());
        let value = 31.0;
        found.rows.push(Measured { at, value, how });
        memory_latency(&mut found, 131.4e-9, "measured: a walk");
        assert_eq!(found.value("dram", "idle_latency_ns"), Some(100.4));
        let walk = simulated_walk(&found);
        assert!((walk - 131.4).abs() < 1.0, "{walk} ns with a measured cache");
    }

    #[test]
    fn a_name_with_quotes_is_still_a_file() {
        let system = System { processor: Some("a \"fast\" \\ one\t".into()), ..System::default() };
        let text = text(&system, &Found::default());
        let machine = parse_machine(&text, Path::new("this.toml")).unwrap();
        assert!(machine.title.starts_with("a \"fast\" \\ one"), "{}", machine.title);
    }
}
