//! What the simulator sets up before software comes (integrated NIC, appendix A.4).

use nicforge_units::{Bytes, Time};

use super::registers::{VNICS_MAX, config, interrupt, rx_data, rx_done, tx_data};

/// The options of one device. Those that the data sheet has and this does not: delays that stand
/// in for a memory model, a clock that was never used, and the filter, VLAN and descriptor modes
/// that were never made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Ethernet address.
    pub hardware_address: [u8; 6],
    /// Virtual NICs of a V-SINIC, 1 to [`VNICS_MAX`]; `None` for a SINIC.
    pub vnics: Option<usize>,
    /// Most bytes that one RxData copies.
    pub rx_max_copy: Bytes,
    /// Most bytes that one TxData copies.
    pub tx_max_copy: Bytes,
    /// Packets that the driver should take per interrupt.
    pub rx_max_intr: u32,
    /// High watermark of the receive FIFO.
    pub rx_fifo_mark: Bytes,
    /// Low watermark of the transmit FIFO.
    pub tx_fifo_mark: Bytes,
    /// Bytes that the zero-copy driver copies of a packet at first; all headers should be within.
    pub header_copy: Bytes,
    /// How long a read of RxWait or TxWait blocks at most.
    pub wait_timeout: Time,
    /// Bits of Config that tell the driver what to do: those of [`Options::ADVICE`].
    pub advice: u64,
    /// IntrMask after a reset.
    pub interrupt_mask: u64,
}

/// Options that no device can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    /// Virtual NICs.
    #[error("{0} virtual NICs: a V-SINIC has 1 to {VNICS_MAX}")]
    Vnics(usize),
    /// A size that does not fit where it has to.
    #[error("{what} of {} B: use {} to {}", bytes.0, least.0, most.0)]
    Size {
        /// Which.
        what: &'static str,
        /// What was asked for.
        bytes: Bytes,
        /// The least that works.
        least: Bytes,
        /// The most that works.
        most: Bytes,
    },
    /// Zero copy and delayed copy exclude each other, and both need virtual NICs (A.3.1).
    #[error("zero copy and delayed copy need a V-SINIC, and exclude each other")]
    Copies,
    /// No such bits.
    #[error("{what} has bits that are not implemented: {bits:#x}")]
    Bits {
        /// Which register.
        what: &'static str,
        /// The bits.
        bits: u64,
    },
}

impl Options {
    /// Bits of Config that are only there for the driver to read, and Vaddr.
    pub const ADVICE: u64 = config::ZERO_COPY.mask()
        | config::DELAY_COPY.mask()
        | config::RSS.mask()
        | config::RX_THREAD.mask()
        | config::TX_THREAD.mask()
        | config::VADDR.mask()
        | config::POLL.mask();

    /// Checks that a device with FIFOs of `rx_fifo` and `tx_fifo` can be made.
    ///
    /// # Errors
    /// When a size does not fit, or what cannot go together is asked for.
    pub fn check(&self, rx_fifo: Bytes, tx_fifo: Bytes) -> Result<(), OptionsError> {
        if let Some(vnics) = self.vnics
            && !(1..=VNICS_MAX).contains(&vnics)
        {
            return Err(OptionsError::Vnics(vnics));
        }
        let register = Bytes(u32::MAX.into());
        // A copy that never fits would never complete.
        let tx_copy = Bytes(tx_data::LEN.max()).min(tx_fifo);
        for (what, bytes, least, most) in [
            ("receive FIFO", rx_fifo, Bytes(1), register),
            ("transmit FIFO", tx_fifo, Bytes(1), register),
            ("RxMaxCopy", self.rx_max_copy, Bytes(1), Bytes(rx_data::LEN.max())),
            ("TxMaxCopy", self.tx_max_copy, Bytes(1), tx_copy),
            ("first copy", self.header_copy, Bytes(1), self.rx_max_copy),
            ("RxFifoMark", self.rx_fifo_mark, Bytes(0), rx_fifo),
            ("TxFifoMark", self.tx_fifo_mark, Bytes(0), tx_fifo),
        ] {
            if bytes < least || bytes > most {
                return Err(OptionsError::Size { what, bytes, least, most });
            }
        }
        let (zero, delay) = (config::ZERO_COPY.is_set(self.advice), config::DELAY_COPY.is_set(self.advice));
        if zero && delay || (zero || delay) && self.vnics.is_none() {
            return Err(OptionsError::Copies);
        }
        let mask = interrupt::ALL.iter().fold(0, |all, field| all | field.mask());
        for (what, bits) in [("Config", self.advice & !Options::ADVICE), ("IntrMask", self.interrupt_mask & !mask)] {
            if bits != 0 {
                return Err(OptionsError::Bits { what, bits });
            }
        }
        Ok(())
    }

    /// Config after a reset.
    pub fn config(&self) -> u64 {
        self.advice | config::VNIC.of(self.vnics.is_some().into())
    }

    /// Register sets.
    pub fn sets(&self) -> usize {
        self.vnics.unwrap_or(1)
    }

    /// HwAddr.
    pub fn address_register(&self) -> u64 {
        let bytes = self.hardware_address.iter();
        bytes.fold(0, |word, &byte| word << 8 | u64::from(byte))
    }
}

/// Frames longer than this have no CopyLen.
pub const FRAME_MAX: u64 = rx_done::COPY_LEN.max();
