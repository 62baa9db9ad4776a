//! Intrusion detection and the virtual switch count the same with and without help of the NIC; rules that software leaves with it.

use std::path::Path;

use nicforge_apps::{App, AppConfig, Apps, Place, PortMap};
use nicforge_flexnic::p4::{Shared, entries};
use nicforge_interfaces::{NicMemory, Plan};
use nicforge_nic::mock::spec;
use nicforge_nic::transmit::{Bridged, Departure, Egress};
use nicforge_nic::{DriverCosts, DriverHalf, Nic, NicSpec, Pool, PoolCache};
use nicforge_options::Values;
use nicforge_p4stage::flexnic::{Driver, build};
use nicforge_platform::{Addr, AddressSpace, Cpu, Flat, FlatCpu, FlatDma, Owner, Register};
use nicforge_units::{Bytes, Cycles, Time};
use proptest::prelude::*;

/// Entries of a queue.
const ENTRIES: usize = 16;
/// The register that names a rule, of a NIC with so many queues.
const RULES: fn(usize) -> u32 = |queues| 4 * queues as u32;

fn file(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/p4/flexnic").join(name).display().to_string()
}

struct NoWire;

impl Egress for NoWire {
    fn depart(&mut self, _departure: Departure<'_>) {
        panic!("a frame left");
    }

    fn bridge(&mut self, _bridged: Bridged) {
        panic!("a frame left by another port");
    }
}

/// An application on cores behind queues of interface `flexnic`.
struct Host {
    nic: Nic<FlatDma>,
    dma: FlatDma,
    program: Shared,
    cores: Vec<(Driver, PoolCache, App<FlatCpu>)>,
    now: Time,
    /// Memory that software may leave rules in.
    rules: Addr,
    seen: std::collections::BTreeMap<u32, u64>,
}

impl Host {
    fn new(app: &str, values: Values, cores: usize) -> Host {
        let values = values.with("rx_entries", ENTRIES);
        let mut space = AddressSpace::default();
        let pool = Pool::new(&mut space, 4 * cores * ENTRIES);
        let plan = Plan {
            device: 0,
            owners: (0..cores as u16).map(Owner).collect(),
            first_position: 0,
            pool,
            descriptor_read: Bytes(512),
            costs: DriverCosts::default(),
            nicmem: NicMemory::default(),
            emulates: None,
            emulator: Owner(cores as u16),
            values: values.clone(),
            seed: 1,
            emulator_fills: false,
            kernel: None,
        };
        let (half, drivers) = build(&plan, &mut space, false).unwrap_or_else(|error| panic!("{error}"));
        let mut config = AppConfig::new(app, PortMap::one_armed(1));
        config.values = values;
        let apps = Apps::shipped();
        let shared = apps.share(&config, &mut space).expect("shared tables");
        let core = |(core, driver)| {
            let app = apps.build::<Flat>(&config, Place { core, cores }, &mut space, &shared).expect("an application");
            (driver, PoolCache::new(&mut space, pool, 8, Cycles(0)), app)
        };
        let cores: Vec<_> = drivers.into_iter().enumerate().map(core).collect();
        let rules = space.data(4096, 64);
        space.register(rules, 2048);
        let dma = FlatDma::new(FlatCpu::new(space.end()));
        let program = half.program().clone();
        let spec = NicSpec { rx_fifo: Bytes(1 << 20), ..spec() };
        let nic = Nic::new(&spec, Box::new(half), &[], Addr(space.end()));
        let mut host = Host { nic, dma, program, cores, now: Time::ZERO, rules, seen: Default::default() };
        pool.start(&mut host.dma.cpu);
        for (driver, cache, app) in &mut host.cores {
            app.start(&mut host.dma.cpu);
            driver.start(&mut host.dma.cpu, cache);
        }
        host.ring();
        host
    }

    fn ring(&mut self) {
        let writes: Vec<_> = self.dma.cpu.registers().collect();
        for (register, value) in writes {
            if self.seen.insert(register.index, value) != Some(value) {
                self.nic.write_register(&mut self.dma, register.index, value);
            }
        }
    }

    /// A frame comes in.
    fn send(&mut self, frame: &[u8]) {
        self.now += Time::from_us(10);
        self.dma.set_now(self.now);
        self.nic.receive(&mut self.dma, frame, self.now);
        self.nic.advance(&mut self.dma, &mut NoWire);
    }

