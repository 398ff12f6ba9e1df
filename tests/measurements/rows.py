"""The measures of servers: each is a function that fills a record (raw.py).

Where a measure has a peer, Pando and MongoDB take turns, and each round starts both over empty folders. Writes have
`w: 1` on both sides. Both get a cache of the same size; their other settings are the defaults.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from urllib.parse import quote

import bson
from pymongo import WriteConcern

import everyday as operations
import raw
from servers import (
    BENCH,
    MONGOD,
    PANDO,
    PANDO_SERVE,
    WORK,
    Mongod,
    Pando,
    bench,
    client_of,
    free_port,
    mongod_environment,
    mongod_program,
    size_mb,
)

ROUNDS = int(os.environ.get("ROUNDS", "3"))
SECONDS = int(os.environ.get("SECONDS_EACH", "10"))
# The code of a message of MongoDB's wire protocol.
OP_MSG = 2013
# 1 million sysbench documents in 8 collections with an index on `k`.
SYSBENCH = ("--collections", 8, "--docs", 125_000)
# 5 million, ten times a cache of 100 MB.
LARGE = ("--collections", 8, "--docs", 625_000)
# The chart: 5 million purchases with three indexes, a cache of 64 MB, a memory cap of 256 MB with the page cache.
DOCUMENTS_MAX, SECONDS_MAX = 5_000_000, 300
PURCHASES = ("--docs", DOCUMENTS_MAX, "--clients", 4, "--duration", SECONDS_MAX, "--settle", 0, "--no-ceiling")
CAPPED = ("--cache-mb", 64, "--cap", "256MB")
# Where servers keep their logs: MongoDB, Pando.
LOG_FOLDERS = ("journal", "wal")


def in_turns(measure, name, cache_mb):
    """Runs a measure on Pando and, where it can be had, on MongoDB; the order changes from round to round."""
    kinds = [("pando", Pando), ("mongodb", Mongod)] if mongod_program() else [("pando", Pando)]
    for turn in range(ROUNDS):
        for prefix, kind in kinds[::-1] if turn % 2 else kinds:
            server = kind(f"{name}-{prefix}", cache_mb).start()
            try:
                measure(prefix, server)
            finally:
                if server.process.poll() is None:
                    server.end()
                server.remove()


def add_run(record, name, run):
    """The figures of a run that rows show."""
    figures = run["figures"]
    record.add(f"{name}.rate", figures["rate"])
    record.add(f"{name}.p50_us", figures["latency_us"]["p50"])
    record.add(f"{name}.p99_us", figures["latency_us"]["p99"])
    for cost in ("server_cpu_us", "server_switches", "disk_reads", "read_kb", "written_kb"):
        record.add(f"{name}.{cost}", figures["per_operation"][cost])


def load(record):
    """The load of 1 million sysbench documents by 4 connections."""
    in_turns(
        lambda prefix, server: add_run(
            record, f"{prefix}.load", bench("load", "--uri", server.uri, *SYSBENCH)[0]
        ),
        "load",
        2000,
    )


def sizes(record):
    """The folder of 1 million sysbench documents after a clean end, and the part of it that is logs."""

    def one(prefix, server):
        bench("load", "--uri", server.uri, *SYSBENCH)
        server.end()
        record.add(f"{prefix}.disk_mb", size_mb(server.folder))
        record.add(f"{prefix}.log_mb", sum(size_mb(server.folder / name) for name in LOG_FOLDERS))

    in_turns(one, "sizes", 2000)


def point(record):
    """Point queries by `_id`, all in the cache, by 1, 32 and 100 clients."""

    def one(prefix, server):
        bench("load", "--uri", server.uri, *SYSBENCH)
        for run in bench(
            "point",
            "--uri",
            server.uri,
            *SYSBENCH,
            "--clients",
            "1,32,100",
            "--duration",
            SECONDS,
            "--load",
            "no",
            "--no-ceiling",
        ):
            add_run(record, f"{prefix}.c{run['plan']['clients']}", run)

    in_turns(one, "point", 2000)


def sysbench(record):
    """The sysbench transaction mix, all in the cache, by 16 clients."""

    def one(prefix, server):
        bench("load", "--uri", server.uri, *SYSBENCH)
        for run in bench(
            "sysbench",
            "--uri",
            server.uri,
            *SYSBENCH,
            "--clients",
            16,
            "--duration",
            SECONDS,
            "--load",
            "no",
            "--no-ceiling",
        ):
            add_run(record, f"{prefix}.c16", run)

    in_turns(one, "sysbench", 2000)


def iibench(record):
    """Inserts of 1 million documents with three indexes, all in the cache, by 4 clients."""

    def one(prefix, server):
        add_run(
            record,
            prefix,
            bench("iibench", "--uri", server.uri, "--docs", 1_000_000, "--clients", 4, "--settle", 0, "--no-ceiling")[
                0
            ],
        )

    in_turns(one, "iibench", 1000)


def chart(record):
    """Inserts with three indexes while the data outgrows the memory, for the chart of README.md."""
    record.setup = {
        "cache_bytes": 64_000_000,
        "cap_bytes": 256_000_000,
        "document_bytes": 109,
        "documents_max": DOCUMENTS_MAX,
        "seconds_max": SECONDS_MAX,
    }
    sides = {"pando": (PANDO_SERVE.replace("{program}", str(PANDO)), None)}
    if mongod_program():
        sides["mongodb"] = (MONGOD.replace("{program}", mongod_program()), mongod_environment())
    for prefix, (command, environment) in sides.items():
        folder = WORK / f"chart-{prefix}"
        folder.mkdir(parents=True)
        uri = f"mongodb://127.0.0.1:{free_port()}"
        run = bench(
            "iibench",
            "--uri",
            uri,
            "--data-dir",
            folder,
            "--server-command",
            command,
            *CAPPED,
            *PURCHASES,
            environment=environment,
        )[0]
        shutil.rmtree(folder, ignore_errors=True)
        add_run(record, prefix, run)
        points = rates_of(run["figures"]["timeline"])
        record.timeline(prefix, points)
        record.add(f"{prefix}.late.rate", raw.late_rate(points))
        record.add(f"{prefix}.documents", run["figures"]["operations"])


def rates_of(timeline):
    """Documents that were in, and the rate, at the end of each second but the last, which is seldom whole."""
    documents, points = 0, []
    for second in timeline[:-1]:
        documents += second["operations"]
        points.append((documents, second["operations"]))
    return points


def cold(record):
    """Point queries over 5 million documents with a cache of 100 MB, beside `fio` on the same file."""
    pando = Pando("cold", 100).start()
    bench("load", "--uri", pando.uri, *LARGE)
    pando.end()
    for _ in range(ROUNDS):
        pando.start()
        socket_uri = f"mongodb://{quote(str(pando.folder / 'pando.sock'), safe='')}"
        rates = {}
        for way, uri in (("tcp", pando.uri), ("socket", socket_uri)):
            run = bench(
                "point",
                "--uri",
                uri,
                *LARGE,
                "--clients",
                64,
                "--duration",
                SECONDS,
                "--warmup",
                5,
                "--load",
                "no",
                "--no-ceiling",
            )[0]
            add_run(record, f"pando.{way}", run)
            rates[way] = run["figures"]["rate"]
        pando.end()
        device = fio_rate(next(pando.folder.glob("data.*")))
        record.add("fio.rate", device)
        for way, rate in rates.items():
            record.add(f"pando.{way}.of_device", rate / device)


def fio_rate(file):
    """Random reads of 8 KB a second, by 64 threads past the page cache."""
    if shutil.which("fio") is None:
        raise SystemExit("there is no fio: install it (Debian: apt-get install fio)")
    ended = subprocess.run(
        [
            "fio",
            "--name=read",
            f"--filename={file}",
            "--rw=randread",
            "--bs=8k",
            "--direct=1",
            "--ioengine=psync",
            "--numjobs=64",
            "--thread",
            "--group_reporting",
            "--time_based",
            f"--runtime={SECONDS}",
            "--readonly",
            "--output-format=json",
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(ended.stdout[ended.stdout.index("{") :])["jobs"][0]["read"]["iops"]


def growth(record):
    """Memory through a load of 5 million documents with a cache of 100 MB, and the start-up after a clean end."""
    pando = Pando("growth", 100).start()
    bench("load", "--uri", pando.uri, *LARGE)
    record.add("resident_mb", pando.memory_mb("VmHWM"))
    pando.end()
    for _ in range(ROUNDS):
        pando.start()
        record.add("start_s", pando.start_seconds)
        pando.end()


def replay(record):
    """kill -9 in the middle of a load, and how long the next start replays the log."""
    for _ in range(ROUNDS):
        pando = Pando("replay", 2000).start()
        loading = subprocess.Popen(
            [BENCH, "load", "--uri", pando.uri, "--collections", "4", "--docs", "1250000"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        live = highest_log_bytes(pando, loading)
        pando.end(signal.SIGKILL)
        loading.wait()
        pando.start()
        record.add("log_mb", live / 1e6)
        record.add("writes", pando.statistics()["recovery.writes"])
        record.add("start_s", pando.start_seconds)
        record.add("s_a_gb", pando.start_seconds / max(live, 1) * 1e9)
        pando.end()
        pando.remove()


def highest_log_bytes(pando, loading):
    """Waits until the live log of a load begins to shrink; gives its bytes at this moment."""
    most = 0
    while loading.poll() is None:
        live = pando.statistics()["log.live_bytes"]
        if live > 100e6 and live < most:
            break
        most = max(most, live)
        time.sleep(0.05)
    return pando.statistics()["log.live_bytes"]


def idle(record):
    """Resident memory of 2,000 idle connections, each of which has sent one `ping`."""
    body = bson.encode({"ping": 1, "$db": "admin"})
    ping = struct.pack("<iiiiIB", 21 + len(body), 1, 0, OP_MSG, 0, 0) + body
    for _ in range(ROUNDS):
        pando = Pando("idle", 100).start()
        before = pando.memory_mb()
        connections = [socket.create_connection(("127.0.0.1", pando.port)) for _ in range(2000)]
        for connection in connections:
            connection.sendall(ping)
        # A reply shows that the server has taken the connection out of the kernel's queue.
        for connection in connections:
            assert connection.recv(1024), "the server closed a connection"
        time.sleep(1)
        record.add("memory_mb", pando.memory_mb() - before)
        for connection in connections:
            connection.close()
        pando.end()
        pando.remove()


def flushes(record):
    """Device flushes of 200 updates with `j: true`, one after the other."""
    pando = Pando("flushes", 100).start()
    with client_of(pando.port) as client:
        collection = client.measure.get_collection("c", write_concern=WriteConcern(w=1, j=True))
        collection.insert_one({"_id": 1, "n": 0})
        before = device_flushes(pando.folder)
        began = time.monotonic()
        for _ in range(200):
            collection.update_one({"_id": 1}, {"$inc": {"n": 1}})
        record.add("ms_each", (time.monotonic() - began) / 200 * 1000)
        record.add("flushes", device_flushes(pando.folder) - before)
    pando.end()


def device_flushes(folder):
    device = os.stat(folder).st_dev
    name = f"{os.major(device)} {os.minor(device)}"
    for line in pathlib.Path("/proc/diskstats").read_text().splitlines():
        fields = line.split()
        if " ".join(fields[:2]) == name:
            return int(fields[18])
    raise SystemExit(f"the device {name} of {folder} has no line in /proc/diskstats: set WORK to a folder on a disk")


def kill(record):
    """kill -9 during writes, 100 rounds: the test ends with a failure if one acknowledged write is lost."""
    rounds = os.environ.get("KILL_ROUNDS", "100")
    test = pathlib.Path(__file__).parents[1] / "python" / "test_kill.py"
    command = [sys.executable, "-m", "pytest", "-q", str(test)]
    ended = subprocess.run(command, env={**os.environ, "PANDO": str(PANDO), "KILL_ROUNDS": rounds, "ENGINES": "betree"})
    record.add("rounds", float(rounds))
    record.add("failed_tests", 0.0 if ended.returncode == 0 else 1.0)


def entries(record):
    """The engine alone: 5 million index entries of 30 bytes under random keys, a cache of 64 MB."""
    folder = WORK / "entries"
    command = [
        "cargo",
        "run",
        "--quiet",
        "--release",
        "-p",
        "pando-betree",
        "--example",
        "random_inserts",
        "--",
        str(folder),
        "index",
        "5000000",
        "64",
    ]
    ended = subprocess.run(command, check=True, capture_output=True, text=True)
    shutil.rmtree(folder, ignore_errors=True)
    parts = [
        (float(rate), float(written))
        for rate, written in re.findall(r"^to \d+: (\d+) entries/s, (\d+) B written", ended.stdout, re.M)
    ]
    record.add("first.rate", parts[0][0])
    record.add("last.rate", parts[-1][0])
    record.add("last.written_bytes", parts[-1][1])
    record.add("get.reads", float(re.search(r"^get: .*?([\d.]+) reads", ended.stdout, re.M)[1]))
    record.add("scan.reads", float(re.search(r"^scan of ten entries: .*?([\d.]+) reads", ended.stdout, re.M)[1]))


def everyday(record):
    """Thirty-three everyday operations on 1 million documents, all in the cache, by one client each."""
    kinds = {"pando": Pando} | ({"mongodb": Mongod} if mongod_program() else {})
    servers = {side: kind(f"everyday-{side}", 2000).start() for side, kind in kinds.items()}
    try:
        sides = {side: client_of(server.port).everyday for side, server in servers.items()}
        for database in sides.values():
            operations.fill(database)
        ratios = []
        for name, times in operations.take_turns(list(operations.OPERATIONS), sides):
            for side, milliseconds in times.items():
                for sample in milliseconds:
                    record.add(f"{side}.{name}.ms", sample)
            if "mongodb" in times:
                ratios.append(operations.ratio(times["pando"], times["mongodb"]))
                print(f"  {name}: {ratios[-1]:.2f}", flush=True)
        if ratios:
            record.add("ratios.mean", operations.geometric_mean(ratios))
            record.add("ratios.lowest", min(ratios))
    finally:
        for server in servers.values():
            server.end()
            server.remove()


MEASURES = {
    measure.__name__: measure
    for measure in (load, sizes, point, sysbench, iibench, everyday, chart, cold, growth, replay, idle, flushes, kill, entries)
}
