//! Uses of a DMA pipeline that the FlexNIC paper names: each program of examples/p4/flexnic, in both engines.

use std::path::Path;

use nicforge_flexnic::p4::{
    BufferState, DmaOutcome, Engine, NicFields, ObjectState, Options, OwnedOutput, Pipeline, Program, Refusal, entries,
    target,
};

/// The program, once for each engine, with entries.
fn pipelines(name: &str, entries: &str) -> Vec<Pipeline> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/p4/flexnic").join(name);
    let program = Program::compile(&path, &Options::default()).unwrap_or_else(|errors| panic!("{errors}"));
    target::place(&program, &target::Target::default()).unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
    let pipeline = |engine| {
        let mut pipeline = program.pipeline(engine, 1).expect("an engine");
        entries::load(&mut pipeline, entries).unwrap_or_else(|error| panic!("{name}: {error}"));
        pipeline
    };
    [Engine::Interpreter, Engine::Compiled].map(pipeline).into()
}

/// An element of a register of words.
fn register<'a>(pipeline: &'a mut Pipeline, name: &str, index: usize) -> &'a mut u64 {
    match pipeline.object_named(name) {
        Some(ObjectState::Register { words, .. }) => &mut words[index],
        _ => panic!("no register {name}"),
    }
}

/// A frame of IPv4 from `src` to `dst`, the last bytes of addresses.
fn ip(protocol: u8, tos: u8, (src, dst): (u8, u8), data: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, dst, 2, 0, 0, 0, 0, src, 8, 0, 0x45, tos];
    frame.extend((20 + data.len() as u16).to_be_bytes());
    frame.extend([0, 1, 0x40, 0, 64, protocol, 0, 0, 10, 0, 0, src, 10, 0, 0, dst]);
    frame.extend(data);
    frame
}

fn udp(tos: u8, ends: (u8, u8), ports: (u16, u16), data: &[u8]) -> Vec<u8> {
    let mut datagram = [ports.0.to_be_bytes(), ports.1.to_be_bytes(), (8 + data.len() as u16).to_be_bytes()].concat();
    datagram.extend([0, 0]);
    datagram.extend(data);
    ip(17, tos, ends, &datagram)
}

/// A frame arrives by port 1; steering chose queue 0.
fn arrive(pipeline: &mut Pipeline, frame: &[u8]) -> Vec<OwnedOutput> {
    let mut outputs = Vec::new();
    let fields = NicFields { port: 1, ..NicFields::default() };
    pipeline.process_nic(frame, &fields, false, &mut |output| outputs.push(output.to_owned()));
    outputs
}

const ENTRY: u64 = 0x1000;
const BUFFER: u64 = 0x20_0000;

/// The DMA pipeline's result for a packet of `queue`, which has a buffer.
fn dma<'a>(pipeline: &'a mut Pipeline, packet: &[u8], queue: u16) -> DmaOutcome<'a> {
    let fields =
        NicFields { port: 1, queue, entry: ENTRY, buffer: BUFFER, state: BufferState::Fits, ..NicFields::default() };
    pipeline.dma(packet, &fields)
}

/// The sum over a checksum and what it covers is all ones.
fn is_sound(bytes: &[u8]) -> bool {
    let mut sum: u32 = bytes.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum == 0xffff
}

fn tuple(task: u32) -> Vec<u8> {
    let mut dccp = vec![0, 9, 0, 5, 3, 0, 0, 0, 2 << 1, 0x12, 0x34, 0x56];
    dccp.extend(task.to_be_bytes());
    dccp.extend([7; 356]);
    dccp_frame((1, 2), dccp)
}

/// A frame of DCCP with a right checksum.
fn dccp_frame((src, dst): (u8, u8), mut dccp: Vec<u8>) -> Vec<u8> {
    let length = (dccp.len() as u16).to_be_bytes();
    let covered = [&[10, 0, 0, src, 10, 0, 0, dst, 0, 33], &length[..], &dccp].concat();
    let mut sum: u32 = covered.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    dccp[6..8].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    ip(33, 0, (src, dst), &dccp)
}

