"""Registers: a write sets a unique value, by an update, a replacement, an exchange, or a new document."""

from pymongo import ReturnDocument
from workloads.micro_operations import MicroOperations

PAD_BYTES = 10_000
PADDED = 8


class Register(MicroOperations):
    name = "register"
    model = "register"
    moving_field = "value"

    def __init__(self, settings):
        super().__init__(settings)
        self.writes = [self.set, self.replace, self.exchange, self.exchange, self.insert_anew]
        self.plain_writes = [self.set, self.replace]

    def version_of(self, document):
        if document is None:
            return None
        if document["value"] != document["copy"]:
            self.report("torn document", f"the value of {document} is not its copy")
        return document["value"]

    def next_document(self, key, operations):
        value = self.keys.next_value(key)
        operations.append(("w", key, value))
        # Some documents are many times larger than the others, so pages split while transactions are open.
        pad = "x" * PAD_BYTES if value % PADDED == 0 else ""
        return {"key": key, "value": value, "copy": value, "pad": pad}

    def set(self, client, session, operations):
        key = self.keys.pick(client.chance)
        client.db[self.collection].update_one(
            {"_id": key}, {"$set": self.next_document(key, operations)}, upsert=True, session=session
        )

    def replace(self, client, session, operations):
        key = self.keys.pick(client.chance)
        client.db[self.collection].replace_one(
            {"_id": key}, self.next_document(key, operations), upsert=True, session=session
        )

    def exchange(self, client, session, operations):
        """The reply has the value before, which makes the order of versions known."""
        key, attempted = self.keys.pick(client.chance), []
        change = {"$set": self.next_document(key, attempted)}
        operations += attempted
        before = client.db[self.collection].find_one_and_update(
            {"_id": key}, change, upsert=True, return_document=ReturnDocument.BEFORE, session=session
        )
        operations[-1:] = [self.found(key, [before] if before else []), *attempted]

    def insert_anew(self, client, session, operations):
        key = self.keys.pick(client.chance)
        client.db[self.collection].delete_one({"_id": key}, session=session)
        client.db[self.collection].insert_one({"_id": key, **self.next_document(key, operations)}, session=session)
