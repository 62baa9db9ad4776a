//! FlexNIC: ingress, egress and DMA pipeline (ASPLOS 2016, section 2.2).
//!
//! ```text
//!  wire ─► parse, ingress, deparse ─┬─► parse, DMA pipeline, deparse ─► transfers
//!  wire ◄─ parse, egress, deparse ◄─┴── copies, replies, packets of the host
//! ```
//!
//! Each pipeline has a parser and a deparser of its own, as figure 2 has it: between them go the packet and its mark.

use super::{Architecture, MetadataSlot};
use crate::p4::dma::{BufferState, Direction, DmaOutcome, Ended, NicFields, Transfer};
use crate::p4::ir::ExternFunction;
use crate::p4::lower::{Binding, Lower, ObjectRef, Place, packet_object};
use crate::p4::machine::ObjectState;
use crate::p4::outcome::{Output, OwnedOutput, PacketGone};
use crate::p4::pipeline::{Core, PACKET_BYTES_MAX, Pipeline, Program};
use crate::p4::trace::Event;

const PARSER: usize = 0;
pub(crate) const INGRESS: usize = 1;
const EGRESS: usize = 2;
pub(crate) const DMA_PIPELINE: usize = 3;
const DEPARSER: usize = 4;

/// Whether a function is of this package only.
pub(crate) fn is_own(function: &ExternFunction) -> bool {
    use ExternFunction::{Consume, CopyTo, Dma, Refuse};
    matches!(function, Dma(_) | Refuse | CopyTo | Consume)
}

/// Whether a block of the package has a function.
pub(crate) fn allows(block: usize, function: &ExternFunction) -> bool {
    use ExternFunction::{Consume, CopyTo, Dma, DropPacket, Refuse, SendToPort, SetFlags, SetMark, SetQueue};
    match function {
        Dma(_) => block == DMA_PIPELINE,
        Consume => [INGRESS, EGRESS].contains(&block),
        CopyTo | SetMark | SetFlags | SetQueue => block == INGRESS,
        DropPacket | Refuse | SendToPort => (INGRESS..=DMA_PIPELINE).contains(&block),
        ExternFunction::MirrorPacket | ExternFunction::AddEntry { .. } => false,
        _ => true,
    }
}

/// Places in the frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    port: MetadataSlot,
    length: MetadataSlot,
    stamp: MetadataSlot,
    hash: MetadataSlot,
    flags: MetadataSlot,
    queue: MetadataSlot,
    segment: MetadataSlot,
    mark: MetadataSlot,
    tag: MetadataSlot,
    entry: MetadataSlot,
    buffer: MetadataSlot,
    state: MetadataSlot,
    parser_error: MetadataSlot,
}

/// Lowers the five blocks.
pub(crate) fn lower(lower: &mut Lower<'_>, arguments: &[ObjectRef]) -> Option<Layout> {
    let types = lower.parameter_types(arguments.first()?);
    let [_, headers, meta, nic] = &types[..] else { return None };
    let headers = lower.global(headers);
    let meta = lower.global(meta);
    let nic = lower.global(nic);
    lower.name_fields("hdr", &headers);
    lower.name_fields("meta", &meta);
    lower.name_fields("nic", &nic);
    let place = |place: &Place| Binding::Place(place.clone());
    let packet = || Binding::Object(packet_object());
    for (number, block) in arguments.iter().enumerate() {
        let bindings = match number {
            PARSER => vec![packet(), place(&headers), place(&meta), place(&nic)],
            INGRESS..=DMA_PIPELINE => vec![place(&headers), place(&meta), place(&nic)],
            _ => vec![packet(), place(&headers)],
        };
        lower.block_function(block, bindings);
    }
    let field = |name: &str| -> MetadataSlot {
        let number = nic.ty.fields().iter().position(|field| &*field.name == name)?;
        Some(nic.field(number).slot())
    };
    Some(Layout {
        port: field("port"),
        length: field("length"),
        stamp: field("stamp"),
        hash: field("hash"),
        flags: field("flags"),
        queue: field("queue"),
        segment: field("segment"),
        mark: field("mark"),
        tag: field("tag"),
        entry: field("entry"),
        buffer: field("buffer"),
        state: field("state"),
        parser_error: field("parser_error"),
    })
}

