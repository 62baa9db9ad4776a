//! A packet's way, step by step.

use std::fmt::Write;

use num_bigint::BigUint;
use serde::Serialize;

use super::ir::{Ir, Match, NamedField};
use super::machine::Machine;

/// A step of a packet's way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the names say it")]
pub enum Event {
    /// A parser or control of the architecture begins.
    Stage {
        name: String,
    },
    State {
        name: String,
    },
    Extract {
        header: String,
        fields: Vec<FieldValue>,
        bits: u64,
    },
    /// The parser met an error.
    ParserError {
        error: String,
    },
    Table {
        table: String,
        keys: Vec<FieldValue>,
        hit: bool,
        entry: Option<String>,
    },
    Action {
        action: String,
        data: Vec<FieldValue>,
    },
    Assign {
        field: String,
        value: String,
    },
    Extern {
        function: String,
        inputs: Vec<String>,
        outputs: Vec<String>,
    },
    Emit {
        header: String,
    },
    Log {
        message: String,
    },
    /// Where the packet goes.
    Exit {
        to: String,
    },
}

/// A field and its value in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct FieldValue {
    pub name: String,
    pub value: String,
}

/// A value in hexadecimal.
pub fn hex(limbs: &[u64]) -> String {
    format!("0x{}", to_big(limbs).to_str_radix(16))
}

/// A value as a big number.
pub(crate) fn to_big(limbs: &[u64]) -> BigUint {
    let digits = limbs.iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]).collect();
    BigUint::new(digits)
}

/// The key of an entry as people write it.
pub fn show_match(key: &Match) -> String {
    match key {
        Match::Exact(value) => hex(value),
        Match::Lpm(value, length) => format!("{}/{length}", hex(value)),
        Match::Ternary(value, mask) => format!("{} &&& {}", hex(value), hex(mask)),
        Match::Range(low, high) => format!("{} .. {}", hex(low), hex(high)),
        Match::Any => "_".to_owned(),
    }
}

/// The field that begins at a word.
pub(crate) fn field_at(ir: &Ir, word: u32) -> Option<&NamedField> {
    ir.fields.iter().find(|field| field.slot.word == word)
}

/// Name and value of a field as the frame has it.
pub(crate) fn field_value(machine: &Machine, field: &NamedField) -> FieldValue {
    let limbs = machine.slot(field.slot);
    let value = if field.varbit { format!("{} ({} bits)", hex(&limbs[1..]), limbs[0]) } else { hex(limbs) };
    FieldValue { name: field.name.clone(), value }
}

/// A trace as text, one line a step.
pub fn to_text(events: &[Event]) -> String {
    let mut text = String::new();
    for event in events {
        // Writing to a string does not fail.
        let _ = match event {
            Event::Stage { name } => writeln!(text, "{name}"),
            Event::State { name } => writeln!(text, "  state {name}"),
            Event::Extract { header, fields, bits } => {
                writeln!(text, "    extract {header} ({bits} bits): {}", list(fields))
            }
            Event::ParserError { error } => writeln!(text, "    parser error {error}"),
            Event::Table { table, keys, hit, entry } => {
                let result = if *hit { "hit" } else { "miss" };
                let entry = entry.as_ref().map(|entry| format!(" [{entry}]")).unwrap_or_default();
                writeln!(text, "  table {table}: {} -> {result}{entry}", list(keys))
            }
            Event::Action { action, data } => writeln!(text, "    action {action}({})", list(data)),
            Event::Assign { field, value } => writeln!(text, "    {field} = {value}"),
            Event::Extern { function, inputs, outputs } => {
                writeln!(text, "    {function}({}) -> {}", inputs.join(", "), outputs.join(", "))
            }
            Event::Emit { header } => writeln!(text, "    emit {header}"),
            Event::Log { message } => writeln!(text, "    log: {message}"),
            Event::Exit { to } => writeln!(text, "-> {to}"),
        };
    }
    text
}

fn list(fields: &[FieldValue]) -> String {
    let parts: Vec<String> = fields.iter().map(|field| format!("{} = {}", field.name, field.value)).collect();
    parts.join(", ")
}
