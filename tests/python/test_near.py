"""`$near` and `$geoNear`: documents in the order of their distances, found by an index."""

import math
import random

import pytest
from pymongo.errors import OperationFailure

RADIUS = 6378100.0


def point(pair):
    return {"type": "Point", "coordinates": pair}


def angle(a, b):
    """The angle between two places, in radians."""
    vector = lambda pair: (math.cos(math.radians(pair[1])) * math.cos(math.radians(pair[0])),
                           math.cos(math.radians(pair[1])) * math.sin(math.radians(pair[0])), math.sin(math.radians(pair[1])))
    (x, y, z), (u, v, w) = vector(a), vector(b)
    cross = math.dist((y * w - z * v, z * u - x * w, x * v - y * u), (0, 0, 0))
    return math.atan2(cross, x * u + y * v + z * w)


def places(seed, count):
    chance = random.Random(seed)
    crowd = lambda: [13 + chance.gauss(0, 0.5), 52 + chance.gauss(0, 0.5)]
    anywhere = lambda: [chance.uniform(-180, 180), math.degrees(math.asin(chance.uniform(-1, 1)))]
    return [chance.choice([crowd, anywhere])() for _ in range(count)]


def ids(cursor):
    return [row["_id"] for row in cursor]


@pytest.fixture
def sphere(db):
    db.c.create_index([("l", "2dsphere")])
    db.c.insert_many([{"_id": at, "l": point(pair) if at % 2 else pair, "a": at % 5} for at, pair in enumerate(places(1, 1500))])
    return db


@pytest.mark.parametrize("centre", [[13, 52], [0, 0], [179.9, -10], [20, 89.9], [-100, -90]])
def test_documents_come_in_the_order_of_their_distances(sphere, centre):
    far = lambda at: angle(centre, places(1, 1500)[at])
    distances = [angle(centre, pair) for pair in places(1, 1500)]
    order = sorted(range(1500), key=lambda at: distances[at])
    near = {"$near": {"$geometry": point(centre)}}
    assert ids(sphere.c.find({"l": near}).batch_size(50)) == order
    assert ids(sphere.c.find({"l": near}).limit(7)) == order[:7]
    assert ids(sphere.c.find({"l": near}).skip(3).limit(7)) == order[3:10]
    assert ids(sphere.c.find({"l": near, "a": 2})) == [at for at in order if at % 5 == 2]
    assert ids(sphere.c.find({"l": {"$nearSphere": centre}})) == order
    least, greatest = distances[order[100]] + 1e-9, distances[order[400]] + 1e-9
    assert ids(sphere.c.find({"l": {"$near": {"$geometry": point(centre), "$minDistance": least * RADIUS, "$maxDistance": greatest * RADIUS}}})) == order[101:401]
    assert ids(sphere.c.find({"l": {"$nearSphere": centre, "$minDistance": least, "$maxDistance": greatest}})) == order[101:401]
    assert ids(sphere.c.find({"l": near}).sort("_id", 1).limit(5)) == [0, 1, 2, 3, 4]
    rows = list(sphere.c.aggregate([{"$geoNear": {"near": point(centre), "distanceField": "d.far", "includeLocs": "p", "query": {"a": 1}, "maxDistance": greatest * RADIUS}}]))
    assert ids(rows) == [at for at in order[:401] if at % 5 == 1]
    for row in rows:
        assert row["d"]["far"] == pytest.approx(distances[row["_id"]] * RADIUS, rel=1e-6, abs=1e-6) and row["p"] == row["l"]


def test_a_limit_ends_the_search(sphere):
    plan = sphere.command("explain", {"find": "c", "filter": {"l": {"$near": {"$geometry": point([13, 52])}}}, "limit": 3}, verbosity="executionStats")
    assert plan["executionStats"]["totalDocsExamined"] < 700
    assert plan["queryPlanner"]["winningPlan"]["inputStage"]["stage"] == "GEO_NEAR_2DSPHERE"


def test_pairs_in_the_plane_have_flat_distances(db):
    chance = random.Random(4)
    pairs = [[chance.uniform(-180, 180), chance.uniform(-180, 180)] for _ in range(800)]
    db.c.insert_many([{"_id": at, "l": [pair, pairs[at - 1]] if at % 7 == 3 else pair, "a": at % 3} for at, pair in enumerate(pairs)])
    db.c.create_index([("l", "2d"), ("a", 1)])
    for centre in ([0, 0], [170, -170], [-33.3, 12]):
        distance = lambda at: min(math.dist(centre, pair) for pair in ([pairs[at], pairs[at - 1]] if at % 7 == 3 else [pairs[at]]))
        order = sorted(range(800), key=lambda at: (distance(at), at))
        found = ids(db.c.find({"l": {"$near": centre}}))
        assert [distance(at) for at in found] == [distance(at) for at in order] and sorted(found) == list(range(800))
        assert set(ids(db.c.find({"l": {"$near": centre, "$maxDistance": 40}, "a": 1}))) == {at for at in order if distance(at) <= 40 and at % 3 == 1}
        rows = list(db.c.aggregate([{"$geoNear": {"near": centre, "distanceField": "d"}}, {"$limit": 20}]))
        assert [row["d"] for row in rows] == pytest.approx([distance(row["_id"]) for row in rows])


