#!/usr/bin/env python3
"""A checker of histories against an isolation level, in the style of Elle (Kingsbury and Alvaro, VLDB 2020).

1. Single reads show these anomalies:
   - values that nobody wrote, that were rolled back (G1a), or that were not the last of their transaction (G1b);
   - a transaction that does not see its own writes (internal), and updates that overwrite another one unseen;
   - an element twice in a list, lists that are no beginnings of one another, an append that is gone.
2. The reads give an order of versions, and it gives dependencies between transactions (`dependencies.py`).
3. A cycle of dependencies that the level forbids is an anomaly (`cycles.py`).

Levels: `snapshot` or `serializable`. The order that must be kept as well is `none`, `session` (of each client),
or `realtime`: a transaction sees each one that was acknowledged before it began. Under `snapshot` the reads of
rolled back transactions count too, because they come from a snapshot as well.

The time is linear in the history, apart from sorting, unless there is a cycle.

Histories of single reads and writes of registers are checked for linearizability instead (`linearizability.py`).

    checker.py --model list-append FILE.edn    checks a history in Elle's format
"""

import argparse

import edn
from cycles import LEVELS, ORDERS, find_cycles
from dependencies import infer
from footprints import MODELS
from linearizability import check_linearizability

LINEARIZABLE = "linearizable-register"


def check(history, model, level="snapshot", order="realtime"):
    """The anomalies of a history; an empty list if it is good. Linearizability has no levels and no other order."""
    if model == LINEARIZABLE:
        return check_linearizability(history)
    observations, anomalies, edges = infer(history, MODELS[model])
    if level == "serializable":
        committed = observations.committed
        edges = [edge for edge in edges if edge.source in committed and edge.target in committed]
    return anomalies + find_cycles(history, edges, level, order)


def main():
    parser = argparse.ArgumentParser(description="Checks a history in Elle's format.")
    parser.add_argument("--model", choices=[*MODELS, LINEARIZABLE], required=True)
    parser.add_argument("--level", choices=LEVELS, default="snapshot")
    parser.add_argument("--order", choices=ORDERS, default="realtime")
    parser.add_argument("file")
    arguments = parser.parse_args()
    history = edn.read(arguments.file)
    anomalies = check(history, arguments.model, arguments.level, arguments.order)
    for anomaly in anomalies:
        print(anomaly)
    print(f"{arguments.file}: {len(history)} transactions, {len(anomalies)} anomalies")
    raise SystemExit(1 if anomalies else 0)


if __name__ == "__main__":
    main()
