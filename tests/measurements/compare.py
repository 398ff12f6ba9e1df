#!/usr/bin/env python3
"""Two builds beside each other on the same machine: they take turns, and ratios are taken within a round.

    compare.py --before FOLDER --after FOLDER [--rows load,point,iibench,engine] [--rounds 5] [--phases capped]

Each folder has release builds of `pando` and, for the row `engine`, of `pando-bench-engine`, which measures betree
alone. The client is one program for both builds: PANDO_BENCH, or `pando-bench` of the first folder. The order changes
from round to round. The table has the medians of both builds, the median of the ratios (after by before), and the
lowest and the highest ratio. The exit code is 1 if a median ratio is worse by more than the tolerance.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

import engines

ROWS = ("load", "point", "iibench", "engine")
# How the name of a figure ends if less of it is better; of all other figures more is.
LESS_IS_BETTER = re.compile(r"(_us|\.us|_kb|_mb|_ms|_s|_gb|_bytes|_bytes_drained|reads|switches)$")
# Figures of one run of a server that are compared, by the way to them in the run's file.
SERVER_FIGURES = {
    "rate": ("rate",),
    "p50_us": ("latency_us", "p50"),
    "server_cpu_us": ("per_operation", "server_cpu_us"),
    "written_kb": ("per_operation", "written_kb"),
}
# Figures of the engine that are compared: rates, times and amounts of work; the rest describes the setting.
ENGINE_FIGURES = re.compile(
    r"^betree\.("
    r".*\.late\.(rate|cpu_us|written_kb|reads|min_of_median)"
    r"|capped\.drained\.written_kb|capped\.(disk|loaded|peak)_mb|compacted\.disk_mb"
    r"|(cached|cold)\.(?!ceiling)\w+\.(rows|rate|cpu_us|reads)|cached\.(full|drained|snapshot)\.us"
    r"|updates\.(rate|cpu_us|written_bytes)|growing\d+\.rate"
    r"|trees\.(open_s|checkpoint_s|used_mb)|recovery\.s_a_gb"
    r")$"
)
# Ratios of figures that are nearly nothing say nothing.
LEAST = 1e-3


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, type=pathlib.Path, help="folder of the builds that ratios are to")
    parser.add_argument("--after", required=True, type=pathlib.Path, help="folder of the builds that are judged")
    parser.add_argument("--rows", default="load,point,iibench,engine", help="which of load, point, iibench, engine")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=8, help="of a measured window of `point`")
    parser.add_argument("--phases", default="cached,capped,updates", help="of `pando-bench-engine all`")
    parser.add_argument(
        "--engine-arguments",
        default="--cache 64MB --headroom 192MB --seconds 1.5 --limit 45",
        help="more arguments of `pando-bench-engine all`",
    )
    parser.add_argument("--tolerance", type=float, default=3.0, help="percent by which a figure may be worse")
    parser.add_argument("--out", type=pathlib.Path, help="write all samples into this file of JSON")
    options = parser.parse_args()
    options.rows = options.rows.split(",")
    if set(options.rows) - set(ROWS):
        parser.error(f"rows are {', '.join(ROWS)}")
    for folder in (options.before, options.after):
        for program in needed_programs(options.rows):
            if not os.access(folder / program, os.X_OK):
                parser.error(f"there is no {folder / program}")
    return options


def needed_programs(rows):
    return (["pando"] if set(rows) - {"engine"} else []) + (["pando-bench-engine"] if "engine" in rows else [])


def server_rows(folder, options):
    """The figures of one round of the server rows, by name."""
    # The client is chosen before its module reads the environment.
    from servers import Pando, bench

    found = {}
    if "load" in options.rows or "point" in options.rows:
        pando = Pando("compare", 2000, folder / "pando").start()
        loads = bench("load", "--uri", pando.uri, "--collections", 8, "--docs", 125_000)
        if "load" in options.rows:
            found["load"] = loads[0]
        if "point" in options.rows:
            for run in bench(
                "point",
                "--uri",
                pando.uri,
                "--collections",
                8,
                "--docs",
                125_000,
                "--clients",
                "1,32,100",
                "--duration",
                options.seconds,
                "--load",
                "no",
                "--no-ceiling",
            ):
                found[f"point, {run['plan']['clients']} clients"] = run
        pando.end()
        pando.remove()
    if "iibench" in options.rows:
        pando = Pando("compare", 1000, folder / "pando").start()
        found["iibench"] = bench(
            "iibench", "--uri", pando.uri, "--docs", 1_500_000, "--clients", 4, "--settle", 0, "--no-ceiling"
        )[0]
        pando.end()
        pando.remove()
    return {f"{row}: {name}": value for row, run in found.items() for name, value in figures_of_run(run, row)}


def figures_of_run(run, row):
    """The figures of a run that are compared; queries write nothing that is worth a ratio."""
    for name, way in SERVER_FIGURES.items():
        value = run["figures"]
        for step in way:
            value = value[step]
        if value is not None and not (row.startswith("point") and name == "written_kb"):
            yield name, value


def engine_rows(folder, options):
    """The figures of one round of betree alone."""
    with tempfile.TemporaryDirectory() as out:
        command = [
            folder / "pando-bench-engine",
            "all",
            "--peers",
            "betree",
            "--phases",
            options.phases,
            "--out",
            out,
            *options.engine_arguments.split(),
        ]
        ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if ended.returncode:
            raise SystemExit(f"{folder / 'pando-bench-engine'} ended with {ended.returncode}:\n{ended.stdout}")
        figures = engines.figures_of(json.loads((pathlib.Path(out) / "results.json").read_text()))
    return {
        f"engine: {name.removeprefix('betree.')}": value
        for name, value in figures.items()
        if ENGINE_FIGURES.match(name)
    }


def one_round(folder, options):
    found = {}
    if set(options.rows) - {"engine"}:
        found.update(server_rows(folder, options))
    if "engine" in options.rows:
        found.update(engine_rows(folder, options))
    return found


def worse_percent(name, ratio):
    """By how many percent a ratio is worse; below 0 it is better."""
    return ((ratio if LESS_IS_BETTER.search(name) else 1 / ratio) - 1) * 100


def report(rounds, tolerance):
    """A table as text, and the names of the figures that are worse than the tolerance."""
    names = [
        name
        for name in rounds[0]["before"]
        if all(name in each[side] for each in rounds for side in ("before", "after"))
    ]
    lines = [f"{'figure':<44}{'before':>13}{'after':>13}{'ratio':>8}{'lowest':>8}{'highest':>9}"]
    worse = []
    for name in names:
        before, after = ([each[side][name] for each in rounds] for side in ("before", "after"))
        if min(before + after) < LEAST:
            lines.append(f"{name:<44}{statistics.median(before):>13.5g}{statistics.median(after):>13.5g}       -")
            continue
        ratios = sorted(mine / theirs for mine, theirs in zip(after, before))
        percent = worse_percent(name, statistics.median(ratios))
        note = ""
        if percent > tolerance:
            worse.append(name)
            # Rounds that do not agree on the direction call for more rounds, or for a quieter machine.
            doubt = ", rounds disagree" if ratios[0] < 1 < ratios[-1] else ""
            note = f"  WORSE by {percent:.1f} %{doubt}"
        medians = (
            f"{statistics.median(before):>13.5g}{statistics.median(after):>13.5g}{statistics.median(ratios):>8.3f}"
        )
        lines.append(f"{name:<44}{medians}{ratios[0]:>8.3f}{ratios[-1]:>9.3f}{note}")
    return "\n".join(lines), worse


def main():
    options = parsed()
    os.environ.setdefault("PANDO_BENCH", str((options.before / "pando-bench").resolve()))
    sides = {"before": options.before.resolve(), "after": options.after.resolve()}
    rounds = []
    for turn in range(options.rounds):
        order = list(sides)[::-1] if turn % 2 else list(sides)
        print(f"\n# round {turn + 1} of {options.rounds}: {', then '.join(order)}", flush=True)
        rounds.append({side: one_round(sides[side], options) for side in order})
        if options.out:
            options.out.write_text(json.dumps(rounds, indent=1) + "\n")
    table, worse = report(rounds, options.tolerance)
    print(f"\n{table}\n")
    if worse:
        print(f"worse by more than {options.tolerance:g} %: {', '.join(worse)}")
        return 1
    print(f"no figure is worse by more than {options.tolerance:g} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
