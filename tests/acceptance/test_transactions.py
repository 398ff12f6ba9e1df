"""Transactions and retryable writes beside those of a real replica set of one: replies, codes, texts and labels of
statements in and out of order.

A script is a list of steps on sessions of its own. Both servers get the same steps, each by one raw connection.
"""

import re
import time
import uuid

import bson
import pytest
from bson import Binary, Int64, Timestamp

from oracle import Oracle
from server import Server
from wire import Wire

# Fields that only a replica set adds, and fields that differ from one run to the next.
LEFT_OUT = {"operationTime", "$clusterTime", "electionId", "opTime", "commitQuorum"}
RUN = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{15,}")


@pytest.fixture(scope="module")
def replica_set():
    oracle = Oracle().start_replica_set()
    yield oracle
    oracle.stop()


class Side:
    """One server, with the sessions of a script by their letters."""

    def __init__(self, port, database):
        self.wire, self.database = Wire("127.0.0.1", port), database
        self.sessions = {}
        self.cursor = None

    def lsid(self, letter):
        return self.sessions.setdefault(letter, {"id": Binary(uuid.uuid4().bytes, 4)})

    def ask(self, step):
        database, request = step.pop("on", self.database), {}
        for name, value in step.items():
            if name == "lsid":
                value = self.lsid(value)
            if value is CURSOR:
                value = Int64(self.cursor)
            if name in ("killSessions", "endSessions"):
                value = [self.lsid(letter) for letter in value]
            request[name] = value
        reply = bson.decode(self.wire.command(database, request))
        if "cursor" in reply:
            if reply["cursor"]["id"]:
                self.cursor = reply["cursor"]["id"]
            reply["cursor"]["id"] = bool(reply["cursor"]["id"])
        for name in LEFT_OUT:
            reply.pop(name, None)
        if "errmsg" in reply:
            reply["errmsg"] = RUN.sub("#", reply["errmsg"]).replace(self.database, "db")
        return reply

    def close(self):
        self.wire.close()


CURSOR = object()


@pytest.fixture
def sides(replica_set, pando_server):
    yield from sides_of(replica_set, pando_server)


def sides_of(*servers):
    database = f"test_{uuid.uuid4().hex[:8]}"
    both = [Side(server.port, database) for server in servers]
    for side in both:
        side.ask({"insert": "c", "documents": [{"_id": at, "x": at} for at in range(20)]})
        side.ask({"create": "e"})
        side.ask({"createIndexes": "u", "indexes": [{"key": {"k": 1}, "name": "k", "unique": True}]})
    yield both
    for side in both:
        side.ask({"killSessions": list(side.sessions), "on": "admin"})
        side.ask({"dropDatabase": 1})
        side.close()


def play(sides, script, texts=True):
    for at, step in enumerate(script):
        oracle, pando = (side.ask(dict(step)) for side in sides)
        if not texts:
            oracle.pop("errmsg", None), pando.pop("errmsg", None)
        assert pando == oracle, f"step {at}: {step}\n  MongoDB: {oracle}\n  Pando:   {pando}"


def t(letter, number, **more):
    """The fields of a statement of a transaction."""
    return {"lsid": letter, "txnNumber": Int64(number), "autocommit": False, **more}


START = {"startTransaction": True}
ONE = {"find": "c", "filter": {"_id": 1}}


def commit(letter, number, **more):
    return {"commitTransaction": 1, "on": "admin", **t(letter, number), **more}


def abort(letter, number, **more):
    return {"abortTransaction": 1, "on": "admin", **t(letter, number), **more}


FIELDS = [
    {"txnNumber": Int64(1)}, {"lsid": "a", "autocommit": False}, {"lsid": "a", "startTransaction": True},
    {"lsid": "a", "startTransaction": True, "autocommit": False}, {"lsid": "a", "txnNumber": Int64(1), "startTransaction": True, "autocommit": True},
    {"lsid": "a", "txnNumber": Int64(1), "startTransaction": False, "autocommit": False}, {"lsid": "a", "txnNumber": Int64(1), "startTransaction": True},
    t("a", -1, **START), {**t("a", 1, **START), "txnNumber": 1}, {**t("a", 1, **START), "txnNumber": 1.0}, {"lsid": "a", "txnNumber": "x"},
    {**t("a", 1, **START), "autocommit": 1}, {**t("a", 1), "startTransaction": 1}, {"lsid": "a", "txnNumber": Int64(1)}, t("a", 1),
]


