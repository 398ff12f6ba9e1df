"""The stable API: what a client may use that asks for version 1 strictly."""

import pytest

STRICT = {"apiVersion": "1", "apiStrict": True}
COMMANDS = """abortTransaction aggregate authenticate collMod commitTransaction count create createIndexes delete drop dropDatabase dropIndexes
    endSessions explain find findAndModify getMore hello insert killCursors listCollections listDatabases listIndexes ping refreshSessions update
    distinct collStats dbStats validate buildInfo serverStatus hostInfo currentOp compact reIndex renameCollection dataSize connectionStatus
    getParameter getLog whatsmyuri listCommands dbHash isMaster usersInfo rolesInfo profile missingCommand""".split()
FIELDS = {
    "find": "max min returnKey showRecordId tailable oplogReplay noCursorTimeout awaitData readOnce allowPartialResults singleBatch",
    "aggregate": "explain allowDiskUse", "create": "autoIndexId size max storageEngine indexOptionDefaults changeStreamPreAndPostImages flags temp capped",
    "createIndexes": "ignoreUnknownIndexOptions commitQuorum", "collMod": "changeStreamPreAndPostImages recordPreImages dryRun validator",
    "listCollections": "includePendingDrops nameOnly", "listIndexes": "includeBuildUUIDs includeIndexBuildInfo",
}
STAGES = [
    {"$indexStats": {}}, {"$currentOp": {}}, {"$listLocalSessions": {}}, {"$listSessions": {}}, {"$planCacheStats": {}}, {"$collStats": {"count": {}}},
    {"$collStats": {"latencyStats": {}}}, {"$collStats": {"count": {}, "storageStats": {}}}, {"$fill": {"output": {"a": {"value": 1}}}}, {"$match": {}},
    {"$lookup": {"from": "x", "as": "y", "pipeline": [{"$indexStats": {}}]}}, {"$facet": {"a": [{"$match": {}}], "b": [{"$fill": {"output": {"a": {"value": 1}}}}]}},
    {"$unionWith": {"coll": "x", "pipeline": [{"$planCacheStats": {}}]}}, {"$setWindowFields": {"sortBy": {"a": 1}, "output": {"x": {"$linearFill": "$a"}}}},
    {"$setWindowFields": {"sortBy": {"a": 1}, "output": {"x": {"$locf": "$a"}}}}, {"$sample": {"size": 1}},
]


def code(both, request):
    return [reply.get("code") for reply in asked(both, request)]


def asked(both, request):
    return [client[both.name].command(request, check=False) for client in (both.oracle, both.pando)]


@pytest.mark.parametrize("name", COMMANDS)
def test_commands(both, name):
    both.fill("c", [{"_id": 1, "a": 1}])
    codes = code(both, {name: 1 if name not in ("find", "aggregate") else "c", **STRICT})
    assert (codes[0] == 323) == (codes[1] == 323), codes


@pytest.mark.parametrize("name,field", [(name, field) for name, fields in FIELDS.items() for field in fields.split()])
def test_fields(both, name, field):
    both.fill("c", [{"_id": 1, "a": 1}])
    for value in (1, True, {"a": 1}, "a", []):
        codes = code(both, {name: "c", field: value, **STRICT})
        # A value of another type is told first, or second.
        assert (codes[0] == 323) == (codes[1] == 323) or 323 not in codes[:1], (value, codes)


@pytest.mark.parametrize("stage", STAGES, ids=repr)
def test_stages(both, stage):
    both.fill("c", [{"_id": 1, "a": 1}])
    codes = code(both, {"aggregate": "c", "cursor": {}, "pipeline": [stage], **STRICT})
    assert (codes[0] == 323) == (codes[1] == 323), codes


@pytest.mark.parametrize("parameters", [
    {}, {"apiVersion": "1"}, {"apiStrict": True}, {"apiStrict": False}, {"apiDeprecationErrors": True}, {"apiVersion": "2"}, {"apiVersion": 1}, {"apiVersion": "1", "apiStrict": 1},
    {"apiVersion": "1", "apiDeprecationErrors": "x"}, STRICT, {**STRICT, "apiDeprecationErrors": True}], ids=repr)
def test_parameters(both, parameters):
    both.fill("c", [{"_id": 1, "a": 1}])
    for request in ({"ping": 1}, {"distinct": "c", "key": "a"}, {"missingCommand": 1}, {"createIndexes": "c", "indexes": [{"key": {"a": "text"}, "name": "t"}]}):
        both.same({**request, **parameters})
