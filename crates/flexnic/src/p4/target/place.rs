//! Placement: each table in the first stage that its dependencies and the memory allow.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Target;
use super::access::{self, Access};
use crate::p4::hir::MatchKind;
use crate::p4::ir::{Function, Ir, ObjectKind, Op, TableInfo};
use crate::p4::pipeline::Program;

/// Why a table comes after another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Its key reads what the other's actions write.
    Match,
    /// Its actions read or write what the other's actions write.
    Action,
    /// The other's result decides whether it runs; it may share a stage.
    Control,
}

/// A dependency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dependency {
    /// The earlier table.
    pub from: String,
    /// Why.
    pub reason: Reason,
    /// A field that both touch.
    pub field: Option<String>,
}

/// A table and its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlacedTable {
    /// Name for the control plane.
    pub name: String,
    /// Control that applies it.
    pub control: String,
    /// First and last stage, from 0; a large table takes several.
    pub stages: (usize, usize),
    /// Entries that it has room for.
    pub entries: u64,
    /// Bits of SRAM and TCAM.
    pub sram_bits: u64,
    /// Bits of TCAM.
    pub tcam_bits: u64,
    /// Actions.
    pub actions: usize,
    /// What it waits for.
    pub after: Vec<Dependency>,
}

/// What a stage holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StageUse {
    /// Bits of SRAM.
    pub sram_bits: u64,
    /// Bits of TCAM.
    pub tcam_bits: u64,
    /// Tables.
    pub tables: usize,
    /// Actions.
    pub actions: usize,
}

/// A program on a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Layout {
    /// Tables in the order of application.
    pub tables: Vec<PlacedTable>,
    /// Stages.
    pub stages: Vec<StageUse>,
    /// Bits of headers and metadata.
    pub header_bits: u64,
    /// States on the longest way through the parser.
    pub parser_depth: usize,
    /// Bytes on that way.
    pub parser_bytes: u64,
    /// Cycles from the first bit to the deparser.
    pub cycles: u64,
}

/// One thing that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Misfit {
    #[error("the chain of tables {} needs {needs} stages, the target has {has}", .chain.join(" -> "))]
    Stages { chain: Vec<String>, needs: usize, has: usize },
    #[error("table `{table}` needs {needs} bits of {memory}, the target has {has} in all stages that are left for it")]
    Memory { table: String, memory: &'static str, needs: u64, has: u64 },
    #[error("table `{table}` has {needs} actions, a stage has room for {has}")]
    Actions { table: String, needs: usize, has: usize },
    #[error("headers and metadata have {needs} bits, the target carries {has}")]
    HeaderBits { needs: u64, has: u64 },
    #[error("the parser's longest way has {needs} states, the target's has {has}")]
    ParserDepth { needs: usize, has: usize },
    #[error("the parser looks at {needs} bytes, the target's looks at {has}")]
    ParserBytes { needs: u64, has: u64 },
    #[error("control `{control}` has a loop, which a pipeline of stages cannot run")]
    Loop { control: String },
    #[error("control `{control}` multiplies or divides, which the target cannot do")]
    Multiply { control: String },
    #[error(
        "table `{table}` matches the tag `{field}` with {kind}, so that rules of one application may match packets of another: match it exactly"
    )]
    Tag { table: String, field: String, kind: String },
    #[error("actions of table `{table}` write the tag `{field}`, which only the operating system's tables may")]
    WritesTag { table: String, field: String },
    #[error("table `{table}` is applied in more than one place")]
    AppliedTwice { table: String },
}

