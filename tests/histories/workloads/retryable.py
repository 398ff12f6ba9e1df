"""Single retryable writes while connections break and the server is killed.

An acknowledged write has taken effect exactly once, any other at most once.

PyMongo repeats a write once after a network error, with the same transaction number, and the server must give
the result of the first try instead of executing it again. Each write has a unique value as its effect, so a
second execution is seen in the documents, and in the reply of the write itself. A write that fails twice is
in doubt.
"""

import collections

from clients import Surprise, persist
from pymongo import InsertOne, ReturnDocument, UpdateOne
from pymongo.errors import BulkWriteError, ClientBulkWriteException, ConnectionFailure, PyMongoError
from workload import Workload

LISTS = 3
BATCH = 3
# From this wire version on servers have bulk writes of several collections.
CLIENT_BULK_WIRE_VERSION = 25
# The place where the effect of each form is seen, and its number of effects.
PLACES = {
    "insert": "documents",
    "insert_many": "documents",
    "upsert": "documents",
    "delete": "deleted",
    "increment": "sums",
}


def effects_of(name, value):
    if name == "insert_many":
        return [("documents", f"{value}-{n}") for n in range(BATCH)]
    if name == "client_bulk":
        return [("documents", value), ("lists", value)]
    return [(PLACES.get(name, "lists"), value)]


