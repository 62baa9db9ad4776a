//! A point of a scenario on the live ground: its traffic over a cable in memory, its software as
//! workers of this process.
//!
//! ```text
//!   traffic source ─► generator's thread ─► cable ─► device thread ─► workers
//!                     takes what comes back ◄─────────┘
//! ```

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nicforge_options::Place;
use nicforge_platform::live::Clock;
use nicforge_platform::live::ports::{PairPort, Port, pair};
use nicforge_units::Time;
use nicforge_wire::traffic::TrafficSource;

use super::assemble::put_together;
use super::config::LiveConfig;
use super::device::WhenFull;
use super::layout::Blueprint;
use super::outcome::LiveRun;
use super::pin::Places;
use super::ports::PortConfig;
use super::threads::run_apart;
use crate::live::LiveRunError;
use crate::machine::Machine;
use crate::run::options::Arrival;
use crate::run::options::Arrivals;
use crate::run::{app_config, line_of, traffic_source};
use crate::settings::Settings;
use nicforge_stages::responder::Responder;

/// Frames that the generator sends or takes before it does the other.
const BURST: usize = 64;
/// A frame that is due later than this is slept for.
const SOON: Time = Time::from_us(200);
const NAP: Duration = Duration::from_micros(100);

/// Runs the point that `settings` describe for `duration` of real time, or to the end of its
/// capture. Sizes and traffic are the scenario's; the rest of `machine` is not used, except the
/// line's rate. Everything is counted from the first frame on: there is no warm-up.
///
/// # Errors
/// What cannot be on this ground, see [`check_live`]; and as [`run_live`](super::run_live).
pub fn run_point_live(
    machine: &Machine,
    settings: &Settings,
    seed: u64,
    duration: Time,
) -> Result<LiveRun, LiveRunError> {
    check_live(settings)?;
    let place = Place::argument("the cable in memory");
    let mut config = LiveConfig::blank(settings.clone());
    config.live.set("name", settings.interface(), place.clone());
    config.live.set("duration_s", duration.as_seconds(), place.clone());
    // As a NIC on a wire, which cannot wait.
    config.live.set("when_full", WhenFull::Drop, place.clone());
    config.ports.push(PortConfig::given(&place));
    let app = app_config(machine, settings, seed)?;
    let mac = app.ports.0.first().map(|port| port.mac).unwrap_or_default();
    let responders = vec![Responder::new(mac, None)];
    let blueprint = Blueprint { config: config.clone(), app };
    let line = line_of(&machine.hardware);
    let queues = settings.cores() as u16;
    let source = traffic_source(settings, line, seed, 0, queues, false)?;
    let (ours, theirs) = pair();
    let places = Places::new(&config.live, config.settings.cores())?;
    let assembly = put_together(blueprint, vec![Box::new(theirs)], responders)?;
    let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let _ends = SetAtEnd(&over);
        scope.spawn(|| generate(source, ours, &stop, &over));
        run_apart(&config, assembly, &places, &stop, &mut |_| {})
    })
}

/// Whether a point can run on the live ground.
///
/// # Errors
/// [`LiveRunError::OnlySimulated`] with what is in the way, and what to set.
pub fn check_live(settings: &Settings) -> Result<(), LiveRunError> {
    let only =
        |what: &str, right: &str| Err(LiveRunError::OnlySimulated { what: what.to_string(), right: right.to_string() });
    if settings.is_of_whole_systems() {
        return only("whole systems", "use a scenario of frames");
    }
    if settings.is_of_rpcs() {
        return only("RPCs over TCP as a service", "use a scenario of frames, or `nicforge sockets`");
    }
    if settings.is_of_storm() {
        return only("FlexStorm", "use a scenario of frames");
    }
    if settings.app_shape().requests.is_some() {
        return only("the key-value store's clients", "set app to another");
    }
    if settings.read::<Arrivals>().arrival == Arrival::PingPong {
        return only("ping-pong traffic", "set arrival=constant and offered_gbps");
    }
    if settings.nics() != 1 {
        let what = format!("{} NICs with cores of their own", settings.nics());
        return only(&what, "set nics=1 and cores to as many as one NIC has");
    }
    Ok(())
}

/// Set when it goes, however that comes.
pub(super) struct SetAtEnd<'a>(pub &'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Puts frames on the cable at their times, as far as there is room and time, until `over`; says
/// `stop` when a capture has ended and all of it was taken.
fn generate(mut source: TrafficSource, mut cable: PairPort, stop: &AtomicBool, over: &AtomicBool) {
    let clock = Clock::start();
    while !over.load(Ordering::Acquire) {
        let now = clock.now();
        let mut sent = 0;
        while sent < BURST
            && source.next_time() <= now
            && let Some(arrival) = source.next()
        {
            if cable.send(arrival.bytes, now).is_err() {
                return;
            }
            sent += 1;
        }
        let Ok(came) = cable.receive(BURST, &mut |_| {}) else {
            return;
        };
        if sent + came > 0 {
            continue;
        }
        let next = source.next_time();
        if next == Time::NEVER && cable.untaken() == 0 {
            stop.store(true, Ordering::Release);
        }
        if next > now + SOON { std::thread::sleep(NAP) } else { std::thread::yield_now() }
    }
}