/// All that does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// At least one.
    pub misfits: Vec<Misfit>,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for misfit in &self.misfits {
            writeln!(out, "{misfit}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Refusal {}

/// Places a program on a target, or says what does not fit.
pub fn place(program: &Program, target: &Target) -> Result<Layout, Refusal> {
    let ir = program.ir();
    let mut placer = Placer {
        ir,
        target,
        stages: vec![StageUse::default(); target.stages],
        tables: Vec::new(),
        misfits: Vec::new(),
    };
    let (parser, controls) = ir.functions.split_first().map_or((None, &[][..]), |(first, rest)| (Some(first), rest));
    let (parser_depth, parser_bytes) = parser.map_or((0, 0), longest_parse);
    let header_bits = header_bits(ir);
    let mut start = 0;
    for control in controls {
        start = placer.control(control, start);
    }
    if header_bits > target.header_bits {
        placer.misfits.push(Misfit::HeaderBits { needs: header_bits, has: target.header_bits });
    }
    if parser_depth > target.parser_depth {
        placer.misfits.push(Misfit::ParserDepth { needs: parser_depth, has: target.parser_depth });
    }
    if parser_bytes > target.parser_bytes {
        placer.misfits.push(Misfit::ParserBytes { needs: parser_bytes, has: target.parser_bytes });
    }
    if !placer.misfits.is_empty() {
        return Err(Refusal { misfits: placer.misfits });
    }
    let used = placer.tables.iter().map(|table| table.stages.1 + 1).max().unwrap_or(0);
    let cycles = parser_depth as u64 * target.parser_cycles + used as u64 * target.stage_cycles;
    Ok(Layout { tables: placer.tables, stages: placer.stages, header_bits, parser_depth, parser_bytes, cycles })
}

struct Placer<'a> {
    ir: &'a Ir,
    target: &'a Target,
    stages: Vec<StageUse>,
    tables: Vec<PlacedTable>,
    misfits: Vec<Misfit>,
}

/// Where a table of the present control landed, and the chain that leads to it.
struct Landed {
    last: usize,
    chain: Vec<String>,
}

impl Placer<'_> {
    /// Places the tables of a control from a stage on; returns the first stage for the next control.
    fn control(&mut self, function: &Function, start: usize) -> usize {
        let (order, access, extras) = access::analyse(self.ir, function);
        let control = function.name.clone();
        if extras.loops && !self.target.loops {
            self.misfits.push(Misfit::Loop { control: control.clone() });
        }
        if extras.multiplies && !self.target.multiply {
            self.misfits.push(Misfit::Multiply { control: control.clone() });
        }
        for table in &extras.applied_twice {
            self.misfits.push(Misfit::AppliedTwice { table: self.ir.tables[*table].path.to_string() });
        }
        let mut landed: BTreeMap<usize, Landed> = BTreeMap::new();
        for (position, table) in order.iter().enumerate() {
            let (mut earliest, mut chain, mut after) = (start, Vec::new(), Vec::new());
            for before in &order[..position] {
                let Some((reason, word)) = dependency(*before, &access[before], &access[table]) else { continue };
                let from = self.ir.tables[*before].path.to_string();
                let field = word.and_then(|word| self.field(word));
                after.push(Dependency { from, reason, field });
                if let Some(other) = landed.get(before) {
                    let stage = other.last + usize::from(reason != Reason::Control);
                    if stage > earliest || chain.is_empty() {
                        earliest = earliest.max(stage);
                        chain.clone_from(&other.chain);
                    }
                }
            }
            chain.push(self.ir.tables[*table].path.to_string());
            if let Some(last) = self.table(*table, &control, earliest, &chain, after, &access[table]) {
                landed.insert(*table, Landed { last, chain });
            }
        }
        landed.values().map(|landed| landed.last + 1).max().unwrap_or(start)
    }

    /// Rules of an application match the operating system's tag, and do not change it.
    fn protect(&mut self, info: &TableInfo, access: &Access) {
        let mut tagged = info.keys.iter().zip(&access.each_key);
        let tagged = tagged.find(|(key, _)| key.annotations.iter().any(|given| &*given.name == "tag"));
        let Some((key, words)) = tagged else { return };
        let (table, field) = (info.path.to_string(), key.name.to_string());
        if words.iter().any(|word| access.writes.contains(word)) {
            self.misfits.push(Misfit::WritesTag { table: table.clone(), field: field.clone() });
        }
        if key.kind != MatchKind::Exact {
            self.misfits.push(Misfit::Tag { table, field, kind: format!("{:?}", key.kind).to_lowercase() });
        }
    }

    fn field(&self, word: u32) -> Option<String> {
        let inside = |slot: crate::p4::ir::Slot| (slot.word..slot.word + slot.words() as u32).contains(&word);
        self.ir
            .fields
            .iter()
            .find(|field| inside(field.slot) || field.valid == Some(word))
            .map(|field| field.name.clone())
    }

    fn table(
        &mut self,
        number: usize,
        control: &str,
        earliest: usize,
        chain: &[String],
        after: Vec<Dependency>,
        access: &Access,
    ) -> Option<usize> {
        let info = &self.ir.tables[number];
        let name = info.path.to_string();
        let need = self.need(info, access);
        self.protect(info, access);
        if info.actions.len() > self.target.actions {
            self.misfits.push(Misfit::Actions { table: name, needs: info.actions.len(), has: self.target.actions });
            return None;
        }
        let has_room = |stage: &StageUse| {
            stage.tables < self.target.tables && stage.actions + info.actions.len() <= self.target.actions
        };
        let (mut sram, mut tcam) = (need.sram_bits, need.tcam_bits);
        let mut first = None;
        for at in earliest..self.target.stages {
            if !has_room(&self.stages[at]) {
                continue;
            }
            let stage = &mut self.stages[at];
            let (take_sram, take_tcam) =
                (sram.min(self.target.sram_bits - stage.sram_bits), tcam.min(self.target.tcam_bits - stage.tcam_bits));
            let needs_none = sram == 0 && tcam == 0;
            if take_sram == 0 && take_tcam == 0 && !needs_none {
                continue;
            }
            stage.sram_bits += take_sram;
            stage.tcam_bits += take_tcam;
            stage.tables += 1;
            stage.actions += info.actions.len();
            (sram, tcam) = (sram - take_sram, tcam - take_tcam);
            let start = *first.get_or_insert(at);
            if sram == 0 && tcam == 0 {
                self.tables.push(PlacedTable {
                    name,
                    control: control.to_owned(),
                    stages: (start, at),
                    entries: need.entries,
                    sram_bits: need.sram_bits,
                    tcam_bits: need.tcam_bits,
                    actions: info.actions.len(),
                    after,
                });
                return Some(at);
            }
        }
        self.misfits.push(if earliest >= self.target.stages || first.is_none() {
            Misfit::Stages { chain: chain.to_vec(), needs: earliest + 1, has: self.target.stages }
        } else if tcam > 0 {
            Misfit::Memory { table: name, memory: "TCAM", needs: need.tcam_bits, has: need.tcam_bits - tcam }
        } else {
            Misfit::Memory { table: name, memory: "SRAM", needs: need.sram_bits, has: need.sram_bits - sram }
        });
        None
    }

    fn need(&self, info: &TableInfo, access: &Access) -> Need {
        let key_bits: u64 = info.keys.iter().map(|key| u64::from(key.width)).sum();
        let data_bits = info
            .actions
            .iter()
            .map(|action| action.parameters.iter().map(|parameter| u64::from(parameter.slot.width)).sum::<u64>());
        let data_bits = data_bits.max().unwrap_or(0) + u64::from(usize::BITS - info.actions.len().leading_zeros());
        let fixed = info.entries_are_const.then_some(info.entries.len() as u64);
        let entries = match (info.keys.is_empty(), fixed) {
            (true, _) => 0,
            (_, Some(fixed)) => fixed,
            _ => info.size.filter(|size| *size > 0).unwrap_or(self.target.default_entries),
        };
        let exact = info.keys.iter().all(|key| key.kind == MatchKind::Exact);
        // Exact tables hold key and data in SRAM; others hold value and mask in TCAM, data in SRAM.
        let (sram, tcam) = if exact { (key_bits + data_bits, 0) } else { (data_bits, 2 * key_bits) };
        let counter = if info.counter.is_some() { 128 } else { 0 };
        let objects: u64 = access.objects.iter().map(|object| object_bits(&self.ir.objects[*object].kind)).sum();
        Need {
            entries,
            sram_bits: entries.saturating_mul(sram + counter) + objects,
            tcam_bits: entries.saturating_mul(tcam),
        }
    }
}

