//! All systems and the links between them, in one schedule: the earliest actor runs, ties go to
//! the lowest number. Actors are each system's NICs, then its cores, system by system.

use nicforge_units::Time;

use super::net::{Actor, Net, Others};
use super::system::System;
use crate::run::RunError;

/// Whole systems on their links.
pub struct World {
    /// The systems; the first is the one that is looked at.
    pub systems: Vec<System>,
    net: Net,
}

impl World {
    /// `systems`, of which NIC `n` of system `s` is linked to `peers[s][n]`.
    pub fn new(systems: Vec<System>, peers: Vec<Vec<(usize, usize)>>) -> World {
        let mut world = World { net: Net::new(&systems, peers), systems };
        for system in 0..world.systems.len() {
            world.net.carry_all(&mut world.systems, system);
        }
        world
    }

    /// Runs until `time`.
    ///
    /// # Errors
    /// When nothing will ever happen again before.
    pub fn run_until(&mut self, time: Time) -> Result<(), RunError> {
        loop {
            let Some((actor, due)) = self.net.earliest() else {
                return Err(self.stuck(time));
            };
            if due >= time {
                return Ok(());
            }
            for system in &mut self.systems {
                system.host.hierarchy.no_more_before(due);
            }
            match actor {
                Actor::Nic { system, number } => {
                    self.net.step_nic(&mut self.systems, system, number);
                }
                Actor::Core { system, number } => self.step_core(system, number),
            }
        }
    }

    fn step_core(&mut self, system: usize, number: usize) {
        let (before, rest) = self.systems.split_at_mut(system);
        if let Some((here, after)) = rest.split_first_mut() {
            let mut others = Others { system, before, after, net: &mut self.net };
            here.step_core(number, &mut others);
        }
        self.net.carry_all(&mut self.systems, system);
    }

