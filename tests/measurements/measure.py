#!/usr/bin/env python3
"""The measures of docs/measurements.md, each a subcommand; ratios are taken within one run on one machine.

    measure.py points     cached point queries by _id, Pando and the oracle, 1, 32 and 100 clients, and the load before them
    measure.py cold       data of 10 times the cache: disk reads a query, and the rate beside fio's
    measure.py growth     resident memory through a load of 5 million documents, and start-up afterwards
    measure.py replay     kill -9 with about 1 GB of log, and how long the next start replays it
    measure.py idle       what 2,000 idle connections cost
    measure.py flushes    device flushes of 200 updates with j: true, one after the other
    measure.py all        one after the other

Environment: PANDO and PANDO_BENCH name release builds; ORACLE names ../shared/oracle/mongod (points only, left out where it is missing);
fio must be installed for `cold`. Servers are started on free ports of this machine over folders in WORK (default: a new temporary
folder) and ended. Durability is w: 1 on both sides unless a line says otherwise.
"""

import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from urllib.parse import quote

from pymongo import MongoClient, WriteConcern

PANDO = os.environ.get("PANDO", "target/release/pando")
BENCH = os.environ.get("PANDO_BENCH", "target/release/pando-bench")
ORACLE = os.environ.get("ORACLE", "../shared/oracle/mongod")
WORK = pathlib.Path(os.environ.get("WORK") or tempfile.mkdtemp(prefix="pando-measure-"))


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Pando:
    def __init__(self, name, cache):
        self.folder = WORK / name
        self.cache = cache

    def start(self):
        self.port = free_port()
        began = time.monotonic()
        self.process = subprocess.Popen([PANDO, "serve", "--data", self.folder, "--listen", f"127.0.0.1:{self.port}", "--cache", self.cache],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                break
            except OSError:
                assert self.process.poll() is None, "pando ended"
                time.sleep(0.002)
        # The port is taken before the store is opened; a request is answered once it is.
        MongoClient("127.0.0.1", self.port, directConnection=True, serverSelectionTimeoutMS=120000).admin.command("ping")
        self.start_seconds = time.monotonic() - began
        return self

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait()

    def memory_mb(self, field="VmRSS"):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{field}:\s+(\d+) kB", status)[1]) * 1024 / 1e6


def bench(*arguments):
    command = [BENCH, *map(str, arguments)]
    print("$ pando-bench", *arguments[:1], *map(str, arguments[1:]), flush=True)
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(ended.stdout, flush=True)
    return ended.stdout


def rates(output):
    """Operations per second by number of clients, of the last table."""
    return {int(m[1]): float(m[2]) for m in re.finditer(r"^\s*(\d+)\s+(\d+)\s+[\d.]+\s", output, re.M)}


def points():
    pando = Pando("points", "2GB").start()
    ours = bench("point", "--uri", f"mongodb://127.0.0.1:{pando.port}", "--collections", 8, "--docs", 125000, "--clients", "1,32,100", "--duration", 10)
    pando.end()
    size = sum(f.stat().st_blocks * 512 for f in pando.folder.rglob("*") if f.is_file())
    print(f"pando: {size / 1e6:.0f} MB on disk after a clean end, the log's recycled segments included")
    if not os.access(ORACLE, os.X_OK):
        return
    port = free_port()
    subprocess.run([ORACLE, "start", str(port)], check=True, stdout=subprocess.DEVNULL)
    theirs = bench("point", "--uri", f"mongodb://127.0.0.1:{port}", "--collections", 8, "--docs", 125000, "--clients", "1,32,100", "--duration", 10)
    subprocess.run([ORACLE, "stop", str(port)], check=True)
    a, b = rates(ours), rates(theirs)
    print("| clients | Pando | MongoDB 6.0.27 | ratio |\n|---|---|---|---|")
    for clients in b:
        print(f"| {'load, ' if clients == 4 else ''}{clients} | {a[clients]:.0f}/s | {b[clients]:.0f}/s | {a[clients] / b[clients]:.2f} |")


def cold():
    pando = Pando("cold", "100MB").start()
    uri = f"mongodb://127.0.0.1:{pando.port}"
    bench("load", "--uri", uri, "--collections", 8, "--docs", 625000)
    pando.end()
    pando.start()
    uris = {"TCP": f"mongodb://127.0.0.1:{pando.port}", "its unix socket": f"mongodb://{quote(str(pando.folder / 'pando.sock'), safe='')}"}
    found = {
        way: rates(bench("point", "--uri", uri, "--collections", 8, "--docs", 625000, "--clients", 64, "--duration", 15, "--warmup", 5, "--no-ceiling"))[64]
        for way, uri in uris.items()
    }
    pando.end()
    file = next(pando.folder.glob("data.*"))
    fio = subprocess.run(["fio", "--name=read", f"--filename={file}", "--rw=randread", "--bs=8k", "--direct=1", "--ioengine=psync", "--numjobs=64", "--thread",
                          "--group_reporting", "--time_based", "--runtime=10", "--readonly"], capture_output=True, text=True).stdout
    text = re.search(r"IOPS=([\d.]+)(k?)", fio)
    iops = float(text[1]) * (1000 if text[2] else 1)
    for way, rate in found.items():
        print(f"64 clients over {way}: {rate:.0f} queries/s; fio, 64 jobs of 8 KB: {iops:.0f} reads/s; ratio {rate / iops:.2f}")


def growth():
    pando = Pando("growth", "100MB").start()
    bench("load", "--uri", f"mongodb://127.0.0.1:{pando.port}", "--collections", 8, "--docs", 625000)
    print(f"resident memory at most {pando.memory_mb('VmHWM'):.0f} MB with a cache of 100 MB (limit: 100 MB + 256 MiB = 368 MB)")
    pando.end()
    pando.start()
    print(f"start-up after a clean end on 5 million documents: {pando.start_seconds:.2f} s (limit: 1 s)")
    pando.end()


def engine_figures(pando):
    client = MongoClient("127.0.0.1", pando.port, directConnection=True)
    return client.admin.command("serverStatus")["pando"]["engine"]


def replay():
    pando = Pando("replay", "2GB").start()
    loading = subprocess.Popen([BENCH, "load", "--uri", f"mongodb://127.0.0.1:{pando.port}", "--collections", "4", "--docs", "1250000"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    most = 0
    while loading.poll() is None:
        # In the middle of the load, when most of the log is still needed.
        live = engine_figures(pando)["log.live_bytes"]
        if live > 100e6 and live < most:
            break
        most = max(most, live)
        time.sleep(0.05)
    live = engine_figures(pando)["log.live_bytes"]
    pando.end(signal.SIGKILL)
    loading.wait()
    pando.start()
    figures = engine_figures(pando)
    print(f"{live / 1e6:.0f} MB of live log at kill -9; the next start replayed {figures['recovery.records']} records, "
          f"{figures['recovery.writes']} writes, in {pando.start_seconds:.2f} s: {pando.start_seconds / max(live, 1) * 1e9:.1f} s a GB (limit: 15)")
    pando.end()


def idle():
    pando = Pando("idle", "100MB").start()
    before = pando.memory_mb()
    connections = [socket.create_connection(("127.0.0.1", pando.port)) for _ in range(2000)]
    time.sleep(1)
    print(f"2,000 idle connections: {pando.memory_mb() - before:.1f} MB (limit: 64 MB)")
    for connection in connections:
        connection.close()
    pando.end()


def flushes():
    pando = Pando("flushes", "100MB").start()
    collection = MongoClient("127.0.0.1", pando.port, directConnection=True).measure.get_collection("c", write_concern=WriteConcern(w=1, j=True))
    collection.insert_one({"_id": 1, "n": 0})
    device = os.stat(pando.folder).st_dev
    name = f"{os.major(device)} {os.minor(device)}"

    def count():
        for line in pathlib.Path("/proc/diskstats").read_text().splitlines():
            fields = line.split()
            if " ".join(fields[:2]) == name:
                return int(fields[18])
        raise SystemExit("the device of the data folder has no line in /proc/diskstats")

    before = count()
    began = time.monotonic()
    for _ in range(200):
        collection.update_one({"_id": 1}, {"$inc": {"n": 1}})
    seconds = time.monotonic() - began
    print(f"200 updates with j: true in sequence: {count() - before} device flushes (at least 180), {seconds / 200 * 1000:.2f} ms each")
    pando.end()


MEASURES = {f.__name__: f for f in (points, cold, growth, replay, idle, flushes)}

if __name__ == "__main__":
    wanted = sys.argv[1:] or ["--help"]
    if wanted == ["all"]:
        wanted = list(MEASURES)
    if not set(wanted) <= set(MEASURES):
        print(__doc__)
        sys.exit(2)
    for name in wanted:
        print(f"\n## {name}\n", flush=True)
        MEASURES[name]()
        shutil.rmtree(WORK / name, ignore_errors=True)
