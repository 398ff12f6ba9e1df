"""Capped collections: limits, order, writes of all kinds, the commands around them, and kill -9."""

import datetime
import random
import threading
import time

import bson
import pytest
from pymongo.errors import BulkWriteError, OperationFailure

from server import Server

pytestmark = pytest.mark.needs("unshared collections")


def capped(db, name="c", size=4096, **options):
    return db.create_collection(name, capped=True, size=size, **options)


def ids(collection, **find):
    return [found["_id"] for found in collection.find({}, **find)]


class Model:
    """MongoDB's rule: after each insert the oldest go while there is too much, but never the newest."""

    def __init__(self, size, most):
        self.size, self.most, self.documents = size, most, []

    def insert(self, document):
        self.documents.append((document["_id"], len(bson.encode(document))))
        while len(self.documents) > 1 and (sum(size for _, size in self.documents) > self.size or len(self.documents) > self.most):
            self.documents.pop(0)

    @property
    def ids(self):
        return [key for key, _ in self.documents]


@pytest.mark.parametrize("seed", range(3))
def test_random_inserts_leave_the_newest_that_fit(db, seed):
    chance = random.Random(seed)
    c, model, at = capped(db, size=5000, max=30), Model(5120, 30), 0
    for _ in range(60):
        batch = []
        for _ in range(chance.randint(1, 25)):
            batch.append({"_id": at, "x": "y" * (6000 if chance.random() < 0.02 else chance.randint(0, 700))})
            at += 1
        c.insert_many(batch)
        for document in batch:
            model.insert(document)
        assert ids(c) == model.ids and ids(c, sort=[("$natural", -1)]) == model.ids[::-1]
        assert ids(c, hint=[("$natural", -1)]) == model.ids[::-1]
    told = db.command("collStats", "c")
    assert (told["capped"], told["max"], told["maxSize"], told["count"]) == (True, 30, 5120, len(model.ids))
    assert db.command("validate", "c")["valid"]


def test_a_failed_document_removes_nothing(db):
    c = capped(db, max=3)
    c.insert_many([{"_id": at} for at in range(3)])
    with pytest.raises(BulkWriteError) as error:
        c.insert_many([{"_id": 3}, {"_id": 3, "x": 1}, {"_id": 4}], ordered=False)
    assert error.value.details["nInserted"] == 2 and ids(c) == [2, 3, 4]
    with pytest.raises(OperationFailure):
        c.insert_one({"_id": 2})
    assert ids(c) == [2, 3, 4]


def test_many_writers_keep_the_limits_and_the_newest(db):
    c = capped(db, size=1 << 20, max=50)
    seen, done = [], threading.Event()

    def write(number):
        for at in range(100):
            c.insert_one({"_id": f"{number}-{at}", "number": number, "at": at})

    def watch():
        while not done.is_set():
            seen.append(len(ids(c)))

    threads = [threading.Thread(target=write, args=[number]) for number in range(8)]
    watcher = threading.Thread(target=watch)
    watcher.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    watcher.join()
    assert max(seen) <= 50 and len(ids(c)) == 50
    for number in range(8):
        own = [found["at"] for found in c.find({"number": number})]
        assert own == sorted(own) and (not own or own[-1] == 99)


def test_updates_and_removals(db):
    c = capped(db, max=5)
    c.insert_many([{"_id": at, "x": "a"} for at in range(5)])
    c.update_one({"_id": 1}, {"$set": {"x": "b" * 100}})
    c.replace_one({"_id": 2}, {"y": 1})
    assert c.update_one({"_id": 77}, {"$set": {"x": 1}}, upsert=True).upserted_id == 77
    assert ids(c) == [1, 2, 3, 4, 77]
    assert c.delete_one({"_id": 3}).deleted_count == 1
    assert c.find_one_and_delete({"_id": 1})["x"] == "b" * 100
    c.insert_many([{"_id": 100 + at} for at in range(2)])
    assert ids(c) == [2, 4, 77, 100, 101]
    assert c.delete_many({}).deleted_count == 5
    c.insert_one({"_id": 5})
    assert ids(c) == [5]


def test_no_writes_in_a_transaction(client, db):
    c = capped(db)
    c.insert_one({"_id": 1})
    for write, code in [
            (lambda s: c.insert_one({"_id": 2}, session=s), 263), (lambda s: c.update_one({"_id": 1}, {"$set": {"a": 1}}, session=s), 263),
            (lambda s: c.delete_one({"_id": 1}, session=s), 20), (lambda s: c.find_one_and_update({"_id": 1}, {"$set": {"a": 1}}, session=s), 263)]:
        with client.start_session() as session:
            session.start_transaction()
            assert ids(c, session=session) == [1]
            with pytest.raises(OperationFailure) as error:
                write(session)
            assert error.value.code == code
            with pytest.raises(OperationFailure) as error:
                session.commit_transaction()
            assert error.value.code == 251
    assert list(c.find()) == [{"_id": 1}]


