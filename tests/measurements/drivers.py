#!/usr/bin/env python3
"""The rate of `pando-bench` by that of the Node driver at the same client CPU: point queries against one `pando serve`.

    drivers.py --programs target/release --driver tests/node [--seconds 5] [--rounds 3] [--clients 100]

A client that costs a fifth of the CPU per query drives five times the rate with as much CPU. Both ask the same server for the same
documents, in turn; the median of the rounds counts. Needs `node`, and the driver in DRIVER/node_modules (`npm ci` in tests/node).
"""
import argparse
import json
import os
import pathlib
import socket
import statistics
import subprocess
import tempfile
import time

DOCUMENTS = 100_000
HERE = pathlib.Path(__file__).parent


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


def node(uri, options):
    environment = dict(os.environ, DRIVER_FOLDER=str(pathlib.Path(options.driver).resolve()))
    command = ["node", HERE / "points.mjs", uri, str(options.clients), str(options.seconds), str(DOCUMENTS)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment).stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", required=True, help="folder of pando and pando-bench, built with --release")
    parser.add_argument("--driver", required=True, help="folder with node_modules/mongodb")
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    programs = pathlib.Path(options.programs).resolve()
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        uri = f"mongodb://127.0.0.1:{port}"
        command = [programs / "pando", "serve", "--engine", "memory", "--listen", f"127.0.0.1:{port}", "--data", f"{folder}/data"]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_for(port)
            load = ["load", "--uri", uri, "--collections", "1", "--docs", str(DOCUMENTS)]
            subprocess.run([programs / "pando-bench", *load], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            rounds = [(ours(programs / "pando-bench", uri, options, f"{folder}/out"), node(uri, options)) for _ in range(options.rounds)]
        finally:
            server.terminate()
            server.wait()
    missed = sum(side["missed"] for pair in rounds for side in pair)
    for name, place in (("pando-bench", 0), ("Node driver", 1)):
        rate = statistics.median(pair[place]["rate"] for pair in rounds)
        cpu = statistics.median(pair[place]["cpu_us"] for pair in rounds)
        print(f"{name}: {rate:.0f} queries/s, {cpu:.2f} us of client CPU a query")
    ratio = statistics.median(theirs["cpu_us"] / ours["cpu_us"] for ours, theirs in rounds)
    print(f"rate at the same client CPU: {ratio:.1f} times the Node driver's ({missed} wrong answers)")


if __name__ == "__main__":
    main()
