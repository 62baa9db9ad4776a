//! The layer-5 protocols that the NIC knows: one line each.

use crate::protocol::{Protocol, ProtocolId, Unfit};
use crate::{iscsi, nvme, tls, toy};

/// One entry per protocol; its place is its number.
pub static PROTOCOLS: [&dyn Protocol; 4] = [&toy::Toy, &tls::Tls, &nvme::NvmeTcp, &iscsi::Iscsi];

/// A protocol that the registry cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("protocol `{name}` cannot be offloaded: {reason}")]
pub struct Refused {
    /// Its name.
    pub name: &'static str,
    /// What it lacks.
    pub reason: Unfit,
}

/// Checks that each protocol has the properties that autonomous offload needs.
///
/// # Errors
///
/// The first protocol that lacks one, and which.
pub fn check(protocols: &[&dyn Protocol]) -> Result<(), Refused> {
    for protocol in protocols {
        protocol.properties().check().map_err(|reason| Refused { name: protocol.name(), reason })?;
    }
    Ok(())
}

/// The number of the protocol of this name.
pub fn find(name: &str) -> Option<ProtocolId> {
    PROTOCOLS.iter().position(|protocol| protocol.name() == name).map(|place| ProtocolId(place as u8))
}

/// The protocol of this number.
pub fn get(id: ProtocolId) -> Option<&'static dyn Protocol> {
    PROTOCOLS.get(usize::from(id.0)).copied()
}