def test_indexes_and_lists(db):
    c = capped(db, max=4)
    c.create_index("a")
    c.insert_many([{"_id": at, "a": at % 2} for at in range(9)])
    assert [found["_id"] for found in c.find({"a": 1}).hint("a_1")] == [5, 7]
    with pytest.raises(OperationFailure) as error:
        c.aggregate([{"$out": "c"}])
    assert error.value.code == 17152
    [listed] = db.list_collections(filter={"name": "c"})
    assert listed["options"] == {"capped": True, "size": 4096, "max": 4}
    assert db.command("dbHash")["capped"] == ["c"]


def test_copies_and_changed_limits(db):
    db.s.insert_many([{"_id": at, "x": "y" * 100} for at in range(100)])
    db.command("cloneCollectionAsCapped", "s", toCollection="t", size=4096)
    assert ids(db.t) == list(range(69, 100)) or ids(db.t)[-1] == 99
    before = ids(db.t)
    db.command("convertToCapped", "s", size=4096)
    assert ids(db.s) == before and db.s.options() == {"capped": True, "size": 4096}
    db.command("collMod", "s", cappedSize=2000, cappedMax=3)
    assert ids(db.s) == before and db.s.options() == {"capped": True, "size": 2048, "max": 3}
    db.s.insert_one({"_id": 100})
    assert ids(db.s) == [98, 99, 100]
    with pytest.raises(OperationFailure) as error:
        db.command("cloneCollectionAsCapped", "s", toCollection="t", size=4096)
    assert error.value.code == 48
    db.command("create", "plain")
    with pytest.raises(OperationFailure, match="Collection must be capped."):
        db.command("collMod", "plain", cappedSize=1)


def test_a_rename_replaces_its_target_across_databases(client, db):
    other = client[f"{db.name}_b"]
    try:
        capped(db, max=3).insert_many([{"_id": at} for at in range(5)])
        db.c.create_index("a")
        other.c.insert_one({"_id": "old"})
        with pytest.raises(OperationFailure) as error:
            client.admin.command("renameCollection", f"{db.name}.c", to=f"{other.name}.c")
        assert error.value.code == 48
        client.admin.command("renameCollection", f"{db.name}.c", to=f"{other.name}.c", dropTarget=True)
        assert db.list_collection_names() == [] and ids(other.c) == [2, 3, 4]
        assert set(other.c.index_information()) == {"_id_", "a_1"} and other.c.options()["max"] == 3
        other.c.insert_one({"_id": 5})
        assert ids(other.c) == [3, 4, 5]
    finally:
        client.drop_database(other.name)


def test_killed_servers_keep_limits_and_acknowledged_documents(tmp_path):
    server, acknowledged = Server(tmp_path / "data").start(), []
    with server.client() as client:
        capped(client.k, size=1 << 20, max=40)
    for kill in range(4):
        stopped = threading.Event()

        def write():
            with server.client(retryWrites=False, serverSelectionTimeoutMS=500) as client:
                at = len(acknowledged)
                while True:
                    try:
                        client.k.c.insert_one({"_id": f"{kill}-{at}", "at": at})
                    except Exception:
                        return stopped.set()
                    acknowledged.append(f"{kill}-{at}")
                    at += 1

        thread = threading.Thread(target=write)
        thread.start()
        stopped.wait(0.7)
        server.kill()
        thread.join()
        server.start()
        with server.client() as client:
            found = ids(client.k.c)
            assert len(found) <= 40 and acknowledged[-1] in found[-2:]
            assert [one for one in found if one in acknowledged] == acknowledged[-len([one for one in found if one in acknowledged]):]
            assert client.k.command("validate", "c")["valid"]
    server.stop()


def test_documents_expire(client, db):
    c = capped(db, size=4 << 20)
    now = datetime.datetime.now(datetime.timezone.utc).replace(tzinfo=None, microsecond=0)
    c.insert_many([{"_id": at, "t": now - datetime.timedelta(days=at % 2)} for at in range(10)])
    c.create_index("t", expireAfterSeconds=3600)
    client.admin.command("setParameter", 1, ttlMonitorSleepSecs=1)
    try:
        for _ in range(100):
            if c.count_documents({}) == 5:
                break
            time.sleep(0.2)
    finally:
        client.admin.command("setParameter", 1, ttlMonitorSleepSecs=60)
    c.insert_one({"_id": 10})
    assert [row["_id"] for row in c.find()] == [0, 2, 4, 6, 8, 10]
    assert db.command("validate", "c")["valid"]
