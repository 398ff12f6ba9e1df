#!/usr/bin/env python3
"""Measures the server: writes raw results to docs/measurements, and generates the pages and the chart from them.

measure.py NAME…     some measures, by names or with commas between them
measure.py all       all of them, in this order
"""

import sys

import page
import pipelines
import queries
import raw
import rows
import security
import transactions
from servers import WORK

MEASURES = {**rows.MEASURES, **transactions.MEASURES, **pipelines.MEASURES, **queries.MEASURES, **security.MEASURES}


def usage():
    lines = [f"    {name:<10}{measure.__doc__.splitlines()[0]}" for name, measure in MEASURES.items()]
    environment = "\nEnvironment: ROUNDS (3), SECONDS_EACH (10) of a measured window, PANDO, PANDO_BENCH, ORACLE, WORK, MEASUREMENTS_FOLDER."
    return __doc__ + "\nMeasures:\n" + "\n".join(lines) + "\n" + environment


def main(names):
    names = [name for argument in names for name in argument.split(",")]
    if names == ["all"]:
        names = list(MEASURES)
    unknown = [name for name in names if name not in MEASURES]
    if unknown or not names:
        print(usage())
        return f"unknown measures: {', '.join(unknown)}" if unknown else 2
    WORK.mkdir(parents=True, exist_ok=True)
    for name in names:
        print(f"\n## {name}: {MEASURES[name].__doc__}", flush=True)
        record = raw.Record(name, f"make measure MEASURES={name}")
        MEASURES[name](record)
        print(f"-> {record.write()}", flush=True)
        # After each measure, so that an interrupted run leaves pages that agree with the raw results.
        page.write()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
