"""Every documented field of the commands, and values of every kind to put into it: does each server take or refuse the same?

`COMMANDS` has for each command a request that works on a collection `c`, and the fields to vary. A field is a path with dots
(`updates.0.q`); `None` as a field stands for the command's own value (a collection's name, mostly).
"""

import datetime
import re

from bson import Binary, Code, Decimal128, Int64, MaxKey, ObjectId, Timestamp

WHEN = datetime.datetime(2026, 1, 2, 3, 4, 5)
SOME_ID = ObjectId("5f0000000000000000000001")

VALUES = {
    "string": "x",
    "empty string": "",
    "int": 1,
    "zero": 0,
    "minus one": -1,
    "long": Int64(2),
    "huge long": Int64(2**62),
    "whole double": 2.0,
    "fraction": 1.5,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "decimal": Decimal128("2"),
    "true": True,
    "false": False,
    "null": None,
    "object": {"a": 1},
    "empty object": {},
    "array": [1],
    "array of objects": [{"a": 1}],
    "empty array": [],
    "date": WHEN,
    "ObjectId": SOME_ID,
    "binary": Binary(b"\1\2", 128),
    "regex": re.compile("a"),
    "timestamp": Timestamp(1, 2),
    "code": Code("1"),
    "MaxKey": MaxKey(),
}

READ = ["maxTimeMS", "readConcern", "comment", "bogus", "$unknown"]
WRITE = ["maxTimeMS", "writeConcern", "comment", "bogus"]
UPDATE = {"q": {"_id": 1}, "u": {"$set": {"x": 1}}}
INDEX = {"key": {"z": 1}, "name": "z"}

