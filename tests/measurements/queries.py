"""The measure of finds and updates: the lab sends them by 1 and by 32 clients to Pando and to MongoDB, in turns.

1. Both sides load the same documents: `items` (everyday.py), `places` with labels, points and texts, and a time series.
2. Within a round each line is measured on one side, then on the other, so that both meet the same machine.
3. Loads, expiry and tails are timed as a whole: the time until all documents are in, are gone, or have arrived.

`QUERY_LINES` names some of the lines. `QUERY_PLACES` is the size of `places`, 200,000.
"""

import datetime
import json
import os
import random
import sys
import threading
import time

import bson
from bson import Int64
from bson.raw_bson import RawBSONDocument

import everyday
import raw
from rows import ROUNDS, add_run
from servers import Mongod, Pando, bench, client_of, mongod_program

sys.path.insert(0, str(raw.ROOT / "tests" / "python"))
from raw_connection import Raw, message  # noqa: E402

PLACES = int(os.environ.get("QUERY_PLACES", "200000"))
SECONDS = int(os.environ.get("SECONDS_EACH", "5"))
LOST_SECONDS = 120
LABELS, WORDS = 50_000, 2_000
SENSORS, POINTS_EACH, STEP = 100, 2_000, 10
EXPIRED, TAILED, BATCH = 200_000, 200_000, 1000
BEGAN = datetime.datetime(2024, 1, 1)


def drawn(low, high):
    return {"$draw": [low, high]}


def hundred(last):
    return {"$gte": {"$draw": [0, last - 100], "as": "low"}, "$lt": {"$drawn": "low", "plus": 100}}


def point():
    return {"type": "Point", "coordinates": [{"$drawDouble": [-10, 10]}, {"$drawDouble": [40, 50]}]}


LAST = everyday.DOCUMENTS - 1
# A hundred points of a sensor.
FIRST_MS = int((BEGAN - datetime.datetime(1970, 1, 1)).total_seconds() * 1000)
SPAN_MS = 100 * STEP * 1000
LATEST_MS = FIRST_MS + POINTS_EACH * STEP * 1000 - SPAN_MS
SPAN = {"$gte": {"$drawDate": [FIRST_MS, LATEST_MS], "as": "from"}, "$lt": {"$drawn": "from", "plus": SPAN_MS}}

# name -> a command with draws, see `pando-bench commands --help`.
LINES = {
    "point_update": {"update": "items", "updates": [{"q": {"_id": drawn(0, LAST)}, "u": {"$inc": {"stock": 1}}}]},
    "range_100": {"find": "items", "filter": {"_id": hundred(LAST)}},
    "equality": {"find": "items", "filter": {"rank": drawn(0, LAST)}},
    "multikey": {"find": "places", "filter": {"labels": drawn(0, LABELS - 1)}},
    "in_100": {"find": "items", "filter": {"_id": {"$in": {"$drawMany": [100, 0, LAST]}}}},
    "sort_index": {"find": "items", "filter": {"price": {"$gte": {"$drawDouble": [0, 990]}}}, "sort": {"price": 1}, "limit": 20},
    "covered": {"find": "items", "filter": {"rank": hundred(LAST)}, "projection": {"_id": 0, "rank": 1}},
    "geo_near": {"find": "places", "filter": {"at": {"$near": {"$geometry": point(), "$maxDistance": 50_000}}}, "limit": 10},
    "text": {"find": "places", "filter": {"$text": {"$search": {"$drawText": ["word", 0, WORDS - 1]}}}, "limit": 20},
    "series_range": {"find": "series", "filter": {"sensor": drawn(0, SENSORS - 1), "at": SPAN}},
}


def place(number):
    chance = random.Random(number)
    return {
        "_id": number,
        "labels": [chance.randrange(LABELS) for _ in range(5)],
        "at": {"type": "Point", "coordinates": [chance.uniform(-10, 10), chance.uniform(40, 50)]},
        "text": " ".join(f"word{chance.randrange(WORDS)}" for _ in range(8)),
    }


def measurement(number):
    sensor, turn = number % SENSORS, number // SENSORS
    mixed = (number * 2654435761) & 0xFFFFFFFF
    return {
        "sensor": sensor,
        "at": BEGAN + datetime.timedelta(seconds=turn * STEP),
        "n": turn,
        "temperature": round(20 + (mixed % 1000) / 100, 2),
        "state": ("ok", "ok", "ok", "late")[mixed % 4],
    }


def encoded(documents):
    """Batches of documents that are encoded already, so that the client costs little."""
    raw = [RawBSONDocument(bson.encode(document)) for document in documents]
    return [raw[first : first + BATCH] for first in range(0, len(raw), BATCH)]


def fill(database, series):
    everyday.fill(database)
    for first in range(0, PLACES, 5000):
        database.places.insert_many((place(number) for number in range(first, first + 5000)), ordered=False)
    database.places.create_index("labels")
    database.places.create_index([("at", "2dsphere")])
    database.places.create_index([("text", "text")])
    load_series(database, series)


