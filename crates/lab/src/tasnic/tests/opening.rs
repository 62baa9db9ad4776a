//! Thousands of connections that open at once.

use nicforge_units::Time;

use super::{machine, settings};
use crate::settings::Settings;
use crate::tas::build::{Rpcs, build};

/// A server that hardly answers, so that the run is about handshakes.
fn opening() -> Settings {
    settings()
        .with("rpc_connections", 4096)
        .with("rpc_free_clients", true)
        .with("rpc_work_cycles", 1_000_000)
        .with("tas_buffer_kib", 4)
        .with("tcp_rto_min_ms", 1.0)
}

/// Connections that are open at the server, and at the clients, after so many milliseconds.
fn open_after(rpcs: &mut Rpcs, ms: u64) -> [usize; 2] {
    rpcs.world.run_until(Time::from_ms(ms)).unwrap();
    [rpcs.software[0].open(), rpcs.software[1].open()]
}

/// The slow path needs some 5 us for each: three frames that come, one that leaves. A kernel's cores answer requests, too.
#[test]
fn thousands_of_connections_open_in_the_time_that_their_handshakes_take() {
    for (server, cores, work, ms) in
        [("tasnic", 1, 1_000_000, 30), ("tas", 1, 1_000_000, 60), ("linux", 16, 20_000, 60)]
    {
        let settings = opening().with("rpc_server", server).with("rpc_app_cores", cores).with("rpc_work_cycles", work);
        let mut rpcs = build(&machine(), &settings, 1).unwrap();
        assert_eq!(open_after(&mut rpcs, ms), [4096; 2], "{server}");
    }
}

/// All SYNs in one burst overflow the queues on their way; they are repeated at other times than one another.
#[test]
fn a_burst_of_opening_connections_is_repeated_until_all_are_open() {
    let mut rpcs = build(&machine(), &opening().with("rpc_opening", 4096), 1).unwrap();
    let [early, _] = open_after(&mut rpcs, 12);
    assert!(early > 500 && early < 4096, "{early}");
    assert_eq!(open_after(&mut rpcs, 150), [4096; 2]);
    assert!(rpcs.world.hosts[0].devices[0].tally().drops.causes().iter().any(|(cause, _)| *cause == "slow_path_full"));
}