/// Parses a packet, runs a pipeline and puts the deparsed packet into `result`; false if it ended there.
fn pass(core: &mut Core, layout: &Layout, packet: &[u8], fields: &NicFields, tag: u64, pipeline: usize) -> bool {
    core.machine.start(packet);
    core.reset_effects();
    let values = [
        (layout.port, u64::from(fields.port)),
        (layout.length, packet.len() as u64),
        (layout.stamp, fields.stamp),
        (layout.hash, u64::from(fields.hash)),
        (layout.flags, u64::from(fields.flags)),
        (layout.queue, u64::from(fields.queue)),
        (layout.segment, u64::from(fields.segment)),
        (layout.mark, fields.mark),
        (layout.tag, tag),
        (layout.entry, fields.entry),
        (layout.buffer, fields.buffer),
        (layout.state, fields.state as u64),
    ];
    let set = |core: &mut Core, slot: MetadataSlot, value| {
        if let Some(slot) = slot {
            core.machine.set_small(slot, value);
        }
    };
    for (slot, value) in values {
        set(core, slot, value);
    }
    core.run(PARSER);
    let error = core.parser_error();
    set(core, layout.parser_error, error);
    core.run(pipeline);
    core.take_messages();
    if core.stopped() {
        return false;
    }
    let effects = &core.machine.effects;
    if effects.drop || pipeline != DMA_PIPELINE && effects.refusal.is_some() {
        core.gone(if effects.consumed { PacketGone::Consumed } else { PacketGone::Dropped });
        return false;
    }
    deparse(core);
    true
}

/// Makes the packet that a pipeline leaves.
fn deparse(core: &mut Core) {
    core.run(DEPARSER);
    core.deparse();
    if let Some(length) = core.machine.effects.truncate {
        core.result.truncate(length as usize);
    }
}

