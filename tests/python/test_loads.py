"""TokuMX's bulk loader: beginLoad, inserts, commitLoad or abortLoad, on one connection."""

import threading
import time

import pytest
from bson import Int64
from pymongo import IndexModel
from pymongo.errors import AutoReconnect, BulkWriteError, DuplicateKeyError, OperationFailure

from server import Server

pytestmark = pytest.mark.needs("one server")

INDEXES = [
    {"key": {"a": 1}, "name": "a_1"},
    {"key": {"tags": 1, "a": -1}, "name": "tags_1_a_-1", "sparse": True},
    {"key": {"u": 1}, "name": "u_1", "unique": True, "sparse": True},
]


def documents(number, text=""):
    """In an order that is not that of the keys."""
    return [{"_id": i * 7919 % number, "a": i % 13, "tags": [i % 3, i % 5], "u": i, "text": text} for i in range(number)]


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


def begin(database, name="c", **more):
    assert database.command({"beginLoad": 1, "ns": name, "indexes": INDEXES, **more})["status"] == "load began"


def commit(database):
    assert database.command("commitLoad")["status"] == "load committed"


def is_released(client):
    """Whether no load holds memory or scratch files. The end of a connection takes a moment."""
    deadline = time.monotonic() + 10
    while True:
        figures = client.admin.command("serverStatus")["pando"]["queryMemory"]
        if (figures["heldBytes"], figures["scratchFiles"]) == (0, 0):
            return True
        assert time.monotonic() < deadline, figures
        time.sleep(0.02)


def assert_equal_to_inserts(db, loaded, expected):
    """The loaded collection is what `insertMany` and `createIndexes` make."""
    db.inserted.create_indexes([IndexModel(list(one["key"].items()), **{k: v for k, v in one.items() if k != "key"}) for one in INDEXES])
    db.inserted.insert_many(expected)
    for filter, sort in (({}, "_id"), ({"a": 3}, "u"), ({"tags": 2, "a": {"$gt": 4}}, "_id"), ({"u": {"$lt": 50}}, "u")):
        assert list(loaded.find(filter).sort(sort, 1)) == list(db.inserted.find(filter).sort(sort, 1)), filter
    for hint in ("a_1", "tags_1_a_-1", "u_1"):
        found = sorted(one["_id"] for one in loaded.find({"a": {"$gte": 0}} if hint == "a_1" else {}).hint(hint))
        assert found == sorted(one["_id"] for one in db.inserted.find({"a": {"$gte": 0}} if hint == "a_1" else {}).hint(hint)), hint
    assert loaded.index_information() == db.inserted.index_information()
    reports = [db.command("validate", name, full=True) for name in (loaded.name, "inserted")]
    assert reports[0]["valid"] and reports[0]["keysPerIndex"] == reports[1]["keysPerIndex"], reports
    assert db.command("count", loaded.name)["n"] == loaded.count_documents({}) == len(expected)
    assert db.command("collStats", loaded.name)["size"] == db.command("collStats", "inserted")["size"]


def test_a_load_is_what_inserts_make(mine, db, client, server):
    made = documents(2_000)
    begin(mine, options={"storageEngine": {"betree": {"compression": "zstd"}}} if server.engine == "betree" else {})
    for at in range(0, len(made), 500):
        assert len(mine.c.insert_many(made[at:at + 500]).inserted_ids) == 500
    assert "c" not in db.list_collection_names() and db.c.count_documents({}) == 0
    commit(mine)
    assert_equal_to_inserts(db, db.c, made)
    assert is_released(client)
    # It is a collection as any other, and so is the connection.
    mine.c.insert_one({"_id": "new", "u": "new"})
    with pytest.raises(DuplicateKeyError):
        mine.c.insert_one({"_id": "other", "u": 7})
    mine.c.update_many({"a": 3}, {"$set": {"a": 100}})
    mine.c.delete_many({"a": 4})
    mine.c.create_index("text")
    assert db.command("validate", "c", full=True)["valid"]
    assert db.c.count_documents({"a": 100}) == db.inserted.count_documents({"a": 3})


def test_a_load_without_documents_makes_an_empty_collection(mine, db):
    assert mine.command({"beginLoad": 1, "ns": "c"})["ok"] == 1
    commit(mine)
    assert db.list_collection_names() == ["c"] and db.c.count_documents({}) == 0
    begin(mine, "d")
    commit(mine)
    assert set(db.d.index_information()) == {"_id_", "a_1", "tags_1_a_-1", "u_1"}


