//! What is counted, per layer-5 protocol, under the names that Linux's drivers made known.

/// Counters of one protocol. The engine counts what the NIC does, the driver half what the driver does; sums add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Transmit contexts created.
    pub tx_contexts: u64,
    /// Transmit contexts destroyed.
    pub tx_deleted: u64,
    /// Packets that left with their messages processed.
    pub tx_packets: u64,
    /// Payload bytes of these.
    pub tx_bytes: u64,
    /// Packets out of sequence, each of which needed a recovery.
    pub tx_ooo: u64,
    /// Descriptors that make the NIC read a message's prefix again.
    pub tx_dump_packets: u64,
    /// Bytes of prefix read again.
    pub tx_dump_bytes: u64,
    /// Packets below the start of offload, which leave as they are.
    pub tx_skip_no_sync_data: u64,
    /// Packets below the first kept message, which are dropped.
    pub tx_drop_no_sync_data: u64,
    /// Packets and descriptors that the NIC refused: it never sends what it cannot process.
    pub tx_refused: u64,
    /// Receive contexts created.
    pub rx_contexts: u64,
    /// Receive contexts destroyed.
    pub rx_deleted: u64,
    /// Packets whose every byte was processed and whose every check passed.
    pub rx_packets: u64,
    /// Payload bytes of these.
    pub rx_bytes: u64,
    /// Packets that went up unmodified because a check failed.
    pub rx_failed: u64,
    /// Packets that lay before the context's sequence number.
    pub rx_past: u64,
    /// Packets out of sequence while offloading.
    pub rx_ooo: u64,
    /// Times that the NIC lost track and began to search.
    pub rx_searches: u64,
    /// Requests to software to confirm a header.
    pub rx_resync_req_pkt: u64,
    /// Guesses that turned out false while headers were tracked.
    pub rx_resync_req_skip: u64,
    /// Answers that let offloading go on.
    pub rx_resync_res_ok: u64,
    /// Answers that say the guess was false.
    pub rx_resync_res_retry: u64,
    /// Answers that fit no open request.
    pub rx_resync_res_skip: u64,
    /// Request-response states added.
    pub rx_setup: u64,
    /// Request-response states refused.
    pub rx_setup_fail: u64,
    /// Request-response states deleted.
    pub rx_teardown: u64,
    /// Payload bytes written straight to their destination.
    pub rx_placed_bytes: u64,
}

impl Counters {
    /// Adds what another counted.
    pub fn add(&mut self, other: &Self) {
        self.tx_contexts += other.tx_contexts;
        self.tx_deleted += other.tx_deleted;
        self.tx_packets += other.tx_packets;
        self.tx_bytes += other.tx_bytes;
        self.tx_ooo += other.tx_ooo;
        self.tx_dump_packets += other.tx_dump_packets;
        self.tx_dump_bytes += other.tx_dump_bytes;
        self.tx_skip_no_sync_data += other.tx_skip_no_sync_data;
        self.tx_drop_no_sync_data += other.tx_drop_no_sync_data;
        self.tx_refused += other.tx_refused;
        self.rx_contexts += other.rx_contexts;
        self.rx_deleted += other.rx_deleted;
        self.rx_packets += other.rx_packets;
        self.rx_bytes += other.rx_bytes;
        self.rx_failed += other.rx_failed;
        self.rx_past += other.rx_past;
        self.rx_ooo += other.rx_ooo;
        self.rx_searches += other.rx_searches;
        self.rx_resync_req_pkt += other.rx_resync_req_pkt;
        self.rx_resync_req_skip += other.rx_resync_req_skip;
        self.rx_resync_res_ok += other.rx_resync_res_ok;
        self.rx_resync_res_retry += other.rx_resync_res_retry;
        self.rx_resync_res_skip += other.rx_resync_res_skip;
        self.rx_setup += other.rx_setup;
        self.rx_setup_fail += other.rx_setup_fail;
        self.rx_teardown += other.rx_teardown;
        self.rx_placed_bytes += other.rx_placed_bytes;
    }

    /// Each counter with its name: `tx_tls_ooo` for protocol `tls`.
    pub fn named(&self, protocol: &str) -> Vec<(String, u64)> {
        let (out, inward) = if protocol == "tls" { ("encrypted", "decrypted") } else { ("offload", "offload") };
        let tx = |name: &str, value| (format!("tx_{protocol}_{name}"), value);
        let rx = |name: &str, value| (format!("rx_{protocol}_{name}"), value);
        vec![
            tx("ctx", self.tx_contexts),
            tx("del", self.tx_deleted),
            tx(&format!("{out}_packets"), self.tx_packets),
            tx(&format!("{out}_bytes"), self.tx_bytes),
            tx("ooo", self.tx_ooo),
            tx("dump_packets", self.tx_dump_packets),
            tx("dump_bytes", self.tx_dump_bytes),
            tx("skip_no_sync_data", self.tx_skip_no_sync_data),
            tx("drop_no_sync_data", self.tx_drop_no_sync_data),
            tx("refused", self.tx_refused),
            rx("ctx", self.rx_contexts),
            rx("del", self.rx_deleted),
            rx(&format!("{inward}_packets"), self.rx_packets),
            rx(&format!("{inward}_bytes"), self.rx_bytes),
            rx("err", self.rx_failed),
            rx("past", self.rx_past),
            rx("ooo", self.rx_ooo),
            rx("resync_req_start", self.rx_searches),
            rx("resync_req_pkt", self.rx_resync_req_pkt),
            rx("resync_req_skip", self.rx_resync_req_skip),
            rx("resync_res_ok", self.rx_resync_res_ok),
            rx("resync_res_retry", self.rx_resync_res_retry),
            rx("resync_res_skip", self.rx_resync_res_skip),
            rx("setup", self.rx_setup),
            rx("setup_fail", self.rx_setup_fail),
            rx("teardown", self.rx_teardown),
            rx("placed_bytes", self.rx_placed_bytes),
        ]
    }
}
