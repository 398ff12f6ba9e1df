"""Ranged scans: an aggregation over a large collection is read by several threads, and gives what one thread gives."""

import threading
import time

import pytest
from pymongo.errors import ExecutionTimeout, OperationFailure

from server import Server

# Four ranges of ten thousand at least.
DOCUMENTS = 45_000

# Pipelines whose first stages gather. Groups come in the order in which one thread meets them.
PIPELINES = {
    "counts and sums": [{"$group": {"_id": "$few", "n": {"$sum": 1}, "k": {"$sum": "$k"}, "a": {"$avg": "$k"}}}],
    "many groups": [{"$group": {"_id": "$many", "n": {"$count": {}}}}],
    "a group for each document": [{"$group": {"_id": "$k", "x": {"$max": "$few"}}}],
    "the order of the input": [
        {"$group": {"_id": "$few", "first": {"$first": "$_id"}, "last": {"$last": "$_id"}, "ids": {"$push": "$_id"},
                    "three": {"$firstN": {"input": "$_id", "n": 3}}, "end": {"$lastN": {"input": "$_id", "n": 3}}}}],
    "stages in front": [
        {"$match": {"few": {"$gt": 3}}}, {"$addFields": {"twice": {"$multiply": ["$k", 2]}}}, {"$unwind": "$tags"},
        {"$group": {"_id": "$tags", "n": {"$sum": "$twice"}, "least": {"$min": "$text"}}}],
    "facets": [{"$facet": {
        "kinds": [{"$group": {"_id": "$few", "n": {"$sum": 1}}}],
        "top": [{"$match": {"few": 2}}, {"$sort": {"k": -1}}, {"$limit": 5}],
        "count": [{"$match": {"many": {"$lt": 100}}}, {"$count": "n"}]}}],
    "a count behind a filter": [{"$match": {"$expr": {"$gt": ["$k", 100]}}}, {"$addFields": {"a": 1}}, {"$count": "n"}],
    "a sort with a limit": [{"$unwind": "$tags"}, {"$sort": {"few": 1, "k": -1, "tags": 1}}, {"$limit": 50}],
    "a filter without matches": [{"$match": {"few": 77}}, {"$group": {"_id": None, "n": {"$sum": 1}}}],
    "windows of partitions": [
        {"$setWindowFields": {"partitionBy": "$few", "sortBy": {"many": 1}, "output": {
            "sum": {"$sum": "$k", "window": {"documents": [-9, 0]}}, "at": {"$documentNumber": {}}, "next": {"$shift": {"output": "$_id", "by": 1}}}}},
        {"$match": {"_id": {"$mod": [37, 5]}}}, {"$project": {"sum": 1, "at": 1, "next": 1}}],
    "windows in the order of the input": [
        {"$addFields": {"twice": {"$multiply": ["$k", 2]}}}, {"$unwind": "$tags"},
        {"$setWindowFields": {"partitionBy": "$tags", "output": {"all": {"$sum": "$twice"}}}}, {"$match": {"_id": {"$mod": [97, 5]}}}, {"$project": {"tags": 1, "all": 1}}],
    "a range of ids": [{"$match": {"_id": {"$gte": 5_000, "$lt": 44_000}}}, {"$group": {"_id": "$few", "n": {"$sum": 1}, "first": {"$first": "$_id"}, "last": {"$last": "$_id"}}}],
    "windows over a range of ids": [
        {"$match": {"_id": {"$gt": 900}, "few": {"$ne": 4}}},
        {"$setWindowFields": {"sortBy": {"few": 1}, "output": {"rank": {"$rank": {}}, "m": {"$avg": "$k", "window": {"documents": [-3, 3]}}}}},
        {"$match": {"_id": {"$mod": [37, 5]}}}, {"$project": {"rank": 1, "m": 1}}],
}  # fmt: skip


def filled(server):
    client = server.client()
    client.ranged.c.insert_many(
        {"_id": i, "k": i * 7919 % DOCUMENTS, "few": i % 10, "many": i % 9973, "text": f"{i * 31 % 1000:03}",
         "tags": [i % 7, i % 11, i % 13]}
        for i in range(DOCUMENTS))  # fmt: skip
    return client


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranged")
    servers = [Server(folder / threads, "--query-threads", threads).start() for threads in ("1", "8")]
    clients = [filled(server) for server in servers]
    yield clients
    for server, client in zip(servers, clients):
        client.close()
        assert server.stop() == 0, server.log()
        assert "panic" not in server.log()


def scans(client):
    return client.admin.command("serverStatus")["pando"]["rangedScans"]


