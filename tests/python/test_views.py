"""Views through PyMongo: made, read, changed, listed and dropped; writes are refused."""

import pytest
from pymongo.errors import OperationFailure, WriteError


@pytest.fixture
def viewed(db):
    db.people.insert_many({"_id": at, "age": at, "town": "ABC"[at % 3]} for at in range(30))
    db.people.create_index("town")
    db.create_collection("old", viewOn="people", pipeline=[{"$match": {"age": {"$gte": 20}}}])
    db.create_collection("old_in_a", viewOn="old", pipeline=[{"$match": {"town": "A"}}, {"$project": {"age": 1}}])
    return db


def test_a_view_reads_what_its_collection_holds_now(viewed):
    assert [found["_id"] for found in viewed.old_in_a.find().sort("_id", 1)] == [21, 24, 27]
    viewed.people.insert_one({"_id": 30, "age": 30, "town": "A"})
    assert viewed.old_in_a.count_documents({}) == 4
    assert viewed.old_in_a.find_one({"_id": 30}) == {"_id": 30, "age": 30}
    assert sorted(viewed.old.distinct("town")) == ["A", "B", "C"]
    assert len(list(viewed.old.find(batch_size=2))) == 11
    assert viewed.old.estimated_document_count() == 11


def test_a_view_is_listed_as_one(viewed):
    listed = {found["name"]: found for found in viewed.list_collections()}
    assert listed["old"]["type"] == "view" and listed["old"]["info"] == {"readOnly": True}
    assert listed["old"]["options"] == {"viewOn": "people", "pipeline": [{"$match": {"age": {"$gte": 20}}}]}
    assert listed["system.views"]["type"] == "collection"
    assert [found["_id"] for found in viewed["system.views"].find()] == [f"{viewed.name}.old", f"{viewed.name}.old_in_a"]


def test_a_filter_on_a_view_uses_an_index_of_the_collection(viewed):
    plan = viewed.command({"explain": {"find": "old_in_a", "filter": {"age": {"$gt": 25}}}, "verbosity": "queryPlanner"})
    assert "IXSCAN" in str(plan) and "town_1" in str(plan)


def test_a_view_within_a_stage_knows_the_times_of_the_query(viewed):
    viewed.create_collection("timed", viewOn="people", pipeline=[{"$limit": 1}, {"$project": {"now": "$$NOW", "time": "$$CLUSTER_TIME"}}])
    lookup = {"$lookup": {"from": "timed", "let": {"v": 1}, "pipeline": [], "as": "timed"}}
    [found] = viewed.people.aggregate([{"$limit": 1}, {"$set": {"now": "$$NOW", "time": "$$CLUSTER_TIME"}}, lookup])
    assert found["timed"] == [{"_id": 0, "now": found["now"], "time": found["time"]}]


def test_a_lookup_in_a_view_uses_an_index_of_the_collection(viewed):
    lookup = {"$lookup": {"from": "old", "localField": "town", "foreignField": "town", "as": "found"}}
    pipeline = [{"$limit": 1}, lookup]
    assert len(next(iter(viewed.people.aggregate(pipeline)))["found"]) == 3
    plan = viewed.command({"explain": {"aggregate": "people", "pipeline": pipeline, "cursor": {}}, "verbosity": "executionStats"})
    assert "town_1" in str(plan["stages"][-1]) or "town_1" in str(plan)


def test_writes_are_refused(viewed):
    with pytest.raises(WriteError) as refused:
        viewed.old.insert_one({"_id": 100})
    assert refused.value.code == 166
    for write in (lambda: viewed.old.find_one_and_delete({}), lambda: viewed.old.create_index("age")):
        with pytest.raises(OperationFailure) as refused:
            write()
        assert refused.value.code == 166


def test_cycles_are_refused(viewed):
    with pytest.raises(OperationFailure) as refused:
        viewed.command({"collMod": "old", "viewOn": "old_in_a", "pipeline": []})
    assert refused.value.code == 5
    viewed.create_collection("one", viewOn="two", pipeline=[])
    with pytest.raises(OperationFailure) as refused:
        viewed.create_collection("two", viewOn="people", pipeline=[{"$unionWith": "one"}])
    assert refused.value.code == 5


def test_a_changed_view_and_a_dropped_one(viewed):
    viewed.command({"collMod": "old", "viewOn": "people", "pipeline": [{"$match": {"age": {"$gte": 29}}}]})
    assert viewed.old.count_documents({}) == 1
    viewed.drop_collection("old")
    assert viewed.old_in_a.count_documents({}) == 0
    assert "old" not in viewed.list_collection_names()
    viewed.old.insert_one({"_id": 1, "town": "A"})
    assert viewed.old_in_a.count_documents({}) == 1


def test_a_view_within_a_transaction_sees_its_writes(viewed, client):
    with client.start_session() as session, session.start_transaction():
        viewed.people.insert_one({"_id": 99, "age": 99, "town": "A"}, session=session)
        assert viewed.old_in_a.find_one({"_id": 99}, session=session) == {"_id": 99, "age": 99}
        session.abort_transaction()
    assert viewed.old_in_a.find_one({"_id": 99}) is None
