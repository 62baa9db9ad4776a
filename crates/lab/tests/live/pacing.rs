//! Bursts that leave one after another, into a receiver with little room on the device's core.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use nicforge_lab::live::{parse_live, run_live_over};
use nicforge_lab::settings::Catalogue;
use nicforge_platform::live::ports::{Port, PortCounters};
use nicforge_platform::live::{LiveError, allowed_cores, stand_on};
use nicforge_units::Time;

const FRAMES: u64 = 20_000;
/// Frames that find room at the receiver: three full bursts.
const ROOM: usize = 96;

/// What a socket is to whoever waits for its frames.
#[derive(Default)]
struct Socket {
    waiting: Mutex<usize>,
    some: Condvar,
}

impl Socket {
    /// Waits for frames and takes all that there are.
    fn take(&self) -> usize {
        let waiting = self.waiting.lock().unwrap();
        let mut waiting = self.some.wait_while(waiting, |waiting| *waiting == 0).unwrap();
        std::mem::take(&mut *waiting)
    }
}

/// Has frames at all times, and sends into the socket.
struct Busy {
    left: u64,
    socket: Arc<Socket>,
    counters: PortCounters,
}

impl Port for Busy {
    fn receive(&mut self, budget: usize, each: &mut dyn FnMut(&[u8])) -> Result<usize, LiveError> {
        let count = self.left.min(budget as u64);
        (0..count).for_each(|_| each(&[0x02; 64]));
        self.left -= count;
        self.counters.received += count;
        Ok(count as usize)
    }

    fn send(&mut self, _frame: &[u8], _now: Time) -> Result<(), LiveError> {
        let mut waiting = self.socket.waiting.lock().unwrap();
        if *waiting < ROOM {
            *waiting += 1;
            self.counters.sent += 1;
            self.socket.some.notify_one();
        } else {
            self.counters.refused += 1;
        }
        Ok(())
    }

    fn counters(&self) -> &PortCounters {
        &self.counters
    }

    fn counters_mut(&mut self) -> &mut PortCounters {
        &mut self.counters
    }
}

#[test]
fn full_bursts_leave_their_receiver_the_core() {
    let text = "[live]\nname = \"x\"\n[settings]\ninterface = \"priv_ring\"\napp = \"l2fwd\"\n[[port]]\nread = \"a\"\n";
    let config = parse_live(text, Path::new("x.toml"), &Catalogue::shipped()).unwrap();
    let socket = Arc::new(Socket::default());
    let port = Busy { left: FRAMES, socket: socket.clone(), counters: PortCounters::default() };
    // The receiver and all threads of the run stand here.
    stand_on(allowed_cores().unwrap()[0]).unwrap();
    let stop = AtomicBool::new(false);
    let (run, refused) = std::thread::scope(|scope| {
        let receiver = scope.spawn(|| while socket.take() != usize::MAX {});
        let mut watch = |now: &nicforge_lab::live::Snapshot| {
            if now.arrived() == FRAMES {
                stop.store(true, Ordering::Release);
            }
        };
        let run = run_live_over(&config, vec![Box::new(port)], &stop, &mut watch).unwrap();
        *socket.waiting.lock().unwrap() = usize::MAX;
        socket.some.notify_one();
        receiver.join().unwrap();
        let refused = run.snapshot.device.nics[0].port.refused;
        (run, refused)
    });
    assert_eq!(run.snapshot.arrived(), FRAMES);
    assert!(refused < FRAMES / 4, "{refused} of {FRAMES} found no room");
}
