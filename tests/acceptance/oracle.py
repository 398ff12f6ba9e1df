"""A real MongoDB on a free port for one run of the tests."""

import os
import pathlib
import subprocess

from pymongo import MongoClient

from server import free_port

SHARED = pathlib.Path(os.environ.get("SHARED", pathlib.Path(__file__).parents[3] / "shared"))
PROGRAM = SHARED / "oracle" / "mongod"


class Oracle:
    """One MongoDB process, without data at its start."""

    def __init__(self):
        self.port = free_port()

    def start(self):
        # Files of dropped collections are closed only at checkpoints: with many drops they have to come often.
        environment = dict(os.environ, ORACLE_SYNCDELAY="5")
        subprocess.run([PROGRAM, "start", str(self.port), "--wiredTigerCacheSizeGB", "0.5"], env=environment, check=True,
                       stdout=subprocess.DEVNULL)
        return self

    def stop(self):
        subprocess.run([PROGRAM, "stop", str(self.port)], check=True)

    @property
    def uri(self):
        return f"mongodb://127.0.0.1:{self.port}/?directConnection=true"

    def client(self):
        return MongoClient(self.uri, serverSelectionTimeoutMS=20000)
