//! Which core each thread of a live run stands on.

use nicforge_platform::live::{allowed_cores, stand_on};

use super::config::Pin;
use crate::run::RunError;

/// A core for the device's thread and one for each worker's, or for none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places(Vec<usize>);

impl Places {
    /// For a device and `workers` workers, on the cores that this process may use.
    ///
    /// # Errors
    /// Pinning is wanted, and there are fewer cores than threads.
    pub fn new(pin: Pin, workers: usize) -> Result<Places, RunError> {
        Places::among(&allowed_cores()?, pin, workers)
    }

    fn among(cores: &[usize], pin: Pin, workers: usize) -> Result<Places, RunError> {
        let threads = workers + 1;
        let pins = match pin {
            Pin::No => false,
            // One is left for everybody else.
            Pin::Auto => cores.len() > threads,
            Pin::Yes if cores.len() < threads => {
                return Err(RunError::TooFewCores {
                    threads,
                    cores: cores.len(),
                });
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
        let among = |pin, workers| Places::among(&[2, 3, 5], pin, workers);
        let all = |places: Places| {
            let workers = (0..3).filter_map(|worker| places.worker(worker));
            places
                .device()
                .into_iter()
                .chain(workers)
                .collect::<Vec<_>>()
        };
        assert_eq!(all(among(Pin::Auto, 1).unwrap()), [2, 3]);
        assert_eq!(all(among(Pin::Auto, 2).unwrap()), [0usize; 0]);
        assert_eq!(all(among(Pin::Yes, 2).unwrap()), [2, 3, 5]);
        assert_eq!(all(among(Pin::No, 1).unwrap()), [0usize; 0]);
        let refused = among(Pin::Yes, 3);
        assert!(
            matches!(
                refused,
                Err(RunError::TooFewCores {
                    threads: 4,
                    cores: 3
                })
            ),
            "{refused:?}"
        );
    }
}