@pytest.mark.parametrize("name", PIPELINES)
def test_several_threads_give_what_one_gives(both, name):
    one, several = both
    before = scans(several)
    assert list(several.ranged.c.aggregate(PIPELINES[name])) == list(one.ranged.c.aggregate(PIPELINES[name]))
    after = scans(several)
    assert after["scans"] - before["scans"] == 1
    # Estimates are coarse as long as documents stand in write buffers: then there are fewer ranges.
    assert 2 <= after["ranges"] - before["ranges"] <= 4
    assert scans(one) == {"scans": 0, "ranges": 0}


def test_answers_in_batches_and_into_a_collection_are_the_same(both):
    stages = [{"$group": {"_id": "$many", "n": {"$sum": "$k"}}}, {"$sort": {"_id": 1}}]
    answers = []
    for client in both:
        in_batches = list(client.ranged.c.aggregate(stages, batchSize=7))
        client.ranged.c.aggregate([*stages, {"$out": "made"}])
        assert list(client.ranged.made.find()) == in_batches
        answers.append(in_batches)
    assert answers[0] == answers[1]


def test_spilling_threads_give_the_same(both):
    stages = [{"$group": {"_id": "$k", "ids": {"$push": "$tags"}, "first": {"$first": "$text"}}}, {"$sort": {"_id": 1}}]
    one, several = both
    whole = list(one.ranged.c.aggregate(stages))
    memory = several.admin.command("getParameter", 1, queryMemory=1)["queryMemory"]
    several.admin.command("setParameter", 1, queryMemory="1MiB")
    try:
        spills = several.admin.command("serverStatus")["pando"]["queryMemory"]["spills"]
        assert list(several.ranged.c.aggregate(stages)) == whole
        assert several.admin.command("serverStatus")["pando"]["queryMemory"]["spills"] > spills
    finally:
        several.admin.command("setParameter", 1, queryMemory=memory)


def test_windows_of_spilling_threads_are_the_same(both):
    stages = [{"$setWindowFields": {"partitionBy": "$few", "sortBy": {"many": -1}, "output": {"sum": {"$sum": "$k", "window": {"documents": [-5, 5]}}}}},
              {"$match": {"_id": {"$mod": [37, 5]}}}]
    one, several = both
    whole = list(one.ranged.c.aggregate(stages))
    memory = several.admin.command("getParameter", 1, queryMemory=1)["queryMemory"]
    several.admin.command("setParameter", 1, queryMemory="1MiB")
    try:
        spills = several.admin.command("serverStatus")["pando"]["queryMemory"]["spills"]
        assert list(several.ranged.c.aggregate(stages)) == whole
        assert several.admin.command("serverStatus")["pando"]["queryMemory"]["spills"] > spills
    finally:
        several.admin.command("setParameter", 1, queryMemory=memory)


def test_the_keys_of_a_range_of_ids_count_as_examined(both):
    examined = []
    for client in both:
        database = client.ranged
        database.command("profile", 2)
        stages = [{"$match": {"_id": {"$lt": 40_000}}}, {"$group": {"_id": None, "n": {"$sum": 1}}}]
        assert list(database.c.aggregate(stages, comment="a range")) == [{"_id": None, "n": 40_000}]
        database.command("profile", 0)
        entry = database["system.profile"].find_one({"command.comment": "a range"})
        examined.append((entry["keysExamined"], entry["docsExamined"]))
        database["system.profile"].drop()
    assert examined[0] == examined[1]


def test_the_first_error_in_the_order_of_the_documents_is_told(both):
    messages = []
    for client in both:
        client.ranged.c.update_one({"_id": 30_000}, {"$set": {"bad": "later"}})
        client.ranged.c.update_one({"_id": 20_000}, {"$set": {"bad": "earlier"}})
        with pytest.raises(OperationFailure) as error:
            client.ranged.c.aggregate([{"$group": {"_id": {"$toInt": "$bad"}, "n": {"$sum": 1}}}])
        messages.append((error.value.code, error.value.details["errmsg"]))
        client.ranged.c.update_many({"bad": {"$exists": True}}, {"$unset": {"bad": 1}})
    assert messages[0] == messages[1]
    assert "earlier" in messages[0][1]


def test_a_first_batch_without_documents_reads_nothing_twice(both):
    stages = [{"$group": {"_id": None, "n": {"$sum": 1}}}]
    for client in both:
        assert list(client.ranged.c.aggregate(stages, batchSize=0)) == [{"_id": None, "n": DOCUMENTS}]


def test_arguments_that_one_thread_spares_are_not_evaluated(both):
    # Only the first document of all has a divisor.
    stages = [{"$group": {"_id": None, "first": {"$first": {"$divide": [1, {"$cond": [{"$lt": ["$_id", 100]}, 2, 0]}]}}}}]
    for client in both:
        assert list(client.ranged.c.aggregate(stages)) == [{"_id": None, "first": 0.5}]


