//! A web server with the file mix of SPECweb99, and clients that ask for one file after the other
//! on connections that stay open (integrated_nic, section 4.2.2).
//!
//! Which file a connection's n-th request is for follows from the seed, so both ends know.

use nicforge_platform::Addr;
use nicforge_units::Cycles;
use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

use super::{Call, Outcome};

/// A request with its headers.
const REQUEST_BYTES: u64 = 300;
/// Memory for requests, as a process has it.
pub const REQUEST_ROOM: u64 = 16_384;
/// Headers of an answer.
const ANSWER_HEADER_BYTES: u64 = 300;
/// Files of one class.
const FILES: u64 = 9;
/// Bytes of the smallest file of each class (SPECweb99: 0.1, 1, 10 and 100 KB; the others are
/// multiples up to nine times as large).
const CLASS_BYTES: [u64; 4] = [102, 1024, 10_240, 102_400];
/// Requests for each class, in thousandths (SPECweb99: 35, 50, 14 and 1 %).
const CLASS_SHARE: [u64; 4] = [350, 500, 140, 10];
/// Requests for the first to ninth file of a class, in thousandths (SPECweb99).
const FILE_SHARE: [u64; 9] = [39, 59, 88, 177, 353, 118, 71, 50, 45];
/// Requests for dynamic content, in thousandths (SPECweb99: 30 %).
const DYNAMIC_SHARE: u64 = 300;

/// The files of a server, by directory; directories are chosen by Zipf's law.
#[derive(Clone, Debug)]
pub struct Files {
    directories: u64,
    seed: u64,
}

/// What one request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wanted {
    /// Where the file begins.
    offset: u64,
    /// Bytes of the answer.
    answer: u64,
    dynamic: bool,
}

impl Files {
    /// `directories` directories of 36 files each.
    pub fn new(directories: u64, seed: u64) -> Files {
        Files { directories, seed }
    }

    fn directory_bytes() -> u64 {
        let multiples: u64 = (1..=FILES).sum();
        CLASS_BYTES.iter().map(|bytes| bytes * multiples).sum()
    }

    /// Bytes of all files, and of the headers of an answer behind the last.
    pub fn bytes(&self) -> u64 {
        self.directories * Files::directory_bytes() + ANSWER_HEADER_BYTES
    }

    fn wanted(&self, connection: usize, number: u64) -> Wanted {
        let seed = self.seed ^ (connection as u64) << 40 ^ number;
        let mut random = Pcg64::seed_from_u64(seed);
        let mut draw = |mut shares: &mut dyn Iterator<Item = u64>, all: u64| {
            let mut left = random.next_u64() % all.max(1);
            let chosen = Iterator::position(&mut shares, |share| {
                let here = left < share;
                left = left.wrapping_sub(share);
                here
            });
            chosen.unwrap_or(0)
        };
        let weights = |all: u64| (1..=all).map(|rank| 1_000_000 / rank);
        let total = weights(self.directories).sum();
        let directory = draw(&mut weights(self.directories), total) as u64;
        let class = draw(&mut CLASS_SHARE.into_iter(), 1000);
        let file = draw(&mut FILE_SHARE.into_iter(), 1000) as u64 + 1;
        let dynamic = draw(&mut [DYNAMIC_SHARE, 1000 - DYNAMIC_SHARE].into_iter(), 1000) == 0;
        let multiples: u64 = (1..=FILES).sum();
        let classes: u64 = CLASS_BYTES[..class].iter().map(|bytes| bytes * multiples).sum();
        let before: u64 = (1..file).sum();
        Wanted {
            offset: directory * Files::directory_bytes() + classes + before * CLASS_BYTES[class],
            answer: file * CLASS_BYTES[class] + ANSWER_HEADER_BYTES,
            dynamic,
        }
    }
}

/// The server: one process, whichever connection has a request.
#[derive(Debug)]
pub struct Server {
    files: Files,
    /// The files.
    memory: Addr,
    /// Where requests are read to.
    requests_at: Addr,
    /// Requests that each connection has made.
    requests: Vec<u64>,
    current: usize,
    /// Its work for a request, and what more for a dynamic one.
    work: (Cycles, Cycles),
}

