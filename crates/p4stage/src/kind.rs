//! Options, and building the stage of one NIC.

use std::any::TypeId;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use nicforge_flexnic::p4::target::{self, Layout, Target};
use nicforge_flexnic::p4::{Engine, Options, Pipeline, Program, Shared, entries};
use nicforge_nic::PortId;
use nicforge_options::{Allowed, options};
use nicforge_p4runtime::{Listen, ListenError, Loaded, Running, serve};
use nicforge_platform::{AddressSpace, Flat, Ground, Sim};
use nicforge_stages::{BuiltStage, StageError, StageKind, StagePlan};

use crate::stage::{P4Stage, Setup};

options! {
    /// NICs that run a P4 program.
    pub struct P4Options {
        /// The P4-16 program that each NIC runs on the packets that come and go.
        p4_program: Option<String> = None, "", Allowed::File, default "none";
        /// Entries of its tables, as `nicforge p4 run --entries` takes them.
        p4_entries: Option<String> = None, "", Allowed::File, default "none";
        /// The NIC's pipeline, as `nicforge p4 explain --target` takes it; a frame takes the cycles that the program needs there.
        p4_target: Option<String> = None, "", Allowed::File, default "a small pipeline";
        /// Number by which a v1model program calls the host.
        p4_host_port: u32 = 100, "", Allowed::Whole(0, 510);
        /// Number by which it calls the controllers.
        p4_cpu_port: u32 = 510, "", Allowed::Whole(0, 510);
        /// Runs the reference interpreter instead of compiled code.
        p4_interpret: bool = false, "", Allowed::Flag;
        /// Live: where controllers reach port 0 over P4Runtime, `unix:PATH` or a loopback address; port `n` listens `n` ports higher, or at `PATH.n`.
        p4_listen: Option<String> = None, "", Allowed::Form(&LISTEN), default "nowhere";
    }
}

static LISTEN: nicforge_options::Form = nicforge_options::Form {
    says: "`unix:PATH` or a loopback address and port",
    parse: |text| text.parse::<Listen>().ok().map(|_| text.to_owned()),
};

