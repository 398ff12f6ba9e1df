"""`deleteMany({})`: the figures are exact, snapshots keep what they saw, and a crash leaves all documents or none."""

import threading

import pytest
from bson import encode
from pymongo.errors import OperationFailure

from server import Server

# More than a truncation needs, and than one step deletes.
MANY = 12_000


def filled(db, name="c", **options):
    collection = db.create_collection(name, **options)
    collection.create_index("a")
    collection.create_index("tags")
    collection.create_index("s", sparse=True)
    collection.create_index("u", unique=True)
    collection.insert_many([
        {"_id": at, "a": at % 7, "u": at, "tags": list(range(at % 3)), **({"s": at} if at % 5 == 0 else {})} for at in range(MANY)])
    return collection


def assert_holds(collection, documents):
    db = collection.database
    found = list(collection.find())
    assert len(found) == collection.estimated_document_count() == db.command("count", collection.name)["n"] == documents
    stats = db.command("collStats", collection.name)
    assert (stats["count"], stats["size"]) == (documents, sum(len(encode(document)) for document in found))
    report = db.command("validate", collection.name, full=True)
    assert report["valid"], report
    for index in ("_id_", "a_1", "u_1"):
        assert report["keysPerIndex"][index] == documents, index


@pytest.mark.parametrize("options", [{}, {"layout": "heap"}, {"primaryKey": {"a": 1, "_id": 1}}], ids=str)
@pytest.mark.needs("one server")
def test_all_documents_go_and_the_figures_are_exact(client, db, options):
    c = filled(db, **options)
    before = client.admin.command("serverStatus")
    assert c.delete_many({}).deleted_count == MANY
    after = client.admin.command("serverStatus")
    assert after["metrics"]["document"]["deleted"] - before["metrics"]["document"]["deleted"] == MANY
    assert after["opcounters"]["delete"] - before["opcounters"]["delete"] == 1
    assert_holds(c, 0)
    assert c.find_one({"u": 5}) is None and c.find_one({"a": 3}) is None
    assert c.delete_many({}).deleted_count == 0
    c.insert_many([{"_id": at, "u": at} for at in range(50)])
    assert_holds(c, 50)


def test_a_batch_has_its_documents_in_order(db):
    filled(db)
    reply = db.command("delete", "c", deletes=[
        {"q": {"_id": 1}, "limit": 1}, {"q": {}, "limit": 0}, {"q": {"_id": 2}, "limit": 1}, {"q": {}, "limit": 0}])
    assert reply["n"] == MANY and "writeErrors" not in reply
    assert_holds(db.c, 0)


def test_a_hint_and_a_filter_keep_their_meaning(db):
    c = filled(db)
    assert c.delete_many({}, hint="s_1").deleted_count == MANY // 5
    assert_holds(c, MANY - MANY // 5)
    reply = db.command("delete", "c", deletes=[{"q": {}, "limit": 0, "hint": "nothing"}])
    assert reply["writeErrors"][0]["code"] == 2
    assert c.delete_one({}).deleted_count == 1
    assert_holds(c, MANY - MANY // 5 - 1)


def test_cursors_and_transactions_keep_their_snapshots(client, db):
    c = filled(db)
    cursor = c.find({}, batch_size=100)
    first = [next(cursor)["_id"] for _ in range(100)]
    with client.start_session() as session:
        session.start_transaction()
        assert c.count_documents({"a": 3}, session=session) == len([at for at in range(MANY) if at % 7 == 3])
        assert c.delete_many({}).deleted_count == MANY
        assert c.count_documents({}, session=session) == MANY
        assert c.count_documents({"a": {"$gte": 0}}, session=session) == MANY
        with pytest.raises(OperationFailure) as refused:
            c.update_one({"_id": 4}, {"$set": {"a": 9}}, session=session)
        assert refused.value.code == 112
    assert first + [document["_id"] for document in cursor] == list(range(MANY))
    assert_holds(c, 0)


def test_in_a_transaction_it_is_undone(client, db):
    c = filled(db)
    with client.start_session() as session:
        session.start_transaction()
        assert c.delete_many({}, session=session).deleted_count == MANY
        assert c.count_documents({}, session=session) == 0
        session.abort_transaction()
    assert_holds(c, MANY)


def test_a_document_of_an_open_transaction_is_not_waited_for(client, db):
    c = filled(db)
    with client.start_session() as session:
        session.start_transaction()
        c.insert_one({"_id": "new", "u": "new"}, session=session)
        assert c.delete_many({}).deleted_count == MANY
        session.commit_transaction()
    assert_holds(c, 1)


def test_beside_writers_every_document_is_counted_once(client, db):
    c = filled(db)
    inserted, is_over = [], threading.Event()

    def insert(writer):
        at = 0
        while not is_over.is_set():
            c.insert_one({"_id": f"{writer}-{at}", "u": f"{writer}-{at}"})
            at += 1
        inserted.append(at)

    writers = [threading.Thread(target=insert, args=(writer,)) for writer in range(3)]
    for writer in writers:
        writer.start()
    deleted = sum(c.delete_many({}).deleted_count for _ in range(20))
    is_over.set()
    for writer in writers:
        writer.join()
    assert_holds(c, MANY + sum(inserted) - deleted)


def test_users_and_other_documents_of_the_server_are_seen_one_by_one(db):
    series = db.create_collection("series", timeseries={"timeField": "t", "metaField": "m"})
    with pytest.raises(OperationFailure):
        db.command("delete", "series", deletes=[{"q": {"x": 1}, "limit": 0}], ordered="no")
    assert series.delete_many({}).deleted_count == 0


def test_a_crash_leaves_all_documents_or_none(tmp_path):
    server = Server(tmp_path / "data").start()
    try:
        with server.client() as client:
            filled(client.db)
            client.db.c.delete_many({"_id": {"$lt": 10}})
            client.db.get_collection("c").database.command("delete", "c", deletes=[{"q": {}, "limit": 0}], writeConcern={"j": True})
        server.kill()
        server.start()
        with server.client() as client:
            assert_holds(client.db.c, 0)
            client.db.c.insert_one({"_id": 1, "u": 1})
        assert server.stop() == 0
        server.start()
        with server.client() as client:
            assert_holds(client.db.c, 1)
    finally:
        if server.is_running():
            server.stop()
