//! The few system calls of packet sockets, TAP devices and interfaces that have no safe wrapper.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use libc::{c_int, c_void, socklen_t};

/// Sets a socket option that is a plain value.
pub fn set_option<T: Copy>(socket: BorrowedFd<'_>, level: c_int, name: c_int, value: T) -> io::Result<()> {
    // SAFETY: the pointer and the length are those of `value`, which the system only reads.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast::<c_void>(),
            size_of::<T>() as socklen_t,
        )
    };
    done(result)
}

/// A socket option that is a plain value of numbers.
pub fn option<T: Copy + Default>(socket: BorrowedFd<'_>, level: c_int, name: c_int) -> io::Result<T> {
    let mut value = T::default();
    let mut len = size_of::<T>() as socklen_t;
    // SAFETY: the system writes at most `len` bytes, all within `value`, of which any bits are one
    // (the types that are asked for hold numbers only).
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut value).cast::<c_void>(), &mut len) };
    done(result).map(|()| value)
}

/// What a packet socket takes of its interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Every frame.
    All,
    /// None: it only sends.
    Nothing,
}

/// Binds a packet socket to interface `index`; returns its hardware address.
pub fn bind_to(socket: BorrowedFd<'_>, index: u32, takes: Takes) -> io::Result<[u8; 6]> {
    // SAFETY: all zeros is a value of this plain structure.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = match takes {
        Takes::All => (libc::ETH_P_ALL as u16).to_be(),
        Takes::Nothing => 0,
    };
    address.sll_ifindex = index as c_int;
    let mut len = size_of::<libc::sockaddr_ll>() as socklen_t;
    let pointer = (&raw mut address).cast::<libc::sockaddr>();
    // SAFETY: the address is valid for `len` bytes, which the system only reads.
    done(unsafe { libc::bind(socket.as_raw_fd(), pointer, len) })?;
    // SAFETY: the system writes at most `len` bytes there, and says how many.
    done(unsafe { libc::getsockname(socket.as_raw_fd(), pointer, &mut len) })?;
    let [a, b, c, d, e, f, ..] = address.sll_addr;
    Ok([a, b, c, d, e, f])
}

/// A request about the interface `name`, to be filled in further.
pub fn interface_request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all zeros is a value of this plain structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = request.ifr_name.len() - 1;
    if name.is_empty() || name.len() > room || name.contains(['/', '\0']) {
        let wrong = format!("`{name}` is no name of an interface: 1 to {room} characters");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, wrong));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

/// What the interface `name` can carry at layer 3, in bytes.
pub fn mtu(socket: BorrowedFd<'_>, name: &str) -> io::Result<usize> {
    let mut request = interface_request(name)?;
    // SAFETY: SIOCGIFMTU reads the name of the request and writes its `ifru_mtu`, both within it.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request) };
    done(result)?;
    // SAFETY: the call before filled in this member of the union.
    Ok(unsafe { request.ifr_ifru.ifru_mtu } as usize)
}

/// The hardware address of the interface `name`.
pub fn hardware_address(socket: BorrowedFd<'_>, name: &str) -> io::Result<[u8; 6]> {
    let mut request = interface_request(name)?;
    // SAFETY: SIOCGIFHWADDR reads the name of the request and writes its `ifru_hwaddr`, both
    // within it.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR as _, &raw mut request) };
    done(result)?;
    // SAFETY: the call before filled in this member of the union.
    let address = unsafe { request.ifr_ifru.ifru_hwaddr };
    Ok(std::array::from_fn(|at| address.sa_data[at] as u8))
}

/// Whether frames can pass the interface `name`: it was brought up and has a carrier.
pub fn is_up(socket: BorrowedFd<'_>, name: &str) -> io::Result<bool> {
    let flags = interface_flags(socket, name)?;
    Ok(flags & libc::IFF_UP != 0 && has_carrier(socket, name, flags)?)
}

/// Whether the system's stack looks for neighbours on the interface `name`, and answers those that look for it.
pub fn has_arp(socket: BorrowedFd<'_>, name: &str) -> io::Result<bool> {
    Ok(interface_flags(socket, name)? & libc::IFF_NOARP == 0)
}

fn interface_flags(socket: BorrowedFd<'_>, name: &str) -> io::Result<c_int> {
    let mut request = interface_request(name)?;
    // SAFETY: SIOCGIFFLAGS reads the name of the request and writes its `ifru_flags`, both within
    // it.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFFLAGS as _, &raw mut request) };
    done(result)?;
    // SAFETY: the call before filled in this member of the union.
    Ok(c_int::from(unsafe { request.ifr_ifru.ifru_flags }))
}

/// Gives the interface `name` a hardware address.
pub fn set_hardware_address(socket: BorrowedFd<'_>, name: &str, mac: [u8; 6]) -> io::Result<()> {
    let mut request = interface_request(name)?;
    let mut address = libc::sockaddr { sa_family: libc::ARPHRD_ETHER, sa_data: [0; 14] };
    address.sa_data.iter_mut().zip(mac).for_each(|(to, from)| *to = from as _);
    request.ifr_ifru.ifru_hwaddr = address;
    // SAFETY: SIOCSIFHWADDR reads the name and `ifru_hwaddr` of the request.
    done(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFHWADDR as _, &raw mut request) })
}

