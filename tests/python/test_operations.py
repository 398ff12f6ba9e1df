"""Operations under way: they are listed, and end when they are told to, with the right code and at once.

The table of long operations is the core: each is ended by its time limit, by `killOp`, and by the end of its client. It has to end within
a tenth of a second, counted from the moment at which it should. The machine of a test may be busy, so the quickest of a few tries counts.
"""

import json
import random
import socket
import struct
import threading
import time

import bson
import pytest
from bson import Int64
from pymongo import MongoClient
from pymongo.errors import OperationFailure

from operation_ends import Background, answer, every_way, is_over, quickest_end, running, wait_for
from server import Server

pytestmark = pytest.mark.needs("one server")

DOCUMENTS = 40_000
ENDS_WITHIN_S = 0.1
TRIES = 4


def size_of_range(numbers):
    """An expression that makes a list of so many numbers for each document. It is no constant, which would be computed once."""
    return {"$size": {"$range": [0, {"$add": [{"$mod": ["$_id", 7]}, numbers]}]}}


# Every document takes some ten microseconds, and none matches.
NEVER = {"$expr": {"$gt": [size_of_range(400), 1000]}}

LONG = {
    "scan": {"find": "a", "filter": NEVER},
    "sort": {"find": "a", "filter": {"$or": [NEVER, {"_id": {"$gte": 0}}]}, "sort": {"s": 1, "b": 1}},
    "count": {"count": "a", "query": NEVER},
    "distinct": {"distinct": "a", "key": "b", "query": NEVER},
    "group": {"aggregate": "a", "pipeline": [{"$group": {"_id": "$b", "n": {"$sum": size_of_range(400)}}}], "cursor": {}},
    "lookup": {"aggregate": "a", "pipeline": [{"$lookup": {"from": "b", "localField": "b", "foreignField": "b", "as": "x"}}, {"$match": {"x": 1}}],
               "cursor": {}},
    "unwind": {"aggregate": "a", "pipeline": [{"$set": {"r": {"$range": [0, {"$add": [100, {"$mod": ["$_id", 7]}]}]}}}, {"$unwind": "$r"}, {"$match": {"r": -1}}], "cursor": {}},
    "facet": {"aggregate": "a", "pipeline": [{"$facet": {"x": [{"$match": NEVER}], "y": [{"$sort": {"b": 1}}, {"$limit": 1}]}}], "cursor": {}},
    "update": {"update": "a", "updates": [{"q": {}, "u": [{"$set": {"z": size_of_range(400)}}], "multi": True}]},
    "delete": {"delete": "a", "deletes": [{"q": NEVER, "limit": 0}]},
    "findAndModify": {"findAndModify": "a", "query": NEVER, "remove": True},
    "index": {"createIndexes": "a", "indexes": [{"key": {"t": 1, field: 1}, "name": f"long_{field}"} for field in "bsuvwx"]},
    "validate": {"validate": "a", "full": True},
    "explain": {"explain": {"find": "a", "filter": NEVER}, "verbosity": "executionStats"},
    # One document each, within which an expression or a stage works for long.
    "map": {"aggregate": "wide", "pipeline": [{"$set": {"r": {"$size": {"$map": {"input": "$r", "as": "x", "in": {
        "$size": {"$map": {"input": "$r", "as": "y", "in": {"$add": ["$$x", "$$y"]}}}}}}}}}], "cursor": {}},
    "reduce": {"aggregate": "wide", "pipeline": [{"$match": {"$expr": {"$lt": [{"$reduce": {"input": "$r", "initialValue": 0, "in": {
        "$add": ["$$value", {"$size": {"$range": [0, {"$add": ["$$this", 4000]}]}}]}}}, 0]}}}], "cursor": {}},
    "reduce in a find": {"find": "wide", "filter": {"$expr": {"$lt": [{"$reduce": {"input": "$r", "initialValue": 0, "in": {
        "$add": ["$$value", {"$size": {"$range": [0, {"$add": ["$$this", 4000]}]}}]}}}, 0]}}},
    "unwinds": {"aggregate": "wide", "pipeline": [{"$unwind": "$a"}, {"$unwind": "$b"}, {"$unwind": "$c"}, {"$match": {"c": -1}}], "cursor": {}},
    "groups given": {"aggregate": "a", "pipeline": [
        {"$group": {"_id": "$_id"}}, {"$lookup": {"from": "b", "localField": "_id", "foreignField": "b", "as": "x"}}, {"$match": {"x": 1}}], "cursor": {}},
}


@pytest.fixture(scope="module")
def long_client(server):
    with server.client(appname="long tests", retryReads=False, retryWrites=False) as client:
        db = client.long
        for name in ("a", "b"):
            db[name].insert_many(
                [{"_id": i, "b": (i * 7919) % DOCUMENTS, "t": list(range(i, i + 12)), "s": f"{i:040}", "u": i % 7} for i in range(DOCUMENTS)])
        db.a.create_index("t")
        db.wide.insert_one({"_id": 1, "r": list(range(20_000)), **{name: list(range(1000)) for name in "abc"}})
        yield client
        client.drop_database("long")


