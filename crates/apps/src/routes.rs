//! Routes: out of a file, or generated.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use crate::tables::{Prefix, Random};

/// Packets to addresses that begin with `address/length` leave through `port`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The prefix; bits beyond `length` are zero.
    pub address: IpAddr,
    /// How many bits of the address count.
    pub length: u8,
    /// Number of the port.
    pub port: u8,
}

/// What is wrong with a file of routes.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// The file cannot be read.
    #[error("{file}: cannot be read: {source}")]
    Unreadable {
        /// Its path.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// There is no route in it.
    #[error("{file}: has no route; a route looks like `10.1.0.0/16 0` or `2001:db8::/32 1`")]
    Empty {
        /// Its path.
        file: String,
    },
    /// A line is not a route.
    #[error("{file}:{line}: {what}; a route looks like `10.1.0.0/16 0` or `2001:db8::/32 1`")]
    Line {
        /// Path of the file.
        file: String,
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
}

impl Route {
    pub(crate) fn prefix(&self) -> Prefix {
        let bits = match self.address {
            IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
            IpAddr::V6(address) => address.to_bits(),
        };
        Prefix::new(bits, self.length)
    }
}

/// Reads routes from a file: see [`parse_routes`].
pub fn read_routes(path: &Path, ports: u8) -> Result<Vec<Route>, RouteError> {
    let file = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => parse_routes(&file, &text, ports),
        Err(source) => Err(RouteError::Unreadable { file, source }),
    }
}

/// Reads lines of `prefix/length port`; `#` begins a comment. `file` is for error messages.
/// A prefix may stand only once and have no bits beyond its length; a port is one of `ports`.
pub fn parse_routes(file: &str, text: &str, ports: u8) -> Result<Vec<Route>, RouteError> {
    let mut routes = Vec::new();
    let mut seen = BTreeSet::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let error = |what| RouteError::Line { file: file.to_owned(), line: index + 1, what };
        let route = parse_route(line).map_err(error)?;
        if route.port >= ports {
            let last = ports.saturating_sub(1);
            return Err(error(format!("there is no port {}, only 0 to {last}", route.port)));
        }
        if !seen.insert((route.address, route.length)) {
            let what = format!("{}/{} stands twice", route.address, route.length);
            return Err(error(what));
        }
        routes.push(route);
    }
    if routes.is_empty() { Err(RouteError::Empty { file: file.to_owned() }) } else { Ok(routes) }
}

fn parse_route(line: &str) -> Result<Route, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [prefix, port] = words[..] else {
        return Err(format!("two words expected, {} found", words.len()));
    };
    let (address, length) = prefix.split_once('/').ok_or_else(|| format!("`{prefix}` has no length"))?;
    let address: IpAddr = address.parse().map_err(|_| format!("`{address}` is not an address"))?;
    let most = if address.is_ipv4() { 32 } else { 128 };
    let length: u8 = match length.parse() {
        Ok(length) if length <= most => length,
        _ => {
            return Err(format!("length `{length}` is not a number from 0 to {most}"));
        }
    };
    let port = port.parse().map_err(|_| format!("port `{port}` is not a number from 0 to 255"))?;
    let route = Route { address, length, port };
    let whole = Route { length: 128, ..route };
    if whole.prefix().bits != route.prefix().bits {
        return Err(format!("{address} has bits beyond the length {length}"));
    }
    Ok(route)
}

// Shape of the global tables: prefix lengths with their share in per mille, roughly as
// public BGP tables have them (half and more are the longest that are commonly accepted).
const LENGTHS_V4: [(u8, u64); 13] = [
    (24, 590),
    (23, 95),
    (22, 110),
    (21, 50),
    (20, 45),
    (19, 27),
    (18, 15),
    (17, 9),
    (16, 14),
    (15, 3),
    (14, 2),
    (32, 20),
    (28, 20),
];
const LENGTHS_V6: [(u8, u64); 8] =
    [(48, 480), (32, 150), (44, 110), (40, 100), (36, 60), (29, 40), (64, 40), (128, 20)];

