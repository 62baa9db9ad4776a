//! The application's part of records, of a drive and of a target.

use nicforge_platform::sim::SimCpu;
use nicforge_platform::{Cpu, Part};

use super::app::{FlowName, RpcApp};
use super::drive::{Read, Reads};
use super::flow::RpcFlow;
use super::message::Message;
use super::records::RecordFlow;
use super::source::{MessagePlace, Source};

impl RpcApp {
    /// Reads what has come, record by record. A record that is not authentic is a defect.
    pub(super) fn read_records(&mut self, cpu: &mut SimCpu, name: FlowName, flow: &mut RpcFlow) {
        let Some(records) = flow.records.clone() else { return };
        let mut records = records.borrow_mut();
        for piece in flow.next_read(flow.readable).into_iter().filter(|piece| piece.len > 0) {
            let (at, len) = (piece.at, piece.len as usize);
            // What comes from a target is moved where it belongs below, unless the NIC did it.
            records.push(if flow.is_storage { cpu.untouched_mut(at, len) } else { cpu.bytes(at, len) });
        }
        loop {
            let before = records.counts().not_offloaded;
            let content = match records.read(cpu) {
                Ok(Some(content)) => content,
                Ok(None) => return,
                Err(_) => {
                    self.results.wrong += 1;
                    return;
                }
            };
            if flow.is_storage && records.counts().not_offloaded > before && !records.leaves_copies_out() {
                self.move_to_file(cpu, flow, &content);
            }
            self.take_content(cpu, name, flow, &content);
        }
    }

    /// The core moves what came from its target into the file's pages.
    fn move_to_file(&self, cpu: &mut SimCpu, flow: &RpcFlow, content: &[u8]) {
        if let Source::PageCache(files) = &self.plan.source {
            let before = cpu.enter(Part::Copy);
            let at = files.part(flow.answered, flow.coming.done);
            cpu.bytes_mut(at, content.len()).copy_from_slice(content);
            cpu.enter(before);
        }
    }

    /// The content of a record: parts of messages.
    fn take_content(&mut self, cpu: &mut SimCpu, name: FlowName, flow: &mut RpcFlow, mut content: &[u8]) {
        let size = self.sizes(flow).0;
        while !content.is_empty() {
            let (part, rest) = content.split_at(content.len().min((size - flow.coming.done) as usize));
            self.results.wrong += u64::from(!flow.coming.read(part));
            content = rest;
            if flow.coming.done == size {
                cpu.work(self.plan.call);
                let message = std::mem::take(&mut flow.coming);
                self.came(cpu, name, flow, &message);
            }
        }
    }

    /// Writes the next record of a message.
    pub(super) fn write_record(
        &mut self,
        cpu: &mut SimCpu,
        flow: &mut RpcFlow,
        records: &mut RecordFlow,
        message: &mut Message,
    ) {
        let content = records.content(self.sizes(flow).1 - message.done);
        let pieces = flow.next_write(content + records.overhead(content));
        let place = MessagePlace { number: message.number, file: message.file, done: message.done };
        let record = records.write(cpu, content, place, pieces, |room| message.write(room));
        let source = if flow.is_storage { &Source::Memory } else { &self.plan.source };
        source.write_record(cpu, records.by(), place, &record, pieces);
    }

    /// A connection is open, to a target perhaps.
    pub(super) fn connected(&mut self, name: FlowName, is_storage: bool) {
        if let (Some(reads), true) = (&mut self.reads, is_storage) {
            reads.connected(name);
        }
    }

    /// Asks the target for what answers wait for. Returns whether there was anything that it could take.
    pub(super) fn ask_target(&mut self, cpu: &mut SimCpu) -> bool {
        let Some(name) = self.reads.as_ref().and_then(Reads::to_ask) else { return false };
        let Some(mut flow) = self.flows.remove(&name) else { return false };
        cpu.enter(Part::App);
        while flow.free >= self.piece(&flow, 0)
            && let Some(reads) = self.reads.as_mut().filter(|reads| reads.to_ask().is_some())
        {
            reads.asks(flow.asked);
            flow.going.push_back(Message::new(cpu.now().as_ps(), flow.asked));
            flow.asked += 1;
            self.write(cpu, &mut flow);
        }
        let has_news = flow.has_news();
        if has_news && !self.untold.contains(&name) {
            self.untold.push(name);
        }
        self.flows.insert(name, flow);
        has_news
    }

    /// What the target was asked for is there, whole.
    pub(super) fn storage_came(&mut self, cpu: &mut SimCpu, flow: &mut RpcFlow, message: &Message) {
        if flow.answered == flow.asked || message.number != flow.answered {
            self.results.wrong += 1;
            return;
        }
        cpu.work(self.plan.storage_work);
        flow.answered += 1;
        if let Some(reads) = &mut self.reads {
            reads.came(cpu.now());
        }
    }

    /// Answers whose data has come from the drive begin. Returns whether there were any.
    pub(super) fn take_reads(&mut self, cpu: &mut SimCpu) -> bool {
        let mut any = false;
        while let Some(Read { flow: name, answer, .. }) = self.reads.as_mut().and_then(|reads| reads.next(cpu.now())) {
            let Some(mut flow) = self.flows.remove(&name) else { continue };
            cpu.enter(Part::App);
            flow.going.push_back(answer);
            self.write(cpu, &mut flow);
            if flow.wrote > 0 && !self.untold.contains(&name) {
                self.untold.push(name);
            }
            self.flows.insert(name, flow);
            any = true;
        }
        any
    }
}
