"""Increments of one counter, by many clients that one thread serves: in transactions, or each alone.

A transaction is two requests: the update that begins it, and the commit. One that the server aborts is begun again. The requests
are encoded once; only the transaction number changes. So the client costs little beside the servers. An increment alone is one
request, the same each time.

`hot_counter.py PORT` prints the figures of a server that runs.
"""

import os
import selectors
import socket
import struct
import sys
import time
import uuid

import bson

CLIENTS = int(os.environ.get("COUNTER_CLIENTS", "32"))
HEADER = struct.Struct("<iiii")
OP_MSG = 2013
DATABASE, COLLECTION = "measured", "counters"
OK = b"\x01ok\x00" + struct.pack("<d", 1.0)
NUMBER_FIELD = b"\x12txnNumber\x00"


class Request:
    """A request of a transaction, whose number is written into its bytes."""

    def __init__(self, command):
        body = b"\x00" * 4 + b"\x00" + bson.encode(command)
        self.bytes = bytearray(HEADER.pack(HEADER.size + len(body), 1, 0, OP_MSG) + body)
        self.at = self.bytes.index(NUMBER_FIELD) + len(NUMBER_FIELD)

    def of(self, number):
        struct.pack_into("<q", self.bytes, self.at, number)
        return self.bytes


class Client:
    """One connection with one session, and its transaction under way."""

    def __init__(self, port, concern):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        session = {"lsid": {"id": bson.Binary(uuid.uuid4().bytes, 4)}, "txnNumber": bson.Int64(0), "autocommit": False}
        update = {"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}
        self.update = Request(
            {"update": COLLECTION, "updates": [update], **session, "startTransaction": True, "$db": DATABASE}
        )
        self.commit = Request({"commitTransaction": 1, **session, "writeConcern": concern, "$db": "admin"})
        self.number, self.commits, self.aborts = 0, 0, 0
        self.begun, self.latencies = 0.0, []
        self.received = b""

    def begin(self):
        self.number += 1
        self.commits_next = False
        self.socket.sendall(self.update.of(self.number))

    def start(self):
        self.begun = time.perf_counter()
        self.begin()

    def take_reply(self):
        """Takes what has come; whether a transaction has committed."""
        self.received += self.socket.recv(65536)
        if len(self.received) < 4 or len(self.received) < int.from_bytes(self.received[:4], "little"):
            return False
        reply, self.received = self.received, b""
        if OK not in reply:
            failure = bson.decode(reply[HEADER.size + 5 :])
            if "TransientTransactionError" not in failure.get("errorLabels", []):
                raise SystemExit(f"the server refused: {failure}")
            self.aborts += 1
            self.begin()
            return False
        if not self.commits_next:
            self.commits_next = True
            self.socket.sendall(self.commit.of(self.number))
            return False
        self.commits += 1
        self.latencies.append(time.perf_counter() - self.begun)
        return True


class LoneClient(Client):
    """One connection whose increments stand outside of transactions."""

    def __init__(self, port, concern):
        super().__init__(port, concern)
        update = {"q": {"_id": 1}, "u": {"$inc": {"n": 1}}}
        self.update = Request({"update": COLLECTION, "updates": [update], "lsid": {"id": bson.Binary(uuid.uuid4().bytes, 4)},
                               "txnNumber": bson.Int64(0), "writeConcern": concern, "$db": DATABASE})

    def begin(self):
        super().begin()
        self.commits_next = True


def run(port, seconds, concern, clients=CLIENTS, kind=Client):
    """Figures of so many seconds: commits and aborts a second, latencies, and the shares of the slowest client."""
    from servers import client_of

    with client_of(port) as client:
        counters = client[DATABASE][COLLECTION]
        counters.drop()
        counters.insert_one({"_id": 1, "n": 0})
        all_clients = [kind(port, concern) for _ in range(clients)]
        with selectors.DefaultSelector() as selector:
            for one in all_clients:
                selector.register(one.socket, selectors.EVENT_READ, one)
                one.start()
            began, busy = time.perf_counter(), time.process_time()
            end, open_clients = began + seconds, clients
            while open_clients:
                for key, _ in selector.select():
                    if key.data.take_reply():
                        if time.perf_counter() < end:
                            key.data.start()
                        else:
                            open_clients -= 1
            took = time.perf_counter() - began
        commits = sum(one.commits for one in all_clients)
        assert counters.find_one()["n"] == commits, "an increment is lost"
        latencies = sorted(latency for one in all_clients for latency in one.latencies)
        for one in all_clients:
            one.socket.close()
    return {
        "rate": commits / took,
        "aborts": sum(one.aborts for one in all_clients) / commits,
        "p50_ms": latencies[len(latencies) // 2] * 1000,
        "p99_ms": latencies[len(latencies) * 99 // 100] * 1000,
        "fairness": min(one.commits for one in all_clients) / max(one.commits for one in all_clients),
        "client_share": (time.process_time() - busy) / took,
    }


if __name__ == "__main__":
    for durable in (False, True):
        found = run(int(sys.argv[1]), float(os.environ.get("SECONDS_EACH", "10")), {"w": 1, "j": durable})
        print(f"j: {durable}", " ".join(f"{name}={value:.2f}" for name, value in found.items()), flush=True)
