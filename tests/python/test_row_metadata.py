"""Record ids, index keys and `$meta` of a find, and the size of a range of keys."""

import pytest
from pymongo.errors import OperationFailure


@pytest.fixture
def c(db):
    db.create_collection("c", layout="heap")
    db.c.insert_many([{"_id": at, "a": at % 3, "b": at, "l": [at, at + 1]} for at in range(6)])
    db.c.create_index([("a", 1), ("b", -1)])
    db.c.create_index("l")
    return db.c


def find(db, **fields):
    return db.command({"find": "c", **fields})["cursor"]["firstBatch"]


@pytest.mark.needs("unshared collections")
def test_record_ids(db, c):
    assert find(db, showRecordId=True, projection={"a": 1}, limit=2) == [{"_id": 0, "a": 0, "$recordId": 1}, {"_id": 1, "a": 1, "$recordId": 2}]
    assert find(db, showRecordId=True, filter={"_id": 3}, projection={"_id": 1}) == [{"_id": 3, "$recordId": 4}]
    assert [found["$recordId"] for found in find(db, showRecordId=True, sort={"b": -1}, limit=2)] == [6, 5]
    assert find(db, projection={"a": 1, "r": {"$meta": "recordId"}}, limit=1) == [{"_id": 0, "a": 0, "r": 1}]
    db.d.insert_one({"_id": "x"})
    assert db.command({"find": "d", "showRecordId": True})["cursor"]["firstBatch"] == [{"_id": "x", "$recordId": b"`x\x00"}]


@pytest.mark.needs("unshared collections")
def test_index_keys(db, c):
    assert find(db, returnKey=True, limit=2) == [{}, {}]
    assert find(db, returnKey=True, filter={"a": 1}) == [{"a": 1, "b": 4}, {"a": 1, "b": 1}]
    assert find(db, returnKey=True, filter={"_id": {"$gt": 4}}, hint={"_id": 1}) == [{"_id": 5}]
    assert find(db, returnKey=True, filter={"_id": 3}, projection={"a": 1}) == [{"_id": 3}]
    assert find(db, returnKey=True, filter={"l": {"$gt": 5}}) == [{"l": 6}]
    assert find(db, projection={"_id": 1, "r": {"$meta": "indexKey"}}, filter={"a": 2}) == [
        {"_id": 5, "r": {"a": 2, "b": 5}}, {"_id": 2, "r": {"a": 2, "b": 2}}]


@pytest.mark.needs("unshared collections")
def test_sort_keys_and_sorts_by_metadata(db, c):
    assert [found["r"] for found in find(db, projection={"r": {"$meta": "sortKey"}}, sort={"b": -1, "a": 1}, limit=2)] == [[5, 2], [4, 1]]
    assert find(db, returnKey=True, filter={"a": 1}, sort={"b": 1}, projection={"x": {"$meta": "sortKey"}}, hint={"a": 1, "b": -1}) == [
        {"a": 1, "b": 1, "x": [1]}, {"a": 1, "b": 4, "x": [4]}]
    assert [found["_id"] for found in find(db, sort={"r": {"$meta": "randVal"}})] == list(range(6))
    for kind, code in [("textScore", 40218), ("geoNearDistance", 40218), ("searchScore", 31218), ("recordId", 31138), ("x", 31138)]:
        with pytest.raises(OperationFailure) as error:
            find(db, sort={"r": {"$meta": kind}})
        assert error.value.code == code, kind
    with pytest.raises(OperationFailure) as error:
        find(db, projection={"r": {"$meta": "sortKey"}})
    assert error.value.code == 2


@pytest.mark.needs("unshared collections")
def test_the_size_of_a_range(db, c):
    size = lambda **fields: {name: value for name, value in db.command({"dataSize": f"{db.name}.c", **fields}).items() if name not in ("millis", "ok", "$clusterTime", "operationTime")}
    whole = size()
    assert whole["numObjects"] == 6
    one = whole["size"] // 6
    assert size(keyPattern={"a": 1}, min={"a": 1}, max={"a": 2}) == {"estimate": False, "size": 2 * one, "numObjects": 2}
    assert size(min={"_id": 1}, max={"_id": 3}, estimate=True) == {"estimate": True, "size": 2 * one, "numObjects": 2}
    assert size(maxObjects=2) == {"estimate": False, "maxReached": True, "size": 3 * one, "numObjects": 3}
    for fields, code in [({"min": {"a": 1}}, 2), ({"max": {"a": 1}}, 2), ({"min": {"_id": 1}, "max": {"b": 2}}, 16634), ({"min": {"q": 1}, "max": {"q": 2}}, None)]:
        with pytest.raises(OperationFailure) as error:
            size(**fields)
        assert error.value.code == code
