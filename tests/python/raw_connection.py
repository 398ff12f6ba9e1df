"""A connection that sends a command exactly as it stands: PyMongo puts a session of its own in the place of `lsid`."""

import socket
import struct

import bson
from bson.raw_bson import RawBSONDocument
from pymongo.errors import OperationFailure

HEADER = struct.Struct("<iiii")
OP_MSG = 2013


def read_exactly(connection, count):
    """So many bytes from a socket."""
    read = b""
    while len(read) < count:
        part = connection.recv(count - len(read))
        assert part, "the server closed the connection"
        read += part
    return read


def fields(*pairs):
    """A document of these fields, of which a name may stand several times."""
    inner = b"".join(bson.encode({name: value})[4:-1] for name, value in pairs)
    return RawBSONDocument(struct.pack("<i", len(inner) + 5) + inner + b"\0")


_origins = (f"127.0.{high}.{low}" for high in range(1, 255) for low in range(1, 255))


def fresh_origin():
    """An address of this machine from which no login has failed: failures delay the logins that follow from theirs."""
    return next(_origins)


def message(database, request, flags=0):
    """A request as the bytes of a whole message."""
    body = struct.pack("<IB", flags, 0) + bson.encode({**request, "$db": database})
    return HEADER.pack(HEADER.size + len(body), 1, 0, OP_MSG) + body


class Raw:
    """One connection; one request at a time. `origin` is the address of this machine that it comes from."""

    def __init__(self, port, origin="127.0.0.1"):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60, source_address=(origin, 0))

    def send(self, database, request, flags=0):
        """Sends a request, and reads no reply."""
        self.socket.sendall(message(database, request, flags))

    def exchange(self, sent):
        """The bytes of the document that answers a whole message."""
        self.socket.sendall(sent)
        return self.next_document()

    def receive(self):
        """The next reply, whatever it is."""
        return bson.decode(self.next_document())

    def next_document(self):
        """The bytes of the document of the next message."""
        length, *_ = HEADER.unpack(read_exactly(self.socket, HEADER.size))
        return read_exactly(self.socket, length - HEADER.size)[5:]

    def ask(self, database, request):
        """The reply, whatever it is."""
        return bson.decode(self.exchange(message(database, request)))

    def command(self, database, request):
        """The reply of a command that succeeds."""
        reply = self.ask(database, request)
        if not reply["ok"]:
            raise OperationFailure(reply["errmsg"], reply.get("code"), reply)
        return reply

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
