"""The figures that monitoring programs read: mongostat, mongotop, the charts of Compass, mongodb_exporter.

The programs themselves cannot be had here. The tests send their commands, read the fields that their sources name, and compute what
they show. The tests of names and types beside MongoDB's are in tests/acceptance/test_monitoring.py.
"""

import base64
import json
import os
import random
import time

import pytest
from bson import Int64
from pymongo import MongoClient
from pymongo.errors import OperationFailure

from server import Server

# One compresses well, the other does not.
# Longer than the replies of serverStatus, which are counted, too.
REPEATED = "x" * 200_000
LARGE = base64.b64encode(random.Random(7).randbytes(15_000)).decode()


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("monitoring") / "data").start()
    with MongoClient(server.uri) as client:
        yield client
    assert server.stop() == 0, server.log()
    assert "panic" not in server.log()


@pytest.fixture
def database(client):
    client.drop_database("watched")
    return client.watched


def status(client):
    return client.admin.command("serverStatus")


def at(document, path):
    for name in path.split("."):
        document = document[name]
    return document


def test_the_engine_tells_whether_its_data_outlives_the_server(client, tmp_path):
    assert status(client)["storageEngine"] == {"name": "betree", "supportsCommittedReads": True, "persistent": True}
    server = Server(tmp_path / "none", engine="memory").start()
    with MongoClient(server.uri) as volatile:
        assert status(volatile)["storageEngine"] == {"name": "memory", "supportsCommittedReads": True, "persistent": False}
    assert server.stop() == 0, server.log()


def growth(client, path, work):
    """By how much a figure grows while some work is done."""
    before = at(status(client), path)
    work()
    return at(status(client), path) - before


def test_the_columns_of_mongostat(client, database):
    """Every default column: the difference of two samples, as mongostat's readers compute it."""
    database.c.insert_one({"_id": "first"})
    old = status(client)
    database.c.insert_many([{"_id": i, "a": i % 3} for i in range(300)])
    for i in range(20):
        database.c.find_one({"_id": i})
    database.c.update_one({"_id": 1}, {"$set": {"b": 1}})
    database.c.delete_one({"_id": 2})
    assert len(list(database.c.find({}, batch_size=100))) == 300
    new = status(client)
    operations = {name: new["opcounters"][name] - old["opcounters"][name] for name in new["opcounters"]}
    assert operations["insert"] == 300 and operations["query"] == 21 and operations["update"] == 1 and operations["delete"] == 1
    assert operations["getmore"] >= 2 and operations["command"] >= 1
    assert set(new["opcountersRepl"]) == set(new["opcounters"])
    assert new["storageEngine"]["name"] == "betree" and "mongos" not in new["process"]
    assert new["mem"]["supported"] is True and 0 < new["mem"]["resident"] <= new["mem"]["virtual"]
    assert new["globalLock"]["currentQueue"].keys() == new["globalLock"]["activeClients"].keys() == {"total", "readers", "writers"}
    # netIn and netOut: at least the bytes of the documents.
    assert new["network"]["bytesIn"] - old["network"]["bytesIn"] > 300 * 20
    assert new["network"]["bytesOut"] - old["network"]["bytesOut"] > 300 * 20
    assert new["connections"]["current"] >= 1
    assert new["extra_info"]["page_faults"] >= old["extra_info"]["page_faults"]
    assert new["uptimeMillis"] >= old["uptimeMillis"] and new["uptimeEstimate"] >= 0


def test_the_rows_of_mongotop(client, database):
    database.c.insert_one({"_id": 0})
    database.other.insert_one({"_id": 0})
    old = client.admin.command("top")["totals"]
    assert old["note"] == "all times in microseconds"
    for i in range(30):
        database.c.find_one({"_id": 0})
    database.c.insert_many([{"a": i} for i in range(1000)])
    list(database.c.aggregate([{"$group": {"_id": "$a"}}]))
    database.c.find_one_and_update({"_id": 0}, {"$set": {"x": 1}})
    new = client.admin.command("top")["totals"]
    grown = {name: (new["watched.c"][name]["count"] - old["watched.c"][name]["count"],
                    new["watched.c"][name]["time"] - old["watched.c"][name]["time"]) for name in new["watched.c"]}
    counts = {name: count for name, (count, _) in grown.items()}
    # The first batch of the aggregate has 101 of its documents.
    assert counts["getmore"] == 1
    assert counts == {"total": 34, "readLock": 32, "writeLock": 2, "queries": 30, "getmore": 1, "insert": 1, "update": 0, "remove": 0, "commands": 2}
    assert all(time > 0 for count, time in grown.values() if count)
    assert grown["total"][1] == grown["readLock"][1] + grown["writeLock"][1]
    assert new["watched.other"] == old["watched.other"]
    database.c.drop()
    assert "watched.c" not in client.admin.command("top")["totals"]
    with pytest.raises(OperationFailure) as refused:
        database.command("top")
    assert refused.value.code == 13


