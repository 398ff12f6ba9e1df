"""Two servers of one store in a TiKV cluster, in the place of one: a client may use either at any time, as drivers do with a `mongos`."""

import pathlib

from pymongo import MongoClient

from server import Server


class ServerPair:
    """The part of `Server` that the tests of a running server need. What belongs to one process is that of the first server."""

    def __init__(self, folder, *arguments):
        folder = pathlib.Path(folder)
        shared = ("--engine-option", "servers=several", *arguments)
        self.servers = [Server(folder, *shared, engine="tikv"), Server(folder.with_name(f"{folder.name}-other"), *shared, engine="tikv")]
        first, other = (server.arguments for server in self.servers)
        other[other.index("--keyspace") + 1] = first[first.index("--keyspace") + 1]
        self.folder, self.engine = folder, "tikv"

    def start(self):
        for server in self.servers:
            server.start()
        return self

    @property
    def uri(self):
        return "mongodb://" + ",".join(f"127.0.0.1:{server.port}" for server in self.servers) + "/"

    @property
    def port(self):
        return self.servers[0].port

    @property
    def process(self):
        return self.servers[0].process

    def client(self, **options):
        return MongoClient(self.uri, **{"serverSelectionTimeoutMS": 20000, **options})

    def is_running(self):
        return all(server.is_running() for server in self.servers)

    def stop(self):
        return max(server.stop() for server in self.servers)

    def log(self):
        return "\n".join(server.log() for server in self.servers)

    def whole_log(self):
        return "\n".join(server.whole_log() for server in self.servers)
