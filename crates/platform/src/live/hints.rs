//! Prefetches of lines, and large pages: hints without any other effect, whatever the address.

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

/// Asks for large pages under `table`: one whose places are looked at in no order is spread over more memory
/// than a translation cache covers with pages of 4 KiB. It may hold nothing yet.
pub fn use_large_pages<T>(table: &[T]) {
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, madvise};
        /// A large page begins at a multiple of its size.
        const LARGE: usize = 2 << 20;
        let bytes = table.as_ptr().cast_mut().cast::<u8>();
        let before = bytes.align_offset(LARGE);
        let whole = size_of_val(table).saturating_sub(before) / LARGE * LARGE;
        if whole > 0 {
            // SAFETY: these pages are all the table's, and the advice changes nothing that is in them.
            // It is only a wish: without large pages everything is right, and slower.
            let _ = unsafe { madvise(bytes.wrapping_add(before).cast(), whole, Advice::LinuxHugepage) };
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = table;
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
