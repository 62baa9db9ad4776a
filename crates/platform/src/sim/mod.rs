//! The sim ground: deterministic virtual time over a model of cores, caches, DRAM and PCIe.

mod config;

pub use config::{CacheConfig, CoreConfig, DramConfig, Hardware, LinkConfig, NicConfig};
