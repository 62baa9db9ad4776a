//! VLAN tag (IEEE 802.1Q clause 9): control information and the type of what follows.
//! The tag protocol identifier before it is the type field of the header that came earlier.

use super::{WireError, be16, put16, require};

/// Length of a tag after its protocol identifier, with the next type, in bytes.
pub const VLAN_TAG_LEN: usize = 4;

const CONTROL: usize = 0;
const ETHERTYPE: usize = 2;

/// A view over a VLAN tag, from its control information on.
#[derive(Clone, Copy, Debug)]
pub struct VlanView<B> {
    bytes: B,
}

impl<B: AsRef<[u8]>> VlanView<B> {
    /// Views `bytes`, which begin with the tag control information.
    pub fn new(bytes: B) -> Result<Self, WireError> {
        require("VLAN", bytes.as_ref(), VLAN_TAG_LEN)?;
        Ok(VlanView { bytes })
    }

    /// VLAN identifier, 12 bits.
    pub fn vlan_id(&self) -> u16 {
        be16(self.bytes.as_ref(), CONTROL) & 0x0fff
    }

    /// Priority code point, 0 to 7.
    pub fn priority(&self) -> u8 {
        self.bytes.as_ref()[CONTROL] >> 5
    }

    /// Drop eligible indicator.
    pub fn drop_eligible(&self) -> bool {
        self.bytes.as_ref()[CONTROL] & 0x10 != 0
    }

    /// Type of what follows.
    pub fn ethertype(&self) -> u16 {
        be16(self.bytes.as_ref(), ETHERTYPE)
    }

    /// What follows the tag.
    pub fn payload(&self) -> &[u8] {
        &self.bytes.as_ref()[VLAN_TAG_LEN..]
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> VlanView<B> {
    /// Sets priority (low 3 bits), drop eligibility and identifier (low 12 bits).
    pub fn set_control(&mut self, priority: u8, drop_eligible: bool, vlan_id: u16) {
        let control = u16::from(priority & 7) << 13 | u16::from(drop_eligible) << 12 | (vlan_id & 0x0fff);
        put16(self.bytes.as_mut(), CONTROL, control);
    }

    /// Sets the type of what follows.
    pub fn set_ethertype(&mut self, ethertype: u16) {
        put16(self.bytes.as_mut(), ETHERTYPE, ethertype);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_bits_are_where_802_1q_has_them() {
        let mut view = VlanView::new([0u8; 4]).unwrap();
        view.set_control(5, true, 0xabc);
        view.set_ethertype(0x0800);
        assert_eq!(view.bytes, [0xba, 0xbc, 0x08, 0x00]);
        assert_eq!((view.priority(), view.vlan_id()), (5, 0xabc));
        assert!(view.drop_eligible());
        assert!(VlanView::new([0u8; 3]).is_err());
    }
}
