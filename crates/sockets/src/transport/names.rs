//! The stack's errors and states as programs know them.

use nicforge_tcp::conn::{ConnectionError, State};
use nicforge_tcp::stack::StackError;
use rustix::io::Errno;

/// The error number that programs see.
pub(super) fn errno(error: ConnectionError) -> Errno {
    match error {
        ConnectionError::Reset => Errno::CONNRESET,
        ConnectionError::Refused => Errno::CONNREFUSED,
        ConnectionError::TimedOut => Errno::TIMEDOUT,
        ConnectionError::Aborted => Errno::CONNABORTED,
        ConnectionError::HostUnreachable => Errno::HOSTUNREACH,
        ConnectionError::NetworkUnreachable => Errno::NETUNREACH,
        ConnectionError::ProtocolUnreachable => Errno::NOPROTOOPT,
        ConnectionError::Pipe => Errno::PIPE,
    }
}

/// The error number of a refused call.
pub(super) fn refusal(error: StackError) -> Errno {
    match error {
        StackError::PortInUse => Errno::ADDRINUSE,
        StackError::NotOurs | StackError::Exists => Errno::ADDRNOTAVAIL,
        StackError::NoRoute => Errno::NETUNREACH,
        StackError::NoMemory => Errno::NOBUFS,
        StackError::Gone => Errno::BADF,
    }
}

/// Names of RFC 9293.
pub(super) fn state_name(state: State) -> &'static str {
    match state {
        State::SynSent => "SYN-SENT",
        State::SynReceived => "SYN-RECEIVED",
        State::Established => "ESTABLISHED",
        State::FinWait1 => "FIN-WAIT-1",
        State::FinWait2 => "FIN-WAIT-2",
        State::CloseWait => "CLOSE-WAIT",
        State::Closing => "CLOSING",
        State::LastAck => "LAST-ACK",
        State::TimeWait => "TIME-WAIT",
        State::Closed => "CLOSED",
    }
}
