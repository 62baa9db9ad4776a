//! VLAN tags, which the kernel keeps apart from frames on their way in.

use nicforge_wire::headers::VLAN_TAG_LEN;

/// Puts a tag behind the addresses of `frame`, into `tagged`.
pub(super) fn put_tag_in(tagged: &mut Vec<u8>, frame: &[u8], tag: [u8; VLAN_TAG_LEN]) {
    const ADDRESSES: usize = 12;
    let (addresses, rest) = frame.split_at(frame.len().min(ADDRESSES));
    tagged.clear();
    tagged.extend_from_slice(addresses);
    tagged.extend_from_slice(&tag);
    tagged.extend_from_slice(rest);
}
