//! Options of shared rings, and what these say about themselves.

use nicforge_options::{Allowed, options};

use super::batched_list::batch;
use super::{ShRing, ShRingBatchedList, ShRingList};
use crate::describe::{Around, Describe, Queues, Shape};
use crate::options::RxRing;
use crate::rx_bisect::burst_warning;

options! {
    /// Rings that cores share.
    pub struct SharedRing {
        embed ring: RxRing;
        /// Cores that share a receive ring.
        sharing: usize = 8, "cores", Allowed::Whole(1, 256), source "shRing paper, section 5.1";
    }
}

options! {
    /// Shared rings whose descriptors take several packets.
    pub struct BatchedListOptions {
        embed shared: SharedRing;
        /// Packets for which a descriptor of the batched list has buffers.
        list_batch: usize = 4, "packets", Allowed::PowerOfTwo(2, 4), source "shRing paper, figure 5.2b";
    }
}

impl SharedRing {
    fn shape(&self, queues: &Queues<'_>) -> Shape {
        let shape = Shape::of_rings(queues, self.ring.rx_entries, self.sharing);
        Shape { sharing: Some(self.sharing), ..shape }
    }

    /// Why sharing that was asked for is not advisable.
    pub fn advice(&self, around: &Around<'_>) -> Vec<String> {
        let burst = burst_warning("Shared rings", self.ring.rx_entries, around.burst_entries);
        burst.into_iter().chain(self.about_uneven(around)).collect()
    }

    /// Groups of cores that do not come out even.
    fn about_uneven(&self, around: &Around<'_>) -> Option<String> {
        let (sharing, queues) = (self.sharing, around.queues.each);
        if !(around.is_set)("sharing") || queues.is_multiple_of(sharing) {
            return None;
        }
        Some(if sharing > queues {
            format!("each NIC has {queues} queues, so its ring is shared by {queues} and not by {sharing}")
        } else {
            let last = queues % sharing;
            format!(
                "{queues} queues of each NIC do not divide by sharing = {sharing}: its last ring is shared by {last}"
            )
        })
    }
}

impl BatchedListOptions {
    /// Rings so small that their descriptors take fewer packets.
    fn about_small_batches(&self, around: &Around<'_>) -> Option<String> {
        let sharing = self.shared.sharing.min(around.queues.each) as u64;
        let (entries, asked) = (self.shared.ring.rx_entries as u64, self.list_batch as u64);
        let batch = batch(entries, sharing, asked);
        (batch < asked).then(|| {
            format!(
                "rx_entries = {entries} with {sharing} cores a ring: its descriptors take {batch} instead of {asked} \
                 packets each, so that each core has two of them; {} entries have room for {asked}",
                (2 * sharing * asked).next_power_of_two()
            )
        })
    }
}

impl Describe for ShRing {
    const NAME: &'static str = "sh_ring";
    const ABOUT: &'static str = "a receive ring shared by cores, used in array order";
    const PLAYED: Result<(), &'static str> = Ok(());
    type Options = SharedRing;

    fn shape(options: &SharedRing, queues: &Queues<'_>) -> Shape {
        options.shape(queues)
    }

    fn advice(options: &SharedRing, around: &Around<'_>) -> Vec<String> {
        options.advice(around)
    }
}

impl Describe for ShRingList {
    const NAME: &'static str = "sh_ring_list";
    const ABOUT: &'static str = "a shared receive ring used in list order";
    const PLAYED: Result<(), &'static str> = Ok(());
    type Options = SharedRing;

    fn shape(options: &SharedRing, queues: &Queues<'_>) -> Shape {
        options.shape(queues)
    }

    fn advice(options: &SharedRing, around: &Around<'_>) -> Vec<String> {
        options.advice(around)
    }
}

impl Describe for ShRingBatchedList {
    const NAME: &'static str = "sh_ring_batched_list";
    const ABOUT: &'static str = "a shared receive ring in list order, whose descriptors take several packets of a core";
    const PLAYED: Result<(), &'static str> = Ok(());
    type Options = BatchedListOptions;

    fn shape(options: &BatchedListOptions, queues: &Queues<'_>) -> Shape {
        Shape { ready: None, ..options.shared.shape(queues) }
    }

    fn advice(options: &BatchedListOptions, around: &Around<'_>) -> Vec<String> {
        let mut notes = options.shared.advice(around);
        notes.extend(options.about_small_batches(around));
        notes
    }
}
