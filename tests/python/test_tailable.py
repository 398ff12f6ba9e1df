"""Tailable cursors on capped collections: what they find, how they wait, and how they end."""

import threading
import time

import bson
import pytest
from pymongo import CursorType
from pymongo.errors import OperationFailure

from legacy_wire import AWAIT_DATA, TAILABLE, LegacyWire
from raw_connection import Raw, read_exactly

pytestmark = pytest.mark.needs("unshared collections")


@pytest.fixture
def c(db):
    db.create_collection("c", capped=True, size=1 << 20, max=100)
    db.c.insert_many([{"_id": at} for at in range(3)])
    return db.c


SESSIONS = {}


def session_of(db):
    """The session of a test's cursors. PyMongo's own choice may be in use by a thread beside, and a cursor belongs to one session."""
    if db.name not in SESSIONS:
        SESSIONS[db.name] = db.client.start_session(causal_consistency=False)
    return SESSIONS[db.name]


def follow(db, **fields):
    cursor = db.command({"find": "c", "tailable": True, **fields}, session=session_of(db))["cursor"]
    return [found["_id"] for found in cursor["firstBatch"]], bson.Int64(cursor["id"])


def more(db, cursor, **fields):
    reply = db.command({"getMore": cursor, "collection": "c", **fields}, session=session_of(db))["cursor"]
    assert reply["id"] == cursor
    return [found["_id"] for found in reply["nextBatch"]]


def later(work, seconds=0.3):
    timer = threading.Timer(seconds, work)
    timer.start()
    return timer


def test_a_cursor_goes_on_behind_its_end(db, c):
    first, cursor = follow(db)
    assert first == [0, 1, 2] and more(db, cursor) == []
    c.insert_many([{"_id": 3}, {"_id": 4}])
    assert more(db, cursor, batchSize=1) == [3] and more(db, cursor) == [4] and more(db, cursor) == []
    first, cursor = follow(db, filter={"_id": {"$gt": 3}}, projection={"_id": 1}, skip=0, limit=2)
    assert first == [4]
    c.insert_many([{"_id": 5}, {"_id": 6}])
    assert more(db, cursor) == [5] and more(db, cursor) == []
    assert follow(db, skip=2, batchSize=2)[0] == [2, 3]
    first, cursor = follow(db, batchSize=0)
    assert first == [] and more(db, cursor, batchSize=2) == [0, 1] and more(db, cursor, batchSize=2) == [2, 3]


def test_options_that_do_not_go_together(db, c):
    db.create_collection("plain").insert_one({})
    db.create_collection("empty", capped=True, size=4096)
    db.command("create", "view", viewOn="c", pipeline=[])
    for fields, code in [({"sort": {"_id": 1}}, 2), ({"sort": {"$natural": -1}}, 2), ({"singleBatch": True}, 2), ({"find": "plain"}, 2), ({"find": "view"}, 168)]:
        with pytest.raises(OperationFailure) as error:
            db.command({"find": "c", "tailable": True, **fields})
        assert error.value.code == code, fields
    with pytest.raises(OperationFailure) as error:
        db.command({"find": "c", "awaitData": True})
    assert error.value.code == 9
    for name in ("empty", "missing"):
        assert db.command({"find": name, "tailable": True, "awaitData": True})["cursor"]["id"] == 0
    cursor = follow(db)[1]
    with pytest.raises(OperationFailure) as error:
        more(db, cursor, maxTimeMS=1)
    assert error.value.code == 2


def test_a_wait_ends_with_the_next_document_or_with_its_time(db, c):
    cursor = follow(db, awaitData=True)[1]
    began = time.monotonic()
    assert more(db, cursor, maxTimeMS=300) == [] and 0.25 < time.monotonic() - began < 5
    assert more(db, cursor, maxTimeMS=0) == []
    later(lambda: c.insert_one({"_id": 3}))
    began = time.monotonic()
    assert more(db, cursor, maxTimeMS=20_000) == [3] and time.monotonic() - began < 10
    cursor = follow(db, awaitData=True, filter={"a": 1})[1]
    later(lambda: [c.insert_one({"_id": 4}), time.sleep(0.2), c.insert_one({"_id": 5, "a": 1})])
    assert more(db, cursor, maxTimeMS=20_000) == [5]


