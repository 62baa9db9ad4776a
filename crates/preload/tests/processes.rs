//! fork, exec, threads, death, and what programs do to their descriptors.

mod common;

use common::{Running, has, text};

/// Runs a Python script over a service; it asserts by itself.
fn python(script: &str) {
    if !has("python3") {
        return;
    }
    let service = Running::new();
    let prelude = "import os, select, signal, socket, struct, subprocess, sys, threading, time\n\
                   def pair():\n\
                   \x20   l = socket.create_server(('127.0.0.1', 0))\n\
                   \x20   c = socket.create_connection(l.getsockname())\n\
                   \x20   s, _ = l.accept()\n\
                   \x20   l.close()\n\
                   \x20   return c, s\n";
    text(service.run("python3", &["-c", &format!("{prelude}{script}")]));
    service.settled(0);
}

#[test]
fn forked_children_share_a_listener_and_each_connection_goes_to_one() {
    python(
        "
l = socket.create_server(('127.0.0.1', 0), backlog=64)
children = []
for n in range(3):
    pid = os.fork()
    if pid == 0:
        served = 0
        while True:
            c, _ = l.accept()
            word = c.recv(100)
            c.sendall(word * 2)
            c.close()
            if word == b'end': os._exit(0)
    children.append(pid)
for n in range(60):
    c = socket.create_connection(l.getsockname()); c.sendall(b'%d ' % n)
    assert c.recv(100) == b'%d ' % n * 2
    assert c.recv(100) == b''
    c.close()
for pid in children:
    c = socket.create_connection(l.getsockname()); c.sendall(b'end'); assert c.recv(100) == b'endend'; c.close()
for pid in children: assert os.waitpid(pid, 0)[1] == 0
",
    );
}

#[test]
fn a_child_goes_on_with_its_parents_connection() {
    python(
        "
c, s = pair()
if os.fork() == 0:
    assert c.recv(5) == b'hello'
    c.sendall(b'child')
    os._exit(0)
s.sendall(b'hello')
assert s.recv(5) == b'child'
os.wait()
s.sendall(b'again')
assert c.recv(5) == b'again'
c.close()
assert s.recv(5) == b''
",
    );
}

#[test]
fn an_executed_program_finds_its_sockets() {
    python(
        "
c, s = pair()
os.set_inheritable(s.fileno(), True)
code = 'import socket,sys; s = socket.socket(fileno=int(sys.argv[1])); s.sendall(s.recv(100).upper()); s.close()'
p = subprocess.Popen([sys.executable, '-c', code, str(s.fileno())], close_fds=False)
s.close()
c.sendall(b'exec')
assert c.recv(100) == b'EXEC'
assert c.recv(100) == b''
assert p.wait() == 0
",
    );
}

#[test]
fn an_executed_program_finds_its_sockets_in_an_empty_environment() {
    python(
        "
c, s = pair()
os.set_inheritable(s.fileno(), True)
code = 'import socket,sys; s = socket.socket(fileno=int(sys.argv[1])); s.sendall(s.recv(100).upper()); s.close()'
if os.fork() == 0:
    os.environ.clear()
    os.execve(sys.executable, [sys.executable, '-c', code, str(s.fileno())], {})
s.close()
c.sendall(b'empty')
assert c.recv(100) == b'EMPTY'
assert c.recv(100) == b''
assert os.wait()[1] == 0
",
    );
}

#[test]
fn a_socket_travels_over_a_unix_socket() {
    python(
        "
a, b = socket.socketpair(socket.AF_UNIX)
c, s = pair()
if os.fork() == 0:
    s.close(); c.close()
    _, (fd,), _, _ = socket.recv_fds(b, 10, 1)
    t = socket.socket(fileno=fd)
    assert t.recv(10) == b'over'
    t.sendall(b'there'); t.close()
    os._exit(0)
socket.send_fds(a, [b'x'], [s.fileno()]); s.close()
c.sendall(b'over')
assert c.recv(10) == b'there'
assert os.wait()[1] == 0
",
    );
}