def test_writers_beside_a_scan_change_no_sum(tmp_path):
    server = Server(tmp_path / "data", "--query-threads", "32").start()
    with server.client() as client:
        over = threading.Event()

        def write():
            k = 0
            while not over.is_set():
                client.moving.c.insert_many([{"_id": (k + i) * 2654435761 % (1 << 32), "k": k + i, "pad": "x" * 80} for i in range(1000)])
                k += 1000

        writer = threading.Thread(target=write)
        writer.start()
        ends = time.monotonic() + 8
        while time.monotonic() < ends:
            for found in client.moving.c.aggregate([{"$group": {"_id": None, "n": {"$sum": 1}, "k": {"$max": "$k"}}}]):
                assert found["n"] == found["k"] + 1
        over.set()
        writer.join()
    assert server.stop() == 0, server.log()


def test_a_time_limit_ends_a_filter_that_nothing_passes(both):
    slow = {"$expr": {"$eq": [-1, {"$reduce": {"input": {"$range": [0, 500]}, "initialValue": "$k", "in": {"$add": ["$$value", 1]}}}]}}
    with pytest.raises(ExecutionTimeout):
        both[1].ranged.c.aggregate([{"$match": slow}, {"$group": {"_id": "$few"}}], maxTimeMS=50)
    assert is_idle(both[1])


# Some milliseconds for each document.
SLOW = [{"$group": {"_id": {"$reduce": {"input": {"$range": [0, 20_000]}, "initialValue": "$k", "in": {"$add": ["$$value", "$$this"]}}}}}]


def test_a_time_limit_ends_all_threads(both):
    with pytest.raises(ExecutionTimeout):
        both[1].ranged.c.aggregate(SLOW, maxTimeMS=50)
    assert is_idle(both[1])


def test_a_kill_ends_all_threads(both):
    client, failures = both[1], []

    def ask():
        try:
            client.ranged.c.aggregate(SLOW, comment="slow one")
        except OperationFailure as error:
            failures.append(error.code)

    asking = threading.Thread(target=ask)
    asking.start()
    while not (found := [op for op in client.admin.command("currentOp")["inprog"] if op.get("command", {}).get("comment") == "slow one"]):
        time.sleep(0.01)
    client.admin.command("killOp", op=found[0]["opid"])
    asking.join()
    assert failures == [11601]
    assert is_idle(client)


def is_idle(client):
    """The threads have given their memory and their snapshots back."""
    status = client.admin.command("serverStatus")["pando"]
    return status["queryMemory"]["heldBytes"] == 0 and status["liveTransactions"] == 0


# ---- ranged filters: documents that come as they are found

# One of a hundred documents passes, and one of ten.
FILTERS = {"rare": {"many": {"$lt": 100}}, "less rare": {"few": 3, "tags": {"$ne": 5}}, "none": {"text": "none"}, "an expression": {"$expr": {"$eq": ["$many", 7]}}}


@pytest.mark.parametrize("batch", [None, 1, 7, 400])
@pytest.mark.parametrize("name", FILTERS)
def test_a_rare_filter_gives_the_same_documents_in_the_same_order(both, name, batch):
    options = {} if batch is None else {"batch_size": batch}
    answers = []
    for client in both:
        before, c = scans(client), client.ranged.c
        found = list(c.find(FILTERS[name], {"tags": 0}, **options))
        stages = [{"$match": FILTERS[name]}, {"$set": {"twice": {"$multiply": ["$k", 2]}}}]
        matched = list(c.aggregate(stages, **({} if batch is None else {"batchSize": batch})))
        assert [one["_id"] for one in matched] == [one["_id"] for one in found]
        answers.append((found, matched))
        made = scans(client)["scans"] - before["scans"]
        # Small batches are found on the event loop, where no document is far from the next.
        assert made == 2 if client is both[1] and batch in (None, 400) else made <= (2 if client is both[1] else 0)
    assert answers[0] == answers[1]
    assert is_idle(both[1])


def test_filters_that_many_documents_pass_and_limits_are_read_by_one_thread(both):
    before = scans(both[1])
    assert len(list(both[1].ranged.c.find({"few": {"$lt": 9}}))) == DOCUMENTS * 9 // 10
    assert len(list(both[1].ranged.c.find({"many": {"$lt": 100}}).limit(300))) == 300
    assert scans(both[1]) == before