class Retryable(Workload):
    name = "retryable"
    breaks_connections = True

    def __init__(self, settings):
        super().__init__(settings)
        self.values = [0] * settings.clients
        self.acknowledged, self.in_doubt = {}, {}
        self.pairs = []
        self.forms = [
            self.insert,
            self.insert_many,
            self.push,
            self.push_and_return,
            self.increment,
            self.upsert,
            self.delete,
            self.bulk,
        ]

    def prepare(self, db):
        hello = db.client.admin.command("hello")
        if not ("setName" in hello or hello.get("msg") == "isdbgrid"):
            self.report(
                "no retryable writes",
                "the server is neither a member of a replica set nor a mongos, so drivers repeat no write",
            )
        if hello["maxWireVersion"] >= CLIENT_BULK_WIRE_VERSION:
            self.forms.append(self.client_bulk)
        db.documents.create_index("by")
        db.pairs.create_index("owner")
        db.lists.create_index("values")
        db.lists.insert_many([{"_id": f"list {n}", "values": [], "sum": 0, "by": {}} for n in range(LISTS)])

    def step(self, client):
        self.values[client.number] += 1
        value = client.number * 10**6 + self.values[client.number]
        form = client.chance.choice(self.forms)
        what = f"{form.__name__} {value}"
        fate = self.acknowledged
        try:
            form(client, value)
        except ConnectionFailure:
            fate = self.in_doubt
        except ClientBulkWriteException as error:
            if not isinstance(error.error, ConnectionFailure):
                raise Surprise(f"{what}: {error.details}") from error
            fate = self.in_doubt
        except PyMongoError as error:
            details = error.details if isinstance(error, BulkWriteError) else ""
            raise Surprise(f"{what}: {error!r} {details}") from error
        with self.lock:
            fate.update((effect, what) for effect in effects_of(form.__name__, value))

    def expect(self, what, found, expected):
        if found != expected:
            self.report("wrong reply", f"{what} gave {found} instead of {expected}")

    def any_list(self, client):
        return {"_id": f"list {client.chance.randrange(LISTS)}"}

    def insert(self, client, value):
        client.db.documents.insert_one({"_id": value, "by": client.number})

    def insert_many(self, client, value):
        client.db.documents.insert_many([{"_id": f"{value}-{n}", "by": client.number} for n in range(BATCH)])

    def push(self, client, value):
        result = client.db.lists.update_one(self.any_list(client), {"$push": {"values": value}})
        self.expect(f"push {value}", (result.matched_count, result.modified_count), (1, 1))

    def push_and_return(self, client, value):
        """The reply must be that of the first try: the document before it, or the one after it."""
        after = client.chance.random() < 0.5
        when = ReturnDocument.AFTER if after else ReturnDocument.BEFORE
        document = client.db.lists.find_one_and_update(
            self.any_list(client), {"$push": {"values": value}}, return_document=when
        )
        self.expect(f"push_and_return {value}", document["values"].count(value), int(after))

    def increment(self, client, value):
        result = client.db.lists.update_one(self.any_list(client), {"$inc": {"sum": 1, f"by.{value}": 1}})
        self.expect(f"increment {value}", result.modified_count, 1)

    def upsert(self, client, value):
        update = {"$inc": {"times": 1}, "$setOnInsert": {"by": client.number}}
        result = client.db.documents.update_one({"_id": value}, update, upsert=True)
        self.expect(f"upsert {value}", (result.matched_count, result.upserted_id), (0, value))

    def delete(self, client, value):
        """Of two documents of one owner a single one is deleted. Executed twice, both are gone."""
        client.db.pairs.insert_many([{"_id": f"{value}-{side}", "owner": value} for side in ("left", "right")])
        with self.lock:
            self.pairs.append(value)
        result = client.db.pairs.delete_one({"owner": value})
        self.expect(f"delete {value}", result.deleted_count, 1)

    def bulk(self, client, value):
        updates = [
            UpdateOne(self.any_list(client), {"$push": {"values": value}}),
            UpdateOne({"_id": "none"}, {"$set": {"never": 1}}),
        ]
        result = client.db.lists.bulk_write(updates)
        self.expect(f"bulk {value}", (result.matched_count, result.modified_count), (1, 1))

    def client_bulk(self, client, value):
        """One request for two collections, whose operations a repetition tells apart by their numbers."""
        database = self.database
        result = client.mongo.bulk_write(
            [
                UpdateOne(self.any_list(client), {"$push": {"values": value}}, namespace=f"{database}.lists"),
                InsertOne({"_id": value, "by": client.number}, namespace=f"{database}.documents"),
                UpdateOne({"_id": "none"}, {"$set": {"never": 1}}, namespace=f"{database}.lists"),
            ],
            verbose_results=True,
        )
        counts = (result.inserted_count, result.matched_count, result.modified_count)
        self.expect(f"client_bulk {value}", counts, (1, 1, 1))
        self.expect(f"client_bulk {value}", result.update_results[0].modified_count, 1)

    def effects_in(self, db):
        """How often each effect is there."""
        times = collections.Counter()
        for document in db.documents.find():
            times["documents", document["_id"]] += document.get("times", 1)
        for document in db.lists.find():
            times.update(("lists", value) for value in document["values"])
            times.update({("sums", int(value)): count for value, count in document["by"].items()})
            if document["sum"] != sum(document["by"].values()):
                self.report(
                    "torn document", f"the sum of {document['_id']} is {document['sum']}, not that of its parts"
                )
        left = collections.Counter(document["owner"] for document in db.pairs.find())
        times.update({("deleted", owner): 2 - left[owner] for owner in self.pairs})
        return times

    def finish(self, db):
        times = persist(lambda: self.effects_in(db))
        for effect, what in self.acknowledged.items():
            if times[effect] != 1:
                self.report(
                    "lost or doubled write",
                    f"{what} was acknowledged, and its effect {effect} is there {times[effect]} times",
                )
        for effect, what in self.in_doubt.items():
            if times[effect] > 1:
                self.report(
                    "doubled write", f"{what} is in doubt, and its effect {effect} is there {times[effect]} times"
                )
        for effect in times.keys() - self.acknowledged.keys() - self.in_doubt.keys():
            self.report("unwritten value", f"nobody wrote {effect}")

    def summary(self):
        return f"{len(self.acknowledged)} effects acknowledged, {len(self.in_doubt)} in doubt"
