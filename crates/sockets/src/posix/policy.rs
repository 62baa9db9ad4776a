//! Which addresses stay with the kernel.

use std::net::IpAddr;
use std::sync::OnceLock;

/// Environment variable: prefixes, separated by commas, that the kernel serves (`127.0.0.0/8,::1/128`).
pub const KERNEL_VARIABLE: &str = "NICFORGE_SOCKETS_KERNEL";

/// A prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    bits: u128,
    len: u32,
    v4: bool,
}

fn bits(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(v4) => u128::from(u32::from(v4)) << 96,
        IpAddr::V6(v6) => u128::from(v6),
    }
}

fn parse(text: &str) -> Option<Prefix> {
    let (ip, len) = text.trim().split_once('/').map_or((text.trim(), None), |(ip, len)| (ip, Some(len)));
    let ip: IpAddr = ip.parse().ok()?;
    let most = if ip.is_ipv4() { 32 } else { 128 };
    let len: u32 = len.map_or(Some(most), |len| len.parse().ok())?;
    (len <= most).then(|| Prefix { bits: bits(ip), len, v4: ip.is_ipv4() })
}

fn holds(prefix: &Prefix, ip: IpAddr) -> bool {
    let shift = 128 - prefix.len;
    prefix.v4 == ip.is_ipv4() && (prefix.bits ^ bits(ip)).checked_shr(shift).unwrap_or(0) == 0
}

/// The prefixes, as the environment had them when it was first asked.
pub fn read() -> &'static [Prefix] {
    static PREFIXES: OnceLock<Vec<Prefix>> = OnceLock::new();
    let parse_all = || {
        let text = std::env::var(KERNEL_VARIABLE).unwrap_or_default();
        text.split(',').filter_map(parse).collect()
    };
    PREFIXES.get_or_init(parse_all)
}

/// Whether sockets to or at this address are the kernel's.
pub fn kernels(ip: IpAddr) -> bool {
    read().iter().any(|prefix| holds(prefix, ip))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_hold_their_addresses_only() {
        let net = parse("10.1.0.0/16").unwrap();
        assert!(holds(&net, "10.1.255.3".parse().unwrap()));
        assert!(!holds(&net, "10.2.0.0".parse().unwrap()));
        assert!(!holds(&net, "a01::".parse().unwrap()), "families are apart");
        assert!(holds(&parse("0.0.0.0/0").unwrap(), "1.2.3.4".parse().unwrap()));
        assert!(holds(&parse("::1").unwrap(), "::1".parse().unwrap()));
        assert_eq!(parse("10.0.0.0/33"), None);
        assert_eq!(parse("nonsense"), None);
    }
}
