//! Rules: a file of lines such as `tcp any -> 80 "GET /|2e 2e|/"`, or made-up ones.

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

use nicforge_wire::headers::ip_protocol;

/// Rules of a group of one direction are about this port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ports {
    /// Any.
    Any,
    /// Packets from it.
    From(u16),
    /// Packets to it.
    To(u16),
}

/// A pattern in the payload of packets of a protocol, and of ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// IP's number.
    pub protocol: u8,
    /// Which ports.
    pub ports: Ports,
    /// What is looked for.
    pub pattern: Vec<u8>,
}

/// A line that is no rule.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "line {line}: {what}; a rule is `tcp|udp SOURCE -> DESTINATION \"PATTERN\"`, a port a number or any, not both numbers"
)]
pub struct RuleError {
    /// Which, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: &'static str,
}

/// Reads a file's rules; empty lines and those that begin with `#` are none.
pub fn parse(text: &str) -> Result<Vec<Rule>, RuleError> {
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
    let rules = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    rules.map(|(line, text)| rule(text).map_err(|what| RuleError { line, what })).collect()
}

fn rule(line: &str) -> Result<Rule, &'static str> {
    let (head, pattern) = line.split_once('"').ok_or("no pattern")?;
    let pattern = pattern.strip_suffix('"').ok_or("the pattern does not end the line")?;
    let words: Vec<&str> = head.split_whitespace().collect();
    let [protocol, source, "->", destination] = words[..] else { return Err("not protocol, port, ->, port") };
    let protocol = match protocol {
        "tcp" => ip_protocol::TCP,
        "udp" => ip_protocol::UDP,
        _ => return Err("an unknown protocol"),
    };
    let port = |word: &str| match word {
        "any" => Ok(None),
        number => number.parse().map(Some).map_err(|_| "no port"),
    };
    let ports = match (port(source)?, port(destination)?) {
        (None, None) => Ports::Any,
        (Some(from), None) => Ports::From(from),
        (None, Some(to)) => Ports::To(to),
        (Some(_), Some(_)) => return Err("two ports"),
    };
    Ok(Rule { protocol, ports, pattern: bytes_of(pattern)? })
}

/// Text with bytes as hexadecimal numbers between bars.
fn bytes_of(text: &str) -> Result<Vec<u8>, &'static str> {
    let mut bytes = Vec::new();
    for (number, part) in text.split('|').enumerate() {
        if number % 2 == 0 {
            bytes.extend_from_slice(part.as_bytes());
            continue;
        }
        for word in part.split_whitespace() {
            bytes.push(u8::from_str_radix(word, 16).map_err(|_| "no hexadecimal byte between bars")?);
        }
    }
    if text.matches('|').count() % 2 == 1 {
        return Err("a bar without its other one");
    }
    if bytes.is_empty() { Err("an empty pattern") } else { Ok(bytes) }
}

/// The services that made-up rules are about: ports that no flow has by chance.
pub fn made_port(service: u32) -> u16 {
    1 + service as u16
}

/// Rules of `services` services, `each` for packets to it; for every other one as many for packets from it; and a few for any packet.
pub fn made(seed: u64, services: u32, each: u32) -> Vec<Rule> {
    let mut random = Pcg64::seed_from_u64(seed);
    let mut rules = Vec::new();
    let mut add = |ports, count: u32| {
        for _ in 0..count {
            let length = 8 + random.next_u32() % 9;
            let pattern = (0..length).map(|_| letter(random.next_u32())).collect();
            rules.push(Rule { protocol: ip_protocol::TCP, ports, pattern });
        }
    };
    for service in 0..services {
        add(Ports::To(made_port(service)), each);
        if service % 2 == 0 {
            add(Ports::From(made_port(service)), each);
        }
    }
    add(Ports::Any, each.div_ceil(4));
    rules
}

/// Text of made-up rules and payload is of 32 letters.
pub fn letter(random: u32) -> u8 {
    b"etaoinshrdlucmfwypvbgkjqxz/.=&%?"[random as usize % 32]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_line_by_line_and_errors_name_theirs() {
        let text = "# ours\n\ntcp any -> 80 \"GET /|2e 2e|/\"\nudp 53 -> any \"x\"\n";
        let rules = parse(text).unwrap();
        assert_eq!((rules[0].ports, &rules[0].pattern[..]), (Ports::To(80), &b"GET /../"[..]));
        assert_eq!((rules[1].protocol, rules[1].ports), (17, Ports::From(53)));
        for (wrong, line) in [
            ("tcp any -> 80", 1),
            ("\ntcp any 80 \"x\"", 2),
            ("tcp 1 -> 2 \"x\"", 1),
            ("tcp any -> 70000 \"x\"", 1),
            ("icmp any -> any \"x\"", 1),
            ("tcp any -> any \"\"", 1),
            ("tcp any -> any \"|1\"", 1),
            ("tcp any -> any \"|xy|\"", 1),
        ] {
            assert_eq!(parse(wrong).unwrap_err().line, line, "{wrong}");
        }
    }
}
