use proptest::prelude::*;

use super::*;

fn to_application() -> impl Strategy<Value = ToApplication> {
    (any::<u64>(), any::<u32>(), any::<u32>(), any::<bool>())
        .prop_map(|(opaque, rx_bump, tx_bump, peer_closed)| ToApplication { opaque, rx_bump, tx_bump, peer_closed })
}

fn from_application() -> impl Strategy<Value = FromApplication> {
    (any::<[u32; 3]>(), any::<[u16; 2]>(), any::<bool>()).prop_map(|(words, halves, no_more_data)| FromApplication {
        rx_bump: words[0],
        tx_bump: words[1],
        flow: words[2],
        group: halves[0],
        bump_seq: halves[1],
        no_more_data,
    })
}

proptest! {
    #[test]
    fn entries_are_read_as_written(arx in to_application(), atx in from_application()) {
        prop_assert_eq!(ToApplication::decode(&arx.encode()), Ok(Some(arx)));
        prop_assert_eq!(FromApplication::decode(&atx.encode()), Ok(Some(atx)));
        prop_assert_eq!(ToApplication::decode(&atx.encode()), Err(EntryError::Type(2)));
        prop_assert_eq!(FromApplication::decode(&arx.encode()), Err(EntryError::Type(1)));
    }

    #[test]
    fn a_queue_keeps_order_and_refuses_when_full(turns in prop::collection::vec(any::<bool>(), 1..200), slots in 1usize..9) {
        let mut memory = vec![[0u8; ENTRY_LEN]; slots];
        let (mut producer, mut consumer) = (Producer::new(), Consumer::<ToApplication>::new());
        let mut model = std::collections::VecDeque::new();
        for (count, push) in (0u32..).zip(turns) {
            if push {
                let entry = ToApplication { rx_bump: count, ..ToApplication::default() };
                prop_assert_eq!(producer.has_room(&memory), model.len() < slots);
                if producer.push(&mut memory, &entry) {
                    model.push_back(entry);
                }
                prop_assert!(model.len() <= slots);
            } else {
                prop_assert_eq!(consumer.pop(&mut memory), Ok(model.pop_front()));
            }
        }
    }
}

#[test]
fn layouts_are_the_supplements() {
    let atx = FromApplication { rx_bump: 1, tx_bump: 2, flow: 3, group: 4, bump_seq: 5, no_more_data: true };
    let bytes = atx.encode();
    assert_eq!(bytes[..20], [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 5, 0, 1, 0, 0, 0]);
    assert_eq!(bytes[20..], [0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0], "type in the last word");
}

#[test]
fn garbage_frees_its_slot_and_is_reported() {
    let mut memory = vec![[0xff; ENTRY_LEN], FromApplication::default().encode()];
    let mut consumer = Consumer::<FromApplication>::new();
    assert!(consumer.pop(&mut memory).is_err());
    assert_eq!(consumer.pop(&mut memory), Ok(Some(FromApplication::default())));
    assert_eq!(consumer.pop(&mut memory), Ok(None));
}
