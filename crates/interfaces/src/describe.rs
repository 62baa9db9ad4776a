//! What an interface says about itself without being built: its options, the shape of its rings, and advice.

use nicforge_options::{Finding, Options, Owner, Values};
use nicforge_units::{BitRate, Bytes};

use crate::sh_ring_dynamic::Heuristic;

/// Why no core plays the NIC of a whole device.
pub const ONLY_KERNELS: Result<(), &str> = Err("only whole systems have it");

/// An interface's declaration.
pub trait Describe {
    /// Its name in scenarios.
    const NAME: &'static str;
    /// One line about it.
    const ABOUT: &'static str;
    /// Whether a core can play its NIC (interface `emulated`); else why not.
    const PLAYED: Result<(), &'static str> =
        Err("its completions are not known to name the buffer that a frame lies in");
    /// Whether that core plays all of the NIC: it reads frames, writes what becomes of them, and another core sends. Only
    /// simulated cores do. Else frames stay where the device put them, and it plays the receive half.
    const PLAYED_WHOLE: bool = false;
    /// What software uses it.
    const SOFTWARE: Software = Software::PacketLoop;
    /// Its keys.
    type Options: Options;

    /// The rings that it has with `options`.
    fn shape(options: &Self::Options, queues: &Queues<'_>) -> Shape;

    /// The interface that it builds on by name, as `emulated` does.
    fn inner(_options: &Self::Options) -> Option<String> {
        None
    }

    /// Whether its options go together. `shape` may be asked for only where they do.
    ///
    /// # Errors
    /// The keys concerned, what is wrong, and what would be right.
    fn check(_options: &Self::Options, _queues: &Queues<'_>) -> Result<(), Finding> {
        Ok(())
    }

    /// What speaks against its options, each with what would be right.
    fn advice(_options: &Self::Options, _around: &Around<'_>) -> Vec<String> {
        Vec::new()
    }
}

/// What software uses an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Software {
    /// A loop that polls receive rings.
    PacketLoop,
    /// A kernel's network stack, which the NIC interrupts.
    Kernel,
}

/// The queues of one NIC.
#[derive(Clone, Copy, Debug)]
pub struct Queues<'a> {
    /// NICs in use.
    pub nics: usize,
    /// Queues of each, with a core behind each of them.
    pub each: usize,
    /// The shape of [`Describe::inner`], if there is one.
    pub inner: Option<&'a Shape>,
}

/// The rings of one NIC, as others need to know them.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// Frames that its receive rings hold together.
    pub frames: usize,
    /// Buffers that receive rings may hold for each queue, and transmit rings beyond one for each of their entries.
    pub buffers: Buffers,
    /// Buffers of the host that all receive rings hold when no packet waits.
    pub empty: usize,
    /// Empty buffers that all rings hold out to the NIC, each for a frame; `None` where that depends on the run.
    pub ready: Option<usize>,
    /// Frames of which none is dropped for want of room in any ring: entries of the smallest.
    pub smallest: usize,
    /// Queues that share a ring, where rings are shared.
    pub sharing: Option<usize>,
    /// How frames are cut in two, where they are.
    pub split: Option<SplitShape>,
    /// The groups of queues whose empty buffers may mix; none where no core can play the NIC.
    pub supplies: Vec<Supply>,
    /// Registers of its receive half, at most.
    pub registers: usize,
    /// Whether a core plays each NIC.
    pub played: bool,
    /// What a control core decides by, where there is one.
    pub control: Option<Heuristic>,
}

/// Buffers of each queue's rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Buffers {
    /// In receive rings.
    pub receive: usize,
    /// In each entry of transmit rings, beyond the first.
    pub more_in_transmit: usize,
}

/// Frames in two buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitShape {
    /// Where they are cut, in bytes; 0: where headers end.
    pub at: usize,
    /// Queues whose payload lies in memory of the NIC, the first ones.
    pub on_nicmem: usize,
    /// Whether transmit descriptors always hold headers.
    pub inlines: bool,
}

/// Empty buffers of queues that share them: an emulating core has a physical ring of as many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supply {
    /// The queues whose frames come into it, by number; at least one.
    pub queues: Vec<usize>,
    /// Buffers.
    pub entries: usize,
}

