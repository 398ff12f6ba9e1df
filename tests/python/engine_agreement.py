"""Random operations that are the same for every store: whatever engine and layout it has, the answers must be the same.

    agreement = Agreement(seed, [Store("betree clustered", client, "clustered"), Store("lmdb heap", other_client, "heap"), …])
    agreement.run(300)

An operation is a command as a driver sends it, or a transaction of some. None has an answer that depends on the order in which a
store finds documents: what changes one document names it by `_id` or by a sort, and what changes many meets neither a unique index nor a value that it cannot change.
"""

import contextlib
import random

from bson import Decimal128, Int64, ObjectId
from pymongo.errors import OperationFailure

LAYOUTS = {
    "clustered": {},
    "heap": {"layout": "heap"},
    "fields": {"primaryKey": {"g": 1, "_id": 1}},
}
INDEXES = [
    {"key": {"n": 1}, "name": "n"},
    {"key": {"n": -1, "g": 1}, "name": "n_g"},
    {"key": {"tags": 1}, "name": "tags"},
    {"key": {"u": 1}, "name": "u", "unique": True, "sparse": True},
    {"key": {"d.e": 1, "_id": 1}, "name": "nested"},
]
IDS = [*range(60), *(f"key {at}" * (1 + at % 40) for at in range(30)), 2.5, Int64(2**40), Decimal128("1E+3"), {"a": 1}, {"a": 2, "b": "x"}, True, None]
CHECKED_EVERY = 40
# The fields of a reply that tell of its server, its moment or its layout: a primary key of own fields counts as an index.
OWN_FIELDS = {"$clusterTime", "operationTime", "electionId", "opTime", "cursor", "numIndexesBefore", "numIndexesAfter", "nIndexesWas", "commitQuorum"}


class Store:
    """A server with one engine, and a database of collections with one layout. MongoDB has no layouts: its one is named `None`."""

    def __init__(self, name, client, layout):
        self.name, self.client, self.layout = name, client, layout
        self.db = client[f"agreement_{layout}"]

    def make(self):
        self.client.drop_database(self.db.name)
        self.db.create_collection("c", **LAYOUTS.get(self.layout, {}))

    def answer(self, command, session=None):
        """The reply without what belongs to the server, or the codes of the refusal."""
        try:
            reply = self.db.command(command, check=False, session=session)
        except OperationFailure as refused:
            return {"refused": refused.code}
        if not reply["ok"]:
            return {"refused": reply["code"]}
        answer = {name: value for name, value in reply.items() if name not in OWN_FIELDS}
        if "writeErrors" in answer:
            answer["writeErrors"] = [(one["index"], one["code"], one.get("keyPattern")) for one in answer["writeErrors"]]
        if "cursor" in reply:
            assert reply["cursor"]["id"] == 0, "one batch has everything"
            answer["rows"] = reply["cursor"]["firstBatch"]
        return answer

    def index_names(self):
        own = {index["name"] for index in INDEXES}
        return sorted(own & self.db.c.index_information().keys())

    def digest(self):
        return self.db.command("dbHash")["collections"]["c"]


