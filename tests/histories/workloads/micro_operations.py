"""Transactions of one to five random micro-operations on a few keys: the common part of lists and registers.

A key is a document `{_id, key, …}`. Reads come by `_id`, by the index of `key`, by `$in`, by a pipeline, and
by a scan of an index that every write changes, so a snapshot that differs between trees is seen. Some single
micro-operations run outside a transaction. A key is replaced by a new one after so many writes, so lists stay
short.
"""

import threading
import time

from checker import check
from clients import brief, is_expected, persist, transact
from history import FAIL, INFO, OK, History
from pymongo.errors import ConnectionFailure, PyMongoError
from workload import Workload

ACTIVE_KEYS = 5
PLAIN = 0.15
FINAL_PROCESS = 1_000_000


class Keys:
    """The keys in use, and a fresh value for each write."""

    def __init__(self, writes_per_key):
        self.writes_per_key = writes_per_key
        self.lock = threading.Lock()
        self.active = list(range(ACTIVE_KEYS))
        self.used = ACTIVE_KEYS
        self.writes = {}

    def pick(self, chance):
        """Some keys are more popular than others."""
        with self.lock:
            return self.active[min(chance.randrange(ACTIVE_KEYS), chance.randrange(ACTIVE_KEYS))]

    def some(self):
        with self.lock:
            return list(self.active)

    def next_value(self, key):
        with self.lock:
            self.writes[key] = self.writes.get(key, 0) + 1
            if self.writes[key] == self.writes_per_key:
                self.active[self.active.index(key)] = self.used
                self.used += 1
            return self.writes[key]


class MicroOperations(Workload):
    """Subclasses say how a document is written, which version it holds, and which index every write changes."""

    model = None
    collection = "keys"
    moving_field = None
    writes_per_key = 40

    def __init__(self, settings):
        super().__init__(settings)
        self.keys = Keys(self.writes_per_key)
        self.history = History()
        self.reads = [
            self.read_by_id,
            self.read_by_id,
            self.read_by_index,
            self.read_several,
            self.read_by_pipeline,
            self.read_by_scan,
        ]
        self.writes = []
        self.plain_reads = [self.read_by_id, self.read_by_index, self.read_by_scan]
        self.plain_writes = []

    def home(self, db, key):
        """The collection of a key."""
        return db[self.collection]

    def prepare(self, db):
        db[self.collection].create_index("key")
        db[self.collection].create_index(self.moving_field)

    def step(self, client):
        chance, operations = client.chance, []
        began_ns = time.monotonic_ns()
        if self.settings.strict_statements and chance.random() < PLAIN:
            outcome, error = self.plain(client, operations)
        else:
            outcome, error = transact(client, lambda session: self.operate_often(client, session, operations))
        self.history.add(client.process, outcome, operations, began_ns, time.monotonic_ns(), error)
        if outcome == INFO:
            client.renew()

    def operate_often(self, client, session, operations):
        for _ in range(client.chance.randint(1, 5)):
            self.operate(client, session, operations)

    def operate(self, client, session, operations):
        forms = self.reads if client.chance.random() < 0.5 else self.writes
        client.chance.choice(forms)(client, session, operations)

    def plain(self, client, operations):
        """One micro-operation outside a transaction. PyMongo repeats it once after a network error."""
        form = client.chance.choice([*self.plain_reads, *self.plain_writes])
        try:
            form(client, None, operations)
            return OK, ""
        except PyMongoError as error:
            if not is_expected(error):
                raise
            unknown = isinstance(error, ConnectionFailure) and operations
            return INFO if unknown else FAIL, brief(error)

    # ---- reads

    def version_of(self, document):
        raise NotImplementedError

    def found(self, key, documents):
        documents = list(documents)
        if len(documents) > 1 or any(document["_id"] != key or document["key"] != key for document in documents):
            self.report("wrong documents", f"a read of key {key} found {documents}")
        return ("r", key, self.version_of(documents[0] if documents else None))

    def read_by_id(self, client, session, operations):
        key = self.keys.pick(client.chance)
        operations.append(self.found(key, self.home(client.db, key).find({"_id": key}, session=session)))

    def read_by_index(self, client, session, operations):
        key = self.keys.pick(client.chance)
        operations.append(self.found(key, client.db[self.collection].find({"key": key}, session=session).hint("key_1")))

    def read_by_pipeline(self, client, session, operations):
        key = self.keys.pick(client.chance)
        pipeline = [{"$match": {"_id": key}}]
        operations.append(self.found(key, self.home(client.db, key).aggregate(pipeline, session=session)))

    def read_several(self, client, session, operations):
        keys = client.chance.sample(self.keys.some(), 2)
        self.found_among(keys, client.db[self.collection].find({"_id": {"$in": keys}}, session=session), operations)

    def read_by_scan(self, client, session, operations):
        keys, index = self.keys.some(), f"{self.moving_field}_1"
        filter = {self.moving_field: {"$gte": 0}}
        self.found_among(keys, client.db[self.collection].find(filter, session=session).hint(index), operations)

    def found_among(self, keys, documents, operations):
        by_key = {}
        for document in documents:
            by_key.setdefault(document["_id"], []).append(document)
        operations += [self.found(key, by_key.get(key, [])) for key in keys]

    # ---- the end

    def finish(self, db):
        """Every key is read once more in one transaction, so each acknowledged write is looked for."""
        began_ns = time.monotonic_ns()
        operations = persist(lambda: self.read_all(db))
        self.history.add(FINAL_PROCESS, OK, operations, began_ns, time.monotonic_ns())

    def read_all(self, db):
        operations = []
        with db.client.start_session() as session, session.start_transaction():
            documents = [document for home in self.homes(db) for document in home.find({}, session=session)]
        self.found_among(range(self.keys.used), documents, operations)
        return operations

    def homes(self, db):
        return [db[self.collection]]

    def anomalies(self):
        return self.seen + check(self.history, self.model, self.settings.level, self.settings.order)

    def summary(self):
        return ", ".join(f"{count} {outcome}" for outcome, count in self.history.outcomes().items())
