"""Indexes of geometries: they change no answer, hold the documents with geometry, and refuse what is none."""

import contextlib
import pathlib
import random
import sys

import pytest
from pymongo.errors import BulkWriteError, DuplicateKeyError, OperationFailure, WriteError

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "acceptance"))

from shapes import geo, region, shape


def stages(plan):
    yield plan["stage"]
    for below in ([plan["inputStage"]] if "inputStage" in plan else plan.get("inputStages", [])):
        yield from stages(below)


def plan_of(cursor):
    return list(stages(cursor.explain()["queryPlanner"]["winningPlan"]))


def ids(cursor):
    return sorted(row["_id"] for row in cursor)


def is_sound(db, condition):
    try:
        return db.none.find_one({"l": condition}) is None
    except OperationFailure as refused:
        assert refused.code == 2
        return False


CENTRES = [(10, (20, 30)), (60, (0, 0)), (5, (179, 10)), (20, (-178, -70)), (8, (100, 86)), (0.01, (13.4, 52.5)), (90, (-90, 0))]


@pytest.mark.parametrize("seed,around", list(enumerate(CENTRES)))
def test_an_index_on_the_sphere_changes_no_answer(db, seed, around):
    chance = random.Random(seed)
    spread, centre = around
    documents = [{"_id": at, "l": shape(chance, spread, centre), "a": at % 5, "b": [at % 3, at % 7]} for at in range(400)]
    levels = [{}, {"finestIndexedLevel": 12}, {"coarsestIndexedLevel": 6, "finestIndexedLevel": 30}][seed % 3]
    db.c.create_index([("l", "2dsphere")], **levels)
    # Some of the random polygons are none: their hole lies outside.
    with contextlib.suppress(BulkWriteError):
        db.c.insert_many(documents, ordered=False)
    db.plain.insert_many(db.c.find())
    assert db.plain.count_documents({}) > 380
    db.c.create_index([("a", 1), ("l", "2dsphere"), ("b", -1)])
    used = 0
    for _ in range(8):
        wanted, other = region(chance, spread, centre), shape(chance, spread, centre)
        conditions = [{"$geoWithin": wanted}, {"$geoIntersects": {"$geometry": other}}]
        if "$geometry" in wanted:
            conditions.append({"$geoIntersects": wanted})
        for condition in filter(lambda condition: is_sound(db, condition), conditions):
            for more in ({}, {"a": 3}, {"b": {"$gt": 4}}, {"a": {"$in": [1, 2]}, "b": 1}):
                query = {"l": condition, **more}
                assert ids(db.c.find(query)) == ids(db.plain.find(query)), query
            assert ids(db.c.find({"l": {"$not": condition}})) == ids(db.plain.find({"l": {"$not": condition}}))
            assert ids(db.c.find({"$or": [{"l": condition, "a": 1}, {"l": condition, "a": 2}]})) == ids(db.plain.find({"l": condition, "a": {"$in": [1, 2]}}))
            used += "IXSCAN" in plan_of(db.c.find({"l": condition}))
    assert used > 5
    assert db.command("validate", "c", full=True)["valid"]


@pytest.mark.parametrize("seed,options", list(enumerate([{}, {"bits": 4}, {"bits": 32}, {"min": -500, "max": 700}, {"bits": 1}])))
def test_an_index_in_the_plane_changes_no_answer(db, seed, options):
    chance = random.Random(seed)
    pair = lambda: [chance.uniform(-170, 170), chance.uniform(-80, 80)]
    value = lambda: chance.choice([pair, lambda: dict(zip("xy", pair())), lambda: [pair() for _ in range(chance.randint(1, 4))]])()
    documents = [{"_id": at, "l": value(), "a": at % 5, "b": [at % 3, at % 7]} for at in range(500)]
    db.plain.insert_many(documents)
    db.c.insert_many(documents)
    db.c.create_index([("l", "2d"), ("a", 1)], **options)
    used = 0
    for at in range(60):
        condition = {"$geoWithin": region(chance, 60, (0, 0))}
        if not is_sound(db, condition):
            continue
        for more in ({}, {"a": 3}, {"b": {"$gt": 4}}):
            assert ids(db.c.find({"l": condition, **more})) == ids(db.plain.find({"l": condition, **more})), condition
        used += "IXSCAN" in plan_of(db.c.find({"l": condition}))
    assert used > 20
    assert db.command("validate", "c", full=True)["valid"]