@pytest.mark.parametrize("fields", FIELDS, ids=repr)
def test_wrong_fields(sides, fields):
    play(sides, [{**ONE, **fields}])


def test_numbers_out_of_order(sides):
    play(sides, [
        {**ONE, **t("a", 5, **START)}, {**ONE, **t("a", 5, **START)}, {**ONE, **t("a", 5)}, {**ONE, **t("a", 4, **START)}, {**ONE, **t("a", 4)},
        {**ONE, **t("a", 6)}, {**ONE, **t("a", 5)}, {**ONE, **t("a", 6, **START)}, {**ONE, **t("a", 5)}, commit("a", 5),
        {"commitTransaction": 1, **t("a", 6)}, commit("a", 6), commit("a", 6), abort("a", 6), {**ONE, **t("a", 6)}, {**ONE, **t("a", 6, **START)},
        {"insert": "c", "documents": [{"_id": 100}], "lsid": "a", "txnNumber": Int64(6)}, commit("a", 7), commit("b", 7), abort("a", 7),
        {**ONE, **t("a", 8, **START)}, abort("a", 8), abort("a", 8), commit("a", 8), {**ONE, **t("a", 8)}, {**ONE, **t("a", 8, **START)},
        commit("a", 9, **START), abort("a", 9, **START), {"commitTransaction": 1, "on": "admin"}, {"abortTransaction": 1, "on": "admin"},
        {"commitTransaction": 1, "on": "admin", "lsid": "a"}, {"commitTransaction": 1, "on": "admin", "lsid": "a", "txnNumber": Int64(8)},
    ])


def test_concerns(sides):
    script, number = [], 0
    for level in ("local", "majority", "snapshot", "available", "linearizable", "bogus"):
        number += 1
        script += [{**ONE, "readConcern": {"level": level}, **t("a", number, **START)}, abort("a", number)]
    script += [
        {**ONE, "readConcern": {}, **t("a", 20, **START)}, {**ONE, "readConcern": {"level": "snapshot"}, **t("a", 20)},
        {**ONE, "readConcern": {}, **t("a", 20)}, {**ONE, **t("a", 20)}, commit("a", 20, readConcern={"level": "local"}),
        {"insert": "c", "documents": [{"_id": 301}], "readConcern": {"level": "snapshot"}, **t("a", 21, **START)},
        {"insert": "c", "documents": [{"_id": 302}], "writeConcern": {"w": 1}, **t("a", 21)}, {**ONE, "writeConcern": {"w": 1}, **t("a", 21)},
        commit("a", 21, writeConcern={"w": "majority"}), commit("a", 21, writeConcern={"w": 1}), commit("a", 21, writeConcern={"w": 0}),
    ]
    play(sides, script)


