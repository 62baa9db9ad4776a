//! The shared suite; tests/flexnic.rs has what is special to this interface.

#[test]
fn it_passes_the_shared_suite() {
    nicforge_interfaces::suite::check::<super::FlexNic>();
}