class Agreement:
    def __init__(self, seed, stores, transactions=True):
        self.random, self.stores, self.transactions = random.Random(seed), stores, transactions
        self.asked = []
        for store in stores:
            store.make()

    def run(self, operations):
        """Does so many random operations with every store, and compares what each answers."""
        for at in range(1, operations + 1):
            if self.transactions and self.random.random() < 0.1:
                self.transaction()
            else:
                self.same(self.operation())
            if at % CHECKED_EVERY == 0 or at == operations:
                self.check()

    def same(self, command, sessions=None):
        """Sends a command to all stores; all must answer alike."""
        self.asked.append(command)
        answers = [store.answer(command, sessions and sessions[store.name]) for store in self.stores]
        for store, answer in zip(self.stores[1:], answers[1:]):
            assert answer == answers[0], (
                f"operation {len(self.asked)}, {command}:\n  {self.stores[0].name}: {answers[0]}\n  {store.name}: {answer}")
        return answers[0]

    def check(self):
        """All stores have the same documents, by every index, and are sound."""
        digests = {store.name: store.digest() for store in self.stores}
        assert len(set(digests.values())) == 1, f"after {len(self.asked)} operations: {digests}"
        everything = {"find": "c", "sort": {"_id": 1}, "batchSize": 100_000}
        rows = self.same(everything)["rows"]
        names = {store.name: store.index_names() for store in self.stores}
        assert all(one == names[self.stores[0].name] for one in names.values()), names
        for name in names[self.stores[0].name]:
            hinted = self.same(everything | {"hint": name, "filter": {}})["rows"]
            assert name == "u" or hinted == rows, f"index {name} has other documents"
        for store in self.stores:
            report = store.db.command("validate", "c", full=True)
            assert report["valid"], f"{store.name}: {report}"

    # ---- operations

    def operation(self):
        return self.random.choices(
            [self.insert, self.update, self.find_and_modify, self.delete, self.find, self.aggregate, self.indexes],
            weights=[6, 6, 2, 2, 4, 2, 1])[0]()

    def transaction(self):
        """Some operations in a transaction of each store, which all commit or all abort."""
        is_kept = self.random.random() < 0.7
        commands = [self.operation_within() for _ in range(self.random.randrange(1, 6))]
        with contextlib.ExitStack() as sessions:
            of_stores = {store.name: sessions.enter_context(store.client.start_session()) for store in self.stores}
            for session in of_stores.values():
                session.start_transaction()
            for command in commands:
                # A refused statement has ended the transaction.
                answer = self.same(command, of_stores)
                if "refused" in answer or "writeErrors" in answer:
                    break
            for session in of_stores.values():
                if is_kept and len(commands) and not ("refused" in answer or "writeErrors" in answer):
                    session.commit_transaction()
                else:
                    session.abort_transaction()

    def operation_within(self):
        return self.random.choices([self.insert, self.update, self.delete, self.find], weights=[3, 3, 1, 2])[0]()

    def document(self, of_id):
        draw = self.random
        document = {"_id": of_id, "g": draw.choice([None, draw.randrange(5), draw.choice("abc")]), "n": draw.randrange(40)}
        if draw.random() < 0.3:
            document["tags"] = [draw.choice(["x", "y", 1, 2.0, None]) for _ in range(draw.randrange(4))]
        if draw.random() < 0.3:
            document["u"] = draw.randrange(200)
        if draw.random() < 0.3:
            document["d"] = {"e": draw.choice([1, "t" * 300, [1, 2]]), "f": draw.random()}
        if draw.random() < 0.05:
            document["large"] = "z" * draw.randrange(20_000)
        return document

    def insert(self):
        # New documents, or ids of which many are taken.
        pool = range(100, 20_000) if self.random.random() < 0.5 else IDS
        ids = self.random.sample(pool, self.random.randrange(1, 12))
        if self.random.random() < 0.2:
            ids.append(ids[0])
        if self.random.random() < 0.5:
            ids.append(ObjectId(self.random.randbytes(12)))
        return {"insert": "c", "documents": [self.document(one) for one in ids], "ordered": self.random.random() < 0.5}

    def one(self):
        """A filter of one document by its `_id`."""
        return {"_id": self.random.choice(IDS)}

    def some(self):
        draw = self.random
        low = draw.randrange(40)
        return draw.choice([
            {}, {"n": low}, {"n": {"$gte": low, "$lt": low + draw.randrange(10)}}, {"_id": {"$gte": low, "$lt": low + 9}},
            {"tags": draw.choice(["x", 1, None])}, {"g": {"$in": [None, 1, "b"]}, "n": {"$ne": low}}, {"d.e": {"$exists": True}},
            {"$or": [{"n": low}, {"g": "a"}]}, {"_id": {"$type": "string"}}, {"n": {"$mod": [7, low % 7]}},
        ])

    def change(self):
        draw = self.random
        return draw.choice([
            {"$inc": {"n": draw.randrange(-3, 4)}}, {"$set": {"g": draw.choice([None, 7, "c"])}}, {"$unset": {"d": ""}},
            {"$push": {"tags": draw.choice(["x", 5])}}, {"$set": {"d.e": draw.randrange(9)}}, {"$max": {"n": draw.randrange(40)}},
            {"$mul": {"n": 2}}, {"$rename": {"large": "small"}}, {"$pull": {"tags": "x"}},
        ])

    def update(self):
        statements = []
        for _ in range(self.random.randrange(1, 4)):
            kind = self.random.random()
            if kind < 0.4:
                statements.append({"q": self.some(), "u": self.change(), "multi": True})
            elif kind < 0.7:
                statements.append({"q": self.one(), "u": self.change(), "upsert": self.random.random() < 0.4})
            else:
                q = self.one()
                replacement = self.document(q["_id"])
                statements.append({"q": q, "u": replacement, "upsert": self.random.random() < 0.5})
        return {"update": "c", "updates": statements, "ordered": self.random.random() < 0.5}

    def delete(self):
        draw = self.random
        if draw.random() < 0.6:
            return {"delete": "c", "deletes": [{"q": self.one(), "limit": 1}, {"q": self.one(), "limit": 0}]}
        low = draw.randrange(40)
        few = draw.choice([{"n": low}, {"_id": {"$gte": low, "$lt": low + 5}}, {"tags": "y", "n": {"$lt": 9}}])
        return {"delete": "c", "deletes": [{"q": few, "limit": 0}]}

    def find_and_modify(self):
        command = {"findAndModify": "c", "query": self.some(), "sort": {"_id": self.random.choice([1, -1])}}
        if self.random.random() < 0.3:
            return command | {"remove": True}
        return command | {"update": self.change(), "new": self.random.random() < 0.5}

    def find(self):
        command = {"find": "c", "filter": self.some(), "sort": {"n": self.random.choice([1, -1]), "_id": 1}, "batchSize": 100_000}
        if self.random.random() < 0.4:
            command |= {"skip": self.random.randrange(5), "limit": 1 + self.random.randrange(20)}
        if self.random.random() < 0.3:
            command |= {"projection": {"n": 1, "tags": 1}}
        return command

    def aggregate(self):
        pipeline = self.random.choice([
            [{"$match": self.some()}, {"$group": {"_id": "$g", "n": {"$sum": "$n"}, "of": {"$sum": 1}}}, {"$sort": {"_id": 1}}],
            [{"$unwind": "$tags"}, {"$group": {"_id": "$tags", "least": {"$min": "$n"}}}, {"$sort": {"_id": 1}}],
            [{"$match": self.some()}, {"$count": "all"}],
            [{"$sort": {"n": -1, "_id": 1}}, {"$skip": 3}, {"$limit": 5}, {"$project": {"n": 1}}],
        ])
        return {"aggregate": "c", "pipeline": pipeline, "cursor": {"batchSize": 100_000}}

    def indexes(self):
        index = self.random.choice(INDEXES)
        if self.random.random() < 0.4:
            return {"dropIndexes": "c", "index": index["name"]}
        return {"createIndexes": "c", "indexes": [index]}