COMMANDS = [
    {"ping": 1}, {"count": "c"}, {"distinct": "c", "key": "x", "query": {"_id": {"$lt": 2}}}, {"listCollections": 1}, {"explain": {"find": "c"}},
    {"drop": "e"}, {"create": "new"}, {"create": "c"}, {"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x"}]},
    {"createIndexes": "e", "indexes": [{"key": {"x": 1}, "name": "x"}]}, {"createIndexes": "new", "indexes": [{"key": {"x": 1}, "name": "x"}]},
    {"createIndexes": "u", "indexes": [{"key": {"k": 1}, "name": "k", "unique": True}]}, {"aggregate": "c", "pipeline": [{"$out": "o"}], "cursor": {}},
    {"aggregate": "c", "pipeline": [{"$merge": "o"}], "cursor": {}}, {"aggregate": "c", "pipeline": [{"$collStats": {"count": {}}}], "cursor": {}},
    {"aggregate": "c", "pipeline": [{"$count": "n"}], "cursor": {}}, {"aggregate": 1, "pipeline": [{"$currentOp": {}}], "cursor": {}, "on": "admin"},
    {"aggregate": "c", "pipeline": [{"$lookup": {"from": "u", "localField": "x", "foreignField": "x", "as": "y"}}, {"$limit": 1}], "cursor": {}},
    {"killCursors": "c", "cursors": [Int64(1)]}, {"bogus": 1}, {"insert": "c"}, {"find": "c", "filter": {"$bogus": 1}}, {"find": "c", "bogus": 1},
    {"find": "transactions", "filter": {"_id": 0}, "on": "config"}, {"find": "x", "on": "local"}, {"find": "x", "on": "admin"}, {"insert": "x", "documents": [{}], "on": "config"},
    {"insert": "x", "documents": [{}], "on": "local"}, {"insert": "system.x", "documents": [{}]}, {"find": "system.profile"}, {"hello": 1},
    {"isMaster": 1}, {"endSessions": []}, {"dbStats": 1}, {"buildInfo": 1}, {"getMore": Int64(1), "collection": "c"},
    {"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"y": 1}}}, {"insert": "new", "documents": [{"_id": 1}]},
    {"update": "c", "updates": [{"q": {}, "u": {"$set": {"y": 2}}, "multi": True}]}, {"delete": "c", "deletes": [{"q": {"_id": {"$gt": 10}}, "limit": 0}]},
    {"insert": "c", "documents": [{"_id": 1}, {"_id": 1000}], "ordered": False},
    {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"z": 1}}}, {"q": {"_id": 2}, "u": {"$inc": {"_id": 1}}}, {"q": {"_id": 3}, "u": {"$set": {"z": 1}}}]},
    {"delete": "c", "deletes": [{"q": {"_id": {"$bogus": 290}}, "limit": 0}]}, {"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"_id": 7}}},
    {"find": "c", "filter": {"_id": 1}, "maxTimeMS": 1000}, {"insert": "c", "documents": []},
]


@pytest.mark.parametrize("command", COMMANDS, ids=repr)
def test_commands_first_and_later_in_a_transaction(sides, command):
    play(sides, [
        {**command, **t("a", 1, **START)}, commit("a", 1), {**ONE, **t("a", 2, **START)}, {**command, **t("a", 2)}, commit("a", 2), abort("a", 2),
    ])