    /// The error of a world in which nothing will ever move again.
    pub fn stuck(&self, at: Time) -> RunError {
        let describe = |(number, system): (usize, &System)| format!("system {number}: {}", system.kernel.describe());
        RunError::Stuck { at, inside: 0, actors: self.systems.iter().enumerate().map(describe).collect() }
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::Catalogue;
    use nicforge_interfaces::kernel::registry::KERNEL_INTERFACES;
    use nicforge_interfaces::sinic::registers::{Tag, rx_done};
    use nicforge_platform::sim::Devices;

    use super::*;
    use crate::machine::{Machine, parse_machine};
    use crate::settings::Settings;
    use crate::systems::build::build;
    use crate::systems::measure::measure;
    use crate::systems::nic_slot::NicSlots;
    use crate::systems::process::AnyProcess;

    fn machine() -> Machine {
        let text = include_str!("../../../../machines/m5-10gbe.toml");
        let path = std::path::Path::new("machines/m5-10gbe.toml");
        parse_machine(text, path).unwrap()
    }

    /// The end that sends, of either kind of system, writes what the other one should write: TCP carries
    /// it faithfully, and the run fails.
    #[test]
    fn bytes_that_the_peer_should_not_have_sent_fail_the_run() {
        let machine = machine();
        for (workload, sender) in [("tcp_receive", 1), ("tcp_transmit", 0), ("nat_gateway", 2)] {
            let settings = Settings::for_machine(&Catalogue::shipped(), &machine)
                .with("workload", workload)
                .with("interface", "v_sinic_zero_copy")
                .with("placement", "OCC")
                .with("streams", 2)
                .with("warmup_ms", 1.0)
                .with("window_ms", 1.0);
            for wrong in [false, true] {
                let mut world = build(&machine, &settings, 1).unwrap();
                let connection = &mut world.systems[sender].kernel.connections[1];
                connection.plan.opens ^= wrong;
                match (wrong, measure(world, &settings, &mut |_, _| {})) {
                    (false, Ok(_)) => {}
                    (true, Err(RunError::WrongBytes { bytes })) => assert!(bytes > 0),
                    (_, other) => panic!("{workload}, {wrong}: {other:?}"),
                }
            }
        }
    }

    /// A frame that a NIC swallows is sent again by TCP: only counting shows it.
    #[test]
    fn a_frame_that_is_nowhere_fails_the_run() {
        let machine = machine();
        for &(interface, _) in KERNEL_INTERFACES {
            let settings = Settings::for_machine(&Catalogue::shipped(), &machine)
                .with("workload", "tcp_receive")
                .with("interface", interface)
                .with("warmup_ms", 1.0)
                .with("window_ms", 1.0);
            for system in [0, 1] {
                let mut world = build(&machine, &settings, 1).unwrap();
                world.systems[system].nics[0].arrived.0 += 1;
                let result = measure(world, &settings, &mut |_, _| {});
                assert!(matches!(result, Err(RunError::FramesLost { .. })), "{interface}: {result:?}");
            }
        }
    }

    /// Both ends of a connection write and nobody reads: buffers fill up, and TCP's probes go on for
    /// ever. Where one of them reads, nothing of the kind is said.
    #[test]
    fn two_processes_that_only_write_stand_still_for_ever() {
        let machine = machine();
        let settings = Settings::for_machine(&Catalogue::shipped(), &machine)
            .with("workload", "tcp_transmit")
            .with("interface", "conventional")
            .with("socket_kib", 16)
            .with("warmup_ms", 2.0)
            .with("window_ms", 2.0);
        for deaf in [false, true] {
            let mut world = build(&machine, &settings, 1).unwrap();
            if deaf {
                world.systems[1].kernel.processors[0].process = writer(&machine, &settings);
            }
            let result = measure(world, &settings, &mut |_, _| {});
            match (deaf, result) {
                (false, Ok(point)) => assert!(point.steadiness.is_steady()),
                (true, Err(stuck @ RunError::Stuck { .. })) => {
                    assert!(stuck.to_string().contains("waiting Writable"), "{stuck}");
                }
                (_, other) => panic!("{deaf}: {other:?}"),
            }
        }
    }

    /// What runs at the far end where the near one reads.
    fn writer(machine: &Machine, settings: &Settings) -> AnyProcess {
        let settings = settings.clone().with("workload", "tcp_receive");
        let mut world = build(machine, &settings, 1).unwrap();
        let process = &mut world.systems[1].kernel.processors[0].process;
        std::mem::replace(process, AnyProcess::None)
    }

    /// The system that is looked at opens a connection at 200 us; at the other end an interrupt is
    /// held back for 10 us before anybody looks. A core that waits for the answer from before it is
    /// sent sees time-outs, and then the answer when it comes.
    #[test]
    fn a_wait_ends_with_a_frame_that_was_not_sent_when_it_began() {
        let machine = machine();
        let timeout = machine.integrated.as_ref().unwrap().sinic.wait_timeout;
        let settings = Settings::for_machine(&Catalogue::shipped(), &machine)
            .with("workload", "tcp_receive")
            .with("interface", "sinic")
            .with("placement", "OCC");
        let mut world = build(&machine, &settings, 1).unwrap();
        let mut from = Time::from_us(205);
        world.run_until(from).unwrap();
        let (here, after) = world.systems.split_first_mut().unwrap();
        assert_eq!(here.kernel.counters.packets_out, 1);
        assert_eq!(after[0].kernel.counters.packets_out, 0);
        let mut others = Others { system: 0, before: &mut [], after, net: &mut world.net };
        let mut nics = NicSlots { slots: &mut here.nics, elsewhere: &mut others };
        for _ in 0..40 {
            let (value, given) = nics.read(&mut here.host, Tag::RxWait.of(0, 0), from);
            if rx_done::COMPLETE.is_set(value) {
                assert!(given < from + timeout, "{given}");
                assert!(given > Time::from_us(210), "{given}");
                assert_eq!(after[0].kernel.counters.packets_out, 1);
                return;
            }
            assert_eq!(given, from + timeout);
            from = given;
        }
        panic!("no answer came by {from}");
    }
}
