"""Lists that are read at snapshots outside transactions, while transactions append to them.

A snapshot is a session with `snapshot=True`. Its first read fixes its time, `atClusterTime`. It makes several
reads, with writes by others between them, and other clients may go on with it by its time. All reads of a
snapshot are one transaction of the history: the checker finds whether one prefix of the order of commits
explains them, and whether that prefix has all that was acknowledged before the first read began.

Some keys have a collection of their own, so a snapshot reads from trees that did not exist at its time.
"""

import dataclasses
import time

from clients import brief, is_expected
from history import FAIL, OK
from pymongo.errors import OperationFailure, PyMongoError
from workloads.list_append import ListAppend

SNAPSHOTS = 0.4
SHARED_MAX = 4
# Snapshots that nobody holds any more, and snapshots of collections that were created later in MongoDB 6.
GONE = (239, 246)
# Each snapshot is a process of its own, because several clients may read at it.
FIRST_PROCESS = 2_000_000


@dataclasses.dataclass
class Snapshot:
    process: int
    began_ns: int
    # The `atClusterTime` of its first read.
    time: object = None
    operations: list = dataclasses.field(default_factory=list)


class SnapshotSessions(ListAppend):
    name = "snapshot-sessions"

    def __init__(self, settings):
        super().__init__(settings)
        self.shared = []
        self.snapshots = 0
        self.reads = [self.read_by_id, self.read_by_pipeline, self.read_all_keys, self.read_in_batches]
        self.plain_reads = [self.read_by_id, self.read_by_pipeline]
        self.writes = [self.append, self.append, self.append_and_return, self.append_to_two]

    def home(self, db, key):
        has_own = self.settings.strict_statements and key % 2
        return db[f"key_{key}"] if has_own else db[self.collection]

    def homes(self, db):
        names = {self.home(db, key).name for key in range(self.keys.used)}
        return [db[name] for name in names | {self.collection}]

    def append_to_two(self, client, session, operations):
        for _ in range(2):
            self.append(client, session, operations)

    def step(self, client):
        if client.chance.random() >= SNAPSHOTS:
            return super().step(client)
        snapshot = self.shared_snapshot(client) or self.new_snapshot()
        outcome, error = self.read_at(client, snapshot)
        with self.lock:
            if outcome == OK and client.chance.random() < 0.5 and len(self.shared) < SHARED_MAX:
                self.shared.append(snapshot)
                return None
        return self.end(snapshot, outcome, error)

    def new_snapshot(self):
        with self.lock:
            self.snapshots += 1
            return Snapshot(FIRST_PROCESS + self.snapshots, time.monotonic_ns())

    def shared_snapshot(self, client):
        with self.lock:
            if self.shared and client.chance.random() < 0.5:
                return self.shared.pop(client.chance.randrange(len(self.shared)))
            return None

    def read_at(self, client, snapshot):
        try:
            with client.mongo.start_session(snapshot=True) as session:
                session._snapshot_time = snapshot.time
                for _ in range(client.chance.randint(1, 4)):
                    client.chance.choice(self.reads)(client, session, snapshot.operations)
                    time.sleep(client.chance.uniform(0, 0.01))
                snapshot.time = session._snapshot_time
            return OK, ""
        except PyMongoError as error:
            if is_expected(error) or isinstance(error, OperationFailure) and self.is_gone(error):
                return FAIL, brief(error)
            raise

    def is_gone(self, error):
        """Whether a snapshot may have ended: a server that was killed holds none, and MongoDB lacks new collections."""
        return error.code in GONE and (self.settings.kills > 0 or not self.settings.strict_statements)

    def end(self, snapshot, outcome=OK, error=""):
        self.history.add(
            snapshot.process, outcome, snapshot.operations, snapshot.began_ns, time.monotonic_ns(), error
        )

    # ---- reads beside those of lists

    def read_all_keys(self, client, session, operations):
        """Every key by a statement of its own, which only one snapshot makes agree."""
        keys = self.keys.some()
        for key in client.chance.sample(keys, len(keys)):
            operations.append(self.found(key, self.home(client.db, key).find({"_id": key}, session=session)))

    def read_in_batches(self, client, session, operations):
        """A scan of the index that every append changes, with writes between its batches."""
        keys = [key for key in self.keys.some() if self.home(client.db, key).name == self.collection]
        filter = {"key": {"$in": keys}, "size": {"$gte": 0}}
        documents = []
        for document in client.db[self.collection].find(filter, session=session, batch_size=1).hint("size_1"):
            documents.append(document)
            time.sleep(client.chance.uniform(0, 0.003))
        self.found_among(keys, documents, operations)

    # ---- the end

    def finish(self, db):
        for snapshot in self.shared:
            self.end(snapshot)
        super().finish(db)

    def summary(self):
        return f"{super().summary()}, {self.snapshots} snapshots"
