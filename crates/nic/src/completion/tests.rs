use super::*;

#[test]
fn an_entry_survives_the_wire_format() {
    let completion = Completion {
        mark: u64::MAX,
        entry: 4095,
        len: 9600,
        rss_hash: 0xdead_beef,
        flags: RxFlags(u32::MAX),
        port: 1,
        ring: 65535,
        stamp: Time::from_ps(u64::MAX - 1),
        mbuf: Addr(1 << 40),
        head: 128,
        segment: 1448,
    };
    let words = completion.encode(1);
    let [before @ .., done] = words;
    assert_eq!(Completion::decode(before), completion);
    assert_eq!(done, 1);
}

#[test]
fn the_done_bit_flips_with_every_pass() {
    let mut cursor = Cursor::new(Addr(64), 4, 3 * COMPLETION_BYTES);
    let mut seen = Vec::new();
    for _ in 0..12 {
        seen.push((cursor.at.0, cursor.done, cursor.left()));
        cursor = cursor.next();
    }
    let pass = |done| [(192, done, 4), (384, done, 3), (576, done, 2), (768, done, 1)];
    assert_eq!(seen, [pass(1), pass(0), pass(1)].concat());
}

#[test]
fn the_lookahead_ends_with_the_ring() {
    let cursor = Cursor::new(Addr(64), 4, COMPLETION_BYTES).next();
    assert_eq!(cursor.until(2), cursor.next().next().at);
    assert_eq!(cursor.until(4), cursor.first + 4 * COMPLETION_BYTES);
}
