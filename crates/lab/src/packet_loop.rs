//! What the software on a core does, on either ground: poll its queues, one packet at a time to
//! completion, flush.

use nicforge_apps::App;
use nicforge_nic::transmit::TransmitDriver;
use nicforge_nic::{DriverHalf, DropCounters, Packet, PoolCache, PortId, Verdict, data_of};
use nicforge_options::Allowed;
use nicforge_platform::{BurstMoment, Cpu, Hint, Moment, PacketKey, Part};

nicforge_options::options! {
    /// The loop of a core.
    pub struct Burst {
        /// Packets per receive call.
        burst: usize = 32, "packets", Allowed::Whole(1, 32);
    }
}

/// An application over receive queues, with a transmit queue on each port.
pub struct PacketLoop<C: Cpu> {
    drivers: Vec<Box<dyn DriverHalf<C>>>,
    transmit: Vec<TransmitDriver>,
    pool: PoolCache,
    /// The application, with its own counters.
    pub app: App<C>,
    burst: usize,
    batch: Vec<Packet>,
    /// Which of them are to be sent, and where.
    outgoing: Vec<(PortId, usize)>,
    /// Packets that software dropped, by cause.
    pub drops: DropCounters,
    kept: u64,
    kept_buffers: u64,
    /// A frame of its own software that is not in a ring yet: the last one before a flush asks for a report.
    held_back: Option<(PortId, Packet)>,
}

fn key_of(packet: &Packet) -> PacketKey {
    PacketKey { stamp: packet.stamp, port: packet.port.0 }
}

