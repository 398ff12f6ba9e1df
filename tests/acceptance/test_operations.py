"""Operations under way, sessions, time limits and the profiler: the answers beside MongoDB's.

What an operation looks like cannot be equal on two servers; its fields, their order and their types can.
"""

import bson
import pytest
from bson import Binary, Int64

from both import Texts
from wire import Wire

# Fields that MongoDB has and Pando does not, and the other way round.
MONGODB_ALONE = {"effectiveUsers"}
PANDO_ALONE = {"keysExamined", "docsExamined"}


def shape(document):
    """Names and types, in order."""
    return [(name, type(value).__name__) for name, value in document.items()]


def own_operation(ask, reply_of):
    [found] = [found for found in reply_of(bson.decode(ask)) if found.get("op") == "command" and found.get("active")]
    return found


@pytest.mark.parametrize("request_,reply_of", [
    ({"aggregate": 1, "pipeline": [{"$currentOp": {}}, {"$match": {"command.aggregate": 1}}], "cursor": {}, "lsid": {"id": Binary(b"l" * 16, 4)}},
     lambda reply: reply["cursor"]["firstBatch"]),
    ({"currentOp": 1, "$ownOps": True, "lsid": {"id": Binary(b"l" * 16, 4)}}, lambda reply: [found for found in reply["inprog"] if "lsid" in found]),
], ids=["$currentOp", "currentOp"])
def test_an_operation_has_the_fields_of_mongodb(both, request_, reply_of):
    admin = both.on("admin")
    oracle = own_operation(admin.ask_oracle(request_), reply_of)
    pando = own_operation(admin.ask_pando(request_), reply_of)
    assert [field for field in shape(oracle) if field[0] not in MONGODB_ALONE] == [field for field in shape(pando) if field[0] not in PANDO_ALONE]
    assert shape(oracle["lsid"]) == shape(pando["lsid"]) and oracle["lsid"]["uid"] == pando["lsid"]["uid"]
    for name in ("type", "op", "ns", "active", "numYields", "waitingForLock", "threaded"):
        assert oracle[name] == pando[name], name


def test_an_idle_cursor_has_the_fields_of_mongodb(both):
    both.same({"insert": "c", "documents": [{"_id": at} for at in range(10)]})
    both.same({"find": "c", "filter": {"_id": {"$gte": 2}}, "batchSize": 3})
    request = {"aggregate": 1, "pipeline": [{"$currentOp": {"idleCursors": True}}, {"$match": {"type": "idleCursor", "ns": f"{both.name}.c"}}],
               "cursor": {}}
    admin = both.on("admin")
    [oracle] = bson.decode(admin.ask_oracle(request))["cursor"]["firstBatch"]
    [pando] = bson.decode(admin.ask_pando(request))["cursor"]["firstBatch"]
    assert shape(oracle) == shape(pando) and shape(oracle["cursor"]) == shape(pando["cursor"])
    for name in ("nDocsReturned", "nBatchesReturned", "noCursorTimeout"):
        assert oracle["cursor"][name] == pando["cursor"][name] and oracle["planSummary"] == pando["planSummary"]


STAGES = [
    {"bogus": 1}, {"allUsers": 1}, {"idleConnections": "x"}, {"idleCursors": 1}, {"idleSessions": "x"}, {"localOps": 1}, {"truncateOps": 1}, 1, "x",
    None, [],
]


@pytest.mark.parametrize("argument", STAGES, ids=repr)
def test_wrong_arguments_of_the_stage_are_refused(both, argument):
    both.on("admin").same({"aggregate": 1, "pipeline": [{"$currentOp": argument}], "cursor": {}}, texts=Texts.COMPARED)


def test_the_stage_has_its_place(both):
    stage = {"$currentOp": {}}
    both.fails({"aggregate": 1, "pipeline": [stage], "cursor": {}}, 73, texts=Texts.COMPARED)
    both.on("admin").fails({"aggregate": "c", "pipeline": [stage], "cursor": {}}, 73, texts=Texts.COMPARED)
    both.on("admin").fails({"aggregate": 1, "pipeline": [{"$match": {}}, stage], "cursor": {}}, 73)
    both.on("admin").fails({"aggregate": "c", "pipeline": [{"$match": {}}, stage], "cursor": {}}, 73)
    one = {"$group": {"_id": None, "kinds": {"$addToSet": "$type"}}}
    both.on("admin").same({"aggregate": 1, "pipeline": [stage, one], "cursor": {}})