@every_way
@pytest.mark.parametrize("name", LONG)
def test_a_long_operation_ends_at_once_when_it_has_to(long_client, name, end):
    def serves_on():
        is_over(long_client)
        assert long_client.long.command("ping")["ok"] == 1
        assert long_client.long.a.find_one({"_id": 7})["_id"] == 7

    quickest = quickest_end(TRIES, lambda: end(long_client, LONG[name]), ENDS_WITHIN_S, serves_on)
    print(f"{name} {end.__name__}: {quickest * 1000:.0f} ms")
    assert quickest < ENDS_WITHIN_S
    names = {index["name"] for index in long_client.long.a.list_indexes()}
    assert names == {"_id_", "t_1"}, "an interrupted build leaves no index"


def test_an_operation_is_listed_with_its_client_its_command_and_its_plan(long_client):
    background = Background(long_client.long, {"find": "a", "filter": {"t": {"$gte": 0}, **NEVER}, "hint": "t_1", "comment": "who"})
    [operation] = wait_for(lambda: [found for found in running(long_client) if found.get("planSummary") and found["docsExamined"] > 0])
    assert operation["type"] == "op" and operation["active"] is True
    assert operation["op"] == "query" and operation["ns"] == "long.a"
    assert operation["command"]["comment"] == "who" and operation["command"]["$db"] == "long"
    assert operation["planSummary"] == "IXSCAN { t: 1 }"
    assert operation["appName"] == "long tests" and operation["clientMetadata"]["driver"]["name"].startswith("PyMongo")
    assert operation["client"].startswith("127.0.0.1:") and operation["lsid"]["id"]
    assert operation["microsecs_running"] > 0 and operation["keysExamined"] > 0
    by_command = long_client.admin.command("currentOp", ns="long.a")["inprog"]
    assert [found["opid"] for found in by_command] == [operation["opid"]]
    assert long_client.admin.command("currentOp", ns="long.other")["inprog"] == []
    counted = list(long_client.admin.aggregate([{"$currentOp": {}}, {"$match": {"ns": "long.a"}}, {"$count": "n"}]))
    assert counted == [{"n": 1}]
    idle = list(long_client.admin.aggregate([{"$currentOp": {"idleConnections": True, "allUsers": True, "localOps": True}}]))
    assert any(found["active"] is False and "opid" not in found for found in idle)
    long_client.admin.command("killOp", op=operation["opid"])
    background.join()
    assert background.code == 11601


def test_a_long_command_is_cut_and_documents_to_insert_are_not_listed(long_client):
    background = Background(long_client.long, {"find": "a", "filter": {"$or": [NEVER, {"s": {"$in": ["x" * 50] * 100}}]}, "comment": "long"})
    [operation] = wait_for(lambda: running(long_client))
    assert operation["command"]["$truncated"].startswith('{ find: "a", filter: { $or: [') and operation["command"]["comment"] == "long"
    long_client.admin.command("killOp", op=operation["opid"])
    background.join()


def test_a_cursor_serves_the_session_that_has_opened_it(long_client):
    db = long_client.long
    get_more = lambda cursor, **options: db.command({"getMore": Int64(cursor), "collection": "a", "batchSize": 1}, **options)
    with long_client.start_session() as session, long_client.start_session() as other:
        cursor = db.command({"find": "a", "batchSize": 2}, session=session)["cursor"]["id"]
        with pytest.raises(OperationFailure) as refused:
            get_more(cursor, session=other)
        assert refused.value.code == 50738, refused.value
        assert get_more(cursor, session=session)["ok"] == 1, "a refused request does no harm to the cursor"
        host, port = long_client.address
        with socket.create_connection((host, port)) as connection:
            lsid = lambda name: {"lsid": {"id": session.session_id["id"]}} if name else {}
            for opened, asked, code in [(None, None, None), ("a", None, 50737), (None, "a", 50736), ("a", "a", None)]:
                cursor = answer(connection, "long", {"find": "a", "batchSize": 2, **lsid(opened)})["cursor"]["id"]
                found = answer(connection, "long", {"getMore": Int64(cursor), "collection": "a", "batchSize": 1, **lsid(asked)})
                assert found.get("code") == code, found


def test_the_rest_of_a_time_limit_goes_over_to_get_more(long_client):
    db = long_client.long
    first = db.command({"find": "a", "batchSize": 2, "maxTimeMS": 10_000})["cursor"]
    with pytest.raises(OperationFailure) as refused:
        db.command({"getMore": Int64(first["id"]), "collection": "a", "maxTimeMS": 10})
    assert refused.value.code == 2
    assert len(db.command({"getMore": Int64(first["id"]), "collection": "a", "batchSize": 3})["cursor"]["nextBatch"]) == 3
    first = db.command({"find": "a", "filter": {"$or": [{"_id": {"$lt": 2}}, NEVER]}, "batchSize": 2, "maxTimeMS": 100, "hint": {"$natural": 1}})["cursor"]
    time.sleep(0.2)  # The time between two requests does not count.
    began = time.monotonic()
    with pytest.raises(OperationFailure) as refused:
        db.command({"getMore": Int64(first["id"]), "collection": "a"})
    assert refused.value.code == 50 and time.monotonic() - began < 5
    with pytest.raises(OperationFailure) as refused:
        db.command({"getMore": Int64(first["id"]), "collection": "a"})
    assert refused.value.code == 43