struct Need {
    entries: u64,
    sram_bits: u64,
    tcam_bits: u64,
}

fn object_bits(kind: &ObjectKind) -> u64 {
    match kind {
        ObjectKind::Counter { size, .. } => size * 128,
        ObjectKind::Meter { size, .. } => size * 256,
        ObjectKind::Register { size, widths, .. } => size * widths.iter().map(|width| u64::from(*width)).sum::<u64>(),
        _ => 0,
    }
}

/// The strongest reason why `after` cannot run beside or before `before`.
fn dependency(number: usize, before: &Access, after: &Access) -> Option<(Reason, Option<u32>)> {
    let first =
        |a: &std::collections::BTreeSet<u32>, b: &std::collections::BTreeSet<u32>| a.intersection(b).next().copied();
    if let Some(word) =
        first(&before.writes, &after.key_reads).or_else(|| first(&before.writes, &after.condition_reads))
    {
        return Some((Reason::Match, Some(word)));
    }
    let action = first(&before.writes, &after.reads).or_else(|| first(&before.writes, &after.writes));
    if let Some(word) = action {
        return Some((Reason::Action, Some(word)));
    }
    after.decided_by.contains(&number).then_some((Reason::Control, None))
}

fn header_bits(ir: &Ir) -> u64 {
    let bits = |field: &crate::p4::ir::NamedField| {
        if field.varbit { u64::from(field.slot.width) - 64 } else { u64::from(field.slot.width) }
    };
    ir.fields.iter().map(bits).sum()
}

/// States and bytes on the longest way; a state that is entered again counts once.
fn longest_parse(parser: &Function) -> (usize, u64) {
    let mut memory = BTreeMap::new();
    let mut open = vec![false; parser.blocks.len()];
    let (states, bits) = longest_from(parser, 0, &mut memory, &mut open);
    (states, bits.div_ceil(8))
}

fn longest_from(
    parser: &Function,
    block: usize,
    memory: &mut BTreeMap<usize, (usize, u64)>,
    open: &mut Vec<bool>,
) -> (usize, u64) {
    if open[block] {
        return (0, 0);
    }
    if let Some(known) = memory.get(&block) {
        return *known;
    }
    open[block] = true;
    let (mut states, mut bits) = (0, 0);
    for op in &parser.blocks[block].ops {
        match op {
            Op::Note(crate::p4::ir::Note::State(_)) => states += 1,
            Op::Extract { header, .. } => {
                bits += header.layout.fields.iter().map(|field| u64::from(field.width)).sum::<u64>();
            }
            _ => {}
        }
    }
    let mut best = (0, 0);
    for next in access::successors(&parser.blocks[block].end) {
        let found = longest_from(parser, next, memory, open);
        best = (best.0.max(found.0), best.1.max(found.1));
    }
    open[block] = false;
    let result = (states + best.0, bits + best.1);
    memory.insert(block, result);
    result
}
