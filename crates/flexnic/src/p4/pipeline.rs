//! An instance of a program: tables, objects, counters, and the engine that runs it.

use std::path::Path;
use std::sync::Arc;

use super::arch::{self, Architecture, flexnic, pna, v1model};
use super::compile::{self, Options};
use super::diagnostics::{Diagnostics, Reporter};
use super::dma::NicFields;
use super::interpret;
use super::ir::{Ir, TableInfo};
use super::jit;
use super::machine::{Digest, Effects, Machine, ObjectState, ValueSet};
use super::meter::Meter;
use super::outcome::{Counters, Output, OwnedOutput, PacketGone};
use super::switch::Switch;
use super::tables::{Table, Target, UpdateError};
use super::trace::Event;

/// A compiled program.
#[derive(Clone)]
pub struct Program {
    pub(crate) ir: Arc<Ir>,
    pub(crate) architecture: Architecture,
    /// Warnings of the compiler.
    pub warnings: Diagnostics,
}

/// Which engine runs a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// The reference interpreter.
    Interpreter,
    /// Machine code from Cranelift.
    #[default]
    Compiled,
}

impl Program {
    /// Compiles a file.
    pub fn compile(path: &Path, options: &Options) -> Result<Program, Diagnostics> {
        Program::lower(compile::check_file(path, options)?)
    }

    /// Compiles a text; `name` stands in messages.
    pub fn compile_text(name: &str, text: &str, options: &Options) -> Result<Program, Diagnostics> {
        Program::lower(compile::check_text(name, text, options)?)
    }

    fn lower(front: compile::FrontEnd) -> Result<Program, Diagnostics> {
        let mut reporter = Reporter::default();
        let lowered = compile::on_large_stack(|| arch::lower(&front.checked, &mut reporter));
        let lowered = lowered.unwrap_or_else(|error| {
            reporter.error(Default::default(), format!("no thread for the compiler: {error}"));
            None
        });
        match lowered {
            Some((ir, architecture)) => Ok(Program { ir: Arc::new(ir), architecture, warnings: front.warnings }),
            None => Err(Diagnostics { problems: reporter.problems, sources: front.warnings.sources.clone() }),
        }
    }

    /// Its tables.
    pub fn tables(&self) -> &[TableInfo] {
        &self.ir.tables
    }

    /// The IR that engines run.
    pub fn ir(&self) -> &Ir {
        &self.ir
    }

    /// Name of the package of the architecture.
    pub fn architecture(&self) -> &'static str {
        self.architecture.name()
    }

    /// An instance; `seed` is for the program's random numbers.
    pub fn pipeline(&self, engine: Engine, seed: u64) -> Result<Pipeline, jit::JitError> {
        let code = match engine {
            Engine::Interpreter => None,
            Engine::Compiled => Some(jit::compile(&self.ir)?),
        };
        Ok(Pipeline {
            core: Core {
                machine: Machine::new(self.ir.clone(), seed),
                ir: self.ir.clone(),
                code,
                switch: Switch::default(),
                counters: Counters::new(&self.ir),
                result: Vec::new(),
                digests: Vec::new(),
                log: Vec::new(),
            },
            architecture: self.architecture.clone(),
        })
    }
}

/// The parts that the code of an architecture works with.
pub(crate) struct Core {
    pub machine: Machine,
    pub ir: Arc<Ir>,
    pub code: Option<Arc<jit::Code>>,
    pub switch: Switch,
    pub counters: Counters,
    /// The packet that the deparser made.
    pub result: Vec<u8>,
    pub digests: Vec<Digest>,
    pub log: Vec<String>,
}

impl Core {
    /// Runs one of the program's functions.
    #[inline]
    pub fn run(&mut self, number: usize) {
        if self.machine.trace.is_some() {
            let name = self.ir.functions[number].name.clone();
            self.note(Event::Stage { name });
        }
        match &self.code {
            Some(code) if self.machine.trace.is_none() => code.run(number, &mut self.machine),
            _ => {
                let ir = self.ir.clone();
                interpret::run(&ir.functions[number], &mut self.machine);
            }
        }
    }

    pub fn note(&mut self, event: Event) {
        if let Some(trace) = &mut self.machine.trace {
            trace.push(event);
        }
    }