def test_killing_a_cursor_ends_the_get_more_that_works_on_it(long_client):
    db = long_client.long
    slow_rest = {"$or": [{"_id": {"$lt": 2}}, NEVER]}
    first = db.command({"find": "a", "filter": slow_rest, "batchSize": 2, "hint": {"$natural": 1}})["cursor"]
    idle = list(long_client.admin.aggregate([{"$currentOp": {"idleCursors": True}}, {"$match": {"type": "idleCursor"}}]))
    [idle] = [found for found in idle if found["cursor"]["cursorId"] == first["id"]]
    assert idle["cursor"]["nDocsReturned"] == 2 and idle["planSummary"] == "COLLSCAN"
    background = Background(db, {"getMore": Int64(first["id"]), "collection": "a"})
    # The operation is listed before it has found its cursor.
    [operation] = wait_for(lambda: running(long_client, op="getmore", cursor={"$exists": True}))
    assert operation["cursor"]["cursorId"] == first["id"] and operation["cursor"]["originatingCommand"]["find"] == "a"
    killed = db.command("killCursors", "a", cursors=[Int64(first["id"])])
    assert killed["cursorsKilled"] == [first["id"]]
    background.join()
    assert background.code == 237, background.error
    with pytest.raises(OperationFailure) as refused:
        db.command({"getMore": Int64(first["id"]), "collection": "a"})
    assert refused.value.code == 43


@pytest.mark.parametrize("command", [{"find": "d", "filter": NEVER}, {"count": "d", "query": NEVER},
                                     {"aggregate": "d", "pipeline": [{"$match": NEVER}], "cursor": {}}], ids=lambda command: next(iter(command)))
def test_a_dropped_collection_ends_its_readers_and_their_cursors(long_client, command):
    db = long_client.long
    db.d.insert_many([{"_id": i} for i in range(DOCUMENTS)])
    first = db.command({"find": "d", "batchSize": 2})["cursor"]
    background = Background(db, command)
    wait_for(lambda: running(long_client, ns="long.d"))
    db.d.drop()
    background.join()
    assert background.code == 175 and "collection dropped. UUID" in background.error, background.error
    for code in (175, 43):
        with pytest.raises(OperationFailure) as refused:
            db.command({"getMore": Int64(first["id"]), "collection": "d"})
        assert refused.value.code == code, refused.value


def test_a_drop_does_not_wait_for_a_long_update(long_client):
    db = long_client.long
    db.d.insert_many([{"_id": i} for i in range(DOCUMENTS)])
    background = Background(db, {"update": "d", "updates": [{"q": {}, "u": [{"$set": {"z": size_of_range(4000)}}], "multi": True}]})
    wait_for(lambda: running(long_client, op="update"))
    began = time.monotonic()
    db.d.drop()
    took = time.monotonic() - began
    background.join()
    assert background.code == 0 and background.reply["writeErrors"][0]["code"] == 175, background.reply
    assert took < 2, took


def test_sessions_end_with_their_operations_and_cursors(long_client):
    db = long_client.long
    with long_client.start_session() as session, long_client.start_session() as other:
        cursors = [db.command({"find": "a", "batchSize": 2}, session=each)["cursor"]["id"] for each in (session, other)]
        results = {}

        def scan():
            try:
                db.command({"find": "a", "filter": NEVER}, session=session)
            except OperationFailure as error:
                results["code"] = error.code

        thread = threading.Thread(target=scan)
        thread.start()
        wait_for(lambda: running(long_client, op="query"))
        long_client.admin.command("killSessions", [session.session_id])
        thread.join()
        assert results["code"] == 11601
        with pytest.raises(OperationFailure) as refused:
            db.command({"getMore": Int64(cursors[0]), "collection": "a"}, session=session)
        assert refused.value.code == 43
        assert db.command({"getMore": Int64(cursors[1]), "collection": "a", "batchSize": 1}, session=other)["ok"] == 1
        long_client.admin.command("killAllSessions", [])
        with pytest.raises(OperationFailure) as refused:
            db.command({"getMore": Int64(cursors[1]), "collection": "a"}, session=other)
        assert refused.value.code == 43


def test_an_unacknowledged_write_goes_on_when_its_client_is_gone(long_client):
    host, port = long_client.address
    db = long_client.long
    documents = [{"_id": i} for i in range(5000)]
    body = bson.encode({"insert": "left", "documents": documents, "writeConcern": {"w": 0}, "$db": "long"})
    with socket.create_connection((host, port)) as connection:
        connection.sendall(struct.pack("<iiii", 16 + 5 + len(body), 1, 0, 2013) + struct.pack("<iB", 2, 0) + body)
    wait_for(lambda: db.left.count_documents({}) == len(documents))
    db.left.drop()