@pytest.mark.parametrize("query,code", [
    ({"l": {"$near": [0, 0]}}, 291), ({"m": {"$near": {"$geometry": point([0, 0])}}}, 291), ({"$or": [{"l": {"$near": [0, 0]}}, {"a": 1}]}, 2),
    ({"l": {"$not": {"$near": [0, 0]}}}, 2), ({"$nor": [{"l": {"$near": [0, 0]}}]}, 2), ({"l": {"$elemMatch": {"$near": [0, 0]}}}, 2), ({"l": {"$near": 5}}, 2),
    ({"$and": [{"l": {"$near": {"$geometry": point([0, 0])}}}, {"m": {"$near": {"$geometry": point([0, 0])}}}]}, 2), ({"l": {"$near": [0, 0], "$exists": True}}, 34413),
    ({"l": {"$nearSphere": [0, 0], "$maxDistance": -1}}, 16896), ({"l": {"$nearSphere": [200, 0]}}, 2),
], ids=repr)
def test_wrong_searches_are_refused(sphere, query, code):
    with pytest.raises(OperationFailure) as refused:
        list(sphere.c.find(query))
    assert refused.value.code == code


@pytest.mark.parametrize("query,told", [
    ({"l": {"$nearSphere": [-30, 44]}}, "field=l maxdist=1.79769e+308 isNearSphere=1"),
    ({"b": 1, "l.m": {"$near": [0, 0], "$maxDistance": 123456789.5}}, "field=l.m maxdist=1.23457e+08 isNearSphere=0"),
], ids=repr)
def test_a_search_without_an_index_names_the_field_as_parse_server_looks_for_it(db, query, told):
    db.c.insert_one({"l": [1, 2]})
    with pytest.raises(OperationFailure) as refused:
        list(db.c.find(query))
    assert refused.value.code == 291 and f" {told}\n " in refused.value.details["errmsg"]


@pytest.mark.parametrize("pipeline,code", [
    ([{"$match": {"l": {"$near": [0, 0]}}}], 5626500), ([{"$match": {"a": 1}}, {"$geoNear": {"near": point([0, 0]), "distanceField": "d"}}], 40603),
    ([{"$geoNear": {"near": point([0, 0])}}], 16606), ([{"$geoNear": {"distanceField": "d"}}], 5860400), ([{"$geoNear": {"near": 5, "distanceField": "d"}}], 5860401),
    ([{"$geoNear": {"near": [0, 0], "distanceField": "d"}}], 291), ([{"$geoNear": {"near": point([0, 0]), "distanceField": "d", "limit": 1}}], 50858),
], ids=repr)
def test_wrong_stages_are_refused(sphere, pipeline, code):
    with pytest.raises(OperationFailure) as refused:
        list(sphere.c.aggregate(pipeline))
    assert refused.value.code == code


def test_updates_and_deletes_take_the_nearest(sphere):
    near = {"l": {"$near": {"$geometry": point([13, 52])}}}
    first = ids(sphere.c.find(near).limit(2))
    sphere.c.update_one(near, {"$set": {"u": 1}})
    assert sphere.c.find_one({"u": 1})["_id"] == first[0]
    assert sphere.c.find_one_and_delete(near)["_id"] == first[0] and sphere.c.find_one(near)["_id"] == first[1]
    moved = sphere.c.update_many({"l": {"$near": {"$geometry": point([13, 52]), "$maxDistance": 20000}}}, {"$set": {"l": [13.001, 52.001]}})
    assert moved.matched_count == moved.modified_count > 0


def test_a_far_centre_and_coarse_levels_cost_no_covering_of_the_earth(db):
    chance = random.Random(3)
    db.p.insert_many({"_id": n, "at": point([2.3 + chance.random() / 10, 48.8 + chance.random() / 10])} for n in range(500))
    db.p.create_index([("at", "2dsphere")], coarsestIndexedLevel=12, finestIndexedLevel=20)
    for centre in ([151.2, -33.9], [2.35, 48.85], [-177, 0]):
        found = list(db.p.find({"at": {"$near": {"$geometry": point(centre)}}}, max_time_ms=20_000).limit(3))
        nearest = sorted(db.p.find(), key=lambda place: angle(centre, place["at"]["coordinates"]))[:3]
        assert [place["_id"] for place in found] == [place["_id"] for place in nearest]
