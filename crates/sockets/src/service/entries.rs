//! ATX entries: each is validated, and one that makes no sense is counted against its application.

use super::Service;
use crate::layout::{FLAG_MORE, Kind, QUEUE_ENTRIES};
use crate::queue::{Message, Taken};
use crate::shared::Direction;

impl Service {
    /// Takes all entries of all contexts. Returns how many there were.
    pub(super) fn take_entries(&mut self) -> usize {
        let mut taken = 0;
        for index in 0..self.applications.capacity() {
            if self.applications.get(index).is_some_and(|a| a.context.as_ref().is_some_and(|context| context.ready())) {
                taken += self.take_from(index);
            }
        }
        taken
    }

    /// At most one queue's worth, so that an application that never stops does not hold up the others.
    pub(super) fn take_from(&mut self, index: usize) -> usize {
        for taken in 0..QUEUE_ENTRIES {
            let application = &mut self.applications[index];
            let Some(context) = &mut application.context else { return taken };
            let serial = application.serial;
            let valid = match context.consumer.take(context.memory.queue(Direction::ToService)) {
                Taken::Empty => return taken,
                Taken::Unknown(_) => false,
                Taken::Message(message) => self.apply(serial, message),
            };
            if !valid {
                self.applications[index].refused += 1;
                self.refused += 1;
            }
        }
        QUEUE_ENTRIES
    }

    /// Does what an entry says, if the application may.
    fn apply(&mut self, serial: u64, message: Message) -> bool {
        let Some(index) = self.find(message.flow) else {
            // The socket may just have ended in the stack; its application could not know.
            return message.flow != 0;
        };
        let flow = &mut self.flows[index];
        if matches!(message.kind, Kind::Attach | Kind::Accepted) {
            if flow.key != message.word {
                return false;
            }
            if !flow.contexts.contains(&serial) {
                flow.contexts.push(serial);
            }
            if message.kind == Kind::Accepted {
                self.taken_over(index, serial);
            }
            return true;
        }
        if !flow.contexts.contains(&serial) {
            return false;
        }
        if message.kind == Kind::Option {
            self.set_option(index, message.rx_bump, message.word);
            return true;
        }
        let (rx, tx) = (message.rx_bump as usize, message.tx_bump as usize);
        if rx > flow.memory.ring_bytes() - flow.rx_free || tx > flow.tx_free() || (tx > 0 && flow.finish_wanted) {
            flow.refused += 1;
            return false;
        }
        flow.rx_free += rx;
        flow.tx_ready += tx;
        if tx > 0 {
            flow.more_follows = message.flags & FLAG_MORE != 0;
        }
        match message.kind {
            Kind::Bump => {}
            Kind::Close => flow.announced = true,
            Kind::Rearm => flow.send_token(),
            Kind::Finish => flow.finish_wanted = true,
            Kind::Deaf => flow.deaf = true,
            Kind::Attach | Kind::Accepted | Kind::Incoming | Kind::Option => return false,
        }
        self.due.insert(message.flow);
        true
    }
}
