use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use super::*;

fn memory(len: u64) -> OwnedFd {
    let file = memfd_create("test", MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, len).unwrap();
    file
}

#[test]
fn bytes_come_and_go_within_the_bounds_only() {
    let file = memory(8192);
    let [one, other] = [(); 2].map(|()| ForeignMemory::map(file.as_fd(), 8192).unwrap());
    assert!(one.copy_in(8190, &[7, 8]));
    let mut bytes = vec![1];
    assert!(other.copy_out(8189, 3, &mut bytes));
    assert_eq!(bytes, [1, 0, 7, 8]);
    for (at, len) in [(8191, 2), (8192, 1), (usize::MAX, 1), (0, 8193), (1, usize::MAX)] {
        assert!(!other.copy_out(at, len, &mut bytes), "{at} {len}");
    }
    assert!(!one.copy_in(8191, &[1, 2]));
    one.word(4).unwrap().store(0x0102_0304, Ordering::Relaxed);
    assert_eq!(other.half(4).unwrap().load(Ordering::Relaxed), 0x0304);
    assert!(one.word(8190).is_none() && one.word(2).is_none() && one.half(8191).is_none());
}

#[test]
fn a_file_is_as_long_as_it_says_and_memory() {
    let file = memory(4096);
    for (offset, len) in [(0, 4097), (1, 4096), (u64::MAX, 2), (0, 0)] {
        let refused = check_file(file.as_fd(), offset, len);
        assert!(matches!(refused, Err(ForeignError::Length { .. })), "{offset} {len}");
    }
    let (pipe, _other) = std::io::pipe().unwrap();
    assert!(matches!(check_file(pipe.as_fd(), 0, 1), Err(ForeignError::NoMemory)));
}

#[test]
fn a_file_that_shrinks_leaves_zeros_and_is_known() {
    let file = memory(16_384);
    let shared = ForeignMemory::map(file.as_fd(), 16_384).unwrap();
    let other = ForeignMemory::map(memory(4096).as_fd(), 4096).unwrap();
    assert!(shared.copy_in(12_288, &[5; 16]) && other.copy_in(0, &[6; 16]));
    ftruncate(&file, 4096).unwrap();
    assert!(!shared.is_broken());
    let mut bytes = Vec::new();
    assert!(shared.copy_out(12_288, 16, &mut bytes));
    assert_eq!(bytes, [0; 16]);
    assert!(shared.is_broken());
    assert!(!other.is_broken());
    drop(shared);
    assert!(other.copy_out(0, 16, &mut bytes) && bytes[16..] == [6; 16]);
}