def test_the_charts_of_compass(client, database):
    """Operations, reads and writes, network, memory; and the tables of hot collections and slow operations."""
    database.c.insert_one({})
    sample = status(client)
    for path in [*(f"opcounters.{name}" for name in ("insert", "query", "update", "delete", "command", "getmore")),
                 "globalLock.activeClients.readers", "globalLock.activeClients.writers", "globalLock.currentQueue.readers",
                 "globalLock.currentQueue.writers", "network.bytesIn", "network.bytesOut", "connections.current", "mem.virtual", "mem.resident"]:
        assert isinstance(at(sample, path), int), path
    assert sample["localTime"] and sample["host"]
    hot = client.admin.command("top")["totals"]["watched.c"]
    assert hot["total"]["count"] > 0 and {"readLock", "writeLock"} <= hot.keys()
    assert client.admin.command("currentOp")["inprog"]


# Fields of `getDiagnosticData` that mongodb_exporter's dashboards plot, without those of WiredTiger and replica sets.
EXPORTED = """
asserts.regular asserts.warning asserts.msg asserts.user asserts.rollovers connections.current connections.available
connections.totalCreated connections.active extra_info.page_faults extra_info.user_time_us extra_info.system_time_us
extra_info.input_blocks extra_info.output_blocks globalLock.totalTime globalLock.activeClients.readers globalLock.activeClients.writers
globalLock.currentQueue.readers globalLock.currentQueue.writers globalLock.currentQueue.total mem.bits mem.resident mem.virtual
metrics.cursor.open.noTimeout metrics.cursor.open.pinned metrics.cursor.open.total metrics.cursor.timedOut metrics.document.deleted
metrics.document.inserted metrics.document.returned metrics.document.updated metrics.operation.scanAndOrder metrics.operation.writeConflicts
metrics.queryExecutor.scanned metrics.queryExecutor.scannedObjects metrics.commands.find.total metrics.commands.find.failed
network.bytesIn network.bytesOut network.numRequests opcounters.insert opcountersRepl.insert opLatencies.reads.latency opLatencies.reads.ops
opLatencies.writes.latency opLatencies.writes.ops opLatencies.commands.latency opLatencies.commands.ops uptime uptimeMillis
""".split()


def test_the_figures_of_mongodb_exporter(client, database):
    reply = client.admin.command("getDiagnosticData")
    data = reply["data"]
    assert data["start"] <= data["serverStatus"]["start"] <= data["serverStatus"]["end"] <= data["end"]
    for path in EXPORTED:
        assert isinstance(at(data["serverStatus"], path), (int, float)), path
    with pytest.raises(OperationFailure) as refused:
        database.command("getDiagnosticData")
    assert refused.value.code == 13


def test_documents_scans_and_commands_are_counted_as_they_happen(client, database):
    database.c.insert_many([{"_id": i, "a": i} for i in range(50)])

    def grows(path, work):
        return growth(client, f"metrics.{path}", work)

    assert grows("document.inserted", lambda: database.c.insert_many([{}, {}, {}])) == 3
    assert grows("document.updated", lambda: database.c.update_many({"a": {"$lt": 10}}, {"$set": {"b": 1}})) == 10
    assert grows("document.deleted", lambda: database.c.delete_many({"a": {"$lt": 2}})) == 2
    assert grows("document.returned", lambda: database.c.find_one({"_id": 7})) == 1
    assert grows("queryExecutor.scannedObjects", lambda: database.c.find_one({"_id": 7})) == 1
    assert grows("queryExecutor.collectionScans.total", lambda: database.c.find_one({"a": 7})) == 1
    assert grows("operation.scanAndOrder", lambda: list(database.c.find().sort("a"))) == 1
    assert grows("commands.find.total", lambda: database.c.find_one({"_id": 7})) == 1
    assert grows("commands.isMaster.total", lambda: client.admin.command("ismaster")) >= 1

    def fail():
        with pytest.raises(OperationFailure):
            database.command({"find": "c", "filter": {"$bogus": 1}})

    assert grows("commands.find.failed", fail) == 1
    assert growth(client, "asserts.user", fail) == 1
    # A write that fails in a request that does not counts, and a document that an upsert makes does not.
    twice = [{"_id": 7}, {"_id": 8}]
    assert growth(client, "asserts.user", lambda: database.command("insert", "c", documents=twice, ordered=False)) == 2
    wrong = [{"q": {"_id": 7}, "u": {"$push": {"_id": 1}}}]
    assert growth(client, "asserts.user", lambda: database.command("update", "c", updates=wrong)) == 1
    assert grows("document.inserted", lambda: database.c.update_one({"_id": "new"}, {"$set": {"a": 1}}, upsert=True)) == 0

    def unknown():
        with pytest.raises(OperationFailure):
            database.command("noSuchCommand")

    assert growth(client, "metrics.commands.<UNKNOWN>", unknown) == 1
    cursor = database.c.find(batch_size=2)
    cursor.next()
    open_now = status(client)["metrics"]["cursor"]["open"]
    assert open_now["total"] >= 1 and open_now["pinned"] == 0
    cursor.close()
    assert grows("cursor.totalOpened", lambda: list(database.c.find(batch_size=30))) == 1
    assert grows("cursor.moreThanOneBatch", lambda: list(database.c.find(batch_size=30))) == 1
    found = []
    assert grows("cursor.moreThanOneBatch", lambda: found.extend(database.c.aggregate([{"$sort": {"_id": 1}}, {"$project": {"a": 1}}], batchSize=30))) == 1
    assert [document["_id"] for document in found] == [document["_id"] for document in database.c.find().sort("_id")] and len(found) > 30
    assert growth(client, "opLatencies.reads.ops", lambda: database.c.find_one({"_id": 7})) == 1
    assert growth(client, "opLatencies.writes.ops", lambda: database.c.insert_one({})) == 1
    assert growth(client, "network.numRequests", lambda: database.c.find_one({"_id": 7})) >= 2, "the first sample, and the find"