def test_conflicts(sides):
    bump = {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"v": 1}}}]}
    play(sides, [
        {**bump, **t("a", 1, **START)}, {**ONE, **t("b", 1, **START)}, {**bump, **t("b", 1)}, commit("b", 1), abort("b", 1),
        {"findAndModify": "c", "query": {"_id": 1}, "remove": True, **t("b", 2, **START)}, {"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1}], **t("b", 3, **START)},
        {"insert": "u", "documents": [{"_id": 5, "k": 1}], **t("a", 1)}, {"insert": "u", "documents": [{"_id": 6, "k": 1}], **t("b", 4, **START)},
        {**bump, "maxTimeMS": 300}, commit("a", 1), {**ONE, **t("b", 5, **START)}, bump, {**bump, **t("b", 5)}, ONE,
    ])


def test_creation(sides):
    play(sides, [
        {"insert": "new", "documents": [{"_id": 1}], **t("a", 1, **START)}, {"find": "new", **t("a", 1)}, {"find": "new"},
        {"insert": "new", "documents": [{"_id": 2}], **t("b", 1, **START)}, commit("a", 1), commit("b", 1), {"find": "new"},
        {"create": "empty", **t("a", 2, **START)}, {"createIndexes": "empty", "indexes": [{"key": {"x": 1}, "name": "x", "unique": True}], **t("a", 2)},
        {"insert": "empty", "documents": [{"_id": 1, "x": 1}], **t("a", 2)}, {"insert": "empty", "documents": [{"_id": 2, "x": 1}], **t("a", 2)},
        commit("a", 2), {"find": "empty"}, {"create": "other", **t("a", 3, **START)}, {"create": "other", **t("a", 3)}, commit("a", 3),
    ])


def test_cursors(sides):
    more = {"getMore": CURSOR, "collection": "c", "batchSize": 1}
    find = {"find": "c", "batchSize": 2}
    play(sides, [
        {**find, **t("a", 1, **START)}, more, {**more, "lsid": "a"}, {**more, **t("a", 1)}, {**more, **t("b", 1, **START)}, {**ONE, **t("a", 2, **START)},
        {**find, **t("a", 3, **START)}, {"killCursors": "c", "cursors": [], **t("a", 3)}, commit("a", 3), {**more, **t("a", 3)}, {**find},
        {**more, **t("a", 4, **START)}, {**find, "lsid": "a"}, {**ONE, **t("a", 5, **START)}, {**more, **t("a", 5)}, abort("a", 5),
        {**more, "lsid": "a", "txnNumber": Int64(9)},
    ])


def test_ends_of_sessions(sides):
    play(sides, [{**ONE, **t("a", 1, **START)}, {"killSessions": ["a"], "on": "admin"}, commit("a", 1), {**ONE, **t("a", 1)}])


def w(number, **more):
    """The fields of a retryable write."""
    return {"lsid": "a", "txnNumber": Int64(number), **more}


def test_retryable_writes(sides):
    two = {"insert": "r", "documents": [{"_id": 1}, {"_id": 2}]}
    updates = [{"q": {"_id": 1}, "u": {"$inc": {"v": 1}}}, {"q": {"_id": 55}, "u": {"$inc": {"v": 1}}, "upsert": True},
               {"q": {"_id": 1000}, "u": {"$inc": {"v": 1}}}, {"q": {"_id": 2}, "u": {"$unset": {"zzz": 1}}}]
    find_and_modify = [
        dict(query={"_id": 1}, update={"$inc": {"v": 1}}), dict(query={"_id": 1}, update={"$inc": {"v": 1}}, new=True),
        dict(query={"_id": 444}, update={"$inc": {"v": 1}}, new=True, upsert=True), dict(query={"_id": 445}, update={"$inc": {"v": 1}}, upsert=True),
        dict(query={"_id": 444}, remove=True), dict(query={"_id": 999}, remove=True), dict(query={"_id": 999}, update={"$inc": {"v": 1}}),
        dict(query={"_id": 1}, update={"$unset": {"zzz": 1}}),
    ]
    script = [
        {**two, **w(1)}, {**two, **w(1)}, {"insert": "r", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3}], **w(1)},
        {"insert": "r", "documents": [{"_id": 71}, {"_id": 72}], **w(1)}, {"insert": "r", "documents": [{"_id": 4}], **w(1, stmtId=10)},
        {"insert": "r", "documents": [{"_id": 5}, {"_id": 6}], **w(1, stmtIds=[20, 30])}, {"insert": "r", "documents": [{"_id": 5}, {"_id": 6}], **w(1, stmtIds=[20, 30])},
        {"insert": "r", "documents": [{"_id": 1}], **w(0)}, {"insert": "r", "documents": [{"_id": 1}, {"_id": 99}], "ordered": False, **w(2)},
        {"insert": "r", "documents": [{"_id": 1}, {"_id": 99}], "ordered": False, **w(2)}, {"update": "r", "updates": updates, **w(3)},
        {"update": "r", "updates": updates, **w(3)}, {"update": "r", "updates": [updates[0], {"q": {}, "u": {"$inc": {"v": 1}}, "multi": True}], **w(4)},
        {"delete": "r", "deletes": [{"q": {"_id": 99}, "limit": 1}, {"q": {"_id": 99}, "limit": 0}], **w(5)},
        {"delete": "r", "deletes": [{"q": {"_id": 99}, "limit": 1}, {"q": {"_id": 99}, "limit": 0}], **w(5)},
    ]
    for at, request in enumerate(find_and_modify):
        script += 2 * [{"findAndModify": "r", **request, **w(10 + at)}]
    script += [
        {"delete": "r", "deletes": [{"q": {"_id": 1}, "limit": 1}], **w(30)}, {"insert": "r", "documents": [{"_id": 1}], **w(30)},
        {**ONE, **t("a", 30)}, {**ONE, **t("a", 30, **START)}, {**ONE, **t("a", 32, **START)}, {"insert": "r", "documents": [{"_id": 802}], **w(32)},
        {"insert": "r", "documents": [{"_id": 803}], **w(33)}, commit("a", 32), {"find": "r", "sort": {"_id": 1}},
        {"insert": "r", "documents": [{"_id": 7}, {"_id": 8}], "lsid": "b", "txnNumber": Int64(1), "writeConcern": {"w": 0}},
    ]
    script += [{**command, **w(50)} for command in
               ({"drop": "zz"}, {"aggregate": "r", "pipeline": [], "cursor": {}}, {"count": "r"}, {"create": "zz"}, {"isMaster": 1}, {"ping": 1}, ONE)]
    play(sides, script)


