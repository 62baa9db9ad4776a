//! Programs over the library against programs over the kernel, across a TAP device in a namespace of its own.
#![allow(unsafe_code, reason = "a namespace for this thread and what it starts")]

mod common;

use std::process::Command;

use common::{Running, has, output, text};
use nicforge_sockets::attach::{Attachment, NetworkConfig, address};

/// A namespace for this thread, whose service has 10.9.0.2 and fd09::2, and whose kernel has 10.9.0.1 and fd09::1.
fn network() -> Option<Running> {
    if !has("ip") || !has("python3") {
        return None;
    }
    // SAFETY: only this thread and what it starts changes its network.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 || !std::path::Path::new("/dev/net/tun").exists() {
        eprintln!("skipped: needs root and /dev/net/tun");
        return None;
    }
    let addresses = ["10.9.0.2/24", "fd09::2/64"].map(|text| address(text).unwrap()).to_vec();
    let attachment = Attachment::Tap("nf0".into());
    let service = Running::on(Some(NetworkConfig::new(attachment, addresses)));
    for words in
        ["link set lo up", "addr add 10.9.0.1/24 dev nf0", "addr add fd09::1/64 dev nf0 nodad", "link set nf0 up"]
    {
        text(output(Command::new("ip").args(words.split(' '))));
    }
    Some(service)
}

const ECHO: &str = include_str!("common/echo.py");
const EXCHANGE: &str = include_str!("common/exchange.py");

#[test]
fn kernel_and_library_talk_both_ways_over_both_families() {
    if !common::wants_programs() {
        return;
    }
    let Some(service) = network() else { return };
    let mut ours = service.start("python3", &["-c", ECHO, "7000", "dual"]);
    service.listening(7000);
    // Who watches sees the handshakes, and nothing else passes the filter.
    let path = service.service();
    let mut frames = nicforge_sockets::observe::capture(&path, "tcp port 7000 and syn", 60).unwrap();
    let watcher = std::thread::spawn(move || {
        let line = |frames: &mut nicforge_sockets::observe::Observing| {
            let (header, frame) = frames.frame().unwrap();
            assert!(frame.len() <= 60 && header.frame_bytes >= 60 && header.time_ns > 1 << 60);
            nicforge_sockets::watch::frame::Seen::parse(frame).ports
        };
        [line(&mut frames), line(&mut frames)]
    });
    for host in ["10.9.0.2", "fd09::2"] {
        assert_eq!(
            text(output(Command::new("python3").args(["-c", EXCHANGE, host, "7000", "1"]))),
            "1 whole\n",
            "{host}"
        );
    }
    // A program reaches its own host's addresses, too, like any other's.
    for host in ["10.9.0.2", "fd09::2", "127.0.0.1"] {
        assert_eq!(
            text(service.run("python3", &["-c", EXCHANGE, host, "7000", "1"])),
            "1 whole\n",
            "{host} from itself"
        );
    }
    let seen = watcher.join().unwrap().map(Option::unwrap);
    assert_eq!((seen[0].1, seen[1].0), (7000, 7000), "a SYN and its answer");
    let mut kernels = common::Server(Command::new("python3").args(["-c", ECHO, "7000", "dual"]).spawn().unwrap());
    for host in ["10.9.0.1", "fd09::1"] {
        assert_eq!(text(service.run("python3", &["-c", EXCHANGE, host, "7000", "1"])), "1 whole\n", "{host}");
    }
    kernels.kill();
    // The kernel's client sees a reset when our server is killed.
    let waits = "
import socket
c = socket.create_connection(('10.9.0.2', 7000), timeout=20); c.sendall(b'x'); c.recv(1)
print('up', flush=True)
try: c.recv(1); print('end')
except ConnectionResetError: print('reset')
";
    let mut client = Command::new("python3");
    let mut child = client.args(["-c", waits]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    assert_eq!(lines.next().unwrap().unwrap(), "up");
    ours.kill();
    assert_eq!(lines.next().unwrap().unwrap(), "reset");
    assert!(child.wait().unwrap().success());
}

/// A server of the kernel's: what it reads first of each connection, and the longest segment that it may send there.
const FIRST_READ: &str = "
import socket
l = socket.create_server(('0.0.0.0', 7100))
for _ in range(2):
    c, _ = l.accept()
    print(c.recv(100).decode(), c.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG), flush=True)
    c.close()
";

/// A client: it says that more follows, or not, and has segments of 1000 bytes at most.
const SENDS_TWICE: &str = "
import ctypes, errno, socket, time
for more in (socket.MSG_MORE, 0):
    c = socket.socket()
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1000)
    for attempt in range(300):
        try: c.connect(('10.9.0.1', 7100)); break
        except OSError: time.sleep(0.1)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.send(c.fileno(), None, 10, 0) == -1 and ctypes.get_errno() == errno.EFAULT
    assert len(c.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1000)) == 280
    c.send(b'first', more)
    time.sleep(0.05 if more else 0.5)
    c.send(b'second')
    while c.recv(10): pass
";

#[test]
fn options_and_flags_reach_the_wire() {
    let Some(service) = network() else { return };
    let mut server = Command::new("python3");
    let mut server = server.args(["-c", FIRST_READ]).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let _client = service.start("python3", &["-c", SENDS_TWICE]);
    let lines = std::io::BufRead::lines(std::io::BufReader::new(server.stdout.take().unwrap()));
    let lines: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(server.wait().unwrap().success());
    // With timestamps, whose 12 bytes Linux takes off what the option says.
    assert_eq!(lines, ["firstsecond 988", "first 988"]);
}

/// Leaves questions unread, says why, and closes: a reset follows the answer.
const LAST_WORD: &str = "\
import select, socket
listener = socket.create_server(('', 7002))
while True:
    connection = listener.accept()[0]
    select.select([connection], [], [])
    connection.sendall(b'why')
    connection.close()
";

/// Asks three hundred times; each time the answer comes, then the reset.
const HEARS: &str = "\
import socket
for number in range(300):
    with socket.create_connection(('10.9.0.2', 7002)) as connection:
        connection.sendall(b'question')
        assert connection.recv(9) == b'why', number
        try:
            assert not connection.recv(9), number
        except ConnectionResetError:
            pass
print('all')
";

#[test]
fn the_last_word_comes_before_the_reset() {
    if !common::wants_programs() {
        return;
    }
    let Some(service) = network() else { return };
    let _server = service.start("python3", &["-c", LAST_WORD]);
    service.listening(7002);
    assert_eq!(text(output(Command::new("python3").args(["-c", HEARS]))), "all\n");
}
