"""Read concerns: snapshot sessions, `linearizable`, and the level `serializable` of transactions."""

import threading
import time

import pytest
from bson import Int64, Timestamp
from pymongo.errors import OperationFailure
from pymongo.read_concern import ReadConcern
from test_transactions import Raw, lsid, refused

CONFLICT, TOO_OLD = 112, 239
SNAPSHOT = ReadConcern("snapshot")
SERIALIZABLE = ReadConcern("serializable")


@pytest.fixture
def window(client):
    """Changes the time for which snapshots are held."""
    yield lambda seconds: client.admin.command("setParameter", 1, minSnapshotHistoryWindowInSeconds=seconds)
    client.admin.command("setParameter", 1, minSnapshotHistoryWindowInSeconds=60)


def snapshots(client):
    return client.admin.command("serverStatus")["pando"]["snapshots"]


def claims(client):
    return client.admin.command("serverStatus")["pando"]["engine"]["read_claims.ranges"]


def serializable(client):
    session = client.start_session(causal_consistency=False)
    session.start_transaction(read_concern=SERIALIZABLE)
    return session


def conflicts(act):
    with pytest.raises(OperationFailure) as raised:
        act()
    assert raised.value.code == CONFLICT and raised.value.has_error_label("TransientTransactionError")


@pytest.mark.needs("past snapshots")
@pytest.mark.needs("one server")
def test_a_snapshot_session_reads_one_state(client, db):
    db.c.insert_many({"_id": at, "n": at} for at in range(300))
    db.c.create_index("n")
    with client.start_session(snapshot=True) as session:
        assert db.c.count_documents({}, session=session) == 300
        db.c.update_many({}, {"$inc": {"n": 1000}})
        db.c.delete_many({"_id": {"$gte": 100}})
        db.later.insert_one({})
        found = list(db.c.find({"n": {"$lt": 250}}, session=session, batch_size=50).sort("n"))
        assert [document["n"] for document in found] == list(range(250))
        assert db.c.find_one({"_id": 7}, session=session) == {"_id": 7, "n": 7}
        assert db.c.distinct("n", {"_id": {"$in": [5, 250]}}, session=session) == [5, 250]
        assert list(db.c.aggregate([{"$group": {"_id": None, "sum": {"$sum": "$n"}}}], session=session)) == [
            {"_id": None, "sum": sum(range(300))}
        ]
        assert list(db.later.find({}, session=session)) == []
        db.c.drop_index("n_1")
        assert db.c.find_one({"n": 8}, session=session) == {"_id": 8, "n": 8}
    assert db.c.find_one({"_id": 7}) == {"_id": 7, "n": 1007}


@pytest.mark.needs("past snapshots")
@pytest.mark.parametrize("read", [
    lambda collection, session: list(collection.find({}, session=session)),
    lambda collection, session: list(collection.find({"_id": 1}, session=session)),
    lambda collection, session: list(collection.aggregate([], session=session)),
    lambda collection, session: collection.distinct("_id", session=session),
], ids=["find", "point", "aggregate", "distinct"])
@pytest.mark.needs("one server")
def test_a_snapshot_may_begin_with_a_collection_that_is_not_there(client, db, read):
    db.c.insert_one({"_id": 1})
    with client.start_session(snapshot=True) as session:
        assert read(db.later, session) == []
        db.later.insert_one({"_id": 1})
        db.c.insert_one({"_id": 2})
        assert read(db.later, session) == []
        assert db.c.count_documents({}, session=session) == 1


@pytest.mark.needs("one server")
def test_reads_share_a_snapshot_while_nothing_is_written(client, db):
    db.c.insert_one({"_id": 1})
    read = lambda: db.command("find", "c", readConcern={"level": "snapshot"})["cursor"]["atClusterTime"]
    first = read()
    held = snapshots(client)["held"]
    assert all(read() == first for _ in range(5)) and snapshots(client)["held"] == held
    db.c.insert_one({"_id": 2})
    assert read() > first and snapshots(client)["held"] > held


