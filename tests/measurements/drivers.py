#!/usr/bin/env python3
"""The rate of `pando-bench` by that of the Node and of the Rust driver at the same client CPU: point queries against one `pando serve`.

    drivers.py --programs target/release --node tests/node --rust PROGRAM [--seconds 5] [--rounds 3] [--clients 100]

A client that costs a fifth of the CPU per query drives five times the rate with as much CPU. All ask the same server for the same
documents, in turn; the median of the rounds counts. Needs `node` and the driver in NODE/node_modules (`npm ci` in tests/node), and
tests/rust's example `points`, built with --release. Ends with 1 if a bound is not kept, or an answer was wrong.
"""
import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile
import time

DOCUMENTS = 100_000
HERE = pathlib.Path(__file__).parent
# At least so many times the driver's rate at the same client CPU.
BOUNDS = {"Node driver": 5.0, "Rust driver": 2.0}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait_for(port):
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("the server does not listen")


def ours(bench, uri, options, folder):
    arguments = ["--uri", uri, "--collections", "1", "--docs", str(DOCUMENTS), "--load", "no", "--no-ceiling", "--out", folder]
    arguments += ["--clients", str(options.clients), "--duration", str(options.seconds), "--warmup", "2"]
    subprocess.run([bench, "point", *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    newest = max(pathlib.Path(folder).glob("point-*.json"), key=os.path.getmtime)
    figures = json.loads(newest.read_text())["figures"]
    return {"rate": figures["rate"], "cpu_us": figures["per_operation"]["client_cpu_us"], "missed": figures["missed"]}


def driver(command, environment=None):
    ended = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, env={**os.environ, **(environment or {})})
    return json.loads(ended.stdout)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", required=True, help="folder of pando and pando-bench, built with --release")
    parser.add_argument("--node", help="folder with node_modules/mongodb")
    parser.add_argument("--rust", help="tests/rust's example points, built with --release")
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if not (options.node or options.rust):
        parser.error("give --node, --rust or both")
    return options


def main():
    options = parsed()
    programs = pathlib.Path(options.programs).resolve()
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        uri = f"mongodb://127.0.0.1:{port}"
        command = [programs / "pando", "serve", "--engine", "memory", "--listen", f"127.0.0.1:{port}", "--data", f"{folder}/data"]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        asked = [options.clients, options.seconds, DOCUMENTS]
        ways = {"pando-bench": lambda: ours(programs / "pando-bench", uri, options, f"{folder}/out")}
        if options.node:
            environment = {"DRIVER_FOLDER": str(pathlib.Path(options.node).resolve())}
            ways["Node driver"] = lambda: driver(["node", HERE / "points.mjs", uri, *asked], environment)
        if options.rust:
            ways["Rust driver"] = lambda: driver([pathlib.Path(options.rust).resolve(), uri, *asked])
        try:
            wait_for(port)
            load = ["load", "--uri", uri, "--collections", "1", "--docs", str(DOCUMENTS)]
            subprocess.run([programs / "pando-bench", *load], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for _ in range(options.rounds):
                rounds.append({name: ask() for name, ask in ways.items()})
        finally:
            server.terminate()
            server.wait()
    return 0 if told(rounds, ways) else 1


def told(rounds, ways):
    """Prints what was found; whether every bound is kept."""
    for name in ways:
        rate, cpu = (statistics.median(each[name][figure] for each in rounds) for figure in ("rate", "cpu_us"))
        print(f"{name}: {rate:.0f} queries/s, {cpu:.2f} us of client CPU a query")
    missed = sum(side["missed"] for each in rounds for side in each.values())
    kept = missed == 0
    for name, bound in BOUNDS.items():
        if name in ways:
            ratio = statistics.median(each[name]["cpu_us"] / each["pando-bench"]["cpu_us"] for each in rounds)
            kept = kept and ratio >= bound
            print(f"{'holds   ' if ratio >= bound else 'DOES NOT'} rate at the same client CPU: {ratio:.1f} times the {name}'s (bound {bound:.0f})")
    print(f"{missed} wrong answers")
    return kept


if __name__ == "__main__":
    sys.exit(main())
