"""Lists: a write appends a unique value to the list of a key. Each read tells the order of all writes before it."""

from pymongo import ReturnDocument, UpdateOne
from workloads.micro_operations import MicroOperations


class ListAppend(MicroOperations):
    name = "list-append"
    model = "list-append"
    moving_field = "size"

    def __init__(self, settings):
        super().__init__(settings)
        self.writes = [self.append, self.append, self.append_and_return, self.append_to_two, self.append_by_index]
        self.plain_writes = [self.append]

    def prepare(self, db):
        super().prepare(db)
        db[self.collection].create_index("values")

    def version_of(self, document):
        if document is None:
            return ()
        if document["size"] != len(document["values"]):
            self.report("torn document", f"the size of {document} is not that of its list")
        return tuple(document["values"])

    def change(self, key, operations):
        value = self.keys.next_value(key)
        operations.append(("append", key, value))
        return {"$push": {"values": value}, "$inc": {"size": 1}, "$setOnInsert": {"key": key}}

    def append(self, client, session, operations):
        key = self.keys.pick(client.chance)
        change = self.change(key, operations)
        self.home(client.db, key).update_one({"_id": key}, change, upsert=True, session=session)

    def append_and_return(self, client, session, operations):
        key = self.keys.pick(client.chance)
        after = self.home(client.db, key).find_one_and_update(
            {"_id": key},
            self.change(key, operations),
            upsert=True,
            return_document=ReturnDocument.AFTER,
            session=session,
        )
        operations.append(self.found(key, [after]))

    def append_to_two(self, client, session, operations):
        keys = client.chance.sample(self.keys.some(), 2)
        updates = [UpdateOne({"_id": key}, self.change(key, operations), upsert=True) for key in keys]
        client.db[self.collection].bulk_write(updates, session=session)

    def append_by_index(self, client, session, operations):
        """An update that finds its document by a secondary index; a key without a document stays as it is."""
        key, attempted = self.keys.pick(client.chance), []
        change = self.change(key, attempted)
        operations += attempted
        result = client.db[self.collection].update_many({"key": key}, change, hint="key_1", session=session)
        if result.modified_count == 0:
            operations[-1:] = [("r", key, ())]
