//! Beginning and end of a program, and the program that follows it.

use std::ffi::{CStr, c_char};

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

type Strings = *const *const c_char;

unsafe extern "C" {
    static mut environ: Strings;
}

/// The strings of a list that ends with null.
///
/// # Safety
/// `list` is null or such a list.
unsafe fn strings(list: Strings) -> Vec<*const c_char> {
    let mut all = Vec::new();
    let mut next = list;
    // SAFETY: the caller's promise.
    unsafe {
        while !next.is_null() && !(*next).is_null() {
            all.push(*next);
            next = next.add(1);
        }
    }
    all
}

/// Calls `execute` with an environment in which the new program finds the sockets that it inherits.
///
/// # Safety
/// `environment` is null or a list of strings that ends with null.
unsafe fn with_environment(environment: Strings, execute: impl FnOnce(Strings) -> c_int) -> c_int {
    process::execute();
    // SAFETY: the caller's promise.
    let mut all = unsafe { strings(environment) };
    // SAFETY: each is a string of C.
    let lacking = process::lacking(all.iter().map(|entry| unsafe { CStr::from_ptr(*entry) }.to_bytes()));
    if lacking.is_empty() {
        return execute(environment);
    }
    all.extend(lacking.iter().map(|entry| entry.as_ptr()));
    all.push(std::ptr::null());
    execute(all.as_ptr())
}

/// `execve(2)`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(path: *const c_char, arguments: Strings, environment: Strings) -> c_int {
    let execute = |environment: Strings| kernel!(SYS_execve, path, arguments, environment) as c_int;
    // SAFETY: the program's list.
    unsafe { with_environment(environment, execute) }
}

/// `execv(3)`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(path: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: the same contract, with the process's environment.
    unsafe { execve(path, arguments, environ) }
}

/// `execvp(3)`: the C library looks for the program.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvp(file: *const c_char, arguments: Strings) -> c_int {
    // SAFETY: the same contract, with the process's environment.
    unsafe { execvpe(file, arguments, environ) }
}

/// `execvpe(3)`.
///
/// # Safety
/// As of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvpe(file: *const c_char, arguments: Strings, environment: Strings) -> c_int {
    type Function = unsafe extern "C" fn(*const c_char, Strings, Strings) -> c_int;
    // SAFETY: the C library's function of this name has this type; the lists are the program's.
    unsafe {
        let next = libc::dlsym(libc::RTLD_NEXT, c"execvpe".as_ptr());
        if next.is_null() {
            return crate::fail(rustix::io::Errno::NOSYS) as c_int;
        }
        let next: Function = std::mem::transmute(next);
        with_environment(environment, |environment| next(file, arguments, environment))
    }
}
