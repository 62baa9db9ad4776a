//! Options of dynamic shRing, and what it says about itself.

use nicforge_options::{Allowed, Key, Options, options};
use nicforge_units::{BitRate, Time};

use super::{Heuristic, ShRingDynamic};
use crate::describe::{Around, Buffers, Describe, Queues, Received, Shape, Supply};
use crate::sh_ring::SharedRing;

/// Bits of a GiB.
const GIBIBYTE_BITS: f64 = 8.0 * (1u64 << 30) as f64;

options! {
    /// Private and shared rings, and when which of them are used.
    pub struct DynamicOptions {
        embed shared: SharedRing;
        /// Time from one look of the control core to the next.
        dynamic_step_ms: f64 = 10.0, "ms", Allowed::Number(0.01, 60_000.0), source "shRing paper, section 5.1.6";
        /// Looks that the control core remembers.
        dynamic_window: usize = 16, "looks", Allowed::Whole(1, 4096), source "shRing paper, section 5.1.5";
        /// Sharing needs more frame bytes received than this, over all NICs.
        dynamic_gbps: f64 = 170.0, "Gbit/s", Allowed::Number(0.0, 10_000.0), source "shRing paper, section 5.1.6";
        /// Sharing needs more host memory read and written by the NICs than this.
        dynamic_memory_gib_per_s: f64 = 25.0, "GiB/s", Allowed::Number(0.0, 10_000.0),
            source "shRing paper, section 5.1.6";
        /// A core is overloaded when the cores' times between receive calls have a standard deviation
        /// of more than so many medians.
        dynamic_gap_ratio: f64 = 32.0, "medians", Allowed::Number(0.0, 1e9),
            source "shRing paper, section 5.1.6: the largest batch of a receive call";
        /// Rings are shared when more than this share of the window speaks for it.
        dynamic_on_share: f64 = 0.5, "share", Allowed::Number(0.0, 1.0),
            source "shRing paper, section 5.1.5: more than half";
        /// Rings are private again when at least this share of the window speaks against sharing.
        dynamic_off_share: f64 = 0.875, "share", Allowed::Number(0.0, 1.0),
            source "shRing paper, section 5.1.5: 7/8";
    }
}

impl Describe for ShRingDynamic {
    const NAME: &'static str = "sh_ring_dynamic";
    const ABOUT: &'static str = "private rings and a shared one, switched at run time by a heuristic";
    const PLAYED: Result<(), &'static str> = Ok(());
    type Options = DynamicOptions;

    fn shape(options: &DynamicOptions, queues: &Queues<'_>) -> Shape {
        let (entries, sharing) = (options.shared.ring.rx_entries, options.shared.sharing);
        let shared = Supply::of_groups(queues.each..2 * queues.each, sharing, entries);
        let private = Shape::of_rings(queues, entries, 1);
        Shape {
            // Two sets of rings, of which one receives at a time.
            buffers: Buffers { receive: 2 * entries, more_in_transmit: 0 },
            empty: private.empty + shared.iter().map(|supply| supply.entries).sum::<usize>(),
            ready: None,
            sharing: Some(sharing),
            supplies: [private.supplies, shared].concat(),
            control: Some(options.heuristic()),
            ..private
        }
    }

    fn advice(options: &DynamicOptions, around: &Around<'_>) -> Vec<String> {
        let mut notes = options.shared.advice(around);
        notes.extend(options.about_switching(around));
        notes
    }
}

impl DynamicOptions {
    fn heuristic(&self) -> Heuristic {
        Heuristic {
            step: Time::from_seconds(self.dynamic_step_ms / 1e3),
            window: self.dynamic_window,
            throughput: BitRate::from_gbps(self.dynamic_gbps),
            memory: BitRate::from_gbps(self.dynamic_memory_gib_per_s * GIBIBYTE_BITS / 1e9),
            gap_ratio: self.dynamic_gap_ratio,
            on_share: self.dynamic_on_share,
            off_share: self.dynamic_off_share,
        }
    }