@pytest.mark.parametrize("request_", [
    {"insert": "r", "documents": [{"_id": 7}, {"_id": 8}], **w(1, stmtIds=[40])}, {"insert": "r", "documents": [{"_id": 7}], **w(1, stmtIds=[40], stmtId=40)},
    {"insert": "r", "documents": [{"_id": 7}], **w(1, stmtId=Int64(50))},
], ids=repr)
def test_wrong_numbers_of_statements(sides, request_):
    # MongoDB repeats the whole request in its text.
    play(sides, [request_], texts=False)


@pytest.mark.parametrize("value", [0, -1, 10, "x", 1.5, True, 1 << 31, None], ids=repr)
def test_the_wait_for_a_document_is_a_parameter(sides, value):
    name = "maxTransactionLockRequestTimeoutMillis"
    play(sides, [{"setParameter": 1, name: value, "on": "admin"}, {"getParameter": 1, name: 1, "on": "admin"},
                 {"setParameter": 1, name: 5, "on": "admin"}])


@pytest.mark.parametrize("value", [0, -1, "x", 1.5, 1.0, None], ids=repr)
def test_the_time_limit_is_a_parameter(sides, value):
    play(sides, [{"setParameter": 1, "transactionLifetimeLimitSeconds": value, "on": "admin"},
                 {"setParameter": 1, "transactionLifetimeLimitSeconds": 60, "on": "admin"}], texts=False)


SNAPSHOT = {"level": "snapshot"}
LEVELS = ("local", "available", "majority", "linearizable", "snapshot")


class Reading:
    """Both servers, with the newest time that each has told, and the time of its last snapshot read."""

    def __init__(self, sides):
        self.sides = sides
        self.operation_times, self.read_times = [None, None], [None, None]

    def concern(self, at, concern):
        """The concern with the times of this server in the place of words."""
        times = {"operation": self.operation_times[at], "read": self.read_times[at], "future": Timestamp(4_000_000_000, 1)}
        return {name: times.get(value, value) if isinstance(value, str) else value for name, value in concern.items()}

    def play(self, script, texts=True):
        for number, step in enumerate(script):
            replies = [self.ask(at, dict(step)) for at in range(2)]
            if not texts:
                [reply.pop("errmsg", None) for reply in replies]
            assert replies[1] == replies[0], f"step {number}: {step}\n  MongoDB: {replies[0]}\n  Pando:   {replies[1]}"

    def ask(self, at, step):
        side = self.sides[at]
        if "readConcern" in step:
            step["readConcern"] = self.concern(at, step["readConcern"])
        reply = bson.decode(side.wire.command(step.pop("on", side.database), {
            name: side.lsid(value) if name == "lsid" else Int64(side.cursor) if value is CURSOR else value
            for name, value in step.items()
        }))
        self.operation_times[at] = reply["operationTime"]
        for part in (reply, reply.get("cursor", {})):
            if "atClusterTime" in part:
                self.read_times[at] = part["atClusterTime"]
                part["atClusterTime"] = "told"
        if reply.get("cursor", {}).get("id"):
            side.cursor = reply["cursor"]["id"]
            reply["cursor"]["id"] = True
        if "errmsg" in reply:
            reply["errmsg"] = re.sub(r"Timestamp\(\d+, \d+\)", "Timestamp", RUN.sub("#", reply["errmsg"])).replace(side.database, "db")
        return {name: value for name, value in reply.items() if name not in LEFT_OUT or name == "commitQuorum"}


