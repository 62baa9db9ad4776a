//! A core that forwards to another one, except for some operations.

/// Methods of [`Cpu`](crate::Cpu) that the core in field `$to` does: `forward_cpu!(cpu: load store);`. Those that
/// the contract defines by others need no mention.
#[macro_export]
macro_rules! forward_cpu {
    ($to:ident: $($method:ident)+) => { $($crate::forward_cpu!(@$method $to);)+ };
    (@load $to:ident) => {
        #[inline]
        fn load<T: $crate::Pod>(&mut self, at: $crate::Addr) -> T {
            self.$to.load(at)
        }
    };
    (@store $to:ident) => {
        #[inline]
        fn store<T: $crate::Pod>(&mut self, at: $crate::Addr, value: T) {
            self.$to.store(at, value);
        }
    };
    (@acquire $to:ident) => {
        #[inline]
        fn acquire(&mut self, at: $crate::Addr) -> u64 {
            self.$to.acquire(at)
        }
    };
    (@release $to:ident) => {
        #[inline]
        fn release(&mut self, at: $crate::Addr, value: u64) {
            self.$to.release(at, value);
        }
    };
    (@atomic $to:ident) => {
        #[inline]
        fn atomic(&mut self, at: $crate::Addr, change: $crate::Atomic) -> u64 {
            self.$to.atomic(at, change)
        }
    };
    (@lock $to:ident) => {
        #[inline]
        fn lock(&mut self, at: $crate::Addr) {
            self.$to.lock(at);
        }
    };
    (@unlock $to:ident) => {
        #[inline]
        fn unlock(&mut self, at: $crate::Addr) {
            self.$to.unlock(at);
        }
    };
    (@bytes $to:ident) => {
        #[inline]
        fn bytes(&mut self, at: $crate::Addr, len: usize) -> &[u8] {
            self.$to.bytes(at, len)
        }
    };
    (@bytes_mut $to:ident) => {
        #[inline]
        fn bytes_mut(&mut self, at: $crate::Addr, len: usize) -> &mut [u8] {
            self.$to.bytes_mut(at, len)
        }
    };
    (@copy_loop $to:ident) => {
        #[inline]
        fn copy_loop(&mut self, from: $crate::Addr, to: $crate::Addr, len: usize, how: $crate::CopyLoop) {
            self.$to.copy_loop(from, to, len, how);
        }
    };
    (@hint $to:ident) => {
        #[inline]
        fn hint(&mut self, hint: $crate::Hint) {
            self.$to.hint(hint);
        }
    };
    (@mmio_read $to:ident) => {
        #[inline]
        fn mmio_read(&mut self, register: $crate::Register) -> u64 {
            self.$to.mmio_read(register)
        }
    };
    (@mmio_write $to:ident) => {
        #[inline]
        fn mmio_write(&mut self, register: $crate::Register, value: u64) {
            self.$to.mmio_write(register, value);
        }
    };
    (@work $to:ident) => {
        #[inline]
        fn work(&mut self, cycles: $crate::Cycles) {
            self.$to.work(cycles);
        }
    };
    (@enter $to:ident) => {
        #[inline]
        fn enter(&mut self, part: $crate::Part) -> $crate::Part {
            self.$to.enter(part)
        }
    };
    (@now $to:ident) => {
        #[inline]
        fn now(&self) -> $crate::Time {
            self.$to.now()
        }
    };
}
