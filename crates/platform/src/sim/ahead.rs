//! Places of the simulation's own tables that will be looked at soon, brought into the caches of the
//! machine that simulates. A table is larger than these caches, so each look-up would wait for memory;
//! what is called for together comes together. Nothing of the model changes.

/// `table[index]` will be looked at soon. Any index may be said.
#[inline(always)]
pub fn expect<T>(table: &[T], index: usize) {
    let place = table.as_ptr().wrapping_add(index);
    #[cfg(target_os = "linux")]
    crate::live::hints::read(place.cast());
    #[cfg(not(target_os = "linux"))]
    let _ = place;
}
