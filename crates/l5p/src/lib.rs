//! Autonomous offloads: a NIC that works on layer 5 of TCP streams which it does not terminate.
//!
//! Software keeps TCP. The [`engine`] processes the payload of packets that come in sequence, by a [`context`] of 208
//! bytes per flow and direction; a packet that comes out of sequence costs speed, never correctness. The [`driver`]
//! half recovers the NIC's context on transmit and answers its questions on receive. [`port`] puts both between a TCP
//! stack and a wire. A layer-5 protocol is a folder and a line in the [`registry`]: [`toy`], [`tls`], [`nvme`]
//! (NVMe/TCP) and [`iscsi`]. [`stack`] puts NVMe/TCP on TLS.
//!
//! Left out: TCP itself, timers, sockets, where contexts are kept (a [`context::Context`] is a plain value that the
//! caller loads and stores) and what DMA costs ([`host::HostMemory`] is the seam).
//!
//! Paper: "Autonomous NIC Offloads", ASPLOS 2021. States, layout and counters: `docs/offloads.md`.

pub mod context;
pub mod counters;
pub mod crc;
pub mod driver;
pub mod engine;
pub mod host;
pub mod iscsi;
pub mod keys;
pub mod nvme;
pub mod placement;
pub mod port;
pub mod protocol;
pub mod registry;
pub mod sequence;
pub mod stack;
pub mod tls;
pub mod toy;
