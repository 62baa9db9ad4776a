//! Values of entries as people write them.

use num_bigint::BigUint;

use super::ir::words;
use super::lexer;

/// A number in any base, a MAC address, an IPv4 or IPv6 address.
pub(crate) fn number(text: &str) -> Option<BigUint> {
    let text = text.trim();
    if let Ok(number) = lexer::parse_number(&text.replace('_', "")) {
        return number.value.to_biguint();
    }
    if let Ok(address) = text.parse::<std::net::Ipv4Addr>() {
        return Some(BigUint::from(u32::from(address)));
    }
    let parts: Vec<&str> = text.split(':').collect();
    if parts.len() == 6 && parts.iter().all(|part| (1..=2).contains(&part.len())) {
        let mut value = 0u64;
        for part in parts {
            value = value << 8 | u64::from_str_radix(part, 16).ok()?;
        }
        return Some(BigUint::from(value));
    }
    text.parse::<std::net::Ipv6Addr>().ok().map(|address| BigUint::from(u128::from(address)))
}

/// The words of a value, if it fits into `width` bits.
pub(crate) fn limbs_of(value: &BigUint, width: u32) -> Option<Vec<u64>> {
    if value.bits() > u64::from(width) {
        return None;
    }
    let mut limbs: Vec<u64> = value.iter_u64_digits().collect();
    limbs.resize(words(width), 0);
    Some(limbs)
}