@pytest.mark.parametrize("request_", [
    {"killOp": 1}, {"killOp": 1, "op": 999_999}, {"killOp": 1, "op": 1.5}, {"killOp": 1, "op": "x"}, {"killOp": 1, "op": None},
    {"killOp": 1, "op": 2**40}, {"killOp": 1, "op": True}, {"killOp": 1, "op": -1}, {"killOp": 1, "op": 7.0}, {"killOp": 1, "op": 1, "bogus": 1},
    {"currentOp": 1, "bogus": 1}, {"currentOp": 1, "$bogus": 1}, {"currentOp": 1, "ns": {"$bogus": 1}}, {"currentOp": 1, "ns": "no.such"},
    {"killSessions": []}, {"killSessions": 1}, {"killSessions": None}, {"killSessions": [{}]}, {"killSessions": [1]}, {"killSessions": [{"bogus": 1}]},
    {"killSessions": [{"id": Binary(b"k" * 16, 4)}]}, {"killSessions": [{"id": "x"}]}, {"killSessions": [], "bogus": 1},
    {"killAllSessions": []}, {"killAllSessions": 1}, {"killAllSessions": [{"user": "a", "db": "b"}]}, {"killAllSessions": [{"user": "a"}]},
    {"killAllSessions": [{"bogus": "a"}]}, {"killAllSessions": [1]},
    {"killAllSessionsByPattern": []}, {"killAllSessionsByPattern": 1}, {"killAllSessionsByPattern": [{}]}, {"killAllSessionsByPattern": [{"bogus": 1}]},
    {"killAllSessionsByPattern": [{"lsid": {"id": Binary(b"k" * 16, 4)}}]}, {"killAllSessionsByPattern": [{"uid": Binary(b"k" * 32)}]},
    {"killAllSessionsByPattern": [{"uid": 1}]},
    {"killAllSessionsByPattern": [{"lsid": {"id": Binary(b"k" * 16, 4), "uid": Binary(b"k" * 32)}}]},
], ids=repr)
def test_commands_on_operations_and_sessions_are_checked_alike(both, request_):
    both.on("admin").same(request_, texts=Texts.COMPARED)


@pytest.mark.parametrize("name", ["currentOp", "killOp"])
def test_they_belong_to_the_admin_database(both, name):
    both.fails({name: 1, "op": 1}, 13, texts=Texts.COMPARED)


def test_a_get_more_has_no_time_limit_of_its_own(both):
    both.same({"insert": "c", "documents": [{"_id": at} for at in range(10)]})
    first = both.same({"find": "c", "batchSize": 2, "maxTimeMS": 100_000})
    for limit in (0, 1, 5000):
        both.fails({"getMore": first.cursor, "collection": "c", "maxTimeMS": limit}, 2, texts=Texts.COMPARED)
    both.same({"getMore": first.cursor, "collection": "c", "batchSize": 3})


@pytest.mark.parametrize("change", [{"drop": "c"}, {"dropDatabase": 1}], ids=repr)
def test_cursors_end_with_their_collection(both, change):
    both.same({"insert": "c", "documents": [{"_id": at} for at in range(10)]})
    first = both.same({"find": "c", "batchSize": 2})
    both.same(change)
    both.fails({"getMore": first.cursor, "collection": "c"}, 175)
    both.fails({"getMore": first.cursor, "collection": "c"}, 43)


def test_cursors_end_with_the_name_of_their_collection(both):
    both.same({"insert": "c", "documents": [{"_id": at} for at in range(10)]})
    first = both.same({"find": "c", "batchSize": 2})
    both.on("admin").same({"renameCollection": f"{both.name}.c", "to": f"{both.name}.d"})
    both.fails({"getMore": first.cursor, "collection": "c"}, 175)


def test_cursors_end_with_their_session(both):
    lsid = {"id": Binary(b"s" * 16, 4)}
    both.same({"insert": "c", "documents": [{"_id": at} for at in range(10)]})
    for client in (both.oracle, both.pando):
        # PyMongo would put a session of its own in the place of this one.
        connection = Wire(*client.address)

        def ask(request):
            return bson.decode(connection.command(both.name, request))

        cursor = Int64(ask({"find": "c", "batchSize": 2, "lsid": lsid})["cursor"]["id"])
        more = {"getMore": cursor, "collection": "c", "batchSize": 2, "lsid": lsid}
        assert ask(more)["ok"] == 1
        assert ask({"killSessions": [lsid]})["ok"] == 1
        assert ask(more)["code"] == 43
        connection.close()


PROFILES = [
    {"profile": -1}, {"profile": 0}, {"profile": 3}, {"profile": -5}, {"profile": 1, "slowms": "x"}, {"profile": 1, "sampleRate": 2.0},
    {"profile": 1, "sampleRate": "x"}, {"profile": 1, "filter": 1}, {"profile": 1, "filter": "x"}, {"profile": 1, "filter": {"$bogus": 1}},
    {"profile": 1, "filter": {"millis": {"$gt": 1}}}, {"profile": -1}, {"profile": 1, "filter": "unset"}, {"profile": -1}, {"profile": 1, "bogus": 1},
    {"profile": 2, "slowms": 50, "sampleRate": 0.5}, {"profile": -1}, {"profile": 1.7}, {"profile": 0, "slowms": -3}, {"profile": -1},
    {"profile": 0, "slowms": 100, "sampleRate": 1.0}, {"profile": -1},
]


