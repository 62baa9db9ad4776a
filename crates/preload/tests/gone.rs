//! The service dies while programs use their sockets, and comes back.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Stdio};

use common::{Running, has};

/// A Python program that prints a word and waits for a line where the service is to go or to come back.
struct Script {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

const PRELUDE: &str = "
import os, select, socket, sys, threading, time
def say(word):
    print(word, flush=True); sys.stdin.readline()
def pair(l):
    c = socket.create_connection(l.getsockname()); return c, l.accept()[0]
def waits(e, seconds):
    began, turns = time.time(), 0
    while time.time() - began < seconds: turns += 1; e.poll(began + seconds - time.time())
    return turns
";

impl Script {
    fn start(service: &Running, script: &str) -> Script {
        let mut command = service.command("timeout");
        command
            .args(["60", "python3", "-c", &format!("{PRELUDE}{script}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Script { child, lines }
    }

    fn says(&mut self, word: &str) {
        let line = self.lines.next();
        assert_eq!(line.and_then(Result::ok).as_deref(), Some(word), "{:?}", self.child.try_wait());
    }

    fn goes_on(&mut self) {
        writeln!(self.child.stdin.as_mut().unwrap()).unwrap();
    }

    fn ends(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn connections_are_reset_once() {
    if !has("python3") {
        return;
    }
    let mut service = Running::new();
    let mut script = Script::start(
        &service,
        "
l = socket.create_server(('127.0.0.1', 7100))
(c, s), (d, t), (u, v) = pair(l), pair(l), pair(l)
t.sendall(b'left'); time.sleep(0.1)
e = select.epoll(); e.register(s, select.EPOLLIN); e.register(d, select.EPOLLIN | select.EPOLLET)
got = []
def read():
    try: u.recv(1); got.append('data')
    except ConnectionResetError: got.append('reset')
reader = threading.Thread(target=read); reader.start(); time.sleep(0.1)
e.poll(0)
say('up')
seen = dict(e.poll(5))
assert seen[s.fileno()] & select.EPOLLHUP, seen
try: s.recv(1); assert False
except ConnectionResetError: pass
assert s.recv(1) == b'' and s.recv(1) == b''
try: s.send(b'x'); assert False
except BrokenPipeError: pass
try: c.sendall(bytes(1 << 20)); assert False
except ConnectionResetError: pass
try: c.sendall(b'x'); assert False
except BrokenPipeError: pass
assert d.recv(100) == b'left', 'what came before is read'
assert d.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 104
assert d.recv(100) == b''
reader.join(5); assert got == ['reset'], got
try: socket.socket(); assert False
except OSError as error: assert error.errno == 100, error
",
    );
    script.says("up");
    service.go();
    script.goes_on();
    script.ends();
}

#[test]
fn listeners_fall_silent_and_another_service_takes_them_over() {
    if !has("python3") {
        return;
    }
    let mut service = Running::new();
    let mut script = Script::start(
        &service,
        "
l = socket.create_server(('127.0.0.1', 7200)); l.setblocking(False)
b = socket.create_server(('127.0.0.1', 7201))
bound = socket.socket(); bound.bind(('127.0.0.1', 7202))
if os.fork() == 0:
    # A worker that shares the listener, with an epoll of its own.
    e = select.epoll(); e.register(l, select.EPOLLIN | 1 << 28)
    served = 0
    while served < 1:
        for _ in e.poll():
            try: a, _ = l.accept()
            except BlockingIOError: continue
            a.sendall(b'child'); a.close(); served += 1
    os._exit(0)
e = select.epoll(); e.register(l, select.EPOLLIN)
served = []
def block():
    a, _ = b.accept(); a.sendall(b'blocked'); a.close(); served.append(1)
blocked = threading.Thread(target=block); blocked.start(); time.sleep(0.1); say('up')
for _ in range(3):
    for _ in e.poll(1):
        try: l.accept(); assert False
        except BlockingIOError: pass
assert waits(e, 0.5) < 5, 'no spin'
say('quiet')
while True:
    for _ in e.poll(5):
        try: l.accept(); assert False
        except BlockingIOError: pass
    try: c = socket.create_connection(('127.0.0.1', 7200)); break
    except OSError as error: assert error.errno in (100, 111), error
words = set()
deadline = time.time() + 20
while words != {b'child', b'parent'} and time.time() < deadline:
    for _ in e.poll(0.1):
        try: a, _ = l.accept()
        except BlockingIOError: continue
        a.sendall(b'parent'); a.close()
    c.setblocking(False)
    try: word = c.recv(10)
    except BlockingIOError: continue
    if word: words.add(word)
    c.close(); c = socket.create_connection(('127.0.0.1', 7200))
assert words == {b'child', b'parent'}, words
assert os.wait()[1] == 0
while True:
    try: c = socket.create_connection(('127.0.0.1', 7201)); break
    except ConnectionRefusedError: time.sleep(0.05)
assert c.recv(10) == b'blocked'
blocked.join(5); assert served == [1]
bound.listen(); assert bound.getsockname() == ('127.0.0.1', 7202)
c = socket.create_connection(('127.0.0.1', 7202)); assert bound.accept()
",
    );
    script.says("up");
    service.go();
    script.goes_on();
    script.says("quiet");
    service.come_back();
    script.goes_on();
    script.ends();
}