    #[inline]
    pub fn reset_effects(&mut self) {
        let effects = &mut self.machine.effects;
        let quiet = effects.digests.is_empty() && effects.log.is_empty() && effects.mirrors.is_empty();
        if quiet {
            // Keeps the vectors, which own no memory.
            effects.clone = None;
            effects.resubmit = None;
            effects.recirculate = None;
            effects.truncate = None;
            effects.failed_assertion = false;
            effects.port = None;
            effects.drop = false;
            effects.consumed = false;
            effects.mark = 0;
            effects.flags = 0;
            effects.queue = None;
            effects.transfers.clear();
            effects.too_many_transfers = false;
            effects.refusal = None;
            effects.copies.clear();
        } else {
            *effects = Effects::default();
        }
    }

    /// The parser's error, counted.
    #[inline]
    pub fn parser_error(&mut self) -> u64 {
        let error = self.machine.parser_error();
        if error != 0 {
            if let Some(count) = self.counters.parser_errors.get_mut(error as usize) {
                *count += 1;
            }
            let name = self.ir.errors.get(error as usize).map_or("?", |name| name);
            let event = Event::ParserError { error: name.to_owned() };
            self.note(event);
        }
        error
    }

    /// Moves digests and log messages to where the control plane finds them.
    #[inline]
    pub fn take_messages(&mut self) {
        let effects = &mut self.machine.effects;
        if !effects.digests.is_empty() {
            self.digests.append(&mut effects.digests);
            let over = self.digests.len().saturating_sub(MESSAGES_MAX);
            self.digests.drain(..over);
        }
        if !effects.log.is_empty() {
            self.log.append(&mut effects.log);
            let over = self.log.len().saturating_sub(MESSAGES_MAX);
            self.log.drain(..over);
        }
    }

    /// The packet ends here because of a loop or an assertion; counted.
    #[inline]
    pub fn stopped(&mut self) -> bool {
        let why = match (self.machine.exhausted, self.machine.effects.failed_assertion) {
            (false, false) => return false,
            // A parser that runs too long rejects with an error; the packet goes on.
            (true, false) if self.machine.parser_error() != 0 => return false,
            (true, _) => PacketGone::LoopLimit,
            (false, true) => PacketGone::Assertion,
        };
        self.gone(why);
        true
    }

    pub fn gone(&mut self, why: PacketGone) {
        *self.counters.gone.entry(why.name()).or_default() += 1;
        if self.machine.trace.is_some() {
            self.note(Event::Exit { to: why.name().to_owned() });
        }
    }

    /// Puts the deparsed packet into `result`.
    #[inline]
    pub fn deparse(&mut self) {
        self.machine.deparse_into(&mut self.result);
    }

