//! Tests of the transmit side: the engine against a mock host, and driver and engine together.

mod bench;
mod deschedule;
mod driver;
mod engine;
mod hostile;
mod nicmem;
