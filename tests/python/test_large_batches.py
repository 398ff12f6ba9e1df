"""Batches that are large for an engine, which takes them in several transactions: places of errors, repeated requests, transactions.

An option of the engine `memory` has a few documents be large, as a thousand are over a cluster.
"""

import pytest
from bson import Int64
from pymongo.errors import ExecutionTimeout

from server import Server

DOCUMENTS = 500


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("store") / "data", "--engine-option", "largeTransaction=1KB", engine="memory").start()
    yield server
    assert server.stop() == 0, server.log()


@pytest.fixture(scope="module")
def client(server):
    with server.client() as client:
        yield client


@pytest.fixture
def things(client):
    things = client.test.things
    things.drop()
    things.create_index("n")
    return things


def documents(count=DOCUMENTS):
    return [{"_id": number, "n": number % 7, "text": "x" * 50} for number in range(count)]


def ids(things):
    return [document["_id"] for document in things.find(sort={"_id": 1})]


def write(things, command, argument, statements, **options):
    return things.database.command({command: things.name, argument: statements, **options})


def check_sound(things):
    assert things.database.command("validate", things.name, full=True)["valid"]


def test_an_interrupted_insert_keeps_what_is_committed(things):
    many = documents(50_000)
    for limit in (100, 500, 2_000):
        with pytest.raises(ExecutionTimeout):
            write(things, "insert", "documents", many, maxTimeMS=limit)
        kept = ids(things)
        if kept:
            break
        things.delete_many({})
    assert 0 < len(kept) < len(many) and kept == list(range(len(kept)))
    check_sound(things)


@pytest.mark.parametrize("ordered", [True, False])
def test_errors_of_inserts_have_their_places(things, ordered):
    given = documents()
    given[200]["_id"] = given[450]["_id"] = 3
    told = write(things, "insert", "documents", given, ordered=ordered)
    failed = [200] if ordered else [200, 450]
    assert [error["index"] for error in told["writeErrors"]] == failed
    expected = [number for number in range(200 if ordered else DOCUMENTS) if number not in failed]
    assert told["n"] == len(expected) and ids(things) == expected
    check_sound(things)


@pytest.mark.parametrize("ordered", [True, False])
def test_errors_of_updates_and_deletes_have_their_places(things, ordered):
    things.insert_many(documents())
    updates = [{"q": {"_id": number}, "u": {"$set": {"n": 100 + number, "text": "y" * 60}}} for number in range(DOCUMENTS)]
    updates[300]["u"] = {"$set": {"_id": 9}}
    told = write(things, "update", "updates", updates, ordered=ordered)
    assert [error["index"] for error in told["writeErrors"]] == [300]
    changed = 300 if ordered else DOCUMENTS - 1
    assert told["n"] == told["nModified"] == changed == things.count_documents({"n": {"$gte": 100}})
    deletes = [{"q": {"_id": number}, "limit": 1} for number in range(DOCUMENTS)]
    deletes[299]["q"] = {"$bad": 1}
    told = write(things, "delete", "deletes", deletes, ordered=ordered)
    assert [error["index"] for error in told["writeErrors"]] == [299]
    assert told["n"] == (299 if ordered else DOCUMENTS - 1)
    assert things.count_documents({}) == DOCUMENTS - told["n"]
    check_sound(things)


def test_upserts_have_their_places(things):
    updates = [{"q": {"_id": number}, "u": {"$set": {"n": 1, "text": "z" * 50}}, "upsert": True} for number in range(DOCUMENTS)]
    told = write(things, "update", "updates", updates)
    assert [(one["index"], one["_id"]) for one in told["upserted"]] == [(number, number) for number in range(DOCUMENTS)]
    told = write(things, "update", "updates", [{"q": {}, "u": {"$inc": {"n": 1}}, "multi": True}])
    assert told["n"] == told["nModified"] == DOCUMENTS == things.count_documents({"n": 2})
    check_sound(things)


def test_a_repeated_request_writes_nothing_twice(server, things):
    # A client of its own, since sessions are used again.
    with server.client() as client, client.start_session() as session:
        things = client.test.things
        insert = {"insert": things.name, "documents": documents(), "txnNumber": Int64(1)}
        told = [things.database.command(insert, session=session) for _ in range(2)]
        assert [one["n"] for one in told] == [DOCUMENTS] * 2 and ids(things) == list(range(DOCUMENTS))
        updates = [{"q": {"_id": number}, "u": {"$inc": {"n": 10}}} for number in range(DOCUMENTS)]
        update = {"update": things.name, "updates": updates, "txnNumber": Int64(2)}
        told = [things.database.command(update, session=session) for _ in range(2)]
        assert [one["n"] for one in told] == [DOCUMENTS] * 2
        assert things.count_documents({"n": {"$gte": 10, "$lt": 20}}) == DOCUMENTS
        check_sound(things)


def test_transactions_and_atomic_statements_stay_whole(client, things):
    with client.start_session() as session:
        session.start_transaction()
        things.insert_many(documents(), session=session)
        things.update_many({}, {"$set": {"n": 5}}, session=session)
        assert things.count_documents({}) == 0
        session.abort_transaction()
        assert ids(things) == []
        with session.start_transaction():
            things.insert_many(documents(), session=session)
        assert len(ids(things)) == DOCUMENTS
    things.delete_many({})
    client.admin.command("setParameter", 1, atomicStatements=True)
    try:
        given = documents()
        given[-1]["_id"] = 3
        told = write(things, "insert", "documents", given)
        assert told["n"] == 0 and [error["index"] for error in told["writeErrors"]] == [DOCUMENTS - 1]
        assert ids(things) == []
    finally:
        client.admin.command("setParameter", 1, atomicStatements=False)
    check_sound(things)


def test_an_option_that_is_not_there_is_refused(tmp_path):
    for option in ("largeTransaction=0KB", "largeTransaction=9", "bogus=1"):
        with pytest.raises(RuntimeError) as refused:
            Server(tmp_path / "data", "--engine-option", option, engine="memory").start()
        assert "largeTransaction" in str(refused.value)