def test_no_operation_is_left_in_the_table(long_client):
    is_over(long_client)
    status = long_client.admin.command("serverStatus")
    assert status["connections"]["current"] >= 1 and status["connections"]["active"] == 1, "the one that asks"


# ---- stopping


def test_a_server_that_is_told_to_stop_interrupts_long_operations(tmp_path):
    server = Server(tmp_path / "data").start()
    with server.client(retryReads=False) as client, MongoClient(server.uri) as watcher:
        db = client.long
        db.a.insert_many([{"_id": i} for i in range(DOCUMENTS)])
        background = Background(db, {"aggregate": "a", "pipeline": [{"$set": {"r": {"$range": [0, {"$add": [3000, "$_id"]}]}}}, {"$unwind": "$r"}, {"$match": {"r": -1}}],
                                     "cursor": {}})
        wait_for(lambda: running(watcher))
        began = time.monotonic()
        assert server.terminate() == 0, server.log()
        assert time.monotonic() - began < 5
        background.join()
        # The driver looks for another server where it was told of the shutdown before it lost the connection.
        assert background.code in (11600, None), background.error


# ---- the profiler and the log of slow requests


def test_profiled_requests_stand_in_system_profile(client, db):
    db.c.insert_many([{"_id": i, "a": i % 5} for i in range(100)])
    db.c.create_index("a")
    assert db.command("profile", 2)["was"] == 0
    db.c.find_one({"_id": 3})
    list(db.c.find({"a": 3}).sort("b", 1).comment("sorted"))
    db.c.update_many({"a": 1}, {"$set": {"b": 1}})
    db.c.delete_many({"a": 4})
    db.c.insert_one({"_id": 1000})
    db.c.count_documents({"a": 2})
    with pytest.raises(OperationFailure):
        list(db.c.find({"$foo": 1}))
    assert db.command("profile", 0)["was"] == 2
    found = {(entry["op"], next(iter(entry["command"]))): entry for entry in db["system.profile"].find()}
    point = list(db["system.profile"].find({"planSummary": "IDHACK"}))
    assert len(point) == 1 and point[0]["keysExamined"] == 1 and point[0]["nreturned"] == 1 and point[0]["millis"] >= 0
    [ordered] = db["system.profile"].find({"command.comment": "sorted"})
    assert ordered["planSummary"] == "IXSCAN { a: 1 }" and ordered["hasSortStage"] is True and ordered["nreturned"] == 20
    update = found["update", "q"]
    assert update["command"] == {"q": {"a": 1}, "u": {"$set": {"b": 1}}, "multi": True, "upsert": False}
    assert update["nMatched"] == update["nModified"] == 20 and update["ns"] == f"{db.name}.c"
    assert found["remove", "q"]["ndeleted"] == 20 and found["insert", "insert"]["ninserted"] == 1
    [failed] = db["system.profile"].find({"errCode": {"$exists": True}})
    assert failed["errName"] == "BadValue" and failed["ok"] == 0.0
    before = db["system.profile"].count_documents({})
    db.c.find_one({"_id": 3})
    assert db["system.profile"].count_documents({}) == before, "nothing is recorded any more"


def test_slow_requests_are_recorded_at_level_one_and_filters_decide(client, db):
    db.c.insert_many([{"_id": i} for i in range(40_000)])
    db.command("profile", 1, slowms=20)
    db.c.find_one({"_id": 1})
    list(db.c.find(NEVER))
    entries = list(db["system.profile"].find({"ns": f"{db.name}.c"}))
    assert [entry["planSummary"] for entry in entries] == ["COLLSCAN"] and entries[0]["docsExamined"] == 40_000
    db.command("profile", 1, filter={"command.comment": "wanted"})
    db.c.find_one({"_id": 1}, comment="wanted")
    assert db["system.profile"].count_documents({"command.comment": "wanted"}) == 1
    was = db.command("profile", 0, filter="unset", slowms=100)
    assert was["was"] == 1 and was["filter"] == {"command.comment": "wanted"} and "note" in was


