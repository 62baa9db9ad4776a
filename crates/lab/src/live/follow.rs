//! Packets that are followed through a live run: each thread notes what it does with them.

use nicforge_options::{Allowed, ConfigError, options};
use nicforge_platform::live::{Clock, Recorder, Sample, followed};
use nicforge_record::Trace;

use super::config::LiveConfig;
use super::device::Device;
use super::worker::Worker;
use crate::life::{FollowedOn, life_of};

options! {
    /// Packets that are followed.
    pub struct FollowOptions {
        /// Packets whose lives are written down, in trace.json and trace.txt; chosen evenly from all that come in.
        trace: Option<usize> = None, "packets", Allowed::Whole(1, 10_000);
    }
}

/// Checks that packets can be followed, if any are.
///
/// # Errors
/// Other processes, or software that is no application, have them.
pub fn check(config: &LiveConfig) -> Result<(), ConfigError> {
    let others = match (&config.tcp, config.attach()) {
        (Some(_), _) => "a TCP stack is no worker that notes packets",
        (None, Some(_)) => "workers that attach note no packets",
        (None, None) => return Ok(()),
    };
    match config.live.read::<FollowOptions>().trace {
        Some(_) => Err(ConfigError::new(config.live.place_of("trace"), others, "leave `trace` out")),
        None => Ok(()),
    }
}

/// Has the threads of `device` and `workers` note packets, if `config` says so.
pub(super) fn begin(config: &LiveConfig, clock: Clock, device: &mut Device, workers: &mut [Worker]) {
    let Some(wanted) = config.live.read::<FollowOptions>().trace else {
        return;
    };
    let sample = Sample::new(wanted);
    device.dma().record(Recorder::new(clock, sample.clone(), None));
    for (number, worker) in workers.iter_mut().enumerate() {
        worker.cpu().record(Recorder::new(clock, sample.clone(), Some(number)));
    }
}

/// What they noted.
pub(super) fn end(config: &LiveConfig, device: &mut Device, workers: &mut [Worker]) -> Option<Trace> {
    let wanted = config.live.read::<FollowOptions>().trace?;
    let of_workers = workers.iter_mut().map(|worker| worker.cpu().take_record());
    let records = std::iter::once(device.dma().take_record()).chain(of_workers).flatten();
    let (packets, chosen_of) = followed(records.collect(), wanted);
    let packets = packets.iter().map(|packet| life_of(packet, FollowedOn::Live)).collect();
    Some(Trace { chosen_of, packets })
}
