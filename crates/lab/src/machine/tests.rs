//! Machine files: the shipped one, and every way in which one can be wrong.

use super::*;

const SHIPPED: &str = include_str!("../../../../machines/xeon-4216-cx5.toml");

fn parse(text: &str) -> Result<Machine, ConfigError> {
    parse_machine(text, Path::new("machines/m.toml"))
}

/// The error after replacing `from` (which stands once) by `to` in the shipped file.
fn error_with(from: &str, to: &str) -> String {
    assert_eq!(SHIPPED.matches(from).count(), 1, "`{from}` stands once");
    parse(&SHIPPED.replace(from, to)).unwrap_err().to_string()
}

fn line_of(text: &str) -> usize {
    1 + SHIPPED.lines().position(|line| line.contains(text)).unwrap()
}

#[test]
fn the_shipped_machine_is_what_its_file_says() {
    let machine = parse(SHIPPED).unwrap();
    assert_eq!(machine.name, "m");
    assert_eq!(machine.hardware.cores, 16);
    assert_eq!(machine.hardware.core.frequency.as_hertz(), 2_100_000_000);
    assert_eq!(machine.hardware.llc.size.0, 22 << 20);
    assert_eq!(machine.hardware.llc.ways, 11);
    assert_eq!(machine.hardware.dram.idle_latency.as_ns(), 82.0);
    assert_eq!(machine.hardware.pcie.rate.as_gbps(), 125.0);
    assert!(machine.work_cycles.contains_key("nat"));
}

#[test]
fn every_number_keeps_its_unit_and_source() {
    let machine = parse(SHIPPED).unwrap();
    let row = machine.rows.iter().find(|row| row.key == "peak_gb_per_s").unwrap();
    assert_eq!((row.section.as_str(), row.unit), ("dram", "GB/s"));
    assert!(machine.rows.iter().all(|row| !row.source.is_empty()));
    assert!(machine.rows.iter().any(|row| row.section == "apps.nat"));
}

#[test]
fn a_wrong_unit_in_a_key_is_answered_with_the_right_one() {
    let error = error_with("frequency_ghz", "frequency_mhz");
    let line = line_of("frequency_ghz");
    let start = format!("machines/m.toml:{line}:1: unknown key `frequency_mhz`;");
    assert!(error.starts_with(&start), "{error}");
    assert!(error.ends_with("did you mean `frequency_ghz`?"), "{error}");
}

#[test]
fn a_value_outside_its_range_is_refused() {
    for bad in ["0", "-2.1", "nan", "inf", "\"2.1 GHz\"", "true", "1e300"] {
        let error = error_with("frequency_ghz = { value = 2.1,", &format!("frequency_ghz = {{ value = {bad},"));
        let line = line_of("frequency_ghz");
        assert!(error.starts_with(&format!("machines/m.toml:{line}:27: ")), "{error}");
        assert!(error.contains("a number, 0.1 to 20 GHz"), "{error}");
    }
}

#[test]
fn a_value_needs_a_source() {
    let error = error_with("{ value = 11, source = \"papers, set-up: 11 ways\" }", "11");
    assert!(error.contains("the number has no source; write { value = 11, source ="), "{error}");
    let error = error_with(", source = \"papers, set-up: 11 ways\"", "");
    assert!(error.contains("`source` is missing here; write {"), "{error}");
    let error = error_with("\"papers, set-up: 11 ways\"", "\"\"");
    assert!(error.contains("the source of `ways` is empty"), "{error}");
}

#[test]
fn a_missing_key_is_named_with_its_section() {
    let whole = SHIPPED.lines().find(|line| line.starts_with("tags =")).unwrap();
    let error = error_with(whole, "");
    let line = line_of("[pcie]");
    assert!(error.starts_with(&format!("machines/m.toml:{line}:")), "{error}");
    assert!(error.contains("`tags` is missing here; add tags = {"), "{error}");
}

#[test]
fn sections_are_known() {
    let error = error_with("[pcie]", "[pci]");
    assert!(error.contains("unknown key `pci`; did you mean `pcie`?"), "{error}");
}

#[test]
fn applications_are_known() {
    let error = error_with("[apps.nat]", "[apps.natt]");
    let line = line_of("[apps.nat]");
    let start = format!("machines/m.toml:{line}:");
    assert!(error.starts_with(&start), "{error}");
    let says = "unknown application `natt`; did you mean `nat`?";
    assert!(error.ends_with(says), "{error}");
}

