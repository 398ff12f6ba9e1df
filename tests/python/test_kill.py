"""kill -9 during writes: no acknowledged write is lost, no index breaks.

Each round starts the server on the same folder, lets writers insert and update with `w: 1` and with `j: true`, kills the process at a
random moment, starts it again, and compares the store with what was acknowledged:
- an acknowledged insert is there, an acknowledged update has at least the acknowledged version;
- every document is whole: what one statement wrote together (`v` and its copy, all documents of one batch) agrees;
- every index gives the same documents as a scan;
- the counters of every collection equal a scan, and `validate` finds nothing wrong.

KILL_ROUNDS says how often (100 unless told otherwise); the seed is printed by pytest when a round fails.
"""

import os
import random
import threading
import time

from pymongo import WriteConcern
from pymongo.errors import PyMongoError

from server import Server

ROUNDS = int(os.environ.get("KILL_ROUNDS", "100"))
WRITERS = 4
COUNTERS = 20


class Writer(threading.Thread):
    """Inserts batches and bumps counters until the server is gone; remembers what was acknowledged."""

    def __init__(self, server, number, round_number, acknowledged):
        super().__init__(daemon=True)
        self.server = server
        self.number = number
        self.round_number = round_number
        self.acknowledged = acknowledged
        self.concern = WriteConcern(w=1, j=True) if number % 2 else WriteConcern(w=1)
        self.surprise = None

    def run(self):
        try:
            with self.server.client(retryWrites=False, serverSelectionTimeoutMS=500) as client:
                inserts = client.kill.get_collection("inserts", write_concern=self.concern)
                counters = client.kill.get_collection("counters", write_concern=self.concern)
                for step in range(10**6):
                    self.insert(inserts, step)
                    self.bump(counters, step)
        except PyMongoError:
            pass  # the server is gone, as planned
        except Exception as error:  # anything else is a finding
            self.surprise = error

    def insert(self, inserts, step):
        batch = f"{self.round_number}-{self.number}-{step}"
        size = 1 + step % 7
        inserts.insert_many([{"_id": f"{batch}-{i}", "batch": batch, "size": size, "tags": [i, self.number], "pad": "x" * 200} for i in range(size)])
        self.acknowledged["batches"].add((batch, size))

    def bump(self, counters, step):
        counter = self.number * COUNTERS + step % COUNTERS
        version = self.acknowledged["counters"].get(counter, 0) + 1
        self.acknowledged["tried"][counter] = version
        counters.update_one({"_id": counter}, {"$set": {"v": version, "copy": version}}, upsert=True)
        self.acknowledged["counters"][counter] = version


def check(db, acknowledged):
    found = {}
    for document in db.inserts.find({}, {"batch": 1, "size": 1}).hint("_id_"):
        found.setdefault((document["batch"], document["size"]), set()).add(document["_id"])
    lost = acknowledged["batches"] - set(found)
    assert not lost, f"{len(lost)} acknowledged batches are gone: {sorted(lost)[:5]}"
    for (batch, size), ids in found.items():
        assert len(ids) == size, f"batch {batch} of {size} is there in part: {len(ids)}"
    acknowledged["batches"] = set(found)
    versions = {d["_id"]: d for d in db.counters.find()}
    for counter, version in acknowledged["counters"].items():
        document = versions.get(counter)
        assert document is not None, f"counter {counter} is gone, version {version} was acknowledged"
        assert document["v"] == document["copy"], f"counter {counter} is torn: {document}"
        assert version <= document["v"] <= acknowledged["tried"][counter], (counter, version, document)
        acknowledged["counters"][counter] = document["v"]
    total = sum(size for _, size in found)
    for index, least in [("batch_1", {"batch": ""}), ("tags_1", {"tags": -1})]:
        path, bound = next(iter(least.items()))
        assert db.inserts.count_documents({path: {"$gte": bound}}, hint=index) == total, f"index {index} has other documents"
    assert db.counters.count_documents({"v": {"$gte": 0}}, hint="v_1") == len(versions)
    assert db.inserts.estimated_document_count() == total
    assert db.counters.estimated_document_count() == len(versions)
    for name in ["inserts", "counters"]:
        report = db.command("validate", name)
        assert report["valid"], report["errors"]


def test_kill_minus_nine_loses_nothing_that_was_acknowledged(tmp_path):
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    server = Server(tmp_path / "data", "--cache", "64MB").start()
    with server.client() as client:
        client.kill.inserts.create_index("batch")
        client.kill.inserts.create_index("tags")
        client.kill.counters.create_index("v")
    acknowledged = {"batches": set(), "counters": {}, "tried": {}}
    for round_number in range(ROUNDS):
        writers = [Writer(server, number, round_number, acknowledged) for number in range(WRITERS)]
        for writer in writers:
            writer.start()
        time.sleep(chance.uniform(0.05, 0.4))
        server.kill()
        for writer in writers:
            writer.join(timeout=60)
            assert writer.surprise is None, writer.surprise
        server.start()
        if round_number % 10 == 9 or round_number == ROUNDS - 1:
            with server.client() as client:
                check(client.kill, acknowledged)
                if len(acknowledged["batches"]) > 20000:
                    client.kill.inserts.delete_many({})
                    acknowledged["batches"].clear()
    assert acknowledged["counters"], "writers wrote nothing"
    assert server.stop() == 0
