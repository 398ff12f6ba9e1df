"""Thirty-three everyday operations, by one client each, on two servers that take turns.

Terms: an *operation* is a named function of one database; it is timed as a whole. `prepare` runs before it, untimed.

1. Both sides load the same documents and build the same indexes.
2. Each operation runs once on both sides, untimed, unless it writes; then ROUNDS times, the sides taking turns.
3. The ratio of an operation is the median of the ratios within a round: the other side's time by Pando's.

`everyday.py NAME…` prints some of them; without names all.
"""

import datetime
import math
import os
import random
import statistics
import sys
import time

from pymongo import ASCENDING, DeleteOne, UpdateOne

DOCUMENTS = int(os.environ.get("EVERYDAY_DOCUMENTS", "1000000"))
ROUNDS = int(os.environ.get("EVERYDAY_ROUNDS", "3"))
FEW_KEYS, MANY_KEYS, CITIES = 10, 100_000, 100
TAGS = ["red", "green", "blue", "large", "small", "old", "new", "sale"]
BEGAN = datetime.datetime(2024, 1, 1)


def item(number):
    """A document of about 250 bytes; every value follows from the number."""
    mixed = (number * 2654435761) & 0xFFFFFFFF
    return {
        "_id": number,
        "kind": mixed % FEW_KEYS,
        "key": (mixed >> 7) % MANY_KEYS,
        "city": f"city{mixed % CITIES:03}",
        "price": ((mixed >> 3) % 100_000) / 100,
        "rank": (number * 7919) % 1_000_003,
        "stock": mixed % 1000,
        "name": f"item number {number}",
        "tags": [TAGS[mixed % 8], TAGS[(mixed >> 5) % 8], TAGS[(mixed >> 11) % 8]],
        "size": {"width": mixed % 50, "height": (mixed >> 9) % 50},
        "at": BEGAN + datetime.timedelta(seconds=number),
        "note": "x" * 60,
    }


def fill(database):
    """The collections: `items`, indexed by city, price and rank; `keys` to look up; `scratch` for writes."""
    items = database.items
    for first in range(0, DOCUMENTS, 5000):
        items.insert_many((item(number) for number in range(first, min(first + 5000, DOCUMENTS))), ordered=False)
    for field in ("city", "price", "rank"):
        items.create_index(field)
    database.cities.insert_many({"_id": f"city{number:03}", "country": number % 7} for number in range(CITIES))


def drained(cursor):
    """The number of bytes of all batches, undecoded, so that the client costs little."""
    return sum(len(batch) for batch in cursor)


def aggregated(database, *stages):
    return list(database.items.aggregate(list(stages)))


OPERATIONS = {}


def operation(prepare=None):
    """Puts a function into the table of operations."""

    def add(function):
        OPERATIONS[function.__name__] = (function, prepare)
        return function

    return add


def empty_scratch(database):
    database.scratch.drop()
    for field in ("city", "price"):
        database.scratch.create_index(field)


def full_scratch(database):
    empty_scratch(database)
    for first in range(0, 100_000, 5000):
        database.scratch.insert_many([item(number) for number in range(first, first + 5000)], ordered=False)


def numbers(count, below=DOCUMENTS, seed=1):
    return random.Random(seed).sample(range(below), count)


# ---- loads


@operation(empty_scratch)
def load_many(database):
    for first in range(0, 50_000, 1000):
        database.scratch.insert_many([item(number) for number in range(first, first + 1000)])


@operation(empty_scratch)
def load_one_by_one(database):
    for number in range(2000):
        database.scratch.insert_one(item(number))


# ---- scans


@operation()
def scan_all(database):
    drained(database.items.find_raw_batches({"_id": {"$lt": 200_000}}))


@operation()
def scan_filter(database):
    list(database.items.find({"stock": {"$gt": 997}, "size.width": {"$lt": 2}}))


@operation()
def scan_regex(database):
    list(database.items.find({"name": {"$regex": "9999$"}}))


@operation()
def scan_projection(database):
    drained(database.items.find_raw_batches({"kind": 3}, {"name": 1, "price": 1}))


@operation()
def sort_scan(database):
    list(database.items.find({"_id": {"$lt": 200_000}}).sort("name").limit(50_000).hint("_id_"))[:1]


@operation()
def sort_limit(database):
    list(database.items.find().sort("stock", -1).limit(10))


# ---- counts


@operation()
def count_all(database):
    database.items.count_documents({})


@operation()
def count_estimated(database):
    for _ in range(50):
        database.items.estimated_document_count()


@operation()
def count_index_range(database):
    database.items.count_documents({"price": {"$gte": 250}})


@operation()
def count_scan(database):
    database.items.count_documents({"stock": {"$lt": 500}})


# ---- distincts


@operation()
def distinct_index(database):
    database.items.distinct("city")


@operation()
def distinct_scan(database):
    database.items.distinct("kind")


# ---- groups


@operation()
def group_few(database):
    aggregated(database, {"$group": {"_id": "$kind", "n": {"$sum": 1}, "price": {"$avg": "$price"}}})


@operation()
def group_many(database):
    aggregated(database, {"$group": {"_id": "$key", "n": {"$sum": 1}}}, {"$sort": {"n": -1}}, {"$limit": 10})


@operation()
def group_index(database):
    aggregated(database, {"$group": {"_id": "$city", "n": {"$sum": 1}}})


@operation()
def match_group(database):
    aggregated(
        database,
        {"$match": {"price": {"$gte": 100, "$lt": 200}}},
        {"$group": {"_id": "$city", "total": {"$sum": "$price"}}},
        {"$sort": {"_id": 1}},
    )


