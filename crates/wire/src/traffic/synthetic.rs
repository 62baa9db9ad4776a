//! Made-up traffic: complete, valid Ethernet, IPv4 and UDP frames.

use nicforge_units::{BitRate, Time};
use rand_pcg::Pcg64;

use super::arrival::{ArrivalModel, Clock};
use super::flows::{FlowChoice, FlowPicker, FlowSpace};
use super::line::Line;
use super::random::generator;
use super::shares::Shares;
use super::sizes::{SizeModel, SizePicker, check_size};
use super::template::{PAYLOAD, Template};
use super::{Arrival, TrafficError};
use crate::headers::MacAddress;

/// What made-up traffic is to look like.
#[derive(Clone, Debug)]
pub struct SyntheticConfig {
    /// Seed of all draws but the flows' tuples, which have their own in `flows`.
    pub seed: u64,
    /// The line that it comes in on.
    pub line: Line,
    /// When frames arrive.
    pub arrival: ArrivalModel,
    /// How long they are.
    pub sizes: SizeModel,
    /// The flows that there are.
    pub flows: FlowSpace,
    /// Which flow each frame belongs to.
    pub choice: FlowChoice,
    /// Shares of packets for some of the flows, or for each queue.
    pub shares: Option<Shares>,
    /// Source address of all frames.
    pub source: MacAddress,
    /// Destination address of all frames.
    pub destination: MacAddress,
    /// Zeros for the payload behind the sequence number, which cost a simulation least.
    pub zero_payload: bool,
}

/// A source of made-up traffic. One template per size is patched in place, so that a frame costs
/// the same whatever its length.
#[derive(Clone, Debug)]
pub struct Synthetic {
    clock: Clock,
    sizes: SizePicker,
    size_random: Pcg64,
    flows: FlowSpace,
    picker: FlowPicker,
    /// By index of the size; last the target's own, when it has one.
    templates: Vec<Template>,
    target_template: Option<usize>,
    zero_payload: bool,
    sequence: u64,
}

impl Synthetic {
    /// A source, or what is wrong with its configuration.
    pub fn new(config: SyntheticConfig) -> Result<Synthetic, TrafficError> {
        let sizes = SizePicker::new(&config.sizes)?;
        let mut all_sizes = sizes.sizes().to_vec();
        let target_bytes = match &config.shares {
            Some(Shares::Target(target)) => target.frame_bytes,
            _ => None,
        };
        let mut target_template = None;
        if let Some(bytes) = target_bytes {
            check_size(bytes)?;
            target_template = Some(all_sizes.len());
            all_sizes.push(bytes);
        }
        let template = |bytes: u32| {
            Template::new(bytes, config.zero_payload, config.source, config.destination)
                .map_err(|_| TrafficError::FrameSize(bytes))
        };
        let templates = all_sizes.into_iter().map(template).collect::<Result<_, _>>()?;
        Ok(Synthetic {
            clock: Clock::new(config.arrival, config.line, generator(config.seed, 0))?,
            sizes,
            size_random: generator(config.seed, 1),
            flows: config.flows,
            picker: FlowPicker::new(&config.flows, config.choice, config.shares, generator(config.seed, 2))?,
            templates,
            target_template,
            zero_payload: config.zero_payload,
            sequence: 0,
        })
    }

    /// The flows that there are.
    pub fn flows(&self) -> &FlowSpace {
        &self.flows
    }

    pub(super) fn next_time(&self) -> Time {
        self.clock.next_time()
    }

    #[inline(always)]
    pub(super) fn next(&mut self) -> Option<Arrival<'_>> {
        let time = self.clock.next_time();
        if time == Time::NEVER {
            return None;
        }
        let picked = self.picker.draw(time);
        let index = match self.target_template {
            Some(index) if picked.is_target => index,
            _ => self.sizes.draw(&mut self.size_random),
        };
        let template = &mut self.templates[index];
        self.clock.send(template.len());
        let bytes = template.patch(&self.flows.tuple(picked.flow), &[(0, self.sequence)]);
        self.sequence += 1;
        let head = if self.zero_payload { bytes.len().min(PAYLOAD + 8) } else { bytes.len() };
        Some(Arrival { time, bytes, head, flow: Some(picked.flow) })
    }

    pub(super) fn begin_again(&mut self, from: Time, rate: BitRate) {
        self.clock.begin_again(from, rate);
    }

    pub(super) fn returned(&mut self, sent: Time, at: Time) -> bool {
        self.clock.returned(sent, at)
    }

    pub(super) fn given_up(&self) -> Option<u64> {
        self.clock.given_up()
    }
}