@pytest.fixture(scope="module")
def pando_member(tmp_path_factory):
    """Pando as a member of a replica set, which has cluster times."""
    server = Server(tmp_path_factory.mktemp("member") / "data", "--persona", "replica-set").start()
    yield server
    assert server.stop() == 0, server.log()
    assert "panic" not in server.log()


@pytest.fixture
def members(replica_set, pando_member):
    yield from sides_of(replica_set, pando_member)


@pytest.fixture
def reading(members):
    return Reading(members)


READS = [
    {"find": "c", "limit": 1}, ONE, {"find": "zz"}, {"find": "c", "batchSize": 0}, {"distinct": "c", "key": "x", "query": {"x": {"$lt": 3}}},
    {"aggregate": "c", "pipeline": [{"$limit": 1}], "cursor": {}}, {"aggregate": "zz", "pipeline": [], "cursor": {}}, {"count": "c"},
    {"aggregate": "c", "pipeline": [], "explain": True}, {"aggregate": 1, "pipeline": [{"$currentOp": {}}], "cursor": {}, "on": "admin"},
    {"insert": "c", "documents": [{"_id": 900}]}, {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"b": 1}}}]},
    {"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"b": 1}}}, {"listCollections": 1}, {"dbStats": 1}, {"explain": ONE}, {"ping": 1},
    {"find": "transactions", "filter": {"_id": 0}, "on": "config"},
]


@pytest.mark.parametrize("level", ["linearizable", "snapshot"])
@pytest.mark.parametrize("read", READS, ids=repr)
def test_levels_outside_of_transactions(reading, read, level):
    if read == {"distinct": "zz", "key": "x"} or (level, read.get("pipeline")) == ("linearizable", [{"$currentOp": {}}]):
        reading.play([{**read, "readConcern": {"level": level}}], texts=False)
    elif (level, read) == ("snapshot", {"find": "zz"}):
        # MongoDB tells no time here, so that a session's next read takes a later snapshot. Pando does.
        oracle, pando = (reading.ask(at, {**read, "readConcern": SNAPSHOT}) for at in range(2))
        assert "atClusterTime" not in oracle["cursor"] and pando["cursor"].pop("atClusterTime") == "told"
        assert pando == oracle
    else:
        reading.play([{**read, "readConcern": {"level": level}}])


def test_a_snapshot_is_read_again_by_its_time(reading):
    at = {"level": "snapshot", "atClusterTime": "read"}
    reading.play([
        {"find": "c", "sort": {"_id": 1}, "batchSize": 2, "readConcern": SNAPSHOT},
        {"update": "c", "updates": [{"q": {}, "u": {"$inc": {"x": 100}}, "multi": True}]}, {"delete": "c", "deletes": [{"q": {"_id": 3}, "limit": 1}]},
        {"getMore": CURSOR, "collection": "c", "batchSize": 3}, {"find": "c", "sort": {"_id": 1}, "readConcern": at}, {**ONE, "readConcern": at},
        {"distinct": "c", "key": "x", "readConcern": at}, {"aggregate": "c", "pipeline": [{"$group": {"_id": 1, "sum": {"$sum": "$x"}}}], "cursor": {}, "readConcern": at},
        {"find": "c", "filter": {"_id": 3}, "readConcern": {"level": "snapshot", "atClusterTime": "operation"}}, {"find": "c", "sort": {"_id": 1}, "readConcern": SNAPSHOT},
        {"insert": "c", "documents": [{"_id": 50}]}, {"find": "c", "filter": {"_id": {"$gte": 19}}, "sort": {"_id": 1}, "readConcern": at},
        {"find": "c", "filter": {"_id": {"$gte": 19}}, "sort": {"_id": 1}},
    ])


def test_a_transaction_reads_at_the_time_of_a_snapshot(reading):
    begin = {**t("a", 1, **START), "readConcern": {"level": "snapshot", "atClusterTime": "read"}}
    reading.play([
        {**ONE, "readConcern": SNAPSHOT}, {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"x": 100}}}]}, {**ONE, **begin},
        {"find": "c", "filter": {"_id": 2}, **t("a", 1)}, commit("a", 1), {**ONE, "readConcern": SNAPSHOT},
        {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"x": 100}}}]}, {**ONE, **begin, "txnNumber": Int64(2)},
        {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"x": 100}}}], **t("a", 2)}, commit("a", 2),
    ])


