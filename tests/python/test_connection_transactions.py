"""TokuMX's transactions, which belong to a connection: beginTransaction, commitTransaction, rollbackTransaction."""

import time

import pytest
from bson import Int64
from pymongo import MongoClient
from pymongo.errors import DuplicateKeyError, OperationFailure

from server import Server

pytestmark = pytest.mark.needs("one server")


@pytest.fixture
def connect(server):
    """Clients of one connection each, whose writes have no transaction number."""
    clients = []

    def connect(**options):
        clients.append(server.client(**{"maxPoolSize": 1, "retryWrites": False, **options}))
        return clients[-1]

    yield connect
    for client in clients:
        client.close()


@pytest.fixture
def mine(connect, db):
    return connect()[db.name]


def refused(call, *arguments, code, **more):
    with pytest.raises(OperationFailure) as told:
        call(*arguments, **more)
    assert told.value.code == code, told.value.details
    return told.value


def open_transactions(client):
    return client.admin.command("serverStatus")["transactions"]["currentOpen"]


def test_a_commit_shows_all_writes_at_once(mine, db):
    db.c.insert_one({"_id": 0, "x": 0})
    assert mine.command("beginTransaction")["status"] == "transaction began"
    mine.c.insert_many([{"_id": at} for at in range(1, 4)])
    mine.c.update_one({"_id": 0}, {"$set": {"x": 1}})
    mine.c.delete_one({"_id": 1})
    mine.d.insert_one({"_id": 9})
    assert sorted(one["_id"] for one in mine.c.find()) == [0, 2, 3]
    assert mine.command("count", "c")["n"] == 3 and mine.command("count", "c", query={"x": 1})["n"] == 1
    assert mine.c.count_documents({}) == 3 and mine.d.distinct("_id") == [9]
    assert list(db.c.find()) == [{"_id": 0, "x": 0}] and "d" not in db.list_collection_names()
    assert mine.command("commitTransaction")["status"] == "transaction committed"
    assert db.c.find_one({"_id": 0}) == {"_id": 0, "x": 1} and db.c.count_documents({}) == 3
    assert db.command("count", "c")["n"] == 3 and db.d.count_documents({}) == 1
    # The connection is as before.
    mine.c.insert_one({"_id": 10})
    assert db.c.find_one({"_id": 10})


def test_a_rollback_shows_none(mine, db):
    mine.command("beginTransaction", isolation="mvcc")
    mine.c.insert_one({"_id": 1})
    assert mine.command("rollbackTransaction")["status"] == "transaction rolled back"
    assert db.c.count_documents({}) == 0
    mine.command("beginTransaction")
    mine.c.insert_one({"_id": 1})
    mine.client.admin.command("abortTransaction")
    assert db.c.count_documents({}) == 0
    refused(mine.command, "rollbackTransaction", code=16789)


@pytest.mark.needs("serializable transactions")
def test_serializable_keeps_writers_out_of_what_was_read(mine, connect, db):
    db.c.insert_many([{"_id": "a", "on": True}, {"_id": "b", "on": True}])
    other = connect()[db.name]
    for database in (mine, other):
        database.command("beginTransaction", isolation="serializable")
        assert database.c.count_documents({"on": True}) == 2
    refused(mine.c.update_one, {"_id": "a"}, {"$set": {"on": False}}, code=112)
    mine.command("rollbackTransaction")
    other.c.update_one({"_id": "b"}, {"$set": {"on": False}})
    other.command("commitTransaction")
    assert db.c.count_documents({"on": True}) == 1
    mine.command("beginTransaction", isolation="serializable")
    assert mine.command("count", "c")["n"] == 2
    other.command("beginTransaction")
    refused(other.c.insert_one, {"_id": "c"}, code=112)
    other.command("rollbackTransaction")
    mine.c.insert_one({"_id": "d"})
    mine.command("commitTransaction")
    assert db.c.count_documents({}) == 3


def test_wrong_statements_are_refused(mine, client):
    before = open_transactions(client)
    refused(mine.command, "rollbackTransaction", code=16789)
    refused(mine.client.admin.command, "commitTransaction", code=125)
    refused(mine.command, "beginTransaction", isolation=1, code=16738)
    refused(mine.command, "beginTransaction", isolation="snapshot", code=16739)
    refused(mine.command, "beginTransaction", bogus=1, code=40415)
    assert open_transactions(client) == before
    mine.command("beginTransaction")
    refused(mine.command, "beginTransaction", code=16787)
    assert open_transactions(client) == before + 1
    mine.command("commitTransaction")
    assert open_transactions(client) == before


def test_a_statement_with_a_number_of_its_own_is_refused(connect, db):
    client = connect()
    mine = client[db.name]
    mine.command("beginTransaction")
    retryable = {"insert": "c", "documents": [{"_id": 1}], "txnNumber": Int64(1)}
    assert "retryWrites=false" in str(refused(mine.command, retryable, code=72))
    with client.start_session() as session:
        session.start_transaction()
        refused(mine.c.find_one, {}, session=session, code=72)
    # The transaction of the connection goes on.
    mine.command("insert", "c", documents=[{"_id": 2}])
    mine.command("commitTransaction")
    assert [one["_id"] for one in db.c.find()] == [2]


