//! A descriptor's frame, brought together.

use nicforge_platform::Dma;
use nicforge_units::Time;
use nicforge_wire::{checksum, parse_frame};

use super::layout::TxDescriptor;
use crate::TxOffload;

/// The second line of a descriptor that has one.
pub type Inlined = [u64; 8];

/// The frame that a descriptor names, ready for the wire, and when all of it is here. `inlined` is
/// the descriptor's second line, where the first bytes stand if it says so.
pub fn gather<'a, D: Dma>(
    descriptor: &TxDescriptor,
    inlined: Option<&Inlined>,
    dma: &'a mut D,
    frame: &'a mut Vec<u8>,
) -> (&'a [u8], Time) {
    let (head, rest) = (descriptor.head, descriptor.rest);
    let inlined = inlined.filter(|_| descriptor.inline);
    if rest.len == 0 && inlined.is_none() && descriptor.offload == TxOffload::default() {
        return dma.view_ahead(head.at, head.len as usize, frame);
    }
    frame.resize(descriptor.len() as usize, 0);
    let (first, second) = frame.split_at_mut(head.len as usize);
    let mut here = dma.now();
    match inlined {
        // The guard has seen that they are no more than a line holds.
        Some(words) => first.copy_from_slice(&bytemuck::bytes_of(words)[..head.len as usize]),
        None => here = dma.read_ahead(head.at, first),
    }
    if rest.len > 0 {
        here = here.max(dma.read_ahead(rest.at, second));
    }
    fill_checksums(frame, descriptor.offload);
    (frame, here)
}

fn fill_checksums(frame: &mut [u8], offload: TxOffload) {
    if offload == TxOffload::default() {
        return;
    }
    // What the parser cannot read has no checksum to fill; it goes out as it is.
    if let Ok(summary) = parse_frame(frame) {
        checksum::fill(frame, &summary, offload.l3_checksum, offload.l4_checksum);
    }
}
