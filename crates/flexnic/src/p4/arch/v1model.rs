//! v1model, as bmv2's `simple_switch` runs it.

use super::MetadataSlot;
use crate::p4::ir::Slot;
use crate::p4::lower::{Binding, Lower, ObjectRef, Place, packet_object};
use crate::p4::machine::CloneRequest;
use crate::p4::outcome::{Output, PacketGone};
use crate::p4::pipeline::Core;
use crate::p4::trace::Event;

/// Port that means drop.
const DROP_PORT: u64 = 511;
/// Passes that one packet may cause by cloning, resubmitting and recirculating.
const PASSES_MAX: usize = 256;

/// Values of `instance_type`.
const NORMAL: u64 = 0;
const INGRESS_CLONE: u64 = 1;
const EGRESS_CLONE: u64 = 2;
const RECIRCULATED: u64 = 4;
const REPLICATED: u64 = 5;
const RESUBMITTED: u64 = 6;

/// Order of the functions.
const PARSER: usize = 0;
const VERIFY: usize = 1;
const INGRESS: usize = 2;
const EGRESS: usize = 3;
const COMPUTE: usize = 4;
const DEPARSER: usize = 5;

/// Places in the frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    /// Words of the headers: first, after the last.
    headers: (usize, usize),
    ingress_port: MetadataSlot,
    egress_spec: MetadataSlot,
    egress_port: MetadataSlot,
    instance_type: MetadataSlot,
    packet_length: MetadataSlot,
    ingress_timestamp: MetadataSlot,
    egress_timestamp: MetadataSlot,
    enqueue_timestamp: MetadataSlot,
    multicast_group: MetadataSlot,
    egress_rid: MetadataSlot,
    parser_error: MetadataSlot,
}

/// Lowers the six blocks.
pub(crate) fn lower(lower: &mut Lower<'_>, arguments: &[ObjectRef]) -> Option<Layout> {
    let types = lower.parameter_types(arguments.first()?);
    let [_, headers, meta, standard] = &types[..] else { return None };
    let headers = lower.global(headers);
    let meta = lower.global(meta);
    let standard = lower.global(standard);
    lower.name_fields("hdr", &headers);
    lower.name_fields("meta", &meta);
    lower.name_fields("standard_metadata", &standard);
    lower.hooks.standard_metadata = Some(standard.clone());
    let place = |place: &Place| Binding::Place(place.clone());
    let packet = || Binding::Object(packet_object());
    for (number, block) in arguments.iter().enumerate() {
        lower.hooks.in_egress = number >= EGRESS;
        let bindings = match number {
            PARSER => vec![packet(), place(&headers), place(&meta), place(&standard)],
            VERIFY | COMPUTE => vec![place(&headers), place(&meta)],
            INGRESS | EGRESS => vec![place(&headers), place(&meta), place(&standard)],
            _ => vec![packet(), place(&headers)],
        };
        lower.block_function(block, bindings);
    }
    let field = |name: &str| -> MetadataSlot {
        let number = standard.ty.fields().iter().position(|field| &*field.name == name)?;
        Some(standard.field(number).slot())
    };
    Some(Layout {
        headers: (headers.word as usize, meta.word as usize),
        ingress_port: field("ingress_port"),
        egress_spec: field("egress_spec"),
        egress_port: field("egress_port"),
        instance_type: field("instance_type"),
        packet_length: field("packet_length"),
        ingress_timestamp: field("ingress_global_timestamp"),
        egress_timestamp: field("egress_global_timestamp"),
        enqueue_timestamp: field("enq_timestamp"),
        multicast_group: field("mcast_grp"),
        egress_rid: field("egress_rid"),
        parser_error: field("parser_error"),
    })
}

/// Metadata that a copy of the packet keeps.
type Preserved = Vec<(Slot, Vec<u64>)>;

/// Something that still has to be done for the packet.
enum Job {
    /// A pass from the parser on.
    Ingress { packet: Vec<u8>, instance_type: u64, preserved: Preserved },
    /// A clone of what arrived: parsed again, then egress.
    IngressClone { packet: Vec<u8>, session: u64, preserved: Preserved },
    /// Egress with these headers.
    Egress { packet: Vec<u8>, cursor: u64, frame: Vec<u64>, port: u64, rid: u64, instance_type: u64 },
}

