"""The operations of clients from before OP_MSG, and `getLastError`: the answers are those of MongoDB 2.4, whose protocol TokuMX
spoke. Its texts of errors were others."""

import struct
import time

import bson
import pytest
from bson import ObjectId, SON
from pymongo.errors import OperationFailure

from legacy_wire import (AWAIT_DATA, CURSOR_NOT_FOUND, EXHAUST, NO_TIMEOUT, OP_DELETE, OP_GET_MORE, OP_INSERT, OP_KILL_CURSORS,
                         OP_QUERY, OP_UPDATE, SECONDARY_OK, TAILABLE, LegacyWire, cstring, int32)
from server import Server


@pytest.fixture
def wire(server):
    with LegacyWire(server.port) as wire:
        yield wire


@pytest.fixture
def numbers(db):
    """300 documents `{_id: n, even: n % 2 == 0}`; gives the namespace."""
    db.numbers.insert_many({"_id": number, "even": number % 2 == 0} for number in range(300))
    return f"{db.name}.numbers"


def ids(reply):
    return [document["_id"] for document in reply.documents]


# ---- commands by OP_QUERY

def test_every_command_is_answered(wire, db):
    assert wire.command("admin", {"buildInfo": 1})["ok"] == 1
    assert wire.command("admin", {"ismaster": 1})["ismaster"]
    assert wire.command("admin", {"ping": 1}, number=1, flags=SECONDARY_OK)["ok"] == 1
    inserted = wire.command(db.name, SON([("insert", "c"), ("documents", [{"_id": 1}])]))
    assert inserted == {"n": 1, "ok": 1}
    found = wire.command(db.name, SON([("find", "c")]))
    assert found["cursor"]["firstBatch"] == [{"_id": 1}]


def test_a_command_may_stand_in_a_query_beside_a_read_preference(wire, db):
    db.c.insert_one({"_id": 1})
    for wrapper in ("$query", "query"):
        counted = wire.command(db.name, SON([(wrapper, SON([("count", "c"), ("query", {})])),
                                             ("$readPreference", {"mode": "secondaryPreferred"})]))
        assert counted["n"] == 1


def test_a_command_asks_for_one_document(wire):
    for number in (0, 2, -2):
        refused = wire.command("admin", {"ping": 1}, number=number)
        assert (refused["ok"], refused["code"]) == (0, 16979)


def test_a_command_that_fails_is_told_without_a_flag(wire, db):
    reply = wire.query(f"{db.name}.$cmd", {"nosuch": 1}, number=-1)
    assert (reply.flags, reply.only["ok"], reply.only["code"]) == (8, 0, 59)
    bad = bytearray(bson.encode({"ping": "text"}))
    bad[-4] = 0xFF
    wire.send(OP_QUERY, int32(0) + cstring("admin.$cmd") + int32(0, -1) + bytes(bad))
    assert wire.reply().only["ok"] == 0


@pytest.mark.needs("unshared collections")
def test_answers_and_options_of_the_time_before_op_msg(wire, db):
    # libmongo-client reads a count as a double and nothing else, and has collections made with room set aside.
    wire.insert(f"{db.name}.c", {"_id": 1})
    assert type(wire.command(db.name, {"count": "c"})["n"]) is float
    assert wire.command(db.name, {"create": "sized", "size": 655_360})["ok"] == 1
    assert db["sized"].options() == {}
    assert wire.command(db.name, {"create": "capped", "capped": True, "size": 4096})["ok"] == 1
    assert db["capped"].options() == {"capped": True, "size": 4096}


def test_a_client_from_before_scram_gets_its_number(wire):
    nonces = {wire.command("admin", {"getnonce": 1})["nonce"] for _ in range(2)}
    assert len(nonces) == 2 and all(int(nonce, 16) >= 0 and len(nonce) == 16 for nonce in nonces)