# ---- unwinds, lookups, facets


@operation()
def unwind_group(database):
    aggregated(
        database,
        {"$match": {"_id": {"$lt": 200_000}}},
        {"$unwind": "$tags"},
        {"$group": {"_id": "$tags", "n": {"$sum": 1}}},
    )


@operation()
def lookup_id(database):
    lookup = {"from": "cities", "localField": "city", "foreignField": "_id", "as": "found"}
    aggregated(
        database,
        {"$match": {"_id": {"$lt": 5000}}},
        {"$lookup": lookup},
        {"$group": {"_id": "$found.country", "n": {"$sum": 1}}},
    )


@operation()
def lookup_index(database):
    lookup = {"from": "items", "localField": "_id", "foreignField": "rank", "as": "found"}
    aggregated(database, {"$match": {"_id": {"$lt": 2000}}}, {"$lookup": lookup}, {"$match": {"found.kind": 3}})


@operation()
def facet(database):
    aggregated(
        database,
        {"$match": {"_id": {"$lt": 200_000}}},
        {
            "$facet": {
                "kinds": [{"$sortByCount": "$kind"}],
                "prices": [{"$bucket": {"groupBy": "$price", "boundaries": [0, 250, 500, 1000]}}],
                "best": [{"$sort": {"stock": -1}}, {"$limit": 5}],
            }
        },
    )


# ---- points, lists and ranges


@operation()
def point_id(database):
    for number in numbers(3000):
        database.items.find_one({"_id": number})


@operation()
def point_index(database):
    for number in numbers(3000):
        database.items.find_one({"rank": (number * 7919) % 1_000_003})


@operation()
def in_100(database):
    for seed in range(50):
        list(database.items.find({"_id": {"$in": numbers(100, seed=seed)}}))


@operation()
def in_100_index(database):
    for seed in range(50):
        list(database.items.find({"rank": {"$in": numbers(100, seed=seed)}}))


@operation()
def range_id(database):
    for number in numbers(100, DOCUMENTS - 1000):
        drained(database.items.find_raw_batches({"_id": {"$gte": number, "$lt": number + 1000}}))


@operation()
def range_index(database):
    for number in numbers(50, 900):
        list(database.items.find({"price": {"$gte": number, "$lt": number + 0.5}}).sort("price", ASCENDING))


# ---- updates and deletes


@operation(full_scratch)
def update_one(database):
    for number in numbers(2000, 100_000):
        database.scratch.update_one({"_id": number}, {"$inc": {"stock": 1}})


@operation(full_scratch)
def update_bulk(database):
    database.scratch.bulk_write(
        [UpdateOne({"_id": number}, {"$set": {"note": "new"}}) for number in numbers(10_000, 100_000)]
    )


@operation(full_scratch)
def update_many(database):
    database.scratch.update_many({"_id": {"$lt": 50_000}}, {"$inc": {"stock": 1}})


@operation(full_scratch)
def delete_bulk(database):
    database.scratch.bulk_write([DeleteOne({"_id": number}) for number in numbers(5000, 100_000)])


@operation(full_scratch)
def delete_many(database):
    database.scratch.delete_many({"price": {"$lt": 200}})


def timed(name, database):
    """Milliseconds of an operation."""
    function, prepare = OPERATIONS[name]
    if prepare:
        prepare(database)
    began = time.perf_counter()
    function(database)
    return (time.perf_counter() - began) * 1000


def take_turns(names, sides):
    """For each operation the milliseconds of each side, one for each round. `sides` are databases by name."""
    for name in names:
        times = {side: [] for side in sides}
        if OPERATIONS[name][1] is None:
            for database in sides.values():
                timed(name, database)
        for turn in range(ROUNDS):
            for side in list(sides)[:: -1 if turn % 2 else 1]:
                times[side].append(timed(name, sides[side]))
        yield name, times


def ratio(mine, theirs):
    """The median of the ratios within a round: above one, mine is faster."""
    return statistics.median(other / own for own, other in zip(mine, theirs))


def geometric_mean(ratios):
    return math.exp(statistics.fmean(map(math.log, ratios)))


def main(names):
    from servers import Mongod, Pando, client_of

    unknown = [name for name in names if name not in OPERATIONS]
    if unknown:
        return f"unknown: {', '.join(unknown)}; there are {', '.join(OPERATIONS)}"
    kinds = {"mongodb": Mongod, "pando": Pando}
    if os.environ.get("PANDO_BEFORE"):
        kinds["before"] = lambda name, cache_mb: Pando(name, cache_mb, os.environ["PANDO_BEFORE"])
    servers = {side: kind(f"everyday-{side}", 2000).start() for side, kind in kinds.items()}
    try:
        sides = {side: client_of(server.port).everyday for side, server in servers.items()}
        for database in sides.values():
            fill(database)
        ratios = {side: [] for side in sides}
        for name, times in take_turns(names or list(OPERATIONS), sides):
            found = {side: ratio(times[side], times["mongodb"]) for side in sides}
            for side, value in found.items():
                ratios[side].append(value)
            cells = (f"{side} {statistics.median(times[side]):9.2f} ms {found[side]:6.2f}" for side in sides)
            print(f"{name:<18}", "   ".join(cells), flush=True)
        print("geometric means: ", {side: round(geometric_mean(values), 2) for side, values in ratios.items()})
    finally:
        for server in servers.values():
            server.end()
            server.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