def test_the_commit_of_the_transaction_publishes(mine, db):
    mine.command("beginTransaction")
    mine.d.insert_one({"_id": 1})
    begin(mine)
    mine.c.insert_many(documents(100))
    assert refused(mine.client.admin.command, "commitTransaction", code=16889)
    commit(mine)
    assert db.list_collection_names() == []
    mine.d.insert_one({"_id": 2})
    begin(mine, "e")
    mine.e.insert_one({"_id": 1})
    commit(mine)
    assert mine.command("commitTransaction")["status"] == "transaction committed"
    assert sorted(db.list_collection_names()) == ["c", "d", "e"]
    assert (db.c.count_documents({}), db.d.count_documents({}), db.e.count_documents({})) == (100, 2, 1)
    assert db.command("count", "c")["n"] == 100 and db.command("validate", "c", full=True)["valid"]


def test_a_transaction_uses_what_it_has_loaded_after_its_commit(mine, db):
    for statement in ({"find": "c"}, {"insert": "c", "documents": [{}]}, {"update": "c", "updates": [{"q": {}, "u": {"$set": {"x": 1}}}]},
                      {"count": "c"}, {"distinct": "c", "key": "a"}, {"create": "c"}, {"beginLoad": 1, "ns": "c"}):
        mine.command("beginTransaction")
        begin(mine)
        mine.c.insert_many(documents(10))
        commit(mine)
        if "beginLoad" in statement:
            begin(mine)
            refused(mine.command, "commitLoad", code=263)
        else:
            refused(mine.command, statement, code=263)
        mine.command("rollbackTransaction")
    assert db.list_collection_names() == []


def test_a_rollback_leaves_nothing(mine, db, client):
    for end in ("rollbackTransaction", "abortTransaction"):
        for is_committed in (False, True):
            mine.command("beginTransaction")
            begin(mine)
            mine.c.insert_many(documents(100))
            if is_committed:
                commit(mine)
            (mine if end == "rollbackTransaction" else mine.client.admin).command(end)
            assert db.list_collection_names() == [] and is_released(client)
            refused(mine.command, "abortLoad", code=125)
    mine.c.insert_one({"_id": 1})
    assert db.list_collection_names() == ["c"]


def test_a_transaction_that_outlives_its_limit_takes_its_load_along(mine, db, client):
    client.admin.command("setParameter", 1, transactionLifetimeLimitSeconds=1)
    try:
        mine.command("beginTransaction")
        begin(mine)
        mine.c.insert_many(documents(100))
        assert is_released(client), "though its client is idle"
        refused(mine.c.insert_one, {"_id": "x"}, code=251)
        mine.command("rollbackTransaction")
    finally:
        client.admin.command("setParameter", 1, transactionLifetimeLimitSeconds=60)
    assert db.list_collection_names() == []


def test_duplicates_are_told_by_the_commit_and_end_the_load(mine, db, client):
    made = documents(500)
    for twice, index in (({"_id": 7.0, "u": "x"}, "_id_"), ({"_id": "x", "u": 77}, "u_1")):
        begin(mine)
        mine.c.insert_many(made)
        mine.c.insert_one(twice)
        told = refused(mine.command, "commitLoad", code=11000)
        key = {"_id": 7.0} if index == "_id_" else {"u": 77}
        assert told.details["keyValue"] == key and told.details["keyPattern"] == {name: 1 for name in key}
        assert f"collection: {db.name}.c index: {index} dup key" in str(told)
        assert db.list_collection_names() == [] and is_released(client)
        refused(mine.command, "commitLoad", code=125)
    # In a transaction the failure ends that, too.
    mine.command("beginTransaction")
    begin(mine)
    mine.c.insert_many([{"_id": 1}, {"_id": 1}])
    refused(mine.command, "commitLoad", code=11000)
    refused(mine.d.insert_one, {}, code=251)
    mine.command("rollbackTransaction")
    assert db.list_collection_names() == []


def test_an_abort_leaves_nothing(mine, db, client):
    begin(mine)
    mine.c.insert_many(documents(1_000))
    assert mine.command("abortLoad")["status"] == "load aborted"
    assert db.list_collection_names() == [] and is_released(client)
    mine.c.insert_one({"_id": 1})
    assert db.c.count_documents({}) == 1
    mine.command("beginTransaction")
    begin(mine, "d")
    mine.d.insert_one({"_id": 1})
    mine.command("abortLoad")
    mine.d.insert_one({"_id": 2})
    mine.command("commitTransaction")
    assert [one["_id"] for one in db.d.find()] == [2]


def test_a_vanished_client_leaves_nothing(connect, db, client):
    for command in (None, "beginTransaction"):
        other = connect()
        mine = other[db.name]
        if command:
            mine.command(command)
        begin(mine)
        mine.c.insert_many(documents(1_000))
        other.close()
        assert is_released(client)
        assert db.list_collection_names() == []
    begin(connect()[db.name])