def test_reads_of_the_device_are_counted(tmp_path):
    server = Server(tmp_path / "data", "--cache", "32MB").start()
    with server.client() as client:
        db = client.cold
        for begin in range(0, 60_000, 5000):
            db.c.insert_many([{"_id": i, "k": i * 7919 % 60_000, "s": random.randbytes(1000)} for i in range(begin, begin + 5000)])
        db.c.create_index("k")
        db.command("compact", "c")
        db.command("profile", 2)
        explained = db.command({"explain": {"find": "c", "filter": {"s": 1}}, "verbosity": "executionStats"})["executionStats"]
        list(db.c.find({"k": {"$lt": 3000}}, {"s": 1}))
        seen = []

        def watched(**command):
            background = Background(db, {"aggregate": "c", "cursor": {}, **command})
            while background.ended is None:
                seen.extend(client.admin.aggregate([{"$currentOp": {}}, {"$match": {"ns": "cold.c"}}]))
            background.join()

        def is_seen():
            has_read = any(operation.get("bytesRead", 0) > 0 and operation["pagesRead"] > 0 for operation in seen)
            return has_read and any(operation.get("waitingFor") == "device" for operation in seen)

        watched(pipeline=[{"$match": {"s": 1}}, {"$count": "n"}], comment="cold")
        deadline = time.monotonic() + 20
        # A scan may wait for no read, but fetches by an index in another order than the documents' do.
        while not is_seen() and time.monotonic() < deadline:
            watched(pipeline=[{"$match": {"k": {"$gte": 0}, "s": 1}}, {"$count": "n"}], hint="k")
        db.command("profile", 0)
        entries = list(db["system.profile"].find({"ns": "cold.c"}))
    assert server.stop() == 0
    data = 60_000 * 1000
    assert data / 2 < explained["storage"]["data"]["bytesRead"] < 4 * data, explained
    # Where the workers that read ahead are always ahead, the scan waits for no read.
    assert explained["storage"]["data"]["pagesRead"] > 500 and explained["storage"]["data"]["timeReadingMicros"] >= 0
    assert is_seen(), seen[:20]
    assert all(operation["waitingForLock"] is False for operation in seen if operation.get("waitingFor") == "device"), seen
    [scanned] = [entry for entry in entries if entry["command"].get("comment") == "cold"]
    assert data / 2 < scanned["storage"]["data"]["bytesRead"] < 4 * data, scanned
    fetched = [entry for entry in entries if entry.get("planSummary") == "IXSCAN { k: 1 }" and "aggregate" not in entry["command"]]
    assert sum(entry["storage"].get("data", {}).get("bytesRead", 0) for entry in fetched) > 1_000_000, fetched
    assert any(entry["storage"].get("data", {}).get("timeReadingMicros", 0) > 0 for entry in fetched), fetched


@pytest.fixture(scope="module")
def spilling(tmp_path_factory):
    """A collection that no stage can hold in the memory of queries, which is 1 MiB."""
    server = Server(tmp_path_factory.mktemp("explained") / "data", "--cache", "64MB", "--query-memory", "1MiB").start()
    with server.client() as client:
        db = client.spilling
        db.c.insert_many([{"_id": i, "k": i % 100, "s": f"{i * 7919 % 20_000:05}" * 40} for i in range(20_000)])
        db.d.insert_many([{"_id": i, "k": i % 50} for i in range(100)])
        db.d.create_index("k")
        yield client, db
    assert server.stop() == 0


def executed(db, command):
    return db.command({"explain": command, "verbosity": "executionStats"})


def executed_stages(db, pipeline, **options):
    """The stages behind the plan, by name; the last of a name counts."""
    stages = executed(db, {"aggregate": "c", "pipeline": pipeline, "cursor": {}, **options})["stages"]
    return {next(iter(stage)): stage for stage in stages}


def test_a_sort_that_spills_says_so(spilling):
    client, db = spilling
    stage = executed(db, {"find": "c", "sort": {"s": 1}})["executionStats"]["executionStages"]
    assert stage["stage"] == "SORT" and stage["usedDisk"] is True and stage["spills"] > 0 and stage["spilledBytes"] > 0, stage
    assert stage["totalDataSizeSorted"] > 20_000 * 200 and stage["nReturned"] == 20_000
    assert stage["inputStage"]["nReturned"] == stage["inputStage"]["docsExamined"] == 20_000
    client.admin.command("setParameter", 1, queryMemory="32MB")
    stage = executed(db, {"find": "c", "sort": {"s": 1}})["executionStats"]["executionStages"]
    assert stage["usedDisk"] is False and stage["spills"] == 0 and "spilledBytes" not in stage, stage
    client.admin.command("setParameter", 1, queryMemory="1MiB")


