//! An application that is written in Python, for teaching: each packet calls it, with Python's one lock.

use std::sync::{Mutex, PoisonError};

use nicforge_apps::{AppConfig, AppError, AppKind, Application, Place, PortMap, SharedTables};
use nicforge_nic::{Packet, Verdict};
use nicforge_platform::{Addr, AddressSpace, Cpu};
use nicforge_units::Cycles;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyList};

/// Most bytes of modelled memory that an application may have.
const MEMORY_MAX_BYTES: u64 = 1 << 30;
/// Most names of drops: each is kept for as long as the process lives.
const CAUSES_MAX: usize = 64;
/// What frames are dropped as once the application has failed.
const FAILED: &str = "python_error";

/// The class that runs, and why it failed.
struct Slot {
    class: Option<Py<PyAny>>,
    failure: Option<PyErr>,
    causes: Vec<&'static str>,
}

static SLOT: Mutex<Slot> = Mutex::new(Slot { class: None, failure: None, causes: Vec::new() });

fn with_slot<T>(with: impl FnOnce(&mut Slot) -> T) -> T {
    with(&mut SLOT.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Makes `class` the application `python`.
pub fn set(class: Option<Py<PyAny>>) {
    with_slot(|slot| (slot.class, slot.failure) = (class, None));
}

/// Whether it has failed.
pub fn has_failed() -> bool {
    with_slot(|slot| slot.failure.is_some())
}

/// Why it failed, once.
pub fn take_failure() -> Option<PyErr> {
    with_slot(|slot| slot.failure.take())
}

/// The first failure counts: what follows it may follow from it.
fn fail(error: PyErr) {
    with_slot(|slot| {
        slot.failure.get_or_insert(error);
    });
}

/// The application on one core.
struct Object {
    object: Py<PyAny>,
    touched: Py<PyList>,
    work: Cycles,
    memory_bytes: u64,
    reads_bytes: usize,
}

/// What it makes of a frame.
struct Answer {
    /// The frame as it is now.
    frame: Vec<u8>,
    /// The name under which it is dropped.
    cause: Option<&'static str>,
    /// Where the modelled memory is touched, and whether it is stored to.
    touched: Vec<(u64, bool)>,
}

impl Object {
    fn new(py: Python<'_>, place: Place) -> PyResult<Object> {
        let class = with_slot(|slot| slot.class.as_ref().map(|class| class.clone_ref(py)));
        let class =
            class.ok_or_else(|| PyValueError::new_err("app = \"python\" runs by nicforge.run(…, app=CLASS)"))?;
        let object = class.call0(py)?.into_bound(py);
        let touched = PyList::empty(py);
        object.setattr("core", place.core)?;
        object.setattr("cores", place.cores)?;
        object.setattr("_touched", &touched)?;
        let memory_bytes: u64 = object.getattr("memory_bytes")?.extract()?;
        if memory_bytes > MEMORY_MAX_BYTES {
            let text = format!("memory_bytes = {memory_bytes}: is more than {MEMORY_MAX_BYTES}");
            return Err(PyValueError::new_err(text));
        }
        Ok(Object {
            work: Cycles(object.getattr("work_cycles")?.extract()?),
            memory_bytes,
            reads_bytes: object.getattr("reads_bytes")?.extract()?,
            touched: touched.unbind(),
            object: object.unbind(),
        })
    }

    /// Lets the object have `frame`.
    fn packet(&self, py: Python<'_>, frame: &[u8]) -> PyResult<Answer> {
        let bytes = PyByteArray::new(py, frame);
        let answer = self.object.bind(py).call_method1("packet", (&bytes,))?;
        let cause = match answer.is_none() {
            true => None,
            false => {
                let name: String = answer.extract().map_err(|_| {
                    PyTypeError::new_err("packet() returns None to forward, or the name of a drop as a text")
                })?;
                Some(cause(&name)?)
            }
        };
        let touched = self.touched.bind(py);
        let accesses: Vec<(u64, bool)> = touched.extract()?;
        touched.call_method0("clear")?;
        if let Some((at, _)) = accesses.iter().find(|(at, _)| at.saturating_add(8) > self.memory_bytes) {
            let text = format!("touch({at}): the application has memory_bytes = {}", self.memory_bytes);
            return Err(PyIndexError::new_err(text));
        }
        let changed = bytes.to_vec();
        if changed.len() != frame.len() {
            return Err(PyValueError::new_err("packet() must leave the length of the frame as it is"));
        }
        Ok(Answer { frame: changed, cause, touched: accesses })
    }
}

/// The name of a drop, kept for as long as the process lives.
fn cause(name: &str) -> PyResult<&'static str> {
    let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if !plain {
        let text = format!("{name:?} is no name of a drop: use small letters, digits and `_`");
        return Err(PyValueError::new_err(text));
    }
    with_slot(|slot| {
        if let Some(known) = slot.causes.iter().find(|known| **known == name) {
            return Ok(*known);
        }
        if slot.causes.len() == CAUSES_MAX {
            return Err(PyValueError::new_err(format!("more than {CAUSES_MAX} names of drops")));
        }
        let name: &'static str = Box::leak(name.to_owned().into_boxed_str());
        slot.causes.push(name);
        Ok(name)
    })
}

/// The application `python`, which runs a class of Python.
pub struct PythonApp {
    ports: PortMap,
    memory: Addr,
    /// Absent where it could not be made, which ends the run.
    object: Option<Object>,
}

impl<C: Cpu> Application<C> for PythonApp {
    fn packet(&mut self, cpu: &mut C, packet: &mut Packet) -> Verdict {
        let Some(object) = &self.object else {
            return Verdict::Drop(FAILED);
        };
        let Some(port) = self.ports.get(packet.port) else {
            return Verdict::Drop("no_such_port");
        };
        let held = object.reads_bytes.min(packet.head.len as usize);
        let frame = cpu.bytes(packet.head.at, held).to_vec();
        let answer = match Python::attach(|py| object.packet(py, &frame)) {
            Ok(answer) => answer,
            Err(error) => {
                fail(error);
                return Verdict::Drop(FAILED);
            }
        };
        let Answer { frame: changed, cause, touched } = answer;
        for (at, writes) in touched {
            let at = self.memory + at;
            let word: u64 = cpu.load(at);
            if writes {
                cpu.store(at, word.wrapping_add(1));
            }
        }
        if let Some(cause) = cause {
            return Verdict::Drop(cause);
        }
        if changed != frame {
            cpu.bytes_mut(packet.head.at, held).copy_from_slice(&changed);
        }
        Verdict::Transmit(port.peer)
    }

    fn work(&self) -> Option<Cycles> {
        self.object.as_ref().map(|object| object.work)
    }
}

impl AppKind for PythonApp {
    const NAME: &'static str = "python";
    const ABOUT: &'static str = "a class of Python, for teaching";
    const WORK: Option<Cycles> = Some(Cycles(100));
    type Options = ();

    fn build<C: Cpu>(
        config: &AppConfig,
        place: Place,
        space: &mut AddressSpace,
        _shared: &SharedTables,
    ) -> Result<Box<dyn Application<C>>, AppError> {
        let object = Python::attach(|py| Object::new(py, place)).map_err(fail).ok();
        let bytes = object.as_ref().map_or(0, |object| object.memory_bytes);
        let memory = space.data(bytes.max(64), 64);
        Ok(Box::new(PythonApp { ports: config.ports.clone(), memory, object }))
    }
}