/// Section 4.1: tuples lose their headers and are acknowledged while the worker's queue has room.
#[test]
fn tuples_are_acknowledged_only_when_the_queue_has_room() {
    let entries = "[[entry]]\ntable = \"workers\"\nmatch = { \"hdr.ipv4.dst\" = \"10.0.0.2\", \"hdr.tuple_.to\" = 4 }\n\
                   action = \"to_worker\"\ndata = { queue = 3 }\n\
                   [[entry]]\ntable = \"peers\"\nmatch = { \"hdr.ipv4.src\" = \"10.0.0.1\" }\naction = \"on\"\ndata = { by = 1 }\n";
    for mut pipeline in pipelines("storm.p4", entries) {
        *register(&mut pipeline, "tail", 3) = 1;
        let outputs = arrive(&mut pipeline, &tuple(4));
        let [kept, ack] = &outputs[..] else { panic!("{} packets", outputs.len()) };
        assert_eq!((kept.port, kept.queue, ack.port), (None, Some(3), Some(1)));
        let ack = &ack.packet;
        assert_eq!(ack.len(), 14 + 20 + 16);
        assert_eq!((&ack[..6], &ack[26..34]), (&[2, 0, 0, 0, 0, 1][..], &[10, 0, 0, 2, 10, 0, 0, 1][..]));
        assert_eq!((&ack[34..38], ack[42] >> 1), (&[0, 5, 0, 9][..], 3));
        assert_eq!(ack[47..50], [0x12, 0x34, 0x56], "the sequence number comes back");
        assert!(is_sound(&ack[14..34]));
        let pseudo = [&ack[26..34], &[0, 33, 0, 16], &ack[34..]].concat();
        assert!(is_sound(&pseudo), "RFC 4340, section 9.1");
        assert_eq!(kept.mark, 1);
        let state = BufferState::Fits;
        let fields = NicFields { queue: 3, mark: 1, entry: ENTRY, buffer: BUFFER, state, ..NicFields::default() };
        let DmaOutcome::Transfers(bytes, transfers) = pipeline.dma(&kept.packet, &fields) else { panic!("transfers") };
        let [data, entry] = transfers else { panic!("two transfers") };
        assert_eq!((data.offset, data.length, data.address, entry.address), (64, 360, BUFFER, ENTRY));
        assert_eq!(bytes[64..68], [0, 0, 0, 4], "the tuple alone");
        // The queue is full now: neither a tuple nor a word.
        assert_eq!(arrive(&mut pipeline, &tuple(4)), []);
        // Tasks of other machines are not this NIC's to acknowledge, and what was spoilt on the way is nobody's.
        assert_eq!(arrive(&mut pipeline, &tuple(5)).len(), 1);
        *register(&mut pipeline, "tail", 3) = 100;
        let mut spoilt = tuple(4);
        spoilt[300] ^= 1;
        assert_eq!(arrive(&mut pipeline, &spoilt), []);
        // The network doubled it: it was taken once.
        assert_eq!(arrive(&mut pipeline, &tuple(4)), []);
        assert_eq!(pipeline.ended().refusal, Some(Refusal::Duplicate));
        *register(&mut pipeline, "came", 1) = 0;
        // A trace shows both, as if there were always room.
        *register(&mut pipeline, "tail", 3) = *register(&mut pipeline, "head", 3);
        let (outputs, events) = pipeline.trace(&tuple(4), 1);
        assert_eq!(outputs.iter().map(|output| output.port).collect::<Vec<_>>(), [None, Some(1)]);
        assert!(events.iter().any(|event| format!("{event:?}").contains("StormEgress")), "{events:?}");
    }
}