    /// All cores take what there is.
    fn poll(&mut self) {
        for (driver, cache, app) in &mut self.cores {
            let mut packets = Vec::new();
            driver.rx_burst(&mut self.dma.cpu, cache, &mut packets, 2 * ENTRIES);
            for mut packet in packets {
                app.packet(&mut self.dma.cpu, &mut packet);
                cache.free(&mut self.dma.cpu, &packet);
            }
        }
        self.ring();
    }

    /// A counter of the application over all cores.
    fn counter(&self, name: &str) -> u64 {
        let counters = self.cores.iter().flat_map(|(_, _, app)| app.counters());
        counters.filter(|(counter, _)| *counter == name).map(|(_, count)| count).sum()
    }

    fn stage(&self, name: &str) -> u64 {
        let counters = self.nic.stages.counters();
        counters.into_iter().find(|(counter, _)| *counter == name).map_or(0, |(_, count)| count)
    }

    fn dropped(&self, name: &str) -> u64 {
        self.nic.drops().causes().iter().filter(|(cause, _)| *cause == name).map(|(_, count)| count).sum()
    }

    /// Software names a rule.
    fn leave(&mut self, at: u64) {
        let register = Register { device: 0, index: RULES(self.cores.len()) };
        self.dma.cpu.mmio_write(register, at);
        self.ring();
    }
}

/// A frame of UDP from 10.1.0.1.
fn udp(destination: [u8; 4], ports: (u16, u16), data: &[u8]) -> Vec<u8> {
    let mut datagram = [ports.0.to_be_bytes(), ports.1.to_be_bytes(), (8 + data.len() as u16).to_be_bytes()].concat();
    datagram.extend([0, 0]);
    datagram.extend(data);
    ip(17, destination, &datagram)
}

fn ip(protocol: u8, destination: [u8; 4], data: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend((20 + data.len() as u16).to_be_bytes());
    frame.extend([0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 1, 0, 1]);
    frame.extend(destination);
    frame.extend(data);
    frame
}

/// A frame in a tunnel.
fn tunnel(frame: &[u8]) -> Vec<u8> {
    ip(47, [10, 9, 0, 99], &[&[0, 0, 0x65, 0x58], frame].concat())
}

fn ids(helped: bool) -> Host {
    let values = Values::default().with("ids_services", 4u64).with("ids_service_rules", 5u64);
    match helped {
        false => Host::new("ids", values, 1),
        true => Host::new("ids", values.with("flexnic_program", &*file("groups.p4")), 4),
    }
}

/// Group `port` goes to core `core` from now on.
fn partition(host: &Host, round: usize, port: u16, core: u16) {
    let text = format!(
        "[[entry]]\ntable = \"groups\"\nmatch = {{ \"hdr.ports.src\" = \"_\", \"hdr.ports.dst\" = \"{port} &&& 0xffff\" }}\n\
         priority = {round}\naction = \"to_core\"\ndata = {{ queue = {core} }}\n"
    );
    entries::load(&mut host.program.lock(), &text).unwrap_or_else(|error| panic!("{error}"));
}

fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let whole = (1u16..8, 1u16..8, prop::collection::vec(any::<u8>(), 0..200))
        .prop_map(|(from, to, data)| udp([10, 9, 0, 2], (from, to), &data));
    let broken = (1u16..8, 0usize..60, any::<u8>(), 20usize..60).prop_map(|(to, at, bits, len)| {
        let mut frame = udp([10, 9, 0, 2], (1, to), &[7; 40]);
        let at = 12 + at % (frame.len() - 12);
        frame[at] ^= bits;
        frame.truncate(len.max(14));
        frame
    });
    prop_oneof![4 => whole, 1 => broken]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Whatever comes, and however groups move between cores meanwhile: the same alerts, scans and frames.
    #[test]
    fn intrusion_detection_counts_the_same(frames in prop::collection::vec((any_frame(), prop::option::of((1u16..8, 0u16..4))), 1..100)) {
        let (mut plain, mut helped) = (ids(false), ids(true));
        for (round, (frame, moved)) in frames.iter().enumerate() {
            if let &Some((port, core)) = moved {
                partition(&helped, round + 1, port, core);
            }
            for host in [&mut plain, &mut helped] {
                host.send(frame);
                host.poll();
            }
        }
        for name in ["alerts", "scans", "inspected", "not_inspected", "scanned_bytes"] {
            prop_assert_eq!(plain.counter(name), helped.counter(name), "{}", name);
        }
    }
}

