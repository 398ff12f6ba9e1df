"""Monitoring programs against a member of a replica set: their commands, and the figures that they compute from the replies.

mongostat and mongotop (mongo-tools), the performance page of Compass (compass-serverstats) and mongodb_exporter (percona) cannot be
installed here. The tests send the commands that their sources send, and read the fields that their sources read.
"""

import datetime
import re
import threading
import time

import pytest
from bson import Binary, Int64, ObjectId, Timestamp
from pymongo.errors import OperationFailure

from server import Server


@pytest.fixture(scope="module")
def member(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("member") / "data", "--persona", "replica-set").start()
    with server.client() as client:
        client.watched.c.insert_many([{"_id": at, "a": at % 3} for at in range(300)])
        client.watched.c.create_index("a")
        yield client
    assert server.stop() == 0, server.log()


def at(document, path):
    for name in path.split("."):
        document = document[name]
    return document


def work(client):
    c = client.watched.c
    c.insert_one({})
    list(c.find({}, batch_size=100))
    c.update_one({"_id": 1}, {"$inc": {"n": 1}})
    c.delete_one({"_id": {"$gt": 300}})


# ---- mongostat

def sample_of_mongostat(client):
    # `recordStats` was a section of MongoDB's first engine.
    return client.admin.command({"serverStatus": 1, "recordStats": 0})


def test_mongostat_shows_every_column(member):
    old = sample_of_mongostat(member)
    work(member)
    member.admin.command("fsync")
    new = sample_of_mongostat(member)

    def grown(path):
        assert isinstance(at(new, path), int), path
        return at(new, path) - at(old, path)

    assert {name: grown(f"opcounters.{name}") for name in ("insert", "query", "update", "delete", "getmore")} == \
        {"insert": 1, "query": 1, "update": 1, "delete": 1, "getmore": 3}
    assert grown("opcounters.command") >= 1
    # The column `flushes`: checkpoints, which `fsync` makes.
    assert grown("backgroundFlushing.flushes") >= 1 and "wiredTiger" not in new and new["storageEngine"]["name"] != "wiredTiger"
    # Exporters tell the time since the last one.
    assert abs((new["localTime"] - new["backgroundFlushing"]["last_finished"]).total_seconds()) < 60 and at(new, "backgroundFlushing.last_ms") >= 0
    assert grown("network.bytesIn") > 0 and grown("network.bytesOut") > 300 * 20
    assert new["mem"]["supported"] and 0 < new["mem"]["resident"] <= new["mem"]["virtual"]
    for place in ("currentQueue", "activeClients"):
        assert all(isinstance(new["globalLock"][place][name], int) for name in ("readers", "writers"))
    assert new["connections"]["current"] >= 1
    # `set`, and the hosts that `--discover` goes on to.
    assert new["repl"]["setName"] and new["repl"]["hosts"] == [new["repl"]["me"]]
    # A field by its name, as `-o 'metrics.document.returned.rate()'` asks.
    assert grown("metrics.document.returned") >= 300


# ---- mongotop

def test_mongotop_shows_reads_and_writes_apart(member):
    def sample():
        totals = member.admin.command("top")["totals"]
        return {name: row for name, row in totals.items() if name != "note"}

    old = sample()
    work(member)
    new = sample()
    for row in new.values():
        assert all(isinstance(row[part][figure], int) for part in ("total", "readLock", "writeLock") for figure in ("time", "count"))
    rows = {part: {figure: new["watched.c"][part][figure] - old["watched.c"][part][figure] for figure in ("time", "count")}
            for part in ("total", "readLock", "writeLock")}
    assert rows["readLock"]["count"] == 4 and rows["writeLock"]["count"] == 3
    assert rows["total"]["time"] == rows["readLock"]["time"] + rows["writeLock"]["time"] > 0


# ---- the performance page of Compass

def test_compass_draws_its_charts_and_tables(member):
    """Once a second it sends serverStatus, top and currentOp; the processors of the machine scale its table of hot collections."""
    first, old = member.admin.command("serverStatus"), member.admin.command("top")["totals"]
    time.sleep(0.05)
    work(member)
    second, new = member.admin.command("serverStatus"), member.admin.command("top")["totals"]
    assert second["localTime"] > first["localTime"]
    for chart in ("opcounters", "network", "mem", "globalLock", "connections"):
        assert isinstance(second[chart], dict), chart
    processors = member.admin.command("hostInfo")["system"]["numCores"]
    assert processors > 0
    load = {name: (new[name]["total"]["time"] - old.get(name, {"total": {"time": 0}})["total"]["time"]) / (1_000_000 * processors)
            for name in new if name != "note"}
    assert max(load, key=load.get) == "watched.c" and load["watched.c"] > 0
    assert member.admin.command("getParameter", 1, featureCompatibilityVersion=1)["featureCompatibilityVersion"]["version"]
    assert member.admin.command("connectionStatus", showPrivileges=True)["authInfo"]["authenticatedUsers"] == []


