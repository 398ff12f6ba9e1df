"""Indexes that become unique: `prepareUnique`, then `unique: true` by `collMod`."""

import threading

import pytest
from bson import SON
from pymongo.errors import DuplicateKeyError, OperationFailure

CONFLICTS = "Cannot convert the index to unique. Please resolve conflicting documents before running collMod again."


def change(db, *, dry=False, **index):
    return db.command(SON(collMod="c", index={"keyPattern": {"a": 1}, **index}, dryRun=dry))


def fails(db, code, text, **index):
    with pytest.raises(OperationFailure) as error:
        change(db, **index)
    assert (error.value.code, error.value.details["errmsg"]) == (code, text)
    return error.value.details


@pytest.fixture
def filled(db):
    db.c.insert_many([{"_id": 1, "a": 1}, {"_id": 2, "a": 1}, {"_id": 3, "a": [2, 3]}, {"_id": 4, "a": 3}, {"_id": 5}, {"_id": 6}])
    db.c.create_index("a")
    return db


def test_an_index_is_prepared_cleaned_up_and_converted(filled):
    db = filled
    fails(db, 72, "Cannot make index unique with 'prepareUnique=false'. Run collMod to set it first.", unique=True)
    reply = change(db, prepareUnique=True)
    assert (reply["prepareUnique_old"], reply["prepareUnique_new"]) == (False, True)
    assert "prepareUnique_new" not in change(db, prepareUnique=True)
    assert db.c.index_information()["a_1"]["prepareUnique"] is True
    with pytest.raises(DuplicateKeyError) as error:
        db.c.insert_one({"_id": 7, "a": 3})
    assert error.value.details["keyValue"] == {"a": 3}
    with pytest.raises(DuplicateKeyError):
        db.c.update_one({"_id": 1}, {"$set": {"a": 3}})
    # Documents that share a key already may stay, change otherwise, and go.
    assert db.c.update_one({"_id": 1}, {"$set": {"b": 1}}).modified_count == 1
    for dry in [True, False]:
        violations = fails(db, 359, CONFLICTS, unique=True, dry=dry)["violations"]
        assert violations == [{"ids": [5, 6]}, {"ids": [1, 2]}, {"ids": [3, 4]}]
    db.c.delete_many({"_id": {"$in": [2, 4, 6]}})
    assert "unique_new" not in change(db, unique=True, dry=True)
    assert "unique" not in db.c.index_information()["a_1"]
    assert change(db, unique=True)["unique_new"] is True
    information = db.c.index_information()["a_1"]
    assert information["unique"] is True and "prepareUnique" not in information
    with pytest.raises(DuplicateKeyError):
        db.c.insert_one({"a": 2})
    assert [found["_id"] for found in db.c.find({"a": {"$gte": 1}}).hint("a_1").sort("a", 1)] == [1, 3]
    assert db.command("validate", "c")["valid"]


def test_changes_that_do_not_go_together_are_refused(filled):
    db = filled
    fails(db, 2, "Cannot make index non-unique", unique=False)
    fails(db, 72, "prepareUnique cannot be combined with any other modification.", prepareUnique=True, hidden=True)
    fails(db, 72, "dry run mode requires an index modification with unique: true.", hidden=True, dry=True)
    change(db, prepareUnique=True)
    fails(db, 72, "unique: true cannot be combined with any other modification in dry run mode.", unique=True, hidden=True, dry=True)
    with pytest.raises(OperationFailure) as error:
        db.command("collMod", "c", dryRun=True)
    assert error.value.code == 72


def test_preparation_can_be_taken_back(filled):
    db = filled
    change(db, prepareUnique=True)
    assert change(db, prepareUnique=False)["prepareUnique_old"] is True
    db.c.insert_one({"_id": 9, "a": 3})
    assert "prepareUnique" not in db.c.index_information()["a_1"]


def test_an_index_is_not_prepared_and_unique(db):
    with pytest.raises(OperationFailure) as error:
        db.c.create_index("a", unique=True, prepareUnique=True)
    assert error.value.code == 67


def test_the_list_of_a_refusal_ends_at_eight_mebibytes(db):
    db.c.insert_many([{"_id": "x" * 1000 + f"{at:05}", "a": 1} for at in range(9000)])
    db.c.create_index("a", prepareUnique=True)
    with pytest.raises(OperationFailure) as error:
        change(db, unique=True)
    assert "Too many conflicting documents" in error.value.details["errmsg"]
    assert len(error.value.details["violations"][0]["ids"]) == (8 << 20) // (1 + 4 + 4 + 1005 + 1)


def test_writers_race_for_keys_while_the_index_becomes_unique(db):
    db.c.create_index("a", prepareUnique=True)
    done = threading.Event()

    def write(number):
        for at in range(400):
            try:
                db.c.insert_one({"_id": at * 10 + number, "a": at})
            except DuplicateKeyError:
                pass
        done.set()

    writers = [threading.Thread(target=write, args=[number]) for number in range(4)]
    [writer.start() for writer in writers]
    while not done.is_set() and db.c.estimated_document_count() < 100:
        pass
    assert change(db, unique=True)["unique_new"] is True
    [writer.join() for writer in writers]
    assert db.c.count_documents({}) == 400
    assert len(db.c.distinct("a")) == 400
    assert db.command("validate", "c")["valid"]


def test_a_transaction_from_before_the_preparation_adds_no_shared_key(db):
    db.c.insert_one({"_id": 0, "a": 0})
    db.c.create_index("a")
    with db.client.start_session() as session:
        session.start_transaction()
        db.c.find_one({}, session=session)
        db.c.insert_one({"_id": 1, "a": 1})
        db.command({"collMod": "c", "index": {"name": "a_1", "prepareUnique": True}})
        with pytest.raises(OperationFailure):
            db.c.insert_one({"_id": 2, "a": 1}, session=session)
            session.commit_transaction()
    assert [row["_id"] for row in db.c.find({"a": 1})] == [1]
