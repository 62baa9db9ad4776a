//! Connections whose application hands its TLS keys over.

use std::sync::atomic::Ordering;

use rustix::io::Errno;

use super::Service;
use super::flow::Role;
use crate::control::RequestMessage;
use crate::shared::Ring;
use crate::tls::{CryptoInfo, TLS_RX, TLS_TX};
use crate::transport::Transport;
use crate::transport::secure::Way;

impl Service {
    /// Encrypts one direction of a connection.
    pub(super) fn encrypt(&mut self, index: usize, message: &RequestMessage, info: &[u8]) -> Result<(), Errno> {
        let at = self.possessed(index, message)?;
        let info = CryptoInfo::parse(info)?;
        let Role::Connected(id) = self.flows[at].role else { return Err(Errno::NOTCONN) };
        if self.flows[at].direct.is_some() {
            return Err(Errno::OPNOTSUPP);
        }
        match message.value as i32 {
            TLS_TX => {
                // What the application wrote before leaves as it is.
                let raw = vec![0; self.flows[at].tx_ready];
                self.route.secure(id, Way::Outward, &info, &raw)?;
            }
            TLS_RX => {
                let raw = self.unread(at);
                self.route.secure(id, Way::Inward, &info, &raw)?;
                let flow = &mut self.flows[at];
                flow.rx_head -= raw.len() as u64;
                flow.rx_free += raw.len();
                let page = &flow.memory.page().service;
                page.rx_head.store(flow.rx_head, Ordering::SeqCst);
                // The stream's end lies behind these bytes, and is shown again behind what they hold.
                flow.finish_shown = false;
                page.finished.store(0, Ordering::SeqCst);
            }
            _ => return Err(Errno::NOPROTOOPT),
        }
        // Before the answer: the application must not find a ring that is empty for this reason only.
        self.pump(at);
        Ok(())
    }

    /// Bytes in a receive ring that the application has not read. It holds its lock, and reads none meanwhile.
    fn unread(&self, at: usize) -> Vec<u8> {
        let flow = &self.flows[at];
        let tail = flow.memory.page().application.rx_tail.load(Ordering::SeqCst);
        let filled = flow.memory.ring_bytes() - flow.rx_free;
        let bytes = (flow.rx_head.saturating_sub(tail) as usize).min(filled);
        let mut raw = vec![0; bytes];
        flow.memory.drain(Ring::Receive, flow.rx_head - bytes as u64, &mut raw);
        raw
    }
}
