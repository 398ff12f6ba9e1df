"""Lists of which each has a collection of its own, which the transaction that first appends to it creates.

A key gets few appends, so collections are created all the time. A transaction that rolls back takes its
collections with it, and two that create the same one have a conflict.
"""

from workloads.list_append import ListAppend


class NewCollections(ListAppend):
    name = "new-collections"
    writes_per_key = 10

    def __init__(self, settings):
        super().__init__(settings)
        self.reads = [self.read_by_id, self.read_by_pipeline, self.read_several, self.read_several]
        self.writes = [self.append, self.append, self.append_and_return]
        self.plain_reads = [self.read_by_id, self.read_by_pipeline]

    def prepare(self, db):
        """Nothing: the first transaction finds an empty database."""

    def home(self, db, key):
        return db[f"key_{key}"]

    def homes(self, db):
        return [self.home(db, key) for key in range(self.keys.used)]

    def read_several(self, client, session, operations):
        """All keys in use, so one that its creator has just committed is among them."""
        keys = self.keys.some()
        for key in client.chance.sample(keys, len(keys)):
            operations.append(self.found(key, self.home(client.db, key).find({"key": key}, session=session)))