@pytest.mark.needs("past snapshots")
@pytest.mark.needs("one server")
def test_a_snapshot_is_held_for_the_window_after_its_last_use(client, db, window):
    assert window(2)["was"] == 60
    assert client.admin.command("getParameter", 1, minSnapshotHistoryWindowInSeconds=1)["minSnapshotHistoryWindowInSeconds"] == 2
    db.c.insert_one({"_id": 1, "n": 0})
    first = db.command("find", "c", readConcern={"level": "snapshot"})["cursor"]["atClusterTime"]
    again = lambda: db.command("find", "c", readConcern={"level": "snapshot", "atClusterTime": first})["cursor"]["firstBatch"]
    for _ in range(4):
        db.c.update_one({"_id": 1}, {"$inc": {"n": 1}})
        time.sleep(0.8)
        assert again() == [{"_id": 1, "n": 0}]
    cursor = db.c.with_options(read_concern=SNAPSHOT).find({}, batch_size=0)
    time.sleep(4)
    before = snapshots(client)["tooOld"]
    refused(again, TOO_OLD)
    assert snapshots(client)["tooOld"] == before + 1
    assert list(cursor) == [{"_id": 1, "n": 4}]


def test_the_time_of_the_last_write_can_be_read_at(client, db):
    db.c.insert_one({"_id": 1})
    time_ = client.admin.command("ping")["operationTime"]
    reply = db.command("find", "c", readConcern={"level": "snapshot", "atClusterTime": time_})
    assert reply["cursor"]["atClusterTime"] == time_ and reply["cursor"]["firstBatch"] == [{"_id": 1}]
    older = Timestamp(time_.time - 1000, 1)
    refused(lambda: db.command("find", "c", readConcern={"level": "snapshot", "atClusterTime": older}), TOO_OLD)


def test_causal_sessions_and_linearizable_reads_see_every_write(client, db):
    db.c.insert_one({"_id": 1, "n": 0})
    with client.start_session(causal_consistency=True) as session:
        for number in range(1, 20):
            db.c.update_one({"_id": 1}, {"$set": {"n": number}}, session=session)
            for level in ("majority", "snapshot"):
                assert db.c.with_options(read_concern=ReadConcern(level)).find_one({}, session=session)["n"] == number
            linearizable = db.c.with_options(read_concern=ReadConcern("linearizable"))
            assert linearizable.find_one({"_id": 1})["n"] == number and linearizable.distinct("n") == [number]
            assert list(linearizable.aggregate([{"$count": "n"}])) == [{"n": 1}]


def test_serializable_is_for_transactions(client, db):
    refused(lambda: db.command("find", "c", readConcern={"level": "serializable"}), 72)


@pytest.fixture
def doctors(db):
    db.c.insert_many([{"_id": "a", "pair": 1, "on": True}, {"_id": "b", "pair": 1, "on": True}, {"_id": "z", "pair": 9, "on": False}])
    db.c.create_index("pair")
    return db.c


@pytest.mark.needs("serializable transactions")
def test_write_skew_is_refused(client, doctors):
    one, other = serializable(client), serializable(client)
    for session in (one, other):
        assert doctors.count_documents({"on": True}, session=session) == 2
    conflicts(lambda: doctors.update_one({"_id": "a"}, {"$set": {"on": False}}, session=one))
    doctors.update_one({"_id": "b"}, {"$set": {"on": False}}, session=other)
    other.commit_transaction()
    one.abort_transaction()
    assert doctors.count_documents({"on": True}) == 1


@pytest.mark.needs("serializable transactions")
def test_phantoms_are_refused_in_an_index_and_beside_it_is_room(client, doctors):
    one = serializable(client)
    assert [document["_id"] for document in doctors.find({"pair": {"$gte": 1, "$lt": 5}}, session=one).hint("pair_1")] == ["a", "b"]
    other = client.start_session()
    other.start_transaction()
    conflicts(lambda: doctors.insert_one({"_id": "c", "pair": 3}, session=other))
    other.end_session()
    doctors.insert_one({"_id": "d", "pair": 7})
    with client.start_session() as plain, plain.start_transaction():
        doctors.update_one({"_id": "z"}, {"$set": {"pair": 8}}, session=plain)
    doctors.insert_one({"_id": "e", "pair": 2}, session=one)
    one.commit_transaction()
    assert doctors.count_documents({"pair": {"$lt": 5}}) == 3


