//! A program that controllers manage: its pipeline, its P4Info, and what only controllers know of its entries.

use std::collections::BTreeMap;
use std::sync::Arc;

use nicforge_flexnic::p4::target::{self, Target};
use nicforge_flexnic::p4::{Engine, Options, Pipeline, Program, Shared};
use tonic::Code;

use crate::digests::Digests;
use crate::info::Info;
use crate::proto::p4::v1 as p4;
use crate::refusal::Refusal;

/// A program with its description.
#[derive(Clone)]
pub struct Loaded {
    /// The compiled program.
    pub program: Program,
    /// Its description.
    pub info: Arc<Info>,
    /// Its text, which is what a controller sends and gets back.
    pub source: Arc<[u8]>,
    /// The controller's number for it.
    pub cookie: Option<u64>,
    /// Cycles of the target that a packet takes; 0 without a target.
    pub cycles: u64,
}

impl Loaded {
    /// Describes a program; `source` is its text.
    pub fn new(program: Program, source: &[u8]) -> Loaded {
        let info = Arc::new(Info::new(&program));
        Loaded { program, info, source: Arc::from(source), cookie: None, cycles: 0 }
    }
}

/// What an entry's action was written as.
#[derive(Clone, Debug, PartialEq)]
pub enum Indirect {
    /// A member of an action profile.
    Member(u32),
    /// A group of members.
    Group(u32),
}

/// What controllers know of entries, members and groups; goes with the program.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Entries that name a member or a group: table, number of the entry.
    pub indirect: BTreeMap<(usize, usize), Indirect>,
    /// Metadata that controllers attach to entries.
    pub metadata: BTreeMap<(usize, usize), Vec<u8>>,
    /// Members: profile, member.
    pub members: BTreeMap<(u32, u32), p4::Action>,
    /// Groups: profile, group.
    pub groups: BTreeMap<(u32, u32), p4::ActionProfileGroup>,
    /// Multicast groups.
    pub multicast: BTreeMap<u32, p4::MulticastGroupEntry>,
    /// Mirroring sessions.
    pub sessions: BTreeMap<u32, p4::CloneSessionEntry>,
}

/// The program that runs now, and one that waits for its commit.
pub struct Device {
    /// What the packet path runs.
    pub shared: Shared,
    /// The engine of new programs.
    pub engine: Engine,
    /// Seed of their random numbers.
    pub seed: u64,
    /// Programs that do not fit on it are refused.
    pub target: Option<Target>,
    /// None until a controller sends a program.
    pub loaded: Option<Loaded>,
    /// Verified, not yet committed.
    pub saved: Option<Loaded>,
    /// What controllers know.
    pub known: Known,
    /// Digests on their way.
    pub digests: Digests,
}

impl Device {
    /// The program, or a refusal.
    pub fn loaded(&self) -> Result<&Loaded, Refusal> {
        let message = "there is no program yet: send one with SetForwardingPipelineConfig";
        self.loaded.as_ref().ok_or_else(|| Refusal::new(Code::FailedPrecondition, message))
    }

    /// A pipeline for a program.
    pub fn pipeline(&self, loaded: &Loaded) -> Result<Pipeline, Refusal> {
        let pipeline = loaded.program.pipeline(self.engine, self.seed);
        pipeline.map_err(|error| Refusal::new(Code::Internal, error.to_string()))
    }

    /// Puts a program in place of the present one, between two packets. Its tables hold what the program says.
    pub fn commit(&mut self, loaded: Loaded, pipeline: Pipeline) {
        self.shared.replace(pipeline);
        self.shared.set_cycles(loaded.cycles);
        self.known = Known::default();
        self.digests = Digests::default();
        self.loaded = Some(loaded);
    }
}

/// Cycles that a packet takes on the target, or what does not fit.
pub fn cycles_on(target: Option<&Target>, program: &Program) -> Result<u64, Refusal> {
    let Some(target) = target else { return Ok(0) };
    let layout = target::place(program, target);
    let layout = layout.map_err(|refusal| {
        Refusal::new(Code::InvalidArgument, format!("the program does not fit on {}:\n{refusal}", target.name))
    })?;
    Ok(layout.cycles)
}

/// Compiles what a controller sent: P4-16 source, and the P4Info that it believes in.
pub fn verify(config: &p4::ForwardingPipelineConfig, present: Option<&Loaded>) -> Result<Loaded, Refusal> {
    let source = &config.p4_device_config;
    let mut loaded = if source.is_empty() {
        let message = "the device configuration is empty: send the text of a P4-16 program";
        present.cloned().ok_or_else(|| Refusal::invalid(message))?
    } else {
        let text = std::str::from_utf8(source).map_err(|error| {
            Refusal::invalid(format!("the device configuration is no text ({error}): send a P4-16 program"))
        })?;
        // Without folders, `#include` finds only what ships with the compiler.
        let program = Program::compile_text("program.p4", text, &Options::default())
            .map_err(|errors| Refusal::invalid(errors.render(false)))?;
        Loaded::new(program, source)
    };
    if let Some(theirs) = &config.p4info {
        agree(theirs, &loaded.info)?;
    }
    loaded.cookie = config.cookie.as_ref().map(|cookie| cookie.cookie);
    Ok(loaded)
}

/// Each part that the controller knows exists with the same number and name.
fn agree(theirs: &crate::proto::p4::config::v1::P4Info, ours: &Info) -> Result<(), Refusal> {
    let ours_message = &ours.message;
    let mut known: BTreeMap<u32, &str> = BTreeMap::new();
    for preamble in preambles(ours_message) {
        known.insert(preamble.id, &preamble.name);
    }
    let mut wrong = Vec::new();
    for preamble in preambles(theirs) {
        match known.get(&preamble.id) {
            Some(name) if *name == preamble.name => {}
            Some(name) => wrong.push(format!("{:#010x} is `{name}`, not `{}`", preamble.id, preamble.name)),
            None => wrong.push(format!("the program has no `{}` with id {:#010x}", preamble.name, preamble.id)),
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    Err(Refusal::invalid(format!("the P4Info is not the program's: {}", wrong.join("; "))))
}

fn preambles(
    info: &crate::proto::p4::config::v1::P4Info,
) -> impl Iterator<Item = &crate::proto::p4::config::v1::Preamble> {
    let tables = info.tables.iter().filter_map(|part| part.preamble.as_ref());
    let actions = info.actions.iter().filter_map(|part| part.preamble.as_ref());
    let profiles = info.action_profiles.iter().filter_map(|part| part.preamble.as_ref());
    let counters = info.counters.iter().filter_map(|part| part.preamble.as_ref());
    let meters = info.meters.iter().filter_map(|part| part.preamble.as_ref());
    let registers = info.registers.iter().filter_map(|part| part.preamble.as_ref());
    let digests = info.digests.iter().filter_map(|part| part.preamble.as_ref());
    tables.chain(actions).chain(profiles).chain(counters).chain(meters).chain(registers).chain(digests)
}
