//! The shared suite; tests/flexnic.rs has what is special to this interface.

use nicforge_flexnic::p4::{Direction, Transfer};
use nicforge_platform::{AddressSpace, Run};

use super::engine::{BAD_CACHE, Engine, Reach};

#[test]
fn it_passes_the_shared_suite() {
    nicforge_interfaces::suite::check::<super::FlexNic>();
}

/// Memory and the last-level cache are there to choose, a core's own is not.
#[test]
fn a_transfer_to_a_cores_own_cache_is_refused() {
    let space = AddressSpace::default();
    let mut engine = Engine::new(space.registered());
    let reach = Reach { entry: None, buffer: Run { at: nicforge_platform::Addr(4096), len: 64 } };
    let transfer = |cache| Transfer {
        offset: 0,
        length: 64,
        direction: Direction::ToMemory,
        address: 4096,
        cache,
        core: 1,
        atomic: None,
    };
    let checked = [0, 1, 2, 3].map(|cache| engine.check(64, &[transfer(cache)], &reach));
    assert_eq!(checked, [Ok(()), Ok(()), Err(BAD_CACHE), Ok(())]);
}
