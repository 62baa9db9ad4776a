//! The shared library through which packetdrill drives `nicforge-tcp` in virtual time.
//!
//! packetdrill loads it by `--so_filename` and calls `packetdrill_interface_init`. Time passes only where packetdrill
//! sleeps or waits for a packet, so a script of minutes runs in an instant and gives the same result every time.
//! Settings come from the `sysctl` values of the network namespace, which the scripts' preambles set, and from
//! `--so_flags` (`name=value`, separated by commas, named like the sysctls; `mtu` too).

// Raw pointers are what the interface of packetdrill consists of; each block says why it is sound.
#![allow(unsafe_code)]

mod abi;
mod calls;
mod hook;
mod message;
mod settings;
mod wait;
mod world;

use std::ffi::{CStr, c_char, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use abi::Interface;
use world::Shared;

/// The instance that the replaced functions ask.
static INSTANCE: AtomicPtr<Shared> = AtomicPtr::new(std::ptr::null_mut());

/// The instance, if packetdrill has made one.
fn instance() -> Option<&'static Shared> {
    // SAFETY: the pointer is null or comes from `Box::into_raw` in `packetdrill_interface_init`, and `free` clears it
    // before it drops the box; packetdrill calls `free` after all threads of calls have ended.
    unsafe { INSTANCE.load(Ordering::Acquire).as_ref() }
}

/// Fills in packetdrill's table of calls.
///
/// # Safety
///
/// `interface` points to a table that packetdrill owns; `flags` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packetdrill_interface_init(flags: *const c_char, interface: *mut Interface) {
    let flags = if flags.is_null() {
        String::new()
    } else {
        // SAFETY: packetdrill passes the argument of --so_flags, a C string.
        unsafe { CStr::from_ptr(flags) }.to_string_lossy().into_owned()
    };
    let shared = Box::into_raw(Box::new(Shared::new(flags)));
    INSTANCE.store(shared, Ordering::Release);
    hook::replace();
    // SAFETY: packetdrill passes its table, which is large enough for `Interface` (the same declaration).
    unsafe { interface.write(calls::table(shared.cast::<c_void>())) };
}
