//! Programs that share the machine without touching packets: they use memory.

use nicforge_platform::{Addr, AddressSpace, Cpu, Hint, Part};
use nicforge_units::{Bytes, Cycles};

use crate::Copier;

/// Bytes of each array that STREAM triad walks: four times a large LLC (STREAM's own rule).
const STREAM_ARRAY: Bytes = Bytes(96 << 20);
/// Bytes per step of the triad.
const STREAM_STEP: u64 = 512;
/// Bytes of the graph that random accesses go to.
const GRAPH: Bytes = Bytes(256 << 20);
/// Vertices visited in one step.
const GRAPH_VISITS: u64 = 4;

/// A co-runner on one core.
#[derive(Clone, Debug)]
pub enum CoRunner {
    /// `a[i] = b[i] + s × c[i]` over three arrays, as STREAM triad does.
    Stream {
        /// The three arrays.
        arrays: [Addr; 3],
        /// Offset of the next step.
        at: u64,
    },
    /// Follows edges of a large graph: independent random reads with a little work each.
    Graph {
        /// Its vertices.
        vertices: Addr,
        /// State of the walk.
        state: u64,
    },
    /// Copies memory.
    Copy(Copier),
}

impl CoRunner {
    /// STREAM triad.
    pub fn stream(space: &mut AddressSpace) -> CoRunner {
        CoRunner::Stream { arrays: std::array::from_fn(|_| space.data(STREAM_ARRAY.0, 4096)), at: 0 }
    }

    /// A random-access graph kernel; `seed` tells several apart.
    pub fn graph(space: &mut AddressSpace, seed: u64) -> CoRunner {
        CoRunner::Graph { vertices: space.data(GRAPH.0, 4096), state: seed | 1 }
    }

    /// The same program, a graph kernel with a walk of its own.
    pub fn seeded(&self, seed: u64) -> CoRunner {
        match self.clone() {
            CoRunner::Graph { vertices, .. } => CoRunner::Graph { vertices, state: seed | 1 },
            same => same,
        }
    }

    /// Bytes that it copied so far.
    pub fn copied(&self) -> u64 {
        match self {
            CoRunner::Copy(copier) => copier.copied,
            _ => 0,
        }
    }

    /// One step: a few hundred bytes of its work.
    pub fn step<C: Cpu>(&mut self, cpu: &mut C) {
        cpu.enter(Part::App);
        match self {
            CoRunner::Stream { arrays, at } => {
                let [a, b, c] = *arrays;
                cpu.bytes(b + *at, STREAM_STEP as usize);
                cpu.bytes(c + *at, STREAM_STEP as usize);
                cpu.bytes_mut(a + *at, STREAM_STEP as usize);
                // One vector multiply-add per 32 bytes.
                cpu.work(Cycles(STREAM_STEP / 32));
                *at = (*at + STREAM_STEP) % STREAM_ARRAY.0;
            }
            CoRunner::Copy(copier) => copier.step(cpu),
            CoRunner::Graph { vertices, state } => {
                for _ in 0..GRAPH_VISITS {
                    // xorshift64 (Marsaglia, Xorshift RNGs, 2003).
                    *state ^= *state << 13;
                    *state ^= *state >> 7;
                    *state ^= *state << 17;
                    let vertex = *state % (GRAPH.0 / 64) * 64;
                    cpu.hint(Hint::Fetch { at: *vertices + vertex, len: 8 });
                    cpu.work(Cycles(20));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nicforge_platform::FlatCpu;

    #[test]
    fn both_stay_within_their_memory_and_go_round() {
        let mut space = AddressSpace::default();
        let mut runners = [CoRunner::stream(&mut space), CoRunner::graph(&mut space, 7)];
        let mut cpu = FlatCpu::new(space.end());
        for _ in 0..2 * STREAM_ARRAY.0 / STREAM_STEP + 1 {
            runners[0].step(&mut cpu);
        }
        for _ in 0..10_000 {
            runners[1].step(&mut cpu);
        }
        assert!(matches!(runners[0], CoRunner::Stream { at: 512, .. }));
    }
}