@pytest.mark.needs("serializable transactions")
def test_a_plain_write_waits_for_the_end_of_the_reader(client, doctors):
    one = serializable(client)
    assert doctors.find_one({"_id": "a"}, session=one)["on"]
    done = []
    writer = threading.Thread(target=lambda: done.append(doctors.update_one({"_id": "a"}, {"$set": {"on": False}})))
    writer.start()
    time.sleep(0.3)
    assert not done
    one.commit_transaction()
    writer.join(10)
    assert done and doctors.find_one({"_id": "a"})["on"] is False


@pytest.mark.needs("serializable transactions")
def test_a_transaction_that_only_reads_is_never_refused(client, doctors):
    one = serializable(client)
    assert doctors.find_one({"_id": "z"}, session=one)
    doctors.update_one({"_id": "a"}, {"$set": {"on": False}})
    assert doctors.count_documents({"on": True}, session=one) == 2
    doctors.update_one({"_id": "z"}, {"$set": {"on": True}})
    assert doctors.count_documents({"on": True}, session=one) == 2
    one.commit_transaction()
    two = serializable(client)
    assert doctors.find_one({"_id": "z"}, session=two)
    doctors.update_one({"_id": "b"}, {"$set": {"on": False}})
    assert doctors.find_one({"_id": "b"}, session=two)["on"]
    conflicts(lambda: doctors.update_one({"_id": "a"}, {"$set": {"on": True}}, session=two))
    two.end_session()


@pytest.mark.needs("serializable transactions")
def test_a_collection_that_was_not_there_is_read_too(client, db):
    db.log.insert_one({"_id": 0})
    one, other = serializable(client), serializable(client)
    assert db.new.find_one({}, session=one) is None and db.absent.find_one({}, session=other) is None
    db.new.insert_one({"_id": 1})
    db.log.insert_one({"_id": 1}, session=one)
    conflicts(one.commit_transaction)
    db.log.insert_one({"_id": 2}, session=other)
    other.commit_transaction()
    third = serializable(client)
    assert db.new.find_one({}, session=third) == {"_id": 1}
    db.new.drop()
    db.log.insert_one({"_id": 3}, session=third)
    conflicts(third.commit_transaction)
    assert [document["_id"] for document in db.log.find().sort("_id")] == [0, 2]


@pytest.mark.needs("serializable transactions")
def test_collections_change_beside_an_open_reader(client, doctors):
    one = serializable(client)
    assert list(doctors.aggregate([{"$count": "n"}], session=one)) == [{"n": 3}]
    doctors.create_index("on")
    doctors.database.command("collMod", doctors.name, index={"name": "on_1", "hidden": True})
    doctors.drop_index("on_1")
    doctors.rename("renamed")
    doctors.database.renamed.drop()
    assert doctors.count_documents({}, session=one) == 3
    one.commit_transaction()


@pytest.mark.needs("serializable transactions")
def test_claims_end_with_their_transaction_however_it_ends(server, client, doctors):
    statement = {"find": doctors.name, "filter": {}, "readConcern": {"level": "serializable"}, "startTransaction": True}
    ends = [
        lambda raw, fields: raw.command("admin", {"commitTransaction": 1, **fields}),
        lambda raw, fields: raw.command("admin", {"abortTransaction": 1, **fields}),
        lambda raw, fields: raw.command("admin", {"killSessions": [fields["lsid"]]}),
        lambda raw, fields: raw.command("admin", {"endSessions": [fields["lsid"]]}),
    ]
    for end in ends:
        with Raw(server.port) as raw:
            fields = {"lsid": lsid(), "txnNumber": Int64(1), "autocommit": False}
            raw.command(doctors.database.name, {**statement, **fields})
            assert claims(client) > 0
            end(raw, fields)
            assert claims(client) == 0
    client.admin.command("setParameter", 1, transactionLifetimeLimitSeconds=1)
    try:
        with Raw(server.port) as raw:
            raw.command(doctors.database.name, {**statement, "lsid": lsid(), "txnNumber": Int64(1), "autocommit": False})
        doctors.update_one({"_id": "a"}, {"$set": {"on": False}})  # waits until the vanished client's transaction has ended
    finally:
        client.admin.command("setParameter", 1, transactionLifetimeLimitSeconds=60)
    assert claims(client) == 0
