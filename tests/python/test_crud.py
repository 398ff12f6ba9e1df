"""Creating, reading, updating and deleting with PyMongo."""

import datetime

import pytest
from bson import Binary, Code, Decimal128, Int64, MaxKey, MinKey, ObjectId, Regex, Timestamp
from pymongo import DeleteMany, DeleteOne, InsertOne, ReplaceOne, ReturnDocument, UpdateMany, UpdateOne, WriteConcern
from pymongo.errors import BulkWriteError, DocumentTooLarge, DuplicateKeyError, OperationFailure, WriteError


def test_a_document_comes_back_as_it_was_inserted(db):
    document = {
        "_id": ObjectId(), "double": 1.5, "text": "grüße", "nested": {"a": {"b": [1, "x", None]}}, "array": [1, 2, [3]],
        "binary": b"\x00\x01", "id": ObjectId(), "yes": True, "date": datetime.datetime(2026, 1, 2, 3, 4, 5, 6000),
        "none": None, "regex": Regex("^a.*b$", "i"), "code": Code("f()"), "int": 7, "timestamp": Timestamp(5, 6), "long": Int64(2**53 + 1),
        "decimal": Decimal128("0.10"), "min": MinKey(), "max": MaxKey(), "empty": "", "negative zero": -0.0,
    }
    db.c.insert_one(document)
    assert db.c.find_one({"_id": document["_id"]}) == document
    assert str(db.c.find_one()["decimal"]) == "0.10"


def test_inserts_without_id_get_one_from_the_server(db):
    db.command("insert", "c", documents=[{"x": 1}])
    found = db.c.find_one()
    assert isinstance(found["_id"], ObjectId) and list(found) == ["_id", "x"]


def test_an_id_that_is_there_is_refused_and_the_others_of_an_unordered_batch_go_in(db):
    db.c.insert_one({"_id": 1})
    with pytest.raises(DuplicateKeyError) as refused:
        db.c.insert_one({"_id": 1.0})
    assert refused.value.details["keyPattern"] == {"_id": 1}
    with pytest.raises(BulkWriteError) as refused:
        db.c.insert_many([{"_id": 2}, {"_id": 1}, {"_id": 3}])
    assert refused.value.details["nInserted"] == 1
    with pytest.raises(BulkWriteError) as refused:
        db.c.insert_many([{"_id": 2}, {"_id": 1}, {"_id": 3}], ordered=False)
    assert refused.value.details["nInserted"] == 1
    assert [document["_id"] for document in db.c.find().sort("_id")] == [1, 2, 3]


def test_filters_sorts_and_projections_answer_together(db):
    db.c.insert_many([{"_id": i, "n": i % 7, "tags": [i % 3, i % 5], "sub": {"a": i}} for i in range(200)])
    found = list(db.c.find({"n": {"$in": [1, 2]}, "tags": 2, "sub.a": {"$lt": 100}}, {"sub.a": 1, "_id": 0}).sort("_id", -1))
    expected = [{"sub": {"a": i}} for i in reversed(range(100)) if i % 7 in (1, 2) and 2 in (i % 3, i % 5)]
    assert found == expected
    assert [d["_id"] for d in db.c.find().sort("_id", -1).skip(5).limit(3)] == [194, 193, 192]


@pytest.mark.parametrize("beside", [{}, {"n": {"$lt": 5}}, {"$or": [{"n": 1}, {"n": {"$gt": 8}}]}], ids=str)
def test_a_sample_rate_draws_about_its_share(db, beside):
    db.c.insert_many([{"_id": i, "n": i % 10} for i in range(20_000)])
    db.c.create_index("n")
    drawn = {**beside, "$sampleRate": 0.25}
    share = db.c.count_documents(beside) / 4
    found = [
        len(list(db.c.find(drawn))), db.c.count_documents(drawn), len(list(db.c.find(drawn, {"n": 1, "_id": 0}))),
        len(list(db.c.aggregate([{"$match": drawn}, {"$sort": {"n": 1}}]))),
    ]
    # Ten standard deviations: drawn twice, a document would come with a probability of 1/16.
    assert all(abs(count - share) < 10 * (share * 0.75) ** 0.5 for count in found), (found, share)


