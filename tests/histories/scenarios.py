"""Anomalies as scripts of two or three sessions, in the manner of Hermitage: prevented or allowed, by level.

Each scenario plays its statements in a fixed order and tells whether the anomaly came about. `EXPECTED` says
for each level what must come out. Under snapshot isolation write skew must be possible, too: a server that
aborts one of the two is too strict there.
"""

import threading

from pymongo.errors import PyMongoError
from pymongo.read_concern import ReadConcern

PREVENTED, ALLOWED = "prevented", "allowed"


class Actor:
    """One session with a transaction. After a conflict it has lost, and its further statements are left out."""

    def __init__(self, db, read_concern):
        self.db, self.things = db, db.things
        self.session = db.client.start_session()
        self.session.start_transaction(read_concern=ReadConcern(read_concern))
        self.lost = False

    def do(self, name, *arguments, **options):
        if self.lost:
            return None
        try:
            return getattr(self.things, name)(*arguments, session=self.session, **options)
        except PyMongoError as error:
            self.lose(error)

    def lose(self, error):
        if not error.has_error_label("TransientTransactionError"):
            raise error
        self.lost = True
        if self.session.in_transaction:
            self.session.abort_transaction()

    def value(self, id):
        document = self.do("find_one", {"_id": id})
        return document and document["value"]

    def set(self, id, value):
        self.do("update_one", {"_id": id}, {"$set": {"value": value}})

    def insert(self, **document):
        self.do("insert_one", document)

    def found(self, filter, **options):
        """The `_id` of each match."""
        return self.found_in("things", filter, **options)

    def found_in(self, collection, filter, **options):
        if self.lost:
            return []
        try:
            found = self.db[collection].find(filter, session=self.session, **options)
            return [document["_id"] for document in found]
        except PyMongoError as error:
            self.lose(error)
            return []

    def commit(self):
        """Whether the transaction has committed."""
        if not self.lost:
            try:
                self.session.commit_transaction()
            except PyMongoError as error:
                self.lose(error)
        return not self.lost

    def roll_back(self):
        if not self.lost:
            self.session.abort_transaction()


class Stage:
    """A collection with two documents and an index, and actors on it."""

    def __init__(self, db, read_concern):
        self.db, self.read_concern = db, read_concern
        self.actors = []
        db.things.drop()
        db.things.create_index("value")
        db.things.insert_many([{"_id": 1, "value": 10}, {"_id": 2, "value": 20}])
        for name in ("others", "renamed"):
            db[name].drop()
        db.others.insert_many([{"_id": 3, "value": 30}, {"_id": 4, "value": 40}])

    def actor(self):
        self.actors.append(Actor(self.db, self.read_concern))
        return self.actors[-1]

    def values(self):
        return [document["value"] for document in self.db.things.find().sort("_id")]

    def end(self):
        for actor in self.actors:
            actor.session.end_session()


def dirty_write(stage):
    one, two = stage.actor(), stage.actor()
    one.set(1, 11)
    two.set(1, 12)
    one.set(2, 21)
    one.commit()
    two.set(2, 22)
    two.commit()
    return stage.values() not in ([11, 21], [12, 22])


def aborted_read(stage):
    one, two = stage.actor(), stage.actor()
    one.set(1, 11)
    seen = [two.value(1)]
    one.roll_back()
    seen.append(two.value(1))
    two.commit()
    return seen != [10, 10]


def intermediate_read(stage):
    one, two = stage.actor(), stage.actor()
    one.set(1, 11)
    seen = [two.value(1)]
    one.set(1, 12)
    one.commit()
    seen.append(two.value(1))
    two.commit()
    return seen != [10, 10]


def circular_information_flow(stage):
    one, two = stage.actor(), stage.actor()
    one.set(1, 11)
    two.set(2, 22)
    seen = one.value(2), two.value(1)
    one.commit()
    two.commit()
    return seen != (20, 10)


def lost_update(stage):
    one, two = stage.actor(), stage.actor()
    seen = one.value(1), two.value(1)
    one.set(1, seen[0] + 1)
    one_committed = one.commit()
    two.set(1, seen[1] + 1)
    return two.commit() and one_committed


def read_skew(stage):
    one, two = stage.actor(), stage.actor()
    first = one.value(1)
    two.set(1, 12)
    two.set(2, 18)
    two.commit()
    second = one.value(2)
    one.commit()
    return (first, second) != (10, 20)


def read_skew_of_a_range(stage):
    """A document leaves the range and another comes in, in the tree of the documents and in that of the index."""
    one, two = stage.actor(), stage.actor()
    one.value(1)
    two.set(1, 100)
    two.set(2, 5)
    two.insert(_id=3, value=12)
    two.commit()
    ranges = {"value": {"$gte": 10, "$lte": 20}}
    seen = one.found(ranges, hint="value_1"), one.found(ranges, hint=[("$natural", 1)])
    one.commit()
    return seen != ([1, 2], [1, 2])


def read_of_a_deleted_document(stage):
    one, two = stage.actor(), stage.actor()
    one.value(2)
    two.do("delete_one", {"_id": 1})
    two.commit()
    seen = one.value(1), one.found({"value": 10}, hint="value_1")
    one.commit()
    return seen != (10, [1])