/// Sizes that do not fit 11 ways (of 22 MiB) or 16 (of 1 MiB), and those that do.
#[test]
fn a_cache_has_a_power_of_two_of_sets() {
    for (size, wrong, right) in
        [(22528, 16896, [11264, 22528]), (22528, 22529, [22528, 45056]), (22528, 1, [11, 22]), (1024, 768, [512, 1024])]
    {
        let of = |size: u32| format!("size_kib = {{ value = {size},");
        let error = error_with(&of(size), &of(wrong));
        let [one, other] = right;
        assert!(error.contains(&format!("use {one} or {other} KiB")), "{error}");
        for right in right {
            parse(&SHIPPED.replace(&of(size), &of(right))).unwrap();
        }
    }
    let error = error_with("ways = { value = 11,", "ways = { value = 8,");
    assert!(error.contains("use 16384 or 32768 KiB"), "{error}");
}

#[test]
fn an_l2_can_tell_enough_memory_apart() {
    let of = |size: u32| format!("size_kib = {{ value = {size},");
    for (size, memory) in [(1, 64), (32, 2048)] {
        let error = error_with(&of(1024), &of(size));
        let place = format!("machines/m.toml:{}:", line_of(&of(1024)));
        assert!(error.starts_with(&place), "{error}");
        let says = format!("only {memory} MiB of memory are modelled; use 64 KiB or more");
        assert!(error.ends_with(&says), "{error}");
    }
    parse(&SHIPPED.replace(&of(1024), &of(64))).unwrap();
}

#[test]
fn pci_express_has_packets_of_some_sizes_only() {
    for (key, shipped) in [("max_payload_bytes", 256), ("max_read_request_bytes", 1024)] {
        let of = |bytes: u32| format!("{key} = {{ value = {bytes},");
        for (wrong, right) in [(100, "128"), (300, "256 or 512"), (64, "128"), (8192, "4096")] {
            let error = error_with(&of(shipped), &of(wrong));
            let says = format!("`{key}` cannot be {wrong}: not a power of two from 128 to 4096; {right} would do");
            assert!(error.ends_with(&says), "{error}");
        }
        for right in [128, 4096] {
            parse(&SHIPPED.replace(&of(shipped), &of(right))).unwrap();
        }
    }
}

#[test]
fn a_read_brings_no_more_descriptors_than_nics_have_room_for() {
    let error = error_with("descriptor_read_bytes = { value = 512,", "descriptor_read_bytes = { value = 2048,");
    assert!(error.contains("1 to 1024"), "{error}");
}

#[test]
fn the_resume_room_fits_the_transmit_buffer() {
    let of = |room: u32| format!("tx_resume_room_kib = {{ value = {room},");
    let error = error_with(&of(8), &of(29));
    assert!(error.contains("tx_buffer_kib is 28: there is never room of 29 KiB in it"), "{error}");
    assert!(error.contains("use 1 to 28"), "{error}");
    parse(&SHIPPED.replace(&of(8), &of(28))).unwrap();
}

#[test]
fn counts_are_whole_and_ways_fit() {
    let cores = SHIPPED.lines().find(|line| line.starts_with("cores =")).unwrap();
    let error = error_with(cores, &cores.replace("16", "127"));
    assert!(error.contains("a whole number, 1 to 126"), "{error}");
    assert!(error_with("channels = { value = 4,", "channels = { value = 4.5,").contains("whole"));
    let error = error_with("io_ways = { value = 2,", "io_ways = { value = 12,");
    assert!(error.contains("the LLC has 11 ways, not 12"), "{error}");
    let error = error_with("size_kib = { value = 22528,", "size_kib = { value = 22529,");
    assert!(error.contains("not a power of two of sets"), "{error}");
}

#[test]
fn first_level_and_tlb_have_a_power_of_two_of_sets() {
    for (key, right, wrong) in [("l1_kib", 32, 24), ("tlb_pages", 1536, 1500)] {
        let of = |size: u32| format!("{key} = {{ value = {size},");
        for fits in [0, right * 2] {
            parse(&SHIPPED.replace(&of(right), &of(fits))).unwrap();
        }
        let error = error_with(&of(right), &of(wrong));
        assert!(error.contains("not a power of two of sets") && error.contains(&right.to_string()), "{error}");
    }
}

#[test]
fn fitted_points_are_kept() {
    let text = SHIPPED.replace("cores = { value = 16, ", "cores = { value = 16, fitted = \"c1, c5\", ");
    let machine = parse(&text).unwrap();
    let row = machine.rows.iter().find(|row| row.key == "cores").unwrap();
    assert_eq!(row.fitted.as_deref(), Some("c1, c5"));
}

#[test]
fn tables_and_values_in_the_wrong_place_are_errors() {
    for bad in ["core = 3", "[apps]\nnat = 3", "[apps.nat]\nwork = 1", "[machine]\ntitle = 3", ""] {
        let error = parse(bad).unwrap_err().to_string();
        assert!(error.starts_with("machines/m.toml"), "{error}");
    }
}