#[test]
fn peers_of_a_killed_process_are_reset() {
    python(
        "
l = socket.create_server(('127.0.0.1', 0))
pid = os.fork()
if pid == 0:
    held = [socket.create_connection(l.getsockname()) for _ in range(5)]
    for h in held: h.sendall(b'up')
    time.sleep(60)
accepted = [l.accept()[0] for _ in range(5)]
for a in accepted: assert a.recv(10) == b'up'
os.kill(pid, signal.SIGKILL); os.wait()
for a in accepted:
    try: a.recv(10); assert False, 'no reset'
    except ConnectionResetError: pass
",
    );
}

#[test]
fn threads_share_sockets() {
    python(
        "
c, s = pair()
total = 4 * 200_000
def send():
    for _ in range(200): c.sendall(b'x' * 1000)
got = []
def receive():
    n = 0
    while True:
        d = s.recv(7000)
        if not d: break
        n += len(d)
    got.append(n)
senders = [threading.Thread(target=send) for _ in range(4)]
receivers = [threading.Thread(target=receive) for _ in range(3)]
for t in senders + receivers: t.start()
for t in senders: t.join()
c.shutdown(socket.SHUT_WR)
for t in receivers: t.join()
assert sum(got) == total, got
",
    );
}

#[test]
fn one_epoll_waits_for_ours_and_the_kernels() {
    python(
        "
c, s = pair()
r, w = os.pipe(); a, b = socket.socketpair()
e = select.epoll()
for f in (s.fileno(), r, a.fileno()): e.register(f, select.EPOLLIN)
assert e.poll(0) == []
c.sendall(b'1'); os.write(w, b'2'); b.send(b'3')
time.sleep(0.2)
assert sorted(f for f, _ in e.poll(1)) == sorted([s.fileno(), r, a.fileno()])
s.recv(1); os.read(r, 1); a.recv(1)
assert e.poll(0) == []
assert select.select([s, r], [s], [], 1) == ([], [s], [])
c.close()
time.sleep(0.2)
assert e.poll(1) == [(s.fileno(), select.EPOLLIN)]
",
    );
}

#[test]
fn a_child_in_its_parents_memory_leaves_the_parents_sockets_alone() {
    python(
        "
import subprocess
# Before the first close of a socket: Python begins programs by vfork.
subprocess.run(['true'], check=True)
c, s = pair()
kept = {x.fileno() for x in (c, s)}
c.close(); s.close()
r, w = os.pipe()
assert {r, w} & kept
os.write(w, b'x'); assert os.read(r, 1) == b'x'
def child():
    subprocess.run(['true'], check=True)
    c, s = pair(); c.close(); s.close()
    r, w = os.pipe(); os.write(w, b'y'); assert os.read(r, 1) == b'y'
if (pid := os.fork()) == 0:
    child(); os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
",
    );
}

#[test]
fn data_behind_what_is_left_is_a_new_edge() {
    python(
        "
import fcntl, termios, struct
c, s = pair()
e = select.epoll(); e.register(s.fileno(), select.EPOLLIN | select.EPOLLET)
waiting = lambda: struct.unpack('i', fcntl.ioctl(s, termios.FIONREAD, b'0000'))[0]
for n in range(100):
    # One byte more is left each time; every third time a program looks and takes nothing.
    c.sendall(b'12')
    assert e.poll(5) == [(s.fileno(), select.EPOLLIN)], n
    assert e.poll(0) == [], n
    if n % 3 == 0: assert waiting() == left + 2 if n else waiting() == 2
    else: s.recv(1)
    left = waiting()
while left: left -= len(s.recv(50))
s.setblocking(False)
try: s.recv(1); assert False
except BlockingIOError: pass
assert e.poll(0) == [] and select.select([s], [], [], 0) == ([], [], [])
c.sendall(b'3')
assert e.poll(5) == [(s.fileno(), select.EPOLLIN)] and s.recv(5) == b'3'
",
    );
}

