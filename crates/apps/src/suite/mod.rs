//! Tests that every application passes, also those of other crates: [`check`].
//!
//! | file | what is shown |
//! | --- | --- |
//! | ground.rs | one core on plain memory, in the simulation and on shared memory, behind one trait |
//! | frames.rs | frames of every kind, cut short, damaged and in two parts |

mod frames;
mod ground;

use nicforge_nic::{Packet, PortId, RxFlags, Segment, TxOffload, data_of};
#[cfg(target_os = "linux")]
use nicforge_platform::live::LiveCpu;
use nicforge_platform::{Addr, FlatCpu};
use nicforge_units::Time;

use crate::{AppConfig, AppKind, Apps, Place, PortMap, Verdict};

pub use ground::{BUFFER, CpuOf, Ground, On, Sim};

/// Ports of the machine that [`check`] makes.
const PORTS: u8 = 2;

/// Runs application `A` with its default options on every ground, on frames of all kinds, whole, cut short, damaged and
/// in two parts. Prints what it checks on standard error.
///
/// # Panics
/// The application panics, does different things on different grounds, sends to a port that does not exist, or drops
/// without a cause. The last line on standard error names the frame.
pub fn check<A: AppKind>() {
    let mut apps = Apps::default();
    apps.add::<A>();
    for ports in [PortMap::paired(PORTS), PortMap::one_armed(PORTS)] {
        let config = AppConfig::new(A::NAME, ports).with("table_entries", 4096).with("kvs_log_mib", 16);
        for frame in frames::all() {
            eprintln!("{}: {}", A::NAME, frame.name);
            let mut bench = Bench::new(&apps, &config);
            for bytes in frames::variants(&frame.bytes) {
                for split in [bytes.len(), bytes.len() / 2, 0] {
                    bench.send(&bytes, split);
                }
            }
        }
    }
}

/// An application on one core of every ground.
struct Bench {
    flat: On<FlatCpu>,
    sim: On<Sim>,
    #[cfg(target_os = "linux")]
    live: On<LiveCpu>,
    /// Frames sent so far.
    sent: u64,
}

impl Bench {
    fn new(apps: &Apps, config: &AppConfig) -> Bench {
        let place = Place { core: 0, cores: 1 };
        Bench {
            flat: On::new(apps, config, place),
            sim: On::new(apps, config, place),
            #[cfg(target_os = "linux")]
            live: On::new(apps, config, place),
            sent: 0,
        }
    }

    /// The application gets a frame, in two buffers after `split` bytes.
    fn send(&mut self, bytes: &[u8], split: usize) {
        let (head, rest) = bytes.split_at(split);
        let at = data_of(self.flat.mbuf);
        let segment = |at, bytes: &[u8]| Segment { at, len: bytes.len() as u32 };
        let packet = Packet {
            mbuf: self.flat.mbuf,
            tail: Addr(0),
            references: Addr(0),
            head: segment(at, head),
            rest: segment(at + BUFFER / 2, rest),
            port: PortId((self.sent % u64::from(PORTS)) as u8),
            rss_hash: 0,
            flags: RxFlags::default(),
            mark: 0,
            offload: TxOffload::default(),
            stamp: Time::ZERO,
        };
        self.sent += 1;
        let (verdict, _, out) = self.flat.handle(packet, [head, rest]);
        judge(&verdict);
        let (in_sim, _, out_of_sim) = self.sim.handle(packet, [head, rest]);
        assert_eq!((in_sim, out_of_sim), (verdict, out.clone()), "the simulation and plain memory differ");
        #[cfg(target_os = "linux")]
        {
            let (live, _, out_of_live) = self.live.handle(packet, [head, rest]);
            assert_eq!((live, out_of_live), (verdict, out), "shared memory and plain memory differ");
        }
    }
}

/// What may become of a packet.
fn judge(verdict: &Verdict) {
    match verdict {
        Verdict::Transmit(port) => assert!(port.0 < PORTS, "it sends to port {}, and there are {PORTS}", port.0),
        Verdict::Drop(cause) => assert!(!cause.is_empty(), "it drops without a cause"),
        Verdict::Keep | Verdict::Take => {}
    }
}

#[cfg(test)]
mod tests;
