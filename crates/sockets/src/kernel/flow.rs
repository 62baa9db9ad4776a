//! A connection in the driver: the records that its program wrote, until its peer has them.

use std::os::fd::OwnedFd;

use nicforge_l5p::context::{FlowKey, Start};
use nicforge_l5p::driver::Layer5;
use nicforge_l5p::host::{HostBuffers, HostMemory};
use nicforge_l5p::port::StreamMemory;
use nicforge_l5p::sequence::Seq;
use nicforge_l5p::tls::TlsKeys;
use nicforge_l5p::tls::record::ContentType;
use nicforge_l5p::tls::writer::{RecordTooLong, RecordWriter};
use nicforge_units::Time;

/// A connection that both ends leave alone for so long is over: the kernel's TCP sends again every two minutes at least.
const SILENCE: Time = Time::from_ms(300_000);

pub(super) struct Flow {
    pub outward: FlowKey,
    /// The program's end; `None` once the program closed the connection, or ended.
    pub channel: Option<OwnedFd>,
    writer: RecordWriter,
    memory: StreamMemory,
    acknowledged: Seq,
    sent: Seq,
    is_reset: bool,
    heard: Time,
}

impl Flow {
    pub fn new(outward: FlowKey, channel: OwnedFd, keys: &TlsKeys, start: Start, now: Time) -> Flow {
        Flow {
            outward,
            channel: Some(channel),
            writer: RecordWriter::new(keys, start),
            memory: StreamMemory::default(),
            acknowledged: start.tcpsn,
            sent: start.tcpsn,
            is_reset: false,
            heard: now,
        }
    }

    pub fn rekey(&mut self, keys: &TlsKeys) -> Start {
        self.writer.rekey(keys)
    }

    /// Notes a record that its program is about to write to the connection.
    pub fn write(&mut self, content: ContentType, data: &[u8]) -> Result<(), RecordTooLong> {
        let data = self.memory.place(data);
        self.writer.write(&mut self.memory, content, data, 0).map(|_| ())
    }

    /// The kernel's TCP sends everything before `end`.
    pub fn leaves(&mut self, end: Seq, now: Time) {
        self.heard = now;
        if self.sent.is_before(end) {
            self.sent = end;
        }
    }

    /// The peer says that it has everything before `number`. Tells whether that is new; the kernel ignores the same ones.
    pub fn acknowledge(&mut self, number: Seq, now: Time) -> bool {
        self.heard = now;
        if !self.acknowledged.is_before(number) || self.sent.is_before(number) {
            return false;
        }
        self.acknowledged = number;
        self.writer.acknowledge(number);
        match self.writer.oldest_address() {
            Some(address) => self.memory.release(address),
            None => self.memory.release_all(),
        }
        true
    }

    pub fn reset(&mut self) {
        self.is_reset = true;
    }

    /// Whether nothing of it will be sent again. Its context must live until then: without it records would leave
    /// unencrypted.
    pub fn is_over(&self, now: Time) -> bool {
        let is_delivered = self.channel.is_none() && !self.acknowledged.is_before(self.writer.boundary().tcpsn);
        is_delivered || self.is_reset || (self.channel.is_none() && now.saturating_sub(self.heard) > SILENCE)
    }

    pub fn parts(&mut self) -> (&dyn Layer5, &mut dyn HostMemory) {
        (&self.writer, &mut self.memory)
    }
}
