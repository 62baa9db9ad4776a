//! Packets between controllers and the NIC: a controller header in front of each, told apart from the rest as metadata.

use nicforge_flexnic::p4::Program;
use nicforge_flexnic::p4::ir::ControllerHeader;

use crate::ids::given_id;
use crate::info::controller_name;
use crate::proto::p4::v1 as p4;
use crate::refusal::Refusal;
use crate::values::{from_bytes, to_bytes};

/// A field of a controller header.
struct Field {
    /// None for padding.
    id: Option<u32>,
    width: u32,
}

fn fields(header: &ControllerHeader) -> Vec<Field> {
    let mut next = 0;
    let mut found = Vec::new();
    for (field, annotations) in header.ty.fields().iter().zip(&header.fields) {
        let width = field.ty.bits(|most| most).unwrap_or(0);
        let padding = annotations.iter().any(|given| &*given.name == "padding");
        if !padding {
            next += 1;
        }
        found.push(Field { id: (!padding).then(|| given_id(annotations).unwrap_or(next)), width });
    }
    found
}

fn header<'p>(program: &'p Program, name: &str) -> Option<&'p ControllerHeader> {
    let headers = &program.ir().controller_headers;
    headers.iter().find(|header| controller_name(&header.annotations).as_deref() == Some(name))
}

/// A packet that left by the controllers' port.
pub fn packet_in(program: &Program, packet: &[u8]) -> p4::PacketIn {
    let Some(header) = header(program, "packet_in") else {
        return p4::PacketIn { payload: packet.to_vec(), metadata: Vec::new() };
    };
    let (mut at, mut metadata) = (0usize, Vec::new());
    for field in fields(header) {
        let mut words = vec![0u64; (field.width as usize).div_ceil(64).max(1)];
        for bit in 0..field.width as usize {
            let place = at + bit;
            // A packet that is shorter than its header reads zeros.
            let set = packet.get(place / 8).is_some_and(|byte| byte >> (7 - place % 8) & 1 == 1);
            let to = field.width as usize - 1 - bit;
            words[to / 64] |= u64::from(set) << (to % 64);
        }
        at += field.width as usize;
        if let Some(metadata_id) = field.id {
            metadata.push(p4::PacketMetadata { metadata_id, value: to_bytes(&words) });
        }
    }
    p4::PacketIn { payload: packet.get(at.div_ceil(8)..).unwrap_or(&[]).to_vec(), metadata }
}

/// The bytes of a packet that a controller sends, its header in front.
pub fn packet_out(program: &Program, packet: &p4::PacketOut) -> Result<Vec<u8>, Refusal> {
    let Some(header) = header(program, "packet_out") else {
        if packet.metadata.is_empty() {
            return Ok(packet.payload.clone());
        }
        return Err(Refusal::invalid(
            "the program has no `@controller_header(\"packet_out\")`, so there is no metadata",
        ));
    };
    let fields = fields(header);
    for given in &packet.metadata {
        if !fields.iter().any(|field| field.id == Some(given.metadata_id)) {
            return Err(Refusal::invalid(format!("there is no packet metadata {}", given.metadata_id)));
        }
    }
    let bits: usize = fields.iter().map(|field| field.width as usize).sum();
    let mut bytes = vec![0u8; bits.div_ceil(8)];
    let mut at = 0;
    for field in fields {
        if let Some(id) = field.id {
            let given: Vec<_> = packet.metadata.iter().filter(|given| given.metadata_id == id).collect();
            let [given] = given[..] else {
                return Err(Refusal::invalid(format!("packet metadata {id} must be given once")));
            };
            let words = from_bytes(&given.value, field.width)?;
            for bit in 0..field.width as usize {
                let from = field.width as usize - 1 - bit;
                if words[from / 64] >> (from % 64) & 1 == 1 {
                    bytes[(at + bit) / 8] |= 0x80 >> ((at + bit) % 8);
                }
            }
        }
        at += field.width as usize;
    }
    bytes.extend_from_slice(&packet.payload);
    Ok(bytes)
}