    #[inline]
    pub fn send(&mut self, port: u64, sink: &mut dyn FnMut(Output<'_>)) {
        self.counters.sent += 1;
        if self.machine.trace.is_some() {
            self.note(Event::Exit { to: format!("port {port}, {} bytes", self.result.len()) });
        }
        sink(self.output(Some(port as u32)));
    }

    pub fn send_to_host(&mut self, sink: &mut dyn FnMut(Output<'_>)) {
        self.counters.sent += 1;
        if self.machine.trace.is_some() {
            self.note(Event::Exit { to: format!("the host, {} bytes", self.result.len()) });
        }
        sink(self.output(None));
    }

    fn output(&self, port: Option<u32>) -> Output<'_> {
        let effects = &self.machine.effects;
        Output { port, packet: &self.result, mark: effects.mark, flags: effects.flags, queue: effects.queue }
    }
}

/// Digests and log messages that are kept until the control plane takes them.
const MESSAGES_MAX: usize = 4096;

/// Largest packet.
pub const PACKET_BYTES_MAX: usize = 1 << 16;

/// A program with its state.
pub struct Pipeline {
    pub(crate) core: Core,
    pub(crate) architecture: Architecture,
}

impl Pipeline {
    /// Takes a packet through the program. `sink` gets each packet that leaves.
    pub fn process_with(&mut self, packet: &[u8], port: u32, sink: &mut dyn FnMut(Output<'_>)) {
        self.process_from(packet, port, false, sink);
    }

    /// The same with the packet's direction, which PNA distinguishes.
    pub fn process_from(&mut self, packet: &[u8], port: u32, from_host: bool, sink: &mut dyn FnMut(Output<'_>)) {
        self.process_nic(packet, &NicFields { port, ..NicFields::default() }, from_host, sink);
    }

    /// The same with all that FlexNIC's programs see.
    pub fn process_nic(
        &mut self,
        packet: &[u8],
        fields: &NicFields,
        from_host: bool,
        sink: &mut dyn FnMut(Output<'_>),
    ) {
        let port = fields.port;
        self.core.counters.received += 1;
        let packet = &packet[..packet.len().min(PACKET_BYTES_MAX)];
        match &self.architecture {
            Architecture::FlexNic(layout) if from_host => flexnic::egress(&mut self.core, layout, packet, fields, sink),
            Architecture::FlexNic(layout) => flexnic::ingress(&mut self.core, layout, packet, fields, sink),
            Architecture::V1Model(layout) => v1model::process(&mut self.core, layout, packet, u64::from(port), sink),
            Architecture::Pna(layout) => {
                pna::process(&mut self.core, layout, packet, u64::from(port), from_host, sink);
            }
        }
    }

    /// Takes a packet through the program and returns what leaves.
    pub fn process(&mut self, packet: &[u8], port: u32) -> Vec<OwnedOutput> {
        let mut outputs = Vec::new();
        self.process_with(packet, port, &mut |output| outputs.push(output.to_owned()));
        outputs
    }

    /// The same with a trace of what happened; the interpreter runs it.
    pub fn trace(&mut self, packet: &[u8], port: u32) -> (Vec<OwnedOutput>, Vec<Event>) {
        flexnic::free_entries(self);
        self.core.machine.trace = Some(Vec::new());
        let outputs = self.process(packet, port);
        flexnic::trace(self, &outputs, port);
        (outputs, self.core.machine.trace.take().unwrap_or_default())
    }

    /// Sets the time, in microseconds.
    pub fn set_time(&mut self, microseconds: u64) {
        self.core.machine.now = microseconds;
    }

    /// Applies changes between two packets: all of them, or none and the reason.
    pub fn update(&mut self, changes: Vec<Target>) -> Result<(), UpdateError> {
        let tables = &mut self.core.machine.tables;
        let mut done = Vec::new();
        for Target { table, update } in changes {
            let result = match tables.get_mut(table) {
                Some(table) => table.update(update),
                None => Err(UpdateError::NoTable(table)),
            };
            match result {
                Ok(undo) => done.push((table, undo)),
                Err(error) => {
                    for (table, undo) in done.into_iter().rev() {
                        tables[table].undo(undo);
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Its tables.
    pub fn tables(&self) -> &[Table] {
        &self.core.machine.tables
    }

    /// Number of a table by its name, or by the end of its name if that is unique.
    pub fn table_named(&self, name: &str) -> Option<usize> {
        let all: Vec<&str> = self.core.ir.tables.iter().map(|table| &*table.path).collect();
        super::names::find(&all, name)
    }

    /// The state of an object by its name, or by the end of its name if that is unique.
    pub fn object_named(&mut self, name: &str) -> Option<&mut ObjectState> {
        let all: Vec<&str> = self.core.ir.objects.iter().map(|object| &*object.path).collect();
        let number = super::names::find(&all, name)?;
        self.core.machine.objects.get_mut(number)
    }

    /// The state of an object by its number.
    pub fn object(&mut self, number: usize) -> Option<&mut ObjectState> {
        self.core.machine.objects.get_mut(number)
    }

    /// A value set by its number.
    pub fn value_set(&mut self, number: usize) -> Option<&mut ValueSet> {
        self.core.machine.sets.get_mut(number)
    }

    /// Counts and the meter of an entry; none where it does not exist.
    pub fn entry_state(&mut self, table: usize, entry: usize) -> Option<(&mut (u64, u64), &mut Meter)> {
        let entry = self.core.machine.tables.get_mut(table)?.entry_mut(entry)?;
        Some((&mut entry.hits, &mut entry.meter))
    }

    /// A value set by its name, or by the end of its name if that is unique.
    pub fn value_set_named(&mut self, name: &str) -> Option<&mut ValueSet> {
        let all: Vec<&str> = self.core.ir.sets.iter().map(|set| &*set.path).collect();
        let number = super::names::find(&all, name)?;
        self.core.machine.sets.get_mut(number)
    }

    /// Multicast groups and mirroring sessions.
    pub fn switch(&mut self) -> &mut Switch {
        &mut self.core.switch
    }

    /// The counts so far.
    pub fn counters(&self) -> &Counters {
        &self.core.counters
    }

    /// Digests wait for [`take_digests`](Self::take_digests).
    pub fn has_digests(&self) -> bool {
        !self.core.digests.is_empty()
    }

    /// Digests since the last call.
    pub fn take_digests(&mut self) -> Vec<Digest> {
        std::mem::take(&mut self.core.digests)
    }

    /// Log messages since the last call.
    pub fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.core.log)
    }

    /// The program's IR.
    pub fn ir(&self) -> &Ir {
        &self.core.ir
    }
}
