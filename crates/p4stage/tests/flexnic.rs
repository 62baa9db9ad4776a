//! What is special to interface `flexnic`: transfers both ways, replies without the host, protection, and its errors.

use std::path::Path;

use nicforge_interfaces::{Interfaces, NicMemory, Plan};
use nicforge_nic::mock::spec;
use nicforge_nic::transmit::{Bridged, Departure, Egress};
use nicforge_nic::{DriverCosts, Nic, Pool};
use nicforge_options::Values;
use nicforge_p4stage::flexnic::{FlexNic, build};
use nicforge_platform::{Addr, AddressSpace, Cpu, Flat, FlatCpu, FlatDma, Owner};
use nicforge_units::{Bytes, Time};

fn file(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name).display().to_string()
}

fn plan(pool: Pool, program: &str) -> Plan {
    Plan {
        device: 0,
        owners: vec![Owner(0)],
        first_position: 0,
        pool,
        descriptor_read: Bytes(512),
        costs: DriverCosts::default(),
        nicmem: NicMemory::default(),
        emulates: None,
        emulator: Owner(1),
        values: Values::default().with("rx_entries", 16).with("flexnic_program", &*file(program)),
        seed: 1,
        emulator_fills: false,
        kernel: None,
    }
}

#[derive(Default)]
struct Wire(Vec<Vec<u8>>);

impl Egress for Wire {
    fn depart(&mut self, departure: Departure<'_>) {
        self.0.push(departure.pieces.concat());
    }

    fn bridge(&mut self, bridged: Bridged) {
        self.0.push(bridged.bytes);
    }
}

/// A NIC that runs words.p4 over registered memory of two words.
struct Bench {
    nic: Nic<FlatDma>,
    dma: FlatDma,
    now: Time,
    words: Addr,
}

impl Bench {
    fn new() -> Bench {
        let mut space = AddressSpace::default();
        let pool = Pool::new(&mut space, 4);
        let (half, _) =
            build(&plan(pool, "tests/p4/words.p4"), &mut space, false).unwrap_or_else(|error| panic!("{error}"));
        let words = space.data(64, 64);
        space.register(words, 16);
        let dma = FlatDma::new(FlatCpu::new(space.end()));
        Bench { nic: Nic::new(&spec(), Box::new(half), &[], Addr(space.end())), dma, now: Time::ZERO, words }
    }

    /// The value that comes back of a request.
    fn ask(&mut self, operation: u64, address: u64, value: u64) -> Option<u64> {
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5];
        for word in [operation, address, value, 0, 0] {
            frame.extend(word.to_be_bytes());
        }
        let mut wire = Wire::default();
        self.now += Time::from_us(10);
        self.dma.set_now(self.now);
        self.nic.receive(&mut self.dma, &frame, self.now);
        for _ in 0..10 {
            self.now += Time::from_us(1);
            self.dma.set_now(self.now);
            self.nic.advance(&mut self.dma, &mut wire);
        }
        let reply = wire.0.pop()?;
        assert_eq!(reply[..30], frame[..30]);
        Some(u64::from_be_bytes(*reply[30..].first_chunk().expect("a word")))
    }

    fn word(&mut self, number: u64) -> u64 {
        self.dma.cpu.load(self.words + number * 8)
    }
}

#[test]
fn clients_read_and_change_memory_without_the_host() {
    let mut bench = Bench::new();
    let at = bench.words.0;
    assert_eq!(bench.ask(2, at, 5u64.swap_bytes()), Some(5u64.swap_bytes()), "written as it stands in the packet");
    assert_eq!(bench.word(0), 5);
    assert_eq!(bench.ask(3, at, 7), Some(5), "the word before");
    assert_eq!(bench.ask(3, at, 1), Some(12));
    assert_eq!(bench.word(0), 13);
    assert_eq!(bench.ask(1, at, 0), Some(13u64.swap_bytes()));
    assert_eq!(bench.nic.counters.delivered, 0);
    assert_eq!((bench.nic.stages.consumed(), bench.nic.stages.injected()), (4, 4));
    assert_eq!(bench.nic.drops().total(), 0);
}

