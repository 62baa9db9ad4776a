//! Interface `flexnic`: a P4 program of package `FlexNIC`, which decides what goes where in host memory (ASPLOS 2016,
//! section 2.2).
//!
//! ```text
//!   wire ─► stage.rs: ingress ─► nic.rs: DMA pipeline ─► engine.rs: transfers ══► entry, buffer, registered memory
//!   wire ◄─ stage.rs: egress ◄─ transmit engine
//!           driver.rs: takes full entries, gives empty buffers, moves the tail
//! ```
//!
//! | file | what is in it |
//! | --- | --- |
//! | layout.rs | entries and registers |
//! | programs/queues.p4 | the program where a scenario names none |

mod driver;
mod engine;
mod layout;
mod nic;
mod options;
mod stage;
#[cfg(test)]
mod tests;

use std::any::TypeId;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use nicforge_flexnic::p4::target::{Layout, Target};
use nicforge_flexnic::p4::{self, Engine as Runs, ObjectState, Pipeline, Program, Shared};
use nicforge_interfaces::options::RxRing;
use nicforge_interfaces::priv_ring::Ring;
use nicforge_interfaces::{Built, Interface, InterfaceError, KnownGround, Plan};
use nicforge_nic::PortId;
use nicforge_platform::{AddressSpace, Register, Sim};
use nicforge_units::Time;

use crate::P4Error;
use crate::kind::{load_entries, place};
use crate::stage::{P4Stage, Setup};

pub use driver::{Driver, QueueEntries};
pub use engine::{EngineCounters, OUTSIDE};
pub use layout::{Entry, HOST_REGISTERS};
pub use nic::NicHalf;
pub use options::FlexNicOptions;
pub use stage::FlexStage;

use engine::Engine;
use nic::{Known, Queue, set};

/// The program where a scenario names none.
const QUEUES: &str = include_str!("../../programs/queues.p4");

/// Interface `flexnic`.
#[derive(Clone, Copy, Debug)]
pub struct FlexNic;

/// A program that fits on its target.
struct Loaded {
    program: Program,
    target: Target,
    layout: Layout,
}

fn load(options: &FlexNicOptions) -> Result<Loaded, P4Error> {
    // Tests build it thousands of times.
    static SHIPPED: OnceLock<Program> = OnceLock::new();
    let failed = |errors: p4::Diagnostics| P4Error::Program(errors.render(false));
    let program = match &options.flexnic_program {
        Some(file) => Program::compile(Path::new(file), &p4::Options::default()).map_err(failed)?,
        None => match SHIPPED.get() {
            Some(program) => program.clone(),
            None => {
                let program = Program::compile_text("queues.p4", QUEUES, &p4::Options::default()).map_err(failed)?;
                SHIPPED.get_or_init(|| program).clone()
            }
        },
    };
    if program.architecture() != "FlexNIC" {
        return Err(P4Error::NoDma(name_of(options)));
    }
    let (target, layout) = place(&program, options.flexnic_target.as_deref())?;
    Ok(Loaded { program, target, layout })
}

fn name_of(options: &FlexNicOptions) -> String {
    options.flexnic_program.clone().unwrap_or_else(|| "queues.p4".to_owned())
}

/// The program's register `name`, whose elements are words, one for each of `queues` queues.
fn register(pipeline: &mut Pipeline, file: &str, name: &'static str, queues: usize) -> Result<Option<usize>, P4Error> {
    let found = pipeline.ir().objects.iter().position(|object| object.path.rsplit('.').next() == Some(name));
    let Some(number) = found else { return Ok(None) };
    let wrong = |what: String| Err(P4Error::Register { file: file.to_owned(), name, what });
    match pipeline.object(number) {
        Some(ObjectState::Register { stride: 1, words }) if words.len() >= queues => Ok(Some(number)),
        Some(ObjectState::Register { .. }) => wrong(format!("must have at least {queues} elements of at most 64 bits")),
        _ => wrong("is no register".to_owned()),
    }
}

