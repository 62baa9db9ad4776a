//! Socket options with the kernel's answers.

use nicforge_units::Time;

use super::{Errno, Family, Fd, Kind, Socket, Sockets};
use crate::congestion::Algorithm;
use crate::conn::Connection;
use crate::ring::Buffers;

/// Levels of options.
pub mod level {
    /// `SOL_SOCKET`.
    pub const SOCKET: i32 = 1;
    /// `SOL_IP`.
    pub const IP: i32 = 0;
    /// `SOL_IPV6`.
    pub const IPV6: i32 = 41;
    /// `SOL_TCP`.
    pub const TCP: i32 = 6;
}

/// Names of options, by level.
#[allow(missing_docs)]
pub mod name {
    pub const REUSEADDR: i32 = 2;
    pub const TYPE: i32 = 3;
    pub const ERROR: i32 = 4;
    pub const SNDBUF: i32 = 7;
    pub const RCVBUF: i32 = 8;
    pub const KEEPALIVE: i32 = 9;
    pub const OOBINLINE: i32 = 10;
    pub const LINGER: i32 = 13;
    pub const REUSEPORT: i32 = 15;
    pub const RCVLOWAT: i32 = 18;
    pub const RCVTIMEO: i32 = 20;
    pub const SNDTIMEO: i32 = 21;
    pub const ACCEPTCONN: i32 = 30;
    pub const PROTOCOL: i32 = 38;
    pub const DOMAIN: i32 = 39;
    pub const MEMINFO: i32 = 55;
    pub const ZEROCOPY: i32 = 60;
    pub const NODELAY: i32 = 1;
    pub const MAXSEG: i32 = 2;
    pub const CORK: i32 = 3;
    pub const KEEPIDLE: i32 = 4;
    pub const KEEPINTVL: i32 = 5;
    pub const KEEPCNT: i32 = 6;
    pub const SYNCNT: i32 = 7;
    pub const LINGER2: i32 = 8;
    pub const DEFER_ACCEPT: i32 = 9;
    pub const WINDOW_CLAMP: i32 = 10;
    pub const INFO: i32 = 11;
    pub const QUICKACK: i32 = 12;
    pub const CONGESTION: i32 = 13;
    pub const USER_TIMEOUT: i32 = 18;
    pub const NOTSENT_LOWAT: i32 = 25;
    pub const CC_INFO: i32 = 26;
    pub const IP_TOS: i32 = 1;
    pub const IP_TTL: i32 = 2;
    pub const IP_MTU_DISCOVER: i32 = 10;
    pub const IP_RECVERR: i32 = 11;
    pub const IPV6_UNICAST_HOPS: i32 = 16;
    pub const IPV6_RECVERR: i32 = 25;
    pub const IPV6_V6ONLY: i32 = 26;
    pub const IPV6_TCLASS: i32 = 67;
}

/// No timeout of a socket is longer: ninety days.
const SECONDS_MOST: i64 = 90 * 24 * 3600;

fn integer(value: &[u8]) -> Result<i32, Errno> {
    let bytes = value.first_chunk::<4>().ok_or(Errno::INVALID)?;
    Ok(i32::from_ne_bytes(*bytes))
}

fn seconds(value: i32, most: i32) -> Result<Time, Errno> {
    if value < 1 || value > most {
        return Err(Errno::INVALID);
    }
    Ok(Time::from_ms(value as u64 * 1000))
}

fn timeout(value: &[u8]) -> Result<Option<Time>, Errno> {
    let words = value.first_chunk::<16>().ok_or(Errno::INVALID)?;
    let (sec, us) = words.split_at(8);
    let word = |bytes: &[u8]| bytes.first_chunk::<8>().map_or(0, |bytes| i64::from_ne_bytes(*bytes));
    let (sec, us) = (word(sec), word(us));
    if !(0..1_000_000).contains(&us) {
        return Err(Errno::INVALID);
    }
    let total = Time::from_us(sec.clamp(0, SECONDS_MOST) as u64 * 1_000_000 + us as u64);
    Ok((total > Time::ZERO).then_some(total))
}

