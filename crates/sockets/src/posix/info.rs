//! `TCP_INFO`, as Linux lays it out.

use std::sync::atomic::Ordering;

use super::data;
use super::link::link;
use super::socket::Socket;
use crate::control::Request;
use crate::layout::State;

/// Bytes of the fields up to Linux 6.18. A program takes as many as it knows.
const BYTES: usize = 280;

/// Numbers that Linux gives to states.
fn state_number(socket: &Socket) -> u8 {
    let finished = socket.page().service.finished.load(Ordering::Acquire) != 0;
    let shut = socket.page().application.shut.load(Ordering::Acquire) & 2 != 0;
    match (socket.state(), finished, shut) {
        (State::Fresh | State::Closed, ..) => 7,
        (State::Listening, ..) => 10,
        (State::Connecting, ..) => 2,
        (State::Connected, false, false) => 1,
        (State::Connected, false, true) => 5,
        (State::Connected, true, false) => 8,
        (State::Connected, true, true) => 9,
    }
}

/// The structure's bytes.
pub fn bytes(socket: &Socket) -> [u8; BYTES] {
    let page = socket.page();
    // Where the service is gone, its last figures stay.
    if socket.state() == State::Connected {
        let _ = link().and_then(|link| link.ask(&socket.request(Request::Figures), &[]));
    }
    let figures = &page.service.figures;
    let mut info = [0u8; BYTES];
    info[0] = state_number(socket);
    let mut word = |at: usize, value: u32| info[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    let mss = figures.mss.load(Ordering::Relaxed);
    let rtt = figures.rtt_us.load(Ordering::Relaxed);
    // tcpi_rto, tcpi_ato, tcpi_snd_mss, tcpi_rcv_mss.
    word(8, (rtt + 4 * figures.rtt_variance_us.load(Ordering::Relaxed)).max(200_000));
    word(12, 40_000);
    word(16, mss);
    word(20, mss);
    // tcpi_unacked in segments.
    word(24, figures.unacknowledged.load(Ordering::Relaxed).div_ceil(mss.max(1)));
    // tcpi_pmtu, tcpi_rcv_ssthresh, tcpi_rtt, tcpi_rttvar, tcpi_snd_ssthresh, tcpi_snd_cwnd, tcpi_advmss.
    word(60, mss + 40);
    word(64, socket.memory.ring_bytes() as u32);
    word(68, rtt);
    word(72, figures.rtt_variance_us.load(Ordering::Relaxed));
    word(76, 0x7fff_ffff);
    word(80, figures.window_segments.load(Ordering::Relaxed));
    word(84, mss);
    // tcpi_reordering, tcpi_rcv_rtt, tcpi_rcv_space, tcpi_total_retrans.
    word(88, 3);
    word(92, rtt);
    word(96, socket.memory.ring_bytes() as u32);
    word(100, figures.retransmits.load(Ordering::Relaxed));
    let mut long = |at: usize, value: u64| info[at..at + 8].copy_from_slice(&value.to_ne_bytes());
    // tcpi_pacing_rate, tcpi_max_pacing_rate: none.
    long(104, u64::MAX);
    long(112, u64::MAX);
    // tcpi_bytes_acked, tcpi_bytes_received.
    let sent = page.application.tx_head.load(Ordering::Relaxed);
    long(120, sent.saturating_sub(data::unsent(socket) as u64));
    long(128, page.service.rx_head.load(Ordering::Relaxed));
    // tcpi_bytes_sent.
    long(200, sent);
    info
}