def test_a_cursor_goes_past_one_batch(db):
    db.c.insert_many([{"_id": i} for i in range(5000)])
    assert [d["_id"] for d in db.c.find({}, batch_size=77)] == list(range(5000))
    assert sum(1 for _ in db.c.find()) == 5000
    cursor = db.c.find({}, batch_size=2)
    next(cursor)
    cursor.close()


def test_a_cursor_shows_the_collection_as_of_its_beginning(db):
    db.c.insert_many([{"_id": i} for i in range(500)])
    cursor = db.c.find({}, batch_size=10)
    first = next(cursor)
    db.c.delete_many({"_id": {"$gte": 100}})
    db.c.insert_one({"_id": 1000})
    assert [first["_id"]] + [d["_id"] for d in cursor] == list(range(500))


def test_updates_change_what_they_say_and_report_it(db):
    db.c.insert_many([{"_id": i, "n": 0} for i in range(10)])
    result = db.c.update_one({"_id": 3}, {"$inc": {"n": 5}, "$set": {"a.b": 1}, "$push": {"list": {"$each": [3, 1, 2], "$sort": 1}}})
    assert (result.matched_count, result.modified_count) == (1, 1)
    assert db.c.find_one({"_id": 3}) == {"_id": 3, "n": 5, "a": {"b": 1}, "list": [1, 2, 3]}
    result = db.c.update_many({"_id": {"$gte": 5}}, {"$set": {"n": 0}})
    assert (result.matched_count, result.modified_count) == (5, 0)
    result = db.c.update_many({"_id": {"$gte": 5}}, {"$mul": {"x": 2}, "$unset": {"n": ""}})
    assert (result.matched_count, result.modified_count) == (5, 5)
    assert db.c.find_one({"_id": 9}) == {"_id": 9, "x": 0}
    result = db.c.replace_one({"_id": 1}, {"fresh": True})
    assert result.modified_count == 1 and db.c.find_one({"_id": 1}) == {"_id": 1, "fresh": True}


def test_a_replacement_without_an_id_always_counts_as_a_modification(db):
    db.c.insert_one({"_id": 1, "a": 1})
    assert db.c.replace_one({"_id": 1}, {"a": 1}).modified_count == 1
    assert db.c.replace_one({"_id": 1}, {"a": 1, "_id": 1}).modified_count == 1
    assert db.c.replace_one({"_id": 1}, {"_id": 1, "a": 1}).modified_count == 0
    assert list(db.c.find_one({"a": 1}).items()) == [("_id", 1), ("a", 1)]


def test_upserts_seed_from_the_filter(db):
    result = db.c.update_one({"_id": 7, "a": 1, "b": {"$gt": 5}}, {"$set": {"c": 2}, "$setOnInsert": {"d": 3}}, upsert=True)
    assert result.upserted_id == 7
    assert db.c.find_one() == {"_id": 7, "a": 1, "c": 2, "d": 3}
    result = db.c.replace_one({"z": 1}, {"y": 1}, upsert=True)
    assert isinstance(result.upserted_id, ObjectId)


def test_deletes_report_how_many(db):
    db.c.insert_many([{"_id": i, "even": i % 2 == 0} for i in range(10)])
    assert db.c.delete_one({"even": True}).deleted_count == 1
    assert db.c.delete_many({"even": True}).deleted_count == 4
    assert db.c.count_documents({}) == 5
    assert db.c.delete_many({}).deleted_count == 5


def test_find_and_modify_gives_the_document_before_or_after(db):
    db.c.insert_many([{"_id": i, "n": 10 - i} for i in range(5)])
    assert db.c.find_one_and_update({}, {"$inc": {"n": 100}}, sort=[("n", 1)]) == {"_id": 4, "n": 6}
    after = db.c.find_one_and_update({"_id": 0}, {"$set": {"x": 1}}, return_document=ReturnDocument.AFTER, projection={"x": 1})
    assert after == {"_id": 0, "x": 1}
    assert db.c.find_one_and_replace({"_id": 1}, {"r": 1}) == {"_id": 1, "n": 9}
    assert db.c.find_one_and_delete({"_id": 1}) == {"_id": 1, "r": 1}
    assert db.c.find_one_and_update({"_id": 77}, {"$set": {"a": 1}}) is None
    created = db.c.find_one_and_update({"_id": 77}, {"$set": {"a": 1}}, upsert=True, return_document=ReturnDocument.AFTER)
    assert created == {"_id": 77, "a": 1}


