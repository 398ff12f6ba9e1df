"""Rules for documents through PyMongo: JSON schemas and filters, their levels and actions, and the errors of broken ones."""

import pytest
from pymongo import DeleteOne, InsertOne, UpdateOne
from pymongo.errors import BulkWriteError, OperationFailure, WriteError

SCHEMA = {"bsonType": "object", "required": ["name"], "properties": {"name": {"bsonType": "string"}, "age": {"bsonType": "int", "minimum": 0}}}


@pytest.fixture
def people(db):
    return db.create_collection("people", validator={"$jsonSchema": SCHEMA})


def test_the_error_tells_the_broken_rules(people):
    people.insert_one({"_id": 1, "name": "Ada", "age": 36})
    with pytest.raises(WriteError) as refused:
        people.insert_one({"_id": 2, "age": -1})
    assert refused.value.code == 121
    info = refused.value.details["errInfo"]
    assert info["failingDocumentId"] == 2 and info["details"]["operatorName"] == "$jsonSchema"
    assert [rule["operatorName"] for rule in info["details"]["schemaRulesNotSatisfied"]] == ["properties", "required"]
    with pytest.raises(WriteError):
        people.update_one({"_id": 1}, {"$unset": {"name": 1}})
    with pytest.raises(OperationFailure) as refused:
        people.find_one_and_update({"_id": 1}, {"$set": {"age": "x"}})
    assert refused.value.code == 121 and refused.value.details["errInfo"]["failingDocumentId"] == 1
    assert people.find_one() == {"_id": 1, "name": "Ada", "age": 36}


def test_a_batch_keeps_the_documents_that_keep_the_rule(people):
    writes = [InsertOne({"_id": 1, "name": "a"}), InsertOne({"_id": 2}), UpdateOne({"_id": 1}, {"$set": {"age": -1}}), InsertOne({"_id": 3, "name": "c"})]
    with pytest.raises(BulkWriteError) as refused:
        people.bulk_write(writes, ordered=False)
    assert [error["index"] for error in refused.value.details["writeErrors"]] == [1, 2]
    assert [found["_id"] for found in people.find().sort("_id")] == [1, 3]


def test_the_rule_can_be_bypassed(people):
    people.insert_one({"_id": 1}, bypass_document_validation=True)
    people.update_one({"_id": 1}, {"$set": {"x": 1}}, bypass_document_validation=True)
    # A driver sends it with the deletes of a bulk write as well.
    many = people.bulk_write([InsertOne({"_id": 90}), DeleteOne({"_id": 90})], bypass_document_validation=True)
    assert (many.inserted_count, many.deleted_count) == (1, 1)
    assert people.database.validate_collection("people")["nNonCompliantDocuments"] == 1


def test_a_rule_that_comes_later_is_for_changes(db):
    db.c.insert_many([{"_id": 1, "a": 0}, {"_id": 2, "a": 5}])
    db.command("collMod", "c", validator={"a": {"$gt": 1}}, validationLevel="moderate")
    db.c.update_one({"_id": 1}, {"$set": {"b": 1}})
    with pytest.raises(WriteError):
        db.c.update_one({"_id": 2}, {"$set": {"a": 1}})
    db.command("collMod", "c", validationLevel="strict")
    with pytest.raises(WriteError):
        db.c.update_one({"_id": 1}, {"$set": {"b": 2}})
    db.command("collMod", "c", validationAction="warn")
    db.c.update_one({"_id": 1}, {"$set": {"b": 2}})
    db.command("collMod", "c", validator={}, validationAction="error")
    db.c.insert_one({"_id": 3})


def test_the_details_of_many_failures_stay_within_a_reply(people):
    with pytest.raises(BulkWriteError) as refused:
        people.insert_many([{"_id": at} for at in range(2000)], ordered=False)
    errors = refused.value.details["writeErrors"]
    assert len(errors) == 2000 and {error["code"] for error in errors} == {121}
    assert "errInfo" in errors[0] and "errInfo" not in errors[-1]


def test_a_schema_is_a_filter_too(db):
    db.c.insert_many([{"_id": 1, "name": "x"}, {"_id": 2, "name": 5}, {"_id": 3, "age": 1}])
    assert [found["_id"] for found in db.c.find({"$jsonSchema": SCHEMA})] == [1]
    assert [found["_id"] for found in db.c.find({"$nor": [{"$jsonSchema": SCHEMA}]}).sort("_id")] == [2, 3]
    assert [found["_id"] for found in db.c.aggregate([{"$match": {"$jsonSchema": {"required": ["age"]}}}])] == [3]
