//! The record-route option of IPv4 (RFC 791, section 3.1; RFC 1812, section 5.2.4.1): a router enters the address of the
//! interface by which a packet leaves.

use std::net::Ipv4Addr;

use nicforge_wire::checksum::checksum;
use nicforge_wire::rewrite::put16;

/// A header without options.
const PLAIN: usize = 20;
/// Kinds of options.
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const RECORD_ROUTE: u8 = 7;
/// Kind, length and pointer come before the addresses.
const FIRST_POINTER: usize = 4;

/// Enters `address` in the packet whose IP header begins at `l3` of `frame`, if that is IPv4 with the option and there is
/// room. The header's checksum was right.
#[inline(always)]
pub fn record(frame: &mut [u8], l3: usize, address: Option<Ipv4Addr>) {
    let version_and_words = frame[l3];
    if version_and_words >> 4 == 4
        && version_and_words & 0xf > 5
        && let Some(address) = address
    {
        record_in(&mut frame[l3..], usize::from(version_and_words & 0xf) * 4, address);
    }
}

#[cold]
fn record_in(packet: &mut [u8], header_len: usize, address: Ipv4Addr) {
    let Some(header) = packet.get_mut(..header_len) else { return };
    let Some(place) = free_place(header) else { return };
    header[place.option + 2] += 4;
    header[place.address..place.address + 4].copy_from_slice(&address.octets());
    put16(header, 10, 0);
    let sum = checksum(header);
    put16(header, 10, sum);
}

/// Where the option begins, and where the next address in it lies.
struct FreePlace {
    option: usize,
    address: usize,
}

fn free_place(header: &[u8]) -> Option<FreePlace> {
    let mut at = PLAIN;
    loop {
        match *header.get(at)? {
            END => return None,
            NO_OPERATION => at += 1,
            kind => {
                let len = usize::from(*header.get(at + 1)?);
                if len < 2 || at + len > header.len() {
                    return None;
                }
                if kind == RECORD_ROUTE && len > 2 {
                    let pointer = usize::from(header[at + 2]);
                    let fits = pointer >= FIRST_POINTER && pointer + 3 <= len;
                    return fits.then_some(FreePlace { option: at, address: at + pointer - 1 });
                }
                at += len;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

    /// A header with these options, padded with zeros.
    fn header(options: &[u8]) -> Vec<u8> {
        let words = 5 + options.len().div_ceil(4);
        let mut header = vec![0; words * 4];
        header[0] = 0x40 | words as u8;
        header[8] = 64;
        header[20..20 + options.len()].copy_from_slice(options);
        let sum = checksum(&header);
        put16(&mut header, 10, sum);
        header
    }

    #[test]
    fn a_router_enters_its_address_while_there_is_room() {
        let mut packet = header(&[NO_OPERATION, RECORD_ROUTE, 11, 4, 0, 0, 0, 0, 0, 0, 0, 0]);
        record(&mut packet, 0, Some(OWN));
        assert_eq!(packet[21..32], [7, 11, 8, 192, 0, 2, 1, 0, 0, 0, 0]);
        record(&mut packet, 0, Some(OWN));
        let full = packet.clone();
        assert_eq!((&packet[21..24], &packet[28..32]), (&[7, 11, 12][..], &[192, 0, 2, 1][..]));
        assert_eq!(checksum(&packet), 0);
        record(&mut packet, 0, Some(OWN));
        assert_eq!(packet, full);
    }

    #[test]
    fn other_packets_and_nonsense_stay_as_they_are() {
        for options in [
            &[][..],
            &[END, RECORD_ROUTE, 7, 4],
            &[RECORD_ROUTE, 7, 3, 0, 0, 0, 0],
            &[RECORD_ROUTE, 7, 0, 0, 0, 0, 0],
            &[RECORD_ROUTE, 2, 0, 0],
            &[RECORD_ROUTE, 40, 4, 0],
            &[RECORD_ROUTE, 0, 4, 0],
            &[68, 255, 5, 0],
            &[NO_OPERATION; 4],
            &[NO_OPERATION, NO_OPERATION, NO_OPERATION, RECORD_ROUTE],
        ] {
            let before = header(options);
            let mut packet = before.clone();
            record(&mut packet, 0, Some(OWN));
            assert_eq!(packet, before, "{options:?}");
        }
        let mut silent = header(&[RECORD_ROUTE, 7, 4, 0, 0, 0, 0]);
        let before = silent.clone();
        record(&mut silent, 0, None);
        assert_eq!(silent, before, "a port without an address");
    }
}