def test_an_aggregate_without_cursor_answers_an_array(wire, numbers):
    database, collection = numbers.split(".")
    pipeline = [{"$group": {"_id": "$even", "count": {"$sum": 1}}}, {"$sort": {"_id": 1}}]
    answered = wire.command(database, SON([("aggregate", collection), ("pipeline", pipeline)]))
    assert answered == {"result": [{"_id": False, "count": 150}, {"_id": True, "count": 150}], "ok": 1}
    everything = wire.command(database, SON([("aggregate", collection), ("pipeline", [])]))
    assert len(everything["result"]) == 300
    with_cursor = wire.command(database, SON([("aggregate", collection), ("pipeline", pipeline), ("cursor", {})]))
    assert len(with_cursor["cursor"]["firstBatch"]) == 2


def test_an_array_of_results_ends_at_a_document_s_size(wire, db):
    db.c.insert_many({"text": "x" * 1_000_000} for _ in range(20))
    answered = wire.command(db.name, SON([("aggregate", "c"), ("pipeline", [])]))
    assert (answered["ok"], answered["code"]) == (0, 16389)


def test_operations_are_listed_and_killed_by_pseudo_collections(wire):
    assert wire.query("admin.$cmd.sys.inprog", {}, number=-1).only["inprog"] is not None
    assert wire.query("admin.$cmd.sys.killop", {"op": 123456}, number=-1).only["ok"] == 1


# ---- queries

def test_a_query_answers_its_first_batch_and_keeps_its_cursor(wire, numbers):
    first = wire.query(numbers, {})
    assert (first.flags, first.starting_from, ids(first)) == (8, 0, list(range(101)))
    second = wire.get_more(numbers, first.cursor)
    assert (second.starting_from, ids(second), second.cursor) == (101, list(range(101, 300)), 0)


def test_batches_have_the_size_that_was_asked_for(wire, numbers):
    reply = wire.query(numbers, {}, number=120)
    found, cursor = ids(reply), reply.cursor
    while cursor:
        reply = wire.get_more(numbers, cursor, number=70)
        assert reply.starting_from == len(found)
        found, cursor = found + ids(reply), reply.cursor
    assert found == list(range(300))


@pytest.mark.parametrize("number,count", [(1, 1), (-1, 1), (-5, 5), (-2**31, 300)])
def test_a_negative_number_and_one_close_the_cursor(wire, numbers, number, count):
    reply = wire.query(numbers, {}, number=number)
    assert (reply.cursor, reply.returned) == (0, count)


def test_skip_and_projection(wire, numbers):
    reply = wire.query(numbers, {"even": True}, fields={"even": 1}, skip=3, number=-2, flags=SECONDARY_OK | NO_TIMEOUT)
    assert reply.documents == [{"_id": 6, "even": True}, {"_id": 8, "even": True}]
    assert wire.query(numbers, {}, fields={}, number=-1).only == {"_id": 0, "even": True}
    assert wire.query(numbers, {}, skip=-1).failure["code"] == 51024


@pytest.mark.parametrize("query", [
    SON([("$query", {"even": False}), ("$orderby", {"_id": -1})]),
    SON([("query", {"even": False}), ("orderby", {"_id": -1})]),
    SON([("$orderby", {"_id": -1}), ("$query", {"even": False}), ("$comment", "why"), ("$readPreference", {"mode": "nearest"})]),
    SON([("$query", {"even": False}), ("$orderby", {"_id": -1}), ("$hint", {"_id": 1}), ("$maxTimeMS", 60_000)]),
    SON([("$query", {"even": False}), ("$orderby", {"_id": -1}), ("$hint", "_id_"), ("$snapshot", False)]),
    SON([("$query", {"even": False}), ("$orderby", {"_id": -1}), ("$hint", {"_id": 1}), ("$min", {"_id": 1}), ("$max", {"_id": 300})]),
])
def test_modifiers_stand_beside_the_query(wire, numbers, query):
    assert ids(wire.query(numbers, query, number=-3)) == [299, 297, 295]


