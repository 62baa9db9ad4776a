//! Error numbers as Linux has them.

use std::fmt;

use crate::conn::ConnectionError;
use crate::stack::StackError;

/// An error number of a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

macro_rules! errors {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $c:literal;)*) => {
        impl Errno {
            $($(#[$doc])* pub const $name: Errno = Errno($number);)*
        }

        impl fmt::Display for Errno {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.0 {
                    $($number => f.write_str($c),)*
                    other => write!(f, "errno {other}"),
                }
            }
        }
    };
}

errors! {
    /// Bad descriptor.
    BAD_FD = 9, "EBADF";
    /// Would block.
    AGAIN = 11, "EAGAIN";
    /// No memory.
    NO_MEMORY = 12, "ENOMEM";
    /// Bad pointer.
    FAULT = 14, "EFAULT";
    /// It exists.
    EXISTS = 17, "EEXIST";
    /// Wrong argument.
    INVALID = 22, "EINVAL";
    /// No such entry.
    NO_ENTRY = 2, "ENOENT";
    /// Not permitted.
    NOT_PERMITTED = 1, "EPERM";
    /// No reader.
    PIPE = 32, "EPIPE";
    /// Not implemented.
    NOT_IMPLEMENTED = 38, "ENOSYS";
    /// The protocol is in error.
    PROTOCOL = 71, "EPROTO";
    /// Not a socket.
    NOT_SOCKET = 88, "ENOTSOCK";
    /// Destination address required.
    NO_DESTINATION = 89, "EDESTADDRREQ";
    /// No such option.
    NO_OPTION = 92, "ENOPROTOOPT";
    /// Protocol not supported.
    NO_PROTOCOL = 93, "EPROTONOSUPPORT";
    /// Operation not supported.
    NOT_SUPPORTED = 95, "EOPNOTSUPP";
    /// Address family not supported.
    NO_FAMILY = 97, "EAFNOSUPPORT";
    /// Address in use.
    ADDRESS_IN_USE = 98, "EADDRINUSE";
    /// Address not ours.
    ADDRESS_UNAVAILABLE = 99, "EADDRNOTAVAIL";
    /// Network unreachable.
    NETWORK_UNREACHABLE = 101, "ENETUNREACH";
    /// Aborted.
    ABORTED = 103, "ECONNABORTED";
    /// Reset by the peer.
    RESET = 104, "ECONNRESET";
    /// Connected already.
    IS_CONNECTED = 106, "EISCONN";
    /// Not connected.
    NOT_CONNECTED = 107, "ENOTCONN";
    /// Timed out.
    TIMED_OUT = 110, "ETIMEDOUT";
    /// Refused.
    REFUSED = 111, "ECONNREFUSED";
    /// Host unreachable.
    HOST_UNREACHABLE = 113, "EHOSTUNREACH";
    /// A connect is under way.
    ALREADY = 114, "EALREADY";
    /// The connect has begun.
    IN_PROGRESS = 115, "EINPROGRESS";
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Errno {}

impl From<ConnectionError> for Errno {
    fn from(error: ConnectionError) -> Errno {
        match error {
            ConnectionError::Reset => Errno::RESET,
            ConnectionError::Refused => Errno::REFUSED,
            ConnectionError::TimedOut => Errno::TIMED_OUT,
            ConnectionError::Aborted => Errno::ABORTED,
            ConnectionError::HostUnreachable => Errno::HOST_UNREACHABLE,
            ConnectionError::NetworkUnreachable => Errno::NETWORK_UNREACHABLE,
            ConnectionError::ProtocolUnreachable => Errno::NO_OPTION,
            ConnectionError::Pipe => Errno::PIPE,
        }
    }
}

impl From<StackError> for Errno {
    fn from(error: StackError) -> Errno {
        match error {
            StackError::PortInUse => Errno::ADDRESS_IN_USE,
            StackError::NotOurs | StackError::Exists => Errno::ADDRESS_UNAVAILABLE,
            StackError::NoRoute => Errno::NETWORK_UNREACHABLE,
            StackError::NoMemory => Errno::NO_MEMORY,
            StackError::Gone => Errno::NOT_CONNECTED,
        }
    }
}
