//! Places of the simulation's own tables that will be looked at soon, brought into the caches of the
//! machine that simulates. A table is larger than these caches, so each look-up would wait for memory;
//! what is prefetched together comes together. Nothing of the model changes.

/// A table of `len` times `value` that will be looked at in no order.
pub fn table<T: Clone>(value: T, len: usize) -> Vec<T> {
    let mut table = Vec::with_capacity(len);
    use_large_pages(table.spare_capacity_mut());
    table.resize(len, value);
    table
}

/// Asks for large pages under `table`, of which nothing was written yet.
pub fn use_large_pages<T>(table: &[T]) {
    #[cfg(target_os = "linux")]
    crate::live::hints::use_large_pages(table);
    #[cfg(not(target_os = "linux"))]
    let _ = table;
}

/// `table[index]` will be looked at soon. Any index may be said.
#[inline(always)]
pub fn expect<T>(table: &[T], index: usize) {
    let place = table.as_ptr().wrapping_add(index);
    #[cfg(target_os = "linux")]
    crate::live::hints::read(place.cast());
    #[cfg(not(target_os = "linux"))]
    let _ = place;
}
