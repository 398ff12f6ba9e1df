"""Registers that are read with the read concern `linearizable`, one document a read, outside transactions.

Every read must find the newest value that was acknowledged before it began, or one that was written meanwhile.
"""

import time

from checker import check
from clients import brief, is_expected, persist
from history import FAIL, INFO, OK, History
from pymongo import WriteConcern
from pymongo.errors import ConnectionFailure, PyMongoError
from pymongo.read_concern import ReadConcern
from workload import Workload
from workloads.micro_operations import FINAL_PROCESS, Keys

READS = 0.5
PAD_BYTES = 10_000
PADDED = 8
# Each register gets so many writes. Few registers mean that many clients meet at one.
WRITES_PER_KEY = 60


class Linearizable(Workload):
    name = "linearizable"
    model = "linearizable-register"

    def __init__(self, settings):
        super().__init__(settings)
        self.keys = Keys(WRITES_PER_KEY)
        self.history = History()
        self.reads = [self.by_id, self.by_id, self.by_index, self.by_pipeline, self.by_distinct]
        self.writes = [self.set, self.set, self.replace, self.exchange]

    def prepare(self, db):
        db.registers.create_index("key")
        db.registers.create_index("value")

    def step(self, client):
        key = self.keys.pick(client.chance)
        reads = client.chance.random() < READS
        form = client.chance.choice(self.reads if reads else self.writes)
        value = None if reads else self.keys.next_value(key)
        began_ns = time.monotonic_ns()
        outcome, error = OK, ""
        try:
            value = form(client, key) if reads else form(client, key, value)
        except PyMongoError as failure:
            if not is_expected(failure):
                raise
            outcome, error = INFO if isinstance(failure, ConnectionFailure) else FAIL, brief(failure)
        if reads and outcome != OK:
            return
        operation = ("r" if reads else "w", key, value)
        self.history.add(client.process, outcome, [operation], began_ns, time.monotonic_ns(), error)
        if outcome == INFO:
            client.process += self.settings.clients

    # ---- reads

    def registers(self, client):
        return client.db.registers.with_options(read_concern=ReadConcern("linearizable"))

    def value_of(self, key, document):
        if document is None:
            return None
        if document["_id"] != key or document["value"] != document["copy"]:
            self.report("torn document", f"a read of register {key} found {document}")
        return document["value"]

    def by_id(self, client, key):
        return self.value_of(key, self.registers(client).find_one({"_id": key}))

    def by_index(self, client, key):
        return self.value_of(key, self.registers(client).find_one({"key": key}, hint="key_1"))

    def by_pipeline(self, client, key):
        found = self.registers(client).aggregate([{"$match": {"_id": key}}])
        return self.value_of(key, next(found, None))

    def by_distinct(self, client, key):
        found = self.registers(client).distinct("value", {"key": key})
        if len(found) > 1:
            self.report("wrong documents", f"register {key} has the values {found}")
        return found[0] if found else None

    # ---- writes

    def document(self, key, value):
        # Some documents are many times larger than the others, so pages split.
        return {"key": key, "value": value, "copy": value, "pad": "x" * PAD_BYTES if value % PADDED == 0 else ""}

    def writable(self, client):
        concern = client.chance.choice([WriteConcern(w=1), WriteConcern(w="majority"), WriteConcern(w=1, j=True)])
        if not self.settings.strict_statements:
            concern = WriteConcern(w="majority")
        return client.db.registers.with_options(write_concern=concern)

    def set(self, client, key, value):
        self.writable(client).update_one({"_id": key}, {"$set": self.document(key, value)}, upsert=True)
        return value

    def replace(self, client, key, value):
        self.writable(client).replace_one({"_id": key}, self.document(key, value), upsert=True)
        return value

    def exchange(self, client, key, value):
        change = {"$set": self.document(key, value)}
        self.writable(client).find_one_and_update({"_id": key}, change, upsert=True)
        return value

    # ---- the end

    def finish(self, db):
        """Each register is read once more, so each acknowledged write counts."""
        registers = db.registers.with_options(read_concern=ReadConcern("linearizable"))
        for key in range(self.keys.used):
            began_ns = time.monotonic_ns()
            document = persist(lambda: registers.find_one({"_id": key}))
            operation = ("r", key, self.value_of(key, document))
            self.history.add(FINAL_PROCESS, OK, [operation], began_ns, time.monotonic_ns())

    def anomalies(self):
        return self.seen + check(self.history, self.model)

    def summary(self):
        return ", ".join(f"{count} {outcome}" for outcome, count in self.history.outcomes().items())
