"""The stages that write, $out and $merge, with PyMongo."""

import pymongo
import pytest
from pymongo.errors import DuplicateKeyError, OperationFailure


def rows(collection):
    return list(collection.find().sort("_id", 1))


def test_out_makes_and_replaces_a_collection(db):
    db.c.insert_many([{"_id": at, "x": at % 3} for at in range(300)])
    assert list(db.c.aggregate([{"$match": {"x": 1}}, {"$out": "made"}])) == []
    assert db.made.count_documents({}) == 100
    db.made.create_index("x", name="by_x")
    db.c.aggregate([{"$match": {"_id": {"$lt": 5}}}, {"$out": "made"}])
    assert rows(db.made) == rows(db.c)[:5]
    assert set(db.made.index_information()) == {"_id_", "by_x"}
    assert [found["_id"] for found in db.made.find({"x": 2}).hint("by_x")] == [2]
    # Its own source, and another database.
    db.c.aggregate([{"$set": {"y": 1}}, {"$out": "c"}])
    assert db.c.count_documents({"y": 1}) == 300
    other = f"{db.name}_other"
    db.c.aggregate([{"$out": {"db": other, "coll": "made"}}])
    assert db.client[other].made.estimated_document_count() == 300
    db.client.drop_database(other)


def test_a_failure_of_out_leaves_the_target(db):
    db.c.insert_many([{"_id": at, "x": at % 3} for at in range(30)])
    db.made.insert_one({"_id": "old", "x": 1})
    db.made.create_index("x", unique=True)
    for stages in ([], [{"$project": {"_id": "one"}}]):
        with pytest.raises(DuplicateKeyError):
            db.c.aggregate([*stages, {"$out": "made"}])
    with pytest.raises(OperationFailure) as raised:
        db.c.aggregate([{"$set": {"x": {"$divide": ["$_id", {"$subtract": ["$_id", 20]}]}}}, {"$out": "made"}])
    assert raised.value.code == 2
    assert rows(db.made) == [{"_id": "old", "x": 1}]
    assert db.list_collection_names(filter={"name": {"$regex": "^tmp"}}) == []


@pytest.mark.needs("one server")
def test_a_cursor_on_the_replaced_collection_ends(db):
    db.c.insert_many([{"_id": at} for at in range(300)])
    cursor = db.c.find(batch_size=2)
    next(cursor)
    db.c.aggregate([{"$limit": 1}, {"$out": "c"}])
    with pytest.raises(OperationFailure) as raised:
        list(cursor)
    assert raised.value.code in (43, 175)


@pytest.mark.parametrize("matched, expected", [
    ("merge", {"_id": 1, "old": 1, "x": 1}), ("replace", {"_id": 1, "x": 1}), ("keepExisting", {"_id": 1, "old": 1}),
    ([{"$set": {"both": ["$old", "$$new.x", "$$v"]}}], {"_id": 1, "old": 1, "both": [1, 1, 8]}),
])
def test_merge_treats_a_document_that_matches(db, matched, expected):
    db.c.insert_many([{"_id": at, "x": at} for at in range(3)])
    db.made.insert_one({"_id": 1, "old": 1})
    more = {"let": {"v": {"$add": ["$x", 7]}}} if isinstance(matched, list) else {}
    assert list(db.c.aggregate([{"$merge": {"into": "made", "whenMatched": matched, **more}}])) == []
    assert rows(db.made) == [{"_id": 0, "x": 0}, expected, {"_id": 2, "x": 2}]


def test_merge_by_a_unique_index(db):
    db.c.insert_many([{"k": at, "x": at} for at in range(2000)])
    with pytest.raises(OperationFailure) as raised:
        db.c.aggregate([{"$unset": "_id"}, {"$merge": {"into": "made", "on": "k"}}])
    assert raised.value.code == 51183
    db.made.create_index([("k", pymongo.DESCENDING)], unique=True)
    for _ in range(2):
        db.c.aggregate([{"$unset": "_id"}, {"$merge": {"into": "made", "on": "k"}}])
    assert db.made.count_documents({}) == 2000
    with pytest.raises(OperationFailure) as raised:
        db.c.aggregate([{"$set": {"k": -1}}, {"$unset": "_id"},
                        {"$merge": {"into": "made", "on": "k", "whenMatched": "replace", "whenNotMatched": "fail"}}])
    assert raised.value.code == 13113


def test_a_pipeline_of_merge_meets_the_document_that_was_inserted_before(db):
    db.c.insert_many([{"_id": at, "k": at // 3} for at in range(2000)])
    counted = [{"$set": {"n": {"$add": [{"$ifNull": ["$n", 0]}, 1]}}}]
    db.c.aggregate([{"$project": {"_id": "$k"}}, {"$merge": {"into": "made", "whenMatched": counted}}])
    # The first of three documents is inserted as it is, and the pipeline counts the other two.
    assert db.made.count_documents({"n": 2}) == 666 and rows(db.made)[666] == {"_id": 666, "n": 1}
    db.made.create_index("u", unique=True, sparse=True)
    db.made.insert_one({"_id": -1, "u": 5})
    with pytest.raises(DuplicateKeyError):
        db.c.aggregate([{"$limit": 1}, {"$project": {"_id": {"$literal": -2}, "u": {"$literal": 5}}}, {"$merge": {"into": "made", "whenMatched": counted}}])


@pytest.mark.parametrize("stage", [{"$out": "made"}, {"$merge": "made"}], ids=repr)
@pytest.mark.needs("one server")
def test_a_pipeline_that_writes_waits_for_the_lock_of_fsync(db, stage):
    db.c.insert_one({"_id": 1})
    db.client.admin.command("fsync", lock=True)
    try:
        assert len(list(db.c.aggregate([{"$match": {}}]))) == 1
        with pytest.raises(OperationFailure) as raised:
            db.c.aggregate([stage], maxTimeMS=300)
        assert raised.value.code == 50
    finally:
        db.client.admin.command("fsyncUnlock")
    assert db.made.count_documents({}) == 0
    db.c.aggregate([stage])
    assert db.made.count_documents({}) == 1


def test_a_transaction_refuses_to_write_so(db):
    db.c.insert_one({"_id": 1})
    for stage in ({"$out": "made"}, {"$merge": "made"}):
        with db.client.start_session() as session:
            session.start_transaction()
            with pytest.raises(OperationFailure) as raised:
                db.c.aggregate([stage], session=session)
            assert raised.value.code == 263
            session.abort_transaction()


def test_pipelines_over_a_database(db):
    assert list(db.aggregate([{"$documents": [{"x": 1}, {"x": 2}]}, {"$group": {"_id": None, "n": {"$sum": "$x"}}}])) == [{"_id": None, "n": 3}]
    db.aggregate([{"$documents": [{"_id": 1}]}, {"$merge": "made"}])
    assert rows(db.made) == [{"_id": 1}]
