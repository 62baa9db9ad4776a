//! Scripts of threads in each stage: their memory commands, and where the work proper is done (marks).

use nicforge_platform::sim::npu::{Command, Firmware, Op, Script};
use nicforge_units::Cycles;

use super::work::Kind;

/// The pre-processing stage has read the header, or the event.
pub const PRE: u8 = 1;
/// The protocol stage wants the connection, in the order of its queue.
pub const LOCK: u8 = 2;
/// It has the connection's state.
pub const PROCESS: u8 = 3;
/// The post-processing stage wants its part of the state.
pub const LOOK_UP: u8 = 4;
/// It has it.
pub const POST: u8 = 5;
/// Run to completion: the payload moves now, and the thread waits for it.
pub const MOVE: u8 = 6;

const fn op(command: Command, mark: u8) -> Op {
    Op { command, mark }
}

// Work queues of the memory units hand an item to a thread that waits for one, so a hand-off is one command: the
// producer's. Between islands it goes by IMEM, within one by CLS.

/// Header and metadata from CTM; look-up; swapped headers and summary to CTM; on to the reordering block.
const PRE_RX: [Op; 4] = [op(Command::Ctm, 0), op(Command::Local, PRE), op(Command::Ctm, 0), op(Command::Imem, 0)];
/// A buffer; Ethernet and IP headers; on to the flow-group.
const PRE_TX: [Op; 3] = [op(Command::Ctm, PRE), op(Command::Ctm, 0), op(Command::Imem, 0)];
/// On to the flow-group.
const PRE_AC: [Op; 2] = [op(Command::Local, PRE), op(Command::Imem, 0)];
/// Header summary of 20 B; CAM; result of 56 B to the ring in CLS.
const PROTOCOL_RX: [Op; 3] = [op(Command::Ctm, 0), op(Command::Local, LOCK), op(Command::Cls, PROCESS)];
const PROTOCOL_OTHER: [Op; 2] = [op(Command::Local, LOCK), op(Command::Cls, PROCESS)];
/// Result from the ring; state; acknowledgment; statistics; descriptor; command to the DMA manager.
const POST_RX: [Op; 6] = [
    op(Command::Cls, 0),
    op(Command::Local, LOOK_UP),
    op(Command::Ctm, POST),
    op(Command::Cls, 0),
    op(Command::Imem, 0),
    op(Command::Imem, 0),
];
/// Result; state; TCP header; command to the DMA manager.
const POST_TX: [Op; 4] =
    [op(Command::Cls, 0), op(Command::Local, LOOK_UP), op(Command::Ctm, POST), op(Command::Imem, 0)];
/// Result; state; message to the queue manager; descriptor back to its pool.
const POST_AC: [Op; 4] =
    [op(Command::Cls, 0), op(Command::Local, LOOK_UP), op(Command::Imem, POST), op(Command::Imem, 0)];
/// Descriptor to the engine.
const DMA: [Op; 1] = [op(Command::Imem, 0)];
/// Signal of the engine; message to who waits, on the same island.
const DMA_DONE: [Op; 1] = [op(Command::Cls, 0)];
/// Place in the context queue; command to the DMA manager on the same island.
const CONTEXT: [Op; 2] = [op(Command::Local, 0), op(Command::Cls, 0)];
/// The flow's slot.
const QUEUE: [Op; 1] = [op(Command::Emem, 0)];
/// The flow's slot; event to pre-processing.
const DEPART: [Op; 2] = [op(Command::Emem, 0), op(Command::Imem, 0)];

/// Headers from CTM; what the stages wait for; changed headers to CTM; on to who is next.
const STAGES: [Op; 4] = [op(Command::Ctm, 0), op(Command::Local, PRE), op(Command::Ctm, 0), op(Command::Imem, 0)];

