//! Lines that are called for ahead of time. Nothing else happens, whatever the address.

/// `place` is going to be read: its first line comes into the caches.
#[inline]
pub fn expect_read<T: ?Sized>(place: &T) {
    read(std::ptr::from_ref(place).cast());
}

/// `place` is going to be written: its first line is taken from others' caches.
#[inline]
pub fn expect_write<T: ?Sized>(place: &T) {
    write(std::ptr::from_ref(place).cast());
}

/// As [`expect_read`], for any address.
#[inline]
pub(crate) fn read(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing and cannot fault, whatever the address.
        unsafe { _mm_prefetch(at.cast(), _MM_HINT_T0) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// As [`expect_write`], for any address.
#[inline]
pub(super) fn write(at: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch changes no memory and no register and cannot fault, whatever the address.
    // (The intrinsic takes the line for reading only, without a target feature.)
    unsafe {
        std::arch::asm!(
            "prefetchw byte ptr [{at}]",
            at = in(reg) at,
            options(nostack, preserves_flags, readonly)
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}
