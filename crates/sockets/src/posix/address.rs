//! `sockaddr` of programs.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use libc::{sockaddr, sockaddr_in, sockaddr_in6, socklen_t};
use rustix::io::Errno;

/// Reads a program's address.
///
/// # Safety
/// `address` is null or readable for `len` bytes.
pub unsafe fn read(address: *const sockaddr, len: socklen_t) -> Result<SocketAddr, Errno> {
    if address.is_null() {
        return Err(Errno::FAULT);
    }
    if (len as usize) < size_of::<libc::sa_family_t>() {
        return Err(Errno::INVAL);
    }
    // SAFETY: readable by the caller's promise; lengths are checked before each structure is read, unaligned.
    unsafe {
        match i32::from(address.cast::<libc::sa_family_t>().read_unaligned()) {
            libc::AF_INET => {
                if (len as usize) < size_of::<sockaddr_in>() {
                    return Err(Errno::INVAL);
                }
                let v4 = address.cast::<sockaddr_in>().read_unaligned();
                let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
                Ok(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
            }
            libc::AF_INET6 => {
                // Linux takes 24 bytes, without the scope.
                if (len as usize) < size_of::<sockaddr_in6>() {
                    return Err(Errno::INVAL);
                }
                let v6 = address.cast::<sockaddr_in6>().read_unaligned();
                let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                Ok(SocketAddrV6::new(ip, u16::from_be(v6.sin6_port), 0, v6.sin6_scope_id).into())
            }
            _ => Err(Errno::AFNOSUPPORT),
        }
    }
}

/// Writes an address to a program: as much as fits, and its full length.
///
/// # Safety
/// `to` is null or writable for the bytes that `len` says; `len` is null or valid.
pub unsafe fn write(address: SocketAddr, to: *mut sockaddr, len: *mut socklen_t) {
    if to.is_null() || len.is_null() {
        return;
    }
    // SAFETY: by the caller's promise; both structures are plain bytes.
    unsafe {
        let give = |from: *const u8, size: usize| {
            std::ptr::copy_nonoverlapping(from, to.cast::<u8>(), size.min(*len as usize));
            *len = size as socklen_t;
        };
        match address {
            SocketAddr::V4(v4) => {
                let mut raw: sockaddr_in = std::mem::zeroed();
                raw.sin_family = libc::AF_INET as libc::sa_family_t;
                raw.sin_port = v4.port().to_be();
                raw.sin_addr.s_addr = u32::from(*v4.ip()).to_be();
                give((&raw const raw).cast(), size_of::<sockaddr_in>());
            }
            SocketAddr::V6(v6) => {
                let mut raw: sockaddr_in6 = std::mem::zeroed();
                raw.sin6_family = libc::AF_INET6 as libc::sa_family_t;
                raw.sin6_port = v6.port().to_be();
                raw.sin6_addr.s6_addr = v6.ip().octets();
                raw.sin6_scope_id = v6.scope_id();
                give((&raw const raw).cast(), size_of::<sockaddr_in6>());
            }
        }
    }
}
