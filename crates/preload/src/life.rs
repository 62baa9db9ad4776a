//! Beginning and end of a program.

use libc::c_int;
use nicforge_sockets::posix::process;

use crate::kernel;

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = {
    extern "C" fn begin() {
        process::begin();
    }
    begin
};

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = {
    extern "C" fn end() {
        process::end();
    }
    end
};

/// `_exit(2)`.
#[unsafe(no_mangle)]
pub extern "C" fn _exit(status: c_int) -> ! {
    process::end();
    loop {
        kernel!(SYS_exit_group, status);
    }
}

/// `_Exit(3)`.
#[unsafe(no_mangle)]
pub extern "C" fn _Exit(status: c_int) -> ! {
    _exit(status)
}