/// Sections 2.3 and 4.1: the NIC prepends headers, and sends what the window lets through.
#[test]
fn tuples_leave_with_headers_as_far_as_the_window_goes() {
    let entries = "[[entry]]\ntable = \"senders\"\nmatch = { \"hdr.tuple_.from\" = 9, \"nic.queue\" = 0 }\naction = \"from_here\"\n\
                   data = { mac = \"02:00:00:00:00:01\", address = \"10.0.0.1\" }\n\
                   [[entry]]\ntable = \"places\"\nmatch = { \"hdr.tuple_.to\" = 4 }\naction = \"to_there\"\n\
                   data = { by = 2, mac = \"02:00:00:00:00:02\", address = \"10.0.0.2\" }\n\
                   [[entry]]\ntable = \"peers\"\nmatch = { \"hdr.ipv4.src\" = \"10.0.0.2\" }\naction = \"on\"\ndata = { by = 2 }\n";
    let bare = [&[0; 12][..], &[0x88, 0xb5, 0, 0, 0, 4, 0, 0, 0, 9], &[7; 352]].concat();
    for mut pipeline in pipelines("storm.p4", entries) {
        let leave = |pipeline: &mut Pipeline, us: u64, packet: &[u8]| {
            let fields = NicFields { port: 1, stamp: us * 1_000_000, ..NicFields::default() };
            let mut left = Vec::new();
            pipeline.process_nic(packet, &fields, true, &mut |output| left.push(output.to_owned()));
            left
        };
        let frame = leave(&mut pipeline, 1, &bare).remove(0).packet;
        assert_eq!(frame.len(), 406);
        assert_eq!(
            (&frame[..14], &frame[34..38]),
            (&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0][..], &[0, 9, 0, 4][..])
        );
        assert_eq!(frame[43..46], [0, 0, 1], "the first sequence number");
        assert!(is_sound(&frame[14..34]));
        assert!(is_sound(&[&frame[26..34], &[0, 33, 1, 116], &frame[34..]].concat()));
        let sent =
            |pipeline: &mut Pipeline, us: u64| (0..20).filter(|_| !leave(pipeline, us, &bare).is_empty()).count();
        assert_eq!(sent(&mut pipeline, 1), 3, "a window of four");
        let acknowledge = |pipeline: &mut Pipeline, sequence: u8| {
            let ack = vec![0, 4, 0, 9, 4, 0, 0, 0, 3 << 1, 0, 0, sequence, 0, 0, 0, sequence];
            assert_eq!(arrive(pipeline, &dccp_frame((2, 1), ack)), [], "it ends in the NIC");
        };
        acknowledge(&mut pipeline, 1);
        assert_eq!(sent(&mut pipeline, 1), 2, "one more than was acknowledged");
        // A gap: the window of five is two, and two are in flight.
        acknowledge(&mut pipeline, 4);
        assert_eq!(sent(&mut pipeline, 1), 0);
        assert_eq!(sent(&mut pipeline, 131), 2, "the timeout emptied the pipe");
        // Nor of another's task, which this queue is not for: no machine is drawn into a connection that it does not have.
        let fields = NicFields { port: 1, queue: 1, stamp: 1_000_000_000, ..NicFields::default() };
        pipeline.process_nic(&bare, &fields, true, &mut |_| panic!("a tuple of another's left"));
        // Of tasks that nobody knows nothing leaves.
        let mut strange = bare.clone();
        strange[21] = 8;
        assert_eq!(leave(&mut pipeline, 131, &strange), []);
    }
}

/// Section 5.1: both directions of a flow have one core, and rules' ports their own.
#[test]
fn directions_of_a_flow_meet_and_groups_have_their_core() {
    let mut entries = "[[entry]]\ntable = \"groups\"\nmatch = { \"hdr.ports.src\" = \"_\", \"hdr.ports.dst\" = 80 }\n\
                       action = \"to_core\"\ndata = { queue = 9 }\npriority = 1\n"
        .to_owned();
    for hash in 0..4 {
        entries += &format!(
            "[[entry]]\ntable = \"spread\"\nmatch = {{ hash = {hash} }}\naction = \"to_core\"\ndata = {{ queue = {hash} }}\n"
        );
    }
    for mut pipeline in pipelines("groups.p4", &entries) {
        let mut seen = std::collections::BTreeSet::new();
        for port in 1000..1050 {
            let there = arrive(&mut pipeline, &udp(0, (1, 2), (port, 53), b"x")).remove(0);
            let back = arrive(&mut pipeline, &udp(0, (2, 1), (53, port), b"x")).remove(0);
            assert_eq!((there.queue, there.mark), (back.queue, back.mark));
            seen.extend(there.queue);
        }
        assert_eq!(seen.len(), 4, "flows spread over all cores");
        assert_eq!(arrive(&mut pipeline, &udp(0, (1, 2), (5, 80), b"x")).remove(0).queue, Some(9));
    }
}

