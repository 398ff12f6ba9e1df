"""Servers that start again on the same port and data after a kill: Pando, or a real MongoDB."""

import os
import pathlib
import random
import signal
import socket
import subprocess
import tempfile
import time

from pymongo import MongoClient, common
from pymongo.errors import ConfigurationError, OperationFailure

from oracle import PROGRAM, Oracle
from server import Server

# PyMongo asks for a lost server at most this often. Its default is half a second, in which a client stands still.
common.MIN_HEARTBEAT_INTERVAL = 0.05
# Drivers repeat writes and commits only where the server looks like a member of a replica set.
os.environ["PANDO_PERSONA"] = "replica-set"

OPTIONS = {"serverSelectionTimeoutMS": 20_000, "socketTimeoutMS": 30_000, "serverMonitoringMode": "poll"}


def client_of(port, options="directConnection=true"):
    return MongoClient(f"mongodb://127.0.0.1:{port}/?{options}", **OPTIONS)


class NoTransactions(Exception):
    """The server cannot run multi-document transactions, so there is nothing to check."""


def require_transactions(client):
    try:
        client.preflight.things.insert_one({"_id": 0})
        with client.start_session() as session, session.start_transaction():
            client.preflight.things.insert_one({"_id": 1}, session=session)
        found = client.preflight.things.count_documents({})
        client.drop_database("preflight")
    except (OperationFailure, ConfigurationError) as error:
        raise NoTransactions(f"this server has no transactions: {error}") from error
    if found != 2:
        raise NoTransactions(f"this server has no transactions: {found} of 2 documents are there after a commit")


def steady_port():
    """A free port that the kernel gives to no outgoing connection, so none takes it while the server is down."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as listener:
            try:
                listener.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


class Pando:
    """`pando serve` on one port and folder."""

    # The read concerns that give each level. Those of `snapshot` all read from the snapshot of the transaction.
    read_concerns = {"snapshot": ("snapshot", "majority", "local", None), "serializable": ("serializable",)}
    uri_options = "directConnection=true"
    # A statement outside a transaction reads from one snapshot, and sees every acknowledged write.
    strict_statements = True

    # The levels whose scenarios are played, and those scenarios that end otherwise than the level says.
    levels = ("snapshot", "serializable")
    exceptions = {}

    def __init__(self, engine="betree", arguments=()):
        self.home = tempfile.TemporaryDirectory(prefix="histories-")
        self.server = Server(pathlib.Path(self.home.name) / "data", *arguments, engine=engine)
        self.port = steady_port()

    def start(self):
        self.server.start(self.port)
        return self

    def kill(self):
        self.server.kill()

    def stop(self):
        """Ends the server; gives what is wrong with its end."""
        faults = []
        if not self.server.is_running():
            faults.append(f"the server had ended with {self.server.process.returncode}: {self.server.log()}")
        elif (code := self.server.stop()) != 0:
            faults.append(f"the server ended with {code}: {self.server.log()}")
        if "panic" in self.server.whole_log():
            faults.append(f"the server panicked: {self.server.log()}")
        self.home.cleanup()
        return faults


class MongoDB(Oracle):
    """The oracle as a replica set of one."""

    # The others read what a crash may still take back.
    read_concerns = {"snapshot": ("snapshot",)}
    # A restarted member is no primary at first: clients wait for it.
    uri_options = "replicaSet=rs0"
    strict_statements = False
    levels = ("snapshot",)
    # MongoDB finds no documents in a collection that was dropped after the snapshot.
    exceptions = {"read_of_a_dropped_collection": "allowed"}

    def __init__(self):
        super().__init__()
        self.port = steady_port()
        self.started = False

    def start(self):
        if not self.started:
            self.started = True
            return self.start_replica_set()
        environment = dict(os.environ, ORACLE_HOME=self.home.name, KEEP="1")
        self._pid_file().unlink()
        subprocess.run(
            [PROGRAM, "start", str(self.port), "--replSet", "rs0", "--wiredTigerCacheSizeGB", "0.5"],
            env=environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        with client_of(self.port) as client:
            while not client.admin.command("hello").get("isWritablePrimary"):
                time.sleep(0.05)
        return self

    def kill(self):
        pid = int(self._pid_file().read_text())
        os.kill(pid, signal.SIGKILL)
        while pathlib.Path(f"/proc/{pid}/cmdline").exists() and pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
            pass

    def stop(self):
        super().stop()
        return []

    def _pid_file(self):
        return pathlib.Path(self.home.name) / f"data-{self.port}" / "started-pid"
