"""A real MongoDB on a free port for one run of the tests."""

import os
import pathlib
import subprocess
import tempfile

from pymongo import MongoClient

from server import free_port

SHARED = pathlib.Path(os.environ.get("SHARED", pathlib.Path(__file__).parents[3] / "shared"))
PROGRAM = SHARED / "oracle" / "mongod"


INSTALLED = pathlib.Path(os.environ.get("ORACLE_HOME", pathlib.Path.home() / ".cache/pando-oracle"))
MEMORY = pathlib.Path("/dev/shm")


class Oracle:
    """One MongoDB process, without data at its start.

    Its data stand in memory where the machine has a folder for that: it syncs at every created and dropped collection, of
    which there are thousands here, and durability is not what is compared.
    """

    def __init__(self):
        self.port = free_port()
        self.home = tempfile.TemporaryDirectory(prefix="oracle-", dir=MEMORY if MEMORY.is_dir() else None)

    def start(self):
        self._install()
        # After five minutes it would make the database `config` for its sessions, which lists of databases show.
        self._run("start", "--wiredTigerCacheSizeGB", "0.5", "--setParameter", "disableLogicalSessionCacheRefresh=true")
        return self

    def start_guarded(self, *flags):
        """The same for users only; the first one may be made without a login."""
        self._install()
        self._run("start", "--wiredTigerCacheSizeGB", "0.5", "--auth", *flags)
        return self

    def start_replica_set(self):
        """The same as a replica set of one, which has transactions."""
        self._install()
        self._run("replset", "--wiredTigerCacheSizeGB", "0.5")
        return self

    def _install(self):
        subprocess.run([PROGRAM, "install"], check=True, stdout=subprocess.DEVNULL)
        for name in ("mongod", "lib", "py"):
            os.symlink(INSTALLED / name, pathlib.Path(self.home.name) / name)

    def stop(self):
        self._run("stop")
        self.home.cleanup()

    def _run(self, verb, *arguments):
        # Files of dropped collections are closed only at checkpoints: with many drops they have to come often.
        environment = dict(os.environ, ORACLE_SYNCDELAY="5", ORACLE_HOME=self.home.name)
        subprocess.run([PROGRAM, verb, str(self.port), *arguments], env=environment, check=True, stdout=subprocess.DEVNULL)

    @property
    def uri(self):
        return f"mongodb://127.0.0.1:{self.port}/?directConnection=true"

    def client(self):
        return MongoClient(self.uri, serverSelectionTimeoutMS=20000)