/// Section 2.3: the operating system hears of marks that applications do not see, and holds them to its rates.
#[test]
fn marks_are_taken_out_and_applications_held_to_their_rates() {
    let entries = "[[meter]]\nname = \"rates\"\nindex = 7\ncommitted = 1000\ncommitted_burst = 150\npeak = 1000\npeak_burst = 150\n";
    for mut pipeline in pipelines("congestion.p4", entries) {
        for tos in [0b1000_0011, 0b1000_0010, 0b1000_0000] {
            let output = arrive(&mut pipeline, &udp(tos, (1, 2), (5, 7), b"data")).remove(0);
            assert_eq!(output.packet[15], 0b1000_0000);
        }
        assert_eq!((*register(&mut pipeline, "seen", 1), *register(&mut pipeline, "marked", 1)), (3, 1));
        // 150 bytes at once, then 1000 a second; others are as they were.
        let mut leaves = |application: u64, microseconds: u64| {
            let fields = NicFields { port: 1, mark: application, ..NicFields::default() };
            let mut left = 0;
            pipeline.set_time(microseconds);
            pipeline.process_nic(&udp(0, (2, 1), (7, 5), &[1; 58]), &fields, true, &mut |_| left += 1);
            left
        };
        assert_eq!([leaves(7, 0), leaves(7, 0), leaves(8, 0)], [1, 0, 1]);
        assert_eq!([leaves(7, 200_000), leaves(7, 200_000)], [1, 0]);
    }
}

/// Section 6.1: what may be rejected is, before it takes anything, and its client hears of it.
#[test]
fn requests_of_low_priority_leave_room_for_others() {
    let entries = "[[entry]]\ntable = \"services\"\nmatch = { \"hdr.ports.dst\" = 7, \"hdr.ipv4.tos\" = \"0 &&& 0xff\" }\n\
                   action = \"serve\"\ndata = { queue = 1, room_left = 3 }\npriority = 1\n\
                   [[entry]]\ntable = \"services\"\nmatch = { \"hdr.ports.dst\" = 7, \"hdr.ipv4.tos\" = \"_\" }\n\
                   action = \"serve\"\ndata = { queue = 1, room_left = 0 }\npriority = 0\n";
    for mut pipeline in pipelines("priority.p4", entries) {
        let (low, high) = (udp(0, (1, 2), (5, 7), b"low"), udp(8, (1, 2), (5, 7), b"high"));
        *register(&mut pipeline, "tail", 1) = 3;
        assert_eq!(arrive(&mut pipeline, &low).remove(0).queue, Some(1));
        *register(&mut pipeline, "head", 1) = 1;
        let rejected = arrive(&mut pipeline, &low);
        assert_eq!((rejected.len(), rejected[0].port), (1, Some(1)));
        let reply = &rejected[0].packet;
        assert_eq!((reply[15], &reply[34..38], &reply[26..30]), (255, &[0, 7, 0, 5][..], &[10, 0, 0, 2][..]));
        assert!(is_sound(&reply[14..34]));
        assert_eq!(arrive(&mut pipeline, &high).remove(0).port, None);
    }
}

/// Section 6.2: as many frames go to the cache as there are credits.
#[test]
fn frames_go_to_the_cache_while_there_are_credits() {
    for mut pipeline in pipelines("credits.p4", "") {
        *register(&mut pipeline, "tail", 0) = 100;
        let frame = udp(0, (1, 2), (5, 7), b"data");
        let cache = |pipeline: &mut Pipeline| match dma(pipeline, &frame, 0) {
            DmaOutcome::Transfers(_, [data, _]) => data.cache,
            other => panic!("{other:?}"),
        };
        let caches: Vec<u8> = (0..6).map(|_| cache(&mut pipeline)).collect();
        assert_eq!(caches, [3, 3, 3, 3, 1, 1]);
        // Software gives two back by a frame that ends in the NIC.
        let credits = [&[0; 11][..], &[2, 0x88, 0xb5], &[0; 46]].concat();
        let mut left = 0;
        pipeline.process_nic(&credits, &NicFields::default(), true, &mut |_| left += 1);
        assert_eq!(left, 0);
        let caches: Vec<u8> = (0..3).map(|_| cache(&mut pipeline)).collect();
        assert_eq!(caches, [3, 3, 1]);
    }
}

