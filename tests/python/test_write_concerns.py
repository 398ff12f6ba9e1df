"""Write concerns on one node, their defaults, and the lock of fsync."""

import threading
import time

import pytest
from pymongo.errors import AutoReconnect, OperationFailure, WriteConcernError
from pymongo.write_concern import WriteConcern

from server import Server


@pytest.fixture(scope="module", params=["betree", "memory"])
def replica_set(request, tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("store") / "data", "--persona", "replica-set", engine=request.param).start()
    yield server
    assert server.stop() == 0, server.log()


@pytest.fixture
def admin(replica_set):
    with replica_set.client() as client:
        yield client.admin


def refused(call, *arguments, code, **more):
    with pytest.raises(OperationFailure) as told:
        call(*arguments, **more)
    assert told.value.code == code, told.value.details
    return told.value


def test_a_concern_that_one_node_cannot_keep_is_told_beside_the_outcome(admin):
    c = admin.client.t.c
    with pytest.raises(WriteConcernError) as told:
        c.with_options(write_concern=WriteConcern(w=2, wtimeout=1000)).insert_one({"_id": 1})
    assert told.value.code == 100 and c.count_documents({"_id": 1}) == 1
    reply = admin.client.t.command("update", "c", updates=[{"q": {}, "u": {"$set": {"x": 1}}}], writeConcern={"w": "x"}, check=False)
    assert reply["nModified"] == 1 and reply["writeConcernError"]["code"] == 79
    c.with_options(write_concern=WriteConcern(w="majority", wtimeout=1)).delete_one({"_id": 1})
    c.with_options(write_concern=WriteConcern(j=True)).insert_one({"_id": 2})
    c.drop()


def test_default_concerns_stay_after_a_restart(tmp_path):
    server = Server(tmp_path / "data", "--persona", "replica-set").start()
    with server.client() as client:
        assert client.admin.command("getDefaultRWConcern")["defaultWriteConcernSource"] == "implicit"
        told = client.admin.command("setDefaultRWConcern", defaultWriteConcern={"w": 2}, defaultReadConcern={"level": "majority"})
        assert told["defaultWriteConcern"] == {"w": 2, "wtimeout": 0} and told["defaultWriteConcernSource"] == "global"
        reply = client.t.command("insert", "c", documents=[{"_id": 1}], check=False)
        assert reply["n"] == 1 and reply["writeConcernError"]["errInfo"]["writeConcern"]["provenance"] == "customDefault"
        # A concern of the request goes before the default.
        assert "writeConcernError" not in client.t.command("insert", "c", documents=[{"_id": 2}], writeConcern={"w": 1})
    server.kill()
    server.start()
    with server.client() as client:
        told = client.admin.command("getDefaultRWConcern")
        assert told["defaultWriteConcern"] == {"w": 2, "wtimeout": 0} and told["defaultReadConcern"] == {"level": "majority"}
        assert "writeConcernError" in client.t.command("insert", "c", documents=[{"_id": 3}], check=False)
        client.admin.command("setDefaultRWConcern", defaultWriteConcern={"w": "majority"}, writeConcern={"w": 1})
        assert "writeConcernError" not in client.t.command("insert", "c", documents=[{"_id": 4}])
        assert client.config.settings.count_documents({"_id": "ReadWriteConcernDefaults"}) == 1
    assert server.stop() == 0


def test_the_lock_stops_writers_and_counts(replica_set, admin):
    t = admin.client.t
    t.c.insert_one({"_id": "before"})
    assert admin.command("fsync", lock=True)["lockCount"] == 1
    assert admin.command("fsync", lock=True)["lockCount"] == 2
    try:
        listed = admin.command("currentOp")
        assert listed["fsyncLock"] is True and "fsyncUnlock" in listed["info"]
        refused(t.command, "insert", "c", documents=[{"_id": 1}], maxTimeMS=50, code=50)
        refused(t.command, "create", "d", maxTimeMS=50, code=50)
        refused(t.command, "findAndModify", "c", query={}, remove=True, maxTimeMS=50, code=50)
        assert t.c.count_documents({}) == 1 and len(list(t.c.aggregate([{"$match": {}}]))) == 1
        done = threading.Event()

        def write():
            with replica_set.client() as other:
                other.t.c.insert_one({"_id": "late"})
            done.set()

        writer = threading.Thread(target=write)
        writer.start()
        deadline = time.monotonic() + 10
        while not any(one.get("waitingFor") == "writeLock" for one in admin.command("currentOp")["inprog"]):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert admin.command("fsyncUnlock")["lockCount"] == 1
        assert not done.wait(0.1) and t.c.find_one({"_id": "late"}) is None
    finally:
        while admin.command("fsyncUnlock")["lockCount"]:
            pass
    assert done.wait(10)
    writer.join()
    assert t.c.find_one({"_id": "late"}) and "fsyncLock" not in admin.command("currentOp")
    refused(admin.command, "fsyncUnlock", code=None)
    t.c.drop()


def test_a_transaction_goes_on_after_the_lock(admin):
    client = admin.client
    client.t.c.insert_one({"_id": 0})
    with client.start_session() as session, session.start_transaction():
        client.t.c.insert_one({"_id": 1}, session=session)
        admin.command("fsync", lock=True)
        assert client.t.c.count_documents({}, session=session) == 2
        admin.command("fsyncUnlock")
    assert client.t.c.count_documents({}) == 2
    client.t.c.drop()


def test_many_writers_in_front_of_the_lock_leave_room_for_others(replica_set, admin):
    admin.command("fsync", lock=True)
    outcomes = []

    def write(at):
        with replica_set.client(retryWrites=False) as other:
            try:
                other.t.many.insert_one({"_id": at})
                outcomes.append("written")
            except (OperationFailure, AutoReconnect) as error:
                outcomes.append(error.code)

    writers = [threading.Thread(target=write, args=(at,)) for at in range(80)]
    for writer in writers:
        writer.start()
    deadline = time.monotonic() + 30
    while len(outcomes) < 48 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert set(outcomes) == {24}, "those that do not fit are told of the lock"
    assert admin.command("currentOp")["fsyncLock"] and admin.command("fsyncUnlock")["lockCount"] == 0
    for writer in writers:
        writer.join()
    assert outcomes.count("written") == 32 == admin.client.t.many.count_documents({})
    admin.client.t.many.drop()