/// A packet comes in from the wire.
pub(crate) fn ingress(
    core: &mut Core,
    layout: &Layout,
    packet: &[u8],
    fields: &NicFields,
    sink: &mut dyn FnMut(Output<'_>),
) {
    // A packet that is dropped may have left copies.
    let goes_on = pass(core, layout, packet, fields, 0, INGRESS);
    let port = core.machine.effects.port;
    if core.machine.effects.copies.is_empty() && port.is_none() {
        if goes_on {
            core.send_to_host(sink);
        }
        return;
    }
    let copies = std::mem::take(&mut core.machine.effects.copies);
    let made = if goes_on {
        core.result.clone()
    } else {
        deparse(core);
        core.result.clone()
    };
    if goes_on && port.is_none() {
        core.send_to_host(sink);
    }
    for (to, tag) in copies {
        leave(core, layout, &made, &NicFields { port: to as u32, ..*fields }, tag, sink);
    }
    if let (true, Some(to)) = (goes_on, port) {
        leave(core, layout, &made, &NicFields { port: to as u32, ..*fields }, 0, sink);
    }
}

/// A packet goes through egress and leaves by `fields.port`, unless egress sends it elsewhere.
fn leave(
    core: &mut Core,
    layout: &Layout,
    packet: &[u8],
    fields: &NicFields,
    tag: u64,
    sink: &mut dyn FnMut(Output<'_>),
) {
    if pass(core, layout, packet, fields, tag, EGRESS) {
        let to = core.machine.effects.port.unwrap_or(u64::from(fields.port));
        core.send(to, sink);
    }
}

/// A packet of the host goes to the wire.
pub(crate) fn egress(
    core: &mut Core,
    layout: &Layout,
    packet: &[u8],
    fields: &NicFields,
    sink: &mut dyn FnMut(Output<'_>),
) {
    leave(core, layout, packet, fields, 0, sink);
}

impl Program {
    /// Whether packets pass FlexNIC's ingress and egress unchanged, as both are empty.
    pub fn empty_pipelines(&self) -> (bool, bool) {
        let empty = |number: usize| {
            let blocks = self.ir().functions.get(number).map_or(&[][..], |function| &function.blocks);
            blocks.iter().all(|block| block.ops.is_empty())
        };
        (empty(INGRESS), empty(EGRESS))
    }
}

impl Pipeline {
    /// How FlexNIC's program ended the last packet, of which nothing was left.
    pub fn ended(&self) -> Ended {
        let effects = &self.core.machine.effects;
        Ended { is_consumed: effects.consumed, refusal: effects.refusal }
    }

    /// Takes a packet, as FlexNIC's ingress left it, through the DMA pipeline; other programs have none.
    pub fn dma(&mut self, packet: &[u8], fields: &NicFields) -> DmaOutcome<'_> {
        let packet = &packet[..packet.len().min(PACKET_BYTES_MAX)];
        match &self.architecture {
            Architecture::FlexNic(layout) => dma(&mut self.core, layout, packet, fields),
            _ => DmaOutcome::Gone,
        }
    }
}

/// Gives each queue an entry, for a trace.
pub(crate) fn free_entries(pipeline: &mut Pipeline) {
    if !matches!(pipeline.architecture, Architecture::FlexNic(_)) {
        return;
    }
    let Some(ObjectState::Register { words, .. }) = pipeline.object_named("head") else { return };
    let heads = words.clone();
    if let Some(ObjectState::Register { words, .. }) = pipeline.object_named("tail") {
        words.iter_mut().zip(heads).for_each(|(tail, head)| *tail = head.wrapping_add(1));
    }
}

/// Takes what goes to the host through the DMA pipeline, for a trace: as if its queue had a buffer.
pub(crate) fn trace(pipeline: &mut Pipeline, outputs: &[OwnedOutput], port: u32) {
    if !matches!(pipeline.architecture, Architecture::FlexNic(_)) {
        return;
    }
    for output in outputs.iter().filter(|output| output.port.is_none()) {
        let queue = output.queue.unwrap_or(0);
        let free = BufferState::Fits;
        let fields = NicFields {
            port,
            queue,
            mark: output.mark,
            state: free,
            entry: 0x1000,
            buffer: 0x2000,
            ..NicFields::default()
        };
        pipeline.dma(&output.packet, &fields);
    }
}

/// A packet that ingress let through goes to host memory.
fn dma<'a>(core: &'a mut Core, layout: &Layout, packet: &[u8], fields: &NicFields) -> DmaOutcome<'a> {
    if !pass(core, layout, packet, fields, 0, DMA_PIPELINE) {
        return DmaOutcome::Gone;
    }
    if core.machine.effects.too_many_transfers {
        core.gone(PacketGone::TooManyTransfers);
        return DmaOutcome::Gone;
    }
    if let Some(why) = core.machine.effects.refusal {
        core.note(Event::Exit { to: format!("refused: {why:?}") });
        return DmaOutcome::Refused(why, &core.result, &core.machine.effects.transfers);
    }
    if core.machine.trace.is_some() {
        for transfer in core.machine.effects.transfers.clone() {
            let Transfer { offset, length, address, .. } = transfer;
            let way = if transfer.direction == Direction::ToMemory { "to" } else { "from" };
            core.note(Event::Exit { to: format!("{length} bytes from {offset} on, {way} memory at {address:#x}") });
        }
    }
    let effects = &core.machine.effects;
    match effects.port {
        Some(to) => DmaOutcome::Reply(&core.result, &effects.transfers, to as u32),
        None => DmaOutcome::Transfers(&core.result, &effects.transfers),
    }
}
