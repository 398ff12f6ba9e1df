"""The measure of aggregation pipelines: each is timed on Pando and MongoDB, which take turns within a round.

1. Both sides load the same documents (everyday.py), orders to join, and the tables of TPC-H (tests/python/test_tpch.py).
2. Each pipeline runs once, untimed; then PIPELINE_ROUNDS times. Answers are drained undecoded.
3. A third server has a small memory for queries, so that a group spills.

`PIPELINE_DOCUMENTS` is the size of the collection, 1 million; `PIPELINES` names some of the pipelines.
"""

import importlib.util
import os
import pathlib
import sys
import time

import everyday
from servers import Mongod, Pando, client_of, mongod_program

DOCUMENTS = int(os.environ.get("PIPELINE_DOCUMENTS", "1000000"))
ROUNDS = int(os.environ.get("PIPELINE_ROUNDS", "3"))
LOOKED_UP = min(100_000, DOCUMENTS)
# MongoDB 6.0 scans the other collection for each document: 100,000 of them would take an hour.
LOOKED_UP_PLAIN = LOOKED_UP // 100
BATCH = 5000

SUMS = {"n": {"$sum": 1}, "price": {"$avg": "$price"}}


def joined(foreign, documents):
    return [
        {"$match": {"_id": {"$lt": documents}}},
        {"$lookup": {"from": "orders", "localField": "rank", "foreignField": foreign, "as": "orders"}},
        {"$project": {"n": {"$size": "$orders"}}},
    ]


def grouped(key):
    return [{"$group": {"_id": key, **SUMS}}, {"$match": {"n": {"$lt": 0}}}]


# name -> stages over `items`. Many groups are counted, not sent.
PIPELINES = {
    "group_10": grouped("$kind"),
    "group_10000": grouped({"$mod": ["$key", 10_000]}),
    "group_all": grouped("$rank"),
    "sort_limit": [{"$sort": {"stock": -1, "name": 1}}, {"$limit": 100}],
    "lookup_indexed": joined("indexed", LOOKED_UP),
    "lookup_unindexed": joined("plain", LOOKED_UP_PLAIN),
    "unwind_group": [{"$unwind": "$tags"}, {"$group": {"_id": "$tags", **SUMS}}],
    "windows": [
        {"$match": {"_id": {"$lt": LOOKED_UP}}},
        {"$setWindowFields": {"partitionBy": "$kind", "sortBy": {"rank": 1},
                              "output": {"sum": {"$sum": "$price", "window": {"documents": [-10, 0]}}, "at": {"$documentNumber": {}}}}},
        {"$project": {"sum": 1, "at": 1}},
    ],
    "facet": [{"$facet": {
        "kinds": [{"$group": {"_id": "$kind", **SUMS}}],
        "dearest": [{"$sort": {"price": -1}}, {"$limit": 10}],
        "stock": [{"$match": {"stock": {"$lt": 100}}}, {"$count": "n"}],
    }}],
    "merge": [{"$match": {"_id": {"$lt": LOOKED_UP}}}, {"$set": {"note": "new"}}, {"$merge": "merged"}],
    "match_one_percent": [{"$match": {"stock": {"$lt": 10}}}, {"$project": {"name": 1}}],
}


def tpch():
    """The module with the queries of TPC-H."""
    path = pathlib.Path(__file__).parents[1] / "python" / "test_tpch.py"
    specification = importlib.util.spec_from_file_location("tpch", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def fill(database, queries):
    everyday.DOCUMENTS = DOCUMENTS
    everyday.fill(database)
    for first in range(0, LOOKED_UP, BATCH):
        orders = [everyday.item(number)["rank"] for number in range(first, min(first + BATCH, LOOKED_UP))]
        database.orders.insert_many({"_id": first + at, "indexed": rank, "plain": rank, "amount": at} for at, rank in enumerate(orders))
    database.orders.create_index("indexed")
    for name, documents in queries.tables().items():
        database[name].insert_many(documents)


def run(database, queries, name):
    """Milliseconds of one pipeline, or of the whole of TPC-H."""
    began = time.perf_counter()
    if name == "tpch":
        for _, collection, pipeline in queries.QUERIES.values():
            everyday.drained(database[collection].aggregate_raw_batches(pipeline))
    else:
        everyday.drained(database.items.aggregate_raw_batches(PIPELINES[name], allowDiskUse=True))
    return (time.perf_counter() - began) * 1000


class LittleMemory(Pando):
    """A server whose queries have 8 MiB together."""

    def command(self):
        return [*super().command(), "--query-memory", "8MiB"]


def spilled(record, queries):
    """A group by as many keys as there are documents, within memory and beyond it."""
    times = {}
    for side, kind in {"within": Pando, "spilled": LittleMemory}.items():
        server = kind(f"pipelines-{side}", 2000).start()
        try:
            database = client_of(server.port).pipelines
            fill(database, queries)
            run(database, queries, "group_all")
            times[side] = [run(database, queries, "group_all") for _ in range(ROUNDS)]
        finally:
            server.end()
            server.remove()
    for within, beyond in zip(times["within"], times["spilled"]):
        record.add("spilled.by_within", beyond / within)


def measured(record, queries, wanted):
    """Measures pipelines on both sides in turns; gives the ratio of each."""
    kinds = {"pando": Pando} | ({"mongodb": Mongod} if mongod_program() else {})
    servers = {side: kind(f"pipelines-{side}", 2000).start() for side, kind in kinds.items()}
    ratios = []
    try:
        sides = {side: client_of(server.port).pipelines for side, server in servers.items()}
        for database in sides.values():
            fill(database, queries)
        for name in wanted:
            times = {side: [] for side in sides}
            for database in sides.values():
                run(database, queries, name)
            for turn in range(ROUNDS):
                for side in list(sides)[:: -1 if turn % 2 else 1]:
                    times[side].append(run(sides[side], queries, name))
                    record.add(f"{side}.{name}.ms", times[side][-1])
            if "mongodb" in times:
                ratios.append(everyday.ratio(times["pando"], times["mongodb"]))
                record.add(f"ratios.{name}", ratios[-1])
                print(f"  {name}: {min(times['pando']):.1f} ms, {ratios[-1]:.2f} x", file=sys.stderr, flush=True)
    finally:
        for server in servers.values():
            server.end()
            server.remove()
    return ratios


def pipelines(record):
    """Aggregation pipelines over 1 million documents, all in the cache, by one client."""
    ratios = measured(record, tpch(), os.environ.get("PIPELINES", "").split() or [*PIPELINES])
    if ratios:
        record.add("ratios.lowest", min(ratios))
        record.add("ratios.median", sorted(ratios)[len(ratios) // 2])


def reports(record):
    """The queries of TPC-H, of which MongoDB takes minutes a round, and a group that spills beside one in memory."""
    queries = tpch()
    measured(record, queries, ["tpch"])
    spilled(record, queries)


MEASURES = {"pipelines": pipelines, "reports": reports}
