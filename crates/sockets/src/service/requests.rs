//! Control requests.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags, sockopt};

use super::application::Application;
use super::bindings::Claim;
use super::flow::Role;
use super::{Limits, Service, Source, watch};
use crate::address::plain;
use crate::control::{
    BIND_FREE, BIND_REUSE_ADDRESS, BIND_REUSE_PORT, BIND_V6_ONLY, ReplyMessage, Request, RequestMessage, receive, send,
};
use crate::layout::{State, VERSION};
use crate::transport::{Id, Setting, Transport};
use crate::watch::FILTER_BYTES;
use crate::watch::filter::Filter;

/// Bytes that may wait for an observer.
const OBSERVER_BUFFER: usize = 4 << 20;
/// Applications at a time.
const APPLICATIONS: usize = 4096;

impl Service {
    /// Lets in whoever waits at the door.
    pub(super) fn admit(&mut self) {
        while let Ok(control) = rustix::net::accept_with(&self.door, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            if self.applications.len() >= APPLICATIONS {
                self.refused += 1;
                continue;
            }
            self.serial += 1;
            let serial = self.serial;
            let Ok(application) = Application::new(serial, control, self.config.limits) else { continue };
            let index = self.applications.vacant_key();
            let flags = EventFlags::IN | EventFlags::RDHUP;
            if watch(&self.epoll, &application.control, Source::Control(index), flags).is_ok() {
                self.by_serial.insert(serial, index);
                self.applications.insert(application);
            }
        }
    }

    /// Serves one request of an application, or its end.
    pub(super) fn serve(&mut self, index: usize) {
        let Some(application) = self.applications.get(index) else { return };
        const REQUEST: usize = size_of::<RequestMessage>();
        let mut bytes = [0; REQUEST + FILTER_BYTES];
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC | RecvFlags::TRUNC;
        let control = application.control.as_fd();
        let received = match receive(control, &mut bytes, flags) {
            Err(Errno::AGAIN | Errno::INTR) => return,
            Ok(received) if (REQUEST..=bytes.len()).contains(&received.len) => received,
            Ok(received) if received.len > 0 => {
                self.applications[index].refused += 1;
                self.reply(index, Errno::INVAL.raw_os_error() as u32, 0, &[]);
                return;
            }
            Ok(_) | Err(_) => return self.dismiss(index),
        };
        let message: RequestMessage = bytemuck::pod_read_unaligned(&bytes[..REQUEST]);
        let text = &bytes[REQUEST..received.len];
        let known = Request::of(message.request);
        let takes_text = matches!(known, Some(Request::Capture | Request::Trace | Request::Tls));
        let Some(request) = known.filter(|_| takes_text || text.is_empty()) else {
            self.applications[index].refused += 1;
            return self.reply(index, Errno::OPNOTSUPP.raw_os_error() as u32, 0, &[]);
        };
        if request == Request::List {
            return self.list(index, message.value);
        }
        if request == Request::Tls {
            self.take_from(index);
            let error = self.encrypt(index, &message, text).err();
            return self.reply(index, error.map_or(0, |cause| cause.raw_os_error() as u32), 0, &[]);
        }
        if takes_text {
            return self.observe(index, request, message.value as usize, text);
        }
        // Entries that the process added before it asked count first.
        self.take_from(index);
        match self.answer(index, request, &message, received.descriptors) {
            Ok(answer) => {
                let descriptors: Vec<BorrowedFd<'_>> = answer.descriptors.iter().map(AsFd::as_fd).collect();
                self.reply(index, 0, answer.value, &descriptors);
            }
            Err(cause) => self.reply(index, cause.raw_os_error() as u32, 0, &[]),
        }
    }

