"""The memory of queries: with little of it they spill, and give what they give with much; afterwards nothing is held.

The server has a cache of 64 MB. `setParameter` changes the memory of queries between 1 MiB, where everything spills, and 60 MB, where
nothing does.
"""

import concurrent.futures
import time

import pytest
from pymongo.errors import OperationFailure

from server import Server

DOCUMENTS = 30_000
LITTLE, MUCH = "1MiB", "60MB"


@pytest.fixture(scope="module")
def spilling(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("spilling") / "data", "--cache", "64MB", "--query-memory", LITTLE).start()
    with server.client(maxPoolSize=80) as client:
        client.spill.c.insert_many([
            {"_id": i, "k": i * 7919 % DOCUMENTS, "few": i % 10, "many": i % 9973, "text": f"{i * 31 % 1000:03}" * 30,
             "tags": [i % 7, i % 11, i % 13]}
            for i in range(DOCUMENTS)])
        client.spill.c.create_index("tags")
        yield server, client
    assert server.is_running(), server.log()
    assert server.stop() == 0, server.log()
    assert "panic" not in server.log()


def memory(client):
    return client.admin.command("serverStatus")["pando"]["queryMemory"]


def set_memory(client, size):
    return client.admin.command("setParameter", 1, queryMemory=size)


def is_released(server, client):
    figures = memory(client)
    left = list((server.folder / "scratch").iterdir()) if (server.folder / "scratch").exists() else []
    assert (figures["heldBytes"], figures["scratchFiles"], figures["scratchBytes"], left) == (0, 0, 0, []), figures
    return True