impl Shape {
    /// Rings of `rx_entries` entries that queues share in groups of `sharing`: what most interfaces have.
    pub fn of_rings(queues: &Queues<'_>, rx_entries: usize, sharing: usize) -> Shape {
        let frames = queues.each.div_ceil(sharing.max(1)) * rx_entries;
        Shape {
            frames,
            buffers: Buffers { receive: rx_entries, more_in_transmit: 0 },
            empty: frames,
            ready: Some(frames),
            smallest: rx_entries,
            sharing: None,
            split: None,
            supplies: Supply::of_groups(0..queues.each, sharing, rx_entries),
            registers: 2 * queues.each,
            played: false,
            control: None,
        }
    }

    /// None: a device that has no rings of this kind.
    pub fn without_rings() -> Shape {
        Shape {
            frames: 0,
            buffers: Buffers::default(),
            empty: 0,
            ready: None,
            smallest: 0,
            sharing: None,
            split: None,
            supplies: Vec::new(),
            registers: 0,
            played: false,
            control: None,
        }
    }
}

impl Supply {
    /// One for each group of `sharing` queues.
    pub fn of_groups(queues: std::ops::Range<usize>, sharing: usize, entries: usize) -> Vec<Supply> {
        let queues: Vec<usize> = queues.collect();
        queues.chunks(sharing.max(1)).map(|queues| Supply { queues: queues.to_vec(), entries }).collect()
    }
}

/// What advice depends on, beside an interface's own options.
pub struct Around<'a> {
    /// NICs in use, and queues of each.
    pub queues: Queues<'a>,
    /// Whether a core plays each NIC.
    pub played: bool,
    /// Entries that absorb a burst at the port's rate.
    pub burst_entries: usize,
    /// Entries of the smallest ring that such NICs have.
    pub entries_min: usize,
    /// Bytes of a frame, on average.
    pub frame: Bytes,
    /// Bytes of the last-level cache that DMA writes may allocate into; 0 when they may not.
    pub io_capacity: Bytes,
    /// Each NIC's link to memory, one way.
    pub link: BitRate,
    /// Frame bytes that can come in per second over all NICs, at most.
    pub received: Received,
    /// When the run ends, in ms.
    pub ends_ms: f64,
    /// Whether a key is set.
    pub is_set: &'a dyn Fn(&str) -> bool,
}

/// The most that can come in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Received {
    /// What is offered is less than what the wires take.
    Offered(BitRate),
    /// What the wires take.
    Wires(BitRate),
}

/// An interface's declaration, whatever type its options have.
#[derive(Clone, Debug)]
pub struct Description {
    /// Its name and its keys.
    pub owner: Owner,
    /// Whether a core can play its NIC; else why not.
    pub played: Result<(), &'static str>,
    /// Whether cores play all of its NIC.
    pub played_whole: bool,
    /// What software uses it.
    pub software: Software,
    inner: fn(&Values) -> Option<String>,
    shape: fn(&Values, &Queues<'_>) -> Shape,
    check: fn(&Values, &Queues<'_>) -> Result<(), Finding>,
    advice: fn(&Values, &Around<'_>) -> Vec<String>,
}

impl Description {
    /// The declaration of `I`.
    pub fn of<I: Describe>() -> Description {
        Description {
            owner: Owner::of::<I::Options>("interface", I::NAME, I::ABOUT),
            played: I::PLAYED,
            played_whole: I::PLAYED_WHOLE,
            software: I::SOFTWARE,
            inner: |values| I::inner(&values.read()),
            shape: |values, queues| I::shape(&values.read(), queues),
            check: |values, queues| I::check(&values.read(), queues),
            advice: |values, around| I::advice(&values.read(), around),
        }
    }

    /// Whether it builds on another one.
    pub fn builds_on(&self) -> bool {
        self.inner(&Values::default()).is_some()
    }

    /// The interface that it builds on by name.
    pub fn inner(&self, values: &Values) -> Option<String> {
        (self.inner)(values)
    }

    /// The rings that it has.
    pub fn shape(&self, values: &Values, queues: &Queues<'_>) -> Shape {
        (self.shape)(values, queues)
    }

    /// Whether its options go together.
    ///
    /// # Errors
    /// They do not.
    pub fn check(&self, values: &Values, queues: &Queues<'_>) -> Result<(), Finding> {
        (self.check)(values, queues)
    }

    /// What speaks against its options.
    pub fn advice(&self, values: &Values, around: &Around<'_>) -> Vec<String> {
        (self.advice)(values, around)
    }
}
