"""`getParameter` and `setParameter`: the values that MongoDB takes and refuses, and the effect of each parameter."""

import time

import pytest
from bson.decimal128 import Decimal128
from pymongo import MongoClient
from pymongo.errors import OperationFailure

from server import Server


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("parameters") / "data", engine="memory").start()
    yield server
    assert server.stop() == 0, server.log()


@pytest.fixture
def admin(own):
    with own.client() as client:
        yield client.admin
        client.admin.command("setParameter", 1, logComponentVerbosity={"verbosity": 0, "network": -1, "storage": -1, "query": -1},
            cursorTimeoutMillis=600_000, notablescan=False, transactionLifetimeLimitSeconds=60)


def value(admin, name):
    return admin.command("getParameter", 1, **{name: 1})[name]


def refusal(call, *arguments, **fields):
    with pytest.raises(OperationFailure) as refused:
        call(*arguments, **fields)
    return refused.value.code, refused.value.details["errmsg"]


def test_the_level_of_the_log_takes_the_values_that_mongodb_takes(admin):
    for given, kept in ((3, 3), (100, 5), (1.7, 1), (-0.5, 0), (Decimal128("1.9"), 2)):
        admin.command("setParameter", 1, logLevel=given)
        # MongoDB rounds a decimal, and cuts a double.
        assert value(admin, "logLevel") in (kept, int(float(str(given)))), given
    for wrong, shown in ((-1, "-1"), ("a", '"a"'), (True, "true"), (None, "null")):
        assert refusal(admin.command, "setParameter", 1, logLevel=wrong) == (2, f"Invalid value for logLevel: logLevel: {shown}")


def test_the_level_of_the_log_decides_what_is_logged(own, admin):
    def connect():
        with MongoClient(own.uri) as other:
            other.admin.command("ping")
        return own.whole_log().count("connection accepted")

    before = connect()
    assert connect() == before, "not at level 0"
    assert admin.command("setParameter", 1, logLevel=1)["was"] == 0
    deadline = time.monotonic() + 20
    while connect() == before:
        assert time.monotonic() < deadline, own.log()
    assert any('"s":"D1"' in line and "connection accepted" in line for line in admin.command("getLog", "global")["log"])
    admin.command("setParameter", 1, logComponentVerbosity={"network": {"verbosity": 0}})
    quiet = connect()
    assert connect() == quiet, "the network has a level of its own"
    admin.command("setParameter", 1, logLevel=0, logComponentVerbosity={"network": 1})
    assert connect() > quiet


def test_components_of_the_log_have_levels_of_their_own(admin):
    admin.command("setParameter", 1, logComponentVerbosity={"storage": {"journal": {"verbosity": 2}, "verbosity": 1.5}, "query": 9})
    shown = value(admin, "logComponentVerbosity")
    assert (shown["storage"]["verbosity"], shown["storage"]["journal"]["verbosity"], shown["query"]["verbosity"]) == (1, 2, 5)
    assert (shown["verbosity"], shown["storage"]["wt"]["wtHS"]["verbosity"]) == (0, -1)
    assert refusal(admin.command, "setParameter", 1, logComponentVerbosity=5)[0] == 14
    for wrong in ({"nope": 1}, {"query": "x"}, {"query": {"verbosity": "x"}}):
        assert refusal(admin.command, "setParameter", 1, logComponentVerbosity=wrong)[0] == 2
    admin.command("setParameter", 1, logComponentVerbosity={"storage": {"journal": -1, "verbosity": -1}})


def test_an_unused_cursor_ends_after_its_time(admin):
    db = admin.client.cursors
    db.c.insert_many([{"_id": i} for i in range(10)])
    for given, kept in ((1.5, 1), (True, 1), (-5, -5), (600_000, 600_000)):
        admin.command("setParameter", 1, cursorTimeoutMillis=given)
        assert value(admin, "cursorTimeoutMillis") == kept
    assert refusal(admin.command, "setParameter", 1, cursorTimeoutMillis="x") == (
        2, "Failed validating cursorTimeoutMillis: Unable to coerce value to integral type")
    assert "Out of bounds" in refusal(admin.command, "setParameter", 1, cursorTimeoutMillis=1e300)[1]
    cursor = db.c.find().batch_size(2)
    next(cursor)
    admin.command("setParameter", 1, cursorTimeoutMillis=100)
    deadline = time.monotonic() + 30
    while admin.command("serverStatus")["metrics"]["cursor"]["open"]["total"]:
        assert time.monotonic() < deadline, "it is there still"
        time.sleep(0.1)
    with pytest.raises(OperationFailure) as gone:
        list(cursor)
    assert gone.value.code == 43