def test_stages_of_a_pipeline_tell_their_documents_their_memory_and_their_spills(spilling):
    client, db = spilling
    grouped = {"$group": {"_id": "$s", "n": {"$sum": 1}, "k": {"$push": "$k"}}}
    stages = executed_stages(db, [{"$match": {"_id": {"$lt": 15_000}}}, grouped, {"$sort": {"n": 1}}])
    cursor, group, sort = stages["$cursor"], stages["$group"], stages["$sort"]
    assert cursor["nReturned"] == cursor["$cursor"]["executionStats"]["nReturned"] == 15_000
    assert group["$group"] == grouped["$group"] and sort["$sort"] == {"sortKey": {"n": 1}}
    assert group["nReturned"] == sort["nReturned"] == 15_000 and group["totalOutputDataSizeBytes"] > 15_000 * 200
    assert sort["totalDataSizeSortedBytesEstimate"] == group["totalOutputDataSizeBytes"]
    for stage in group, sort:
        assert stage["usedDisk"] is True and stage["spills"] > 0 and stage["spilledBytes"] > 10_000, stage
        assert 0 < stage["maxTotalMemoryUsageBytes"] <= 2 << 20 and stage["executionTimeMillisEstimate"] >= 0, stage
    assert sort["executionTimeMillisEstimate"] >= group["executionTimeMillisEstimate"]
    few = executed_stages(db, [{"$set": {"z": 1}}, {"$group": {"_id": "$k"}}, {"$sort": {"_id": 1}}, {"$limit": 3}])
    assert "usedDisk" not in few["$set"] and few["$set"]["nReturned"] == 20_000
    assert few["$group"]["usedDisk"] is False and few["$group"]["spills"] == 0 and few["$group"]["nReturned"] == 100
    assert few["$sort"]["$sort"] == {"sortKey": {"_id": 1}, "limit": 3} and few["$limit"]["nReturned"] == 3
    counted = executed(db, {"aggregate": "c", "pipeline": [{"$sortByCount": "$k"}], "cursor": {}})["stages"]
    assert [next(iter(stage)) for stage in counted] == ["$cursor", "$group", "$sort"]
    assert counted[1]["$group"] == {"_id": "$k", "count": {"$sum": 1}}
    assert client.admin.command("serverStatus")["pando"]["queryMemory"]["heldBytes"] == 0


def test_facets_and_lookups_tell_what_they_did(spilling):
    _, db = spilling
    facet = executed_stages(db, [{"$facet": {
        "sorted": [{"$sort": {"s": 1}}], "few": [{"$group": {"_id": "$k"}}, {"$count": "n"}], "first": [{"$limit": 2}]}},
        {"$project": {"few": 1}}])["$facet"]
    assert facet["nReturned"] == 1
    inner = {name: {next(iter(stage)): stage for stage in stages} for name, stages in facet["$facet"].items()}
    assert inner["sorted"]["$sort"]["usedDisk"] is True and inner["sorted"]["$sort"]["spills"] > 0
    assert inner["few"]["$group"]["usedDisk"] is False and inner["few"]["$count"]["nReturned"] == 1
    assert inner["first"]["$limit"]["nReturned"] == 2
    lookup = [{"$match": {"_id": {"$lt": 10}}}, {"$lookup": {"from": "d", "localField": "k", "foreignField": "k", "as": "x"}}]
    by_index = executed_stages(db, lookup)["$lookup"]
    assert (by_index["totalDocsExamined"], by_index["collectionScans"], by_index["indexesUsed"]) == (20, 0, ["k_1"]), by_index
    assert by_index["totalKeysExamined"] >= 20 and by_index["nReturned"] == 10
    lookup[1]["$lookup"]["foreignField"] = "missing"
    by_scan = executed_stages(db, lookup)["$lookup"]
    assert (by_scan["totalDocsExamined"], by_scan["totalKeysExamined"], by_scan["collectionScans"]) == (200, 0, 2), by_scan
    assert by_scan["indexesUsed"] == []


def test_a_pipeline_without_disk_use_is_explained_with_its_error(spilling):
    client, db = spilling
    with pytest.raises(OperationFailure) as refused:
        executed_stages(db, [{"$group": {"_id": "$s"}}], allowDiskUse=False)
    assert refused.value.code == 292
    assert client.admin.command("serverStatus")["pando"]["queryMemory"]["heldBytes"] == 0


def test_the_stages_of_a_plan_tell_what_they_examined(db):
    db.c.insert_many([{"_id": i, "a": i % 10, "b": i} for i in range(1000)])
    db.c.create_index("a")

    def figures(command):
        """The stages from the outermost on, with the names and numbers of their figures."""
        stage, found = executed(db, command)["executionStats"]["executionStages"], []
        names = ("nReturned", "keysExamined", "docsExamined", "nCounted", "nSkipped", "nMatched", "nWouldModify", "nWouldUpsert", "nWouldDelete")
        while stage:
            found.append((stage["stage"], {name: stage[name] for name in names if name in stage}))
            stage = stage.get("inputStage")
        return found

    # As MongoDB tells.
    assert figures({"find": "c", "filter": {"a": 3, "b": {"$gte": 500}}}) == [
        ("FETCH", {"nReturned": 50, "docsExamined": 100}), ("IXSCAN", {"nReturned": 100, "keysExamined": 100})]
    assert figures({"find": "c", "filter": {"a": 3}, "sort": {"b": 1}, "limit": 5}) == [
        ("SORT", {"nReturned": 5}), ("FETCH", {"nReturned": 100, "docsExamined": 100}), ("IXSCAN", {"nReturned": 100, "keysExamined": 100})]
    assert figures({"find": "c", "filter": {"_id": 3}}) == [("IDHACK", {"nReturned": 1, "keysExamined": 1, "docsExamined": 1})]
    assert figures({"find": "c", "filter": {"b": {"$lt": 5}}}) == [("COLLSCAN", {"nReturned": 5, "docsExamined": 1000})]
    update = {"update": "c", "updates": [{"q": {"a": 3}, "u": {"$set": {"z": 1}}, "multi": True}]}
    assert figures(update)[0] == ("UPDATE", {"nReturned": 0, "nMatched": 100, "nWouldModify": 100, "nWouldUpsert": 0})
    upsert = {"update": "c", "updates": [{"q": {"a": 77}, "u": {"$set": {"z": 1}}, "upsert": True}]}
    assert figures(upsert)[0] == ("UPDATE", {"nReturned": 0, "nMatched": 0, "nWouldModify": 0, "nWouldUpsert": 1})
    delete = {"delete": "c", "deletes": [{"q": {"a": 3}, "limit": 0}]}
    assert figures(delete)[0] == ("DELETE", {"nReturned": 0, "nWouldDelete": 100})
    assert figures({"count": "c", "query": {"b": {"$lt": 50}}, "skip": 10}) == [
        ("COUNT", {"nReturned": 0, "nCounted": 40, "nSkipped": 10}), ("COLLSCAN", {"nReturned": 50, "docsExamined": 1000})]