def test_a_bulk_write_mixes_operations(db):
    result = db.c.bulk_write([
        InsertOne({"_id": 1}), InsertOne({"_id": 2}), UpdateOne({"_id": 1}, {"$set": {"a": 1}}), UpdateMany({}, {"$inc": {"n": 1}}),
        ReplaceOne({"_id": 3}, {"r": 1}, upsert=True), DeleteOne({"_id": 2}), DeleteMany({"none": 1}),
    ])
    assert (result.inserted_count, result.modified_count, result.deleted_count, result.upserted_count) == (2, 3, 1, 1)
    assert list(db.c.find().sort("_id")) == [{"_id": 1, "a": 1, "n": 1}, {"_id": 3, "r": 1}]


def test_count_and_distinct(db):
    db.c.insert_many([{"_id": i, "v": [i % 3, "x"], "w": None if i % 2 else i % 4} for i in range(20)])
    assert db.c.count_documents({"v": 1}) == 7
    assert db.c.estimated_document_count() == 20
    assert sorted(db.c.distinct("v"), key=str) == [0, 1, 2, "x"]
    assert db.c.distinct("w", {"_id": {"$lt": 3}}) == [None, 0, 2]  # in the order of values
    assert db.command("count", "c", query={}, skip=5, limit=3)["n"] == 3


def test_every_durability_answers(db):
    for concern in [WriteConcern(w=0), WriteConcern(w=1), WriteConcern(w=1, j=True), WriteConcern(w="majority")]:
        db.get_collection("c", write_concern=concern).insert_one({"concern": str(concern.document)})
    # An unacknowledged write on the same connection is done before the next is answered; another connection may be earlier.
    assert db.c.count_documents({}) >= 3


def test_errors_carry_mongodbs_codes(db):
    db.c.insert_one({"_id": 1, "text": "a"})
    cases = [
        (lambda: db.command("nonsense"), 59),
        (lambda: db.command("find", "c", bogus=1), 40415),
        (lambda: list(db.c.find({"a": {"$foo": 1}})), 2),
        (lambda: list(db.c.aggregate([{"$foo": 1}])), 40324),
        (lambda: db.c.update_one({"_id": 1}, {"$inc": {"text": 1}}), 14),
        (lambda: db.c.update_one({"_id": 1}, {"$set": {"_id": 2}}), 66),
        (lambda: db.c.update_one({"_id": 1}, {"$set": {"a": 1}, "$inc": {"a": 1}}), 40),
        (lambda: db.c.update_one({"_id": 1}, {"$set": {"text.b": 1}}), 28),
        (lambda: db.c.insert_one({"_id": [1]}), 53),
        (lambda: db.command("drop", "missing"), 26),
        (lambda: db.command("getMore", Int64(12345), collection="c"), 43),
        (lambda: db.command("insert", "c", documents=[]), 16),
        (lambda: db.command("insert", "c", documents=[{}], txnNumber=Int64(-1), lsid={"id": Binary(b"0" * 16, 4)}), 72),
    ]
    for case, code in cases:
        with pytest.raises((OperationFailure, WriteError)) as refused:
            case()
        assert refused.value.code == code, refused.value


def test_a_document_over_16_megabytes_is_refused_and_one_just_below_is_kept(db):
    with pytest.raises((DocumentTooLarge, OperationFailure, WriteError)):
        db.c.insert_one({"_id": 1, "x": "a" * (17 * 1024 * 1024)})
    large = "b" * (16 * 1024 * 1024 - 100)
    db.c.insert_one({"_id": 2, "x": large})
    assert db.c.find_one({"_id": 2})["x"] == large


def test_sessions_are_accepted(client, db):
    with client.start_session() as session:
        db.c.insert_one({"_id": 1}, session=session)
        assert db.c.find_one({}, session=session) == {"_id": 1}
