//! `idle = "interrupt"`: an idle run takes next to no processor time, and a frame wakes its worker.
//!
//! A program of its own, as it counts the processor time of its process.
#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nicforge_lab::live::{parse_live, run_live_over};
use nicforge_lab::settings::Catalogue;
use nicforge_platform::live::ports::{PairPort, Port, PortCounters, pair};
use nicforge_platform::live::{Clock, LiveError};
use nicforge_units::Time;

/// A cable whose end becomes readable when a frame is there, as a NIC's file does.
struct Wire {
    port: PairPort,
    bell: UnixStream,
}

impl Port for Wire {
    fn receive(&mut self, budget: usize, each: &mut dyn FnMut(&[u8])) -> Result<usize, LiveError> {
        // Nothing to read is fine.
        let _ = self.bell.read(&mut [0; 64]);
        self.port.receive(budget, each)
    }

    fn send(&mut self, frame: &[u8], now: Time) -> Result<(), LiveError> {
        self.port.send(frame, now)
    }

    fn flush(&mut self) -> Result<(), LiveError> {
        self.port.flush()
    }

    fn readable(&self) -> Option<BorrowedFd<'_>> {
        Some(self.bell.as_fd())
    }

    fn counters(&self) -> &PortCounters {
        self.port.counters()
    }

    fn counters_mut(&mut self) -> &mut PortCounters {
        self.port.counters_mut()
    }
}

/// Clock ticks of this process so far, in user and kernel mode, of 100 a second (proc_pid_stat(5)).
fn ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

fn file(more: &str) -> String {
    format!(
        "[live]\nname = \"x\"\nidle = \"interrupt\"\npin = \"no\"\n{more}[settings]\napp = \"l2fwd\"\n[[port]]\n\
         interface = \"cable\"\n"
    )
}

/// Ends the run when the test ends, also by a failure.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn an_idle_worker_sleeps_until_a_frame_interrupts_it() {
    let config = parse_live(&file(""), Path::new("x.toml"), &Catalogue::shipped()).unwrap();
    let (mut host, port) = pair();
    let (mut ring, bell) = UnixStream::pair().unwrap();
    bell.set_nonblocking(true).unwrap();
    let port = Wire { port, bell };
    let stop = AtomicBool::new(false);
    let mut frame = vec![0x02; 60];
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    std::thread::scope(|scope| {
        let run = scope.spawn(|| run_live_over(&config, vec![Box::new(port)], &stop, &mut |_| {}));
        let ends = Ends(&stop);
        std::thread::sleep(Duration::from_millis(500));
        const IDLE: Duration = Duration::from_secs(3);
        let before = ticks();
        std::thread::sleep(IDLE);
        // Device, worker and the thread that watches, together.
        let share = (ticks() - before) as f64 / 100.0 / IDLE.as_secs_f64();
        assert!(share < 0.02, "{share} of a core");
        let clock = Clock::start();
        let mut longest = Time::ZERO;
        for _ in 0..20 {
            let sent = clock.now();
            host.send(&frame, Time::ZERO).unwrap();
            ring.write_all(&[1]).unwrap();
            let mut back = 0;
            while back == 0 {
                assert!(clock.now() < sent + Time::from_seconds(10.0), "no worker woke");
                back = host.receive(1, &mut |_| {}).unwrap();
                std::thread::yield_now();
            }
            longest = longest.max(clock.now() - sent);
            std::thread::sleep(Duration::from_millis(20));
        }
        // Not by the end of a sleep.
        assert!(longest < Time::from_ms(400), "{longest}");
        drop(ends);
        let run = run.join().unwrap().unwrap();
        assert_eq!(run.snapshot.arrived(), 20);
    });
}

#[test]
fn workers_that_attach_are_not_interrupted() {
    let text = file("attach = \"run.sock\"\n");
    let error = parse_live(&text, Path::new("x.toml"), &Catalogue::shipped()).unwrap_err().to_string();
    assert!(error.starts_with("x.toml:3:") && error.contains("attach"), "{error}");
}
