use super::*;

#[test]
fn an_entry_survives_the_wire_format() {
    let completion = Completion {
        entry: 4095,
        len: 9600,
        rss_hash: 0xdead_beef,
        flags: RxFlags::L3_GOOD.with(RxFlags::L4_GOOD),
        port: 1,
        ring: 65535,
        stamp: Time::from_ps(u64::MAX - 1),
        mbuf: Addr(1 << 40),
        head: 128,
        segment: 1448,
    };
    let words = completion.encode(1);
    assert_eq!(
        Completion::decode([words[0], words[1], words[2], words[3], words[4]]),
        completion
    );
    assert_eq!(words[7], 1);
}

#[test]
fn the_done_bit_flips_with_every_pass() {
    let mut cursor = Cursor {
        base: Addr(64),
        entries: 4,
        position: 0,
        first: 0,
        stride: COMPLETION_BYTES,
    };
    let bits: Vec<u64> = (0..12)
        .map(|position| {
            cursor.position = position;
            cursor.done()
        })
        .collect();
    assert_eq!(bits, [1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1]);
    // The position is 64 bits wide: nothing special happens at 2^32.
    cursor.position = (1 << 32) - 1;
    let before = cursor.done();
    cursor.position += 1;
    assert_ne!(cursor.done(), before);
}
