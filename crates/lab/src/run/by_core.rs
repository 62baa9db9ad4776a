//! What each core did between the ends of a window.

use std::ops::Add;

use nicforge_nic::{DropCounters, Lending, Waiting};
use nicforge_platform::sim::CoreCycles;
use nicforge_record::CoreFigures;
use nicforge_units::Time;

use super::build::Built;
use crate::counts::{by_cause, share};
use crate::world::core_time::Cores;
use crate::world::{RingDevice, World};

/// Counts of one core at one time.
#[derive(Clone)]
pub struct CoreCounts {
    /// Where its time went.
    pub spent: CoreCycles,
    /// Frames that it took, and receive calls that brought them.
    taken: u64,
    bursts: u64,
    /// For its queues, and in its software.
    drops: DropCounters,
    /// Of its queues, summed over frames arriving for them.
    waiting: Waiting,
    /// Of its queues, where queues lend each other buffers.
    lending: Option<Lending>,
}

impl CoreCounts {
    /// Those of all cores of `world`, in their order, at `now`.
    pub fn of(world: &World, now: Time) -> Vec<CoreCounts> {
        let host = &world.hosts[0];
        let polling = host.cores.iter().filter(|core| core.program.polls_rings());
        let queues = polling.clone().count() / host.devices.len();
        let nics: Vec<_> = world.rings().map(|device| &device.nic).collect();
        let wholes: Vec<_> = world.rings().map(RingDevice::whole).collect();
        let each = polling.enumerate().map(|(number, core)| {
            let (device, queue) = (number / queues, number % queues);
            let nic = nics[device];
            let mut waiting = Waiting::default();
            let own = core.program.drops();
            let mut drops = vec![&own];
            for queue in nic.queues_of(queue as u16).map(usize::from) {
                let state = &nic.queue_states()[queue];
                waiting = waiting + state.waiting;
                drops.push(&state.drops);
                drops.extend(host.players_of(device).filter_map(|core| core.program.queue_drops().get(queue)));
                drops.extend(wholes[device].map(|nic| &nic.queue_states()[queue].drops));
            }
            let account = core.program.account();
            CoreCounts {
                spent: core.spent_until(now),
                taken: account.taken,
                bursts: account.bursts,
                drops: drops.into_iter().collect(),
                waiting,
                lending: nic.lending(queue as u16),
            }
        });
        each.collect()
    }

    /// What a core borrowed and lent from `before` on.
    fn lending_since(&self, before: &CoreCounts) -> Option<Lending> {
        let (until, from) = self.lending.zip(before.lending)?;
        Some(Lending { borrowed: until.borrowed - from.borrowed, lent: until.lent - from.lent })
    }
}

/// Frames that came in borrowed buffers from `before` to `after`, where cores lend each other any.
pub fn borrowed(before: &[CoreCounts], after: &[CoreCounts]) -> Option<u64> {
    let each = before.iter().zip(after);
    let each = each.filter_map(|(from, until)| until.lending_since(from));
    each.map(|lending| lending.borrowed).reduce(u64::add)
}

/// The figures of all cores, from `before` to `after`, which lie `seconds` apart.
pub fn by_core(built: &Built, before: &[CoreCounts], after: &[CoreCounts], seconds: f64) -> Vec<CoreFigures> {
    let each = before.iter().zip(after).enumerate();
    let figures = each.map(|(core, (from, until))| {
        let clock = built.hardware.core.frequency;
        let time = Cores::between(clock, std::iter::once((&from.spent, &until.spent)));
        let (frames, bytes) = built.world.outside.sink.sent_by(core);
        let taken = until.taken - from.taken;
        let drops = until.drops.since(&from.drops);
        let lending = until.lending_since(from);
        CoreFigures {
            core,
            nic: Some(core / built.queues),
            queue: Some(core % built.queues),
            received: taken,
            borrowed: lending.map(|lending| lending.borrowed),
            lent: lending.map(|lending| lending.lent),
            drops: by_cause(&drops),
            throughput_gbps: Some(bytes as f64 * 8.0 / seconds / 1e9),
            busy_fraction: time.idle_share(seconds).map(|idle| 1.0 - idle),
            cycles_per_packet: time.per_packet(frames).map(|cycles| cycles.total),
            mean_burst: share(taken, until.bursts - from.bursts),
            rx_occupancy: share(until.waiting.entries - from.waiting.entries, until.waiting.of - from.waiting.of),
        }
    });
    figures.collect()
}
