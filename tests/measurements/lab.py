#!/usr/bin/env python3
"""Takes the output of `pando-bench self-check` and of drivers.py into the raw results, and generates the pages.

lab.py FILE     a file with both outputs
"""

import pathlib
import re
import sys

import page
import raw

# The figure of each line, by the words around it.
FIGURES = {
    "counters.rate_ratio": r"with counters by without.*?rate ([\d.]+)",
    "floor.above_us": r"above it: (-?[\d.]+) us",
    "open_loop.off_percent": r"off by ([\d.]+) %",
    "drivers.node_ratio": r"client CPU: ([\d.]+) times the Node driver",
    "drivers.rust_ratio": r"client CPU: ([\d.]+) times the Rust driver",
}


def record_of(output):
    """The record of this output; a line that is missing leaves its figure out."""
    record = raw.Record("lab", "make measure-lab")
    for name, pattern in FIGURES.items():
        found = re.search(pattern, output)
        record.add(name, float(found[1]) if found else None)
    seeds = re.search(r"^seed .*", output, re.M)
    if seeds:
        record.add("seed.differing", 0.0 if "holds" in seeds[0] else 1.0)
    return record


def main(arguments):
    if len(arguments) != 1:
        return __doc__
    print(f"-> {record_of(pathlib.Path(arguments[0]).read_text()).write()}")
    page.write()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
