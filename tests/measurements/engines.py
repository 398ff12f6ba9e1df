#!/usr/bin/env python3
"""Takes the results of `pando-bench-engine all` into the raw results, and generates the pages.

engines.py [--name engines] OUT…     one folder for each run; their figures become the samples
"""

import argparse
import json
import pathlib
import sys

import page
import raw

DOCUMENT_BYTES = 308


def figures_of(results):
    """Figures by peer and name; derived ones as the tool's own table has them."""
    found = {}
    for outcome in results["outcomes"]:
        for name, value in outcome["figures"].items():
            found[f"{outcome['peer']}.{name}"] = value
    for peer in {outcome["peer"] for outcome in results["outcomes"]}:
        # A load that was cut short has no size; the same documents were loaded with a larger cache, too.
        size = found.get(f"{peer}.capped.disk_mb", found.get(f"{peer}.cached.disk_mb"))
        if size is not None:
            found[f"{peer}.derived.disk_mb"] = size
    return found


def timelines_of(results):
    """Of each peer's capped load: documents that were in at the end of each second, and the rate."""
    for outcome in results["outcomes"]:
        if outcome["phase"] == "capped" and outcome.get("timeline"):
            yield outcome["peer"], list(rates_of(outcome["timeline"]))


def rates_of(timeline):
    at, documents = 0.0, 0
    for second in timeline:
        if second["at"] > at:
            yield second["documents"], (second["documents"] - documents) / (second["at"] - at)
        at, documents = second["at"], second["documents"]


def record_of(name, runs, command):
    """The record of some runs; the timelines are those of the first."""
    record = raw.Record(name, command)
    for results in runs:
        # A phase that failed has no figures; the figures of the others hold.
        for failure in results["failures"]:
            print(f"not measured: {failure}", file=sys.stderr)
        for figure, value in figures_of(results).items():
            record.add(figure, value)
    setup = runs[0]["setup"]
    record.setup = {
        "cache_bytes": setup["cache_bytes"],
        "cap_bytes": setup["cache_bytes"] + setup["headroom_bytes"],
        "document_bytes": DOCUMENT_BYTES,
    }
    record.versions = page.versions_in(runs[0])
    for peer, points in timelines_of(runs[0]):
        # Ten minutes have as many points as a line can show.
        record.timeline(peer, points[:: max(1, len(points) // 200)])
    return record


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--name", default="engines")
    parser.add_argument("--command", default="make measure-engines")
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    runs = [json.loads((folder / "results.json").read_text()) for folder in options.folders]
    print(f"-> {record_of(options.name, runs, options.command).write()}")
    page.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