impl<C: Cpu + 'static> PacketLoop<C> {
    /// Software that takes up to `burst` packets by one receive call.
    pub fn new(
        drivers: Vec<Box<dyn DriverHalf<C>>>,
        transmit: Vec<TransmitDriver>,
        pool: PoolCache,
        app: App<C>,
        burst: usize,
    ) -> PacketLoop<C> {
        PacketLoop {
            drivers,
            transmit,
            pool,
            app,
            burst,
            batch: Vec::with_capacity(burst),
            outgoing: Vec::with_capacity(burst),
            drops: DropCounters::default(),
            kept: 0,
            kept_buffers: 0,
            held_back: None,
        }
    }

    /// Brings the queues up, before the run.
    pub fn start(&mut self, cpu: &mut C) {
        for driver in &mut self.drivers {
            driver.start(cpu, &mut self.pool);
        }
    }

    /// How many receive queues there are.
    pub fn queues(&self) -> usize {
        self.drivers.len()
    }

    /// Takes what receive queue `queue` has, up to a burst; returns how many packets are to be
    /// handled now, and to be flushed before the next poll.
    #[inline]
    pub fn poll(&mut self, cpu: &mut C, queue: usize) -> usize {
        debug_assert!(self.outgoing.is_empty(), "what is to be sent is flushed");
        self.batch.clear();
        cpu.hint(Hint::Burst(BurstMoment::Poll));
        cpu.enter(Part::Driver);
        self.drivers[queue].rx_burst(cpu, &mut self.pool, &mut self.batch, self.burst);
        let packets = self.batch.len();
        if packets > 0 {
            cpu.hint(Hint::Burst(BurstMoment::Polled { packets }));
        }
        packets
    }

    /// Handles packet `index` of those polled.
    #[inline]
    pub fn packet(&mut self, cpu: &mut C, index: usize) {
        let packet = &mut self.batch[index];
        let key = key_of(packet);
        cpu.hint(Hint::Packet(key, Moment::Handling { index }));
        cpu.enter(Part::App);
        let verdict = self.app.packet(cpu, packet);
        cpu.enter(Part::Driver);
        cpu.hint(Hint::Packet(key, Moment::Handled));
        match verdict {
            Verdict::Transmit(port) if usize::from(port.0) < self.transmit.len() => {
                self.outgoing.push((port, index));
            }
            Verdict::Transmit(_) => self.drop(cpu, index, "no_such_port"),
            Verdict::Drop(cause) => self.drop(cpu, index, cause),
            Verdict::Take => self.consume(cpu, index),
            Verdict::Keep => {
                self.kept += 1;
                self.kept_buffers += packet.buffers();
                cpu.hint(Hint::Packet(key, Moment::Kept));
            }
        }
    }

    fn drop(&mut self, cpu: &mut C, index: usize, cause: &'static str) {
        self.drops.count(cause);
        cpu.hint(Hint::Packet(key_of(&self.batch[index]), Moment::Dropped(cause)));
        self.pool.free(cpu, &self.batch[index]);
    }

    /// Packet `index` of those polled, for software that is no application.
    pub fn polled(&self, index: usize) -> &Packet {
        &self.batch[index]
    }

    /// That software has taken the bytes of packet `index`: its buffer is free.
    pub fn consume(&mut self, cpu: &mut C, index: usize) {
        self.kept += 1;
        cpu.hint(Hint::Packet(key_of(&self.batch[index]), Moment::Kept));
        self.pool.free(cpu, &self.batch[index]);
    }

    /// That software has handled all packets polled.
    pub fn end_batch(&mut self) {
        self.batch.clear();
    }

    /// Puts a frame of that software into the transmit ring of `port`; it leaves with [`send`](Self::send).
    pub fn originate(&mut self, cpu: &mut C, port: PortId, bytes: &[u8]) -> bool {
        cpu.enter(Part::Driver);
        let fits = bytes.len() as u64 <= u64::from(self.pool.pool().room());
        if fits && self.pool.is_empty() {
            self.reclaim(cpu);
        }
        let Some(mbuf) = fits.then(|| self.pool.take(cpu)).flatten() else {
            self.drops.count(if fits { "no_buffer" } else { "too_long" });
            return false;
        };
        let at = data_of(mbuf);
        cpu.bytes_mut(at, bytes.len()).copy_from_slice(bytes);
        let packet = Packet { port, ..Packet::in_buffer(mbuf, bytes.len() as u32, cpu.now()) };
        if let Some((port, before)) = self.held_back.replace((port, packet)) {
            self.push_own(cpu, port, &before, false);
        }
        true
    }

    /// Tells the NIC of the frames that software made.
    pub fn send(&mut self, cpu: &mut C) {
        if let Some((port, last)) = self.held_back.take() {
            self.push_own(cpu, port, &last, true);
        }
        for transmit in &mut self.transmit {
            transmit.ring_doorbell(cpu);
        }
    }

    fn push_own(&mut self, cpu: &mut C, port: PortId, packet: &Packet, last: bool) {
        let transmit = &mut self.transmit[usize::from(port.0)];
        if transmit.push(cpu, packet, last).is_ok() {
            return;
        }
        transmit.ring_doorbell(cpu);
        transmit.reclaim(cpu, &mut self.pool);
        if transmit.push(cpu, packet, last).is_err() {
            self.drops.count("tx_ring_full");
            self.pool.free(cpu, packet);
        }
    }

    /// Gives what is to be sent to the NICs.
    #[inline]
    pub fn flush(&mut self, cpu: &mut C) {
        cpu.hint(Hint::Burst(BurstMoment::Flush));
        cpu.enter(Part::Driver);
        for (number, transmit) in self.transmit.iter_mut().enumerate() {
            let port = PortId(number as u8);
            let Some(last) = self.outgoing.iter().rposition(|(to, _)| *to == port) else {
                continue;
            };
            transmit.reclaim(cpu, &mut self.pool);
            for (place, &(to, index)) in self.outgoing.iter().enumerate() {
                if to != port {
                    continue;
                }
                let packet = &self.batch[index];
                if transmit.push(cpu, packet, place == last).is_ok() {
                    cpu.hint(Hint::Packet(key_of(packet), Moment::Pushed { port: to.0 }));
                } else {
                    self.drops.count("tx_ring_full");
                    cpu.hint(Hint::Packet(key_of(packet), Moment::Dropped("tx_ring_full")));
                    self.pool.free(cpu, packet);
                }
            }
            transmit.ring_doorbell(cpu);
            cpu.hint(Hint::Burst(BurstMoment::Rung));
        }
        self.outgoing.clear();
        self.batch.clear();
    }

    /// Takes back the buffers of what was sent.
    #[inline]
    pub fn reclaim(&mut self, cpu: &mut C) {
        for transmit in &mut self.transmit {
            if transmit.in_use() > 0 {
                transmit.reclaim(cpu, &mut self.pool);
            }
        }
    }

    /// Whether frames may wait because the last poll found no buffer to put in their place.
    pub fn is_starved(&mut self) -> bool {
        self.pool.ran_dry()
    }

    /// Buffers in the receive and in the transmit rings.
    pub fn buffers_in_rings(&self) -> (i64, u64) {
        let in_receive = self.drivers.iter().map(|driver| driver.buffers_held()).sum();
        let in_transmit = self.transmit.iter().map(TransmitDriver::buffers_held).sum();
        (in_receive, in_transmit)
    }

    /// Packets taken from receive queues so far.
    pub fn taken(&self) -> u64 {
        self.drivers.iter().map(|driver| driver.taken()).sum()
    }

    /// Packets handed to transmit rings so far.
    pub fn pushed(&self) -> u64 {
        self.transmit.iter().map(TransmitDriver::pushed).sum()
    }

    /// Packets to be sent with the next flush.
    pub fn to_flush(&self) -> usize {
        self.outgoing.len()
    }

    /// Packets that the application keeps.
    pub fn kept(&self) -> u64 {
        self.kept
    }

    /// This core's level of the pool.
    pub fn pool(&self) -> &PoolCache {
        &self.pool
    }

    /// Buffers that this software answers for, when the last `waiting` packets polled are not
    /// handled yet. Only the sum over all cores counts, see [`DriverHalf::buffers_held`].
    pub fn buffers(&self, waiting: usize) -> i64 {
        let (in_receive, in_transmit) = self.buffers_in_rings();
        let polled = self.batch.iter().rev().take(waiting);
        let outgoing = self.outgoing.iter().map(|&(_, index)| &self.batch[index]);
        let own = self.held_back.iter().map(|(_, packet)| packet);
        let in_hand: u64 = polled.chain(outgoing).chain(own).map(Packet::buffers).sum();
        let outside = self.pool.len() as u64 + in_transmit + in_hand + self.kept_buffers;
        in_receive + outside as i64
    }

    /// Transmit occupancy: entries in use summed over pushes, entries there are likewise.
    pub fn transmit_occupancy(&self) -> (u64, u64) {
        self.transmit.iter().fold((0, 0), |(used, of), transmit| {
            let (sum, pushes, entries) = transmit.occupancy();
            (used + sum, of + pushes * entries)
        })
    }
}
