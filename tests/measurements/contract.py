#!/usr/bin/env python3
"""Takes the rates behind the storage contract, by those of the bare libraries, into the raw results, and generates the pages.

contract.py OUT…     one folder of `pando-bench-engine all` for each run; their ratios become the samples
"""

import json
import pathlib
import sys

import page
import raw

LIBRARIES = ("rocksdb", "lmdb", "wiredtiger")
RATES = {
    "put": "cached.inserts.late.rate",
    "get": "cached.drained.rate",
    "get_of_many": "cached.snapshot.rate",
    "scan_of_10": "cached.scan10.rows",
    "scan_of_100": "cached.scan100.rows",
    "scan_of_100k": "cached.scan100k.rows",
}


def record_of(runs):
    """The record of some runs; a rate that was not measured leaves its ratio out."""
    record = raw.Record("contract", "make measure-contract")
    record.versions = page.versions_in(runs[0])
    for results in runs:
        found = {outcome["peer"]: outcome["figures"] for outcome in results["outcomes"] if outcome["phase"] == "cached"}
        for library in LIBRARIES:
            bare, behind = found.get(library, {}), found.get(f"{library}-engine", {})
            for name, figure in RATES.items():
                if bare.get(figure) and figure in behind:
                    record.add(f"{library}.{name}", behind[figure] / bare[figure])
    return record


def main(arguments):
    if not arguments:
        return __doc__
    runs = [json.loads((pathlib.Path(folder) / "results.json").read_text()) for folder in arguments]
    print(f"-> {record_of(runs).write()}")
    page.write()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
