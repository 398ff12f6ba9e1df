#!/usr/bin/env python3
"""Fills in the expectations of the corpora in this folder by asking a real MongoDB server (the oracle).

    ask_oracle.py PORT FILE...        a server on 127.0.0.1:PORT; each FILE is rewritten in place

A corpus is a text file of cases, separated by empty lines. A case is lines of `name value`, values in Extended JSON;
lines that begin with `#` are comments, and the line that begins with `=>` is the expectation. What a case may hold
depends on the folder of its file:

    updates/      document, filter, update, arrayFilters, upsert      => changed D | unchanged | inserted D | error N
    expressions/  document, expression                                => value V | missing | error N
    projections/  documents, filter, projection                       => documents [D, ...] | error N
    pipelines/    documents, pipeline                                 => documents [D, ...] | error N

`error N` has MongoDB's code; the tests find the cause that belongs to it. Needs PyMongo.
"""
import json
import os
import sys

import pymongo
from bson import json_util
from bson.json_util import JSONMode, JSONOptions

CANONICAL = JSONOptions(json_mode=JSONMode.CANONICAL, tz_aware=False)
RELAXED = JSONOptions(json_mode=JSONMode.RELAXED, tz_aware=False)


def read(value):
    return json_util.loads(value, json_options=RELAXED)


def show(value):
    return json_util.dumps(value, json_options=CANONICAL, ensure_ascii=False)


def update(db, case):
    db.c.drop()
    document = read(case["document"]) if "document" in case else None
    if document is not None:
        db.c.insert_one(document)
    statement = {"q": read(case.get("filter", "{}")), "u": read(case["update"])}
    if "arrayFilters" in case:
        statement["arrayFilters"] = read(case["arrayFilters"])
    if "upsert" in case:
        statement["upsert"] = True
    reply = db.command({"update": "c", "updates": [statement]})
    for error in reply.get("writeErrors", []):
        return f"error {error['code']}"
    after = db.c.find_one({})
    if "upserted" in reply:
        return f"inserted {show(after)}"
    return f"changed {show(after)}" if reply["nModified"] else "unchanged"


def expression(db, case):
    db.c.drop()
    db.c.insert_one(read(case["document"]))
    stage = {"$replaceWith": {"r": read(case["expression"])}}
    [result] = aggregate(db, [stage])
    return f"value {show(result['r'])}" if "r" in result else "missing"


def projection(db, case):
    fill(db, case)
    found = db.c.find(read(case.get("filter", "{}")), read(case["projection"]))
    return f"documents {show(list(found))}"


def pipeline(db, case):
    fill(db, case)
    return f"documents {show(aggregate(db, read(case['pipeline'])))}"


def aggregate(db, stages):
    # As a command: PyMongo's own method looks into the pipeline.
    reply = db.command({"aggregate": "c", "pipeline": stages, "cursor": {"batchSize": 10000}})
    return reply["cursor"]["firstBatch"]


def fill(db, case):
    db.c.drop()
    db.create_collection("c")
    documents = read(case["documents"])
    if documents:
        db.c.insert_many(documents)


ASK = {"updates": update, "expressions": expression, "projections": projection, "pipelines": pipeline}


def answer(db, folder, case):
    try:
        return ASK[folder](db, case)
    except pymongo.errors.OperationFailure as error:
        return f"error {error.code}"


def rewrite(db, path):
    folder = os.path.basename(os.path.dirname(os.path.abspath(path)))
    with open(path, encoding="utf-8") as source:
        blocks = source.read().strip().split("\n\n")
    out = []
    for block in blocks:
        lines = [line for line in block.split("\n") if line and not line.startswith("=>")]
        fields = [line for line in lines if not line.startswith("#")]
        if fields:
            case = dict((line + " ").split(" ", 1) for line in fields)
            lines.append("=> " + answer(db, folder, {name: value.strip() for name, value in case.items()}))
        out.append("\n".join(lines))
    with open(path, "w", encoding="utf-8") as target:
        target.write("\n\n".join(out) + "\n")


if __name__ == "__main__":
    client = pymongo.MongoClient("127.0.0.1", int(sys.argv[1]))
    for name in sys.argv[2:]:
        rewrite(client.ask_oracle, name)
    client.drop_database("ask_oracle")
