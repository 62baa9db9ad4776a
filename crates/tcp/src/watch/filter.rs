//! A small language that says which frames an observer wants.
//!
//! ```text
//! filter := all of these, joined by `and` (or nothing), `or`, `not`, and parentheses:
//!   [src|dst] host ADDRESS     [src|dst] net ADDRESS/LENGTH     [src|dst] port NUMBER
//!   tcp  udp  icmp  arp  ip  ip6        syn  fin  rst  psh  ack  urg  ece  cwr     data
//! ```

use std::net::IpAddr;

use nicforge_wire::headers::{ethertype, ip_protocol};
use thiserror::Error;

use super::frame::Seen;
use crate::segment::Flags;

/// Which end of a packet is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where it comes from.
    Source,
    /// Where it goes.
    Destination,
    /// One of both.
    Either,
}

/// Which frames are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// All.
    All,
    /// What another does not want.
    Not(Box<Filter>),
    /// What both want.
    And(Box<Filter>, Box<Filter>),
    /// What one of both wants.
    Or(Box<Filter>, Box<Filter>),
    /// An address of this prefix.
    Net(End, IpAddr, u8),
    /// This port.
    Port(End, u16),
    /// One of these protocols above IP.
    Protocol(&'static [u8]),
    /// This type of Ethernet payload.
    Type(u16),
    /// A TCP segment with this flag.
    Flag(Flags),
    /// A TCP segment with payload.
    Data,
}

/// A filter that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("filter: {wrong} at word {word}; {remedy}")]
pub struct FilterError {
    /// Number of the word, from 1.
    pub word: usize,
    /// What is wrong.
    pub wrong: String,
    /// What helps.
    pub remedy: &'static str,
}

/// Parentheses within each other, at most.
const DEPTH: usize = 32;
const WORDS: &str = "use host, net, port (after src or dst or alone), tcp, udp, icmp, arp, ip, ip6, syn, fin, rst, psh, ack, urg, ece, \
     cwr, data, and, or, not, ( )";

impl Filter {
    /// Reads a filter; nothing wants everything.
    pub fn parse(text: &str) -> Result<Filter, FilterError> {
        let spaced = text.replace('(', " ( ").replace(')', " ) ");
        let words: Vec<&str> = spaced.split_whitespace().collect();
        if words.is_empty() {
            return Ok(Filter::All);
        }
        let mut reader = Reader { words, at: 0 };
        let filter = reader.any(0)?;
        match reader.peek() {
            None => Ok(filter),
            Some(word) => Err(reader.wrong(format!("`{word}` does not belong here"), "close what was opened, only")),
        }
    }

    /// What it asks of a frame at most: its questions, each counted.
    pub fn questions(&self) -> u64 {
        match self {
            Filter::All => 0,
            Filter::Not(filter) => filter.questions(),
            Filter::And(a, b) | Filter::Or(a, b) => a.questions() + b.questions(),
            _ => 1,
        }
    }

    /// Whether a frame is wanted.
    pub fn matches(&self, seen: &Seen<'_>) -> bool {
        match self {
            Filter::All => true,
            Filter::Not(filter) => !filter.matches(seen),
            Filter::And(a, b) => a.matches(seen) && b.matches(seen),
            Filter::Or(a, b) => a.matches(seen) || b.matches(seen),
            Filter::Net(end, net, len) => {
                seen.addresses.is_some_and(|(from, to)| end.is_one(holds(*net, *len, from), holds(*net, *len, to)))
            }
            Filter::Port(end, port) => seen.ports.is_some_and(|(from, to)| end.is_one(from == *port, to == *port)),
            Filter::Protocol(numbers) => seen.protocol.is_some_and(|number| numbers.contains(&number)),
            Filter::Type(number) => seen.ethertype == *number,
            Filter::Flag(flag) => seen.tcp.is_some_and(|header| header.flags.has(*flag)),
            Filter::Data => seen.tcp.is_some_and(|header| header.payload_len > 0),
        }
    }
}

impl End {
    fn is_one(self, source: bool, destination: bool) -> bool {
        match self {
            End::Source => source,
            End::Destination => destination,
            End::Either => source || destination,
        }
    }
}

fn holds(net: IpAddr, len: u8, address: IpAddr) -> bool {
    let differ = match (net, address) {
        (IpAddr::V4(net), IpAddr::V4(address)) => u128::from(u32::from(net) ^ u32::from(address)) << 96,
        (IpAddr::V6(net), IpAddr::V6(address)) => u128::from(net) ^ u128::from(address),
        _ => return false,
    };
    differ.checked_shr(128 - u32::from(len)).unwrap_or(0) == 0
}

fn prefix(text: &str) -> Option<(IpAddr, u8)> {
    let (address, len) = text.split_once('/')?;
    let (address, len): (IpAddr, u8) = (address.parse().ok()?, len.parse().ok()?);
    (len <= if address.is_ipv4() { 32 } else { 128 }).then_some((address, len))
}

