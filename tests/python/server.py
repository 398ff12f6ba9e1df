"""A real `pando serve` process for tests: started on a free port over a folder, ended by signal.

The server chooses the port itself (port 0) and announces it. A port that a test chooses may go to another test, or to a client's
connection, before the server takes it.
"""

import hashlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

from pymongo import MongoClient
from pymongo.errors import PyMongoError

PANDO = os.environ.get("PANDO", str(pathlib.Path(__file__).parents[2] / "target/debug/pando"))


# The banner, or its line where the log is JSON.
ANNOUNCEMENT = rb'^  listens on  127\.0\.0\.1:(\d+)|"listen":"127\.0\.0\.1:(\d+)'


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def flags_of_engine(engine, folder):
    """The flags that an engine cannot do without: a store in the cluster of `make test-tikv`, named after the folder."""
    if engine != "tikv":
        return []
    keyspace = hashlib.sha256(str(folder).encode()).hexdigest()[:16]
    return ["--pd", os.environ["PANDO_TIKV_PD"], "--keyspace", keyspace]


class Client(MongoClient):
    """A client that ends its sessions while the server runs. PyMongo would look for a server that has ended for 20 s."""

    def __init__(self, server, *arguments, **options):
        super().__init__(*arguments, **options)
        self._server_process, self._server_port = server, server.port

    def close(self):
        if not self._server_process.is_running() or self._server_process.port != self._server_port:
            self._topology.pop_all_sessions()
        super().close()


class Server:
    """One server process. `kill` is SIGKILL; `stop` and `terminate` are SIGTERM and wait for a clean end."""

    def __init__(self, folder, *arguments, engine="betree"):
        self.folder = pathlib.Path(folder)
        self.arguments = [*flags_of_engine(engine, folder), *arguments]
        self.engine = engine
        # The command line in front of its arguments.
        self.program = [PANDO]
        self.process = None
        self.port = None

    def start(self, port=0):
        path = self.folder.parent / f"{self.folder.name}.log"
        log = open(path, "ab")
        logged_before = path.stat().st_size
        self.process = subprocess.Popen(
            [*self.program, "serve", "--data", str(self.folder), "--listen", f"127.0.0.1:{port}", "--engine", self.engine, *self.arguments],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        deadline = time.monotonic() + 60
        while True:
            announced = re.search(ANNOUNCEMENT, path.read_bytes()[logged_before:], re.MULTILINE)
            if announced:
                self.port = int(announced[1] or announced[2])
                return self
            if self.process.poll() is not None:
                raise RuntimeError(f"pando ended with {self.process.returncode}:\n{self.log()}")
            if time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"pando does not listen:\n{self.log()}")
            time.sleep(0.01)

    def log(self):
        return (self.folder.parent / f"{self.folder.name}.log").read_text(errors="replace")[-4000:]

    def whole_log(self):
        return (self.folder.parent / f"{self.folder.name}.log").read_text(errors="replace")

    @property
    def uri(self):
        return f"mongodb://127.0.0.1:{self.port}/?directConnection=true"

    def client(self, **options):
        return Client(self, self.uri, **{"serverSelectionTimeoutMS": 20000, **options})

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def held_by_queries(self):
        """The figures of memory and scratch files that are not zero though no request is under way and no cursor open."""
        with self.client(serverSelectionTimeoutMS=5000, timeoutMS=20_000) as client:
            deadline = time.monotonic() + 10
            while True:
                everything = [{"$currentOp": {"idleCursors": True, "allUsers": True}}]
                for found in client.admin.aggregate(everything + [{"$match": {"type": "idleCursor"}}]):
                    database, collection = found["ns"].split(".", 1)
                    client[database].command("killCursors", collection, cursors=[found["cursor"]["cursorId"]])
                figures = client.admin.command("serverStatus").get("pando", {}).get("queryMemory", {})
                held = {name: figures[name] for name in ("heldBytes", "scratchFiles", "scratchBytes") if figures.get(name)}
                if not held or time.monotonic() > deadline:
                    return held
                time.sleep(0.02)

    def stop(self):
        """A clean end. Every server that answers has given back the memory of its queries by then."""
        # One that wants TLS would keep a plain client waiting for its whole time.
        if self.is_running() and "requireTLS" not in self.arguments:
            try:
                held = self.held_by_queries()
            except PyMongoError:
                held = {}
            assert held == {}, held
        return self.terminate()

    def terminate(self):
        """A clean end in the midst of whatever is under way."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)

    def threads(self):
        """The numbers of its threads."""
        return pathlib.Path(f"/proc/{self.process.pid}/task").iterdir()

    def is_running(self):
        return self.process is not None and self.process.poll() is None


if __name__ == "__main__":
    print(PANDO, file=sys.stderr)