def test_stages_that_join_and_group_behind_a_rare_filter_see_its_documents(both):
    stages = [{"$match": {"many": {"$lt": 100}}}, {"$lookup": {"from": "c", "localField": "_id", "foreignField": "_id", "as": "j"}},
              {"$unwind": "$j"}, {"$group": {"_id": "$j.few", "n": {"$sum": 1}, "first": {"$first": "$_id"}}}]  # fmt: skip
    assert list(both[1].ranged.c.aggregate(stages)) == list(both[0].ranged.c.aggregate(stages))


def test_a_rare_filter_reads_the_snapshot_of_its_cursor(both):
    client = both[1]
    client.ranged.c.aggregate([{"$out": "moved"}])
    cursor = client.ranged.moved.find({"many": {"$lt": 100}}, batch_size=150)
    ids = [next(cursor)["_id"] for _ in range(2)]
    client.ranged.moved.update_many({}, {"$set": {"many": 0}})
    ids += [one["_id"] for one in cursor]
    assert ids == [one["_id"] for one in client.ranged.c.find({"many": {"$lt": 100}}, {"_id": 1})]
    client.ranged.moved.drop()


def test_a_cursor_that_is_closed_gives_the_memory_of_what_was_found_back(both):
    client = both[1]
    before = scans(client)
    cursor = client.ranged.c.find({"many": {"$lt": 500}}, batch_size=450)
    for _ in range(901):
        next(cursor)
    assert scans(client)["scans"] - before["scans"] == 1
    cursor.close()
    assert is_idle(client)


def test_a_filter_that_fails_tells_the_first_error_behind_the_documents_in_front_of_it(both):
    condition = {"$expr": {"$eq": [{"$toInt": {"$ifNull": ["$bad", {"$toString": "$many"}]}}, 7]}}
    answers = []
    for client in both:
        client.ranged.c.update_one({"_id": 39_000}, {"$set": {"bad": "later"}})
        client.ranged.c.update_one({"_id": 37_000}, {"$set": {"bad": "earlier"}})
        found = []
        with pytest.raises(OperationFailure) as error:
            found.extend(one["_id"] for one in client.ranged.c.find(condition, batch_size=1))
        answers.append((found, error.value.code, error.value.details["errmsg"]))
        client.ranged.c.update_many({"bad": {"$exists": True}}, {"$unset": {"bad": 1}})
    assert answers[0] == answers[1]
    assert "earlier" in answers[0][2]
    assert is_idle(both[1])


def test_a_time_limit_and_a_kill_end_a_rare_filter(both):
    client = both[1]
    slow = {"$expr": {"$eq": [-1, {"$reduce": {"input": {"$range": [0, 300]}, "initialValue": "$k", "in": {"$add": ["$$value", 1]}}}]}}
    with pytest.raises(ExecutionTimeout):
        list(client.ranged.c.find(slow, max_time_ms=300))
    assert is_idle(client)
    failures = []

    def ask():
        try:
            list(client.ranged.c.find(slow, comment="slow filter"))
        except OperationFailure as error:
            failures.append(error.code)

    asking = threading.Thread(target=ask)
    asking.start()
    while not (found := [op for op in client.admin.command("currentOp")["inprog"] if op.get("command", {}).get("comment") == "slow filter"]):
        time.sleep(0.01)
    time.sleep(0.3)
    client.admin.command("killOp", op=found[0]["opid"])
    asking.join()
    assert failures == [11601]
    assert is_idle(client)


# ---- sorts of a whole collection for its first documents

SORTS = [({}, {"few": 1, "k": -1}), ({}, {"few": -1}), ({"many": {"$gt": 5000}}, {"tags": 1, "few": 1}), ({"few": 77}, {"k": 1})]


@pytest.mark.parametrize("query,pattern", SORTS)
def test_the_first_documents_of_a_sort_are_those_of_one_thread(both, query, pattern):
    answers = []
    for client in both:
        before, c = scans(client), client.ranged.c
        found = list(c.find(query, {"text": 0}).sort(list(pattern.items())).limit(150).batch_size(40))
        piped = list(c.aggregate([{"$match": query}, {"$sort": pattern}, {"$limit": 150}, {"$unset": "text"}]))
        # Documents of equal keys come in the order of the scan.
        assert piped == found
        answers.append(found)
        assert scans(client)["scans"] - before["scans"] == (2 if client is both[1] else 0)
    assert answers[0] == answers[1]
    assert is_idle(both[1])


def test_a_sort_that_skips_or_gives_all_is_one_threads(both):
    before = scans(both[1])
    sort = [("few", 1), ("k", -1)]
    assert list(both[1].ranged.c.find().sort(sort).skip(100).limit(20)) == list(both[0].ranged.c.find().sort(sort).skip(100).limit(20))
    assert len(list(both[1].ranged.c.find({}, {"k": 1}).sort(sort))) == DOCUMENTS
    assert scans(both[1]) == before
