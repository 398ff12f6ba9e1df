"""A connection that speaks the operations of clients from before OP_MSG, byte by byte."""

import socket
import struct

import bson
from raw_connection import read_exactly

OP_REPLY, OP_UPDATE, OP_INSERT, OP_QUERY, OP_GET_MORE, OP_DELETE, OP_KILL_CURSORS, OP_MSG = 1, 2001, 2002, 2004, 2005, 2006, 2007, 2013
CURSOR_NOT_FOUND, QUERY_FAILURE, AWAIT_CAPABLE = 1, 2, 8
TAILABLE, SECONDARY_OK, NO_TIMEOUT, AWAIT_DATA, EXHAUST = 2, 4, 16, 32, 64
HEADER = struct.Struct("<iiii")


def int32(*numbers):
    return struct.pack(f"<{len(numbers)}i", *numbers)


def cstring(name):
    return (name.encode() if isinstance(name, str) else name) + b"\0"


class Reply:
    """An OP_REPLY."""

    def __init__(self, content):
        self.flags, self.cursor, self.starting_from, self.returned = struct.unpack("<iqii", content[:20])
        self.documents = bson.decode_all(content[20:])
        assert len(self.documents) == self.returned

    @property
    def only(self):
        assert self.returned == 1
        return self.documents[0]

    @property
    def failure(self):
        """The document of a query that failed."""
        assert self.flags & QUERY_FAILURE and self.cursor == 0
        return self.only


class LegacyWire:
    """One connection. A write has no reply: ask `last_error`."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.last_id = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, op_code, content):
        self.last_id += 1
        self.socket.sendall(HEADER.pack(HEADER.size + len(content), self.last_id, 0, op_code) + content)

    def reply(self):
        length, _, response_to, op_code = HEADER.unpack(read_exactly(self.socket, HEADER.size))
        assert (response_to, op_code) == (self.last_id, OP_REPLY)
        return Reply(read_exactly(self.socket, length - HEADER.size))

    def is_closed(self):
        """Whether the server ends the connection without another byte."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def query(self, namespace, query, fields=None, skip=0, number=0, flags=0):
        projection = b"" if fields is None else bson.encode(fields)
        self.send(OP_QUERY, int32(flags) + cstring(namespace) + int32(skip, number) + bson.encode(query) + projection)
        return self.reply()

    def command(self, database, command, number=-1, flags=0):
        """The reply without the times that a replica set shows in each."""
        reply = self.query(f"{database}.$cmd", command, number=number, flags=flags).only
        return {name: value for name, value in reply.items() if name not in ("$clusterTime", "operationTime")}

    def get_more(self, namespace, cursor, number=0):
        self.send(OP_GET_MORE, int32(0) + cstring(namespace) + int32(number) + struct.pack("<q", cursor))
        return self.reply()

    def kill_cursors(self, *cursors):
        self.send(OP_KILL_CURSORS, int32(0, len(cursors)) + struct.pack(f"<{len(cursors)}q", *cursors))

    def insert(self, namespace, *documents, flags=0):
        self.send(OP_INSERT, int32(flags) + cstring(namespace) + b"".join(map(bson.encode, documents)))

    def update(self, namespace, selector, update, upsert=False, multi=False):
        self.send(OP_UPDATE, int32(0) + cstring(namespace) + int32(upsert + 2 * multi) + bson.encode(selector) + bson.encode(update))

    def delete(self, namespace, selector, single=False):
        self.send(OP_DELETE, int32(0) + cstring(namespace) + int32(int(single)) + bson.encode(selector))

    def last_error(self, database, **concern):
        return self.command(database, {"getlasterror": 1, **concern})