/// A full queue drops whole frames and says so: nothing is inspected twice, and no other core loses any.
#[test]
fn a_full_queue_of_intrusion_detection_drops_its_own_frames() {
    let mut host = ids(true);
    partition(&host, 1, 1, 0);
    partition(&host, 2, 2, 1);
    for _ in 0..100 {
        host.send(&udp([10, 9, 0, 2], (9, 1), b"data"));
    }
    for _ in 0..ENTRIES {
        host.send(&udp([10, 9, 0, 2], (9, 2), b"data"));
    }
    host.poll();
    assert_eq!(host.counter("inspected") + host.counter("not_inspected"), 2 * ENTRIES as u64);
    assert_eq!(host.dropped("no_descriptor"), 100 - ENTRIES as u64);
}

fn switch(helped: bool) -> Host {
    match helped {
        false => Host::new("vswitch", Values::default(), 1),
        true => {
            let values = Values::default().with("vswitch_nic", true).with("flexnic_program", &*file("vswitch.p4"));
            Host::new("vswitch", values.with("flexnic_entries", &*file("vswitch.toml")), 6)
        }
    }
}

const MACHINES: [&str; 8] =
    ["machine_0", "machine_1", "machine_2", "machine_3", "machine_4", "machine_5", "machine_6", "machine_7"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    /// Machines get the same frames whoever switches, known flows or not.
    #[test]
    fn machines_get_the_same_frames(frames in prop::collection::vec((0u8..30, 1u16..4, any::<bool>()), 1..120)) {
        let (mut plain, mut helped) = (switch(false), switch(true));
        for &(last, port, is_tunnelled) in &frames {
            let inner = udp([10, 9, 0, last], (port, 7), b"some data");
            let frame = if is_tunnelled { tunnel(&inner) } else { inner };
            for host in [&mut plain, &mut helped] {
                host.send(&frame);
                host.poll();
            }
        }
        for name in MACHINES {
            prop_assert_eq!(plain.counter(name), helped.counter(name), "{}", name);
        }
    }
}

/// The first packet of a flow that no rule knows goes to the daemon, which leaves a rule; the second stays in the NIC.
#[test]
fn the_daemon_is_asked_once_for_a_flow() {
    let mut host = switch(true);
    let frame = tunnel(&udp([10, 9, 0, 200], (5, 7), b"data"));
    for sent in 1..4 {
        host.send(&frame);
        host.poll();
        assert_eq!((host.counter("daemon"), host.counter("machine_0")), (1, sent));
        assert_eq!((host.stage("rules_added"), host.stage("p4_switchingress_flows_hits")), (1, sent - 1));
    }
}

/// A table has room for so many flows; the daemon serves all others itself.
#[test]
fn a_full_table_leaves_flows_to_the_daemon() {
    let mut host = switch(true);
    let flows = 4096 + 50;
    for round in 1..3 {
        for flow in 0..flows {
            host.send(&tunnel(&udp([10, 9, 0, 200], (flow, 7), b"data")));
            host.poll();
        }
        assert_eq!(host.counter("machine_0"), u64::from(flows) * round);
    }
    assert_eq!((host.stage("rules_added"), host.stage("rules_refused") > 0), (4096, true));
}

/// Rules that are none, or lie where software registered nothing, change no table and are counted.
#[test]
fn a_rule_that_is_none_is_counted() {
    let mut host = switch(true);
    let at = host.rules.0;
    let write = |host: &mut Host, at: u64, length: u64, text: &[u8]| {
        host.dma.cpu.bytes_mut(Addr(at), 8).copy_from_slice(&length.to_le_bytes());
        host.dma.cpu.bytes_mut(Addr(at + 8), text.len()).copy_from_slice(text);
        host.leave(at | 1);
        host.leave(at | 2);
    };
    let unknown = b"[[entry]]\ntable = \"nothing\"\nmatch = { }\naction = \"drop\"\n";
    write(&mut host, at, unknown.len() as u64, unknown);
    write(&mut host, at + 64, 4, b"\xff\xff\xff\xff");
    write(&mut host, at + 128, u64::MAX, b"");
    write(&mut host, at + 192, 4096, b"");
    // Behind what is registered.
    write(&mut host, at + 2048, 4, b"    ");
    host.leave(u64::MAX);
    assert_eq!((host.stage("rules_added"), host.stage("rules_refused")), (0, 11));
    host.send(&tunnel(&udp([10, 9, 0, 1], (5, 7), b"data")));
    host.poll();
    assert_eq!(host.counter("machine_0"), 1);
}
