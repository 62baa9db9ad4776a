//! How a driver takes packets out of a ring of buffers: each one against an empty buffer.

use nicforge_platform::{Addr, Cpu};

use crate::{Completion, CompletionReader, DriverCosts, Packet, PoolCache};

/// Appends up to `max` packets that `completions` tells of to `packets`; returns how many. `put`
/// lays an empty buffer into the entry of a completion, and returns the one that was there.
///
/// Where the pool has none, the packet comes all the same and `put` gets none: its own buffer may be the one that the
/// pool lacks (DPDK's vectorised mlx5 receive path). The driver fills the entry later.
/// An entry that holds no packet gives its buffer back to the pool.
#[inline]
pub fn exchange<C: Cpu>(
    cpu: &mut C,
    pool: &mut PoolCache,
    completions: &mut CompletionReader,
    packets: &mut Vec<Packet>,
    max: usize,
    costs: &DriverCosts,
    mut put: impl FnMut(&mut C, &Completion, Option<Addr>) -> Addr,
) -> u64 {
    let before = packets.len();
    let mut found = false;
    // A copy that nobody else sees: what a core stores costs it more than what it keeps.
    let mut reader = *completions;
    completions.look_ahead(cpu, max);
    for _ in 0..max {
        let Some((completion, after)) = reader.peek(cpu) else {
            break;
        };
        after.expect_buffers(cpu);
        let fresh = pool.take(cpu);
        reader = after;
        found = true;
        cpu.work(costs.rx_packet);
        let received = put(cpu, &completion, fresh);
        if completion.len == 0 {
            give_back(cpu, pool, received);
        } else {
            packets.push(completion.packet(cpu, received));
        }
    }
    *completions = reader;
    if found {
        cpu.work(costs.burst);
    }
    (packets.len() - before) as u64
}

/// Seldom, so that it stands out of line.
#[cold]
fn give_back<C: Cpu>(cpu: &mut C, pool: &mut PoolCache, mbuf: Addr) {
    pool.give(cpu, mbuf);
}
