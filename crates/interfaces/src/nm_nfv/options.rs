//! Options of interfaces that split frames, and what these say about themselves.

use nicforge_nic::NicmemOptions;
use nicforge_options::{Allowed, options};

use super::{NmNfv, NmNfvMinus, SplitRings};
use crate::describe::{Buffers, Describe, Queues, Shape, SplitShape};
use crate::options::RxRing;

options! {
    /// Headers and payload in two buffers.
    pub struct SplitOptions {
        embed ring: RxRing;
        /// Where frames are cut into headers and payload, from their beginning; 0: where the headers end
        /// that the NIC has parsed. Applications drop what is cut within its headers (`headers_split`).
        split_at: usize = 0, "bytes", Allowed::Whole(0, 2048);
        /// Whether headers come in receive completions instead of buffers.
        rx_inline: bool = false, "", Allowed::Flag, source "nicmem paper, section 2.2.2";
    }
}

options! {
    /// Payload in memory of the NIC.
    pub struct NmNfvOptions {
        embed split: SplitOptions;
        embed memory: NicmemOptions;
        /// Queues of each NIC whose payload goes there, the first ones.
        nicmem_queues: Option<usize> = None, "queues", Allowed::Whole(0, 256), default "all queues";
    }
}

impl NmNfvOptions {
    fn shape(&self, queues: &Queues<'_>, inlines: bool) -> Shape {
        let on_nicmem = self.nicmem_queues.map_or(queues.each, |first| first.min(queues.each));
        self.split.shape(queues, on_nicmem, inlines)
    }
}

impl SplitOptions {
    fn shape(&self, queues: &Queues<'_>, on_nicmem: usize, inlines: bool) -> Shape {
        let entries = self.ring.rx_entries;
        Shape {
            // Two for each frame, in transmit rings too.
            buffers: Buffers { receive: 2 * entries, more_in_transmit: 1 },
            // Headers, and payload where that is host memory.
            empty: (2 * queues.each - on_nicmem) * entries,
            ready: None,
            split: Some(SplitShape { at: self.split_at, on_nicmem, inlines }),
            supplies: Vec::new(),
            ..Shape::of_rings(queues, entries, 1)
        }
    }
}

impl Describe for NmNfv {
    const NAME: &'static str = "nm_nfv";
    const ABOUT: &'static str = "payload in memory of the NIC, headers in host memory and in transmit descriptors";
    const PLAYED: Result<(), &'static str> = Err(
        "its frames lie in two buffers each, while the core exchanges one buffer for one and never looks at a frame",
    );
    type Options = NmNfvOptions;

    fn shape(options: &NmNfvOptions, queues: &Queues<'_>) -> Shape {
        options.shape(queues, true)
    }
}

impl Describe for NmNfvMinus {
    const NAME: &'static str = "nm_nfv_minus";
    const ABOUT: &'static str = "payload in memory of the NIC, headers in host memory";
    const PLAYED: Result<(), &'static str> = Err(
        "its frames lie in two buffers each, while the core exchanges one buffer for one and never looks at a frame",
    );
    type Options = NmNfvOptions;

    fn shape(options: &NmNfvOptions, queues: &Queues<'_>) -> Shape {
        options.shape(queues, false)
    }
}

impl Describe for SplitRings {
    const NAME: &'static str = "split";
    const ABOUT: &'static str = "headers and payload in two buffers, both in host memory";
    const PLAYED: Result<(), &'static str> = Err(
        "its frames lie in two buffers each, while the core exchanges one buffer for one and never looks at a frame",
    );
    type Options = SplitOptions;

    fn shape(options: &SplitOptions, queues: &Queues<'_>) -> Shape {
        options.shape(queues, 0, false)
    }
}
