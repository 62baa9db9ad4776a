//! Names of states.

use thiserror::Error;

/// The states of RFC 9293 section 3.3.2; LISTEN belongs to listeners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// A SYN was sent.
    SynSent,
    /// SYNs crossed or a SYN was answered.
    SynReceived,
    /// Data flows.
    Established,
    /// We closed first; the FIN is not acknowledged.
    FinWait1,
    /// Our FIN is acknowledged, the peer still sends.
    FinWait2,
    /// The peer closed first.
    CloseWait,
    /// Both closed at once; our FIN is not acknowledged.
    Closing,
    /// The peer closed first, then we; our FIN is not acknowledged.
    LastAck,
    /// Waits until old segments have died.
    TimeWait,
    /// Gone.
    Closed,
}

impl State {
    /// Whether both ends know each other's sequence numbers.
    pub fn is_synchronized(self) -> bool {
        !matches!(self, State::SynSent | State::SynReceived | State::Closed)
    }

    /// Whether the peer's data is still taken.
    pub fn takes_data(self) -> bool {
        matches!(self, State::Established | State::FinWait1 | State::FinWait2)
    }
}

/// Where the sender is between "all is well" and "timeout".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaState {
    /// Nothing unusual.
    Open,
    /// Duplicate acknowledgments or SACK blocks, no proven loss.
    Disorder,
    /// The window is being reduced for a congestion mark.
    Reducing,
    /// A loss is being repaired.
    Recovery,
    /// A timeout is being repaired.
    Loss,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ConnectionError {
    /// The peer sent RST.
    #[error("the peer reset the connection")]
    Reset,
    /// The peer answered a SYN with RST, or ICMP says that the port is closed.
    #[error("the peer refused the connection")]
    Refused,
    /// No answer.
    #[error("the peer did not answer in time")]
    TimedOut,
    /// We reset it.
    #[error("the connection was aborted")]
    Aborted,
    /// ICMP: host unreachable.
    #[error("no route to the host")]
    HostUnreachable,
    /// ICMP: network unreachable.
    #[error("no route to the network")]
    NetworkUnreachable,
    /// ICMP: protocol unreachable.
    #[error("the peer has no TCP")]
    ProtocolUnreachable,
    /// The peer reset a connection that we had half closed.
    #[error("the peer reset the connection after it had closed")]
    Pipe,
}