@pytest.mark.parametrize("concern", [
    *({"level": level, "afterClusterTime": time} for level in LEVELS for time in ("operation", "future")), {"afterClusterTime": "operation"},
    {"level": "snapshot", "atClusterTime": "future"}, {"level": "snapshot", "atClusterTime": Timestamp(0, 0)}, {"afterClusterTime": Timestamp(0, 0)},
    {"level": "snapshot", "atClusterTime": None}, {"level": "snapshot", "atClusterTime": 1}, {"afterClusterTime": "x"}, {"level": "local", "atClusterTime": "operation"},
    {"atClusterTime": "operation"}, {"level": "snapshot", "atClusterTime": "operation", "afterClusterTime": "operation"}, {"level": "bogus"}, {"level": 1},
    {"afterClusterTime": "operation", "afterOpTime": {"ts": Timestamp(1, 1), "t": Int64(1)}}, {"bogus": 1},
], ids=repr)
def test_times_of_read_concerns(reading, concern):
    reading.play([{"ping": 1}, {**ONE, "readConcern": concern}, {**ONE, **t("a", 1, **START), "readConcern": concern}])


@pytest.mark.parametrize("value", [0, 1, -1, "x", 1.5, 10**10, None], ids=repr)
def test_the_window_of_snapshots_is_a_parameter(sides, value):
    default = {"setParameter": 1, "minSnapshotHistoryWindowInSeconds": 60, "on": "admin"}
    for side in sides:
        side.ask(dict(default))
    play(sides, [{**default, "minSnapshotHistoryWindowInSeconds": value}, default], texts=False)


def test_a_time_that_is_too_old(members):
    for side in members:
        side.ask({"setParameter": 1, "minSnapshotHistoryWindowInSeconds": 1, "on": "admin"})
        first = bson.decode(side.wire.command(side.database, {**ONE, "readConcern": SNAPSHOT}))["cursor"]["atClusterTime"]
        for _ in range(60):
            side.ask({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"x": 1}}}]})
            reply = bson.decode(side.wire.command(side.database, {"find": "c", "filter": {"_id": 2}, "readConcern": SNAPSHOT}))
            time.sleep(0.1)
        reply = bson.decode(side.wire.command(side.database, {**ONE, "readConcern": {**SNAPSHOT, "atClusterTime": first}}))
        assert (reply["code"], reply["codeName"]) == (239, "SnapshotTooOld")
        assert re.fullmatch(r"Read timestamp Timestamp\(\d+, \d+\) is older than the oldest available timestamp\.", reply["errmsg"])
        side.ask({"setParameter": 1, "minSnapshotHistoryWindowInSeconds": 60, "on": "admin"})


QUORUMS = ["majority", "votingMembers", "", "foo", 0, 1, 2, 50, 51, -1, 0.9, 1.5, Int64(1), None, True, {}, [1]]


@pytest.mark.parametrize("given", QUORUMS, ids=repr)
def test_commit_quorum(reading, given):
    ask = {"createIndexes": "c", "indexes": [{"key": {"quorum": 1}, "name": "quorum"}], "commitQuorum": given}
    reading.play([ask, ask, {**ask, "createIndexes": "other"}])


def test_commit_quorum_in_a_transaction(reading):
    ask = {"createIndexes": "fresh", "indexes": [{"key": {"x": 1}, "name": "x"}], "lsid": "q", "txnNumber": Int64(1), "autocommit": False}
    reading.play([{**ask, "startTransaction": True}, ask, {"commitTransaction": 1, "lsid": "q", "txnNumber": Int64(1), "autocommit": False, "on": "admin"}])


@pytest.mark.parametrize("options", [{"background": True}, {"background": True, "full": True}, {"background": 1, "full": 1}], ids=repr)
@pytest.mark.parametrize("name", ["c", "zz"])
def test_validate_in_the_background(reading, name, options):
    oracle, pando = (reading.ask(at, {"validate": name, **options}) for at in range(2))
    assert [pando.get(field) for field in ("valid", "code", "errmsg")] == [oracle.get(field) for field in ("valid", "code", "errmsg")]
