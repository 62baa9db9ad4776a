# Echoes in a thread for each connection, until the end of the stream. Arguments: the port; "dual" for both families;
# "dies" for a server that kills itself in the middle of a stream with bytes in all its rings, as one does that crashes.
import os, signal, socket, sys, threading
port, dies = int(sys.argv[1]), "dies" in sys.argv
if "dual" in sys.argv:
    l = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
else:
    l = socket.create_server(("0.0.0.0", port))
def serve(c):
    came = 0
    while d := c.recv(50_000):
        came += len(d)
        if dies and came > 300_000: os.kill(os.getpid(), signal.SIGKILL)
        c.sendall(d)
    c.close()
while True: threading.Thread(target=serve, args=(l.accept()[0],), daemon=True).start()
