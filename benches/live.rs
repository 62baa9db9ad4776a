//! Packets per second from the device's thread to a worker process, on every receive interface, with
//! each frame copied into its receive buffer: the live ground's own speed, without any port.
//!
//! `cargo bench -p nicforge-cli --bench live` prints a line for each interface. Both sides poll: it
//! needs two cores that nobody else uses.

use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nicforge_interfaces::rx_bisect::{AxChoice, Consumption, Options};
use nicforge_interfaces::{AnyDriver, AnyNic, Plan, registry};
use nicforge_nic::{DriverCosts, DriverHalf, Nic, NicSpec, Pool, PoolCache, PortId, registers};
use nicforge_platform::live::handover::{receive_files, send_files};
use nicforge_platform::live::{Bell, Control, LiveCpu, LiveDma, Shape};
use nicforge_platform::{Addr, AddressSpace, Owner};
use nicforge_units::{BitRate, Bytes, Cycles, Time};

const ENTRIES: usize = 1024;
const BURST: usize = 32;
/// Flows, whose frames come in turn.
const FLOWS: u16 = 64;
const RUN: Duration = Duration::from_millis(1_500);
const NO_LIMIT: Bytes = Bytes(1 << 50);

/// The same in both processes.
struct Layout {
    space: AddressSpace,
    shape: Shape,
    pool: Pool,
    cache: PoolCache,
    nic: AnyNic,
    driver: AnyDriver,
}

fn lay_out(interface: &str) -> Layout {
    let mut space = AddressSpace::default();
    let pool = Pool::new(&mut space, 4 * ENTRIES);
    let plan = Plan {
        device: 0,
        owners: vec![Owner(0)],
        rx_entries: ENTRIES,
        sharing: 1,
        pool,
        descriptor_read: Bytes(512),
        first_position: 0,
        costs: DriverCosts::default(),
        bisect: Options {
            ax_entries: ENTRIES,
            bx_entries: ENTRIES,
            choice: AxChoice::Random,
            consumption: Consumption::Parallel,
            seed: 1,
        },
        emulates: String::new(),
        emulator: Owner::NOBODY,
        nicmem: Default::default(),
    };
    let (nic, mut drivers) = registry::build(interface, &plan, &mut space).unwrap();
    let cache = PoolCache::new(&mut space, pool, 256, Cycles(0));
    Layout {
        shape: Shape {
            devices: 1,
            workers: 1,
            banks: vec![(registers::RECEIVE, 8)],
        },
        space,
        pool,
        cache,
        nic,
        driver: drivers.remove(0),
    }
}

/// The worker's process: takes what comes and frees it, until the other side hangs up.
fn worker(socket: &str, interface: &str) {
    let stream = UnixStream::connect(socket).unwrap();
    let (_, files) = receive_files(&stream, &mut [0; 1]).unwrap();
    let [region, event] = <[_; 2]>::try_from(files).unwrap();
    let mut layout = lay_out(interface);
    let control = Control::attach(region, &layout.space, &layout.shape).unwrap();
    let mut cpu = LiveCpu::new(control.clone(), Bell::of(event), 0);
    layout.driver.start(&mut cpu, &mut layout.cache);
    let (mut taken, mut sum) = (0u64, 0u64);
    let mut packets = Vec::with_capacity(BURST);
    while control.order_of(0) == 0 {
        layout
            .driver
            .rx_burst(&mut cpu, &mut layout.cache, &mut packets, BURST);
        for packet in packets.drain(..) {
            sum = sum.wrapping_add(u64::from(packet.len()));
            layout.cache.give(&mut cpu, packet.mbuf);
            taken += 1;
        }
        cpu.tell_taken(taken);
    }
    std::hint::black_box(sum);
}

