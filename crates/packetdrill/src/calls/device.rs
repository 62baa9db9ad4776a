//! The device and the clock: packets in, packets out, time.

use super::*;

pub unsafe extern "C" fn netdev_send(userdata: *mut c_void, packet: *const c_void, len: size_t) -> c_int {
    // SAFETY: packetdrill's packet.
    let (shared, packet) = unsafe { (shared(userdata), input(packet, len)) };
    with(shared, |world| done(packet.map(|packet| world.receive(packet))))
}

/// How long packetdrill may wait for a packet that never comes.
const PACKET_PATIENCE: Time = Time::from_ms(400_000);

pub unsafe extern "C" fn netdev_receive(
    userdata: *mut c_void,
    out: *mut c_void,
    len: *mut size_t,
    at: *mut c_longlong,
) -> c_int {
    let shared = unsafe { shared(userdata) };
    let world = shared.lock();
    let until = world.now + PACKET_PATIENCE;
    let mut world = shared.pass(shared.settle(world), until, true);
    let (time, packet) = world.out.pop_front().unwrap_or((world.now, Vec::new()));
    // SAFETY: packetdrill's places; the buffer has `*len` bytes.
    unsafe {
        let Ok(place) = output(out, *len) else { return fail(Errno::FAULT) };
        let part = packet.len().min(place.len());
        place[..part].copy_from_slice(&packet[..part]);
        *len = part;
        *at = (time.as_ps() / 1_000_000) as c_longlong;
    }
    0
}

pub unsafe extern "C" fn usleep(userdata: *mut c_void, us: c_uint) -> c_int {
    let shared = unsafe { shared(userdata) };
    let world = shared.lock();
    let until = world.now + Time::from_us(us.into());
    drop(shared.pass(shared.settle(world), until, false));
    shared.pause_for_results();
    0
}

pub unsafe extern "C" fn gettimeofday(userdata: *mut c_void, out: *mut timeval, _zone: *mut timezone) -> c_int {
    let shared = unsafe { shared(userdata) };
    let now = returned_at().unwrap_or_else(|| {
        let world = shared.lock();
        let now = world.now;
        // packetdrill spins on the clock shortly before an event: each look takes a microsecond.
        drop(shared.pass(world, now + Time::from_us(1), false));
        now
    });
    let us = now.as_ps() / 1_000_000;
    // SAFETY: packetdrill's place for the time.
    unsafe { out.write(timeval { tv_sec: (us / 1_000_000) as i64, tv_usec: (us % 1_000_000) as i64 }) };
    0
}