/// Asks the driver (ETHTOOL_GLINK of linux/ethtool.h): the flag says it up to a second late.
fn has_carrier(socket: BorrowedFd<'_>, name: &str, flags: c_int) -> io::Result<bool> {
    const GET_LINK: u32 = 0xa;
    let mut link = [GET_LINK, 0];
    match ethtool(socket, name, &mut link) {
        Ok(()) => Ok(link[1] != 0),
        Err(cause) if cause.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(flags & libc::IFF_RUNNING != 0),
        Err(cause) => Err(cause),
    }
}

/// Keeps the interface with number `index` in promiscuous mode as long as `socket`, a packet
/// socket, is open.
pub fn make_promiscuous(socket: BorrowedFd<'_>, index: u32) -> io::Result<()> {
    let promiscuous = libc::packet_mreq {
        mr_ifindex: index as c_int,
        mr_type: libc::PACKET_MR_PROMISC as u16,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set_option(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, promiscuous)
}

/// Receive queues of the interface `name` (ETHTOOL_GCHANNELS of linux/ethtool.h); 1 where its
/// driver does not count them.
pub fn receive_queues(socket: BorrowedFd<'_>, name: &str) -> io::Result<u32> {
    const GET_CHANNELS: u32 = 0x3c;
    /// In use: for receiving only, and for both directions.
    const RECEIVE: usize = 5;
    const BOTH: usize = 8;
    let mut channels = [0u32; 9];
    channels[0] = GET_CHANNELS;
    match ethtool(socket, name, &mut channels) {
        Ok(()) => Ok((channels[RECEIVE] + channels[BOTH]).max(1)),
        Err(cause) if cause.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(1),
        Err(cause) => Err(cause),
    }
}

/// Whether the interface `name` is none of a device on a wire, but made by software or by a
/// hypervisor (ETHTOOL_GDRVINFO of linux/ethtool.h: it is on no bus, or on one that is none: a TAP device
/// says `tap`, virtio's and Xen's adapters what they are).
pub fn is_virtual(socket: BorrowedFd<'_>, name: &str) -> io::Result<bool> {
    const GET_DRIVER: u32 = 0x3;
    const BUS: usize = 4 + 3 * 32;
    // 196 bytes; words, as the first is one.
    let mut driver = [[0u32; 7]; 7];
    driver[0][0] = GET_DRIVER;
    match ethtool(socket, name, &mut driver) {
        Ok(()) => {
            let bus = &bytemuck::bytes_of(&driver)[BUS..];
            let none = [&b"tap\0"[..], b"tun\0", b"virtio", b"vif-"];
            Ok(bus[0] == 0 || none.iter().any(|begin| bus.starts_with(begin)))
        }
        Err(cause) if cause.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(true),
        Err(cause) => Err(cause),
    }
}

/// Asks the driver of the interface `name`; `about` begins with the number of the question, and is
/// as large as the answer to it.
fn ethtool<T: bytemuck::Pod>(socket: BorrowedFd<'_>, name: &str, about: &mut T) -> io::Result<()> {
    const SIOCETHTOOL: u32 = 0x8946;
    let mut request = interface_request(name)?;
    request.ifr_ifru.ifru_data = (&raw mut *about).cast();
    // SAFETY: the call reads the name of the request, and reads and writes behind its `ifru_data`
    // what belongs to the question, which `about` has room for; any bytes are a value of it.
    done(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) })
}

/// Makes an open `/dev/net/tun` the TAP device `name`, which leaves checksums and the cutting of TCP segments to us: frames
/// behind an offload header, nothing else.
pub fn become_tap(file: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let mut request = interface_request(name)?;
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as i16;
    // SAFETY: TUNSETIFF reads name and flags of the request and writes the name, all within it.
    done(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) })?;
    let takes = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
    // SAFETY: TUNSETOFFLOAD takes a number.
    done(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD as _, libc::c_ulong::from(takes)) })
}

/// Receives up to as many messages as `headers` has without waiting; returns how many.
///
/// # Safety
/// All pointers in `headers` are valid for their lengths, and exclusive to this call.
pub unsafe fn receive_messages(socket: BorrowedFd<'_>, headers: &mut [libc::mmsghdr]) -> io::Result<usize> {
    // SAFETY: the caller's promise; the count is that of the slice.
    let result = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            headers.as_mut_ptr(),
            headers.len() as u32,
            libc::MSG_DONTWAIT as _,
            std::ptr::null_mut(),
        )
    };
    count(result)
}

/// Sends messages without waiting; returns how many went.
///
/// # Safety
/// All pointers in `headers` are valid for their lengths.
pub unsafe fn send_messages(socket: BorrowedFd<'_>, headers: &mut [libc::mmsghdr]) -> io::Result<usize> {
    // SAFETY: the caller's promise; the count is that of the slice.
    let result = unsafe {
        libc::sendmmsg(socket.as_raw_fd(), headers.as_mut_ptr(), headers.len() as u32, libc::MSG_DONTWAIT as _)
    };
    count(result)
}

fn done(result: c_int) -> io::Result<()> {
    count(result).map(|_| ())
}

fn count(result: c_int) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}