def test_changes_tell_what_they_examined_as_mongodb_does(client, db):
    db.c.insert_many([{"_id": i, "a": i % 10, "b": i, "u": i} for i in range(100)])
    db.c.create_index("a")
    db.c.create_index("u", unique=True)
    update = lambda query, **options: {"update": "c", "updates": [{"q": query, "u": {"$inc": {"z": 1}}, **options}]}
    delete = lambda query, limit: {"delete": "c", "deletes": [{"q": query, "limit": limit}]}
    change = lambda query, **options: {"findAndModify": "c", "query": query, **options}
    # Of MongoDB 6.0.27: entries, documents.
    wanted = [
        (update({"u": 5}), 1, 1), (update({"a": 5}, multi=True), 10, 10), (update({"_id": 5}), 1, 1), (update({"u": 5000}), 0, 0),
        (update({"b": 5}), 0, 6), (update({"u": 7777}, upsert=True), 0, 0), (update({"u": {"$gt": 5, "$lt": 10}}, multi=True), 4, 4),
        (delete({"u": 9}, 1), 1, 1), (delete({"a": 2}, 0), 10, 10), (delete({"u": 9999}, 1), 0, 0), (delete({"_id": 10}, 1), 1, 1),
        (change({"u": 20}, update={"$inc": {"z": 1}}), 1, 1), (change({"u": 21}, remove=True), 1, 1), (change({"u": 2111}, remove=True), 0, 0),
    ]

    def scanned():
        status = client.admin.command("serverStatus")["metrics"]["queryExecutor"]
        return status["scanned"], status["scannedObjects"]

    db.command("profile", 2)
    for command, *examined in wanted:
        before = scanned()
        db.command(command)
        assert [after - earlier for after, earlier in zip(scanned(), before)] == examined, command
    db.command("profile", 0)
    entries = db["system.profile"].find({"keysExamined": {"$exists": True}, "ns": f"{db.name}.c"})
    assert [[entry["keysExamined"], entry["docsExamined"]] for entry in entries] == [examined for _, *examined in wanted]


def test_entries_of_the_profiler_have_the_stages_and_the_spills(spilling):
    client, db = spilling
    db.command("profile", 2)
    list(db.c.find({}, {"s": 1}).sort("s", 1).batch_size(19_000).comment("sorted"))
    list(db.c.aggregate([{"$group": {"_id": "$s", "k": {"$push": "$k"}}}], comment="grouped"))
    list(db.c.aggregate([{"$match": {"k": 5}}], comment="plan alone"))
    db.c.count_documents({"k": 1})
    db.c.distinct("k")
    db.c.update_many({"_id": {"$lt": 10}}, {"$set": {"z": 1}})
    db.c.find_one({"_id": 1})
    list(db.c.find({"$or": [{"_id": 1}, {"k": 2}]}).limit(1))
    db.c.delete_many({"_id": {"$gte": 19_995}})
    db.command("profile", 0)
    entries = list(db["system.profile"].find({"ns": "spilling.c"}))
    sort, *others, more = [entry for entry in entries if "sorted" in (entry["command"].get("comment"), entry.get("originatingCommand", {}).get("comment"))]
    for entry in (sort, *others, more):
        assert entry["usedDisk"] is True and entry["hasSortStage"] is True and entry["sortSpills"] > 0, entry
        assert entry["sortTotalDataSizeBytes"] > 20_000 * 200 and entry["keysSorted"] == 20_000
        stages = entry["execStats"]
        assert (stages["stage"], stages["inputStage"]["stage"]) == ("SORT", "PROJECTION_SIMPLE"), stages
        assert stages["usedDisk"] is True and stages["spills"] == entry["sortSpills"] and stages["inputStage"]["nReturned"] == 20_000
    assert sort["spilledBytes"] > 100_000 and "spilledBytes" not in more
    # Those of the cursor until then; one may wait for the next batch.
    assert sort["nreturned"] <= sort["execStats"]["nReturned"] <= sort["nreturned"] + 1 and more["execStats"]["nReturned"] == 20_000
    [grouped] = [entry for entry in entries if entry["command"].get("comment") == "grouped" and "pipeline" in entry["command"]]
    assert grouped["usedDisk"] is True and grouped["spills"] > 0 and "execStats" not in grouped
    [alone] = [entry for entry in entries if entry["command"].get("comment") == "plan alone" and "pipeline" in entry["command"]]
    assert alone["execStats"]["stage"] == "COLLSCAN" and alone["execStats"]["nReturned"] == 101
    stages = {(entry["op"], next(iter(entry["command"]))): entry.get("execStats", {}) for entry in entries}
    assert stages["update", "q"]["stage"] == "UPDATE" and stages["update", "q"]["nMatched"] == stages["update", "q"]["nWouldModify"] == 10
    assert stages["remove", "q"]["stage"] == "DELETE" and stages["remove", "q"]["nWouldDelete"] == 5
    assert stages["command", "distinct"]["docsExamined"] == 20_000
    point = next(entry for entry in entries if entry.get("planSummary") == "IDHACK")
    assert point["execStats"] == {"stage": "IDHACK", "nReturned": 1, "keysExamined": 1, "docsExamined": 1}


