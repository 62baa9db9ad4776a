//! Whole systems with several cores, each with a process and connections of its own: TCP streams arrive
//! as they were sent, whichever core receives them, copies them out of the NIC, and sends.

use nicforge_interfaces::describe::Software;
use nicforge_lab::settings::Catalogue;
use nicforge_lab::settings::Settings;

use super::measure;

fn settings(workload: &str, interface: &str, cores: usize) -> Settings {
    super::settings(workload, interface, "OCC").with("cores", cores).with("streams", 8)
}

/// Whether its driver does what Config says, as one with registers for that does.
fn spreads(interface: &str) -> impl Iterator<Item = bool> {
    [false, true].into_iter().filter(move |&spread| !spread || interface != "conventional")
}

#[test]
fn streams_arrive_over_all_cores_whatever_the_link_does() {
    for interface in Catalogue::shipped().interfaces_of(Software::Kernel) {
        for cores in [2, 4] {
            for spread in spreads(interface) {
                let metrics = measure(
                    &settings("tcp_receive", interface, cores)
                        .with("link_loss", 0.002)
                        .with("link_duplicates", 0.02)
                        .with("link_reordered", 0.02)
                        .with("receive_thread", spread)
                        .with("spread_receive", spread)
                        .with("window_ms", 4.0),
                );
                let what = format!("{interface}, {cores} cores, {spread}: {metrics:?}");
                assert!(metrics.bandwidth_gbps.unwrap() > 0.05, "{what}");
            }
        }
    }
}

#[test]
fn clean_links_lose_nothing_and_drivers_do_nothing_wrong() {
    for interface in Catalogue::shipped().interfaces_of(Software::Kernel) {
        for (workload, cores) in [("tcp_receive", 4), ("tcp_transmit", 4), ("web_server", 2), ("nat_gateway", 2)] {
            for spread in spreads(interface) {
                let metrics = measure(
                    &settings(workload, interface, cores).with("receive_thread", spread).with("spread_receive", spread),
                );
                let what = format!("{interface} {workload}, {spread}: {metrics:?}");
                assert!(metrics.bandwidth_gbps.unwrap() > 0.05, "{what}");
                // Two links can bring a gateway more than it forwards; then its FIFOs fill.
                let overload = |cause: &str| workload == "nat_gateway" && cause == "fifo_full";
                let drops = metrics.drops.iter();
                let wrong: u64 = drops.filter(|(cause, _)| !overload(cause)).map(|(_, count)| count).sum();
                assert_eq!(wrong, 0, "{what}");
            }
        }
    }
}

#[test]
fn a_thread_that_sends_for_all_cores_sends_everything() {
    for interface in ["sinic", "v_sinic_zero_copy"] {
        let metrics = measure(&settings("tcp_transmit", interface, 4).with("transmit_thread", true));
        assert!(metrics.bandwidth_gbps.unwrap() > 0.5, "{metrics:?}");
        assert_eq!(metrics.drops.values().sum::<u64>(), 0, "{metrics:?}");
    }
}

#[test]
fn the_same_point_measures_the_same_on_several_cores() {
    for interface in ["conventional", "v_sinic_zero_copy"] {
        let settings = settings("tcp_receive", interface, 3);
        assert_eq!(measure(&settings), measure(&settings), "{interface}");
    }
}

/// At 1 GHz one core is far from the wire. Where every core receives for itself, four take much more
/// than one; where one core receives for all, it is the limit.
#[test]
fn more_cores_receive_more_where_packets_are_spread() {
    let bandwidth = |cores: usize, spread: bool| {
        let metrics = measure(
            &settings("tcp_receive", "v_sinic_zero_copy", cores)
                .with("cpu_ghz", 1.0)
                .with("receive_thread", spread)
                .with("spread_receive", spread)
                .with("warmup_ms", 3.0)
                .with("window_ms", 4.0),
        );
        metrics.bandwidth_gbps.unwrap()
    };
    let (one, steered, spread) = (bandwidth(1, false), bandwidth(4, false), bandwidth(4, true));
    assert!(spread > 1.5 * one && spread > steered, "{one} {steered} {spread}");
}