impl<B: Buffers> Sockets<B> {
    /// Sets an option.
    pub fn set_option(&mut self, fd: Fd, level: i32, name: i32, value: &[u8], now: Time) -> Result<(), Errno> {
        self.socket_ref(fd)?;
        match level {
            level::SOCKET => self.set_socket_option(fd, name, value, now),
            level::TCP => self.set_tcp_option(fd, name, value, now),
            level::IP | level::IPV6 => self.set_ip_option(fd, level, name, value),
            _ => Err(Errno::NO_OPTION),
        }?;
        self.pass_tuning(fd);
        Ok(())
    }

    /// A listener's children inherit what is set later, too.
    fn pass_tuning(&mut self, fd: Fd) {
        if let Ok(Socket { kind: Kind::Listening(id), tuning, .. }) = self.socket_ref(fd) {
            let (id, tuning) = (*id, tuning.clone());
            self.stack.set_listener_tuning(id, tuning);
        }
    }

    fn on_connection(&mut self, fd: Fd, change: impl FnOnce(&mut Connection)) {
        if let Ok(Some(id)) = self.connection_of(fd) {
            self.stack.with(id, change);
        }
    }

    fn set_socket_option(&mut self, fd: Fd, option: i32, value: &[u8], now: Time) -> Result<(), Errno> {
        if matches!(option, name::RCVTIMEO | name::SNDTIMEO) {
            let time = timeout(value)?;
            let socket = self.socket_mut(fd)?;
            let place = if option == name::RCVTIMEO { &mut socket.receive_timeout } else { &mut socket.send_timeout };
            *place = time;
            return Ok(());
        }
        let number = integer(value)?;
        let (receive, send) = (self.stack.config().receive, self.stack.config().send);
        let socket = self.socket_mut(fd)?;
        match option {
            name::REUSEADDR => socket.reuse_address = number != 0,
            name::REUSEPORT => socket.reuse_port = number != 0,
            name::SNDBUF => socket.tuning.send_buffer = doubled(number, send.least, send.most),
            name::RCVBUF => socket.tuning.receive_buffer = doubled(number, receive.least, receive.most),
            name::LINGER => {
                let time = integer(value.get(4..).ok_or(Errno::INVALID)?)?;
                socket.linger =
                    (number != 0).then(|| Time::from_ms(i64::from(time).clamp(0, SECONDS_MOST) as u64 * 1000));
            }
            name::RCVLOWAT => socket.tuning.receive_low_water = number.max(1) as u32,
            name::ZEROCOPY => {
                if !(0..=1).contains(&number) {
                    return Err(Errno::INVALID);
                }
                socket.zero_copy = number != 0;
            }
            name::KEEPALIVE => {
                socket.tuning.keep_alive.on = number != 0;
                self.on_connection(fd, |connection| {
                    connection.tuning.keep_alive.on = number != 0;
                    connection.start_keep_alive(now);
                });
            }
            name::TYPE | name::ERROR | name::ACCEPTCONN | name::PROTOCOL | name::DOMAIN => {
                return Err(Errno::NO_OPTION);
            }
            // Options that change nothing here: priorities, marks, broadcast, busy polling, out-of-band inline.
            name::OOBINLINE | 6 | 12 | 36 | 37 | 46 | 47 => {}
            _ => return Err(Errno::NO_OPTION),
        }
        Ok(())
    }

