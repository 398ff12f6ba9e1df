"""References to other documents (DBRefs), as object mappers write and follow them."""

import hashlib

import gridfs
import pytest
from bson import DBRef
from pymongo.errors import OperationFailure


@pytest.fixture
def owners(db):
    db.pets.insert_many([{"_id": 7, "name": "Rex"}, {"_id": 8, "name": "Tom"}])
    db.owners.insert_many([{"_id": 1, "pet": DBRef("pets", 7)}, {"_id": 2, "pets": [DBRef("pets", 7), DBRef("pets", 8)]}])
    return db.owners


def test_a_lookup_follows_references(owners):
    of_one = owners.aggregate([{"$lookup": {"from": "pets", "localField": "pet.$id", "foreignField": "_id", "as": "found"}}, {"$match": {"_id": 1}}])
    assert [pet["name"] for pet in of_one.next()["found"]] == ["Rex"]
    of_many = owners.aggregate([{"$unwind": "$pets"}, {"$group": {"_id": "$pets.$id", "type": {"$first": "$pets.$ref"}}}, {"$sort": {"_id": 1}}])
    assert list(of_many) == [{"_id": 7, "type": "pets"}, {"_id": 8, "type": "pets"}]


def test_an_index_on_the_id_of_references_is_used(owners):
    owners.create_index("pet.$id")
    found = owners.find({"pet.$id": 7})
    assert found.explain()["queryPlanner"]["winningPlan"]["inputStage"]["indexName"] == "pet.$id_1"
    assert [owner["_id"] for owner in found] == [1]
    with pytest.raises(OperationFailure, match="illegal field name"):
        owners.create_index("pet.$name")


def test_a_reference_is_pulled_and_matched_as_an_element(owners):
    assert owners.count_documents({"pets": {"$elemMatch": {"$ref": "pets", "$id": 8}}}) == 1
    owners.update_many({}, {"$pull": {"pets": DBRef("pets", 7)}})
    assert owners.find_one({"_id": 2})["pets"] == [DBRef("pets", 8)]


def test_the_digest_of_a_stored_file_is_that_of_its_bytes(db):
    data = bytes(range(256)) * 3000
    identity = gridfs.GridFS(db, "pictures").put(data)
    told = db.command("filemd5", identity, root="pictures")
    assert (told["md5"], told["numChunks"]) == (hashlib.md5(data).hexdigest(), 3)
    assert db.command("filemd5", "no such file")["numChunks"] == 0