def load_series(database, series):
    """The milliseconds in which the measurements come into an empty collection."""
    database.series.drop()
    database.create_collection("series", timeseries={"timeField": "at", "metaField": "sensor", "granularity": "seconds"})
    began = time.perf_counter()
    for batch in series:
        database.series.insert_many(batch, ordered=False)
    return (time.perf_counter() - began) * 1000


def expire(database, _):
    """The milliseconds from the index that makes all documents expire to an empty collection."""
    database.expired.drop()
    old = datetime.datetime(2020, 1, 1)
    for first in range(0, EXPIRED, 5000):
        database.expired.insert_many({"_id": number, "at": old, "pad": "x" * 100} for number in range(first, first + 5000))
    database.client.admin.command("setParameter", 1, ttlMonitorSleepSecs=1)
    began = time.perf_counter()
    database.expired.create_index("at", expireAfterSeconds=60)
    while database.expired.find_one({}, {"_id": 1}) is not None:
        time.sleep(0.005)
    return (time.perf_counter() - began) * 1000


def tail(database, _):
    """The milliseconds until a tailing cursor has received what another client inserts into a capped collection."""
    database.tailed.drop()
    database.create_collection("tailed", capped=True, size=1 << 30)
    database.tailed.insert_one({"_id": -1, "pad": "x" * 100})
    # Whole messages, and replies that stay undecoded, so that the server is what is timed.
    writer, reader = (Raw(database.client.address[1]) for _ in range(2))
    batches = [
        message(database.name, {"insert": "tailed", "documents": [{"_id": number, "pad": "x" * 100} for number in range(first, first + BATCH)]})
        for first in range(0, TAILED, BATCH)
    ]
    found = reader.command(database.name, {"find": "tailed", "tailable": True, "awaitData": True, "batchSize": 1})
    cursor = Int64(found["cursor"]["id"])
    more = message(database.name, {"getMore": cursor, "collection": "tailed", "batchSize": 10_000})
    writing = threading.Thread(target=lambda: [writer.exchange(batch) for batch in batches])
    received = 0
    began = time.perf_counter()
    writing.start()
    while received < TAILED:
        assert writing.is_alive() or time.perf_counter() - began < LOST_SECONDS, f"{received} of {TAILED} documents came"
        received += reader.exchange(more).count(b"\x02pad\x00")
    taken = (time.perf_counter() - began) * 1000
    writing.join()
    reader.command(database.name, {"killCursors": "tailed", "cursors": [cursor]})
    return taken


TIMED = {"series_load": load_series, "expiry": expire, "tail": tail}


def measure_line(record, servers, name, turn):
    rates = {}
    for side in list(servers)[:: -1 if turn % 2 else 1]:
        runs = bench(
            "commands", "--uri", servers[side].uri, "--database", "queries", "--command", json.dumps({**LINES[name], "comment": name}),
            "--clients", "1,32", "--duration", SECONDS, "--warmup", 1, "--no-ceiling",
        )  # fmt: skip
        for run in runs:
            clients = run["plan"]["clients"]
            add_run(record, f"{side}.{name}.c{clients}", run)
            rates[side, clients] = run["figures"]["rate"]
    return rates


def measure_timed(record, sides, name, turn, series):
    times = {}
    for side in list(sides)[:: -1 if turn % 2 else 1]:
        times[side] = TIMED[name](sides[side], series)
        record.add(f"{side}.{name}.ms", times[side])
    return times


def queries(record):
    """Thirteen finds, updates and loads over 1 million documents, all in the cache, by 1 and 32 clients."""
    wanted = os.environ.get("QUERY_LINES", "").split() or [*LINES, *TIMED]
    kinds = {"pando": Pando} | ({"mongodb": Mongod} if mongod_program() else {})
    servers = {side: kind(f"queries-{side}", 2000).start() for side, kind in kinds.items()}
    series = encoded(measurement(number) for number in range(SENSORS * POINTS_EACH))
    ratios = {}
    try:
        sides = {side: client_of(server.port).queries for side, server in servers.items()}
        for database in sides.values():
            fill(database, series)
        for turn in range(ROUNDS):
            for name in wanted:
                if name in LINES:
                    rates = measure_line(record, servers, name, turn)
                    found = {clients: rates["pando", clients] / rates["mongodb", clients] for clients in (1, 32)} if len(sides) > 1 else {}
                else:
                    times = measure_timed(record, sides, name, turn, series)
                    found = {32: times["mongodb"] / times["pando"]} if len(sides) > 1 else {}
                for clients, ratio in found.items():
                    ratios.setdefault((name, clients), []).append(ratio)
                    print(f"  {name}, {clients} clients: {ratio:.2f} x", flush=True)
        for clients in (1, 32):
            medians = [sorted(all_of)[len(all_of) // 2] for (_, count), all_of in ratios.items() if count == clients]
            if medians:
                record.add(f"ratios.lowest.c{clients}", min(medians))
                record.add(f"ratios.median.c{clients}", sorted(medians)[len(medians) // 2])
    finally:
        for server in servers.values():
            server.end()
            server.remove()


MEASURES = {"queries": queries}
