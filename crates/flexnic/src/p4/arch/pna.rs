//! The Portable NIC Architecture, as far as its specification is settled.

use super::MetadataSlot;
use crate::p4::lower::{Binding, Lower, ObjectRef, Place, packet_object};
use crate::p4::outcome::{Output, PacketGone};
use crate::p4::pipeline::Core;
use crate::p4::trace::Event;

/// Times that a packet may go round.
const PASSES_MAX: u64 = 8;

const PARSER: usize = 0;
const PRE: usize = 1;
const MAIN: usize = 2;
const DEPARSER: usize = 3;

/// Metadata that the architecture gives to one block.
#[derive(Clone, Debug, Default)]
struct Input {
    direction: MetadataSlot,
    pass: MetadataSlot,
    looped_back: MetadataSlot,
    port: MetadataSlot,
    timestamp: MetadataSlot,
    parser_error: MetadataSlot,
}

/// Places in the frame.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    inputs: Vec<Input>,
}

fn input(place: &Place) -> Input {
    let field = |name: &str| -> MetadataSlot {
        let number = place.ty.fields().iter().position(|field| &*field.name == name)?;
        Some(place.field(number).slot())
    };
    Input {
        direction: field("direction"),
        pass: field("pass"),
        looped_back: field("loopedback"),
        port: field("input_port"),
        timestamp: field("timestamp"),
        parser_error: field("parser_error"),
    }
}

/// Lowers the four blocks.
pub(crate) fn lower(lower: &mut Lower<'_>, arguments: &[ObjectRef]) -> Option<Layout> {
    lower.ir.is_pna = true;
    let [parser, pre, main, deparser] = arguments else { return None };
    let parser_types = lower.parameter_types(parser);
    let (pre_types, main_types) = (lower.parameter_types(pre), lower.parameter_types(main));
    let (
        [_, headers, meta, parser_input],
        [pre_headers, pre_meta, pre_input, pre_output],
        [_, _, main_input, main_output],
    ) = (&parser_types[..], &pre_types[..], &main_types[..])
    else {
        return None;
    };
    let same = (pre_headers == headers, pre_meta == meta);
    let headers = lower.global(headers);
    let meta = lower.global(meta);
    lower.name_fields("hdr", &headers);
    lower.name_fields("meta", &meta);
    // The pre control sees the parsed headers where it has the same types.
    let pre_headers = if same.0 { headers.clone() } else { lower.global(pre_headers) };
    let pre_meta = if same.1 { meta.clone() } else { lower.global(pre_meta) };
    let (parser_input, pre_input, main_input) =
        (lower.global(parser_input), lower.global(pre_input), lower.global(main_input));
    let (pre_output, main_output) = (lower.global(pre_output), lower.global(main_output));
    lower.name_fields("istd", &main_input);
    lower.name_fields("ostd", &main_output);
    let place = |place: &Place| Binding::Place(place.clone());
    let packet = || Binding::Object(packet_object());
    lower.block_function(parser, vec![packet(), place(&headers), place(&meta), place(&parser_input)]);
    lower.block_function(pre, vec![place(&pre_headers), place(&pre_meta), place(&pre_input), place(&pre_output)]);
    lower.block_function(main, vec![place(&headers), place(&meta), place(&main_input), place(&main_output)]);
    lower.block_function(deparser, vec![packet(), place(&headers), place(&meta), place(&main_output)]);
    Some(Layout { inputs: vec![input(&parser_input), input(&pre_input), input(&main_input)] })
}

fn set(core: &mut Core, slot: MetadataSlot, value: u64) {
    if let Some(slot) = slot {
        core.machine.set_small(slot, value);
    }
}

/// Takes a packet through the NIC; `from_host` gives its direction.
pub(crate) fn process(
    core: &mut Core,
    layout: &Layout,
    packet: &[u8],
    port: u64,
    from_host: bool,
    sink: &mut dyn FnMut(Output<'_>),
) {
    let mut bytes = packet.to_vec();
    for pass in 0..PASSES_MAX {
        core.machine.start(&bytes);
        core.reset_effects();
        let now = core.machine.now;
        for input in &layout.inputs {
            set(core, input.direction, u64::from(from_host));
            set(core, input.pass, pass);
            set(core, input.looped_back, 0);
            set(core, input.port, port);
            set(core, input.timestamp, now);
        }
        core.run(PARSER);
        let error = core.parser_error();
        for input in &layout.inputs {
            set(core, input.parser_error, error);
        }
        core.run(PRE);
        core.run(MAIN);
        core.take_messages();
        if core.stopped() {
            return;
        }
        core.run(DEPARSER);
        core.deparse();
        for (_, session) in std::mem::take(&mut core.machine.effects.mirrors) {
            match core.switch.session(session).and_then(|session| session.port) {
                Some(to) => core.send(to, sink),
                None => core.gone(PacketGone::NoSession),
            }
        }
        if core.machine.effects.recirculate.take().is_some() {
            core.note(Event::Exit { to: "recirculated".into() });
            bytes.clone_from(&core.result);
            continue;
        }
        match core.machine.effects.port {
            _ if core.machine.effects.drop => core.gone(PacketGone::Dropped),
            Some(to) => core.send(to, sink),
            // Without a decision the packet goes on in its direction.
            None if from_host => core.send(port, sink),
            None => core.send_to_host(sink),
        }
        return;
    }
    core.gone(PacketGone::TooManyPasses);
}
