//! What answers a core's register reads in virtual time.

use nicforge_units::Time;

use super::{Host, Lent};
use crate::Register;

/// A register write on its way to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MmioWrite {
    /// When the device sees it.
    pub arrives: Time,
    /// Which register.
    pub register: Register,
    /// What is written.
    pub value: u64,
}

/// The devices that the cores of one host reach.
///
/// A core's step runs to its end before anybody else's, so a device is asked at times that are
/// ahead of the engine's. It then brings itself up to that time with what it knows; what others
/// send it meanwhile counts from the time that it has reached.
pub trait Devices {
    /// A core's register write is on its way. Writes of one core come in its program's order.
    fn write(&mut self, host: &mut Lent<Host>, write: &MmioWrite);

    /// A core's register read arrives at `at`. Returns the value, and when the device gives it:
    /// later than `at` for a register that blocks.
    fn read(&mut self, host: &mut Lent<Host>, register: Register, at: Time) -> (u64, Time);
}