/// `v4` IPv4 and `v6` IPv6 routes to `ports` ports, each kind with a default route when it has
/// any; the same seed gives the same routes.
pub fn generate_routes(seed: u64, v4: usize, v6: usize, ports: u8) -> Vec<Route> {
    let mut random = Random::new(seed);
    let ports = ports.max(1);
    let mut routes = Vec::with_capacity(v4 + v6);
    let kinds = [(v4, false), (v6, true)];
    for (count, is_v6) in kinds {
        let mut seen = BTreeSet::new();
        while seen.len() < count {
            let route = if seen.is_empty() { route(is_v6, 0, 0) } else { draw(&mut random, is_v6) };
            if seen.insert((route.address, route.length)) {
                let port = random.below(u64::from(ports)) as u8;
                routes.push(Route { port, ..route });
            }
        }
    }
    routes
}

fn draw(random: &mut Random, is_v6: bool) -> Route {
    let lengths: &[(u8, u64)] = if is_v6 { &LENGTHS_V6 } else { &LENGTHS_V4 };
    let total: u64 = lengths.iter().map(|(_, share)| share).sum();
    let mut left = random.below(total);
    let mut length = lengths[0].0;
    for &(candidate, share) in lengths {
        length = candidate;
        if left < share {
            break;
        }
        left -= share;
    }
    let random_bits = u128::from(random.next_u64()) << 64 | u128::from(random.next_u64());
    let bits = if is_v6 {
        // Global unicast is 2000::/3 (RFC 4291, section 2.4).
        1 << 125 | random_bits >> 3
    } else {
        // Unicast: first byte 1 to 223 (RFC 5771: multicast begins at 224).
        u128::from(1 + random.below(223)) << 120 | random_bits >> 8
    };
    route(is_v6, bits, length)
}

fn route(is_v6: bool, bits: u128, length: u8) -> Route {
    let bits = Prefix::new(bits, length).bits;
    let address = if is_v6 {
        IpAddr::V6(Ipv6Addr::from_bits(bits))
    } else {
        IpAddr::V4(Ipv4Addr::from_bits((bits >> 96) as u32))
    };
    Route { address, length, port: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_gives_its_routes() {
        let text = "# two\n10.1.0.0/16 3\n\n2001:db8::/32 4 # v6\n0.0.0.0/0 0\n";
        let routes = parse_routes("r", text, 5).unwrap();
        assert_eq!(routes.len(), 3);
        assert_eq!((routes[0].length, routes[0].port), (16, 3));
        assert_eq!(routes[1].address, "2001:db8::".parse::<IpAddr>().unwrap());
    }

    #[test]
    fn errors_say_where_and_what() {
        for (text, what) in [
            ("10.0.0.0/8 1\n10.0.0.0 1", "r:2: `10.0.0.0` has no length"),
            ("10.0.0.0/33 1", "r:1: length `33` is not a number from 0 to 32"),
            ("10.0.0.1/8 1", "r:1: 10.0.0.1 has bits beyond the length 8"),
            ("x/8 1", "r:1: `x` is not an address"),
            ("::/0 256", "r:1: port `256`"),
            ("::/0", "r:1: two words expected, 1 found"),
            ("::/0 1\n::/0 0", "r:2: ::/0 stands twice"),
            ("::/0 1\n10.0.0.0/8 7", "r:2: there is no port 7, only 0 to 1"),
            ("\n# nothing\n", "r: has no route"),
        ] {
            let error = parse_routes("r", text, 2).unwrap_err().to_string();
            assert!(error.starts_with(what), "{error}");
        }
        let error = read_routes(Path::new("no/such/file"), 2).unwrap_err();
        assert!(error.to_string().starts_with("no/such/file: cannot be read"));
    }

    #[test]
    fn generated_routes_are_as_many_as_asked_and_repeatable() {
        let routes = generate_routes(7, 16_000, 1_000, 2);
        assert_eq!(routes, generate_routes(7, 16_000, 1_000, 2));
        let v4 = routes.iter().filter(|route| route.address.is_ipv4()).count();
        assert_eq!((v4, routes.len()), (16_000, 17_000));
        let long = routes.iter().filter(|route| route.length == 24).count();
        assert!((9_000..10_000).contains(&long), "{long}");
        assert_eq!(routes.iter().filter(|route| route.length == 0).count(), 2);
        // Those of IPv4 do not depend on how many of IPv6 there are.
        assert_eq!(routes[..v4], generate_routes(7, 16_000, 0, 2));
        let defaults = generate_routes(7, 16_000, 1, 2);
        assert_eq!((defaults.len(), defaults[v4].length), (16_001, 0));
        assert!(defaults[v4].address.is_ipv6());
    }
}
