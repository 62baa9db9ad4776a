//! Servers of a load balancer as a file describes them: weights, and who is down.
//!
//! ```text
//! # address  weight, 0: no new flows, or `down`: its flows move, too
//! 10.0.0.1   3
//! 10.0.0.2   down
//! ```
//!
//! A server that the file does not name has weight 1. On a live ground a thread watches the file. Each core compares
//! versions, and reads the states again when the version has changed.

use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::AppError;

/// The highest weight.
const WEIGHT_MAX: u32 = 65_535;
/// How down servers are written.
const DOWN: &str = "down";

/// One server's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// Its share of new flows, in proportion.
    pub weight: u32,
    /// Its flows go to others.
    pub down: bool,
}

/// Reads what a file says of `count` servers from `first` on.
///
/// # Errors
/// File, line and remedy.
pub fn read_servers(file: &Path, first: Ipv4Addr, count: u32) -> Result<Vec<State>, AppError> {
    let wrong = |place: String, what: String| AppError::Servers { file: file.display().to_string(), place, what };
    let text = std::fs::read_to_string(file).map_err(|cause| wrong(String::new(), cause.to_string()))?;
    let mut states = vec![State { weight: 1, down: false }; count as usize];
    for (number, line) in (1u32..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let wrong = |what: String| wrong(format!(":{number}"), what);
        let mut words = line.split_whitespace();
        let (Some(address), Some(state), None) = (words.next(), words.next(), words.next()) else {
            return Err(wrong(format!("`{line}` is no server")));
        };
        let address: Ipv4Addr = address.parse().map_err(|_| wrong(format!("`{address}` is no address")))?;
        let server = states.get_mut(address.to_bits().wrapping_sub(first.to_bits()) as usize);
        let server =
            server.ok_or_else(|| wrong(format!("{address} is none of the {count} servers from {first} on")))?;
        *server = match state.parse() {
            Ok(weight) if weight <= WEIGHT_MAX => State { weight, down: false },
            _ if state == DOWN => State { weight: 0, down: true },
            _ => return Err(wrong(format!("`{state}` is no weight"))),
        };
    }
    Ok(states)
}

/// The states of servers that all cores share: the last ones that the file gave.
#[derive(Clone, Debug, Default)]
pub struct Servers(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    version: AtomicU64,
    states: Mutex<Arc<[State]>>,
    /// The file says something else by now that cannot be used.
    is_wrong: AtomicBool,
}

impl Servers {
    /// Which states these are: another number after each change, and 0 where no file was read.
    #[inline]
    pub fn version(&self) -> u64 {
        self.0.version.load(Ordering::Acquire)
    }

    /// The states of all servers; none where no file was read.
    pub fn states(&self) -> Arc<[State]> {
        self.0.states.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The states are `states` from now on.
    pub fn set(&self, states: Vec<State>) {
        self.0.is_wrong.store(false, Ordering::Relaxed);
        *self.0.states.lock().unwrap_or_else(PoisonError::into_inner) = states.into();
        self.0.version.fetch_add(1, Ordering::Release);
    }

    /// The file cannot be used as it is now: what it said before stands.
    pub fn set_wrong(&self) {
        self.0.is_wrong.store(true, Ordering::Relaxed);
    }

    /// Whether the file cannot be used as it is now.
    pub fn is_wrong(&self) -> bool {
        self.0.is_wrong.load(Ordering::Relaxed)
    }

    /// Whether this is the only handle: no application uses the states any more.
    pub fn is_alone(&self) -> bool {
        Arc::strong_count(&self.0) == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_and_who_is_down_are_read_and_mistakes_have_a_place() {
        let folder = std::env::temp_dir().join(format!("nicforge-servers-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("servers.txt");
        let first = Ipv4Addr::new(10, 0, 0, 1);
        let read = |text: &str| {
            std::fs::write(&file, text).unwrap();
            read_servers(&file, first, 3)
        };
        let states = read("# mine\n10.0.0.1 3\n\n10.0.0.3 down # broken\n").unwrap();
        let [a, b, c] = states[..] else { panic!("{states:?}") };
        assert_eq!((a.weight, b.weight, c.weight), (3, 1, 0));
        assert_eq!([a, b, c].map(|state| state.down), [false, false, true]);
        for (text, place, wrong) in [
            ("10.0.0.1 1\n10.0.0.4 1\n", ":2", "none of the 3 servers"),
            ("10.0.0.1\n", ":1", "no server"),
            ("10.0.0.1 many\n", ":1", "no weight"),
            ("10.0.0.1 65536\n", ":1", "no weight"),
            ("host 1\n", ":1", "no address"),
        ] {
            let said = read(text).unwrap_err().to_string();
            assert!(said.contains(&format!("servers.txt{place}")) && said.contains(wrong), "{said}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