def test_system_profile_is_kept_by_the_server_and_bounded(client, db):
    db.command("profile", 2)
    with pytest.raises(OperationFailure) as refused:
        db["system.profile"].drop()
    assert refused.value.code == 20
    with pytest.raises(OperationFailure) as refused:
        db["system.profile"].insert_one({})
    assert refused.value.code == 73
    for at in range(3000):
        db.c.find_one({"_id": at, "padding": "x" * 700})
    sizes = [len(bson.encode(entry)) for entry in db["system.profile"].find()]
    assert 500_000 < sum(sizes) <= 1_100_000, sum(sizes)
    newest = db["system.profile"].find_one({"op": "query", "ns": f"{db.name}.c"}, sort=[("$natural", -1)])
    assert newest["command"]["filter"]["_id"] == 2999
    [described] = db.list_collections(filter={"name": "system.profile"})
    assert described["options"] == {"capped": True, "size": 1048576}
    db.command("profile", 0)
    db["system.profile"].drop()
    assert "system.profile" not in db.list_collection_names()


def test_system_profile_is_made_in_another_size(db):
    db.c.insert_one({})
    db.command("profile", 2)
    for refused in ({"capped": True, "size": 10_000}, {"viewOn": "c"}):
        with pytest.raises(OperationFailure) as told:
            db.command("create", "system.profile", **refused)
        assert told.value.code == (48 if "capped" in refused else 73), told.value
    db.command("profile", 0)
    db["system.profile"].drop()
    db.command("create", "system.profile", capped=True, size=10_000)
    [described] = db.list_collections(filter={"name": "system.profile"})
    assert described["options"] == {"capped": True, "size": 10_240}
    db.command("profile", 2)
    for at in range(100):
        db.c.find_one({"_id": at, "padding": "x" * 700})
    sizes = [len(bson.encode(entry)) for entry in db["system.profile"].find()]
    assert 1_000 < sum(sizes) <= 10_240, sizes
    db.command("profile", 0)
    db["system.profile"].drop()


def test_a_slow_request_is_one_json_line_in_the_log(tmp_path):
    server = Server(tmp_path / "data", "--log-format", "json").start()
    with server.client(appname="slow test") as client:
        db = client.slow
        db.c.insert_many([{"_id": i} for i in range(60_000)])
        list(db.c.find(NEVER).comment("slow one"))
        db.c.find_one({"_id": 1})
    assert server.stop() == 0
    # Standard output goes there, too: it has no banner, and every line is an object.
    messages = [json.loads(line)["message"] for line in server.whole_log().splitlines()]
    assert "serving" in messages
    entries = [json.loads(message.removeprefix("slow query: ")) for message in messages if message.startswith("slow query: ")]
    [entry] = [entry for entry in entries if entry.get("command", {}).get("comment") == "slow one"]
    assert entry["type"] == "query" and entry["ns"] == "slow.c" and entry["planSummary"] == "COLLSCAN"
    assert entry["docsExamined"] == 60_000 and entry["nreturned"] == 0 and entry["durationMillis"] > 100
    assert entry["appName"] == "slow test"


# ---- housekeeping


def test_periodic_work_is_shown(client):
    chores = client.admin.command("serverStatus")["pando"]["housekeeping"]
    assert set(chores) == {"clusterClock", "cursorExpiry", "departedClients", "profileWrites", "sessionExpiry", "snapshotExpiry", "snapshotWatch",
                           "transactionExpiry"}
    wait_for(lambda: client.admin.command("serverStatus")["pando"]["housekeeping"]["profileWrites"]["runs"] > 0)
    assert all(chore["failures"] == 0 and chore["nextInMillis"] >= 0 for chore in chores.values())
