//! What a program's library says to the driver of a connection: one packet of a Unix socket for each.

use std::io::IoSlice;
use std::os::fd::BorrowedFd;

use nicforge_l5p::tls::record::{ContentType, PLAINTEXT_BYTES_MAX};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, sendmsg};

use crate::control;

const KEYS: u8 = 1;
const RECORD: u8 = 2;

/// Longest message.
pub const MESSAGE_MOST: usize = 2 + PLAINTEXT_BYTES_MAX;

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Keys from the next record on, as the program gave them. The first comes with the connection's descriptor. The
    /// driver answers with an error number, or 0.
    Keys(&'a [u8]),
    /// The content of the next record, before its bytes are written to the connection.
    Record {
        /// Its type.
        content: ContentType,
        /// Its bytes.
        data: &'a [u8],
    },
}

impl<'a> Message<'a> {
    /// Reads a message; `None` for what is none.
    pub fn parse(bytes: &'a [u8]) -> Option<Message<'a>> {
        match bytes {
            [KEYS, info @ ..] => Some(Message::Keys(info)),
            [RECORD, kind, data @ ..] if data.len() <= PLAINTEXT_BYTES_MAX => {
                Some(Message::Record { content: ContentType(*kind), data })
            }
            _ => None,
        }
    }

    /// Sends it, and waits where the driver is slow.
    ///
    /// # Errors
    ///
    /// The system's, `EPIPE` when the driver is gone.
    pub fn send(&self, to: BorrowedFd<'_>, descriptors: &[BorrowedFd<'_>]) -> Result<(), Errno> {
        let nothing = &mut SendAncillaryBuffer::default();
        match self {
            Message::Keys(info) => {
                let bytes = [&[KEYS], *info].concat();
                control::retry(|| control::send(to, &bytes, descriptors, SendFlags::empty()))
            }
            Message::Record { content, data } => {
                let head = [RECORD, content.0];
                let parts = [IoSlice::new(&head), IoSlice::new(data)];
                control::retry(|| sendmsg(to, &parts, nothing, SendFlags::NOSIGNAL)).map(|_| ())
            }
        }
    }
}

/// Answers keys.
pub fn answer(to: BorrowedFd<'_>, result: Result<(), Errno>) -> Result<(), Errno> {
    let number = result.err().map_or(0, Errno::raw_os_error);
    control::send(to, &number.to_ne_bytes(), &[], SendFlags::DONTWAIT)
}

/// Waits for the answer to keys.
pub fn answered(from: BorrowedFd<'_>) -> Result<(), Errno> {
    let mut bytes = [0; 4];
    let (len, _) = control::retry(|| recv(from, &mut bytes, RecvFlags::empty()))?;
    match i32::from_ne_bytes(bytes) {
        _ if len != bytes.len() => Err(Errno::CONNRESET),
        0 => Ok(()),
        number => Err(Errno::from_raw_os_error(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_sent_and_others_refused() {
        let data = vec![7; PLAINTEXT_BYTES_MAX];
        let record = Message::Record { content: ContentType(23), data: &data };
        assert_eq!(Message::parse(&[&[RECORD, 23], &data[..]].concat()), Some(record));
        assert_eq!(Message::parse(&[KEYS, 1, 2]), Some(Message::Keys(&[1, 2])));
        assert_eq!(Message::parse(&[&[RECORD, 23, 0], &data[..]].concat()), None, "longer than a record");
        assert_eq!(Message::parse(&[RECORD]), None);
        assert_eq!(Message::parse(&[9, 1]), None);
        assert_eq!(Message::parse(&[]), None);
    }
}