def test_other_clients_are_unaffected_and_the_first_to_take_the_name_wins(mine, connect, db):
    begin(mine)
    mine.c.insert_many(documents(10))
    other = connect()[db.name]
    begin(other)
    other.c.insert_many(documents(20))
    db.d.insert_one({"_id": 1})
    assert db.c.find_one() is None and db.d.count_documents({}) == 1
    commit(other)
    refused(mine.command, "commitLoad", code=48)
    assert db.c.count_documents({}) == 20
    refused(mine.command, {"beginLoad": 1, "ns": "c"}, code=48)
    begin(mine, "e")
    db.e.insert_one({"_id": "of another"})
    mine.e.insert_one({"_id": 1})
    refused(mine.command, "commitLoad", code=48)
    assert [one["_id"] for one in db.e.find()] == ["of another"]
    # In transactions it is a conflict, which drivers know how to repeat.
    mine.command("beginTransaction")
    begin(mine, "f")
    mine.f.insert_one({"_id": 1})
    commit(mine)
    db.f.insert_one({"_id": "of another"})
    told = refused(mine.command, "commitTransaction", code=112)
    assert told.has_error_label("TransientTransactionError")
    assert [one["_id"] for one in db.f.find()] == ["of another"]


def test_other_requests_of_the_connection_are_refused_meanwhile(mine, db):
    db.d.insert_one({"_id": 1})
    for transaction in (False, True):
        if transaction:
            mine.command("beginTransaction")
        begin(mine)
        mine.c.insert_one({"_id": 1})
        for command in ({"find": "c"}, {"find": "d"}, {"count": "d"}, {"aggregate": "d", "pipeline": [], "cursor": {}}, {"distinct": "d", "key": "a"},
                        {"getMore": Int64(5), "collection": "d"}, {"update": "c", "updates": [{"q": {}, "u": {"x": 1}}]},
                        {"delete": "c", "deletes": [{"q": {}, "limit": 0}]}, {"findAndModify": "c", "query": {}, "remove": True},
                        {"insert": "d", "documents": [{}]}, {"create": "e"}, {"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x"}]},
                        {"drop": "d"}, {"dropDatabase": 1}, {"collMod": "d"}, {"beginTransaction": 1}, {"beginLoad": 1, "ns": "e"}):
            refused(mine.command, command, code=117)
        for command in ("ping", "hello", "buildInfo", "dbStats", "listCollections", "serverStatus"):
            mine.command(command)
        mine.client.admin.command("currentOp")
        mine.c.insert_one({"_id": 2})
        commit(mine)
        if transaction:
            mine.command("commitTransaction")
        assert sorted(one["_id"] for one in db.c.find()) == [1, 2]
        db.c.drop()
    assert [one["_id"] for one in db.d.find()] == [1]


def test_wrong_requests_are_refused(mine, connect, db):
    refused(mine.command, "commitLoad", code=125)
    refused(mine.command, "abortLoad", code=125)
    db.there.insert_one({})
    for arguments, code in (
            ({}, 40414), ({"ns": None}, 40414), ({"ns": 1}, 14), ({"ns": ""}, 73), ({"ns": "a$b"}, 73), ({"ns": "system.x"}, 73), ({"ns": "x" * 300}, 73),
            ({"ns": "c", "bogus": 1}, 40415), ({"ns": "c", "indexes": 5}, 14), ({"ns": "c", "indexes": [5]}, 14), ({"ns": "c", "indexes": [{}]}, 9),
            ({"ns": "c", "indexes": [{"key": {"a": 1}, "name": "a", "bogus": 1}]}, 197), ({"ns": "c", "indexes": [{"key": {"a": "x"}, "name": "a"}]}, 67),
            ({"ns": "c", "indexes": [{"key": {"a": 1}, "name": "a"}] * 2}, 68),
            ({"ns": "c", "indexes": [{"key": {"a": 1}, "name": "a"}, {"key": {"b": 1}, "name": "a"}]}, 86),
            ({"ns": "c", "indexes": [{"key": {f"f{n}": 1}, "name": f"f{n}"} for n in range(64)]}, 67),
            ({"ns": "c", "options": 3}, 14), ({"ns": "c", "options": {"bogus": 1}}, 40415), ({"ns": "c", "options": {"capped": True, "size": 1}}, 16999),
            ({"ns": "c", "options": {"validator": {"x": 1}}}, 115), ({"ns": "there"}, 48)):
        refused(mine.command, {"beginLoad": 1, **arguments}, code=code)
        refused(mine.command, "commitLoad", code=125)
    begin(mine)
    refused(mine.command, {"commitLoad": 1, "bogus": 1}, code=40415)
    refused(mine.command, {"abortLoad": 1, "bogus": 1}, code=40415)
    refused(mine.command, {"insert": "c", "documents": [{"_id": 1}], "txnNumber": Int64(1)}, code=72)
    mine.command("insert", "c", documents=[{"_id": 1}])
    commit(mine)
    assert db.c.count_documents({}) == 1
    with connect().start_session() as session:
        session.start_transaction()
        told = refused(session.client[db.name].command, {"beginLoad": 1, "ns": "d"}, session=session, code=263)
        assert "belongs to a connection" in str(told)
    mine.command("beginTransaction")
    refused(mine.client.config.command, {"beginLoad": 1, "ns": "c"}, code=263)
    mine.command("rollbackTransaction")


