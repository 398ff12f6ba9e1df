"""A connection that sends a command exactly as it stands: PyMongo moves `documents`, `updates` and `deletes` into sections of
their own, and refuses to do so if they are not lists of documents, which is just what some tests want to send."""

import socket
import struct

from exact import encode
from raw_connection import read_exactly

OP_MSG = 2013
HEADER = struct.Struct("<iiii")


class Wire:
    """One connection; one request at a time."""

    def __init__(self, host, port):
        self.socket = socket.create_connection((host, port), timeout=60)
        self.last_id = 0

    def command(self, database, request):
        """The raw reply."""
        return self.send(encode({**request, "$db": database}).raw)

    def send(self, document):
        """The raw reply to a whole command document."""
        self.last_id += 1
        body = struct.pack("<IB", 0, 0) + document
        self.socket.sendall(HEADER.pack(HEADER.size + len(body), self.last_id, 0, OP_MSG) + body)
        length, _, response_to, code = HEADER.unpack(read_exactly(self.socket, HEADER.size))
        assert (response_to, code) == (self.last_id, OP_MSG)
        reply = read_exactly(self.socket, length - HEADER.size)
        assert reply[4] == 0, "the reply has one section of kind 0"
        return reply[5:]

    def close(self):
        self.socket.close()
