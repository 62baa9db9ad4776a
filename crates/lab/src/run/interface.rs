//! What settings say of an interface.

use nicforge_interfaces::sh_ring_dynamic::Heuristic;

use crate::settings::Settings;

/// What a control core decides by, where the interface has one.
pub fn heuristic(settings: &Settings) -> Option<Heuristic> {
    settings.shape()?.control
}

/// Frames that the receive rings of all NICs hold together; more where a NIC has others beside them.
pub fn ring_frames(settings: &Settings) -> usize {
    settings.nics() * settings.shape().map_or(0, |shape| shape.frames)
}