#[test]
fn transfers_reach_registered_memory_only_and_are_made_all_or_none() {
    let mut bench = Bench::new();
    let at = bench.words.0;
    bench.dma.cpu.store(Addr(at), 1u64);
    let outside = [at - 8, at + 12, at + 16, 0, 64, u64::MAX, u64::MAX - 7, 1 << 63, nicforge_platform::CONTROL_BYTES];
    for address in outside {
        for operation in [1, 2, 3] {
            assert_eq!(bench.ask(operation, address, 9), None, "{operation} at {address:#x}");
        }
        assert_eq!(bench.ask(4, at, address), None);
        assert_eq!(bench.word(0), 1, "not half of a packet's transfers");
    }
    let drops = bench.nic.drops();
    let dropped = drops.causes().iter().find(|(cause, _)| *cause == "dma_outside").map(|(_, count)| *count);
    assert_eq!(dropped, Some(4 * outside.len() as u64));
    // Words only.
    assert_eq!(bench.ask(3, at + 4, 1), None);
    assert!(bench.nic.drops().causes().contains(&("dma_atomic", 1)));
    // Nothing for the host, nothing for the wire.
    assert_eq!(bench.ask(0, at, 1), None);
    assert!(bench.nic.drops().causes().contains(&("p4_drop", 1)));
    assert_eq!(bench.ask(4, at, at + 8), Some(at + 8));
}

#[test]
fn programs_that_the_interface_cannot_run_are_refused_with_the_reason() {
    let error = |program: &str| {
        let mut space = AddressSpace::default();
        let pool = Pool::new(&mut space, 4);
        match build(&plan(pool, program), &mut space, false) {
            Ok(_) => panic!("{program} is built"),
            Err(error) => error.to_string(),
        }
    };
    let no_dma = error("../../examples/p4/key-steering.p4");
    assert!(
        no_dma.ends_with("has no DMA pipeline, which interface flexnic needs: its package is FlexNIC, of flexnic.p4"),
        "{no_dma}"
    );
    let absent = error("tests/p4/absent.p4");
    assert!(absent.contains("absent.p4"), "{absent}");
    let text = std::fs::read_to_string(file("tests/p4/words.p4")).expect("the program");
    let folder = tempfile::tempdir().expect("a folder");
    for (from, to, what) in [
        ("(4) head", "(4) start", "`head` is missing"),
        ("<bit<64>>(4) tail", "<bit<128>>(4) tail", "`tail` must have at least 1 elements of at most 64 bits"),
        ("(4) tail", "(0) tail", "`tail` must have at least 1 elements"),
    ] {
        let path = folder.path().join("program.p4");
        std::fs::write(&path, text.replace(from, to)).expect("a file");
        let said = error(&path.display().to_string());
        assert!(said.contains(what), "{said}");
    }
}

/// Cores play all of this NIC in simulations; a live host has the NIC, or no such interface.
#[test]
fn no_live_core_plays_it() {
    let mut interfaces = Interfaces::shipped();
    interfaces.add::<FlexNic>();
    let mut space = AddressSpace::default();
    let pool = Pool::new(&mut space, 1024);
    let plan = Plan {
        emulates: interfaces.find("flexnic").ok(),
        values: Values::default().with("rx_entries", 16),
        ..plan(pool, "tests/p4/words.p4")
    };
    let emulated = interfaces.find("emulated").expect("it is shipped");
    assert!(emulated.build::<Flat>(&plan, &mut space).is_ok());
    let live = Plan { emulator_fills: true, ..plan };
    let error = emulated.build::<Flat>(&live, &mut space).err().expect("an error").to_string();
    assert!(error.contains("cores play all of this NIC, which only simulated ones do"), "{error}");
}