def test_the_network_counts_the_bytes_before_and_after_compression(client, database):
    with MongoClient(*client.address, compressors="zlib") as compressing:
        compressing.watched.c.insert_one({"_id": 0})
        before = status(client)["network"]
        compressing.watched.c.insert_one({"_id": 1, "text": REPEATED})
        compressing.watched.c.find_one({"_id": 1})
        after = status(client)["network"]
    for logical, physical in [("bytesIn", "physicalBytesIn"), ("bytesOut", "physicalBytesOut")]:
        assert after[logical] - before[logical] > len(REPEATED), logical
        assert after[physical] - before[physical] < len(REPEATED), physical


def test_sections_are_left_out_on_request(client):
    reply = client.admin.command({"serverStatus": 1, "metrics": 0, "mem": False, "network": 1})
    assert "metrics" not in reply and "mem" not in reply and "network" in reply
    histograms = client.admin.command({"serverStatus": 1, "opLatencies": {"histograms": True}})["opLatencies"]
    commands = histograms["commands"]
    assert sum(bucket["count"] for bucket in commands["histogram"]) == commands["ops"]
    assert histograms["transactions"] == {"histogram": [], "latency": 0, "ops": 0}


def test_the_latencies_of_a_collection(client, database):
    database.c.insert_many([{"_id": i} for i in range(3)])
    database.c.find_one({"_id": 1})
    [reply] = database.c.aggregate([{"$collStats": {"latencyStats": {"histograms": True}}}])
    latencies = reply["latencyStats"]
    assert latencies["writes"]["ops"] == 1 and latencies["reads"]["ops"] == 1
    [bucket] = latencies["writes"]["histogram"]
    assert bucket["count"] == 1 and bucket["micros"] <= latencies["writes"]["latency"]
    assert isinstance(latencies["reads"]["ops"], Int64)


def test_the_sizes_of_a_collection_right_after_an_insert(client, database):
    database.c.insert_many([{"text": LARGE} for _ in range(20)])
    database.c.create_index("text")
    collection = database.command("collStats", "c")
    assert collection["storageSize"] >= collection["size"] * 0.3 > 0
    sizes = database.command("dbStats")
    assert sizes["storageSize"] >= 20 * len(LARGE) * 0.3 and sizes["indexSize"] > 0
    assert 0 < sizes["fsUsedSize"] <= sizes["fsTotalSize"]
    listed = {found["name"]: found["sizeOnDisk"] for found in client.list_databases()}
    assert listed["watched"] >= 20 * len(LARGE) * 0.3


def test_the_log_is_read_by_a_shell(client, database):
    assert client.admin.command("getLog", "*")["names"] == ["global", "startupWarnings"]
    warnings = client.admin.command("getLog", "startupWarnings")
    assert warnings["totalLinesWritten"] == len(warnings["log"]) == (2 if os.geteuid() == 0 else 1)
    assert "Access control is off" in json.loads(warnings["log"][0])["msg"]
    log = client.admin.command("getLog", "global")
    assert log["totalLinesWritten"] >= len(log["log"]) > 0
    lines = [json.loads(line) for line in log["log"]]
    assert any("serving" in line["msg"] and "listen" in line["attr"] for line in lines)
    assert all(line["s"] in "EWID1" and line["t"]["$date"] for line in lines)


def test_connections_are_counted_against_their_limit(tmp_path):
    server = Server(tmp_path / "data", "--max-connections", "50").start()
    try:
        with MongoClient(server.uri) as client:
            connections = status(client)["connections"]
            assert connections["current"] + connections["available"] == 50
            assert connections["totalCreated"] >= connections["current"] >= connections["active"]
            begin = time.monotonic()
            status(client)
            assert time.monotonic() - begin < 1
    finally:
        assert server.stop() == 0