/// Why a NIC cannot run a program.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum P4Error {
    #[error("stage p4 has no program: set `p4_program`")]
    NoProgram,
    #[error("{0}")]
    Program(String),
    #[error(
        "{0} has a DMA pipeline: set interface = \"flexnic\" and flexnic_program instead of stages = \"p4\" and p4_program"
    )]
    Interface(String),
    #[error("{file}: register `{name}` {what}")]
    Register { file: String, name: &'static str, what: String },
    #[error("{0} has no DMA pipeline, which interface flexnic needs: its package is FlexNIC, of flexnic.p4")]
    NoDma(String),
    #[error("{file}: {error}")]
    File { file: String, error: String },
    #[error("the program does not fit on {target}:\n{refusal}")]
    Fit { target: String, refusal: String },
    #[error("`p4_listen` is for live runs: a simulated NIC has no controllers")]
    Simulated,
    #[error(transparent)]
    Listen(#[from] ListenError),
}

impl From<P4Error> for StageError {
    fn from(error: P4Error) -> StageError {
        StageError::Own(Box::new(error))
    }
}

/// Stage `p4`.
#[derive(Clone, Copy, Debug)]
pub struct P4Kind;

pub(crate) fn read(file: &str) -> Result<String, P4Error> {
    let fail = |error: std::io::Error| P4Error::File { file: file.to_owned(), error: error.to_string() };
    std::fs::read_to_string(file).map_err(fail)
}

/// Places `program` on the target of a file, or on the default one.
pub(crate) fn place(program: &Program, file: Option<&str>) -> Result<(Target, Layout), P4Error> {
    let target = match file {
        None => Target::default(),
        Some(file) => Target::from_toml(&read(file)?)
            .map_err(|error| P4Error::File { file: file.to_owned(), error: error.to_string() })?,
    };
    let refused = |refusal: target::Refusal| P4Error::Fit { target: target.name.clone(), refusal: refusal.to_string() };
    let layout = target::place(program, &target).map_err(refused)?;
    Ok((target, layout))
}

/// Puts the entries of a file into `pipeline`'s tables.
pub(crate) fn load_entries(pipeline: &mut Pipeline, file: &str) -> Result<(), P4Error> {
    let loaded = entries::load(pipeline, &read(file)?);
    loaded.map_err(|error| P4Error::File { file: file.to_owned(), error: error.to_string() })
}

impl StageKind for P4Kind {
    const NAME: &'static str = "p4";
    const ABOUT: &'static str = "a P4-16 program on the packets that come and go";
    type Options = P4Options;

    fn build<G: Ground>(
        options: &P4Options,
        plan: &StagePlan,
        _space: &mut AddressSpace,
    ) -> Result<BuiltStage<G>, StageError> {
        let file = options.p4_program.as_ref().ok_or(P4Error::NoProgram)?;
        let program = Program::compile(Path::new(file), &Options::default());
        let program = program.map_err(|errors| P4Error::Program(errors.render(false)))?;
        if program.architecture() == "FlexNIC" {
            return Err(P4Error::Interface(file.clone()).into());
        }
        let (target, layout) = place(&program, options.p4_target.as_deref())?;
        let engine = if options.p4_interpret { Engine::Interpreter } else { Engine::Compiled };
        let seed = u64::from(plan.port.0) + 1;
        let mut pipeline = program.pipeline(engine, seed).map_err(|error| P4Error::Program(error.to_string()))?;
        if let Some(file) = &options.p4_entries {
            load_entries(&mut pipeline, file)?;
        }
        let shared = Shared::new(pipeline, Some(options.p4_cpu_port));
        shared.set_cycles(layout.cycles);
        let simulated = [TypeId::of::<Sim>(), TypeId::of::<Flat>()].contains(&TypeId::of::<G>());
        if options.p4_listen.is_some() && simulated {
            return Err(P4Error::Simulated.into());
        }
        let (host_port, cpu_port) = (options.p4_host_port, options.p4_cpu_port);
        let setup = Setup { host_port, cpu_port, clock_mhz: target.clock_mhz, is_directed: false };
        let server = Arc::new(OnceLock::new());
        let built = BuiltStage::new(P4Stage::new(plan.port, shared.clone(), setup, server.clone()));
        let Some(at) = options.p4_listen.clone() else { return Ok(built) };
        let controlled = Controlled { program, source: read(file)?, engine, target };
        // Processes of workers lay out the same stage; only the device's own starts it.
        let port = plan.port;
        Ok(built.starting(move |_| {
            // The stage starts once.
            let _ = server.set(controllers(&at, port, &shared, controlled)?);
            Ok(())
        }))
    }
}

/// The program that controllers find, and what runs theirs.
struct Controlled {
    program: Program,
    source: String,
    engine: Engine,
    target: Target,
}

/// Lets controllers reach the program of a port.
fn controllers(
    at: &str,
    port: PortId,
    shared: &Shared,
    Controlled { program, source, engine, target }: Controlled,
) -> Result<Running, P4Error> {
    let listen = match at.parse::<Listen>()? {
        Listen::Unix(path) if port.0 > 0 => Listen::Unix(format!("{}.{}", path.display(), port.0).into()),
        Listen::Tcp(mut address) => {
            address.set_port(address.port().saturating_add(u16::from(port.0)));
            Listen::Tcp(address)
        }
        unix => unix,
    };
    let inject = shared.clone();
    let service = nicforge_p4runtime::Options {
        device_id: u64::from(port.0) + 1,
        shared: shared.clone(),
        loaded: Some(Loaded::new(program, source.as_bytes())),
        engine,
        seed: u64::from(port.0) + 1,
        target: Some(target),
        inject: Box::new(move |packet| inject.leave_later(packet)),
    };
    Ok(serve(&listen, service)?)
}