    fn set_tcp_option(&mut self, fd: Fd, option: i32, value: &[u8], now: Time) -> Result<(), Errno> {
        if option == name::CONGESTION {
            let text = std::str::from_utf8(value).map_err(|_| Errno::NO_ENTRY)?;
            let algorithm = Algorithm::named(text.trim_end_matches('\0')).ok_or(Errno::NO_ENTRY)?;
            self.socket_mut(fd)?.tuning.algorithm = algorithm;
            self.on_connection(fd, |connection| connection.set_algorithm(algorithm));
            return Ok(());
        }
        let number = integer(value)?;
        let tuning = &mut self.socket_mut(fd)?.tuning;
        match option {
            name::NODELAY => {
                tuning.no_delay = number != 0;
                self.on_connection(fd, |connection| connection.set_no_delay(number != 0));
            }
            name::CORK => {
                tuning.cork = number != 0;
                self.on_connection(fd, |connection| connection.set_cork(number != 0));
            }
            name::MAXSEG => {
                if number != 0 && !(88..=32767).contains(&number) {
                    return Err(Errno::INVALID);
                }
                tuning.max_segment = number as u16;
            }
            name::KEEPIDLE => tuning.keep_alive.idle = seconds(number, 32767)?,
            name::KEEPINTVL => tuning.keep_alive.interval = seconds(number, 32767)?,
            name::KEEPCNT if (1..=127).contains(&number) => tuning.keep_alive.probes = number as u8,
            name::SYNCNT if (1..=127).contains(&number) => tuning.syn_retries = number as u8,
            name::LINGER2 => {
                tuning.fin_wait = if number < 0 { Time::ZERO } else { Time::from_ms(number.min(120) as u64 * 1000) };
            }
            name::DEFER_ACCEPT => {
                tuning.defer_accept =
                    (number > 0).then(|| Time::from_ms(i64::from(number).min(SECONDS_MOST) as u64 * 1000));
            }
            name::WINDOW_CLAMP if number >= 0 => tuning.window_clamp = number as u32,
            name::QUICKACK => self.on_connection(fd, |connection| connection.set_quick_ack(number != 0)),
            name::USER_TIMEOUT if number >= 0 => {
                tuning.user_timeout = (number > 0).then(|| Time::from_ms(number as u64));
            }
            name::NOTSENT_LOWAT => tuning.not_sent_low_water = number as u32,
            name::KEEPCNT | name::SYNCNT | name::WINDOW_CLAMP | name::USER_TIMEOUT => return Err(Errno::INVALID),
            _ => return Err(Errno::NO_OPTION),
        }
        let tuning = self.socket_ref(fd)?.tuning.clone();
        self.on_connection(fd, |connection| {
            connection.tuning = tuning;
            if matches!(option, name::KEEPIDLE | name::KEEPINTVL | name::KEEPCNT) {
                connection.start_keep_alive(now);
            }
        });
        Ok(())
    }

    fn set_ip_option(&mut self, fd: Fd, level: i32, option: i32, value: &[u8]) -> Result<(), Errno> {
        let number = integer(value).or_else(|_| value.first().map(|byte| i32::from(*byte)).ok_or(Errno::INVALID))?;
        let socket = self.socket_mut(fd)?;
        match (level, option) {
            (level::IP, name::IP_TOS) | (level::IPV6, name::IPV6_TCLASS) => socket.tuning.tos = number as u8 & !3,
            (level::IP, name::IP_TTL) if (1..=255).contains(&number) => socket.tuning.ttl = number as u8,
            (level::IPV6, name::IPV6_UNICAST_HOPS) if (-1..=255).contains(&number) => {
                socket.tuning.ttl = number.max(0) as u8;
            }
            (level::IPV6, name::IPV6_V6ONLY) => socket.v6_only = number != 0,
            (level::IP, name::IP_MTU_DISCOVER | name::IP_RECVERR) | (level::IPV6, name::IPV6_RECVERR) => {}
            (level::IP, name::IP_TTL) => return Err(Errno::INVALID),
            _ => return Err(Errno::NO_OPTION),
        }
        let (tos, ttl) = (socket.tuning.tos, socket.tuning.ttl);
        self.on_connection(fd, |connection| (connection.tuning.tos, connection.tuning.ttl) = (tos, ttl));
        Ok(())
    }

    /// Writes an option's value to `out`; returns its length in bytes.
    pub fn option(&mut self, fd: Fd, level: i32, name: i32, out: &mut [u8], now: Time) -> Result<usize, Errno> {
        self.socket_ref(fd)?;
        let value = match (level, name) {
            (level::TCP, name::INFO) => self.tcp_info(fd, now)?.to_vec(),
            (level::TCP, name::CC_INFO) => Vec::new(),
            (level::SOCKET, name::MEMINFO) => vec![0; 36],
            (level::TCP, name::CONGESTION) => {
                let mut name = self.socket_ref(fd)?.tuning.algorithm.name().as_bytes().to_vec();
                name.resize(16, 0);
                name
            }
            (level::SOCKET, name::ERROR) => self.take_error(fd)?.map_or(0, |error| error.0).to_ne_bytes().to_vec(),
            (level::SOCKET, name::RCVTIMEO | name::SNDTIMEO) => self.timeout_value(fd, name)?,
            (level::SOCKET, name::LINGER) => {
                let linger = self.socket_ref(fd)?.linger;
                let time = linger.map_or(0, |time| (time.as_ps() / 1_000_000_000_000) as i32);
                [i32::from(linger.is_some()), time].iter().flat_map(|word| word.to_ne_bytes()).collect()
            }
            _ => self.integer_option(fd, level, name)?.to_ne_bytes().to_vec(),
        };
        let len = value.len().min(out.len());
        out[..len].copy_from_slice(&value[..len]);
        Ok(len)
    }