/// Finds the registers that the NIC knows.
fn known(pipeline: &mut Pipeline, file: &str, queues: usize) -> Result<Known, P4Error> {
    let mut needed = |name| {
        let what = "is missing: the NIC keeps the queues' heads and tails in registers `head` and `tail`".to_owned();
        let missing = P4Error::Register { file: file.to_owned(), name, what };
        register(pipeline, file, name, queues)?.ok_or(missing)
    };
    let (head, tail) = (needed("head")?, needed("tail")?);
    let mut host = [None; HOST_REGISTERS];
    for (place, name) in host.iter_mut().zip(["host0", "host1", "host2"]) {
        *place = register(pipeline, file, name, queues)?;
    }
    Ok(Known { head, tail, host })
}

/// Builds both halves for all queues of one NIC.
pub fn build(plan: &Plan, space: &mut AddressSpace, is_timed: bool) -> Result<(NicHalf, Vec<Driver>), InterfaceError> {
    let options: FlexNicOptions = plan.values.read();
    let RxRing { rx_entries } = options.ring;
    Plan::check_ring("rx_entries", rx_entries)?;
    let own = |error: P4Error| InterfaceError::Own(Box::new(error));
    let Loaded { program, target, layout } = load(&options).map_err(own)?;
    let engine = if options.flexnic_interpret { Runs::Interpreter } else { Runs::Compiled };
    let pipeline = program.pipeline(engine, u64::from(plan.device) + 1);
    let mut pipeline = pipeline.map_err(|error| own(P4Error::Program(error.to_string())))?;
    if let Some(file) = &options.flexnic_entries {
        load_entries(&mut pipeline, file).map_err(own)?;
    }
    let known = known(&mut pipeline, &name_of(&options), plan.owners.len()).map_err(own)?;
    let (mut queues, mut drivers) = (Vec::new(), Vec::new());
    for (queue, &owner) in plan.owners.iter().enumerate() {
        let base = space.control(rx_entries as u64 * layout::ENTRY_BYTES, owner)?;
        let ring = Ring::at(base, rx_entries as u64, plan.first_position);
        let tail = Register { device: plan.device, index: queue as u32 };
        let buffers = Ring::new(space, rx_entries as u64, plan.first_position).with_room(plan.pool.room());
        queues.push(Queue::new(ring, buffers, plan.descriptor_read));
        drivers.push(Driver::of(QueueEntries { entries: ring, buffers }, tail, plan.costs));
        set(&mut pipeline, known.head, queue, ring.first);
        set(&mut pipeline, known.tail, queue, ring.first);
    }
    let shared = Shared::new(pipeline, None);
    let cycles = if is_timed { layout.cycles } else { 0 };
    shared.set_cycles(cycles);
    let engine = Engine::new(space.registered());
    let replies = Arc::new(Mutex::default());
    let setup = Setup { host_port: u32::MAX, cpu_port: u32::MAX, clock_mhz: target.clock_mhz, is_directed: true };
    let program_stage = P4Stage::new(PortId(plan.device), shared.clone(), setup, Arc::default());
    let (no_ingress, no_egress) = program.empty_pipelines();
    let stage = FlexStage {
        program: program_stage,
        has_ingress: !no_ingress,
        has_egress: !no_egress,
        delay: Time::from_ps(cycles * 1_000_000 / target.clock_mhz.max(1)),
        replies: Arc::clone(&replies),
        counters: engine.counters.clone(),
    };
    let half = NicHalf {
        shared,
        known,
        queues,
        pool: plan.pool,
        engine,
        replies,
        stage: Some(stage),
        packet: Vec::new(),
        transfers: Vec::new(),
    };
    Ok((half, drivers))
}

impl Interface for FlexNic {
    fn build<G: KnownGround>(plan: &Plan, space: &mut AddressSpace) -> Result<Built<G>, InterfaceError> {
        let (nic, drivers) = build(plan, space, TypeId::of::<G>() == TypeId::of::<Sim>())?;
        Ok(Built::new(nic, drivers))
    }
}
