//! Why nothing moves: for now, until a timer of TCP, or for ever.

use std::cell::Ref;

use nicforge_nic::DropCounters;
use nicforge_units::Time;

use super::build::Systems;
use super::stack::{Connection, Kernel};

/// Whether no process of these will ever run again: all wait, and what is written to a connection
/// and not acknowledged finds no room at the other end, whose process does not read. TCP's probes of
/// such a window go on.
pub fn is_for_ever(systems: &Systems) -> bool {
    let kernels = kernels(systems);
    let mut connections = all(&kernels);
    kernels.iter().all(|kernel| kernel.all_wait()) && connections.all(|connection| is_blocked(connection, &kernels))
}

fn kernels(systems: &Systems) -> Vec<Ref<'_, Kernel>> {
    systems.systems.iter().map(|system| system.kernel.borrow()).collect()
}

fn all<'a>(kernels: &'a [Ref<'_, Kernel>]) -> impl Iterator<Item = &'a Connection> {
    kernels.iter().flat_map(|kernel| &kernel.connections)
}

fn is_blocked(connection: &Connection, kernels: &[Ref<'_, Kernel>]) -> bool {
    let (here, there) = (connection.plan.local, connection.plan.remote);
    let peer = all(kernels).find(|peer| (peer.plan.local, peer.plan.remote) == (there, here));
    // A process that reads takes all that there is: with less room than for a segment it does not.
    let full = peer.is_some_and(|peer| peer.engine.receive_room() < peer.plan.mtu);
    connection.engine.is_established() && (connection.engine.unacknowledged() == 0 || full)
}

/// What is to be said of a window that ended at `now`, in which no payload moved; `drops` are those
/// of the system that is looked at, of the whole run.
pub fn explain(systems: &Systems, now: Time, drops: &DropCounters) -> String {
    let kernels = kernels(systems);
    // An end that is opened or closed has asked for that, and asks again.
    let waits = |connection: &&Connection| {
        let asks = connection.engine.unacknowledged() > 0 || connection.engine.is_under_way();
        asks && connection.due > now && connection.due < Time::NEVER
    };
    let opened = all(&kernels).filter(|connection| connection.engine.is_established());
    let waiting: Vec<&Connection> = all(&kernels).filter(waits).collect();
    let first = waiting.iter().map(|connection| connection.due).min();
    let first = first.filter(|first| *first < Time::NEVER);
    let first = first.map_or(String::new(), |first| format!(", the first for {} more", first - now));
    let causes = drops.causes().iter().filter(|(_, count)| *count > 0);
    let causes = causes.map(|&(cause, count)| (cause, count));
    let devices = systems.world.hosts.iter().flat_map(|host| &host.devices);
    let on_links: u64 = devices.map(|device| device.lost_on_link()).sum();
    let on_links = (on_links > 0).then_some(("on the links", on_links));
    let causes: Vec<String> = causes.chain(on_links).map(|(cause, count)| format!("{cause} {count}")).collect();
    format!(
        "no payload moved in the window: of {} ends of connections {} are open and {} wait for a \
         timer to send again{first}; dropped since the run began: {}",
        all(&kernels).count(),
        opened.count(),
        waiting.len(),
        if causes.is_empty() { "nothing".to_string() } else { causes.join(", ") }
    )
}