@pytest.mark.parametrize("ask", [
    lambda client: client.admin.command("currentOp")["inprog"],
    lambda client: list(client.admin.aggregate([{"$currentOp": {"allUsers": True, "localOps": False}}])),
], ids=["currentOp", "$currentOp"])
def test_compass_lists_a_slow_operation_and_ends_it(member, ask):
    # Minutes, unless it is ended.
    count = {"$reduce": {"input": {"$range": [0, 1_000_000]}, "initialValue": 0, "in": {"$add": ["$$value", "$$this"]}}}
    slow = [{"$project": {"x": {"$sum": {"$map": {"input": {"$range": [0, 1000]}, "in": count}}}}}]
    ended = []

    def run():
        try:
            list(member.watched.c.aggregate(slow))
        except OperationFailure as error:
            ended.append(error.code)

    thread = threading.Thread(target=run)
    thread.start()
    deadline = time.monotonic() + 20
    while not (found := [operation for operation in ask(member) if operation.get("ns") == "watched.c" and operation.get("op") == "command"]):
        assert time.monotonic() < deadline and thread.is_alive()
    [operation] = found
    assert isinstance(operation["microsecs_running"], Int64) and operation["microsecs_running"] > 0 and "secs_running" in operation
    assert operation["active"] is True and operation["waitingForLock"] is False and operation["command"]["pipeline"]
    member.admin.command("killOp", op=operation["opid"])
    thread.join(20)
    assert ended == [11601]


# ---- mongodb_exporter

# The fields that become one metric with a label each.
LABELLED = {
    "serverStatus.asserts.", "serverStatus.connections.", "serverStatus.globalLock.currentQueue.", "serverStatus.metrics.commands.",
    "serverStatus.metrics.cursor.open.", "serverStatus.metrics.document.", "serverStatus.opLatencies.", "serverStatus.opcounters.",
    "serverStatus.opcountersRepl.", "serverStatus.opReadConcernCounters.", "systemMetrics.disks.",
}
# It cannot handle values of other types, and then has no metrics at all.
NUMBERS, PASSED_OVER = (bool, int, float, datetime.datetime), (str, ObjectId, Timestamp, Binary, bytes)