def test_a_search_without_an_index_is_refused_where_the_parameter_says_so(admin):
    db = admin.client.scans
    db.c.drop()
    db.c.insert_many([{"_id": i, "a": i, "b": i} for i in range(5)])
    db.c.create_index("a")
    assert admin.command("setParameter", 1, notablescan="x")["was"] is False and value(admin, "notablescan") is True
    refused = [
        lambda: list(db.c.find({"b": 1})), lambda: db.c.count_documents({"b": 1}), lambda: db.command("count", "c", query={"b": 1}),
        lambda: db.c.update_one({"b": 1}, {"$set": {"c": 1}}), lambda: db.c.delete_many({"b": 1}), lambda: db.c.distinct("b", {"b": 1}),
        lambda: db.c.find_one_and_update({"b": 1}, {"$set": {"c": 1}}), lambda: list(db.c.aggregate([{"$match": {"b": 1}}])),
        lambda: list(db.c.find({"$or": [{"a": 1}, {"b": 1}]})), lambda: list(db.c.find({"b": 1}).hint([("$natural", 1)])),
        lambda: db.command("explain", {"find": "c", "filter": {"b": 1}}),
    ]
    for call in refused:
        code, message = refusal(call)
        assert code == 291 and "error processing query: ns=scans.c" in message and "notablescan" in message, message
    assert db.c.count_documents({}) == 5 and len(list(db.c.find().sort("b", 1))) == 5
    assert len(list(db.c.find({"a": 1}))) == len(list(db.c.find({"_id": 1}))) == 1
    assert list(db.nothing.find({"x": 1})) == list(admin.client.config.system.sessions.find({"x": 1})) == []
    assert db.c.update_many({}, {"$set": {"c": 1}}).modified_count == 5
    admin.command("setParameter", 1, notablescan=None)
    assert len(list(db.c.find({"b": 1}))) == 1


def test_the_details_of_a_parameter_tell_when_it_can_be_set(admin):
    shown = admin.command({"getParameter": {"showDetails": True}, "logLevel": 1, "enableTestCommands": 1, "authSchemaVersion": 1})
    details = {name: (shown[name]["value"], shown[name]["settableAtRuntime"], shown[name]["settableAtStartup"])
        for name in ("logLevel", "enableTestCommands", "authSchemaVersion")}
    assert details == {"logLevel": (0, True, True), "enableTestCommands": (False, False, True), "authSchemaVersion": (5, False, False)}
    every = admin.command({"getParameter": {"showDetails": True, "allParameters": True}})
    assert every["notablescan"]["value"] is False
    names = [name for name in every if name != "ok" and not name.startswith(("$", "operationTime"))]
    assert names == sorted(names)
    assert refusal(admin.command, {"getParameter": {"showDetails": "x"}, "logLevel": 1})[0] == 14
    assert refusal(admin.command, {"getParameter": {"x": 1}, "logLevel": 1})[0] == 40415


def test_of_several_changes_all_are_made_or_none(admin):
    assert refusal(admin.command, "setParameter", 1, logLevel=1, ttlMonitorSleepSecs="x")[0] == 2
    assert value(admin, "logLevel") == 0
    # The value before is that of the first by its name.
    assert admin.command("setParameter", 1, logLevel=1, cursorTimeoutMillis=5000)["was"] == 600_000
    assert admin.command("setParameter", 1, transactionLifetimeLimitSeconds=2.7)["was"] == 60
    assert value(admin, "transactionLifetimeLimitSeconds") == 2
    for wrong in ({"nope": 1}, {}, {"enableTestCommands": True}):
        assert refusal(admin.command, {"setParameter": 1, **wrong})[0] is None


def test_questions_about_a_cluster_are_answered_as_by_a_server_without_one(admin):
    replies = {name: admin.command(name) for name in ("features", "shardingState", "lockInfo", "connPoolStats")}
    assert replies["features"]["js"] == {"utf8": True} and replies["features"]["oidMachine"] >= 0
    assert replies["shardingState"]["enabled"] is False and replies["lockInfo"]["lockInfo"] == []
    pools = {name: count for name, count in replies["connPoolStats"].items() if name not in ("ok", "$clusterTime", "operationTime")}
    assert pools == dict(numClientConnections=0, numAScopedConnections=0, totalInUse=0, totalAvailable=0, totalLeased=0, totalCreated=0,
        totalRefreshing=0, totalRefreshed=0, pools={}, hosts={}, numReplicaSetMonitorsCreated=0, replicaSets={})
    assert refusal(admin.command, "getShardMap") == (203, "Sharding is not enabled")
    assert admin.command("replSetGetRBID")["rbid"] == 1


def test_a_standalone_server_has_no_number_of_rollbacks(tmp_path):
    server = Server(tmp_path / "data", "--persona", "standalone", engine="memory").start()
    with server.client() as client:
        assert refusal(client.admin.command, "replSetGetRBID") == (76, "not running with --replSet")
    assert server.stop() == 0