/// From one end to the other: the stages' commands without those that hand work on, and the payload between.
const WHOLE_RX: [Op; 10] = [
    op(Command::Ctm, 0),
    op(Command::Local, PRE),
    op(Command::Ctm, 0),
    op(Command::Local, LOCK),
    op(Command::None, PROCESS),
    op(Command::Local, LOOK_UP),
    op(Command::Ctm, POST),
    op(Command::Cls, 0),
    op(Command::Imem, 0),
    op(Command::Imem, MOVE),
];
const WHOLE_TX: [Op; 7] = [
    op(Command::Imem, 0),
    op(Command::Ctm, PRE),
    op(Command::Local, LOCK),
    op(Command::None, PROCESS),
    op(Command::Local, LOOK_UP),
    op(Command::Ctm, POST),
    op(Command::Imem, MOVE),
];
const WHOLE_AC: [Op; 7] = [
    op(Command::Imem, 0),
    op(Command::Local, PRE),
    op(Command::Local, LOCK),
    op(Command::None, PROCESS),
    op(Command::Local, LOOK_UP),
    op(Command::Imem, POST),
    op(Command::Imem, MOVE),
];

/// The scripts of all stages.
#[derive(Clone, Debug)]
pub struct Scripts(pub Firmware);

impl Scripts {
    fn of(&self, kind: Kind, scripts: [(&'static [Op], Cycles); 3]) -> Script {
        let (ops, cycles) = match kind {
            Kind::Rx => scripts[0],
            Kind::Tx => scripts[1],
            Kind::Ac | Kind::Retx => scripts[2],
        };
        Script { ops, cycles }
    }

    /// Pre-processing of an event.
    pub fn pre(&self, kind: Kind) -> Script {
        let (rx, tx, ac) = (self.0.pre_rx, self.0.pre_tx, self.0.pre_ac);
        self.of(kind, [(&PRE_RX, rx), (&PRE_TX, tx), (&PRE_AC, ac)])
    }

    /// Its protocol stage.
    pub fn protocol(&self, kind: Kind) -> Script {
        let (rx, tx, ac) = (self.0.protocol_rx, self.0.protocol_tx, self.0.protocol_ac);
        self.of(kind, [(&PROTOCOL_RX, rx), (&PROTOCOL_OTHER, tx), (&PROTOCOL_OTHER, ac)])
    }

    /// Its post-processing.
    pub fn post(&self, kind: Kind) -> Script {
        let (rx, tx, ac) = (self.0.post_rx, self.0.post_tx, self.0.post_ac);
        self.of(kind, [(&POST_RX, rx), (&POST_TX, tx), (&POST_AC, ac)])
    }

    /// All of it on one FPC, the DMA manager's part included.
    pub fn whole(&self, kind: Kind) -> Script {
        let all = |pre: Cycles, protocol: Cycles, post: Cycles| Cycles(pre.0 + protocol.0 + post.0 + 2 * self.0.dma.0);
        let rx = all(self.0.pre_rx, self.0.protocol_rx, self.0.post_rx);
        let tx = all(self.0.pre_tx, self.0.protocol_tx, self.0.post_tx);
        let ac = all(self.0.pre_ac, self.0.protocol_ac, self.0.post_ac);
        self.of(kind, [(&WHOLE_RX, rx), (&WHOLE_TX, tx), (&WHOLE_AC, ac)])
    }

    /// Stages before and behind the pipeline, which take so many instructions.
    pub fn stages(&self, cycles: Cycles) -> Script {
        Script { ops: &STAGES, cycles }
    }

    /// A DMA manager begins an operation.
    pub fn dma(&self) -> Script {
        Script { ops: &DMA, cycles: self.0.dma }
    }

    /// It hears that one is complete.
    pub fn dma_done(&self) -> Script {
        Script { ops: &DMA_DONE, cycles: self.0.dma }
    }

    /// A context manager handles an entry or a doorbell.
    pub fn context(&self) -> Script {
        Script { ops: &CONTEXT, cycles: self.0.context }
    }

    /// The queue manager takes an update.
    pub fn queue(&self) -> Script {
        Script { ops: &QUEUE, cycles: self.0.queue }
    }

    /// It lets a flow depart.
    pub fn depart(&self) -> Script {
        Script { ops: &DEPART, cycles: self.0.queue }
    }
}
