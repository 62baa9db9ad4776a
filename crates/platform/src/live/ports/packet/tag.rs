//! VLAN tags, which the kernel keeps apart from frames on their way in.

use nicforge_wire::headers::{VLAN_TAG_LEN, ethertype};

// From linux/if_packet.h, where the libc crate has not all of them.
const TP_STATUS_VLAN_VALID: u32 = 1 << 4;
const TP_STATUS_VLAN_TPID_VALID: u32 = 1 << 6;

/// What the kernel says about a frame beside it (struct tpacket_auxdata).
#[repr(C)]
#[derive(Clone, Copy)]
struct Beside {
    status: u32,
    len: u32,
    snaplen: u32,
    mac: u16,
    net: u16,
    vlan_tci: u16,
    vlan_tpid: u16,
}

/// The tag that the kernel took out of a frame, as it stood there.
pub(super) fn tag_of(header: &libc::msghdr) -> Option<[u8; VLAN_TAG_LEN]> {
    // SAFETY: the kernel filled the control buffer and its length in, and `header` still points
    // to it; the macros' results are only used if they are not null and say that they are long
    // enough.
    let beside = unsafe {
        let first = libc::CMSG_FIRSTHDR(header);
        if first.is_null()
            || (*first).cmsg_level != libc::SOL_PACKET
            || (*first).cmsg_type != libc::PACKET_AUXDATA
            || ((*first).cmsg_len as usize) < size_of::<libc::cmsghdr>() + size_of::<Beside>()
        {
            return None;
        }
        libc::CMSG_DATA(first).cast::<Beside>().read_unaligned()
    };
    if beside.status & TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let known = beside.status & TP_STATUS_VLAN_TPID_VALID != 0;
    let kind = if known { beside.vlan_tpid } else { ethertype::VLAN };
    let ([a, b], [c, d]) = (kind.to_be_bytes(), beside.vlan_tci.to_be_bytes());
    Some([a, b, c, d])
}

/// Puts a tag behind the addresses of `frame`, into `tagged`.
pub(super) fn put_tag_in(tagged: &mut Vec<u8>, frame: &[u8], tag: [u8; VLAN_TAG_LEN]) {
    const ADDRESSES: usize = 12;
    let (addresses, rest) = frame.split_at(frame.len().min(ADDRESSES));
    tagged.clear();
    tagged.extend_from_slice(addresses);
    tagged.extend_from_slice(&tag);
    tagged.extend_from_slice(rest);
}