/// Takes a packet through the switch.
pub(crate) fn process(core: &mut Core, layout: &Layout, packet: &[u8], port: u64, sink: &mut dyn FnMut(Output<'_>)) {
    let mut jobs = Vec::new();
    ingress(core, layout, packet, port, NORMAL, &[], &mut jobs, sink);
    for _ in 0..PASSES_MAX {
        let Some(job) = jobs.pop() else { return };
        match job {
            Job::Ingress { packet, instance_type, preserved } => {
                ingress(core, layout, &packet, port, instance_type, &preserved, &mut jobs, sink);
            }
            Job::IngressClone { packet, session, preserved } => {
                begin(core, layout, &packet, port, INGRESS_CLONE, &preserved);
                core.run(PARSER);
                to_session(core, layout, session, INGRESS_CLONE, port, &mut jobs, sink);
            }
            Job::Egress { packet, cursor, frame, port: to, rid, instance_type } => {
                core.machine.set_packet(&packet);
                core.machine.registers.cursor = cursor;
                core.machine.frame[..frame.len()].copy_from_slice(&frame);
                egress(core, layout, to, rid, instance_type, port, &mut jobs, sink);
            }
        }
    }
    if !jobs.is_empty() {
        core.gone(PacketGone::TooManyPasses);
    }
}

#[inline]
fn set(core: &mut Core, slot: MetadataSlot, value: u64) {
    if let Some(slot) = slot {
        core.machine.set_small(slot, value);
    }
}

#[inline]
fn get(core: &Core, slot: MetadataSlot) -> u64 {
    slot.map_or(0, |slot| core.machine.frame[slot.word as usize])
}

fn begin(
    core: &mut Core,
    layout: &Layout,
    packet: &[u8],
    port: u64,
    instance_type: u64,
    preserved: &[(Slot, Vec<u64>)],
) {
    core.machine.start(packet);
    core.reset_effects();
    for (slot, value) in preserved {
        core.machine.set_limbs(*slot, value);
    }
    set(core, layout.ingress_port, port);
    set(core, layout.instance_type, instance_type);
    set(core, layout.packet_length, packet.len() as u64);
    let now = core.machine.now;
    set(core, layout.ingress_timestamp, now);
}

/// Values of the fields of a list.
fn preserve(core: &Core, list: Option<u8>) -> Preserved {
    let Some(list) = list else {
        return Vec::new();
    };
    let kept = core.ir.fields.iter().filter(|field| field.lists.contains(&list));
    kept.map(|field| (field.slot, core.machine.slot(field.slot).to_vec())).collect()
}

#[allow(clippy::too_many_arguments, reason = "the state of one pass, used in this file only")]
fn ingress(
    core: &mut Core,
    layout: &Layout,
    packet: &[u8],
    port: u64,
    instance_type: u64,
    preserved: &[(Slot, Vec<u64>)],
    jobs: &mut Vec<Job>,
    sink: &mut dyn FnMut(Output<'_>),
) {
    begin(core, layout, packet, port, instance_type, preserved);
    core.run(PARSER);
    let error = core.parser_error();
    set(core, layout.parser_error, error);
    core.run(VERIFY);
    core.run(INGRESS);
    core.take_messages();
    if core.stopped() {
        return;
    }
    if let Some(CloneRequest { session, list, .. }) = core.machine.effects.clone.take() {
        jobs.push(Job::IngressClone { packet: packet.to_vec(), session, preserved: preserve(core, list) });
    }
    if let Some(list) = core.machine.effects.resubmit.take() {
        core.note(Event::Exit { to: "resubmitted".into() });
        let preserved = preserve(core, list);
        jobs.push(Job::Ingress { packet: packet.to_vec(), instance_type: RESUBMITTED, preserved });
        return;
    }
    let group = get(core, layout.multicast_group);
    if group != 0 {
        multicast(core, group, REPLICATED, jobs);
        return;
    }
    let to = get(core, layout.egress_spec);
    if to == DROP_PORT {
        core.gone(PacketGone::Dropped);
        return;
    }
    egress(core, layout, to, 0, instance_type, port, jobs, sink);
}

fn multicast(core: &mut Core, group: u64, instance_type: u64, jobs: &mut Vec<Job>) {
    let replicas = core.switch.replicas(group);
    if replicas.is_empty() {
        core.gone(PacketGone::EmptyGroup);
    }
    // The last job is done first.
    for (to, rid) in replicas.into_iter().rev() {
        let globals = core.ir.global_words;
        jobs.push(Job::Egress {
            packet: core.machine.packet.clone(),
            cursor: core.machine.registers.cursor,
            frame: core.machine.frame[..globals].to_vec(),
            port: to,
            rid,
            instance_type,
        });
    }
}

/// Sends what the frame holds to where a mirroring session says.
fn to_session(
    core: &mut Core,
    layout: &Layout,
    session: u64,
    instance_type: u64,
    port: u64,
    jobs: &mut Vec<Job>,
    sink: &mut dyn FnMut(Output<'_>),
) {
    match core.switch.session(session) {
        Some(to) if to.group.is_some() => multicast(core, to.group.unwrap_or(0), instance_type, jobs),
        Some(to) => egress(core, layout, to.port.unwrap_or(DROP_PORT), 0, instance_type, port, jobs, sink),
        None => core.gone(PacketGone::NoSession),
    }
}

#[allow(clippy::too_many_arguments, reason = "the state of one pass, used in this file only")]
fn egress(
    core: &mut Core,
    layout: &Layout,
    to: u64,
    rid: u64,
    instance_type: u64,
    port: u64,
    jobs: &mut Vec<Job>,
    sink: &mut dyn FnMut(Output<'_>),
) {
    let now = core.machine.now;
    set(core, layout.egress_port, to);
    set(core, layout.egress_spec, 0);
    set(core, layout.egress_rid, rid);
    set(core, layout.instance_type, instance_type);
    set(core, layout.egress_timestamp, now);
    set(core, layout.enqueue_timestamp, now);
    core.machine.effects.clone = None;
    core.run(EGRESS);
    core.take_messages();
    if core.stopped() {
        return;
    }
    if let Some(CloneRequest { session, list, .. }) = core.machine.effects.clone.take() {
        egress_clone(core, layout, session, list, port, jobs);
    }
    if get(core, layout.egress_spec) == DROP_PORT {
        core.gone(PacketGone::Dropped);
        return;
    }
    core.run(COMPUTE);
    core.run(DEPARSER);
    core.deparse();
    if let Some(length) = core.machine.effects.truncate.take() {
        core.result.truncate(length as usize);
    }
    if let Some(list) = core.machine.effects.recirculate.take() {
        core.note(Event::Exit { to: "recirculated".into() });
        let preserved = preserve(core, list);
        jobs.push(Job::Ingress { packet: core.result.clone(), instance_type: RECIRCULATED, preserved });
        return;
    }
    core.send(to, sink);
}

/// Copies the packet as it leaves egress; metadata starts from zero but for the list.
fn egress_clone(core: &mut Core, layout: &Layout, session: u64, list: Option<u8>, port: u64, jobs: &mut Vec<Job>) {
    let Some(target) = core.switch.session(session) else {
        core.gone(PacketGone::NoSession);
        return;
    };
    let preserved = preserve(core, list);
    let mut frame = vec![0; core.ir.global_words];
    let (first, last) = layout.headers;
    frame[first..last].copy_from_slice(&core.machine.frame[first..last]);
    for (slot, value) in preserved {
        let at = slot.word as usize;
        frame[at..at + value.len()].copy_from_slice(&value);
    }
    for (slot, value) in [(layout.ingress_port, port), (layout.packet_length, core.machine.packet.len() as u64)] {
        if let Some(slot) = slot {
            frame[slot.word as usize] = value;
        }
    }
    let targets = match (target.group, target.port) {
        (Some(group), _) => core.switch.replicas(group),
        (None, to) => vec![(to.unwrap_or(DROP_PORT), 0)],
    };
    for (to, rid) in targets {
        jobs.push(Job::Egress {
            packet: core.machine.packet.clone(),
            cursor: core.machine.registers.cursor,
            frame: frame.clone(),
            port: to,
            rid,
            instance_type: EGRESS_CLONE,
        });
    }
}