# Pipelines whose last stage gives the documents in one order only.
PIPELINES = {
    "sort": [{"$sort": {"text": 1, "k": -1}}],
    "sort of whole documents behind a projection": [{"$project": {"tags": 0}}, {"$sort": {"few": 1, "_id": 1}}],
    "top": [{"$match": {}}, {"$project": {"text": 1, "k": 1}}, {"$sort": {"k": 1}}, {"$limit": 20_000}],
    "groups with every accumulator": [
        {"$group": {"_id": "$many", "sum": {"$sum": "$k"}, "avg": {"$avg": "$k"}, "min": {"$min": "$k"}, "max": {"$max": "$text"},
                    "first": {"$first": "$_id"}, "last": {"$last": "$_id"}, "count": {"$count": {}}, "push": {"$push": "$few"},
                    "set": {"$addToSet": "$few"}, "merged": {"$mergeObjects": {"a": "$k"}}, "pop": {"$stdDevPop": "$few"},
                    "firsts": {"$firstN": {"input": "$k", "n": 2}}, "lasts": {"$lastN": {"input": "$k", "n": 2}},
                    "least": {"$minN": {"input": "$k", "n": 2}}, "most": {"$maxN": {"input": "$k", "n": 2}}}},
        {"$sort": {"_id": 1}}],
    "few groups of whole documents": [
        {"$group": {"_id": "$few", "all": {"$push": "$$ROOT"}}}, {"$project": {"all": {"$slice": ["$all", 3]}, "n": {"$size": "$all"}}},
        {"$sort": {"_id": 1}}],
    "sorted by count": [{"$sortByCount": "$many"}, {"$sort": {"count": -1, "_id": 1}}],
    "buckets": [{"$bucket": {"groupBy": "$k", "boundaries": list(range(0, DOCUMENTS + 1, 1000)), "output": {"ids": {"$push": "$_id"}}}}],
    "facets": [{"$facet": {
        "sorted": [{"$sort": {"text": 1, "_id": 1}}, {"$limit": 100}],
        "grouped": [{"$group": {"_id": "$many", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}, {"$limit": 100}],
        "counted": [{"$unwind": "$tags"}, {"$count": "n"}],
        "first": [{"$limit": 3}]}}],
    "lookup": [
        {"$match": {"_id": {"$lt": 3}}},
        {"$lookup": {"from": "c", "localField": "few", "foreignField": "few", "pipeline": [{"$sort": {"k": 1}}], "as": "same"}}],
    "automatic buckets": [{"$bucketAuto": {"groupBy": "$k", "buckets": 40, "output": {"n": {"$sum": 1}, "first": {"$first": "$_id"}, "texts": {"$addToSet": "$few"}}}},
                          {"$project": {"n": 1, "first": 1, "texts": {"$size": "$texts"}}}],
    "windows": [
        {"$setWindowFields": {"partitionBy": "$few", "sortBy": {"k": 1}, "output": {
            "sum": {"$sum": "$many", "window": {"documents": [-20, 3]}}, "mean": {"$avg": "$many", "window": {"range": [-500, 500]}},
            "most": {"$max": "$text", "window": {"documents": [-2, 2]}}, "so_far": {"$sum": 1, "window": {"documents": ["unbounded", "current"]}},
            "rank": {"$rank": {}}, "before": {"$shift": {"output": "$_id", "by": -3}}, "all": {"$push": "$tags", "window": {"documents": [0, 2]}}}}}],
    "gaps": [{"$match": {"few": {"$ne": 3}}}, {"$project": {"k": 1, "text": 1}}, {"$densify": {"field": "k", "range": {"step": 1, "bounds": "full"}}}],
    "gaps that are filled": [
        {"$match": {"few": {"$ne": 3}}}, {"$project": {"k": 1, "text": 1, "many": 1}}, {"$densify": {"field": "k", "range": {"step": 1, "bounds": "full"}}},
        {"$fill": {"sortBy": {"k": 1}, "output": {"text": {"method": "locf"}, "many": {"method": "linear"}, "made": {"value": "yes"}}}}],
    "united": [{"$match": {"_id": {"$lt": 10_000}}}, {"$unionWith": {"coll": "c", "pipeline": [{"$sort": {"text": -1, "_id": 1}}]}}, {"$sort": {"k": 1, "_id": 1}}],
    "a graph": [
        {"$match": {"_id": {"$lt": 3}}},
        {"$graphLookup": {"from": "c", "startWith": "$few", "connectFromField": "many", "connectToField": "few", "maxDepth": 0, "as": "near"}},
        {"$unwind": "$near"}, {"$project": {"near": "$near._id"}}, {"$sort": {"_id": 1, "near": 1}}],
    "unwound and grouped": [
        {"$unwind": "$tags"}, {"$group": {"_id": {"t": "$tags", "m": "$many"}, "ids": {"$push": "$_id"}}}, {"$sort": {"_id": 1}}],
}


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_gives_the_same_with_little_memory(spilling, name):
    server, client = spilling
    set_memory(client, MUCH)
    expected = list(client.spill.c.aggregate(PIPELINES[name]))
    set_memory(client, LITTLE)
    before = memory(client)["spills"]
    found = list(client.spill.c.aggregate(PIPELINES[name]))
    for documents in expected, found:
        for document in documents:
            if "set" in document:
                document["set"].sort()
    assert found == expected
    assert name == "buckets" or memory(client)["spills"] > before
    assert is_released(server, client)


@pytest.mark.parametrize("name", PIPELINES)
def test_a_pipeline_gives_the_same_in_many_batches(spilling, name):
    server, client = spilling
    set_memory(client, MUCH)
    expected = list(client.spill.c.aggregate(PIPELINES[name], batchSize=1_000_000))
    for memory_size, batch in ((MUCH, 613), (LITTLE, 997)):
        set_memory(client, memory_size)
        found = list(client.spill.c.aggregate(PIPELINES[name], batchSize=batch))
        for documents in expected, found:
            for document in documents:
                if "set" in document:
                    document["set"].sort()
        assert found == expected, memory_size
    assert is_released(server, client)


def test_finds_and_distincts_give_the_same_with_little_memory(spilling):
    server, client = spilling
    c = client.spill.c
    questions = [
        lambda: list(c.find({}, {"k": 1}).sort("k", -1)),
        lambda: list(c.find({}).sort([("text", 1), ("_id", 1)]).limit(DOCUMENTS - 1)),
        # A document has several entries in the range, and comes once.
        lambda: sorted(d["_id"] for d in c.find({"tags": {"$gte": 0}}, {"_id": 1}).hint("tags_1")),
        lambda: c.distinct("k"),
        lambda: c.distinct("text"),
    ]
    for question in questions:
        set_memory(client, MUCH)
        expected = question()
        set_memory(client, LITTLE)
        before = memory(client)["spills"]
        assert question() == expected
        assert memory(client)["spills"] > before or len(expected) < 2000
    assert is_released(server, client)


def test_sixty_four_at_once_give_the_right_answers(spilling):
    server, client = spilling
    set_memory(client, LITTLE)
    names = ["sort", "groups with every accumulator", "facets", "few groups of whole documents"]

    def run(number):
        documents = list(client.spill.c.aggregate(PIPELINES[names[number % 4]]))
        match number % 4:
            case 0:
                keys = [(d["text"], -d["k"]) for d in documents]
                return keys == sorted(keys) and len(keys) == DOCUMENTS
            case 1:
                return sum(d["count"] for d in documents) == DOCUMENTS and len(documents) == 9973
            case 2:
                return documents[0]["counted"] == [{"n": 3 * DOCUMENTS}]
            case _:
                return [(d["n"], [e["_id"] for e in d["all"]]) for d in documents] == [
                    (DOCUMENTS // 10, [few, few + 10, few + 20]) for few in range(10)]

    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        assert all(pool.map(run, range(64)))
    assert is_released(server, client)


def test_without_disk_use_a_stage_ends_where_its_memory_does(spilling):
    server, client = spilling
    set_memory(client, LITTLE)
    for pipeline in PIPELINES["sort"], PIPELINES["groups with every accumulator"]:
        with pytest.raises(OperationFailure) as refused:
            list(client.spill.c.aggregate(pipeline, allowDiskUse=False))
        assert refused.value.code == 292, refused.value
        assert "--query-memory" in refused.value.details["errmsg"]
    with pytest.raises(OperationFailure) as refused:
        list(client.spill.c.find().sort("k", 1).allow_disk_use(False))
    assert refused.value.code == 292, refused.value
    assert is_released(server, client)


def test_an_open_cursor_holds_its_memory_until_it_is_closed(spilling):
    server, client = spilling
    set_memory(client, MUCH)
    cursor = client.spill.c.aggregate(PIPELINES["sort"], batchSize=10)
    next(cursor)
    held = memory(client)["heldBytes"]
    assert DOCUMENTS * 90 < held < 60_000_000, held
    cursor.close()
    assert is_released(server, client)


def test_the_documents_of_a_join_that_are_unwound_spill(spilling):
    server, client = spilling
    database, count = client.joins, 25_000
    database.customers.insert_many([{"_id": 1}, {"_id": 2}])
    database.orders.insert_many([{"_id": n, "customer": 1, "text": "x" * 1000} for n in range(count)])
    database.orders.create_index("customer")
    set_memory(client, LITTLE)
    of_fields = {"localField": "_id", "foreignField": "customer"}
    of_variables = {"let": {"id": "$_id"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$customer", "$$id"]}}}]}
    for way, customers in [(of_fields, 1), (of_variables, 1), ({"pipeline": []}, 2)]:
        join = {"$lookup": {"from": "orders", "as": "o"} | way}
        figures = {"_id": None, "n": {"$sum": 1}, "last": {"$max": "$at"}, "ids": {"$sum": "$o._id"}, "moved": {"$sum": {"$cond": [{"$eq": ["$o._id", "$at"]}, 0, 1]}}}
        stages = [join, {"$unwind": {"path": "$o", "includeArrayIndex": "at"}}, {"$group": figures}]
        found = list(database.customers.aggregate(stages))
        wanted = {"_id": None, "n": customers * count, "last": count - 1, "ids": customers * count * (count - 1) // 2, "moved": 0}
        assert found == [wanted], way
        assert len(list(database.customers.aggregate([join, {"$unwind": "$o"}, {"$limit": 5}], allowDiskUse=False))) == 5
    assert is_released(server, client)


def test_the_memory_of_queries_is_a_parameter_with_bounds(spilling):
    _, client = spilling
    set_memory(client, 5_000_000)
    assert set_memory(client, LITTLE)["was"] == 5000000
    assert client.admin.command("getParameter", 1, queryMemory=1)["queryMemory"] == 1 << 20
    for impossible in "1KB", "100GB", "much", -1:
        with pytest.raises(OperationFailure) as refused:
            set_memory(client, impossible)
        assert refused.value.code == 2 and "queryMemory must be a size" in refused.value.details["errmsg"]
    assert memory(client)["limitBytes"] == 1 << 20


def test_a_killed_server_leaves_no_scratch_file(tmp_path):
    server = Server(tmp_path / "data", "--query-memory", LITTLE).start()
    with server.client() as client:
        client.spill.c.insert_many([{"_id": i, "text": f"{i * 7919 % 20_000:05}" * 20} for i in range(20_000)])
        cursor = client.spill.c.find({}).sort("text", 1).batch_size(10)
        next(cursor)
        assert memory(client)["scratchFiles"] > 0
        assert list((server.folder / "scratch").iterdir()) == []
        server.kill()
    (server.folder / "scratch" / "00000001.scratch").write_bytes(b"of a process that was killed between two steps")
    server.start()
    with server.client() as client:
        deadline = time.monotonic() + 10
        while list((server.folder / "scratch").iterdir()) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert list((server.folder / "scratch").iterdir()) == []
        texts = [d["text"] for d in client.spill.c.find({}).sort("text", 1)]
        assert len(texts) == 20_000 and texts == sorted(texts)
    assert server.stop() == 0, server.log()
