//! What reads and writes of registers do (integrated NIC, appendix A.3).

use nicforge_platform::Dma;
use nicforge_units::{Bytes, Time};

use super::{ENABLES, Nic, receive_side, transmit_side};
use crate::kernel::KernelDevice;
use crate::register_map::{Access, RegisterRow};
use crate::sinic::interrupts::Interrupts;
use crate::sinic::misuse::Misuse;
use crate::sinic::registers::{self, BusAccess, SET_BYTES, Tag};
use crate::sinic::registers::{command, config, interrupt, rx_data, tx_data};

impl Nic {
    /// The register that an access means, and whose it is.
    fn decode(&self, index: u32) -> Result<(Tag, &'static RegisterRow, u16), Misuse> {
        let access = BusAccess::from_index(index);
        let set = access.offset / SET_BYTES;
        if set as usize >= self.options.sets() {
            return Err(Misuse::NoRegister);
        }
        let offset = access.offset % SET_BYTES;
        let Some((tag, row)) = registers::at(offset) else {
            // The upper half of a 64-bit register is within one.
            let within = registers::at(offset.wrapping_sub(4));
            let upper_half = within.is_some_and(|(_, row)| row.width.bytes() == 8);
            return Err(if offset.is_multiple_of(4) && !upper_half { Misuse::NoRegister } else { Misuse::Misaligned });
        };
        if access.bytes == row.width.bytes() { Ok((tag, row, set as u16)) } else { Err(Misuse::BadWidth) }
    }

    pub(super) fn write<D: Dma>(&mut self, dma: &mut D, index: u32, value: u64) -> Result<(), Misuse> {
        let (tag, row, vnic) = self.decode(index)?;
        if row.access == Access::ReadOnly {
            return Err(Misuse::WroteReadOnly);
        }
        if value & !row.width.mask() != 0 {
            return Err(Misuse::BadWidth);
        }
        // Config says of all its other bits what they have to be.
        if tag != Tag::Config && value & row.reserved() != 0 {
            return Err(Misuse::ReservedBits);
        }
        match tag {
            Tag::Config => self.configure(value)?,
            Tag::Command => self.command(value),
            Tag::IntrStatus => {
                self.interrupts.clear(value, self.now);
            }
            Tag::IntrMask => self.interrupts.set_mask(value, self.now),
            Tag::RxData => {
                let max = self.options.rx_max_copy;
                let (len, at) = (rx_data::LEN.get(value), rx_data::ADDR.get(value));
                let busy = self.receive.is_busy(vnic);
                self.check_copy(busy, len, max, at, rx_data::VADDR.is_set(value))?;
                self.receive.post(vnic, value);
            }
            Tag::TxData => {
                let max = self.options.tx_max_copy;
                let (len, at) = (tx_data::LEN.get(value), tx_data::ADDR.get(value));
                let busy = self.transmit.is_busy(vnic);
                self.check_copy(busy, len, max, at, tx_data::VADDR.is_set(value))?;
                self.transmit.post(vnic, value);
            }
            // The others can only be read.
            _ => {}
        }
        self.begin_copy(dma);
        Ok(())
    }

    fn check_copy(&self, busy: bool, len: u64, max: Bytes, at: u64, virtual_address: bool) -> Result<(), Misuse> {
        if busy {
            return Err(Misuse::Busy);
        }
        if len == 0 {
            return Err(Misuse::NoLength);
        }
        if len > max.0 {
            return Err(Misuse::TooLong);
        }
        // Virtual addresses are physical ones here: there is no paging in this memory.
        if virtual_address && !config::VADDR.is_set(self.options.advice) {
            return Err(Misuse::VirtualAddress);
        }
        if at == 0 || at + len > self.memory_end.0 {
            return Err(Misuse::NoMemory);
        }
        Ok(())
    }

    fn configure(&mut self, value: u64) -> Result<(), Misuse> {
        if value & !ENABLES != self.options.config() {
            return Err(Misuse::ReadOnlyBits);
        }
        self.enables = value & ENABLES;
        self.interrupts.enable(config::INT_EN.is_set(value), self.now);
        self.send();
        Ok(())
    }

    fn command(&mut self, value: u64) {
        if command::RESET.is_set(value) {
            self.reset_packets += self.frames_inside();
            let oversized = self.transmit.oversized;
            self.receive = receive_side(&self.options, &self.around);
            self.transmit = transmit_side(&self.options, &self.around);
            self.transmit.oversized = oversized;
            self.interrupts = Interrupts::new(self.options.interrupt_mask, self.around.interrupt_delay);
            self.enables = 0;
            // A copy that runs keeps the cache port until its end.
            self.copy = None;
        }
        if command::INTR.is_set(value) {
            self.interrupts.raise(interrupt::SOFT.mask(), self.now);
        }
    }

    pub(super) fn read<D: Dma>(&mut self, dma: &mut D, index: u32) -> Result<(u64, Time), Misuse> {
        let (tag, _, vnic) = self.decode(index)?;
        let options = &self.options;
        let value = match tag {
            Tag::Config => options.config() | self.enables,
            Tag::Command => return Err(Misuse::ReadWriteOnly),
            Tag::IntrStatus => self.interrupts.clear(u64::MAX, self.now),
            Tag::IntrMask => self.interrupts.mask(),
            Tag::RxMaxCopy => options.rx_max_copy.0,
            Tag::TxMaxCopy => options.tx_max_copy.0,
            Tag::RxMaxIntr => options.rx_max_intr.into(),
            Tag::RxFifoSize => self.around.rx_fifo.0,
            Tag::TxFifoSize => self.around.tx_fifo.0,
            Tag::RxFifoMark => options.rx_fifo_mark.0,
            Tag::TxFifoMark => options.tx_fifo_mark.0,
            Tag::RxData => self.receive.data(vnic),
            Tag::RxDone => self.receive.done(vnic),
            Tag::RxWait => {
                let given = self.wait(dma, |nic| nic.receive.is_busy(vnic));
                return Ok((self.receive.done(vnic), given));
            }
            Tag::TxData => self.transmit.data(vnic),
            Tag::TxDone => self.transmit.done(vnic),
            Tag::TxWait => {
                let given = self.wait(dma, |nic| nic.transmit.is_busy(vnic));
                return Ok((self.transmit.done(vnic), given));
            }
            Tag::HwAddr => options.address_register(),
        };
        Ok((value, self.now))
    }

    /// Whether a read of register `index` would wait for a copy now.
    pub(super) fn would_wait(&self, index: u32) -> bool {
        match self.decode(index) {
            Ok((Tag::RxWait, _, vnic)) => self.receive.is_busy(vnic),
            Ok((Tag::TxWait, _, vnic)) => self.transmit.is_busy(vnic),
            _ => false,
        }
    }

    /// Goes on until a copy is done, or the time-out is over; returns when that is. What the wire
    /// and other cores do meanwhile is not known here: see [`KernelDevice::blocks`].
    fn wait<D: Dma>(&mut self, dma: &mut D, busy: impl Fn(&Nic) -> bool) -> Time {
        let limit = self.now + self.options.wait_timeout;
        while busy(self) {
            let next = self.next_event();
            if next > limit {
                return limit;
            }
            self.run_to(dma, next);
        }
        self.now
    }
}