def test_a_field_named_query_is_a_field(wire, db):
    db.c.insert_one({"_id": 1, "query": {"a": 1}, "b": 2})
    assert ids(wire.query(f"{db.name}.c", SON([("query", {"a": 1}), ("b", 2)]))) == [1]


def test_a_snapshot_goes_along_the_primary_key(wire, numbers):
    assert len(ids(wire.query(numbers, {"$query": {}, "$snapshot": True}, number=-300))) == 300


def test_an_explanation_is_one_document(wire, numbers):
    explained = wire.query(numbers, {"$query": {"_id": 5}, "$explain": True}, number=-1).only
    assert explained["executionStats"]["nReturned"] == 1


@pytest.mark.parametrize("query,code", [
    ({"$query": {}, "$maxScan": 5}, 2),
    ({"$query": {}, "$nosuch": 5}, 2),
    ({"a": {"$nosuch": 1}}, 2),
    ({"$query": {}, "$orderby": {"a": 7}}, 15975),
    ({"$query": {}, "$hint": "nosuch"}, 2),
])
def test_a_query_that_cannot_be_obeyed_fails_by_a_flag(wire, numbers, query, code):
    failure = wire.query(numbers, query).failure
    assert (set(failure), failure["code"]) == ({"$err", "code"}, code)


def test_flags_that_cannot_be_obeyed_are_refused(wire, numbers):
    for flags in (TAILABLE, TAILABLE | AWAIT_DATA, EXHAUST):
        assert wire.query(numbers, {}, flags=flags).failure["code"] == 2
    # Without a tailable cursor there is no data to wait for.
    assert wire.query(numbers, {}, number=-1, flags=AWAIT_DATA).returned == 1


@pytest.mark.parametrize("namespace", ["", "nodot", ".c", "db.", "a b.c", "x" * 64 + ".c"])
def test_a_namespace_that_is_none_is_refused(wire, namespace):
    assert wire.query(namespace, {}).failure["code"] in (16256, 73)


def test_an_unknown_cursor_is_told_by_a_flag(wire, numbers):
    reply = wire.get_more(numbers, 424242)
    assert (reply.flags & CURSOR_NOT_FOUND, reply.cursor, reply.returned) == (CURSOR_NOT_FOUND, 0, 0)
    first = wire.query(numbers, {}, number=2)
    assert wire.get_more(numbers + "x", first.cursor).failure["code"] == 13
    wire.kill_cursors(first.cursor, 424242)
    assert wire.get_more(numbers, first.cursor).flags & CURSOR_NOT_FOUND


def test_the_lists_of_the_catalog(wire, db):
    db.create_collection("a")
    db.a.create_index([("x", 1)], unique=True)
    db.b.insert_one({})
    by_collection = wire.query(f"{db.name}.system.indexes", {"$query": {"ns": f"{db.name}.a"}, "$orderby": {"name": -1}})
    assert [(index["name"], index["key"]) for index in by_collection.documents] == [("x_1", {"x": 1}), ("_id_", {"_id": 1})]
    assert by_collection.documents[0]["unique"] is True
    names = wire.query(f"{db.name}.system.namespaces", {"name": {"$not": {"$regex": r"\$"}}}, fields={"name": 1})
    assert {document["name"] for document in names.documents} == {f"{db.name}.{name}" for name in ("system.indexes", "a", "b")}
    assert wire.query(f"{db.name}.system.namespaces", {"name": f"{db.name}.a.$x_1"}).returned == 1
    assert wire.query(f"{db.name}.system.indexes", {}, number=-1, skip=1).returned == 1
    assert wire.query("nosuchdb.system.namespaces", {}).returned == 0
    assert wire.query(f"{db.name}.system.indexes", {"a": {"$nosuch": 1}}).failure["code"] == 2


# ---- writes