    fn timeout_value(&self, fd: Fd, option: i32) -> Result<Vec<u8>, Errno> {
        let (receive, send) = self.timeouts(fd)?;
        let time = if option == name::RCVTIMEO { receive } else { send };
        let us = time.map_or(0, |time| (time.as_ps() / 1_000_000) as i64);
        Ok([us / 1_000_000, us % 1_000_000].iter().flat_map(|word| word.to_ne_bytes()).collect())
    }

    fn integer_option(&self, fd: Fd, level: i32, option: i32) -> Result<i32, Errno> {
        let socket = self.socket_ref(fd)?;
        let tuning = &socket.tuning;
        let secs = |time: Time| (time.as_ps() / 1_000_000_000_000) as i32;
        Ok(match (level, option) {
            (level::SOCKET, name::REUSEADDR) => i32::from(socket.reuse_address),
            (level::SOCKET, name::REUSEPORT) => i32::from(socket.reuse_port),
            (level::SOCKET, name::TYPE) => 1,
            (level::SOCKET, name::PROTOCOL) => 6,
            (level::SOCKET, name::DOMAIN) => {
                if socket.family == Family::V4 {
                    2
                } else {
                    10
                }
            }
            (level::SOCKET, name::SNDBUF) => tuning.send_buffer as i32,
            (level::SOCKET, name::RCVBUF) => tuning.receive_buffer as i32,
            (level::SOCKET, name::KEEPALIVE) => i32::from(tuning.keep_alive.on),
            (level::SOCKET, name::RCVLOWAT) => tuning.receive_low_water as i32,
            (level::SOCKET, name::ZEROCOPY) => i32::from(socket.zero_copy),
            (level::SOCKET, name::ACCEPTCONN) => i32::from(matches!(socket.kind, Kind::Listening(_))),
            (level::SOCKET, name::OOBINLINE) => 1,
            (level::TCP, name::NODELAY) => i32::from(tuning.no_delay),
            (level::TCP, name::CORK) => i32::from(tuning.cork),
            (level::TCP, name::MAXSEG) => self.segment_size(socket),
            (level::TCP, name::KEEPIDLE) => secs(tuning.keep_alive.idle),
            (level::TCP, name::KEEPINTVL) => secs(tuning.keep_alive.interval),
            (level::TCP, name::KEEPCNT) => i32::from(tuning.keep_alive.probes),
            (level::TCP, name::SYNCNT) => i32::from(tuning.syn_retries),
            (level::TCP, name::LINGER2) => secs(tuning.fin_wait),
            (level::TCP, name::DEFER_ACCEPT) => tuning.defer_accept.map_or(0, secs),
            (level::TCP, name::WINDOW_CLAMP) => tuning.window_clamp as i32,
            (level::TCP, name::QUICKACK) => 1,
            (level::TCP, name::USER_TIMEOUT) => {
                tuning.user_timeout.map_or(0, |time| (time.as_ps() / 1_000_000_000) as i32)
            }
            (level::TCP, name::NOTSENT_LOWAT) => tuning.not_sent_low_water as i32,
            (level::IP, name::IP_TOS) | (level::IPV6, name::IPV6_TCLASS) => i32::from(tuning.tos),
            (level::IP, name::IP_TTL) | (level::IPV6, name::IPV6_UNICAST_HOPS) => {
                if tuning.ttl == 0 {
                    64
                } else {
                    i32::from(tuning.ttl)
                }
            }
            (level::IPV6, name::IPV6_V6ONLY) => i32::from(socket.v6_only),
            _ => return Err(Errno::NO_OPTION),
        })
    }

    fn segment_size(&self, socket: &Socket) -> i32 {
        let open = match socket.kind {
            Kind::Connection(id) => self.stack.connection(id).filter(|connection| connection.state().is_synchronized()),
            _ => None,
        };
        match open {
            Some(connection) => connection.segment_size() as i32,
            None if socket.tuning.max_segment > 0 => i32::from(socket.tuning.max_segment),
            None => 536,
        }
    }
}

/// Buffers are counted with their overhead: twice what the application asks for.
fn doubled(number: i32, least: u32, most: u32) -> u32 {
    (number.max(0) as u32).min(most).saturating_mul(2).max(least)
}