def exported(document, prefix=""):
    """The metrics of a reply with their labels, as the exporter names them. Two of one name would end its answer."""
    metrics = []
    for name, value in document.items():
        if isinstance(value, dict):
            metrics += exported(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            for place, member in enumerate(value):
                if isinstance(member, dict):
                    # Members have the label of their name, buckets that of their bound.
                    own = member.get("name", place)
                    metrics += [(metric, (*labels, own)) for metric, labels in exported(member, f"{prefix}{name}.")]
        elif isinstance(value, NUMBERS):
            whole, label = (prefix, (name,)) if prefix in LABELLED else (prefix + name, ())
            metrics.append((re.sub(r"_+", "_", re.sub(r"[^a-zA-Z0-9_]+", "_", whole)).strip("_"), label))
        else:
            assert isinstance(value, PASSED_OVER), f"{prefix}{name}: {value!r}"
    return metrics


def metrics_of(document, prefix=""):
    metrics = exported(document, prefix)
    twice = {metric for metric in metrics if metrics.count(metric) > 1}
    assert not twice
    return {name for name, _ in metrics}


# Without those of WiredTiger, of sharding, and of the log of operations that other members read.
DASHBOARDS = """
serverStatus_asserts serverStatus_connections serverStatus_extra_info_page_faults serverStatus_globalLock_activeClients_readers
serverStatus_globalLock_activeClients_writers serverStatus_globalLock_currentQueue serverStatus_uptime serverStatus_mem_resident
serverStatus_mem_virtual serverStatus_metrics_cursor_open serverStatus_metrics_cursor_timedOut serverStatus_metrics_document
serverStatus_metrics_getLastError_wtime_num serverStatus_metrics_getLastError_wtime_totalMillis
serverStatus_metrics_getLastError_wtimeouts serverStatus_metrics_operation_scanAndOrder serverStatus_metrics_operation_writeConflicts
serverStatus_metrics_queryExecutor_scanned serverStatus_metrics_queryExecutor_scannedObjects
serverStatus_metrics_repl_apply_batches_num serverStatus_metrics_repl_apply_batches_totalMillis serverStatus_metrics_repl_apply_ops
serverStatus_metrics_repl_buffer_count serverStatus_metrics_repl_buffer_maxSizeBytes serverStatus_metrics_repl_buffer_sizeBytes
serverStatus_metrics_repl_executor_queues_networkInProgress serverStatus_metrics_repl_executor_queues_sleepers
serverStatus_metrics_repl_executor_unsignaledEvents serverStatus_metrics_repl_network_bytes
serverStatus_metrics_repl_network_getmores_num serverStatus_metrics_repl_network_getmores_totalMillis
serverStatus_metrics_repl_network_ops serverStatus_metrics_repl_network_readersCreated serverStatus_metrics_ttl_deletedDocuments
serverStatus_metrics_ttl_passes serverStatus_network_bytesIn serverStatus_network_bytesOut serverStatus_network_numRequests
serverStatus_opcounters serverStatus_opcountersRepl serverStatus_opLatencies_reads_latency serverStatus_opLatencies_reads_ops
serverStatus_transactions_currentActive serverStatus_transactions_totalCommitted
replSetGetStatus_myState replSetGetStatus_members_health replSetGetStatus_members_state replSetGetStatus_members_optimeDate
replSetGetStatus_members_uptime systemMetrics_cpu_num_cpus systemMetrics_cpu_user_ms systemMetrics_cpu_idle_ms
systemMetrics_cpu_iowait_ms systemMetrics_memory_MemTotal_kb systemMetrics_memory_MemFree_kb systemMetrics_memory_Cached_kb
systemMetrics_vmstat_pgfault
""".split()


def test_mongodb_exporter_finds_the_metrics_of_its_dashboards(member):
    data = member.admin.command("getDiagnosticData", "1")["data"]
    found = metrics_of(data)
    assert [name for name in DASHBOARDS if name not in found] == []
    assert data["start"] <= data["serverStatus"]["start"] <= data["replSetGetStatus"]["end"] <= data["end"]
    machine = data["systemMetrics"]
    assert machine["cpu"]["num_cpus"] == member.admin.command("hostInfo")["system"]["numCores"]
    assert isinstance(machine["cpu"]["user_ms"], float) and machine["memory"]["MemTotal_kb"] > machine["memory"]["MemFree_kb"] > 0
    later = member.admin.command("getDiagnosticData", "1")["data"]
    assert later["systemMetrics"]["cpu"]["ctxt"] > machine["cpu"]["ctxt"]


def test_mongodb_exporter_learns_the_place_of_the_server(member):
    greeting = member.admin.command("isMaster")
    configuration = member.admin.command("replSetGetConfig", "1")["config"]
    status = member.admin.command("replSetGetStatus", "1")
    assert greeting["setName"] == configuration["_id"] == status["set"] and status["myState"] == 1
    # The label `cl_id`.
    assert configuration["settings"]["replicaSetId"] == member.admin.command("replSetGetConfig")["config"]["settings"]["replicaSetId"]
    assert {"cfg_members_votes", "cfg_settings_electionTimeoutMillis"} <= metrics_of(configuration, "cfg.")
    metrics_of(status)
    assert float(member.admin.command({"getParameter": 1, "featureCompatibilityVersion": 1})["featureCompatibilityVersion"]["version"]) > 0
    # Whether the server is one of the enterprise edition, and its own vendor.
    assert member.admin.command("buildInfo")["modules"] == []


def test_mongodb_exporter_reads_databases_collections_and_indexes(member):
    names = member.admin.command({"listDatabases": 1, "nameOnly": True, "authorizedDatabases": True, "filter": {"$and": [{"name": {"$ne": "admin"}}]}})
    assert "watched" in [found["name"] for found in names["databases"]]
    for request in ({"dbStats": 1, "scale": 1}, {"dbStats": 1, "scale": 1, "freeStorage": 1}):
        found = metrics_of(member.watched.command(request), "dbstats.")
        assert {f"dbstats_{name}" for name in ("collections", "objects", "dataSize", "storageSize", "indexes", "indexSize", "fsUsedSize")} <= found
        assert ("dbstats_freeStorageSize" in found) == ("freeStorage" in request)
    assert member.watched.list_collection_names(filter={"$or": [{"name": re.compile("c", re.I)}]}) == ["c"]
    [stats] = member.watched.c.aggregate([{"$collStats": {"latencyStats": {"histograms": True}, "storageStats": {"scale": 1}}}])
    found = metrics_of(stats, "collstats.")
    assert {"collstats_latencyStats_reads_ops", "collstats_latencyStats_writes_latency", "collstats_storageStats_size",
            "collstats_storageStats_count", "collstats_storageStats_storageSize", "collstats_storageStats_totalIndexSize"} <= found
    member.watched.c.find_one({"a": 1})
    used = {found["name"]: found["accesses"]["ops"] for found in member.watched.c.aggregate([{"$indexStats": {}}])}
    assert used["a_1"] >= 1 and set(used) == {"_id_", "a_1"}
    metrics_of({"totals": {name: row for name, row in member.admin.command("top")["totals"].items()}}, "top.")


def test_mongodb_exporter_counts_slow_operations(member):
    slow = {"currentOp": True, "active": True, "op": {"$ne": ""}, "ns": {"$ne": "", "$not": {"$regex": "^admin.*|^local.*"}},
            "microsecs_running": {"$exists": True, "$gte": Int64(60_000_000)}}
    assert member.admin.command(slow)["inprog"] == []
    member.watched.command("profile", 2)
    try:
        member.watched.c.find_one({"a": 2})
        since = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=30)
        assert member.watched["system.profile"].count_documents({"ts": {"$gte": since}}) >= 1
    finally:
        member.watched.command("profile", 0)