def test_inserts_are_told_by_the_last_error(wire, db):
    wire.insert(f"{db.name}.c", {"_id": 1}, {"_id": 2})
    answer = wire.last_error(db.name)
    assert answer == {"n": 0, "connectionId": answer["connectionId"], "err": None, "ok": 1}
    wire.insert(f"{db.name}.c", {"_id": 3}, {"_id": 2}, {"_id": 4})
    failed = wire.last_error(db.name)
    assert (failed["code"], failed["n"], failed["ok"]) == (11000, 0, 1) and "E11000" in failed["err"]
    assert [document["_id"] for document in db.c.find(sort=[("_id", 1)])] == [1, 2, 3]
    wire.insert(f"{db.name}.c", {"_id": 2}, {"_id": 4}, {"_id": 1}, flags=1)
    assert "_id: 1" in wire.last_error(db.name)["err"]
    assert db.c.count_documents({}) == 4


def test_an_insert_without_an_id_gets_one(wire, db):
    wire.insert(f"{db.name}.c", {"a": 1})
    assert wire.last_error(db.name)["err"] is None
    assert isinstance(db.c.find_one()["_id"], ObjectId)


def test_updates_tell_whether_a_document_was_there(wire, db):
    db.c.insert_many({"_id": number} for number in range(3))
    wire.update(f"{db.name}.c", {"_id": 1}, {"$set": {"a": 1}})
    answer = wire.last_error(db.name)
    assert (answer["updatedExisting"], answer["n"], answer["err"]) == (True, 1, None)
    wire.update(f"{db.name}.c", {}, {"$set": {"b": 1}}, multi=True)
    assert wire.last_error(db.name)["n"] == 3
    wire.update(f"{db.name}.c", {"_id": 9}, {"c": 1})
    answer = wire.last_error(db.name)
    assert (answer["updatedExisting"], answer["n"], "upserted" in answer) == (False, 0, False)
    wire.update(f"{db.name}.c", {"c": 1}, {"$set": {"d": 1}}, upsert=True)
    answer = wire.last_error(db.name)
    assert (answer["updatedExisting"], answer["n"]) == (False, 1)
    assert db.c.find_one({"_id": answer["upserted"]}) == {"_id": answer["upserted"], "c": 1, "d": 1}
    wire.update(f"{db.name}.c", {}, {"$nosuch": {"d": 1}})
    assert wire.last_error(db.name)["code"] == 9
    wire.update(f"{db.name}.c", {}, {"whole": 1}, multi=True)
    assert wire.last_error(db.name)["code"] == 9


def test_deletes_count(wire, db):
    db.c.insert_many({"_id": number} for number in range(10))
    wire.delete(f"{db.name}.c", {"_id": {"$gte": 5}}, single=True)
    assert wire.last_error(db.name)["n"] == 1
    wire.delete(f"{db.name}.c", {"_id": {"$gte": 5}})
    assert wire.last_error(db.name)["n"] == 4
    wire.delete(f"{db.name}.c", {"$nosuch": 1})
    assert wire.last_error(db.name)["code"] == 2


def test_an_insert_may_have_more_documents_than_a_command(wire, db):
    documents = bson.encode({"a": 1}) * 100_001
    wire.send(OP_INSERT, int32(0) + cstring(f"{db.name}.c") + documents)
    assert wire.last_error(db.name)["err"] is None
    assert db.c.count_documents({}) == 100_001


def test_an_index_is_created_by_an_insert(wire, db):
    index = SON([("name", "a_1"), ("ns", f"{db.name}.c"), ("key", {"a": 1}), ("unique", True), ("dropDups", True)])
    wire.insert(f"{db.name}.system.indexes", index)
    assert wire.last_error(db.name)["err"] is None
    assert db.c.index_information()["a_1"]["unique"]
    wire.insert(f"{db.name}.system.indexes", {"name": "b_1", "ns": "other.c", "key": {"b": 1}})
    assert wire.last_error(db.name)["code"] == 67
    wire.insert(f"{db.name}.system.indexes", {"name": "b_1", "key": {"b": 1}})
    assert wire.last_error(db.name)["code"] == 67
    wire.insert(f"{db.name}.system.indexes", {"name": "b_1", "ns": f"{db.name}.c", "key": {"b": "nosuch"}})
    assert wire.last_error(db.name)["code"] == 67


