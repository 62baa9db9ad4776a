//! The application's part of records and of a drive.

use nicforge_platform::sim::SimCpu;
use nicforge_platform::{Cpu, Part};

use super::app::{FlowName, RpcApp};
use super::drive::Read;
use super::flow::RpcFlow;
use super::message::Message;
use super::records::RecordFlow;
use super::source::MessagePlace;

impl RpcApp {
    /// Reads what has come, record by record. A record that is not authentic is a defect.
    pub(super) fn read_records(&mut self, cpu: &mut SimCpu, name: FlowName, flow: &mut RpcFlow) {
        let Some(records) = flow.records.clone() else { return };
        let mut records = records.borrow_mut();
        for piece in flow.next_read(flow.readable).into_iter().filter(|piece| piece.len > 0) {
            records.push(cpu.bytes(piece.at, piece.len as usize));
        }
        loop {
            let content = match records.read(cpu) {
                Ok(Some(content)) => content,
                Ok(None) => return,
                Err(_) => {
                    self.results.wrong += 1;
                    return;
                }
            };
            self.take_content(cpu, name, flow, &content);
        }
    }

    /// The content of a record: parts of messages.
    fn take_content(&mut self, cpu: &mut SimCpu, name: FlowName, flow: &mut RpcFlow, mut content: &[u8]) {
        let size = self.sizes().0;
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
        let content = records.content(self.sizes().1 - message.done);
        let pieces = flow.next_write(content + records.overhead());
        let place = MessagePlace { number: message.number, done: message.done };
        let record = records.write(cpu, content, place, pieces, |room| message.write(room));
        self.plan.source.write_record(cpu, records.by(), place, &record, pieces);
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
