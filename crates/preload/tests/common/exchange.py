# Sends and receives at once over each of so many connections to an echo server, half-closes, and compares; then asks a
# port where nobody listens. Arguments: the server, its port, connections.
import socket, sys, threading, time
server, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
whole = []
def one():
    for attempt in range(300):
        try: c = socket.create_connection((server, port), timeout=20); break
        except OSError: time.sleep(0.1)
    data = bytes(range(256)) * 4000
    def send(): c.sendall(data); c.shutdown(socket.SHUT_WR)
    t = threading.Thread(target=send); t.start()
    got = b""
    while d := c.recv(30_000): got += d
    t.join()
    assert got == data, len(got)
    whole.append(1)
ts = [threading.Thread(target=one) for _ in range(count)]
for t in ts: t.start()
for t in ts: t.join()
try: socket.create_connection((server, 9), timeout=20); assert False
except ConnectionRefusedError: print(len(whole), "whole")