def test_a_write_to_no_namespace_is_told(wire):
    for write in (lambda: wire.insert("nodot", {}), lambda: wire.update("nodot", {}, {}), lambda: wire.delete("nodot", {})):
        write()
        assert wire.last_error("admin")["code"] == 16256


# ---- getLastError

def test_the_last_error_is_about_the_request_before(wire, db):
    wire.update(f"{db.name}.c", {"_id": 1}, {"a": 1}, upsert=True)
    assert [wire.last_error(db.name)["upserted"] for _ in range(2)] == [1, 1]
    wire.kill_cursors(424242)
    assert wire.last_error(db.name)["upserted"] == 1
    wire.query(f"{db.name}.c", {})
    assert "upserted" not in wire.last_error(db.name)
    wire.insert(f"{db.name}.c", {"_id": 1})
    assert wire.command(db.name, {"resetError": 1})["ok"] == 1
    assert wire.last_error(db.name)["err"] is None


def test_the_last_error_is_that_of_its_connection(wire, server, db):
    db.c.insert_one({"_id": 1})
    wire.insert(f"{db.name}.c", {"_id": 1})
    with LegacyWire(server.port) as other:
        assert other.last_error(db.name)["err"] is None
    assert wire.last_error(db.name)["code"] == 11000


def test_write_commands_by_op_query_are_told_too(wire, db):
    wire.command(db.name, SON([("update", "c"), ("updates", [{"q": {"_id": 1}, "u": {"a": 1}, "upsert": True}])]))
    assert wire.last_error(db.name)["upserted"] == 1
    wire.command(db.name, SON([("findAndModify", "c"), ("query", {"_id": 1}), ("update", {"a": 2})]))
    answer = wire.last_error(db.name)
    assert (answer["updatedExisting"], answer["n"]) == (True, 1)


@pytest.mark.parametrize("concern", [{"w": 1}, {"w": 0}, {"w": "majority"}, {"j": True}, {"fsync": True}, {"w": 1, "wtimeout": 100},
                                     {"w": None}, {"j": False, "fsync": False, "wtimeout": 0}])
def test_concerns_that_one_node_keeps(wire, db, concern):
    wire.insert(f"{db.name}.c", {"a": 1})
    answer = wire.last_error(db.name, **concern)
    assert (answer["err"], answer["ok"]) == (None, 1)


@pytest.mark.parametrize("concern,code", [({"w": 2}, 100), ({"w": "nosuch"}, 79), ({"w": 51}, 9), ({"j": True, "fsync": True}, 9)])
def test_concerns_that_one_node_cannot_keep(wire, db, concern, code):
    wire.insert(f"{db.name}.c", {"a": 1})
    answer = wire.last_error(db.name, **concern)
    assert (answer["ok"], answer["code"]) == (0, code)
    assert answer["badGLE"] == {"getlasterror": 1, **concern}


def test_a_write_that_was_synced_survives_a_kill(tmp_path):
    server = Server(tmp_path / "data").start()
    with LegacyWire(server.port) as wire:
        for number in range(50):
            wire.insert("test.c", {"_id": number})
        assert wire.last_error("test", j=True)["err"] is None
    server.kill()
    server.start()
    with server.client() as client:
        assert client.test.c.count_documents({}) == 50
    server.stop()


def test_a_message_of_today_is_refused_the_last_error(db):
    for name, code in [("getLastError", 5739000), ("resetError", 59)]:
        with pytest.raises(OperationFailure) as refused:
            db.command(name)
        assert refused.value.code == code


