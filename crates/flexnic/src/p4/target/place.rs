//! Placement: each table in the first stage that its dependencies and the memory allow.

use std::collections::{BTreeMap, BTreeSet};

use super::Target;
use super::access::{self, Access};
use super::layout::{Dependency, Layout, Misfit, PlacedTable, Reason, Refusal, StageUse};
use super::measure::{header_bits, longest_parse, longest_transfers, object_bits, objects_of};
use crate::p4::arch::flexnic::DMA_PIPELINE;
use crate::p4::hir::MatchKind;
use crate::p4::ir::{Function, Ir, TableInfo};
use crate::p4::pipeline::Program;

/// Places a program on a target, or says what does not fit.
pub fn place(program: &Program, target: &Target) -> Result<Layout, Refusal> {
    let ir = program.ir();
    // FlexNIC's controls have a pipeline each, all others follow each other in one.
    let has_pipelines = program.architecture() == "FlexNIC";
    let pipelines = if has_pipelines { DMA_PIPELINE } else { 1 };
    let mut placer = Placer {
        ir,
        target,
        stages: vec![StageUse::default(); pipelines * target.stages],
        until: target.stages,
        tables: Vec::new(),
        objects: BTreeSet::new(),
        misfits: Vec::new(),
    };
    let (parser, controls) = ir.functions.split_first().map_or((None, &[][..]), |(first, rest)| (Some(first), rest));
    let (parser_depth, parser_bytes) = parser.map_or((0, 0), longest_parse);
    let header_bits = header_bits(ir);
    let mut start = 0;
    // Stages that each pipeline uses, and its name.
    let mut used = Vec::new();
    for (number, control) in controls.iter().enumerate() {
        if has_pipelines && number < pipelines {
            start = number * target.stages;
            placer.until = start + target.stages;
        }
        let end = placer.control(control, start);
        used.push((control.name.clone(), end - start));
        start = end;
    }
    let transfers = controls.iter().map(|control| longest_transfers(control, 0, &mut BTreeMap::new())).max();
    let transfers = transfers.unwrap_or(0);
    if transfers > target.transfers {
        placer.misfits.push(Misfit::Transfers { needs: transfers, has: target.transfers });
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
    // The host's packets pass ingress and the DMA pipeline, and both parse.
    let (parses, stages) = match &used[..] {
        [ingress, _, dma, ..] if has_pipelines => (2, ingress.1 + dma.1),
        _ => (1, placer.tables.iter().map(|table| table.stages.1 + 1).max().unwrap_or(0)),
    };
    let cycles = parses * parser_depth as u64 * target.parser_cycles + stages as u64 * target.stage_cycles;
    used.truncate(if has_pipelines { pipelines } else { 0 });
    Ok(Layout {
        tables: placer.tables,
        stages: placer.stages,
        pipelines: used.into_iter().map(|(name, _)| name).collect(),
        transfers,
        header_bits,
        parser_depth,
        parser_bytes,
        cycles,
    })
}

struct Placer<'a> {
    ir: &'a Ir,
    target: &'a Target,
    stages: Vec<StageUse>,
    /// The first stage behind the present pipeline.
    until: usize,
    tables: Vec<PlacedTable>,
    /// Objects that have their memory.
    objects: BTreeSet<usize>,
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
        for object in order.iter().flat_map(|table| &access[table].objects) {
            self.objects.insert(*object);
        }
        let end = landed.values().map(|landed| landed.last + 1).max().unwrap_or(start);
        let memory = objects_of(function).into_iter().filter_map(|object| self.object(object, start)).max();
        end.max(memory.map_or(start, |stage| stage + 1))
    }

    /// Memory of an object that no table's action uses, in the first stages with room; returns the last one. NIC memory
    /// that several pipelines use lies where it is used first.
    fn object(&mut self, number: usize, start: usize) -> Option<usize> {
        let info = &self.ir.objects[number];
        let needs = object_bits(&info.kind);
        if needs == 0 || !self.objects.insert(number) {
            return None;
        }
        let mut left = needs;
        for at in start..self.until {
            let take = left.min(self.target.sram_bits - self.stages[at].sram_bits);
            self.stages[at].sram_bits += take;
            left -= take;
            if left == 0 {
                return Some(at);
            }
        }
        let (table, has) = (info.path.to_string(), needs - left);
        self.misfits.push(Misfit::Memory { table, memory: "SRAM", needs, has });
        None
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
        for at in earliest..self.until {
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
        self.misfits.push(if earliest >= self.until || first.is_none() {
            Misfit::Stages {
                chain: chain.to_vec(),
                needs: earliest + 1 + self.target.stages - self.until,
                has: self.target.stages,
            }
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