    /// Adds an observer of the network. It sees what all applications send, so it has the service's user or is root.
    fn observe(&mut self, index: usize, request: Request, most: usize, text: &[u8]) {
        let application = &self.applications[index];
        let own = rustix::process::geteuid().as_raw();
        let added = if application.user != 0 && application.user != own {
            Err(Errno::PERM)
        } else {
            let filter = std::str::from_utf8(text).ok().and_then(|text| Filter::parse(text).ok());
            let filter = filter.ok_or(Errno::INVAL);
            let to = application.control.try_clone().map_err(|_| Errno::MFILE);
            filter.and_then(|filter| Ok((filter, to?)))
        };
        let added = added.and_then(|(filter, to)| {
            // Best effort: a smaller buffer loses more frames of a burst, counted.
            let _ = sockopt::set_socket_send_buffer_size(&to, OBSERVER_BUFFER);
            let mut missed = false;
            let any = self.route.watch(&mut |watch| match (to.try_clone(), request) {
                (Ok(to), Request::Capture) => watch.capture(to, filter.clone(), most),
                (Ok(to), _) => watch.trace(to, filter.clone()),
                (Err(_), _) => missed = true,
            });
            match (any, missed) {
                (false, _) => Err(Errno::NETDOWN),
                (true, true) => Err(Errno::MFILE),
                (true, false) => Ok(()),
            }
        });
        self.reply(index, added.map_or_else(|cause| cause.raw_os_error() as u32, |()| 0), 0, &[]);
    }

