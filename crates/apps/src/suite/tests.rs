use nicforge_wire::checksum;
use nicforge_wire::parse_frame;

use super::{check, frames};
use crate::counter::Counter;
use crate::kvs::Kvs;
use crate::l2fwd::L2Fwd;
use crate::l3fwd::L3Fwd;
use crate::lb::Lb;
use crate::nat::Nat;
use crate::synthetic::Synthetic;

#[test]
fn shipped_applications_pass() {
    check::<L2Fwd>();
    check::<L3Fwd>();
    check::<Nat>();
    check::<Lb>();
    check::<Synthetic>();
    check::<Counter>();
    check::<Kvs>();
}

#[test]
fn whole_frames_are_well_formed() {
    for frame in frames::all() {
        let summary = parse_frame(&frame.bytes).unwrap_or_else(|error| panic!("{}: {error:?}", frame.name));
        assert_ne!(checksum::verify_l3(&frame.bytes, &summary), Some(false), "{}", frame.name);
    }
}
