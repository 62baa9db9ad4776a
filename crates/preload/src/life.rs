//! Beginning and end of a program, and the program that follows it.

use std::ffi::{CStr, c_char};

use libc::c_int;
use nicforge_sockets::kernel::program;
use nicforge_sockets::posix::process;

use crate::kernel;

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = {
    extern "C" fn begin() {
        process::begin();
        program::begin();
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

/// Entries of an environment that are passed on without allocating.
const FEW: usize = 1024;

/// Length of a list that ends with null.
///
/// # Safety
/// `list` is null or such a list.
unsafe fn length(list: Strings) -> usize {
    if list.is_null() {
        return 0;
    }
    // SAFETY: the caller's promise.
    (0..).take_while(|at| unsafe { !(*list.add(*at)).is_null() }).count()
}

/// Calls `execute` with an environment in which the new program finds the sockets that it inherits.
///
/// # Safety
/// `environment` is null or a list of strings that ends with null.
unsafe fn with_environment(environment: Strings, execute: impl FnOnce(Strings) -> c_int) -> c_int {
    process::execute();
    // SAFETY: the caller's promise.
    let count = unsafe { length(environment) };
    // SAFETY: `at` is below the length, and each entry is a string of C.
    let entry = |at: usize| unsafe { CStr::from_ptr(*environment.add(at)) };
    let has = |name: &[u8]| {
        (0..count).any(|at| entry(at).to_bytes().strip_prefix(name).is_some_and(|rest| rest.starts_with(b"=")))
    };
    let missing = process::lacking(has).count();
    if missing == 0 {
        return execute(environment);
    }
    // On the stack: an exec frees nothing, and the child of a vfork would leave it in its parent.
    let (mut few, mut many) = ([std::ptr::null(); FEW], Vec::new());
    let needed = count + missing + 1;
    let all = if needed <= FEW {
        &mut few[..needed]
    } else {
        many.resize(needed, std::ptr::null());
        &mut many[..]
    };
    let entries = (0..count).map(|at| entry(at).as_ptr()).chain(process::lacking(has).map(CStr::as_ptr));
    for (place, next) in all.iter_mut().zip(entries) {
        *place = next;
    }
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
