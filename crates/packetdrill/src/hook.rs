//! packetdrill reads `TCP_INFO` and sends files by the C library's functions, not by its table: the program's own slots
//! of those functions are pointed at ours, which pass foreign descriptors on.

use std::ffi::{CStr, c_int, c_void};

use libc::{dl_phdr_info, off_t, size_t, socklen_t, ssize_t};

use crate::{calls, instance};

#[cfg(target_arch = "x86_64")]
const SLOT_TYPES: [u64; 2] = [6, 7];
#[cfg(not(target_arch = "x86_64"))]
const SLOT_TYPES: [u64; 2] = [1025, 1026];

const PT_DYNAMIC: u32 = 2;
const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_JMPREL: i64 = 23;

/// `Elf64_Rela`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Rela {
    offset: u64,
    info: u64,
    addend: i64,
}

/// `Elf64_Sym`.
#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    if let Some(shared) = instance()
        && calls::owns(shared, fd)
    {
        // SAFETY: the caller keeps getsockopt's contract about `value` and `len`.
        return unsafe { calls::option(shared, fd, level, name, value, len) };
    }
    // SAFETY: the same arguments go to the function that the caller meant.
    unsafe { libc::getsockopt(fd, level, name, value, len) }
}

unsafe extern "C" fn sendfile(to: c_int, from: c_int, offset: *mut off_t, count: size_t) -> ssize_t {
    if let Some(shared) = instance()
        && calls::owns(shared, to)
    {
        // SAFETY: the caller keeps sendfile's contract about `offset`.
        return unsafe { calls::send_file(shared, to, from, offset, count) };
    }
    // SAFETY: the same arguments go to the function that the caller meant.
    unsafe { libc::sendfile(to, from, offset, count) }
}

/// The replaced function called `name`.
fn replacement(name: &CStr) -> Option<usize> {
    match name.to_bytes() {
        b"getsockopt" => Some(getsockopt as *const () as usize),
        b"sendfile" | b"sendfile64" => Some(sendfile as *const () as usize),
        _ => None,
    }
}

/// Points the program's slots at ours.
pub fn replace() {
    // SAFETY: the callback reads the dynamic section of the first object, which is the running program, and changes one
    // of its slots; no other thread of packetdrill runs this early.
    unsafe { libc::dl_iterate_phdr(Some(visit), std::ptr::null_mut()) };
}

unsafe extern "C" fn visit(info: *mut dl_phdr_info, _size: size_t, _data: *mut c_void) -> c_int {
    // SAFETY: the loader passes a valid description for the time of this call.
    let info = unsafe { &*info };
    for index in 0..usize::from(info.dlpi_phnum) {
        // SAFETY: `dlpi_phdr` has `dlpi_phnum` entries.
        let header = unsafe { &*info.dlpi_phdr.add(index) };
        if header.p_type == PT_DYNAMIC {
            let dynamic = (info.dlpi_addr + header.p_vaddr) as *const [i64; 2];
            // SAFETY: the loader mapped the dynamic section of the program there.
            unsafe { patch(info.dlpi_addr, dynamic) };
        }
    }
    1 // The program comes first; nothing else is looked at.
}

/// # Safety
///
/// `dynamic` is the dynamic section of a loaded object whose addresses begin at `base`.
unsafe fn patch(base: u64, mut dynamic: *const [i64; 2]) {
    let mut values = [0u64; 24];
    loop {
        // SAFETY: the section ends with an entry of tag zero.
        let [tag, value] = unsafe { *dynamic };
        if tag == 0 {
            break;
        }
        if let Some(place) = usize::try_from(tag).ok().and_then(|tag| values.get_mut(tag)) {
            *place = value as u64;
        }
        // SAFETY: as above, another entry follows.
        dynamic = unsafe { dynamic.add(1) };
    }
    let at = |tag: i64| values[tag as usize];
    for (table, size) in [(at(DT_JMPREL), at(DT_PLTRELSZ)), (at(DT_RELA), at(DT_RELASZ))] {
        for index in 0..size / size_of::<Rela>() as u64 {
            // SAFETY: the loader relocated these addresses; the table has `size` bytes.
            let rela = unsafe { *(table as *const Rela).add(index as usize) };
            let is_slot = SLOT_TYPES.contains(&(rela.info & 0xffff_ffff));
            // SAFETY: the index of a relocation names an entry of the symbol table, whose name lies in the string table.
            let name = unsafe {
                let symbol = &*(at(DT_SYMTAB) as *const Symbol).add((rela.info >> 32) as usize);
                CStr::from_ptr((at(DT_STRTAB) + u64::from(symbol.name)) as *const _)
            };
            if let Some(ours) = replacement(name).filter(|_| is_slot) {
                // SAFETY: the slot belongs to the program and holds the address of a function of this type.
                unsafe { write_slot((base + rela.offset) as *mut usize, ours) };
            }
        }
    }
}

/// # Safety
///
/// `slot` holds the address of a function with the signature of `ours`.
unsafe fn write_slot(slot: *mut usize, ours: usize) {
    let page = 4096usize;
    let start = slot as usize & !(page - 1);
    // SAFETY: the page is mapped; making it writable harms nobody. A refusal leaves the slot as it was.
    let writable = unsafe { libc::mprotect(start as *mut c_void, page, libc::PROT_READ | libc::PROT_WRITE) } == 0;
    if writable {
        // SAFETY: see above; aligned, as the linker places slots.
        unsafe { slot.write(ours) };
    }
}
