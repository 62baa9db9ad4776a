//! A number by which two programs know that they find each other's words in a run's memory.
//!
//! Places alone would not say so: a program that orders the fields of a descriptor otherwise has it at the same place. So the
//! number also follows from what lies in the memory when workers have brought their queues up, a frame has come in and one is
//! to go out. That happens in memory of its own, not in the run's.

use std::ops::Range;

use nicforge_nic::{Arriving, PortId, RxFlags, data_of};
use nicforge_platform::{Cpu, Flat, FlatCpu, FlatDma};
use nicforge_units::Time;

use super::layout::{Blueprint, Layout};
use crate::assembly::BuildError;

const PAGE: usize = 4096;
static ZEROS: [u8; PAGE] = [0; PAGE];
/// The frame and its completion have other bytes in each field, so their order shows.
const FRAME: [u8; 60] = [0x5a; 60];
const MARK: u64 = 0xda01_2345_6789_abcd;
const HASH: u32 = 0x1f2e_3d4c;
const STAMP: Time = Time::from_ps(0x0123_4567_89ab);
/// Late enough for a NIC that holds completions back.
const LATER: Time = Time::from_ms(10);

impl Blueprint {
    /// The number of what this blueprint lays out, and of how this program writes it.
    ///
    /// # Errors
    /// As of [`lay_out`](Self::lay_out).
    pub fn fingerprint(&self) -> Result<u64, BuildError> {
        let mut same = self.clone();
        // Each program chooses its own.
        same.app.seed = 0;
        let mut layout: Layout<Flat> = same.lay_out_on()?;
        let mut hash = Fnv::default();
        hash.add(layout.places().as_bytes());
        let memory = exchange(&mut layout, &mut hash).into_memory();
        for part in shared_parts(&layout) {
            for at in part.clone().step_by(PAGE) {
                let page = &memory[at as usize..part.end.min(at + PAGE as u64) as usize];
                // Nearly all are untouched, and compared at the speed of memory.
                if page != &ZEROS[..page.len()] {
                    hash.add(&at.to_le_bytes());
                    hash.add(page);
                }
            }
        }
        Ok(hash.0)
    }
}

/// Brings all queues up, lets a frame come in to worker 0 and puts one into its transmit ring.
fn exchange(layout: &mut Layout<Flat>, hash: &mut Fnv) -> FlatCpu {
    let mut dma = FlatDma::new(FlatCpu::new(layout.space.end()));
    for pool in std::iter::once(&layout.pool).chain(&layout.nicmem) {
        pool.start(&mut dma.cpu);
    }
    for worker in &mut layout.workers {
        worker.software.start(&mut dma.cpu);
    }
    if let Some(worker) = layout.workers.first_mut() {
        worker.software.originate(&mut dma.cpu, PortId(0), &FRAME);
        worker.software.send(&mut dma.cpu);
    }
    let rung: Vec<_> = dma.cpu.registers().collect();
    for (register, value) in rung {
        hash.add(format!("{register:?} {value}").as_bytes());
        if let Some(nic) = layout.nics.get_mut(usize::from(register.device)) {
            nic.write_register(&mut dma, register.index, value);
        }
    }
    receive(layout, &mut dma, hash);
    dma.cpu
}

/// A NIC that cores play is left out: it needs them at work.
fn receive(layout: &mut Layout<Flat>, dma: &mut FlatDma, hash: &mut Fnv) {
    let Some(nic) = layout.nics.first_mut().filter(|nic| !nic.receive.is_whole()) else {
        return;
    };
    let frame = Arriving {
        bytes: &FRAME,
        head: FRAME.len(),
        headers: FRAME.len(),
        stamp: STAMP,
        rss_hash: HASH,
        flags: RxFlags::L3_BAD,
        mark: MARK,
        segment: 0,
        port: PortId(0),
        queue: 0,
    };
    let _ = nic.receive.receive(dma, &frame);
    dma.set_now(LATER);
    nic.receive.advance(dma);
    let Some(worker) = layout.workers.first_mut() else {
        return;
    };
    for index in 0..worker.software.poll(&mut dma.cpu, 0) {
        let packet = *worker.software.polled(index);
        hash.add(format!("{packet:?}").as_bytes());
        let metadata = data_of(packet.mbuf).0 - packet.mbuf.0;
        hash.add(dma.cpu.bytes(packet.mbuf, metadata as usize));
    }
}

/// The memory without the buffers and without the tables that only one worker writes.
fn shared_parts(layout: &Layout<Flat>) -> Vec<Range<u64>> {
    let pools = std::iter::once(&layout.pool).chain(&layout.nicmem).map(|pool| {
        let (at, bytes) = pool.memory();
        at.0..at.0 + bytes
    });
    let mut left_out: Vec<_> = pools.chain(layout.workers.iter().map(|worker| worker.tables.clone())).collect();
    left_out.sort_by_key(|range| range.start);
    let (mut parts, mut at) = (Vec::new(), 0);
    for range in left_out {
        parts.push(at..range.start.max(at));
        at = at.max(range.end);
    }
    parts.push(at..layout.space.end());
    parts
}

/// FNV-1a; the standard library's hashes differ between its versions.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        let hash = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        self.0 = bytes.iter().fold(self.0, hash);
    }
}

#[cfg(test)]
mod tests;
