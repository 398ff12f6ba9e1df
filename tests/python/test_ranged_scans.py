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
