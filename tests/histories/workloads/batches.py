"""Batches: transactions that insert and delete hundreds of documents in two collections, seen whole or not at all.

A snapshot that has one document of a batch has all of them, in both collections and in their indexes. At the end
each acknowledged batch is there, and none that was rolled back or whose deletion was acknowledged. A killed
server must not bring back a part.
"""

import collections

from clients import persist, transact
from history import FAIL, INFO, OK
from workload import Workload

SIZES = (1, 5, 25, 300)
LIVE_MAX = 4
LOOKS = 0.4
SIDES = ("left", "right")


class Batches(Workload):
    name = "batches"

    def __init__(self, settings):
        super().__init__(settings)
        self.written = [0] * settings.clients
        # Per batch: the outcome of its insertion, and of its deletion if that was tried.
        self.inserted, self.deleted = {}, {}
        self.live = [[] for _ in range(settings.clients)]
        self.looks = 0

    def prepare(self, db):
        for side in SIDES:
            db[side].create_index("batch")
            db[side].create_index([("size", 1), ("batch", 1)])

    def step(self, client):
        if client.chance.random() < LOOKS:
            self.look(client)
        else:
            self.write(client)

    def write(self, client):
        self.written[client.number] += 1
        batch, size = f"{client.number}-{self.written[client.number]}", client.chance.choice(SIZES)
        live = self.live[client.number]
        old = live.pop(0) if len(live) == LIVE_MAX else None
        outcome, _ = transact(client, lambda session: self.exchange(client, session, batch, size, old))
        with self.lock:
            self.inserted[batch] = outcome
            if old is not None:
                self.deleted[old] = outcome
        if outcome == OK:
            live.append(batch)
        elif outcome == INFO:
            client.renew()
        elif old is not None:
            live.insert(0, old)

    def exchange(self, client, session, batch, size, old):
        """Inserts a batch, and deletes an old one."""
        for side in SIDES:
            documents = [{"_id": f"{batch}-{n}", "batch": batch, "size": size, "pad": "x" * 50} for n in range(size)]
            client.db[side].insert_many(documents, session=session)
            if old is not None:
                client.db[side].delete_many({"batch": old}, session=session)

    def look(self, client):
        group = [{"$group": {"_id": {"batch": "$batch", "size": "$size"}, "n": {"$sum": 1}}}]
        found = {}
        outcome, _ = transact(
            client, lambda session: found.update(self.counts(client.db, group, session)), roll_backs=0
        )
        if outcome == INFO:
            client.renew()
        self.looks += 1
        self.compare(found)

    def counts(self, db, group, session):
        """The batches of each collection, by a scan of the documents and by an index alone."""
        found = {}
        for side in SIDES:
            found[f"{side} by scan"] = db[side].aggregate(group, session=session, hint={"$natural": 1})
            in_index = [{"$match": {"size": {"$gt": 0}}}, *group]
            found[f"{side} by index"] = db[side].aggregate(in_index, session=session, hint="size_1_batch_1")
        return {view: {(g["_id"]["batch"], g["_id"]["size"]): g["n"] for g in groups} for view, groups in found.items()}

    def compare(self, found):
        views = iter(found.items())
        first_view, first = next(views, (None, {}))
        for (batch, size), count in first.items():
            if count != size:
                self.report("torn batch", f"{first_view}: batch {batch} of {size} documents has {count}")
        for view, groups in views:
            if groups != first:
                differing = [key for key in first.keys() | groups.keys() if first.get(key) != groups.get(key)]
                self.report("torn batch", f"{first_view} and {view} differ in {differing[:5]}")

    # ---- the end

    def finish(self, db):
        for side in SIDES:
            documents = persist(lambda side=side: list(db[side].find({}, {"batch": 1, "size": 1})))
            counts = collections.Counter((document["batch"], document["size"]) for document in documents)
            self.compare({side: counts})
            there = {batch for batch, _ in counts}
            for batch, outcome in self.inserted.items():
                self.compare_end(side, batch, batch in there, outcome)

    def compare_end(self, side, batch, is_there, outcome):
        deletion = self.deleted.get(batch, FAIL)
        if is_there and (outcome == FAIL or deletion == OK):
            self.report("G1a (aborted write)", f"batch {batch} is in {side}: inserted {outcome}, deleted {deletion}")
        if not is_there and outcome == OK and deletion == FAIL:
            self.report("lost write", f"batch {batch} is not in {side}: it was acknowledged and not deleted")

    def summary(self):
        committed = sum(outcome == OK for outcome in self.inserted.values())
        return f"{committed} of {len(self.inserted)} batches, {self.looks} snapshots"