    fn reply(&self, index: usize, error: u32, value: u32, descriptors: &[BorrowedFd<'_>]) {
        let reply = ReplyMessage { error, value };
        let control = self.applications[index].control.as_fd();
        // An application that asks without reading its replies loses them.
        let _ = send(control, bytemuck::bytes_of(&reply), descriptors, SendFlags::DONTWAIT);
    }

    /// A process has gone, or runs another program now.
    fn dismiss(&mut self, index: usize) {
        self.take_from(index);
        let application = self.applications.remove(index);
        self.by_serial.remove(&application.serial);
        for (_, flow) in &mut self.flows {
            flow.contexts.retain(|serial| *serial != application.serial);
        }
    }

    fn answer(
        &mut self,
        index: usize,
        request: Request,
        message: &RequestMessage,
        mut descriptors: Vec<OwnedFd>,
    ) -> Result<Answer, Errno> {
        match request {
            Request::Hello => self.hello(index, message.value),
            Request::Socket => self.socket(index, message),
            Request::Adopt => self.adopt(index, descriptors.pop().ok_or(Errno::BADF)?),
            Request::Limit => self.limit(index, message),
            // Answered before.
            Request::List | Request::Capture | Request::Trace | Request::Tls => Err(Errno::OPNOTSUPP),
            Request::Bind => self.bind(index, message),
            Request::Listen => {
                let flow = self.possessed(index, message)?;
                if self.flows[flow].local.is_none() {
                    let any =
                        if self.flows[flow].v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
                    self.claim(flow, SocketAddr::new(any, 0), message.extra as u32)?;
                }
                self.listen(flow, message.value as usize)?;
                Ok(Answer::default())
            }
            Request::Connect => self.connect(index, message),
            Request::Figures => {
                let flow = self.possessed(index, message)?;
                self.figures_now(flow);
                Ok(Answer::default())
            }
        }
    }

    /// The socket of a request, whose process must have it.
    pub(super) fn possessed(&mut self, index: usize, message: &RequestMessage) -> Result<usize, Errno> {
        let flow = self.find(message.flow).ok_or(Errno::BADF)?;
        if self.flows[flow].key != message.key {
            self.applications[index].refused += 1;
            return Err(Errno::BADF);
        }
        Ok(flow)
    }

    fn hello(&mut self, index: usize, version: u32) -> Result<Answer, Errno> {
        if version != VERSION {
            return Err(Errno::PROTONOSUPPORT);
        }
        let application = &mut self.applications[index];
        if application.context.is_some() {
            return Err(Errno::ALREADY);
        }
        let context = application.register()?;
        watch(&self.epoll, &context.bell, Source::Bell(index), EventFlags::IN | EventFlags::ET)?;
        let copies = [&context.file, &context.bell, &context.wake, &self.status_file];
        let descriptors = copies.into_iter().map(|file| file.try_clone()).collect::<Result<Vec<_>, _>>();
        Ok(Answer { value: 0, descriptors: descriptors.map_err(|_| Errno::MFILE)? })
    }

    fn socket(&mut self, index: usize, message: &RequestMessage) -> Result<Answer, Errno> {
        let application = &self.applications[index];
        if application.context.is_none() {
            return Err(Errno::NOTCONN);
        }
        let serial = application.serial;
        let (flow, theirs) = self.new_flow(message.value == 10, serial)?;
        let flow = &mut self.flows[flow];
        flow.contexts.push(serial);
        flow.direct = (message.extra == 1).then_some(serial);
        let file = flow.file.try_clone().map_err(|_| Errno::MFILE)?;
        Ok(Answer { value: flow.name, descriptors: vec![theirs, file] })
    }

    fn adopt(&mut self, index: usize, descriptor: OwnedFd) -> Result<Answer, Errno> {
        let serial = self.applications[index].serial;
        let cookie = sockopt::socket_cookie(&descriptor).map_err(|_| Errno::NOTSOCK)?;
        let name = *self.by_cookie.get(&cookie).ok_or(Errno::NOTSOCK)?;
        let flow = self.find(name).ok_or(Errno::NOTSOCK)?;
        let flow = &mut self.flows[flow];
        if !flow.contexts.contains(&serial) {
            flow.contexts.push(serial);
        }
        let file = flow.file.try_clone().map_err(|_| Errno::MFILE)?;
        Ok(Answer { value: name, descriptors: vec![file] })
    }

    /// Root sets everybody's limits, others lower their own.
    fn limit(&mut self, index: usize, message: &RequestMessage) -> Result<Answer, Errno> {
        let asking = self.applications[index].user;
        let mut any = false;
        for (_, application) in &mut self.applications {
            if application.pid == message.value && (asking == 0 || asking == application.user) {
                any = true;
                let connections = (message.extra as u32) as usize;
                let rate = Some((message.extra >> 32) << 10).filter(|rate| *rate > 0);
                let limits = &mut application.limits;
                if asking == 0 {
                    *limits = Limits { connections, bytes_per_second: rate };
                } else {
                    limits.connections = limits.connections.min(connections);
                    let rates = [limits.bytes_per_second, rate];
                    limits.bytes_per_second = rates.into_iter().flatten().min();
                }
            }
        }
        if any { Ok(Answer::default()) } else { Err(Errno::SRCH) }
    }

    fn bind(&mut self, index: usize, message: &RequestMessage) -> Result<Answer, Errno> {
        let flow = self.possessed(index, message)?;
        let at = plain(message.address.address().ok_or(Errno::INVAL)?);
        if self.flows[flow].role != Role::Fresh || self.flows[flow].claimed {
            return Err(Errno::INVAL);
        }
        let ip = at.ip();
        if !ip.is_unspecified() && !self.route.owns(ip) && message.value & BIND_FREE == 0 {
            return Err(Errno::ADDRNOTAVAIL);
        }
        if (1..1024).contains(&at.port()) && self.applications[index].user != 0 {
            return Err(Errno::ACCESS);
        }
        self.claim(flow, at, message.value)?;
        Ok(Answer::default())
    }

    fn claim(&mut self, index: usize, at: SocketAddr, options: u32) -> Result<(), Errno> {
        let flow = &self.flows[index];
        let (name, owner) = (flow.name, flow.owner);
        let user = self.application(owner).map_or(0, |application| application.user);
        let port = self.bindings.bind(Claim {
            flow: name,
            at,
            reuse_address: options & BIND_REUSE_ADDRESS != 0,
            reuse_port: options & BIND_REUSE_PORT != 0,
            v6_only: options & BIND_V6_ONLY != 0,
            user,
            listening: false,
        })?;
        let flow = &mut self.flows[index];
        flow.claimed = true;
        flow.local = Some(SocketAddr::new(at.ip(), port));
        flow.show_addresses();
        Ok(())
    }

    fn connect(&mut self, index: usize, message: &RequestMessage) -> Result<Answer, Errno> {
        let at = self.possessed(index, message)?;
        let mut to = plain(message.address.address().ok_or(Errno::INVAL)?);
        match self.flows[at].role {
            Role::Fresh => {}
            Role::Connecting(_) => return Err(Errno::ALREADY),
            _ => return Err(Errno::ISCONN),
        }
        if to.ip().is_unspecified() {
            // Linux takes it for the loopback address.
            let loopback: IpAddr = if to.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
            to.set_ip(loopback);
        }
        let bound = self.flows[at].local.filter(|local| !local.ip().is_unspecified());
        let source = bound.map(|local| local.ip()).or_else(|| self.route.source_for(to.ip()));
        let source = source.ok_or(Errno::NETUNREACH)?;
        if source.is_ipv4() != to.is_ipv4() {
            return Err(Errno::NETUNREACH);
        }
        let port = match self.flows[at].local {
            Some(local) => local.port(),
            None => self.bindings.port_for(source, to)?,
        };
        let from = SocketAddr::new(source, port);
        self.bindings.pair(from, to)?;
        let id = match self.route.connect(from, to, self.flows[at].options.max_segment) {
            Ok(id) => id,
            Err(cause) => {
                self.bindings.unpair(from, to);
                self.flows[at].show_writable();
                return Err(cause);
            }
        };
        let flow = &mut self.flows[at];
        flow.local = Some(from);
        flow.remote = Some(to);
        flow.role = Role::Connecting(id);
        flow.show_addresses();
        flow.show_state(State::Connecting);
        self.by_connection.insert(id, flow.name);
        Ok(Answer::default())
    }

    /// Notes an option that the stack has to know.
    pub(super) fn set_option(&mut self, index: usize, option: u32, number: u64) {
        if self.flows[index].tx_ready > 0 {
            // Bytes that were written before are under the option, too: TCP_NODELAY pushes them out.
            self.pump(index);
        }
        let options = &mut self.flows[index].options;
        let number32 = number as u32;
        match ((option >> 16) as i32, (option & 0xffff) as i32) {
            (libc::IPPROTO_TCP, libc::TCP_NODELAY) => options.no_delay = number != 0,
            // It has effect on what begins after it.
            (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => options.max_segment = number as u16,
            (libc::IPPROTO_TCP, libc::TCP_CORK) => options.cork = number != 0,
            (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE) => options.keep_idle = number32,
            (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL) => options.keep_interval = number32,
            (libc::IPPROTO_TCP, libc::TCP_KEEPCNT) => options.keep_count = number32,
            (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT) => options.user_timeout_ms = number32,
            (libc::SOL_SOCKET, libc::SO_KEEPALIVE) => options.keep_alive = number != 0,
            // Two numbers: on, and seconds.
            (libc::SOL_SOCKET, libc::SO_LINGER) => options.reset_on_close = number32 != 0 && number >> 32 == 0,
            _ => return,
        }
        self.apply_options(index);
    }

    /// Gives a connection's options to the stack.
    pub(super) fn apply_options(&mut self, index: usize) {
        let flow = &self.flows[index];
        if matches!(flow.role, Role::Listener(_)) {
            let setting = Setting::MaxSegment(flow.options.max_segment);
            let own = self.groups.values().filter(|group| group.members.contains(&flow.name));
            let ids: Vec<Id> = own.flat_map(|group| group.ids.iter().copied()).collect();
            ids.into_iter().for_each(|id| self.route.set(id, setting));
        }
        if let Role::Connected(id) = self.flows[index].role {
            for setting in self.flows[index].options.settings() {
                self.route.set(id, setting);
            }
        }
    }
}

/// What a request gets.
#[derive(Debug, Default)]
struct Answer {
    value: u32,
    descriptors: Vec<OwnedFd>,
}
