//! What the `Cpu` and `Dma` contracts cost: the protocol of private rings through them, and the same
//! protocol written by hand over slices (by_hand.rs), both ends in turn on one core.

use std::process::{Command, Stdio};
use std::time::Instant;

use nicforge_nic::{Arriving, Packet, PortId, RxFlags, registers};
use nicforge_platform::live::{Bell, Control, LiveCpu, LiveDma};
use nicforge_platform::{Addr, Register};
use nicforge_units::Time;

use super::by_hand::ByHand;
use super::halves::{BURST, Layout, frames, lay_out};
use super::spread::Spread;

/// Bursts of each measurement, how many of each kind are taken in turn, in how many places of a process,
/// and in how many processes.
const BURSTS: usize = 2_000;
const ROUNDS: usize = 20;
const PLACES: usize = 3;
const PROCESSES: usize = 9;

/// Time of the one by that of the other, for frames of `len` bytes. Where in memory both lie, code and
/// stack too, makes one faster or slower than the other by several per cent, as long as a process lives:
/// so there are several processes, each of which lays them out anew several times. The median counts.
pub fn ratio(len: usize) -> Spread {
    Spread::of((0..PROCESSES).flat_map(|_| of_process(len)).collect())
}

/// What [`in_places`] says in a process of its own.
fn of_process(len: usize) -> Vec<f64> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["contracts", "ratios", &len.to_string()]);
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| line.parse().unwrap()).collect()
}

/// Says the ratio in several places of this process.
pub fn in_places(len: usize) {
    let bytes = frames(len);
    let frames: Vec<Arriving<'_>> = bytes.iter().map(|frame| arriving(frame)).collect();
    for _ in 0..PLACES {
        println!("{}", ratio_here(&frames));
    }
}

/// The ratio in one place in memory. Each time is the lowest decile of many short measurements, taken in
/// turn: what else happens on the machine makes some longer, none shorter.
fn ratio_here(frames: &[Arriving<'_>]) -> f64 {
    let (mut contracts, mut by_hand) = (Contracts::new(), ByHand::new());
    let time = |burst: &mut dyn FnMut()| {
        let began = Instant::now();
        for _ in 0..BURSTS {
            burst();
        }
        began.elapsed().as_secs_f64()
    };
    let (mut through, mut beside) = (Vec::new(), Vec::new());
    for round in 0..2 * ROUNDS {
        // The one, the other, the other, the one, and so on: each comes first as often.
        match round % 4 {
            0 | 3 => through.push(time(&mut || contracts.burst(frames))),
            _ => beside.push(time(&mut || by_hand.burst(frames))),
        }
    }
    lowest_decile(&mut through) / lowest_decile(&mut beside)
}

fn lowest_decile(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 10]
}

/// One of the two (`contracts` or `by_hand`) alone: for counting instructions.
pub fn only(side: &str, len: usize, bursts: usize) {
    let bytes = frames(len);
    let frames: Vec<Arriving<'_>> = bytes.iter().map(|frame| arriving(frame)).collect();
    match side {
        "contracts" => {
            let mut contracts = Contracts::new();
            (0..bursts).for_each(|_| contracts.burst(&frames));
        }
        _ => {
            let mut by_hand = ByHand::new();
            (0..bursts).for_each(|_| by_hand.burst(&frames));
        }
    }
}

/// Both halves of the interface, as they are.
struct Contracts {
    layout: Layout,
    control: Control,
    cpu: LiveCpu,
    dma: LiveDma,
    doorbell: u64,
    packets: Vec<Packet>,
}

impl Contracts {
    fn new() -> Contracts {
        let mut layout = lay_out("priv_ring");
        let control = Control::new(&layout.space, &layout.shape).unwrap();
        let bell = Bell::new().unwrap();
        let mut cpu = LiveCpu::new(control.clone(), bell, 0).device_polls();
        let dma = LiveDma::new(control.clone(), &layout.space).workers_poll();
        layout.pool.start(&mut cpu);
        layout.driver.start(&mut cpu, &mut layout.cache);
        Contracts { layout, control, cpu, dma, doorbell: 0, packets: Vec::with_capacity(BURST) }
    }

    #[inline(never)]
    fn burst(&mut self, frames: &[Arriving<'_>]) {
        let Layout { nic, driver, cache, .. } = &mut self.layout;
        let register = Register { device: 0, index: registers::RECEIVE };
        let doorbell = self.control.register_value(register);
        if doorbell != self.doorbell {
            self.doorbell = doorbell;
            nic.write_register(&mut self.dma, 0, doorbell);
        }
        for frame in frames {
            let received = nic.receive(&mut self.dma, frame);
            assert!(received.is_ok(), "a ring with room drops nothing");
        }
        self.dma.wake();
        driver.rx_burst(&mut self.cpu, cache, &mut self.packets, BURST);
        free(&mut self.packets, |mbuf| cache.give(&mut self.cpu, mbuf));
    }
}

fn arriving(frame: &[u8]) -> Arriving<'_> {
    Arriving {
        mark: 0,
        bytes: frame,
        head: frame.len(),
        headers: 42,
        stamp: Time::ZERO,
        rss_hash: 1,
        flags: RxFlags::L3_GOOD,
        segment: 0,
        port: PortId(0),
        queue: 0,
    }
}

pub fn free(packets: &mut Vec<Packet>, mut give: impl FnMut(Addr)) {
    assert_eq!(packets.len(), BURST, "all that came is taken");
    packets.drain(..).for_each(|packet| give(packet.mbuf));
}