    /// Rings that cannot be shared, or not for longer than a look.
    fn about_switching(&self, around: &Around<'_>) -> Option<String> {
        let (looks, part) = (self.dynamic_window as f64, self.dynamic_on_share);
        if self.dynamic_off_share == 0.0 {
            return Some(
                "dynamic_off_share = 0: rings are private again at the next look whatever it sees; the paper has 0.875 \
                 (shRing, section 5.1.5)"
                    .to_string(),
            );
        }
        // More than this part of all looks.
        let needed = (part * looks).floor() + 1.0;
        if needed > looks {
            return Some(format!(
                "dynamic_on_share = {part}: rings stay private, as never more than all looks speak for sharing; the \
                 paper has 0.5 (shRing, section 5.1.5)"
            ));
        }
        self.about_nothing_to_share(around)
            .or_else(|| self.about_gaps())
            .or_else(|| self.about_little_traffic(around))
            .or_else(|| self.about_little_memory_traffic(around))
            .or_else(|| self.about_late_looks(around, needed))
    }

    /// Shared rings that have one core each.
    fn about_nothing_to_share(&self, around: &Around<'_>) -> Option<String> {
        let said = match around.queues.each {
            _ if self.shared.sharing == 1 => "sharing = 1: shared rings have one core each; set sharing to 2 or more",
            1 => "each NIC has one queue, whose ring no other can share; use more cores",
            _ => return None,
        };
        Some(format!("dynamic shRing has nothing to share: {said}"))
    }

    /// Any difference between cores is an overload.
    fn about_gaps(&self) -> Option<String> {
        (self.dynamic_gap_ratio == 0.0).then(|| {
            "dynamic_gap_ratio = 0: rings stay private unless all cores receive equally often, to the last call, as any \
             difference counts as an overload; the paper has 32 (shRing, section 5.1.6)"
                .to_string()
        })
    }

    /// NICs that never receive as much as it takes to share.
    fn about_little_traffic(&self, around: &Around<'_>) -> Option<String> {
        let (most, whose, remedy) = match around.received {
            Received::Offered(rate) => (rate, "are offered", "offer more"),
            Received::Wires(rate) => (rate, "fit the wires of the NICs in use", "use more NICs"),
        };
        let (most, needed) = (most.as_bits_per_second() as f64 / 1e9, self.dynamic_gbps);
        (most <= needed).then(|| {
            format!(
                "rings stay private: at most {most:.1} Gbit/s {whose}, and sharing needs more than dynamic_gbps = \
                 {needed}; {remedy}, or set dynamic_gbps to less"
            )
        })
    }

    /// NICs that never read and write as much memory as it takes to share.
    fn about_little_memory_traffic(&self, around: &Around<'_>) -> Option<String> {
        // A core that plays a NIC has no link.
        if around.played {
            return None;
        }
        let needed = self.dynamic_memory_gib_per_s;
        let most = 2.0 * around.queues.nics as f64 * around.link.as_bits_per_second() as f64 / GIBIBYTE_BITS;
        (most <= needed).then(|| {
            format!(
                "rings stay private: at most {most:.1} GiB/s fit the PCIe links of the NICs in use, both ways together, \
                 and sharing needs more than dynamic_memory_gib_per_s = {needed}; set it to less (the paper has 25; \
                 shRing, section 5.1.6)"
            )
        })
    }

    /// A run that ends before the control core has looked `needed` times.
    fn about_late_looks(&self, around: &Around<'_>, needed: f64) -> Option<String> {
        let (first, ends) = (needed * self.dynamic_step_ms, around.ends_ms);
        // Down, so that the run has not ended with it either.
        let most = (ends / needed * 1000.0).floor() / 1000.0;
        let step = DynamicOptions::keys().into_iter().find(|key| key.name == "dynamic_step_ms").and_then(Key::range);
        let remedy = match step {
            Some((least, _)) if most < least => String::new(),
            _ => format!(", or set dynamic_step_ms to at most {most}"),
        };
        // Sums of binary fractions, to the nanosecond.
        let said = (first * 1e6).round() / 1e6;
        (first > ends).then(|| {
            format!(
                "rings stay private: the control core can share them after {needed} looks at the earliest, {said} ms, \
                 when the run has ended ({ends} ms); let the run last longer{remedy}"
            )
        })
    }
}
