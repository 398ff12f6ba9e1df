"""A proxy between clients and a server that breaks connections at random, before a request or before its reply.

A connection that breaks before the reply is the hard case: the server has executed the request, and the
client does not know it. The proxy reads whole messages, so it knows which is which. It needs clients that
send one request at a time and want one reply (`serverMonitoringMode=poll`).

A kill is *ambushed*: the proxy keeps back replies of commits and of retryable writes, the server is killed,
and only when it has started again the connections break. So the client repeats what has taken effect before
the kill, and the new process must know of it.
"""

import random
import socket
import struct
import threading
import time

BREAKS_BEFORE_REQUEST = 0.02
BREAKS_BEFORE_REPLY = 0.05
# A commit is repeated by the driver, and leaves a doubt only where the repetition breaks, too.
BREAKS_BEFORE_REPLY_TO_COMMIT = 0.3
# The first message of a connection is its handshake, which fails without a write being in doubt.
SPARED = 1
CATCH_SECONDS = 0.5
AMBUSH_SECONDS = 30


class Proxy:
    def __init__(self, server_port, seed):
        self.server_port = server_port
        self.chance = random.Random(f"proxy {seed}")
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = self.listener.getsockname()[1]
        # Connections that broke at random, and those whose reply was kept back over a kill.
        self.broken = self.held = 0
        self.ambush, self.caught, self.over = threading.Event(), threading.Event(), threading.Event()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client:
            try:
                with socket.create_connection(("127.0.0.1", self.server_port)) as server:
                    for sockets in (client, server):
                        sockets.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self.pass_messages(client, server)
            except OSError:
                pass  # one side is gone, so the other is closed, too

    def pass_messages(self, client, server):
        passed, route = 0, object()
        while request := message_from(client):
            fate = self.chance.random() if passed >= SPARED else 1
            passed += 1
            if fate < BREAKS_BEFORE_REQUEST:
                self.broken += 1
                return
            server.sendall(self.forwarded(request, route))
            reply = message_from(server)
            if reply is not None and self.ambush.is_set() and takes_effect(request):
                self.held += 1
                self.caught.set()
                self.over.wait(AMBUSH_SECONDS)
                return
            lost_replies = BREAKS_BEFORE_REPLY_TO_COMMIT if b"commitTransaction" in request else BREAKS_BEFORE_REPLY
            if reply is None or fate < BREAKS_BEFORE_REQUEST + lost_replies:
                self.broken += 1
                return
            client.sendall(reply)

    def forwarded(self, request, _route):
        """The request as the server gets it; a route is one connection."""
        return request

    def kill(self, server):
        """Kills a server from an ambush, and starts it again."""
        self.over.clear()
        self.caught.clear()
        self.ambush.set()
        self.caught.wait(CATCH_SECONDS)
        time.sleep(self.chance.uniform(0, 0.02))
        server.kill()
        self.ambush.clear()
        server.start()
        self.over.set()

    def stop(self):
        self.listener.close()


def takes_effect(request):
    """Whether a request is a commit, or a write outside transactions that the driver will repeat."""
    return b"commitTransaction\0" in request or (b"txnNumber\0" in request and b"autocommit\0" not in request)


def message_from(stream):
    """One whole message of MongoDB's protocol, which begins with its length; None at the end of the stream."""
    head = bytes_from(stream, 4)
    if head is None:
        return None
    rest = bytes_from(stream, struct.unpack("<i", head)[0] - 4)
    return None if rest is None else head + rest


def bytes_from(stream, count):
    parts = bytearray()
    while len(parts) < count:
        part = stream.recv(count - len(parts))
        if not part:
            return None
        parts += part
    return bytes(parts)