/// A UDP frame of `len` bytes of flow `flow`, checksums right.
fn frame(len: usize, flow: u16) -> Vec<u8> {
    let mut frame = vec![0u8; len];
    frame[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    let ip = &mut frame[14..];
    ip[..10].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17]);
    ip[2..4].copy_from_slice(&(len as u16 - 14).to_be_bytes());
    ip[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    ip[20..22].copy_from_slice(&(1_000 + flow).to_be_bytes());
    ip[22..24].copy_from_slice(&53u16.to_be_bytes());
    ip[24..26].copy_from_slice(&(len as u16 - 34).to_be_bytes());
    let summary = nicforge_wire::parse_frame(&frame).unwrap();
    nicforge_wire::checksum::fill(&mut frame, &summary, true, true);
    frame
}

fn spec() -> NicSpec {
    NicSpec {
        port: PortId(0),
        rate: BitRate::from_bits_per_second(1_000_000_000_000_000),
        wire_overhead: Bytes(0),
        rx_fifo: NO_LIMIT,
        rx_pipeline: Time::ZERO,
        tx_pipeline: Time::ZERO,
        tx_buffer: NO_LIMIT,
        tx_resume_room: Bytes(0),
        tx_deschedule_reads: 0.0,
        descriptor_read: Bytes(512),
    }
}

/// Million packets per second that a worker process took.
fn measure(interface: &str, len: usize) -> f64 {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let layout = lay_out(interface);
    let control = Control::new(&layout.space, &layout.shape).unwrap();
    let bell = Bell::new().unwrap();
    let mut cpu = LiveCpu::new(control.clone(), bell.clone(), 0);
    layout.pool.start(&mut cpu);
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.arg("worker").arg(&socket).arg(interface);
    let mut child = child.stdin(Stdio::null()).spawn().unwrap();
    let (stream, _) = listener.accept().unwrap();
    let files = [control.region().file(), bell.event()];
    send_files(&stream, b"x", &files).unwrap();
    let mut dma = LiveDma::new(control.clone(), &layout.space);
    let mut nic = Nic::new(&spec(), layout.nic, &[], Addr(layout.space.end()));
    let frames: Vec<Vec<u8>> = (0..FLOWS).map(|flow| frame(len, flow)).collect();
    let registers: Vec<_> = control.registers(0).collect();
    let mut seen = vec![0; registers.len()];
    let (mut began, mut taken_before) = (None, 0);
    let rate = loop {
        let now = Instant::now();
        let stamp = dma.tick();
        // As in a live run: what was taken, then the doorbells.
        let taken = control.taken();
        for (register, seen) in registers.iter().zip(&mut seen) {
            let value = control.register_value(*register);
            if value != *seen {
                *seen = value;
                nic.write_register(&mut dma, register.index, value);
            }
        }
        let inside = nic.counters.delivered - taken;
        let room = (ENTRIES as u64 / 2).saturating_sub(inside);
        let started = seen.iter().any(|&value| value > 0);
        for number in 0..room.min(BURST as u64) * u64::from(started) {
            let frame = &frames[(number % u64::from(FLOWS)) as usize];
            nic.receive(&mut dma, frame, stamp);
        }
        dma.wake();
        match began {
            // Warm caches first.
            None if taken > 200_000 => (began, taken_before) = (Some(now), taken),
            Some(began) if now - began >= RUN => {
                break (taken - taken_before) as f64 / (now - began).as_secs_f64() / 1e6;
            }
            _ => {}
        }
    };
    control.order(0, 1);
    child.wait().unwrap();
    rate
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, role, socket, interface] = &arguments[..]
        && role == "worker"
    {
        return worker(socket, interface);
    }
    let names = registry::names().into_iter();
    let wanted = arguments
        .iter()
        .find(|name| registry::names().contains(&name.as_str()));
    println!("interface                 64 B Mpps   1500 B Mpps");
    for interface in names.filter(|name| *name != "emulated") {
        if wanted.is_none_or(|wanted| wanted == interface) {
            let (small, large) = (measure(interface, 64), measure(interface, 1_500));
            println!("{interface:<24} {small:>10.2} {large:>13.2}");
        }
    }
}
