"""The measures of transactions: their rate beside MongoDB's, and their cost in the server beside statements outside.

MongoDB has transactions only as a replica set, so it runs as one of one node. Commits are synced on both sides where a
measure says so.
"""

import os
import pathlib

import hot_counter
from servers import Mongod, MongodReplicaSet, Pando, bench, client_of, mongod_program

SECONDS = int(os.environ.get("SECONDS_EACH", "10"))
# For how long a snapshot is held under full write load.
SNAPSHOT_SECONDS = int(os.environ.get("SNAPSHOT_SECONDS", "600"))
ROUNDS = int(os.environ.get("ROUNDS", "3"))
DATA = ("--collections", 8, "--docs", 125_000)
# No statement but those that a measure names.
NONE = [word for kind in ("points", "simple-ranges", "sum-ranges", "order-ranges", "distinct-ranges") for word in (f"--{kind}", 0)]
NONE += [word for kind in ("index-updates", "non-index-updates", "delete-inserts") for word in (f"--{kind}", 0)]
CACHE_MB = 2000
PINGS = 20_000
LINKS = ("--nodes", 100_000)


def statements(**numbers):
    """Options of sysbench for so many statements of each kind."""
    words = list(NONE)
    for kind, number in numbers.items():
        words[words.index(f"--{kind.replace('_', '-')}") + 1] = number
    return words


def runs(server, *arguments, seconds=SECONDS):
    return bench("sysbench", "--uri", server.uri, *DATA, "--load", "no", "--no-ceiling", "--duration", seconds, *arguments)


def add_rate(record, name, run):
    record.add(f"{name}.rate", run["figures"]["rate"])
    record.add(f"{name}.server_cpu_us", run["figures"]["per_operation"]["server_cpu_us"])


def transactions(record):
    """Transactions of four statements (two reads, two updates) with synced commits, by 32 clients."""
    kinds = [("pando", Pando)] + ([("mongodb", MongodReplicaSet)] if mongod_program() else [])
    for turn in range(ROUNDS):
        for side, kind in kinds[::-1] if turn % 2 else kinds:
            server = kind(f"transactions-{side}", CACHE_MB).start()
            try:
                bench("load", "--uri", server.uri, *DATA)
                work = statements(points=2, index_updates=1, non_index_updates=1)
                for run in runs(server, *work, "--clients", 32, "--txn", "session", "--durability", "j"):
                    add_rate(record, f"{side}.four", run)
            finally:
                server.end()
                server.remove()


COUNTED = (
    ("logged", False, hot_counter.Client),
    ("synced", True, hot_counter.Client),
    ("alone", False, hot_counter.LoneClient),
)


def counter(record):
    """Increments of one counter by 32 clients: transactions with a commit in the kernel, on the device, and retryable updates alone."""
    kinds = [("pando", Pando)] + ([("mongodb", MongodReplicaSet)] if mongod_program() else [])
    for turn in range(ROUNDS):
        for side, kind in kinds[::-1] if turn % 2 else kinds:
            server = kind(f"counter-{side}", CACHE_MB).start()
            try:
                for name, durable, client in COUNTED:
                    found = hot_counter.run(server.port, SECONDS, {"w": 1, "j": durable}, kind=client)
                    shown = ", ".join(f"{figure} {value:.2f}" for figure, value in found.items())
                    print(f"  {side}, {name}: {shown}", flush=True)
                    for figure, value in found.items():
                        record.add(f"{side}.{name}.{figure}", value)
            finally:
                server.end()
                server.remove()


def processor_seconds(server):
    fields = pathlib.Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def statement(record):
    """An update with the commit of its transaction beside the same update outside and a ping: processor time of the server."""
    server = Pando("statement", CACHE_MB).start()
    try:
        bench("load", "--uri", server.uri, *DATA)
        for _ in range(ROUNDS):
            work = statements(non_index_updates=1)
            costs = {}
            for level in ("none", "session"):
                [run] = runs(server, *work, "--clients", 1, "--txn", level)
                # A run counts transactions, of one statement here.
                costs[level] = run["figures"]["per_operation"]["server_cpu_us"]
                record.add(f"{level}.server_cpu_us", costs[level])
            with client_of(server.port) as client:
                before = processor_seconds(server)
                for _ in range(PINGS):
                    client.admin.command("ping")
                ping = (processor_seconds(server) - before) / PINGS * 1e6
            record.add("ping.server_cpu_us", ping)
            record.add("ratio", costs["session"] / (costs["none"] + ping))
            print(f"  outside {costs['none']:.1f} us, ping {ping:.1f} us, with its commit {costs['session']:.1f} us", flush=True)
    finally:
        server.end()
        server.remove()


def synced(record):
    """Updates by 64 clients with `j: true` and with `j: false`, and commits for each flush of the device."""
    server = Pando("synced", CACHE_MB).start()
    try:
        bench("load", "--uri", server.uri, *DATA)
        for _ in range(ROUNDS):
            rates = {}
            for durability in ("w1", "j"):
                before = server.statistics()
                [run] = runs(server, *statements(non_index_updates=1), "--clients", 64, "--durability", durability, "--warmup", 0)
                rates[durability] = run["figures"]["rate"]
                record.add(f"{durability}.rate", rates[durability])
                if durability == "j":
                    after = server.statistics()
                    commits, flushes = (after[name] - before[name] for name in ("commits.count", "log.syncs"))
                    record.add("commits_for_a_flush", commits / max(1, flushes))
            record.add("ratio", rates["j"] / rates["w1"])
    finally:
        server.end()
        server.remove()


def linkbench(record):
    """LinkBench by 16 clients: without transactions, with those of sessions, with TokuMX's. Counts are compared with links after each."""
    server = Pando("linkbench", CACHE_MB).start()
    try:
        bench("linkbench", "--uri", server.uri, *LINKS, "--load", "only")
        for _ in range(ROUNDS):
            for level in ("none", "session", "tokumx"):
                words = (*LINKS, "--load", "no", "--no-ceiling", "--clients", 16, "--duration", SECONDS, "--txn", level)
                for run in bench("linkbench", "--uri", server.uri, *words):
                    add_rate(record, level, run)
    finally:
        server.end()
        server.remove()


def snapshot(record):
    """Updates by 32 clients while a cursor holds a snapshot for ten minutes, beside the same updates without it."""
    server = Pando("snapshot", CACHE_MB).start()
    work = statements(index_updates=1, non_index_updates=1)
    try:
        bench("load", "--uri", server.uri, *DATA)
        [free] = runs(server, *work, "--clients", 32)
        record.add("free.rate", free["figures"]["rate"])
        with client_of(server.port) as client:
            names = client.list_database_names()
            database = client[next(name for name in names if name not in ("admin", "config", "local"))]
            cursor = database[database.list_collection_names()[0]].find({}, batch_size=2, no_cursor_timeout=True)
            next(cursor)
            [held] = runs(server, *work, "--clients", 32, seconds=SNAPSHOT_SECONDS)
            figures = client.admin.command("serverStatus")["pando"]["snapshots"]
            cursor.close()
        record.add("held.rate", held["figures"]["rate"])
        record.add("held.seconds", figures["oldestSeconds"])
        record.add("held.pinned_commits", figures["pinnedCommits"])
        record.add("ratio", held["figures"]["rate"] / free["figures"]["rate"])
    finally:
        server.end()
        server.remove()


MEASURES = {measure.__name__: measure for measure in (transactions, counter, statement, synced, linkbench, snapshot)}
