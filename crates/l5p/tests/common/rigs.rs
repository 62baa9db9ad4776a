//! The two ends of each protocol.

use nicforge_l5p::context::{Start, State};
use nicforge_l5p::driver::{Layer5, ResyncAnswer};
use nicforge_l5p::engine::Received;
use nicforge_l5p::host::FlatMemory;
use nicforge_l5p::protocol::ProtocolId;
use nicforge_l5p::registry;
use nicforge_l5p::sequence::Seq;
use nicforge_l5p::toy::driver::{ToyReader, ToyWriter};
use nicforge_l5p::toy::{self, ToyState};

use super::{Dice, Rig, Step};

pub struct ToyRig {
    key: u64,
    start: Start,
    writer: ToyWriter,
    reader: ToyReader,
    sent: Vec<Vec<u8>>,
    got: usize,
    largest: usize,
    /// Whether an error ends the connection instead of the test.
    pub may_break: bool,
    is_broken: bool,
}

impl ToyRig {
    pub fn new(tcpsn: u32, largest: usize) -> Self {
        let start = Start { tcpsn: Seq(tcpsn), number: 0 };
        let key = 0x1234_5678_9abc_def0;
        Self {
            key,
            start,
            writer: ToyWriter::new(start),
            reader: ToyReader::new(key, start),
            sent: Vec::new(),
            got: 0,
            largest,
            may_break: false,
            is_broken: false,
        }
    }
}

impl Rig for ToyRig {
    fn protocol(&self) -> ProtocolId {
        registry::find("toy").unwrap()
    }

    fn state(&self) -> State {
        ToyState::state(self.key)
    }

    fn start(&self) -> Start {
        self.start
    }

    fn next(&mut self, memory: &mut FlatMemory, dice: &mut Dice) -> Step {
        let count = dice.range(0, self.largest);
        let mut data = dice.bytes(count);
        if data.len() > 20 && dice.percent(30) {
            // What looks like a header of a message. The stream is scrambled, so it is scrambled beforehand.
            let fake = toy::prepare(&[0; 20]);
            let number = self.sent.len() as u64;
            let mut mask = toy::prepare(&vec![0; data.len()]);
            toy::seal(self.key, number, &mut mask);
            let at = dice.range(0, data.len() - 8);
            (0..8).for_each(|index| data[at + index] = fake[index] ^ mask[8 + at + index]);
        }
        let piece = self.writer.write(memory, &data);
        let number = self.sent.len() as u64;
        let mut truth = toy::prepare(&data);
        toy::seal(self.key, number, &mut truth);
        self.sent.push(data);
        Step::Message { pieces: vec![piece], number, truth }
    }

    fn sender(&self) -> &dyn Layer5 {
        &self.writer
    }

    fn acknowledge(&mut self, tcpsn: Seq) {
        self.writer.acknowledge(tcpsn);
    }

    fn request(&mut self, tcpsn: Seq) {
        self.reader.l5o_resync_rx_req(tcpsn);
    }

    fn deliver(&mut self, payload: &[u8], received: &Received) -> Option<(Start, State)> {
        self.reader.push(payload, received);
        while !self.is_broken {
            let data = match self.reader.read() {
                Ok(Some(data)) => data,
                Ok(None) => return None,
                Err(error) => {
                    assert!(self.may_break, "{error}");
                    self.is_broken = true;
                    return None;
                }
            };
            let first = data.iter().zip(&self.sent[self.got]).position(|(a, b)| a != b);
            assert!(data == self.sent[self.got], "message {} of {} bytes, differs at {first:?}", self.got, data.len());
            self.got += 1;
        }
        None
    }

    fn is_broken(&self) -> bool {
        self.is_broken
    }

    fn answers(&mut self) -> Vec<ResyncAnswer> {
        self.reader.take_answers()
    }

    fn delivered(&self) -> u64 {
        self.got as u64
    }
}