struct Reader<'a> {
    words: Vec<&'a str>,
    at: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).copied()
    }

    fn next(&mut self, wanted: &'static str) -> Result<&'a str, FilterError> {
        let word = self.peek().ok_or_else(|| self.wrong("it ends".into(), wanted))?;
        self.at += 1;
        Ok(word)
    }

    fn wrong(&self, wrong: String, remedy: &'static str) -> FilterError {
        FilterError { word: self.at + 1, wrong, remedy }
    }

    /// The word taken last is no good.
    fn bad(&self, word: &str, remedy: &'static str) -> FilterError {
        FilterError { word: self.at, wrong: format!("`{word}`"), remedy }
    }

    fn any(&mut self, depth: usize) -> Result<Filter, FilterError> {
        let mut filter = self.all(depth)?;
        while self.peek() == Some("or") {
            self.at += 1;
            filter = Filter::Or(Box::new(filter), Box::new(self.all(depth)?));
        }
        Ok(filter)
    }

    fn all(&mut self, depth: usize) -> Result<Filter, FilterError> {
        let mut filter = self.one(depth)?;
        while let Some(word) = self.peek().filter(|word| !matches!(*word, "or" | ")")) {
            if word == "and" {
                self.at += 1;
            }
            filter = Filter::And(Box::new(filter), Box::new(self.one(depth)?));
        }
        Ok(filter)
    }

    fn one(&mut self, depth: usize) -> Result<Filter, FilterError> {
        if depth > DEPTH {
            return Err(self.wrong("it is nested too deep".into(), "write it with fewer parentheses"));
        }
        let word = self.next(WORDS)?;
        let flag = |flag| Ok(Filter::Flag(flag));
        match word {
            "not" => Ok(Filter::Not(Box::new(self.one(depth + 1)?))),
            "(" => {
                let filter = self.any(depth + 1)?;
                let end = self.next("close with )")?;
                if end == ")" { Ok(filter) } else { Err(self.bad(end, "close with )")) }
            }
            "src" => self.ended(End::Source),
            "dst" => self.ended(End::Destination),
            "host" | "net" | "port" => {
                self.at -= 1;
                self.ended(End::Either)
            }
            "tcp" => Ok(Filter::Protocol(&[ip_protocol::TCP])),
            "udp" => Ok(Filter::Protocol(&[ip_protocol::UDP])),
            "icmp" => Ok(Filter::Protocol(&[ip_protocol::ICMP, ip_protocol::ICMPV6])),
            "arp" => Ok(Filter::Type(ethertype::ARP)),
            "ip" => Ok(Filter::Type(ethertype::IPV4)),
            "ip6" => Ok(Filter::Type(ethertype::IPV6)),
            "syn" => flag(Flags::SYN),
            "fin" => flag(Flags::FIN),
            "rst" => flag(Flags::RST),
            "psh" => flag(Flags::PSH),
            "ack" => flag(Flags::ACK),
            "urg" => flag(Flags::URG),
            "ece" => flag(Flags::ECE),
            "cwr" => flag(Flags::CWR),
            "data" => Ok(Filter::Data),
            other => Err(self.bad(other, WORDS)),
        }
    }

    fn ended(&mut self, end: End) -> Result<Filter, FilterError> {
        let word = self.next("say host, net or port")?;
        match word {
            "host" => {
                let text = self.next("say which address")?;
                let address: IpAddr = text.parse().map_err(|_| self.bad(text, "write an address, such as 10.0.0.1"))?;
                Ok(Filter::Net(end, address, if address.is_ipv4() { 32 } else { 128 }))
            }
            "net" => {
                const NET: &str = "write a prefix, such as 10.0.0.0/8";
                let text = self.next(NET)?;
                let (address, len) = prefix(text).ok_or_else(|| self.bad(text, NET))?;
                Ok(Filter::Net(end, address, len))
            }
            "port" => {
                let text = self.next("say which port")?;
                let port = text.parse().map_err(|_| self.bad(text, "write a number from 0 to 65535"))?;
                Ok(Filter::Port(end, port))
            }
            other => Err(self.bad(other, "say host, net or port")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A segment from 10.0.0.1:80 to 10.0.0.2:4000 with SYN and ACK.
    fn segment() -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        frame.extend([0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0, 80, 0x0f, 0xa0, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x12, 16, 0, 0, 0, 0, 0]);
        frame
    }

    #[test]
    fn filters_want_what_they_say() {
        let frame = segment();
        let seen = Seen::parse(&frame);
        let wants = [
            ("", true),
            ("tcp", true),
            ("udp or arp", false),
            ("host 10.0.0.2 and port 80", true),
            ("src port 4000", false),
            ("dst port 4000 syn ack", true),
            ("net 10.0.0.0/8 and not (rst or fin)", true),
            ("src net 11.0.0.0/8", false),
            ("ip6", false),
            ("data", false),
            ("host fd00::1", false),
            ("not data and (port 1 or port 80)", true),
        ];
        for (text, wanted) in wants {
            assert_eq!(Filter::parse(text).unwrap().matches(&seen), wanted, "{text}");
        }
        let line = "IP 10.0.0.1.80 > 10.0.0.2.4000: Flags [S.], seq 1:2, ack 2, win 4096, length 0";
        assert_eq!(seen.line(), line);
    }

    #[test]
    fn wrong_filters_name_the_word() {
        for (text, word) in
            [("prot", 1), ("host", 2), ("tcp and port x", 4), ("( tcp", 3), ("tcp )", 2), ("src tcp", 2)]
        {
            assert_eq!(Filter::parse(text).unwrap_err().word, word, "{text}");
        }
        assert!(Filter::parse(&"(".repeat(10_000)).is_err());
        assert!(Filter::parse(&"not ".repeat(10_000)).is_err());
    }

    proptest! {
        #[test]
        fn no_text_and_no_frame_is_too_odd(text in "[a-z0-9./() ]{0,60}", frame in proptest::collection::vec(any::<u8>(), 0..200)) {
            let seen = Seen::parse(&frame);
            if let Ok(filter) = Filter::parse(&text) {
                filter.matches(&seen);
            }
            seen.line();
        }
    }
}
