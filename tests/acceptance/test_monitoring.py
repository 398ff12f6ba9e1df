"""The figures for monitoring programs: names and types beside MongoDB's. The values cannot be equal."""

import bson
import pytest

# The sections that Pando has, and MongoDB's fields in them that Pando has not: they count what Pando has no part for.
SECTIONS = {
    "asserts": set(),
    "connections": {"threaded", "exhaustIsMaster", "exhaustHello", "awaitingTopologyChanges"},
    "extra_info": set(),
    "globalLock": set(),
    "mem": set(),
    "network": {"numSlowDNSOperations", "numSlowSSLOperations", "tcpFastOpen", "compression", "serviceExecutors"},
    "opLatencies": set(),
    "opcounters": set(),
    "opcountersRepl": set(),
}
# Fields that MongoDB has since a later version than the one asked here.
LATER = {"connections": {"rejected"}}
METRICS = {
    "cursor": {"lifespan"},
    "document": set(),
    "getLastError": set(),
    "operation": {"temporarilyUnavailableErrors", "temporarilyUnavailableErrorsConvertedToWriteConflict", "temporarilyUnavailableErrorsEscaped",
                  "transactionTooLargeForCacheErrors", "transactionTooLargeForCacheErrorsConvertedToWriteConflict"},
    "queryExecutor": set(),
}


def shape(value):
    """Names and types; numbers without their values."""
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    return type(value).__name__


def status(both, request={"serverStatus": 1}):
    admin = both.on("admin")
    return bson.decode(admin.ask_oracle(request)), bson.decode(admin.ask_pando(request))


def same_shape(oracle, pando, absent):
    oracle = {name: shape(value) for name, value in oracle.items() if name not in absent}
    assert oracle == shape(pando)
    assert list(oracle) == list(pando)


@pytest.mark.parametrize("section", SECTIONS)
def test_sections_have_the_fields_of_mongodb(both, section):
    oracle, pando = status(both)
    present = {name: value for name, value in pando[section].items() if name not in LATER.get(section, set())}
    same_shape(oracle[section], present, SECTIONS[section])


@pytest.mark.parametrize("section", METRICS)
def test_metrics_have_the_fields_of_mongodb(both, section):
    oracle, pando = status(both)
    same_shape(oracle["metrics"][section], pando["metrics"][section], METRICS[section])


def test_commands_have_the_names_and_fields_of_mongodb(both):
    oracle, pando = (reply["metrics"]["commands"] for reply in status(both))
    common = oracle.keys() & pando.keys()
    assert {"find", "insert", "update", "delete", "aggregate", "findAndModify", "isMaster", "getMore", "<UNKNOWN>"} <= common
    for name in common - {"<UNKNOWN>"}:
        # Some of MongoDB's count uses of one feature, too.
        assert shape(pando[name]).items() <= shape(oracle[name]).items(), name
    assert shape(oracle["<UNKNOWN>"]) == shape(pando["<UNKNOWN>"])


def test_the_head_has_the_types_of_mongodb(both):
    oracle, pando = status(both)
    head = ["host", "version", "process", "pid", "uptime", "uptimeMillis", "uptimeEstimate", "localTime"]
    assert list(oracle)[:len(head)] == list(pando)[:len(head)] == head
    assert [shape(oracle[name]) for name in head] == [shape(pando[name]) for name in head]


@pytest.mark.parametrize("request_", [
    {"serverStatus": 1, "metrics": 0, "mem": False, "network": None, "asserts": "x"},
    {"serverStatus": 1, "metrics": 1, "bogus": 0},
    {"serverStatus": 1, "opLatencies": {"histograms": True}},
], ids=str)
def test_sections_are_left_out_alike(both, request_):
    oracle, pando = status(both, request_)
    for section in [*SECTIONS, "metrics"]:
        assert (section in oracle) == (section in pando), section
    assert ("histogram" in oracle["opLatencies"]["reads"]) == ("histogram" in pando["opLatencies"]["reads"])