def test_the_settings_of_the_profiler_answer_alike(both):
    for request in PROFILES:
        both.same(request, texts=Texts.COMPARED)
    both.same({"drop": "system.profile"}, ignore=["nIndexesWas"])


def test_the_collection_of_the_profiler_is_kept_by_the_server(both):
    both.same({"profile": 2})
    both.fails({"insert": "system.profile", "documents": [{}]}, 73)
    both.fails({"delete": "system.profile", "deletes": [{"q": {}, "limit": 0}]}, 73)
    both.fails({"update": "system.profile", "updates": [{"q": {}, "u": {"$set": {"a": 1}}}]}, 73)
    both.fails({"drop": "system.profile"}, 20, texts=Texts.COMPARED)
    both.same({"profile": 0})
    both.same({"listCollections": 1, "filter": {"name": "system.profile"}}, ignore=["cursor.firstBatch.*.idIndex"])
    both.same({"drop": "system.profile"}, ignore=["nIndexesWas"])


# Fields of entries that only MongoDB has, or whose presence depends on its plans and caches.
ENTRY_FIELDS_OF_MONGODB = {"queryHash", "planCacheKey", "queryFramework", "planningTimeMicros", "execStats", "storage", "keysInserted", "keysDeleted",
                           "cpuNanos"}
# Fields that MongoDB has only since 7.0, and Pando announces a later version.
ENTRY_FIELDS_SINCE_7 = {"sortSpills", "sortTotalDataSizeBytes", "keysSorted"}
PROFILED = [
    {"find": "c", "filter": {"_id": 3}},
    {"find": "c", "filter": {"a": 3}, "sort": {"b": 1}},
    {"find": "c", "batchSize": 2},
    {"find": "none"},
    {"find": "c", "filter": {"$bogus": 1}},
    {"insert": "c", "documents": [{"_id": 1000}, {"_id": 1001}]},
    {"insert": "c", "documents": [{"_id": 1000}]},
    {"update": "c", "updates": [{"q": {"a": 1}, "u": {"$set": {"z": 1}}, "multi": True}]},
    {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"z": 1}}}]},
    {"delete": "c", "deletes": [{"q": {"a": 4}, "limit": 0}]},
    {"findAndModify": "c", "query": {"_id": 2}, "update": {"$set": {"z": 2}}},
    {"aggregate": "c", "pipeline": [{"$match": {"a": 2}}, {"$group": {"_id": "$b"}}], "cursor": {}},
    {"dbStats": 1},
    {"ping": 1},
]


def test_entries_of_the_profiler_have_the_fields_of_mongodb(both):
    both.same({"insert": "c", "documents": [{"_id": at, "a": at % 5, "b": str(at)} for at in range(100)]})
    both.same({"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a_1"}]})
    both.same({"profile": 2})
    for request in PROFILED:
        for ask in (both.ask_oracle, both.ask_pando):
            ask(request)
    both.same({"profile": 0})
    look = {"find": "system.profile", "projection": {"_id": 0}, "batchSize": 1000}
    oracle, pando = (bson.decode(ask(look))["cursor"]["firstBatch"] for ask in (both.ask_oracle, both.ask_pando))
    assert [(found["op"], found["ns"]) for found in oracle] == [(found["op"], found["ns"]) for found in pando]
    for left, right in zip(oracle, pando):
        # Statements of updates and deletes have no reply of their own in MongoDB.
        alone = {"responseLength", "protocol"} if "responseLength" not in left else set()
        wanted = [(name, kind) for name, kind in shape(left) if name not in ENTRY_FIELDS_OF_MONGODB]
        found = [field for field in shape(right) if field[0] not in alone | ENTRY_FIELDS_OF_MONGODB | ENTRY_FIELDS_SINCE_7]
        assert wanted == found, (left, right)
        # A find in no collection has a stage EOF in MongoDB, and no plan here.
        if left["op"] in ("query", "update", "remove") and not left["ns"].endswith(".none"):
            assert ("execStats" in left) == ("execStats" in right), (left, right)
        for entry in (left, right):
            entry["command"].pop("lsid", None)
        for name in ("planSummary", "nreturned", "nMatched", "nModified", "ndeleted", "ninserted", "errCode", "hasSortStage", "cursorExhausted", "command"):
            assert left.get(name) == right.get(name), (name, left, right)
    both.same({"drop": "system.profile"}, ignore=["nIndexesWas"])