#[test]
fn a_full_ring_is_not_writable_until_it_drains() {
    python(
        "
c, s = pair()
c.setblocking(False)
p = select.poll(); p.register(c, select.POLLOUT)
n = 0
while True:
    try: n += c.send(b'x' * 65536)
    except BlockingIOError:
        time.sleep(0.05)
        if not p.poll(100): break
got = 0
while got < n: got += len(s.recv(65536))
assert got == n
assert p.poll(2000), 'writable again'
c.setblocking(True); c.settimeout(0.3)
begun = time.time()
try:
    while True: c.sendall(b'y' * 65536)
except TimeoutError: pass
assert time.time() - begun > 0.25
",
    );
}

#[test]
fn closing_everything_leaves_the_library_alive() {
    python(
        "
c, s = pair()
os.closerange(500, 2000)
d, t = pair()
d.sendall(b'x'); assert t.recv(1) == b'x'
os.dup2(d.fileno(), 950)
u = socket.socket(fileno=950)
d.close()
u.sendall(b'y'); assert t.recv(1) == b'y'
for n in range(900, 910): os.dup2(1, n)
c.sendall(b'z'); assert s.recv(1) == b'z'
e, v = pair()
e.sendall(b'!'); assert v.recv(1) == b'!'
",
    );
}

#[test]
fn interrupted_calls_and_timeouts_are_the_kernels() {
    python(
        "
c, s = pair()
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack('ll', 0, 200000))
begun = time.time()
try: os.read(s.fileno(), 1); assert False
except BlockingIOError: assert 0.15 < time.time() - begun < 5
hits = []
class Woken(Exception): pass
def handler(*_): hits.append(1); raise Woken
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.1)
try: c.recv(1); assert False
except Woken: pass
assert hits == [1]
",
    );
}

#[test]
fn ports_are_shared_by_reuse_port_only() {
    python(
        "
a = socket.socket(); a.bind(('127.0.0.1', 0)); a.listen()
b = socket.socket()
try: b.bind(a.getsockname()); assert False
except OSError as error: assert error.errno == 98
servers = []
port = 0
for _ in range(3):
    l = socket.socket(); l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    l.bind(('127.0.0.1', port)); l.listen(); port = l.getsockname()[1]; servers.append(l)
clients = [socket.create_connection(('127.0.0.1', port)) for _ in range(9)]
time.sleep(0.2)
shares = []
for l in servers:
    l.setblocking(False); n = 0
    try:
        while True: l.accept(); n += 1
    except BlockingIOError: pass
    shares.append(n)
assert sum(shares) == 9 and min(shares) > 0, shares
",
    );
}

#[test]
fn a_long_backlog_resets_nobody() {
    python(
        "
l = socket.create_server(('127.0.0.1', 0), backlog=900)
clients = []
for n in range(800):
    c = socket.socket(); c.setblocking(False)
    assert c.connect_ex(l.getsockname()) in (0, 115)
    clients.append(c)
time.sleep(0.5)
gone = clients[700:710]
for c in gone: c.close()
l.settimeout(3)
served = 0
while served < 800:
    # Connections that ended while they waited may be there, or not.
    try: s, _ = l.accept()
    except TimeoutError: break
    served += 1
    try: s.sendall(b'hello')
    except (ConnectionResetError, BrokenPipeError): pass
    s.close()
assert served >= 790, served
for c in clients:
    if c in gone: continue
    c.setblocking(True); assert c.recv(10) == b'hello'
",
    );
}

#[test]
fn what_is_not_tcp_goes_to_the_kernel() {
    python(
        "
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(('127.0.0.1', 0))
v = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); v.sendto(b'udp', u.getsockname())
assert u.recv(10) == b'udp'
",
    );
}