impl Server {
    /// Over `connections` connections, some of which may be other processes'; the files are at the
    /// first of the addresses, requests are read to the second.
    pub fn new(files: Files, memory: Addr, requests_at: Addr, connections: usize, work: (Cycles, Cycles)) -> Server {
        Server { files, memory, requests_at, requests: vec![0; connections], current: 0, work }
    }

    fn wanted(&self) -> Wanted {
        self.files.wanted(self.current, self.requests[self.current])
    }

    /// The next call.
    pub fn next(&mut self, last: Outcome) -> Call {
        match last {
            Outcome::Readable(connection) => {
                self.current = connection;
                Call::Receive { connection, to: self.requests_at, len: REQUEST_BYTES, all: true }
            }
            Outcome::Received(_) => {
                let more = if self.wanted().dynamic { self.work.1 } else { Cycles(0) };
                Call::Compute(self.work.0 + more)
            }
            Outcome::Computed => {
                let wanted = self.wanted();
                self.requests[self.current] += 1;
                Call::Send {
                    connection: self.current,
                    from: self.memory + wanted.offset,
                    len: wanted.answer,
                    gives_way: false,
                }
            }
            Outcome::Begun | Outcome::Sent(_) => Call::Select,
        }
    }
}

/// The clients: each connection asks for its next file when it has the last.
#[derive(Debug)]
pub struct Clients {
    files: Files,
    memory: Addr,
    /// Bytes of one read.
    read: u64,
    /// Of each connection: requests made, and bytes that are still to come.
    state: Vec<(u64, u64)>,
    current: usize,
    opening: bool,
}

impl Clients {
    /// `connections` clients that read up to `read` bytes at a time to `memory`.
    pub fn new(files: Files, memory: Addr, connections: usize, read: u64) -> Clients {
        Clients { files, memory, read, state: vec![(0, 0); connections], current: 0, opening: true }
    }

    fn ask(&mut self) -> Call {
        let (number, left) = &mut self.state[self.current];
        *left = self.files.wanted(self.current, *number).answer;
        *number += 1;
        Call::Send { connection: self.current, from: self.memory, len: REQUEST_BYTES, gives_way: false }
    }

    /// The next call.
    pub fn next(&mut self, last: Outcome) -> Call {
        match last {
            Outcome::Begun => self.ask(),
            Outcome::Sent(_) if self.opening && self.current + 1 < self.state.len() => {
                self.current += 1;
                self.ask()
            }
            Outcome::Readable(connection) => {
                self.current = connection;
                Call::Receive {
                    connection,
                    // Requests lie at the beginning.
                    to: self.memory + REQUEST_ROOM,
                    len: self.state[connection].1.min(self.read),
                    all: false,
                }
            }
            Outcome::Received(bytes) => {
                let left = &mut self.state[self.current].1;
                *left -= bytes.min(*left);
                match *left {
                    0 => self.ask(),
                    _ => Call::Select,
                }
            }
            Outcome::Sent(_) | Outcome::Computed => {
                self.opening = false;
                Call::Select
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mix_is_that_of_the_benchmark() {
        let files = Files::new(16, 1);
        let drawn: Vec<Wanted> = (0..20_000).map(|number| files.wanted(3, number)).collect();
        let share = |holds: &dyn Fn(&Wanted) -> bool| {
            drawn.iter().filter(|wanted| holds(wanted)).count() as f64 / drawn.len() as f64
        };
        let size = |wanted: &Wanted| wanted.answer - ANSWER_HEADER_BYTES;
        assert!((share(&|wanted| size(wanted) < 1024) - 0.35).abs() < 0.02);
        assert!((share(&|wanted| size(wanted) > 100_000) - 0.01).abs() < 0.003);
        assert!((share(&|wanted| wanted.dynamic) - 0.3).abs() < 0.02);
        let mean = drawn.iter().map(size).sum::<u64>() as f64 / drawn.len() as f64;
        // 0.35, 0.5, 0.14 and 0.01 of 5 x 102, 1024, 10240 and 102400 bytes, nearly.
        assert!((13_000.0..17_000.0).contains(&mean), "{mean}");
        assert!(drawn.iter().all(|wanted| wanted.offset + wanted.answer <= files.bytes()));
    }
}
