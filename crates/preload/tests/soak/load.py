"""Mixed load on every server of the soak test: load.py SECONDS HOST FOLDER IPERF_PORT.

Each program has a thread, which opens connections, compares every answer and closes them, at a low rate. An answer that
is wrong ends the run with status 1; a connection that breaks is counted, and its turn is repeated. The last lines are
`PROGRAM TURNS BROKEN`.
"""

import http.client
import os
import random
import re
import socket
import subprocess
import sys
import threading
import time

SECONDS, HOST, FOLDER, IPERF = float(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
END = time.monotonic() + SECONDS
NAME = f'{os.getpid()}'
SMALL = open(f'{FOLDER}/small', 'rb').read()
LARGE = open(f'{FOLDER}/large', 'rb').read()


class Wrong(Exception):
    """An answer that no server should give."""


def same(got, want):
    if got != want:
        raise Wrong(f'{got[:200]!r} instead of {want[:200]!r} ({len(got)} and {len(want)} bytes)')


def exactly(stream, size):
    data = stream.read(size)
    if len(data) < size:
        raise ConnectionError(f'{len(data)} of {size} bytes')
    return data


def line(stream):
    text = stream.readline()
    if not text.endswith(b'\n'):
        raise ConnectionError('no whole line')
    return text


def connect(port):
    return socket.create_connection((HOST, port), timeout=25)


def ran(*words, timeout=60):
    """What a program prints; one that fails is a broken connection, with its words."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout)
    if done.returncode:
        raise ConnectionError(f'{words[0]}: {done.returncode} {done.stderr[-200:]!r}')
    return done.stdout


def memcached(turn):
    with connect(11211) as c:
        f = c.makefile('rb')
        for n in range(10):
            value = random.randbytes(random.choice([1, 100, 5000, 60_000]))
            key = b'k%s-%d' % (NAME.encode(), n)
            c.sendall(b'set %s 0 0 %d\r\n%s\r\nget %s\r\n' % (key, len(value), value, key))
            same(line(f), b'STORED\r\n')
            same(line(f), b'VALUE %s 0 %d\r\n' % (key, len(value)))
            same(exactly(f, len(value) + 7), value + b'\r\nEND\r\n')


def redis(turn):
    def command(*words):
        return b'*%d\r\n' % len(words) + b''.join(b'$%d\r\n%s\r\n' % (len(w), w) for w in words)

    with connect(6379) as c:
        f = c.makefile('rb')
        values = [random.randbytes(random.choice([3, 64, 2000, 20_000])) for _ in range(16)]
        keys = [b'%s-%d' % (NAME.encode(), n) for n in range(16)]
        # Once in a pipeline, then one at a time.
        c.sendall(b''.join(command(b'SET', key, value) for key, value in zip(keys, values)))
        for _ in keys:
            same(line(f), b'+OK\r\n')
        for key, value in zip(keys, values):
            c.sendall(command(b'GET', key))
            same(line(f), b'$%d\r\n' % len(value))
            same(exactly(f, len(value) + 2), value + b'\r\n')
        if turn % 20 == 0:
            c.sendall(command(b'BGSAVE'))
            answer = line(f)
            if not answer.startswith((b'+Background saving', b'-ERR Background save already')):
                raise Wrong(answer)


def fetches(port):
    def turn(turn):
        c = http.client.HTTPConnection(HOST, port, timeout=25)
        try:
            for n in range(4):
                path, want = ('/large', LARGE) if turn % 10 == 0 and n == 3 else ('/small', SMALL)
                c.request('GET', path)
                answer = c.getresponse()
                body = answer.read()
                # A proxy says so when its server's connection broke.
                if answer.status in (502, 503):
                    raise ConnectionError(f'status {answer.status}')
                if answer.status != 200:
                    raise Wrong(f'status {answer.status}')
                same(body, want)
        finally:
            c.close()

    return turn


def curl(turn):
    port = random.choice([8080, 8081, 8090])
    same(ran('curl', '-sS', '--fail', '--max-time', '25', f'http://{HOST}:{port}/large'), LARGE)


def wrk(turn):
    text = ran('wrk', '-t1', '-c8', '-d1s', f'http://{HOST}:8080/small').decode()
    errors = re.search(r'Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)', text)
    if 'Non-2xx' in text:
        raise Wrong(text)
    if errors and any(int(number) for number in errors.groups()):
        raise ConnectionError(errors.group())


def socat(turn):
    data = random.randbytes(100_000)
    with connect(7000) as c:
        def send():
            try:
                c.sendall(data)
                c.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # The receiver sees it, too.

        sender = threading.Thread(target=send)
        sender.start()
        try:
            got = b''.join(iter(lambda: c.recv(30_000), b''))
        finally:
            sender.join()
    if len(got) < len(data):
        same(got, data[:len(got)])
        raise ConnectionError('cut')
    same(got, data)


def iperf3(turn):
    way = ['-R'] if turn % 2 else []
    text = ran('iperf3', '-c', HOST, '-p', IPERF, '-b', '40M', '-t', '2', '-J', *way).decode()
    if '"error"' in text or '"sum_received"' not in text:
        raise ConnectionError(text[-300:])


def psql(*query):
    return ran('psql', '-h', HOST, '-U', 'someone', '-Atq', 'postgres', *query)


def postgres(turn):
    same(psql('-c', 'select sum(x) from generate_series(1, 100000) x'), b'5000050000\n')
    if turn % 5 == 0:
        text = ran(PGBENCH, '-h', HOST, '-U', 'someone', '-n', '-c', '3', '-R', '30', '-T', '3', 'postgres').decode()
        if 'number of failed transactions: 0' not in text:
            raise Wrong(text)
    if turn % 7 == 0:
        # A backend that ends in the middle of a query says so.
        words = ['psql', '-h', HOST, '-U', 'someone', '-Atq', '-c', f"select 'victim {NAME}', pg_sleep(60)", 'postgres']
        victim = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        end = f"select pg_terminate_backend(pid) from pg_stat_activity where query like 'select ''victim {NAME}%'"
        for _ in range(200):
            if psql('-c', end) == b't\n':
                break
            time.sleep(0.1)
        said = victim.communicate(timeout=30)[1]
        if b'terminating connection due to administrator command' not in said:
            raise Wrong(said)


def ssh(turn):
    quiet = ['-o', 'StrictHostKeyChecking=no', '-o', 'UserKnownHostsFile=/dev/null', '-o', 'LogLevel=ERROR']
    words = ['ssh', *quiet, '-i', f'{FOLDER}/user', '-p', '2222', f'root@{HOST}']
    same(ran(*words, 'head -c 300000 /dev/zero | wc -c').strip(), b'300000')


def leave(turn):
    """A client that is killed in the middle of requests; servers must live with it."""
    script = (
        'import os, socket, sys\n'
        'kept = [socket.create_connection((sys.argv[1], int(port)), timeout=20) for port in sys.argv[2:] * 3]\n'
        "for c in kept: c.sendall(b'GET /large HTTP/1.1\\r\\nHost: x\\r\\n\\r\\nset')\n"
        'os.kill(os.getpid(), 9)\n'
    )
    ports = ['8080', '8081', '8090', '7000', '2222', '11211', '6379']
    done = subprocess.run([sys.executable, '-c', script, HOST, *ports], capture_output=True, timeout=60)
    if done.returncode != -9:
        raise ConnectionError(f'{done.returncode} {done.stderr[-200:]!r}')


# What runs, and the pause after a turn.
PGBENCH = os.environ.get('SOAK_PGBENCH', '')
PROGRAMS = {
    'memcached': (memcached, 0.4), 'redis': (redis, 0.4), 'nginx': (fetches(8080), 0.4), 'haproxy': (fetches(8081), 0.4),
    'http.server': (fetches(8090), 0.8), 'curl': (curl, 2), 'wrk': (wrk, 25), 'socat': (socat, 2),
    'iperf3': (iperf3, 6), 'leave': (leave, 10),
}
if PGBENCH:
    PROGRAMS['postgres'] = (postgres, 5)
if os.path.exists(f'{FOLDER}/user'):
    PROGRAMS['ssh'] = (ssh, 5)
COUNTS, WRONG, SAID = {}, [], {}


def load(name, turn, pause):
    turns = broken = row = 0
    while time.monotonic() < END and not WRONG:
        try:
            turn(turns)
            turns, row = turns + 1, 0
        except (OSError, http.client.HTTPException, EOFError) as error:
            broken, row = broken + 1, row + 1
            SAID.setdefault(name, f'{type(error).__name__} {error}')
            if row > 60:
                WRONG.append(f'{name}: does not come back: {error!r}')
        except Exception as error:
            WRONG.append(f'{name}: {error!r}')
        time.sleep(pause * random.uniform(0.5, 1.5) if row == 0 else 0.5)
    COUNTS[name] = (turns, broken)


threads = [threading.Thread(target=load, args=(name, *what)) for name, what in PROGRAMS.items()]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for name, said in SAID.items():
    print(f'{name}: {said}', file=sys.stderr)
for wrong in WRONG:
    print(wrong, file=sys.stderr)
for name, (turns, broken) in COUNTS.items():
    print(name, turns, broken)
sys.exit(1 if WRONG else 0)
