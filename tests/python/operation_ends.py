"""The ways in which an operation ends before it is done: its time limit, `killOp`, and the end of its client."""

import socket
import struct
import threading
import time

import bson
import pytest
from pymongo.errors import OperationFailure, PyMongoError


def running(client, **wanted):
    """The listed operations on the collections of these tests."""
    return list(client.admin.aggregate([{"$currentOp": {}}, {"$match": {"ns": {"$regex": r"^(long|test_)"}, **wanted}}]))


def wait_for(found, seconds=20):
    deadline = time.monotonic() + seconds
    while not (result := found()):
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.001)
    return result


def is_over(client):
    return wait_for(lambda: not running(client))


class Background(threading.Thread):
    """A command on a thread of its own; `code` is that of its error, 0 if it has succeeded."""

    def __init__(self, database, command):
        super().__init__(daemon=True)
        self.database, self.command = database, command
        self.code, self.error, self.reply, self.ended = None, None, None, None
        self.start()

    def run(self):
        try:
            self.reply = self.database.command(self.command)
            self.code = 0
        except OperationFailure as error:
            self.code, self.error = error.code, str(error)
        except PyMongoError as error:
            self.error = str(error)
        self.ended = time.monotonic()


def raw_request(database, command):
    body = bson.encode({**command, "$db": database})
    return struct.pack("<iiii", 16 + 5 + len(body), 1, 0, 2013) + struct.pack("<iB", 0, 0) + body


def answer(connection, database, command):
    connection.sendall(raw_request(database, command))
    (length,) = struct.unpack("<i", connection.recv(4, socket.MSG_WAITALL))
    return bson.decode(connection.recv(length - 4, socket.MSG_WAITALL)[17:])


def code_of(background):
    """The code of a command's error, of its first statement, or of the search that it explains, which stands beside its figures."""
    reply = background.reply or {}
    errors = reply.get("writeErrors")
    return errors[0]["code"] if errors else reply.get("executionStats", {}).get("errorCode", background.code)


def by_time_limit(client, command, database="long"):
    began = time.monotonic()
    background = Background(client[database], {**command, "maxTimeMS": 50})
    background.join()
    assert code_of(background) == 50, (background.error, background.reply)
    return background.ended - began - 0.05


class OverTooEarly(AssertionError):
    """The operation was over before it could be ended, such as on a machine that is busy with other things."""


def by_kill(client, command, database="long", ready=lambda operation: True):
    """`ready` says whether an operation has come to where it is to be killed."""
    background = Background(client[database], command)
    operation = wait_for(lambda: [found for found in running(client) if ready(found)] or background.ended)
    time.sleep(0.03)
    if background.ended is not None:
        raise OverTooEarly(f"{background.reply} {background.error}")
    began = time.monotonic()
    client.admin.command("killOp", op=operation[0]["opid"])
    background.join()
    assert code_of(background) == 11601, (background.error, background.reply)
    return background.ended - began


def by_closed_socket(client, command, database="long", ready=lambda operation: True):
    host, port = client.address
    with socket.create_connection((host, port)) as connection:
        connection.sendall(raw_request(database, command))
        wait_for(lambda: [found for found in running(client) if ready(found)])
        time.sleep(0.03)
        if not running(client):
            raise OverTooEarly
        began = time.monotonic()
    is_over(client)
    return time.monotonic() - began


WAYS = [by_time_limit, by_kill, by_closed_socket]


def quickest_end(tries, end, within_s, between=lambda: None):
    """The time of the quickest of a few tries, because the machine of a test may be busy. One of them must meet the operation."""
    quickest, too_early = float("inf"), None
    for _ in range(tries):
        try:
            quickest = min(quickest, end())
        except OverTooEarly as error:
            too_early = error
        between()
        if quickest < within_s:
            break
    if quickest == float("inf"):
        raise too_early
    return quickest


every_way = pytest.mark.parametrize("end", WAYS, ids=lambda end: end.__name__)
