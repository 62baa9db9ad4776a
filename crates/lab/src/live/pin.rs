//! Which core each thread of a live run stands on.

use nicforge_platform::live::{allowed_cores, stand_on};

use nicforge_options::{ConfigError, Place, Section, choice, options};

use crate::live::LiveRunError;

choice! {
    /// Whether each thread of a run, the device's and every worker's, gets a core of its own.
    pub enum Pin {
        /// When there are more cores than threads.
        Auto = "auto",
        /// Always; a run with fewer cores than threads is refused.
        Yes = "yes",
        /// The system places threads.
        No = "no",
    }
}

options! {
    /// Cores of threads.
    pub struct PinOptions {
        /// Whether the device's thread and each worker's get a core of their own; auto: when a core is left.
        pin: Pin = Pin::Auto, "", Pin::ALLOWED;
    }
}

/// A core for the device's thread and one for each worker's, or for none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places(Vec<usize>);

impl Places {
    /// For a device and `workers` workers, on the cores that this process may use, as `live` has it.
    ///
    /// # Errors
    /// Pinning is wanted, and there are fewer cores than threads.
    pub fn new(live: &Section, workers: usize) -> Result<Places, LiveRunError> {
        let PinOptions { pin } = live.read();
        Ok(Places::among(&allowed_cores()?, pin, live.place_of("pin"), workers)?)
    }

    fn among(cores: &[usize], pin: Pin, place: &Place, workers: usize) -> Result<Places, ConfigError> {
        let threads = workers + 1;
        let pins = match pin {
            Pin::No => false,
            // One is left for everybody else.
            Pin::Auto => cores.len() > threads,
            Pin::Yes if cores.len() < threads => {
                let cores = cores.len();
                let wrong =
                    format!("{threads} threads, the device's and each worker's, cannot have a core each of {cores}");
                let right = "use fewer workers (`cores`), or pin = \"auto\"";
                return Err(ConfigError::new(place, wrong, right));
            }
            Pin::Yes => true,
        };
        let taken = if pins { threads } else { 0 };
        Ok(Places(cores[..taken].to_vec()))
    }

    /// The device's.
    pub fn device(&self) -> Option<usize> {
        self.0.first().copied()
    }

    /// Worker `number`'s.
    pub fn worker(&self, number: usize) -> Option<usize> {
        self.0.get(number + 1).copied()
    }
}

/// This thread goes to `core`, if there is one for it. A core that was taken away meanwhile is no
/// reason to stop.
pub fn go_to(core: Option<usize>) {
    if let Some(core) = core {
        let _ = stand_on(core);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_pinned_when_a_core_is_left() {
        let place = Place::argument("x.toml:3:1");
        let among = |pin, workers| Places::among(&[2, 3, 5], pin, &place, workers);
        let all = |places: Places| {
            let workers = (0..3).filter_map(|worker| places.worker(worker));
            places.device().into_iter().chain(workers).collect::<Vec<_>>()
        };
        assert_eq!(all(among(Pin::Auto, 1).unwrap()), [2, 3]);
        assert_eq!(all(among(Pin::Auto, 2).unwrap()), [0usize; 0]);
        assert_eq!(all(among(Pin::Yes, 2).unwrap()), [2, 3, 5]);
        assert_eq!(all(among(Pin::No, 1).unwrap()), [0usize; 0]);
        let refused = among(Pin::Yes, 3).unwrap_err().to_string();
        assert!(refused.starts_with("x.toml:3:1: 4 threads"), "{refused}");
    }
}
