//! A descriptor's frame, brought together.

use nicforge_platform::{Dma, Gathered, Run, copy_ahead};
use nicforge_wire::{checksum, parse_frame};

use super::layout::TxDescriptor;
use crate::TxOffload;

/// The second line of a descriptor that has one.
pub type Inlined = [u64; 8];

/// The frame that a descriptor names, ready for the wire unless it is left `unfinished`, in up to three
/// pieces, and when all of it is here. `inlined` is the descriptor's second line, where the first bytes stand if it says so.
#[inline(always)]
pub fn gather<'a, D: Dma>(
    descriptor: &TxDescriptor,
    inlined: Option<&'a Inlined>,
    unfinished: bool,
    dma: &'a mut D,
    frame: &'a mut Vec<u8>,
) -> Gathered<'a> {
    let [head, rest] = [descriptor.head, descriptor.rest].map(|part| Run { at: part.at, len: part.len as usize });
    let (front, runs) = match inlined.filter(|_| descriptor.inline) {
        // The guard has seen that they are no more than a line holds.
        Some(words) => (&bytemuck::bytes_of(words)[..head.len], [Run::default(), rest]),
        None => (&[][..], [head, rest]),
    };
    if unfinished || descriptor.offload == TxOffload::default() {
        return dma.gather(front, runs, frame);
    }
    let here = copy_ahead(dma, front, runs, frame);
    fill_checksums(frame, descriptor.offload);
    Gathered { pieces: [frame, &[], &[]], here }
}

fn fill_checksums(frame: &mut [u8], offload: TxOffload) {
    // What the parser cannot read has no checksum to fill; it goes out as it is.
    if let Ok(summary) = parse_frame(frame) {
        checksum::fill(frame, &summary, offload.l3_checksum, offload.l4_checksum);
    }
}
