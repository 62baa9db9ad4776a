//! A layout as text and as a picture.

use std::fmt::Write;

use super::Target;
use super::layout::{Dependency, Layout, PlacedTable, Reason, StageUse};

fn kilobits(bits: u64) -> String {
    if bits >= 10 << 10 { format!("{} Kib", bits >> 10) } else { format!("{bits} b") }
}

fn percent(part: u64, whole: u64) -> u64 {
    (part * 100).checked_div(whole).unwrap_or(0)
}

fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Match => "its key reads",
        Reason::Action => "its actions use",
        Reason::Control => "runs only after the result of",
    }
}

fn why(table: &PlacedTable) -> Vec<String> {
    let line = |dependency: &Dependency| match &dependency.field {
        Some(field) => {
            format!("after {}: {} {field}, which that table writes", dependency.from, reason(dependency.reason))
        }
        None => format!("not before {}: it {} that table", dependency.from, reason(dependency.reason)),
    };
    table.after.iter().map(line).collect()
}

fn stage_name(layout: &Layout, target: &Target, number: usize) -> String {
    match layout.pipelines.get(number / target.stages.max(1)) {
        Some(pipeline) => format!("{pipeline}, stage {}", number % target.stages.max(1)),
        None => format!("stage {number}"),
    }
}

/// A layout as text.
pub fn to_text(layout: &Layout, target: &Target) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(text, "target {}: {} stages", target.name, target.stages);
    let _ = writeln!(
        text,
        "parser: {} of {} states, {} of {} bytes; headers and metadata: {} of {} bits",
        layout.parser_depth,
        target.parser_depth,
        layout.parser_bytes,
        target.parser_bytes,
        layout.header_bits,
        target.header_bits
    );
    let nanoseconds = layout.cycles * 1000 / target.clock_mhz.max(1);
    let _ = writeln!(text, "latency: {} cycles ({nanoseconds} ns)", layout.cycles);
    if layout.transfers > 0 {
        let _ = writeln!(text, "DMA: {} of {} transfers of a packet", layout.transfers, target.transfers);
    }
    let used = |stage: &StageUse| stage.tables > 0 || stage.sram_bits > 0;
    for (number, stage) in layout.stages.iter().enumerate().filter(|(_, stage)| used(stage)) {
        let _ = writeln!(
            text,
            "{}: SRAM {} ({} %), TCAM {} ({} %), {} of {} actions",
            stage_name(layout, target, number),
            kilobits(stage.sram_bits),
            percent(stage.sram_bits, target.sram_bits),
            kilobits(stage.tcam_bits),
            percent(stage.tcam_bits, target.tcam_bits),
            stage.actions,
            target.actions
        );
        for table in layout.tables.iter().filter(|table| (table.stages.0..=table.stages.1).contains(&number)) {
            let _ = writeln!(text, "  {} ({} entries, {} actions)", table.name, table.entries, table.actions);
            if table.stages.0 == number {
                for line in why(table) {
                    let _ = writeln!(text, "    {line}");
                }
            }
        }
    }
    text
}

const COLUMN: usize = 190;
const ROW: usize = 46;

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A layout as a picture: a column per stage, a box per table, an arrow per dependency.
pub fn to_svg(layout: &Layout, target: &Target) -> String {
    let used = layout.tables.iter().map(|table| table.stages.1 + 1).max().unwrap_or(1);
    let rows = layout.tables.len().max(1);
    let (width, height) = (used * COLUMN + 20, rows * ROW + 90);
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">"
    );
    let _ = writeln!(
        svg,
        "<defs><marker id=\"a\" markerWidth=\"8\" markerHeight=\"8\" refX=\"7\" refY=\"4\" orient=\"auto\">\
         <path d=\"M0,0 L8,4 L0,8 z\" fill=\"#555\"/></marker></defs>"
    );
    for (number, stage) in layout.stages.iter().enumerate().take(used) {
        let x = 10 + number * COLUMN;
        let (sram, tcam) = (percent(stage.sram_bits, target.sram_bits), percent(stage.tcam_bits, target.tcam_bits));
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"10\" width=\"{}\" height=\"{}\" fill=\"#f4f4f4\" stroke=\"#ccc\"/>\
             <text x=\"{}\" y=\"28\">{}</text><text x=\"{}\" y=\"44\" fill=\"#666\">SRAM {sram} %, TCAM {tcam} %</text>",
            COLUMN - 20,
            height - 20,
            x + 8,
            escape(&stage_name(layout, target, number)),
            x + 8
        );
    }
    let box_at = |row: usize, table: &PlacedTable| (18 + table.stages.0 * COLUMN, 60 + row * ROW);
    for (row, table) in layout.tables.iter().enumerate() {
        let (x, y) = box_at(row, table);
        let wide = (table.stages.1 - table.stages.0 + 1) * COLUMN - 36;
        let short: String = table.name.chars().rev().take(24).collect::<Vec<_>>().into_iter().rev().collect();
        let _ = writeln!(
            svg,
            "<g><title>{}</title><rect x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"32\" rx=\"4\" fill=\"#dbe9ff\" stroke=\"#4a78c2\"/>\
             <text x=\"{}\" y=\"{}\">{}</text></g>",
            escape(&why(table).join("\n")),
            x + 6,
            y + 20,
            escape(&short)
        );
        for dependency in &table.after {
            let from = layout.tables.iter().position(|other| other.name == dependency.from);
            if let Some(other) = from {
                let (from_x, from_y) = box_at(other, &layout.tables[other]);
                let dash = if dependency.reason == Reason::Control { " stroke-dasharray=\"4\"" } else { "" };
                let _ = writeln!(
                    svg,
                    "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{y}\" stroke=\"#555\" marker-end=\"url(#a)\"{dash}/>",
                    from_x + 60,
                    from_y + 32,
                    x + 60
                );
            }
        }
    }
    svg.push_str("</svg>\n");
    svg
}
