//! Packets that are followed through a run: chosen in its window, and let to their ends behind it.

use nicforge_platform::tracer::Tracer;
use nicforge_record::Trace;
use nicforge_units::Time;

use super::RunError;
use crate::life::{FollowedOn, life_of};
use crate::world::World;

/// Packets that are followed have so long to come to their ends behind the window.
const FOLLOWED_FOR: Time = Time::from_ms(10);

/// From now on `packets` of those that come in to `world` are followed, if any.
pub fn begin_trace(world: &mut World, packets: Option<usize>) {
    *tracer_of(world) = packets.map(|packets| Box::new(Tracer::new(packets)));
}

/// The window is over at `ended`, and all is measured. Packets that are followed come to their ends.
pub fn end_trace(world: &mut World, ended: Time) -> Result<Option<Trace>, RunError> {
    if let Some(tracer) = tracer_of(world) {
        tracer.close();
    }
    let mut until = ended.max(world.now());
    let latest = until + FOLLOWED_FOR;
    while until < latest && tracer_of(world).as_ref().is_some_and(|tracer| tracer.follows()) {
        until = (until + Time::from_us(20)).min(latest);
        world.run_until(until)?;
    }
    let tracer = tracer_of(world).take();
    Ok(tracer.map(|tracer| Trace {
        chosen_of: tracer.came(),
        packets: tracer.into_packets().iter().map(|packet| life_of(packet, FollowedOn::Sim)).collect(),
    }))
}

fn tracer_of(world: &mut World) -> &mut Option<Box<Tracer>> {
    &mut world.hosts[0].machine.tracer
}