# ---- hostile bytes

@pytest.mark.parametrize("op_code,content", [
    (OP_INSERT, int32(0) + cstring("d.c") + b"\x50\0\0\0\0"),
    (OP_INSERT, int32(0) + cstring(b"\xff.c") + bson.encode({})),
    (OP_INSERT, int32(0) + b"no end"),
    (OP_UPDATE, int32(0) + cstring("d.c") + int32(0) + bson.encode({})),
    (OP_DELETE, int32(0) + cstring("d.c") + int32(0) + bson.encode({}) + b"rest"),
    (OP_KILL_CURSORS, int32(0, 3) + b"\0" * 8),
    (OP_KILL_CURSORS, int32(0, -1)),
])
def test_a_damaged_write_closes_its_connection(server, op_code, content):
    with LegacyWire(server.port) as wire:
        wire.send(op_code, content)
        assert wire.is_closed()


@pytest.mark.parametrize("op_code,content", [
    (OP_QUERY, int32(0) + cstring("d.c") + int32(0)),
    (OP_QUERY, int32(0) + cstring(b"\xff.c") + int32(0, 0) + bson.encode({})),
    (OP_QUERY, int32(0) + cstring("d.c") + int32(0, 0) + bson.encode({}) + bson.encode({}) + b"\0"),
    (OP_GET_MORE, int32(0) + cstring("d.c") + int32(0) + b"\0\0\0\0"),
    (OP_GET_MORE, int32(0) + cstring("d.c") + int32(0) + struct.pack("<q", 1) + b"\0"),
])
def test_a_damaged_query_is_answered(wire, op_code, content):
    wire.send(op_code, content)
    assert wire.reply().only["ok"] == 0
    assert wire.command("admin", {"ping": 1})["ok"] == 1


def test_an_insert_without_a_document_is_told(wire):
    wire.send(OP_INSERT, int32(0) + cstring("d.c"))
    assert wire.last_error("d")["code"] == 16


def test_documents_with_unreadable_fields_are_told(wire, db):
    bad = bytearray(bson.encode({"text": "abc"}))
    bad[4] = 0x77
    wire.send(OP_INSERT, int32(0) + cstring(f"{db.name}.c") + bytes(bad))
    assert wire.last_error(db.name)["code"] == 22
    wire.send(OP_QUERY, int32(0) + cstring(f"{db.name}.c") + int32(0, 0) + bytes(bad))
    assert wire.reply().failure["code"] == 22


# ---- clients that are gone, and the option

def test_a_write_goes_on_when_its_client_is_gone(server, db):
    documents = b"".join(bson.encode({"_id": number}) for number in range(20_000))
    with LegacyWire(server.port) as wire:
        wire.send(OP_INSERT, int32(0) + cstring(f"{db.name}.c") + documents)
    deadline = time.monotonic() + 60
    while db.c.count_documents({}) < 20_000:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_older_operations_can_be_turned_off(tmp_path):
    server = Server(tmp_path / "data", "--legacy-protocol", "off", engine="memory").start()
    with LegacyWire(server.port) as wire:
        assert wire.command("admin", {"ismaster": 1})["ismaster"]
        assert wire.command("admin", {"buildinfo": 1})["ok"] == 1
        assert wire.command("admin", {"ping": 1})["code"] == 352
        assert wire.query("d.c", {}).failure["code"] == 5739101
        assert wire.get_more("d.c", 1).failure["code"] == 5739101
    for write in (lambda wire: wire.insert("d.c", {}), lambda wire: wire.update("d.c", {}, {}), lambda wire: wire.delete("d.c", {}),
                  lambda wire: wire.kill_cursors(1)):
        with LegacyWire(server.port) as wire:
            write(wire)
            assert wire.is_closed()
    with server.client() as client:
        assert client.d.c.count_documents({}) == 0
    assert "--legacy-protocol on" in server.log()
    assert server.stop() == 0
