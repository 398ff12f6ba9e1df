"""A middleman between a client and a server: it hands the bytes of both on, and may change what the server says."""

import contextlib
import socket
import struct
import threading

import bson

from raw_connection import fresh_origin, read_exactly

HEADER = struct.Struct("<iiii")
OP_REPLY, OP_MSG = 1, 2013
# The bytes between the header and the document of a reply.
IN_FRONT = {OP_REPLY: 20, OP_MSG: 5}


class Middleman:
    """Listens on a port of its own. `change` gets each document of the server's replies, and changes it in place.

    `heard` has the documents of the client's requests by OP_MSG, in their order.
    """

    def __init__(self, port, change):
        self.server_port, self.change, self.heard = port, change, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.sockets = []

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        for opened in [self.listener, *self.sockets]:
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)
            opened.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.server_port), source_address=(fresh_origin(), 0))
                self.sockets += [client, server]
                for pair in [(client, server, self._hear), (server, client, self._answer)]:
                    threading.Thread(target=self._hand_on, args=pair, daemon=True).start()

    def _hand_on(self, source, target, take):
        with contextlib.suppress(OSError, AssertionError):
            while True:
                header = read_exactly(source, HEADER.size)
                length, *_, op_code = HEADER.unpack(header)
                target.sendall(take(op_code, header, read_exactly(source, length - HEADER.size)))
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _hear(self, op_code, header, content):
        if op_code == OP_MSG:
            self.heard.append(bson.decode(content[5:5 + struct.unpack("<i", content[5:9])[0]]))
        return header + content

    def _answer(self, op_code, header, content):
        at = IN_FRONT[op_code]
        document = bson.decode(content[at:])
        self.change(document)
        changed = content[:at] + bson.encode(document)
        return struct.pack("<i", HEADER.size + len(changed)) + header[4:] + changed