def test_documents_that_cannot_be_stored_are_told_one_by_one(mine, db):
    mine.command({"beginLoad": 1, "ns": "c", "indexes": [{"key": {"a": 1, "b": 1}, "name": "ab"}]})
    parallel, wrong = {"_id": 2, "a": [1, 2], "b": [1, 2]}, {"_id": [1]}
    with pytest.raises(BulkWriteError) as told:
        mine.c.insert_many([{"_id": 1}, parallel, {"_id": 3}])
    assert [(one["index"], one["code"]) for one in told.value.details["writeErrors"]] == [(1, 171)] and told.value.details["nInserted"] == 1
    with pytest.raises(BulkWriteError) as told:
        mine.c.insert_many([wrong, {"_id": 4}, parallel, {"_id": 5}], ordered=False)
    assert [(one["index"], one["code"]) for one in told.value.details["writeErrors"]] == [(0, 53), (2, 171)]
    commit(mine)
    assert [one["_id"] for one in db.c.find()] == [1, 4, 5]
    # In a transaction the first one ends it.
    mine.command("beginTransaction")
    begin(mine, "d")
    with pytest.raises(BulkWriteError):
        mine.d.insert_many([{"_id": 1}, wrong])
    refused(mine.d.insert_one, {"_id": 3}, code=251)
    refused(mine.command, "commitTransaction", code=251)
    mine.d.insert_one({"_id": 4})
    assert [one["_id"] for one in db.d.find()] == [4]


def running_commit(client, database):
    """The listed commitLoad of a database, once it writes."""
    while True:
        for found in client.admin.aggregate([{"$currentOp": {}}, {"$match": {"ns": f"{database}.c", "command.commitLoad": 1}}]):
            if "progress" in found:
                return found


def test_a_commit_is_listed_with_its_progress_and_killed(mine, db, client):
    # On a busy machine a commit may end between the look at it and the kill.
    for _ in range(4):
        found, told = killed_commit(mine, db, client)
        assert found["progress"]["total"] == 80_000 and 0 <= found["progress"]["done"] <= 80_000, found
        assert found["msg"].startswith("load: ") and found["op"] == "command"
        assert db.list_collection_names() == [] and is_released(client)
        # The duplicate is found by the last index.
        if told.code != 11000:
            break
    assert told.code == 11601, told
    refused(mine.command, "commitLoad", code=125)


def killed_commit(mine, db, client):
    """A commit as currentOp has listed it, and the error with which it ended after it was to be killed."""
    begin(mine)
    for _ in range(8):
        mine.c.insert_many([{"a": n % 13, "u": None} for n in range(10_000)])
    told = []

    def run():
        try:
            told.append(mine.command("commitLoad"))
        except OperationFailure as error:
            told.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    found = running_commit(client, db.name)
    client.admin.command("killOp", op=found["opid"])
    thread.join()
    return found, told[0]


def test_a_time_limit_ends_the_load(mine, db, client):
    begin(mine)
    mine.c.insert_many([{"u": n} for n in range(30_000)])
    refused(mine.command, {"commitLoad": 1, "maxTimeMS": 1}, code=50)
    assert db.list_collection_names() == [] and is_released(client)
    # An insert that was interrupted ends it, and the rest does not become a collection.
    begin(mine)
    refused(mine.command, {"insert": "c", "documents": [{"u": n, "x": "x" * 100} for n in range(40_000)], "maxTimeMS": 1}, code=50)
    refused(mine.c.insert_one, {"_id": 1}, code=96)
    assert is_released(client)
    refused(mine.command, "commitLoad", code=96)
    mine.c.insert_one({"_id": 1})
    assert db.c.count_documents({}) == 1