def test_a_lost_position_ends_the_cursor(db, c):
    cursor, waiting, mid = follow(db)[1], follow(db, awaitData=True)[1], follow(db, batchSize=1)[1]
    later(lambda: c.insert_many([{"_id": 10 + at} for at in range(150)]))
    for lost, fields in ((waiting, {"maxTimeMS": 20_000}), (cursor, {}), (mid, {})):
        with pytest.raises(OperationFailure) as error:
            more(db, lost, **fields)
        assert error.value.code == 136
        with pytest.raises(OperationFailure) as error:
            more(db, lost)
        assert error.value.code == 43
    cursor = follow(db, filter={"_id": 60})[1]
    c.delete_one({"_id": 60})
    assert more(db, cursor) == []
    c.delete_one({"_id": 159})
    with pytest.raises(OperationFailure) as error:
        more(db, cursor)
    assert error.value.code == 136


@pytest.mark.parametrize("end,code", [
    (lambda db, cursor: db.c.drop(), 175), (lambda db, cursor: db.c.rename("d"), 175), (lambda db, cursor: db.command("convertToCapped", "c", size=4096), 175),
    (lambda db, cursor: db.client.drop_database(db.name), 175), (lambda db, cursor: db.command("killCursors", "c", cursors=[cursor]), 43),
], ids=["drop", "rename", "convert", "dropDatabase", "killCursors"])
def test_the_end_of_a_cursor_ends_its_wait(db, c, end, code):
    cursor = follow(db, awaitData=True)[1]
    later(lambda: end(db, cursor))
    began = time.monotonic()
    with pytest.raises(OperationFailure) as error:
        more(db, cursor, maxTimeMS=30_000)
    assert error.value.code == code and time.monotonic() - began < 15


def test_a_waiting_request_is_listed_and_killed(client, db, c):
    cursor, ends = follow(db, awaitData=True)[1], []

    def kill():
        [found] = client.admin.aggregate([{"$currentOp": {}}, {"$match": {"command.getMore": cursor}}])
        ends.append(found["ns"])
        try:
            db.command({"getMore": cursor, "collection": "c"})
        except OperationFailure as error:
            ends.append(error.code)
        client.admin.command("killOp", op=found["opid"])

    timer = later(kill)
    began = time.monotonic()
    with pytest.raises(OperationFailure) as error:
        more(db, cursor, maxTimeMS=30_000)
    timer.join()
    assert error.value.code == 11601 and time.monotonic() - began < 15 and ends == [f"{db.name}.c", 143]


def test_a_thousand_waits_hold_no_threads_and_end_with_their_clients(server, db, c):
    threads = lambda: len(list(server.threads()))
    before, waits = threads(), []
    for _ in range(1000):
        raw = Raw(server.port)
        cursor = raw.command(db.name, {"find": "c", "tailable": True, "awaitData": True})["cursor"]["id"]
        raw.send(db.name, {"getMore": bson.Int64(cursor), "collection": "c", "maxTimeMS": 60_000})
        waits.append(raw)
    assert threads() <= before + 70
    began = time.monotonic()
    c.insert_one({"_id": "new"})
    assert time.monotonic() - began < 20
    for raw in waits[:500]:
        length = int.from_bytes(read_exactly(raw.socket, 4), "little")
        assert b"new" in read_exactly(raw.socket, length - 4)
    for raw in waits:
        raw.socket.close()


def test_pymongo_follows(db, c):
    for kind in (CursorType.TAILABLE, CursorType.TAILABLE_AWAIT):
        cursor = c.find(cursor_type=kind)
        if kind == CursorType.TAILABLE_AWAIT:
            cursor.max_await_time_ms(200)
        before = [found["_id"] for found in cursor]
        c.insert_one({"_id": f"kind {kind}"})
        assert cursor.alive and [found["_id"] for found in cursor] == [f"kind {kind}"] and before[:3] == [0, 1, 2]
        cursor.close()


def test_older_operations_follow(server, db, c):
    with LegacyWire(server.port) as wire:
        namespace = f"{db.name}.c"
        reply = wire.query(namespace, {}, flags=TAILABLE | AWAIT_DATA)
        assert [found["_id"] for found in reply.documents] == [0, 1, 2] and reply.cursor
        later(lambda: c.insert_one({"_id": 3}))
        again = wire.get_more(namespace, reply.cursor)
        assert [found["_id"] for found in again.documents] == [3] and again.cursor == reply.cursor
        plain = wire.query(namespace, {}, flags=TAILABLE)
        assert plain.cursor and wire.get_more(namespace, plain.cursor).returned == 0