/// Section 6.1: with an entry of the operating system a replica gets the packets of a service that died.
#[test]
fn a_replica_gets_the_packets_of_a_service_that_died() {
    let entries = "[[entry]]\ntable = \"failed\"\nmatch = { \"hdr.ipv4.dst\" = \"10.0.0.2\", \"hdr.ports.dst\" = 7 }\n\
                   action = \"to_replica\"\ndata = { mac = \"02:00:00:00:00:09\", address = \"10.0.0.9\", port = 0 }\n";
    for mut pipeline in pipelines("failover.p4", entries) {
        let redirected = arrive(&mut pipeline, &udp(0, (1, 2), (5, 7), b"data")).remove(0);
        assert_eq!((redirected.port, &redirected.packet[30..34]), (Some(0), &[10, 0, 0, 9][..]));
        assert!(is_sound(&redirected.packet[14..34]));
        assert_eq!(arrive(&mut pipeline, &udp(0, (1, 2), (5, 8), b"data")).remove(0).port, None);
    }
}

/// Section 6.1: writes to pages that are there need no software, others go to the slow path.
#[test]
fn writes_to_absent_pages_take_the_slow_path() {
    let entries = "[[entry]]\ntable = \"pages\"\nmatch = { page = 0x40 }\naction = \"write\"\n";
    for mut pipeline in pipelines("paging.p4", entries) {
        *register(&mut pipeline, "tail", 0) = 1;
        let write = |address: u64| udp(0, (1, 2), (5, 4000), &[address.to_be_bytes(), *b"contents"].concat());
        let DmaOutcome::Reply(bytes, [data], 1) = dma(&mut pipeline, &write(0x40_010), 0) else { panic!("a write") };
        assert_eq!((data.address, &bytes[data.offset as usize..][..8]), (0x40_010, &b"contents"[..]));
        let fault = dma(&mut pipeline, &write(0x41_010), 0);
        assert!(matches!(fault, DmaOutcome::Transfers(_, [_, _])), "{fault:?}");
        let full = dma(&mut pipeline, &write(0x41_010), 0);
        assert!(matches!(full, DmaOutcome::Refused(Refusal::QueueFull, ..)), "{full:?}");
    }
}

/// Section 6.1: rules of five fields, then wildcards; tunnels end here; what no rule knows is the daemon's.
#[test]
fn tunnels_end_at_the_queue_of_a_machine_and_misses_go_to_the_daemon() {
    let entries = "[[entry]]\ntable = \"flows\"\n\
                   match = { \"hdr.ipv4.src\" = \"10.0.0.1\", \"hdr.ipv4.dst\" = \"10.0.0.2\", \"hdr.ipv4.protocol\" = 17, \
                   \"hdr.ports.src\" = 5, \"hdr.ports.dst\" = 7 }\naction = \"to_machine\"\ndata = { queue = 4 }\n\
                   [[entry]]\ntable = \"wildcards\"\n\
                   match = { \"hdr.ethernet.dst\" = \"_\", \"hdr.ipv4.src\" = \"_\", \"hdr.ipv4.dst\" = \"10.0.0.3 &&& 255.255.255.255\", \
                   \"hdr.ipv4.protocol\" = \"_\", \"hdr.ports.dst\" = \"_\" }\naction = \"to_machine\"\ndata = { queue = 5 }\npriority = 1\n";
    for mut pipeline in pipelines("vswitch.p4", entries) {
        let tunnel = |inner: &[u8]| ip(47, 0, (8, 9), &[&[0, 0, 0x65, 0x58], inner].concat());
        let known = udp(0, (1, 2), (5, 7), b"data");
        let output = arrive(&mut pipeline, &tunnel(&known)).remove(0);
        assert_eq!((output.queue, output.mark, output.packet), (Some(4), 0, known));
        let wild = udp(0, (1, 3), (5, 9), b"data");
        let output = arrive(&mut pipeline, &tunnel(&wild)).remove(0);
        assert_eq!((output.queue, output.packet), (Some(5), wild));
        for unknown in [tunnel(&udp(0, (1, 4), (5, 9), b"data")), udp(0, (1, 2), (5, 7), b"no tunnel"), tunnel(&[1; 9])]
        {
            let output = arrive(&mut pipeline, &unknown).remove(0);
            assert_eq!((output.queue, output.mark, output.packet), (Some(0), 1, unknown));
        }
    }
}