def update_of_a_deleted_document(stage):
    one, two = stage.actor(), stage.actor()
    one.value(2)
    two.do("delete_one", {"_id": 1})
    two.commit()
    one.set(1, 11)
    return one.commit()


def second_insert_of_one_key(stage):
    one, two = stage.actor(), stage.actor()
    one.insert(_id=3, value=30)
    two.insert(_id=3, value=31)
    first, second = one.commit(), two.commit()
    return first and second


def write_skew(stage):
    """Each reads both documents and writes the other one."""
    one, two = stage.actor(), stage.actor()
    for actor in (one, two):
        actor.value(1)
        actor.value(2)
    one.set(1, 0)
    two.set(2, 0)
    first, second = one.commit(), two.commit()
    return first and second


def write_skew_by_phantoms(stage):
    """Each finds the range empty, and inserts into it."""
    one, two = stage.actor(), stage.actor()
    free = {"value": {"$gte": 30, "$lt": 40}}
    empty = one.found(free, hint="value_1") == two.found(free, hint="value_1") == []
    one.insert(_id=31, value=31)
    two.insert(_id=32, value=32)
    first, second = one.commit(), two.commit()
    return empty and first and second


def read_only_transaction(stage):
    """The anomaly of Fekete, O'Neil and O'Neil: without the reader the two writers would be serializable."""
    withdrawal = stage.actor()
    withdrawal.value(1)
    withdrawal.value(2)
    deposit = stage.actor()
    deposit.set(2, deposit.value(2) + 20)
    deposit.commit()
    report = stage.actor()
    seen = report.value(1), report.value(2)
    report.commit()
    withdrawal.set(1, -1)
    return withdrawal.commit() and not report.lost and seen == (10, 40)


def read_of_a_dropped_collection(stage):
    """The old documents or an error are right, an empty collection is not."""
    one = stage.actor()
    one.value(1)
    stage.db.others.drop()
    seen = one.found_in("others", {})
    one.commit()
    return not one.lost and seen != [3, 4]


def read_of_a_renamed_collection(stage):
    one = stage.actor()
    one.value(1)
    stage.db.others.rename("renamed")
    seen = one.found_in("others", {}), one.found_in("renamed", {})
    one.commit()
    return not one.lost and seen != ([3, 4], [])


def read_of_a_collection_that_was_created_anew(stage):
    one = stage.actor()
    one.value(1)
    stage.db.others.drop()
    stage.db.others.insert_one({"_id": 5})
    seen = one.found_in("others", {})
    one.commit()
    return not one.lost and seen != [3, 4]


def read_by_an_index_that_was_built_later(stage):
    """The new index lacks what the snapshot has: its use would lose the document."""
    one = stage.actor()
    one.value(1)
    stage.db.others.update_one({"_id": 3}, {"$set": {"value": 99}})
    stage.db.others.create_index("value")
    seen = one.found_in("others", {"value": 30}), one.found_in("others", {"value": 99})
    one.commit()
    return not one.lost and seen != ([3], [])


def write_beside_an_index_build(stage):
    """A transaction writes before the index is built and commits after it: the index has its entry, or it loses."""
    one = stage.actor()
    one.do("update_one", {"_id": 1}, {"$set": {"late": 1}})
    build = threading.Thread(target=stage.db.things.create_index, args=["late"])
    build.start()
    build.join(1)
    committed = one.commit()
    build.join()
    found = [document["_id"] for document in stage.db.things.find({"late": 1}).hint("late_1")]
    return found != ([1] if committed else [])


def commit_of_two_collections(stage):
    """Both writes of a commit are seen or none, also where one of the collections is new."""
    one, two = stage.actor(), stage.actor()
    two.value(1)
    one.set(1, 11)
    one.db.renamed.insert_one({"_id": 6}, session=one.session)
    one.commit()
    seen = two.value(1), two.found_in("renamed", {})
    two.commit()
    return not two.lost and seen != (10, [])


ALWAYS_PREVENTED = [
    dirty_write,
    aborted_read,
    intermediate_read,
    circular_information_flow,
    lost_update,
    read_skew,
    read_skew_of_a_range,
    read_of_a_deleted_document,
    update_of_a_deleted_document,
    second_insert_of_one_key,
    read_of_a_dropped_collection,
    read_of_a_renamed_collection,
    read_of_a_collection_that_was_created_anew,
    read_by_an_index_that_was_built_later,
    write_beside_an_index_build,
    commit_of_two_collections,
]
NOT_SERIALIZABLE = [write_skew, write_skew_by_phantoms, read_only_transaction]

EXPECTED = {
    "snapshot": {**dict.fromkeys(ALWAYS_PREVENTED, PREVENTED), **dict.fromkeys(NOT_SERIALIZABLE, ALLOWED)},
    "serializable": dict.fromkeys(ALWAYS_PREVENTED + NOT_SERIALIZABLE, PREVENTED),
}


def outcome_of(scenario, db, read_concern):
    stage = Stage(db, read_concern)
    try:
        return ALLOWED if scenario(stage) else PREVENTED
    finally:
        stage.end()
