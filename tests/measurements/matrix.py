#!/usr/bin/env python3
"""Takes the results of the suites `engines-*-small` into the raw results, and generates the pages and their chart.

matrix.py FOLDER…     one folder of `pando-bench suite` for each suite
"""

import json
import pathlib
import sys

import page
import raw

# By the workload of a suite: the name of its raw results, and the names of its caches.
SUITES = {"point": "engine-points", "iibench": "engine-inserts", "sysbench": "engine-matrix"}
# The same engine with another setting is no rival.
NO_RIVALS = {"betree", "betree-as-b-tree"}


def slug(name):
    return name.lower().replace(",", "").replace(" ", "-")


def cache_of(label):
    """`64 MB, slow` is `64-slow`, and `cache below the data` is `below`."""
    return slug(label.replace(" MB", "").removeprefix("cache ").removesuffix(" the data"))


def results_of(folder):
    """The results of a suite as it is now: its progress names the files, and older tools named none."""
    folder = pathlib.Path(folder)
    progress = folder / "suite.json"
    named = json.loads(progress.read_text()).get("reported") if progress.exists() else None
    for file in sorted((folder / "results").glob("*.json")):
        if named is None or file.name in named:
            yield json.loads(file.read_text())


def measurements(results):
    """The same results; ends the program if one of them is flagged: that is no measurement."""
    results = list(results)
    flagged = [result["labels"] for result in results if result["flagged"]]
    if flagged:
        names = sorted(f"{labels['server']}, {labels['cache']}, {labels['run']}" for labels in flagged)
        raise SystemExit(f"flagged, so no measurement: {'; '.join(names)}. Find the cause, and measure it again.")
    return results


def figures_of(result):
    """The figures of one cell, by name."""
    figures = result["figures"]
    counted = figures["per_operation"]
    named = {"rate": figures["rate"], "p99_us": figures["latency_us"]["p99"], "cpu_us": counted.get("server_cpu_us")}
    return named | {name: counted.get(name) for name in ("disk_reads", "read_kb", "written_kb", "server_switches")}


def cells(results):
    """Server, cache and figures of each result that is no load."""
    for result in results:
        labels = result["labels"]
        if labels.get("cache") and result["workload"] in SUITES and labels["run"] != "load":
            yield slug(labels["server"]), cache_of(labels["cache"]), figures_of(result)


def with_rivals(found):
    """The best rate of the other engines, by cache; and that of LSM trees by that of B-trees of one library."""
    rivals = {}
    for (server, cache), figures in found.items():
        if server not in NO_RIVALS:
            rivals[cache] = max(rivals.get(cache, 0.0), figures["rate"])
    for cache, rate in rivals.items():
        yield f"best-other.{cache}.rate", rate
    for cache in rivals:
        lsm, btree = found.get(("wiredtiger-lsm", cache)), found.get(("wiredtiger-btree", cache))
        if lsm and btree:
            yield f"lsm-by-btree.{cache}.rate", lsm["rate"] / btree["rate"]


def record_of(results):
    """The record of a suite's results."""
    workload = next(result["workload"] for result in results if result["workload"] in SUITES)
    record = raw.Record(SUITES[workload], "make measure-matrix")
    found = {(server, cache): figures for server, cache, figures in cells(results)}
    for (server, cache), figures in found.items():
        for name, value in figures.items():
            record.add(f"{server}.{cache}.{name}", value)
    for name, value in with_rivals(found):
        record.add(name, value)
    return record


def main(arguments):
    if not arguments:
        return __doc__
    for folder in arguments:
        print(f"-> {record_of(measurements(results_of(folder))).write()}")
    page.write()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
