//! How the driver of a SINIC runs.

use nicforge_options::{Allowed, Finding, ensure, options};

use super::registers::config;

options! {
    /// What the NIC's Config asks of its driver.
    pub struct DriverOptions {
        /// Whether the driver of a SINIC polls always instead of waiting for interrupts.
        driver_polls: bool = false, "", Allowed::Flag,
            source "integrated NIC dissertation, appendix A.3.1: Config.Poll";
        /// Whether it receives by a thread, which takes turns with the process, instead of by soft
        /// interrupts.
        receive_thread: bool = false, "", Allowed::Flag,
            source "integrated NIC dissertation, appendix A.3.1: Config.RxThread";
        /// Whether it transmits by a thread.
        transmit_thread: bool = false, "", Allowed::Flag,
            source "integrated NIC dissertation, appendix A.3.1: Config.TxThread";
        /// Whether each core has a receive thread, for the connections of its own process; with
        /// `receive_thread` only.
        spread_receive: bool = false, "", Allowed::Flag,
            source "integrated NIC dissertation, appendix A.3.1: Config.RSS";
    }
}

impl DriverOptions {
    /// The bits of Config that ask for them.
    pub(super) fn advice(&self) -> u64 {
        let asked = [
            (config::POLL, self.driver_polls),
            (config::RX_THREAD, self.receive_thread),
            (config::TX_THREAD, self.transmit_thread),
            (config::RSS, self.spread_receive),
        ];
        asked.iter().filter(|(_, is)| *is).fold(0, |all, (bit, _)| all | bit.mask())
    }

    /// Whether the options go together.
    ///
    /// # Errors
    /// They do not.
    pub fn check(&self) -> Result<(), Finding> {
        ensure(self.receive_thread || !self.spread_receive, &["spread_receive", "receive_thread"], || {
            (
                "packets are spread over receive threads, and there are none".to_string(),
                "set receive_thread to true, too".to_string(),
            )
        })
    }
}
