#!/usr/bin/env python3
"""Asks a real MongoDB for the answers that the corpus beside this script expects, and writes them down.

    python3 ask_oracle.py mongodb://127.0.0.1:PORT [FILE.txt ...]

Needs PyMongo. The lines of a corpus file:

    doc {...}       a document of the collection (Extended JSON)
    find {...}      a filter (Extended JSON)
    sort {...}      a sort of all documents, as the files in `tests/sorts` have them
    ids 1 2 3       the `_id`s that a filter finds, in ascending order, or in the order of the sort: written by this script
    error TEXT      the message with which it is refused: written by this script
    # ...           a comment

`doc` lines after a `find` begin a new collection. The test `filters.rs` reads the same files and needs no MongoDB.
"""

import json
import pathlib
import struct
import sys

import bson
import pymongo
from bson import json_util
from bson.raw_bson import RawBSONDocument

# PyMongo has no values of these types, so their bytes are written here.
BYTES_ONLY = {"$undefined": 0x06, "$symbol": 0x0E}
WRAPPERS = {
    "$numberInt", "$numberLong", "$numberDouble", "$numberDecimal", "$oid", "$date", "$timestamp",
    "$binary", "$regularExpression", "$minKey", "$maxKey", "$code",
}


class Pairs(list):
    """An object as a list of pairs: names may be repeated and keep their order."""


def element(name, value):
    head = name.encode() + b"\0"
    if isinstance(value, Pairs) and value and value[0][0] in BYTES_ONLY:
        kind, text = BYTES_ONLY[value[0][0]], value[0][1]
        body = b"" if kind == 0x06 else struct.pack("<i", len(text.encode()) + 1) + text.encode() + b"\0"
        return bytes([kind]) + head + body
    if isinstance(value, Pairs) and value and value[0][0] in WRAPPERS:
        plain = {key: dict(inner) if isinstance(inner, Pairs) else inner for key, inner in value}
        if "$scope" in plain:
            value = bson.Code(plain["$code"], plain["$scope"])
        else:
            value = json_util.loads(json.dumps(plain), json_options=json_util.CANONICAL_JSON_OPTIONS)
        return bson.encode({name: value})[4:-1]
    if isinstance(value, Pairs):
        return b"\x03" + head + document(value)
    if isinstance(value, list):
        return b"\x04" + head + document((str(place), inner) for place, inner in enumerate(value))
    return bson.encode({name: value})[4:-1]


def document(pairs):
    body = b"".join(element(name, value) for name, value in pairs)
    return struct.pack("<i", len(body) + 5) + body + b"\0"


def load(text):
    return RawBSONDocument(document(json.loads(text, object_pairs_hook=Pairs)))


def answer(collection, verb, text):
    """The line that says what a filter finds, or in which order a sort puts all documents."""
    try:
        if verb == "find":
            found = sorted(entry["_id"] for entry in collection.find(load(text), {"_id": 1}))
        else:
            reply = collection.database.command("find", collection.name, sort=load(text))
            found = [entry["_id"] for entry in reply["cursor"]["firstBatch"]]
    except pymongo.errors.OperationFailure as error:
        message = error.details["errmsg"].replace("\n", " ").replace("\0", "\\0")
        return f"error {message}"
    return " ".join(["ids", *map(str, found)])


def fill(path, database):
    collection = database["filters"]
    collection.drop()
    out, asked = [], False
    for line in path.read_text().splitlines():
        if line.startswith("doc "):
            if asked:
                collection.drop()
            asked = False
            collection.insert_one(load(line[4:]))
            out.append(line)
        elif line.startswith(("find ", "sort ")):
            asked = True
            out += [line, answer(collection, line[:4], line[5:])]
        elif not line.startswith(("ids", "error ")):
            out.append(line)
    path.write_text("\n".join(out) + "\n")


def main():
    folder = pathlib.Path(__file__).parent
    client = pymongo.MongoClient(sys.argv[1])
    for path in map(pathlib.Path, sys.argv[2:] or sorted(folder.glob("*.txt"))):
        fill(path, client["pando_corpus"])
    client.drop_database("pando_corpus")


if __name__ == "__main__":
    main()
