"""Servers that are measured, and the calls of `pando-bench` that measure them.

Environment: PANDO and PANDO_BENCH name release builds; ORACLE names the script that installs MongoDB; WORK names
the folder for data (a new temporary folder if it is left out).
"""

import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from pymongo import MongoClient

PANDO = os.environ.get("PANDO", "target/release/pando")
BENCH = os.environ.get("PANDO_BENCH", "target/release/pando-bench")
ORACLE = os.environ.get("ORACLE", "../shared/oracle/mongod")
WORK = pathlib.Path(os.environ.get("WORK") or tempfile.mkdtemp(prefix="pando-measure-"))

# MongoDB with its defaults apart from the cache, which is as large as Pando's. The words in braces are those of
# `pando-bench --server-command`.
MONGOD = (
    "{program} --bind_ip 127.0.0.1 --port {port} --dbpath {data} --nounixsocket --quiet --wiredTigerCacheSizeGB 0.25 "
    "--wiredTigerEngineConfigString cache_size={cache_bytes}"
)
PANDO_SERVE = "{program} serve --data {data} --listen 127.0.0.1:{port} --unix-socket none --cache {cache_bytes}"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def client_of(port):
    return MongoClient("127.0.0.1", port, directConnection=True, serverSelectionTimeoutMS=120000)


def size_mb(folder):
    return sum(f.stat().st_blocks * 512 for f in folder.rglob("*") if f.is_file()) / 1e6


class Process:
    """A server over a folder of its own; subclasses say how it is started."""

    def __init__(self, name, cache_mb):
        self.folder = WORK / name
        self.cache_mb = cache_mb

    def start(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.uri = f"mongodb://127.0.0.1:{self.port}"
        began = time.monotonic()
        self.process = subprocess.Popen(
            self.command(),
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                break
            except OSError:
                assert (
                    self.process.poll() is None
                ), f"{self.folder.name}: the server ended with {self.process.returncode}"
                time.sleep(0.002)
        # The port is taken before the store is opened; a request is answered once it is.
        with client_of(self.port) as client:
            client.admin.command("ping")
        self.start_seconds = time.monotonic() - began
        return self

    def environment(self):
        return None

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait()

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def memory_mb(self, field="VmRSS"):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{field}:\s+(\d+) kB", status)[1]) * 1024 / 1e6


class Pando(Process):
    """`pando serve` with the defaults apart from the cache."""

    def __init__(self, name, cache_mb, program=PANDO):
        super().__init__(name, cache_mb)
        self.program = program

    def command(self):
        return [
            self.program,
            "serve",
            "--data",
            str(self.folder),
            "--listen",
            f"127.0.0.1:{self.port}",
            "--cache",
            str(self.cache_mb * 1_000_000),
        ]

    def statistics(self):
        with client_of(self.port) as client:
            return client.admin.command("serverStatus")["pando"]["engine"]


class Mongod(Process):
    """The oracle, with the defaults apart from the cache."""

    def command(self):
        words = MONGOD.format(
            program=mongod_program(), port=self.port, data=self.folder, cache_bytes=self.cache_mb * 10**6
        )
        return shlex.split(words)

    def environment(self):
        return {**os.environ, **mongod_environment()}


class MongodReplicaSet(Mongod):
    """The oracle as a replica set of one node, which has transactions."""

    def command(self):
        return [*super().command(), "--replSet", "rs0"]

    def start(self):
        super().start()
        with client_of(self.port) as client:
            members = [{"_id": 0, "host": f"127.0.0.1:{self.port}"}]
            client.admin.command("replSetInitiate", {"_id": "rs0", "members": members})
            while not client.admin.command("hello")["isWritablePrimary"]:
                time.sleep(0.05)
        return self


@functools.cache
def mongod_program():
    """The oracle's program, installed if it is not there; nothing where there is no oracle."""
    if not os.access(ORACLE, os.X_OK):
        print(f"without MongoDB: there is no {ORACLE}", flush=True)
        return None
    installed = subprocess.run([ORACLE, "install"], stdout=subprocess.PIPE, text=True)
    if installed.returncode:
        print(f"without MongoDB: {ORACLE} could not install it", flush=True)
        return None
    return installed.stdout.strip()


def mongod_environment():
    """Where the oracle finds the OpenSSL that it was linked with."""
    return {"LD_LIBRARY_PATH": str(pathlib.Path(mongod_program()).parent / "lib")}


def bench(workload, *arguments, environment=None):
    """Calls `pando-bench`; gives its runs, as its files have them, in the order in which they were made."""
    words = [workload, *map(str, arguments)]
    print("$ pando-bench", shlex.join(words), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        ended = subprocess.run(
            [BENCH, *words, "--out", folder],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **(environment or {})},
        )
        if ended.returncode not in (0, 1):
            raise SystemExit(f"pando-bench ended with {ended.returncode}:\n{ended.stdout}")
        paths = sorted(pathlib.Path(folder).glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
        runs = [json.loads(path.read_text()) for path in paths]
    for run in runs:
        flag = "   FLAGGED: " + "; ".join(run["warnings"]) if run["flagged"] else ""
        print(
            f"  {run['workload']}, {run['plan']['clients']} clients: {run['figures']['rate']:.0f}/s{flag}", flush=True
        )
        if run["flagged"]:
            raise SystemExit(f"this run is no measurement:\n{ended.stdout}")
    return runs