def test_the_snapshot_stays_and_the_first_updater_wins(mine, db):
    db.c.insert_many([{"_id": 1, "x": 0}, {"_id": 2, "x": 0}])
    mine.command("beginTransaction")
    assert mine.c.find_one({"_id": 1})["x"] == 0
    db.c.update_many({}, {"$set": {"x": 1}})
    db.c.insert_one({"_id": 3})
    assert mine.c.find_one({"_id": 1})["x"] == 0 and mine.c.count_documents({}) == 2
    told = refused(mine.c.update_one, {"_id": 1}, {"$inc": {"x": 1}}, code=112)
    assert told.has_error_label("TransientTransactionError")
    # The transaction is over, and stays over until the client ends it.
    refused(mine.c.find_one, {}, code=251)
    refused(mine.c.insert_one, {"_id": 7}, code=251)
    mine.command("rollbackTransaction")
    assert mine.c.find_one({"_id": 1})["x"] == 1


def test_the_commit_of_a_failed_transaction_tells(mine, db):
    db.c.insert_one({"_id": 1})
    mine.command("beginTransaction")
    mine.c.insert_one({"_id": 2})
    with pytest.raises(DuplicateKeyError):
        mine.c.insert_one({"_id": 1})
    refused(mine.command, "commitTransaction", code=251)
    assert db.c.count_documents({}) == 1
    mine.command("beginTransaction")
    mine.c.insert_one({"_id": 2})
    mine.command("commitTransaction")
    assert db.c.count_documents({}) == 2


def test_read_uncommitted_sees_the_newest_commit_until_it_writes(mine, connect, db):
    db.c.insert_one({"_id": 1, "x": 0})
    mine.command("beginTransaction", isolation="readUncommitted")
    assert mine.c.find_one({"_id": 1})["x"] == 0
    db.c.update_one({"_id": 1}, {"$set": {"x": 1}})
    assert mine.c.find_one({"_id": 1})["x"] == 1
    other = connect()[db.name]
    other.command("beginTransaction")
    other.c.insert_one({"_id": 5})
    assert mine.c.count_documents({}) == 1, "the writes of others are private until they commit"
    other.command("commitTransaction")
    assert mine.c.count_documents({}) == 2
    mine.c.insert_one({"_id": 2})
    db.c.insert_one({"_id": 3})
    assert sorted(one["_id"] for one in mine.c.find()) == [1, 2, 5]
    mine.command("commitTransaction")
    assert db.c.count_documents({}) == 4


def test_cursors_belong_to_the_transaction(mine, db):
    db.c.insert_many([{"_id": at} for at in range(300)])
    mine.command("beginTransaction")
    cursor = mine.c.find(batch_size=10)
    assert next(cursor)["_id"] == 0
    db.c.delete_many({})
    assert len(list(cursor)) == 299
    left = mine.c.find(batch_size=10)
    next(left)
    mine.command("commitTransaction")
    refused(list, left, code=43)


def test_a_closed_connection_rolls_back(connect, db, client):
    before = open_transactions(client)
    other = connect()
    mine = other[db.name]
    mine.command("beginTransaction")
    mine.c.insert_one({"_id": 1})
    assert open_transactions(client) == before + 1
    listed = client.admin.aggregate([{"$currentOp": {"idleSessions": True}}, {"$match": {"type": "idleSession"}}])
    assert any("transaction" in one for one in listed)
    other.close()
    deadline = time.monotonic() + 10
    while open_transactions(client) != before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert open_transactions(client) == before
    db.c.insert_one({"_id": 1}), "no intent is left behind"


def test_changes_of_the_catalog_are_refused_and_diagnostics_are_not(mine, db):
    db.c.insert_one({"_id": 1})
    mine.command("beginTransaction")
    for command in ({"drop": "c"}, {"dropDatabase": 1}, {"dropIndexes": "c", "index": "*"}, {"collMod": "c"}):
        refused(mine.command, command, code=263)
    refused(mine.client.config.transactions.insert_one, {"_id": 1}, code=263)
    for command in ("ping", "hello", "buildInfo", "dbStats", "listCollections", "serverStatus"):
        mine.command(command)
    mine.client.admin.command("currentOp")
    mine.command("commitTransaction")


def test_writes_survive_a_killed_server(tmp_path):
    own = Server(tmp_path / "data").start()
    with MongoClient(own.uri, maxPoolSize=1, retryWrites=False, serverSelectionTimeoutMS=1000) as client:
        client.t.command("beginTransaction")
        client.t.c.insert_one({"_id": 1})
        client.t.command("commitTransaction", writeConcern={"w": 1, "j": True})
        client.t.command("beginTransaction")
        client.t.c.insert_one({"_id": 2})
        own.kill()
    own.start()
    with own.client() as client:
        assert [one["_id"] for one in client.t.c.find()] == [1]
    assert own.stop() == 0
