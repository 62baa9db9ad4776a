//! What runs on the cores.
//!
//! An application is a run-to-completion function per packet with a [`Verdict`]. It sees
//! memory only through [`Cpu`]: packets where the NIC put them, tables where [`Apps::build`]
//! was given address space, so that its cache behaviour is real.
//!
//! ```text
//!  Apps::share ─► Apps::build, per core ─► start ─► packet, packet, packet …
//!   (addresses only)  (addresses only)    (fills tables)   (run to completion)
//! ```

mod app;
mod co_runner;
mod config;
mod copy;
pub mod counter;
pub mod flexkvs;
mod forwardable;
mod fragment;
pub mod headers;
pub mod ids;
pub mod kvs;
pub mod l2fwd;
pub mod l3fwd;
pub mod lb;
pub mod nat;
pub mod options;
mod quoted;
mod record_route;
mod routes;
mod shape;
mod shared;
pub mod suite;
pub mod synthetic;
pub mod tables;
mod udp_service;
mod undelivered;
pub mod vswitch;

pub use app::{App, AppEntry, AppGround, AppKind, Application, Apps, Build, Flow, Place};
pub use co_runner::CoRunner;
pub use config::{AppConfig, AppError, Egress, Port, PortMap, Timeouts};
pub use copy::Copier;
pub use nicforge_nic::Verdict;
pub use nicforge_platform::Cpu;
pub use routes::{Route, RouteError, generate_routes, parse_routes, read_routes};
pub use shape::{AppShape, FullTable, NeededAddress, Reads};
pub use shared::{Routing, SharedTables};

// Names of drops that more than one application knows.
const NO_SUCH_PORT: &str = "no_such_port";
const NOT_THE_SERVICE: &str = "not_the_service";
const NOT_IPV4: &str = "not_ipv4";
const FRAGMENT: &str = "fragment";
const FRAGMENT_UNKNOWN: &str = "fragment_unknown";
const TABLE_FULL: &str = "table_full";
const TTL_EXPIRED: &str = "ttl_expired";
const IP_CHECKSUM: &str = "ip_checksum";
const HEADERS_SPLIT: &str = "headers_split";