COMMANDS = {
    "find": ({"find": "c"}, [
        None, "filter", "projection", "sort", "hint", "skip", "limit", "batchSize", "singleBatch", "max", "min", "returnKey",
        "showRecordId", "noCursorTimeout", "allowPartialResults", "allowDiskUse", "collation", "let", "oplogReplay",
        "tailable", "awaitData", *READ]),
    "aggregate": ({"aggregate": "c", "pipeline": [], "cursor": {}}, [
        None, "pipeline", "pipeline.0", "cursor", "cursor.batchSize", "cursor.bogus", "allowDiskUse", "hint", "let", "explain",
        "bypassDocumentValidation", "collation", *READ]),
    "count": ({"count": "c"}, [None, "query", "limit", "skip", "hint", "collation", "fields", *READ]),
    "distinct": ({"distinct": "c", "key": "x"}, [None, "key", "query", "collation", *READ]),
    "getMore": ({"getMore": Int64(123456789), "collection": "c"}, [None, "collection", "batchSize", "maxTimeMS", "comment", "bogus"]),
    "killCursors": ({"killCursors": "c", "cursors": [Int64(123456789)]}, [None, "cursors", "cursors.0", "bogus"]),
    "insert": ({"insert": "c", "documents": [{"_id": 100}]}, [
        None, "documents", "documents.0", "ordered", "bypassDocumentValidation", *WRITE]),
    "update": ({"update": "c", "updates": [UPDATE]}, [
        None, "updates", "updates.0", "updates.0.q", "updates.0.u", "updates.0.multi", "updates.0.upsert", "updates.0.hint",
        "updates.0.arrayFilters", "updates.0.collation", "updates.0.bogus", "updates.0.c", "ordered", "let",
        "bypassDocumentValidation", *WRITE]),
    "delete": ({"delete": "c", "deletes": [{"q": {"_id": 1}, "limit": 1}]}, [
        None, "deletes", "deletes.0", "deletes.0.q", "deletes.0.limit", "deletes.0.hint", "deletes.0.collation",
        "deletes.0.bogus", "ordered", "let", *WRITE]),
    "findAndModify": ({"findAndModify": "c", "query": {"_id": 1}, "update": {"$set": {"x": 2}}}, [
        None, "query", "sort", "update", "remove", "new", "fields", "upsert", "bypassDocumentValidation", "collation",
        "arrayFilters", "hint", "let", *WRITE]),
    "findAndModify remove": ({"findAndModify": "c", "query": {"_id": 1}, "remove": True}, [
        "update", "new", "upsert", "fields", "arrayFilters"]),
    "create": ({"create": "d"}, [
        None, "capped", "size", "max", "autoIndexId", "idIndex", "validator", "validationLevel", "validationAction", "viewOn",
        "pipeline", "collation", "storageEngine", "indexOptionDefaults", "expireAfterSeconds", "timeseries", *WRITE]),
    "drop": ({"drop": "c"}, [None, "bogus", "comment", "writeConcern"]),
    "createIndexes": ({"createIndexes": "c", "indexes": [INDEX]}, [
        None, "indexes", "indexes.0", "indexes.0.key", "indexes.0.key.z", "indexes.0.name", "indexes.0.unique",
        "indexes.0.sparse", "indexes.0.hidden", "indexes.0.background", "indexes.0.v", "indexes.0.bogus",
        "indexes.0.partialFilterExpression", "indexes.0.expireAfterSeconds", "indexes.0.storageEngine", "indexes.0.collation",
        "indexes.0.weights", "indexes.0.wildcardProjection", "indexes.0.ns", "indexes.0.dropDups", "commitQuorum", *WRITE]),
    "dropIndexes": ({"dropIndexes": "c", "index": "x_1"}, [None, "index", *WRITE]),
    "listIndexes": ({"listIndexes": "c"}, [None, "cursor", "cursor.batchSize", "bogus", "comment"]),
    "listCollections": ({"listCollections": 1}, [
        "filter", "cursor", "cursor.batchSize", "nameOnly", "authorizedCollections", "bogus"]),
    "collMod": ({"collMod": "c", "index": {"name": "x_1", "hidden": True}}, [
        None, "index", "index.name", "index.hidden", "index.keyPattern", "index.bogus", "index.expireAfterSeconds", "validator",
        "bogus"]),
    "collStats": ({"collStats": "c"}, [None, "scale", "bogus"]),
    "dbStats": ({"dbStats": 1}, ["scale", "freeStorage", "bogus"]),
    "explain": ({"explain": {"find": "c"}, "verbosity": "queryPlanner"}, [None, "verbosity", "bogus", "explain.filter"]),
    "dropDatabase": ({"dropDatabase": 1}, [None, "bogus", "writeConcern"]),
    "ping": ({"ping": 1}, [None, "bogus"]),
    "endSessions": ({"endSessions": []}, [None, "bogus"]),
    "refreshSessions": ({"refreshSessions": []}, [None]),
    "connectionStatus": ({"connectionStatus": 1}, ["showPrivileges", "bogus"]),
}
ON_ADMIN = {
    "listDatabases": ({"listDatabases": 1, "nameOnly": True, "filter": {"name": "none"}}, [
        "nameOnly", "filter", "authorizedDatabases", "bogus"]),
    "renameCollection": ({"renameCollection": "DB.c", "to": "DB.d"}, [None, "to", "dropTarget", "bogus"]),
    "getParameter": ({"getParameter": 1, "featureCompatibilityVersion": 1}, ["nothingOfThisName"]),
    "getLog": ({"getLog": "global"}, [None]),
}
SHORT_TIMES = {"int": 60_000, "long": Int64(60_000), "whole double": 60_000.0, "decimal": Decimal128("60000")}
CASES = [(name, field) for table in (COMMANDS, ON_ADMIN) for name, (_, fields) in table.items() for field in fields]


def with_field(request, field, value):
    """A copy of the request in which the field has the value; the field's parents must be there."""
    if field is None:
        return {**request, next(iter(request)): value}
    head, _, rest = field.partition(".")
    if isinstance(request, list):
        copy = list(request)
        if int(head) == len(copy):
            copy.append(None)
        copy[int(head)] = with_field(copy[int(head)], rest, value) if rest else value
        return copy
    return {**request, head: with_field(request.get(head, {}), rest, value) if rest else value}


def without_field(request, field):
    """A copy of the request without the field, which may be absent."""
    head, _, rest = field.partition(".")
    if isinstance(request, list):
        inside = [without_field(item, rest) if rest and at == int(head) else item for at, item in enumerate(request)]
        return [item for at, item in enumerate(inside) if rest or at != int(head)]
    if head not in request:
        return request
    if rest:
        return {**request, head: without_field(request[head], rest)}
    return {name: value for name, value in request.items() if name != head}


def values_for(field):
    """The (kind, value) pairs to try in this field."""
    # One millisecond may be over before the answer is there, or not.
    values = {**VALUES, **SHORT_TIMES} if field == "maxTimeMS" else VALUES
    return list(values.items())
