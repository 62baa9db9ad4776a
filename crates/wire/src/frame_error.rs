//! What can be wrong with a frame.

use thiserror::Error;

/// Why a frame is malformed. Each is a drop counter, by [`FrameError::name`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
pub enum FrameError {
    /// Shorter than an Ethernet header.
    #[error("frame ends within the Ethernet header")]
    EthernetTruncated,
    /// Ends within a VLAN tag.
    #[error("frame ends within a VLAN tag")]
    VlanTruncated,
    /// Ends within the IP header.
    #[error("frame ends within the IP header")]
    IpTruncated,
    /// EtherType and IP version disagree.
    #[error("IP version does not match the EtherType")]
    IpBadVersion,
    /// IPv4 header length below 20 bytes.
    #[error("IPv4 header length is below 20 bytes")]
    IpBadHeaderLength,
    /// IPv4 total length below the header's.
    #[error("IPv4 total length is below the header length")]
    IpBadTotalLength,
    /// The IP length field says more than the frame holds.
    #[error("IP length is beyond the end of the frame")]
    IpLengthBeyondFrame,
    /// IPv6 payload length 0 although a header follows: a jumbogram, which no Ethernet frame is.
    #[error("IPv6 jumbograms are not supported")]
    Ipv6Jumbogram,
    /// An IPv6 extension header is cut off.
    #[error("an IPv6 extension header is cut off")]
    Ipv6ExtensionTruncated,
    /// More IPv6 extension headers than a NIC walks.
    #[error("more than 8 IPv6 extension headers")]
    Ipv6TooManyExtensions,
    /// The packet ends within its TCP, UDP or ICMP header.
    #[error("packet ends within the TCP, UDP or ICMP header")]
    L4Truncated,
    /// UDP length below 8 or beyond the packet.
    #[error("UDP length is below 8 or beyond the end of the packet")]
    UdpBadLength,
    /// TCP data offset below 20 bytes or beyond the packet.
    #[error("TCP header length is below 20 bytes or beyond the end of the packet")]
    TcpBadHeaderLength,
}

impl FrameError {
    /// All causes, in the order of their numbers (`self as usize`).
    pub const ALL: [FrameError; 13] = [
        FrameError::EthernetTruncated,
        FrameError::VlanTruncated,
        FrameError::IpTruncated,
        FrameError::IpBadVersion,
        FrameError::IpBadHeaderLength,
        FrameError::IpBadTotalLength,
        FrameError::IpLengthBeyondFrame,
        FrameError::Ipv6Jumbogram,
        FrameError::Ipv6ExtensionTruncated,
        FrameError::Ipv6TooManyExtensions,
        FrameError::L4Truncated,
        FrameError::UdpBadLength,
        FrameError::TcpBadHeaderLength,
    ];

    /// The drop counter's name.
    pub const fn name(self) -> &'static str {
        match self {
            FrameError::EthernetTruncated => "ethernet_truncated",
            FrameError::VlanTruncated => "vlan_truncated",
            FrameError::IpTruncated => "ip_truncated",
            FrameError::IpBadVersion => "ip_bad_version",
            FrameError::IpBadHeaderLength => "ip_bad_header_length",
            FrameError::IpBadTotalLength => "ip_bad_total_length",
            FrameError::IpLengthBeyondFrame => "ip_length_beyond_frame",
            FrameError::Ipv6Jumbogram => "ipv6_jumbogram",
            FrameError::Ipv6ExtensionTruncated => "ipv6_extension_truncated",
            FrameError::Ipv6TooManyExtensions => "ipv6_too_many_extensions",
            FrameError::L4Truncated => "l4_truncated",
            FrameError::UdpBadLength => "udp_bad_length",
            FrameError::TcpBadHeaderLength => "tcp_bad_header_length",
        }
    }
}
