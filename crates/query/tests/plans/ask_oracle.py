#!/usr/bin/env python3
"""Asks a real MongoDB for the index bounds of the finds in the files beside this script, and writes them down.

    python3 ask_oracle.py mongodb://127.0.0.1:PORT [FILE.txt ...]

Needs PyMongo. The lines of a file:

    index {...} [arrays PATH ...]   an index specification, and the paths that have met arrays: at each name,
                                    or with PATH@PREFIX at the end of the prefix only
    find {...}                      a find (Extended JSON): filter, sort, projection, skip, limit, hint; for Pando
                                    alone `group`, a `$group` behind it, or `distinct`, the path of its values
    bounds {...}                    MongoDB's bounds, where a find has a hint: written by this script
    plan ...                        Pando's plan: written by the test `explain` with PANDO_REWRITE=1
    # ...                           a comment

`index` lines behind a `find` begin a new collection.
"""

import json
import pathlib
import sys

import pymongo
from bson.raw_bson import RawBSONDocument

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "filters"))
from ask_oracle import Pairs, document  # noqa: E402  the encoder of the filters' corpus


def bounds_of(plan):
    while plan and "indexBounds" not in plan:
        plan = plan.get("inputStage")
    return plan and plan["indexBounds"]


def shown(bounds):
    fields = (f'{name}: [ {", ".join(chr(34) + text + chr(34) for text in texts)} ]' if texts else f"{name}: []"
              for name, texts in bounds.items())
    return "{ " + ", ".join(fields) + " }"


def array_at(path):
    """A document with arrays at all names of a path; of `a.b@a` only at the end of the prefix `a`."""
    path, _, prefix = path.partition("@")
    names = path.split(".")
    value = None
    for at in range(len(names), 0, -1):
        is_array = not prefix or names[:at] == prefix.split(".")
        value = {names[at - 1]: [1, 2] if is_array and value is None else [value] if is_array else value}
    return value


def fill(path, database):
    collection = database["plans"]
    out, asked = [], True
    for line in path.read_text().splitlines():
        if line.startswith("index "):
            if asked:
                collection.drop()
                asked = False
            specification, _, arrays = line[6:].partition(" arrays ")
            database.command("createIndexes", "plans", indexes=[json.loads(specification)])
            for array in arrays.split():
                collection.insert_one(array_at(array))
            out.append(line)
        elif line.startswith("find "):
            asked = True
            out.append(line)
            find = json.loads(line[5:], object_pairs_hook=Pairs)
            if any(name == "hint" for name, _ in find):
                command = RawBSONDocument(document([("find", "plans"), *find]))
                explained = database.command("explain", command, verbosity="queryPlanner")
                out.append("bounds " + shown(bounds_of(explained["queryPlanner"]["winningPlan"])))
        elif not line.startswith("bounds "):
            out.append(line)
    path.write_text("\n".join(out) + "\n")


def main():
    folder = pathlib.Path(__file__).parent
    client = pymongo.MongoClient(sys.argv[1])
    for path in map(pathlib.Path, sys.argv[2:] or sorted(folder.glob("*.txt"))):
        # Errors, `min` and `max` have no bounds.
        if path.name != "forced.txt":
            fill(path, client["pando_plans"])
    client.drop_database("pando_plans")


if __name__ == "__main__":
    main()
