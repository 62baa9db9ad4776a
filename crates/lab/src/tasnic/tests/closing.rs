//! Connections that close, and windows that do.

use std::rc::Rc;

use nicforge_units::Time;

use super::{machine, rate, run, settings};
use crate::tas::build::{Carried, Rpcs, build};

/// Connections that the server's NIC has taken away, and has.
fn closed_and_kept(rpcs: &Rpcs) -> (u64, usize) {
    let Carried::Nic { nic, .. } = &rpcs.software[0].carried else { panic!("no NIC") };
    let nic = Rc::clone(nic);
    let nic = nic.borrow();
    (nic.counters.closed, nic.flows.len())
}

/// Each connection closes after three requests, both ways through the pipeline, and another takes its place and its
/// number, over a clean link and over a bad one.
#[test]
fn connections_close_and_their_state_is_used_again() {
    for loss in [0.0, 0.01] {
        let settings = settings()
            .with("rpc_connections", 8)
            .with("rpc_requests", 3)
            .with("rpc_in_flight", 2)
            .with("rpc_bytes", 3000)
            .with("rpc_app_cores", 2)
            .with("tasnic_linger_ms", 0.2)
            .with("link_loss", loss)
            .with("link_reordered", loss)
            .with("link_duplicates", loss);
        let mut rpcs = build(&machine(), &settings, 1).unwrap();
        let mut before = 0;
        for step in 1..=10 {
            rpcs.world.run_until(Time::from_ms(6 * step)).unwrap();
            let (closed, kept) = closed_and_kept(&rpcs);
            assert!(closed > before, "{loss}: {closed} of them after step {step}");
            assert!(kept <= 32, "{loss}: {kept} states for 8 connections");
            before = closed;
        }
        assert!(before > if loss > 0.0 { 50 } else { 500 }, "{loss}: {before}");
        for software in &rpcs.software {
            let Carried::Nic { nic, .. } = &software.carried else { panic!("no NIC") };
            nic.borrow().check().unwrap();
            let bad: u64 = software.apps.iter().map(|app| app.borrow().bad_entries).sum();
            let wrong: u64 = software.apps.iter().map(|app| app.borrow().results.wrong).sum();
            assert_eq!((bad, wrong, nic.borrow().counters.bad_entries), (0, 0, 0), "{loss}");
        }
    }
}

/// A server that is slow lets its windows close, and updates of them are lost: probes find them open.
#[test]
fn a_closed_window_is_probed() {
    let settings = settings()
        .with("rpc_connections", 4)
        .with("rpc_in_flight", 8)
        .with("rpc_bytes", 6000)
        .with("rpc_answer_bytes", 16)
        .with("rpc_work_cycles", 200_000)
        .with("tas_buffer_kib", 4)
        .with("rpc_clients", "tasnic")
        .with("link_loss", 0.2)
        .with("warmup_ms", 4.0)
        .with("window_ms", 30.0);
    let point = run(&settings);
    assert!(rate(&point) > 5e-4, "{:?}", point.metrics);
    let mut rpcs = build(&machine(), &settings, 1).unwrap();
    let answered = |rpcs: &Rpcs| rpcs.software[1].apps[0].borrow().results.answered;
    let mut before = 0;
    for step in 1..=10 {
        rpcs.world.run_until(Time::from_ms(10 * step)).unwrap();
        assert!(answered(&rpcs) > before, "nothing came in step {step}");
        before = answered(&rpcs);
    }
    let Carried::Nic { nic, .. } = &rpcs.software[1].carried else { panic!("no NIC") };
    assert!(nic.borrow().counters.probes > 0, "{:?}", nic.borrow().counters);
}

/// Entries pass one another in the pipeline: the one that closes waits for those that were written before it.
#[test]
fn an_entry_that_closes_waits_for_those_before_it() {
    use nicforge_platform::Addr;
    use nicforge_tcp::fast::{Bump, Flow, FlowFlags};
    use nicforge_tcp::stack::FourTuple;

    use crate::tas::rings::{Ring, SharedFlow};
    use crate::tasnic::flow::NicFlow;
    use crate::tasnic::stages::applied;
    use crate::tasnic::work::Work;

    for order in [[0, 1, 2], [2, 0, 1], [2, 1, 0], [1, 2, 0]] {
        let mut state = Flow::default();
        state.post.tx_size = 1000;
        let here = std::net::Ipv4Addr::LOCALHOST.into();
        let tuple = FourTuple { local: here, remote: here, local_port: 1, remote_port: 2 };
        let ring = Ring { at: Addr(0), len: 1000 };
        let rings = SharedFlow { receive: ring, transmit: ring };
        let mut flow = NicFlow::new(state, tuple, rings, (0, Time::ZERO));
        let mut bad = 0;
        for (done, entry) in order.into_iter().enumerate() {
            assert!(!flow.state.has(FlowFlags::CLOSING), "{order:?} after {done}");
            let work = Work { bump: Bump { rx: 0, tx: 100, close: entry == 2 }, entry, ..Work::default() };
            applied(&mut flow, &work, Time::ZERO, &mut bad);
        }
        assert!(flow.state.has(FlowFlags::CLOSING), "{order:?}");
        assert_eq!((flow.state.protocol.tx_avail, bad), (300, 0), "{order:?}");
    }
}