def entries(db, name):
    return db.command("validate", "c")["keysPerIndex"][name]


def test_an_index_has_the_documents_with_geometry_and_follows_their_changes(db):
    db.c.create_index([("l", "2dsphere")], name="g")
    db.c.insert_many([{"_id": 1}, {"_id": 2, "l": None}, {"_id": 3, "l": [1, 2]}, {"_id": 4, "l": geo("Point", [3, 4])}, {"_id": 5, "l": []}, {"_id": 6, "l": {}}])
    assert entries(db, "g") == 2
    db.c.update_one({"_id": 1}, {"$set": {"l": [5, 6]}})
    db.c.update_one({"_id": 3}, {"$unset": {"l": 1}})
    db.c.update_one({"_id": 4}, {"$set": {"l": geo("LineString", [[0, 0], [50, 50]])}})
    assert entries(db, "g") > 2
    assert ids(db.c.find({"l": {"$geoIntersects": {"$geometry": geo("Polygon", [[[-1, -1], [-1, 9], [9, 9], [9, -1], [-1, -1]]])}}})) == [1, 4]
    with pytest.raises(WriteError) as refused:
        db.c.update_one({"_id": 1}, {"$set": {"l": [200, 1]}})
    assert refused.value.code == 16755
    assert ids(db.c.find({}, hint="g")) == [1, 4]
    db.c.delete_many({"_id": {"$in": [1, 4]}})
    assert entries(db, "g") == 0 and db.command("validate", "c", full=True)["valid"]


def test_a_build_refuses_what_an_insert_refuses(db):
    db.c.insert_one({"_id": 1, "l": "bad"})
    with pytest.raises(OperationFailure) as refused:
        db.c.create_index([("l", "2dsphere")])
    assert refused.value.code == 16755 and "Can't extract geo keys" in str(refused.value)
    db.c.create_index([("l", "2d")])
    db.d.insert_one({"_id": 1, "l": [1, 400]})
    with pytest.raises(OperationFailure) as refused:
        db.d.create_index([("l", "2d")])
    assert refused.value.code == 13027


def test_options_are_listed(db):
    db.c.create_index([("l", "2dsphere")])
    db.c.create_index([("m", "2d"), ("a", -1)], bits=20, min=-10, max=10)
    shown = db.c.index_information()
    assert shown["l_2dsphere"]["2dsphereIndexVersion"] == 3
    assert (shown["m_2d_a_-1"]["bits"], shown["m_2d_a_-1"]["min"], shown["m_2d_a_-1"]["max"]) == (20, -10.0, 10.0)
    with pytest.raises(OperationFailure) as refused:
        db.c.create_index([("a", 1), ("x", "2d")])
    assert refused.value.code == 16801


def test_a_unique_index_refuses_the_same_place(db):
    db.c.create_index([("l", "2dsphere")], unique=True)
    db.c.insert_many([{"_id": 1, "l": [5, 5]}, {"_id": 2}, {"_id": 3}])
    with pytest.raises(DuplicateKeyError):
        db.c.insert_one({"_id": 4, "l": geo("Point", [5, 5])})
    db.c.insert_one({"_id": 5, "l": geo("Point", [5, 5.001])})


def test_a_partial_index_serves_the_queries_that_imply_its_filter(db):
    square = {"$geoWithin": {"$geometry": geo("Polygon", [[[0, 0], [0, 5], [5, 5], [5, 0], [0, 0]]])}}
    db.c.create_index([("l", "2dsphere")], name="p", partialFilterExpression={"a": {"$gt": 5}})
    db.c.create_index("b", name="q", partialFilterExpression={"l": square})
    db.c.insert_many([{"_id": at, "l": [at % 8 + 0.5, 1], "a": at % 10, "b": at} for at in range(100)])
    assert 0 < entries(db, "p") < 100 and 0 < entries(db, "q") < 100
    assert "IXSCAN" in plan_of(db.c.find({"l": square, "a": 7})) and "COLLSCAN" in plan_of(db.c.find({"l": square, "a": 2}))
    assert "IXSCAN" in plan_of(db.c.find({"l": square, "b": 3})) and "COLLSCAN" in plan_of(db.c.find({"b": 3}))
    assert ids(db.c.find({"l": square, "a": {"$gt": 7}})) == [at for at in range(100) if at % 10 > 7 and at % 8 < 5]