def test_top_has_the_fields_of_mongodb(both):
    both.same({"insert": "c", "documents": [{"_id": 1}]})
    both.same({"find": "c", "filter": {"_id": 1}})
    both.same({"count": "c", "query": {"_id": 1}})
    oracle, pando = (reply["totals"] for reply in status(both, {"top": 1}))
    name = f"{both.name}.c"
    same_shape(oracle[name], pando[name], set())
    assert oracle["note"] == pando["note"]
    for field in oracle[name]:
        assert oracle[name][field]["count"] == pando[name][field]["count"], field
    both.same({"top": 1})


@pytest.mark.parametrize("stage", [
    {"latencyStats": {}}, {"latencyStats": {"histograms": True}}, {"latencyStats": {"histograms": False}}, {"queryExecStats": {}}, {"count": {}},
], ids=str)
def test_figures_of_a_collection_have_the_fields_of_mongodb(both, stage):
    both.same({"insert": "c", "documents": [{"_id": 1}]})
    both.same({"find": "c", "filter": {"a": 1}})
    request = {"aggregate": "c", "pipeline": [{"$collStats": stage}], "cursor": {}}
    [oracle] = bson.decode(both.ask_oracle(request))["cursor"]["firstBatch"]
    [pando] = bson.decode(both.ask_pando(request))["cursor"]["firstBatch"]
    same_shape(oracle, pando, set())
    assert oracle.get("queryExecStats") == pando.get("queryExecStats")
    if "latencyStats" in stage:
        for of_class in oracle["latencyStats"]:
            # MongoDB counts the request that asks already when it begins.
            own = 1 if of_class == "reads" else 0
            assert oracle["latencyStats"][of_class]["ops"] == pando["latencyStats"][of_class]["ops"] + own, of_class


@pytest.mark.parametrize("stage", [
    {"latencyStats": 1}, {"latencyStats": {"x": 1}}, {"latencyStats": {"histograms": 1}}, {"latencyStats": {"histograms": None}},
    {"queryExecStats": 1}, {"queryExecStats": {"x": 1}}, {"count": 1}, {"count": {"x": 1}}, {"storageStats": 1}, {"bogus": {}},
], ids=str)
def test_wrong_stages_are_refused_alike(both, stage):
    both.same({"insert": "c", "documents": [{"_id": 1}]})
    both.same({"aggregate": "c", "pipeline": [{"$collStats": stage}], "cursor": {}})


@pytest.mark.parametrize("stage", [{"count": {}}, {"queryExecStats": {}}, {"storageStats": {}}], ids=str)
def test_a_collection_that_does_not_exist_has_no_figures(both, stage):
    both.same({"aggregate": "missing", "pipeline": [{"$collStats": stage}], "cursor": {}})


def test_sizes_have_the_fields_of_mongodb(both):
    both.same({"insert": "c", "documents": [{"_id": 1}]})
    oracle, pando = bson.decode(both.ask_oracle({"dbStats": 1})), bson.decode(both.ask_pando({"dbStats": 1}))
    same_shape(oracle, pando, set())


@pytest.mark.parametrize("log", ["*", "global", "startupWarnings"])
def test_logs_have_the_fields_of_mongodb(both, log):
    oracle, pando = status(both, {"getLog": log})
    assert {name: type(value).__name__ for name, value in oracle.items()} == {name: type(value).__name__ for name, value in pando.items()}


def test_diagnostic_data_has_the_fields_of_mongodb(both):
    oracle, pando = (reply["data"] for reply in status(both, {"getDiagnosticData": 1}))
    assert pando.keys() <= oracle.keys()
    assert pando["serverStatus"].keys() & oracle["serverStatus"].keys() >= {*SECTIONS, "metrics", "start", "end", "ok"}
    for part in ("cpu", "memory", "vmstat"):
        oracle_part, pando_part = (shape(reply["systemMetrics"][part]) for reply in (oracle, pando))
        assert oracle_part == pando_part, part
    assert oracle["systemMetrics"]["disks"].keys() == pando["systemMetrics"]["disks"].keys()
    both.same({"getDiagnosticData": 1})
    both.on("admin").same({"getLog": "bogus"})