def test_the_profiler_and_the_counters_know_it(mine, db, client):
    db.command("profile", 2)
    before = client.admin.command("serverStatus")
    begin(mine)
    mine.c.insert_many(documents(10))
    commit(mine)
    after = client.admin.command("serverStatus")
    db.command("profile", 0)
    assert after["opcounters"]["insert"] - before["opcounters"]["insert"] >= 10
    assert after["metrics"]["commands"]["commitLoad"]["total"] == before["metrics"]["commands"]["commitLoad"]["total"] + 1
    profiled = [next(iter(one["command"])) for one in db["system.profile"].find({"op": {"$ne": "query"}})]
    assert [name for name in profiled if name in ("beginLoad", "insert", "commitLoad")] == ["beginLoad", "insert", "commitLoad"], profiled


@pytest.fixture
def own(tmp_path):
    """A server of little memory for queries."""
    server = Server(tmp_path / "data", "--cache", "64MB", "--query-memory", "1MiB").start()
    yield server
    if server.is_running():
        assert server.stop() == 0, server.log()
    assert "panic" not in server.whole_log()


def scratch_files(server):
    folder = server.folder / "scratch"
    return list(folder.iterdir()) if folder.exists() else []


def test_a_load_larger_than_the_memory_of_queries_spills(own):
    made = documents(20_000, "x" * 300)
    with own.client(maxPoolSize=1, retryWrites=False) as client, own.client() as other:
        begin(client.t)
        for at in range(0, len(made), 2_000):
            client.t.c.insert_many(made[at:at + 2_000])
        figures = other.admin.command("serverStatus")["pando"]["queryMemory"]
        # The least that each of four sorters gets, and half of the budget.
        assert figures["spills"] > 5 and figures["heldBytes"] <= 1 << 20 and figures["scratchFiles"] >= 1, figures
        commit(client.t)
        assert other.admin.command("serverStatus")["pando"]["queryMemory"]["peakBytes"] <= 2 << 20
        assert is_released(other) and scratch_files(own) == []
        assert_equal_to_inserts(other.t, other.t.c, made)


def test_a_killed_server_has_nothing_of_an_open_load_and_all_of_a_committed_one(own):
    made = documents(5_000, "x" * 100)
    with own.client(maxPoolSize=1, retryWrites=False) as client:
        begin(client.t)
        client.t.c.insert_many(made)
        client.t.command("commitLoad", writeConcern={"w": 1, "j": True})
        begin(client.t, "open")
        client.t.open.insert_many(made)
        with own.client(maxPoolSize=1, retryWrites=False) as bound:
            bound.t.command("beginTransaction")
            begin(bound.t, "bound")
            bound.t.bound.insert_many(made)
            commit(bound.t)
            own.kill()
    own.start()
    with own.client() as client:
        assert client.t.list_collection_names() == ["c"] and scratch_files(own) == []
        assert client.t.c.count_documents({}) == client.t.command("count", "c")["n"] == 5_000
        assert client.t.command("validate", "c", full=True)["valid"]
        assert is_released(client)
    # The trees that the killed server has left went at the start.
    dropped = own.whole_log().count("dropping a tree that no collection refers to")
    assert own.stop() == 0
    own.start()
    assert own.whole_log().count("dropping a tree that no collection refers to") == dropped > 0


def test_a_server_killed_in_the_midst_of_a_commit_has_all_or_nothing(own):
    made = documents(20_000)
    for pause in (0.0, 0.01, 0.03, 0.06, 0.1, 0.2):
        with own.client(maxPoolSize=1, retryWrites=False) as client:
            client.t.c.drop()
            begin(client.t)
            client.t.c.insert_many(made)
            killer = threading.Timer(pause, own.kill)
            killer.start()
            try:
                client.t.command("commitLoad")
            except (AutoReconnect, OperationFailure):
                pass
            killer.join()
        own.start()
        with own.client() as client:
            if client.t.list_collection_names():
                assert client.t.command("count", "c")["n"] == client.t.c.count_documents({}) == len(made)
                assert client.t.command("validate", "c", full=True)["valid"]
            assert is_released(client) and scratch_files(own) == []


def test_a_server_that_stops_ends_an_open_load(own):
    with own.client(maxPoolSize=1, retryWrites=False) as client:
        begin(client.t)
        client.t.c.insert_many(documents(1_000))
        assert own.terminate() == 0
    # Tests may run as root, of which the server warns.
    warnings = [line for line in own.whole_log().splitlines() if "WARN" in line and "runs as root" not in line]
    assert warnings == []
    own.start()
    with own.client() as client:
        assert client.t.list_collection_names() == []
