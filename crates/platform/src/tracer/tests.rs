use super::*;

const DEVICE: Here = Here::Device { number: 0, landed: Time::from_ns(5) };

fn key(ns: u64, port: u8) -> PacketKey {
    PacketKey { stamp: Time::from_ns(ns), port }
}

fn comes(tracer: &mut Tracer, key: PacketKey) {
    tracer.packet(key, Moment::Came { fifo: 0 }, (DEVICE, key.stamp), Counts::default);
}

fn sent(tracer: &mut Tracer, key: PacketKey, queue: Option<u16>) {
    let at = key.stamp + Time::from_ns(9);
    let descriptor = at;
    tracer.packet(key, Moment::Gathering { queue, descriptor }, (DEVICE, at), Counts::default);
    let moment = Moment::Sent { gathered: at, first_bit: at, last_bit: at };
    tracer.packet(key, moment, (DEVICE, at), Counts::default);
}

#[test]
fn packets_are_evenly_spread_however_many_come() {
    for count in [3, 8, 9, 100, 1000] {
        let mut tracer = Tracer::new(8);
        for number in 0..count {
            comes(&mut tracer, key(number, 0));
            tracer.packet(key(number, 0), Moment::Diverted, (DEVICE, Time::from_ns(number)), Counts::default);
            sent(&mut tracer, key(number, 0), None);
        }
        assert!(!tracer.follows());
        assert_eq!(tracer.came(), count);
        let packets = tracer.into_packets();
        assert_eq!(packets.len() as u64, count.min(8), "of {count}");
        let numbers: Vec<u64> = packets.iter().map(|packet| packet.number).collect();
        let gaps = numbers.windows(2).map(|pair| pair[1] - pair[0]);
        let even = count / 8;
        assert!(gaps.clone().all(|gap| gap <= 3 * even + 1), "of {count}: {numbers:?}");
        // Two ports that take turns both have some.
        let odd = numbers.iter().filter(|number| *number % 2 == 1).count();
        assert!(count < 8 || (2..=6).contains(&odd), "of {count}: {numbers:?}");
    }
}

#[test]
fn a_packet_that_is_sent_is_told_from_one_of_the_same_time_by_port_and_core() {
    let mut tracer = Tracer::new(4);
    let (first, second) = (key(1, 0), key(1, 1));
    comes(&mut tracer, first);
    comes(&mut tracer, second);
    for (key, core) in [(first, 2), (second, 3)] {
        let at = Time::from_ns(5);
        tracer.packet(key, Moment::Pushed { port: 1 }, (Here::Core(core), at), Counts::default);
    }
    // Both leave by port 1.
    sent(&mut tracer, key(1, 1), Some(3));
    assert!(tracer.open.contains_key(&first) && !tracer.open.contains_key(&second));
    sent(&mut tracer, key(1, 1), Some(2));
    assert!(!tracer.follows());
}

#[test]
fn moments_of_a_burst_are_those_of_its_packets() {
    let mut tracer = Tracer::new(4);
    comes(&mut tracer, key(1, 0));
    let tell = |tracer: &mut Tracer, moment, ns| {
        tracer.burst(0, moment, Time::from_ns(ns), (Counts::default(), Time::from_ns(ns + 50)));
    };
    tell(&mut tracer, BurstMoment::Poll, 10);
    tell(&mut tracer, BurstMoment::Polled { packets: 2 }, 20);
    let on_core = |tracer: &mut Tracer, moment, ns| {
        tracer.packet(key(1, 0), moment, (Here::Core(0), Time::from_ns(ns)), Counts::default);
    };
    on_core(&mut tracer, Moment::Handling { index: 1 }, 30);
    on_core(&mut tracer, Moment::Handled, 40);
    tell(&mut tracer, BurstMoment::Flush, 41);
    on_core(&mut tracer, Moment::Pushed { port: 0 }, 45);
    tell(&mut tracer, BurstMoment::Rung, 50);
    // The next burst is not its own.
    tell(&mut tracer, BurstMoment::Poll, 60);
    tell(&mut tracer, BurstMoment::Flush, 70);
    let packets = tracer.into_packets();
    let times: Vec<f64> = packets[0].events.iter().map(|event| event.at.as_ns()).collect();
    assert_eq!(times, [1.0, 10.0, 20.0, 30.0, 40.0, 41.0, 45.0, 50.0, 100.0]);
}
