//! Addresses and buffers of C callers.

use std::ffi::c_void;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use libc::{iovec, sockaddr, sockaddr_in, sockaddr_in6, socklen_t};
use nicforge_tcp::socket::{Errno, SocketName};

/// Reads a socket address. `None` is `AF_UNSPEC`.
///
/// # Safety
///
/// `address` is null or points to `len` bytes.
pub unsafe fn read_name(address: *const sockaddr, len: socklen_t) -> Result<Option<SocketName>, Errno> {
    if address.is_null() {
        return Err(Errno::FAULT);
    }
    if (len as usize) < size_of::<u16>() {
        return Err(Errno::INVALID);
    }
    // SAFETY: the caller says that the bytes are there; the reads may be unaligned.
    let family = i32::from(unsafe { address.cast::<u16>().read_unaligned() });
    match family {
        libc::AF_UNSPEC => Ok(None),
        libc::AF_INET if len as usize >= size_of::<sockaddr_in>() => {
            // SAFETY: as above, the length was checked.
            let name = unsafe { address.cast::<sockaddr_in>().read_unaligned() };
            let ip = Ipv4Addr::from(u32::from_be(name.sin_addr.s_addr));
            Ok(Some(SocketName { ip: ip.into(), port: u16::from_be(name.sin_port) }))
        }
        libc::AF_INET6 if len as usize >= size_of::<sockaddr_in6>() => {
            // SAFETY: as above, the length was checked.
            let name = unsafe { address.cast::<sockaddr_in6>().read_unaligned() };
            let ip = Ipv6Addr::from(name.sin6_addr.s6_addr);
            Ok(Some(SocketName { ip: ip.into(), port: u16::from_be(name.sin6_port) }))
        }
        libc::AF_INET | libc::AF_INET6 => Err(Errno::INVALID),
        _ => Err(Errno::NO_FAMILY),
    }
}

/// Writes a socket address as far as there is room, and its whole length.
///
/// # Safety
///
/// `address` is null or points to `*len` bytes, and `len` is valid then.
pub unsafe fn write_name(name: &SocketName, address: *mut sockaddr, len: *mut socklen_t) {
    if address.is_null() || len.is_null() {
        return;
    }
    let mut bytes = [0u8; 28];
    let whole = match name.ip {
        IpAddr::V4(ip) => {
            bytes[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
            bytes[4..8].copy_from_slice(&ip.octets());
            16
        }
        IpAddr::V6(ip) => {
            bytes[..2].copy_from_slice(&(libc::AF_INET6 as u16).to_ne_bytes());
            bytes[8..24].copy_from_slice(&ip.octets());
            28
        }
    };
    bytes[2..4].copy_from_slice(&name.port.to_be_bytes());
    // SAFETY: the caller says how many bytes there are; no more are written.
    unsafe {
        let room = (*len as usize).min(whole);
        address.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), room);
        *len = whole as socklen_t;
    }
}

/// A caller's buffer to read from.
///
/// # Safety
///
/// `buffer` is null or points to `len` bytes that nobody changes for `'a`.
pub unsafe fn input<'a>(buffer: *const c_void, len: usize) -> Result<&'a [u8], Errno> {
    if len == 0 {
        return Ok(&[]);
    }
    if buffer.is_null() {
        return Err(Errno::FAULT);
    }
    // SAFETY: not null, and the caller says that the bytes are there.
    Ok(unsafe { std::slice::from_raw_parts(buffer.cast(), len) })
}

/// A caller's buffer to write to.
///
/// # Safety
///
/// `buffer` is null or points to `len` bytes that nobody else uses for `'a`.
pub unsafe fn output<'a>(buffer: *mut c_void, len: usize) -> Result<&'a mut [u8], Errno> {
    if len == 0 {
        return Ok(&mut []);
    }
    if buffer.is_null() {
        return Err(Errno::FAULT);
    }
    // SAFETY: not null, and the caller says that the bytes are its own.
    Ok(unsafe { std::slice::from_raw_parts_mut(buffer.cast(), len) })
}

/// The pieces of a vector.
///
/// # Safety
///
/// `vector` is null or points to `count` valid pieces.
pub unsafe fn pieces<'a>(vector: *const iovec, count: usize) -> Result<&'a [iovec], Errno> {
    if count > 1024 {
        return Err(Errno::INVALID);
    }
    if count == 0 {
        return Ok(&[]);
    }
    if vector.is_null() {
        return Err(Errno::FAULT);
    }
    // SAFETY: not null, and the caller says that the pieces are there.
    Ok(unsafe { std::slice::from_raw_parts(vector, count) })
}

/// All bytes of a vector.
///
/// # Safety
///
/// As for [`pieces`], and each piece names readable bytes.
pub unsafe fn gather(vector: *const iovec, count: usize) -> Result<Vec<u8>, Errno> {
    let mut bytes = Vec::new();
    // SAFETY: the caller keeps the contract of both.
    for piece in unsafe { pieces(vector, count) }? {
        bytes.extend_from_slice(unsafe { input(piece.iov_base, piece.iov_len) }?);
    }
    Ok(bytes)
}
