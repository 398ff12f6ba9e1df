"""Indexes with expireAfterSeconds: expired documents are removed, in operations that can be seen and ended."""

import datetime
import time

import pytest
from bson import ObjectId, Timestamp, encode
from pymongo.errors import OperationFailure

pytestmark = pytest.mark.needs("one server")

NOW = datetime.datetime.now(datetime.timezone.utc)
PAST, FUTURE = NOW - datetime.timedelta(days=1), NOW + datetime.timedelta(days=1)


@pytest.fixture
def quick(client):
    """A monitor that looks every second."""
    client.admin.command("setParameter", 1, ttlMonitorSleepSecs=1)
    yield client
    client.admin.command("setParameter", 1, ttlMonitorSleepSecs=60)
    client.admin.command("setParameter", 1, ttlMonitorEnabled=True)


def figures(client):
    return client.admin.command("serverStatus")["metrics"]["ttl"]


def wait_for(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def wait_for_passes(client, number=2):
    wanted = figures(client)["passes"] + number
    wait_for(lambda: figures(client)["passes"] >= wanted)


def ids(collection):
    return sorted(found["_id"] for found in collection.find({}, {"_id": 1}))


VALUES = {
    1: PAST, 2: FUTURE, 3: [FUTURE, PAST], 4: [FUTURE], 5: "x", 6: 5, 7: None, 8: [], 9: [[PAST]], 10: ["x", PAST], 11: {"b": PAST},
    12: datetime.datetime(1950, 1, 1),
}


@pytest.mark.parametrize("options", [{}, {"sparse": True}, {"hidden": True}], ids=repr)
@pytest.mark.parametrize("way", [1, -1])
def test_documents_expire_by_their_smallest_date(quick, db, options, way):
    db.c.insert_many([{"_id": number, "a": value} for number, value in VALUES.items()] + [{"_id": 99}])
    before = figures(quick)["deletedDocuments"]
    db.c.create_index([("a", way)], expireAfterSeconds=60, **options)
    wait_for_passes(quick)
    assert ids(db.c) == [2, 4, 5, 6, 7, 8, 9, 11, 99]
    assert figures(quick)["deletedDocuments"] == before + 4
    assert db.command("validate", "c")["valid"]


@pytest.mark.parametrize("name", [{}, {"name": "by date"}], ids=repr)
def test_documents_of_a_clustered_collection_expire_by_their_id(quick, db, name):
    db.create_collection("c", clusteredIndex={"key": {"_id": 1}, "unique": True, **name}, expireAfterSeconds=60)
    db.c.insert_many([{"_id": PAST}, {"_id": FUTURE}, {"_id": 5}, {"_id": "x"}])
    wait_for_passes(quick)
    assert db.c.count_documents({}) == 3 and not db.c.count_documents({"_id": PAST})
    assert db.command("validate", "c")["valid"]


def test_a_range_of_dates_expires_and_the_figures_are_exact(quick, db):
    c = db.create_collection("c", clusteredIndex={"key": {"_id": 1}, "unique": True}, expireAfterSeconds=60)
    first = PAST - datetime.timedelta(days=1)
    quick.admin.command("setParameter", 1, ttlMonitorEnabled=False)
    with quick.start_session() as session, session.start_transaction():
        # Of a transaction that stays open through a pass.
        c.insert_one({"_id": first}, session=session)
        c.insert_many([{"_id": first + datetime.timedelta(seconds=at + 1), "pad": "x" * (at % 50)} for at in range(12_000)])
        c.insert_many([{"_id": FUTURE + datetime.timedelta(seconds=at)} for at in range(10)])
        c.insert_many([{"_id": value} for value in (5, "x", True, Timestamp(5, 1), ObjectId())])
        removed = figures(quick)["deletedDocuments"]
        quick.admin.command("setParameter", 1, ttlMonitorEnabled=True)
        wait_for(lambda: c.estimated_document_count() == 15)
    wait_for(lambda: figures(quick)["deletedDocuments"] == removed + 12_001)
    assert c.estimated_document_count() == len(list(c.find())) == 15
    stats = db.command("collStats", "c")
    assert stats["size"] == sum(len(encode(document)) for document in c.find())
    assert db.command("validate", "c")["valid"]


def test_dates_within_arrays_of_documents_expire(quick, db):
    db.c.insert_many([{"_id": 1, "a": [{"b": FUTURE}, {"b": PAST}]}, {"_id": 2, "a": [{"b": FUTURE}, {}]}, {"_id": 3, "a": [PAST]}])
    db.c.create_index("a.b", expireAfterSeconds=0)
    db.d.insert_many([{"_id": 1, "a": [PAST]}, {"_id": 2, "a": [FUTURE, PAST]}])
    db.d.create_index("a.0", expireAfterSeconds=0)
    wait_for_passes(quick)
    assert (ids(db.c), ids(db.d)) == ([2, 3], [2])


def test_the_time_can_be_changed(quick, db):
    now = datetime.datetime.now(datetime.timezone.utc)
    db.c.insert_many([{"_id": 1, "a": now - datetime.timedelta(seconds=500)}, {"_id": 2, "a": now}])
    db.c.create_index("a", expireAfterSeconds=5000)
    wait_for_passes(quick)
    assert ids(db.c) == [1, 2]
    changed = db.command("collMod", "c", index={"keyPattern": {"a": 1}, "expireAfterSeconds": 400})
    assert (changed["expireAfterSeconds_old"], changed["expireAfterSeconds_new"]) == (5000, 400)
    assert db.c.index_information()["a_1"]["expireAfterSeconds"] == 400
    wait_for_passes(quick)
    assert ids(db.c) == [2]


def test_an_index_begins_to_let_documents_expire(quick, db):
    db.c.insert_one({"_id": 1, "a": PAST})
    db.c.create_index("a")
    changed = db.command("collMod", "c", index={"name": "a_1", "expireAfterSeconds": 9, "hidden": True})
    assert "expireAfterSeconds_old" not in changed and changed["hidden_new"]
    wait_for(lambda: ids(db.c) == [])


@pytest.mark.parametrize("change,code", [
    ({"name": "_id_", "expireAfterSeconds": 5}, 72), ({"name": "a_1_b_1", "expireAfterSeconds": 5}, 72),
    ({"name": "a_1", "expireAfterSeconds": -1}, 72), ({"name": "a_1", "expireAfterSeconds": "x"}, 14), ({"name": "z", "expireAfterSeconds": 5}, 27),
    ({"keyPattern": {"a": 1}, "expireAfterSeconds": 5}, 181),
], ids=repr)
def test_changes_that_are_refused(db, change, code):
    db.c.create_index([("a", 1), ("b", 1)])
    db.c.create_index("a")
    db.c.create_index("a", name="other", sparse=True)
    with pytest.raises(OperationFailure) as refused:
        db.command("collMod", "c", index=change)
    assert refused.value.code == code


def test_the_monitor_stops_while_it_is_disabled(quick, db):
    assert quick.admin.command("setParameter", 1, ttlMonitorEnabled=False)["was"] is True
    assert quick.admin.command("getParameter", 1, ttlMonitorEnabled=1)["ttlMonitorEnabled"] is False
    db.c.create_index("a", expireAfterSeconds=0)
    db.c.insert_one({"_id": 1, "a": PAST})
    passes = figures(quick)["passes"]
    time.sleep(2.5)
    assert ids(db.c) == [1] and figures(quick)["passes"] <= passes + 1
    quick.admin.command("setParameter", 1, ttlMonitorEnabled=True)
    wait_for(lambda: ids(db.c) == [])


@pytest.mark.parametrize("value", [0, -1, "x", None, 2**40, False])
def test_a_pause_has_at_least_a_second(client, value):
    with pytest.raises(OperationFailure) as refused:
        client.admin.command("setParameter", 1, ttlMonitorSleepSecs=value)
    assert refused.value.code == 2


def removals(client):
    return [found for found in client.admin.aggregate([{"$currentOp": {}}]) if found.get("desc") == "TTLMonitor"]


def test_a_removal_is_an_operation_that_waits_and_can_be_ended(quick, db):
    quick.admin.command("setParameter", 1, ttlMonitorEnabled=False)
    db.c.create_index("a", expireAfterSeconds=0)
    db.c.insert_many([{"_id": number, "a": PAST} for number in range(10)])
    quick.admin.command("fsync", 1, lock=True)
    try:
        quick.admin.command("setParameter", 1, ttlMonitorEnabled=True)
        wait_for(lambda: removals(quick))
        found = removals(quick)[0]
        assert found["op"] == "remove" and found["ns"] == db.c.full_name
        assert found["command"]["limit"] == 0
        assert quick.admin.command("killOp", op=found["opid"])["ok"]
        wait_for(lambda: all(other["opid"] != found["opid"] for other in removals(quick)))
        assert len(ids(db.c)) == 10
    finally:
        quick.admin.command("fsyncUnlock")
    wait_for(lambda: ids(db.c) == [])


def test_a_document_that_gets_a_later_date_stays(quick, db):
    """Writers move dates on while others expire: none that lives is lost, and the index agrees with the documents."""
    number = 3000
    db.c.insert_many([{"_id": at, "a": PAST} for at in range(number)])
    for at in range(0, number, 2):
        db.c.update_one({"_id": at}, {"$set": {"a": FUTURE}})
    db.c.create_index("a", expireAfterSeconds=0)
    moved = set()
    for at in range(1, number, 2):
        if db.c.update_one({"_id": at}, {"$set": {"a": FUTURE}}).modified_count:
            moved.add(at)
    wait_for_passes(quick)
    assert set(ids(db.c)) == moved | set(range(0, number, 2))
    assert db.command("validate", "c")["valid"]


def test_nothing_expires_once_the_index_is_gone(quick, db):
    db.c.create_index("a", expireAfterSeconds=0)
    db.c.drop()
    db.c.insert_one({"_id": 1, "a": PAST})
    wait_for_passes(quick)
    assert ids(db.c) == [1]
