"""Geometry: filters without and with indexes, distances, and what is refused."""

import gzip
import json
import math
import os
import random

import pytest

from both import Order
from shapes import REGIONS, SHAPES, geo, region, shape

REAL = os.path.join(os.environ.get("SHARED", "/nonexistent"), "data")


def found(both, query, **more):
    rows = both.rows({"find": "c", "filter": query, "projection": {"_id": 1}, "sort": {"_id": 1}, **more})
    return rows and [row["_id"] for row in rows]


# ---- filters without indexes


@pytest.fixture(scope="module")
def shapes(servers):
    both = servers.on("shapes")
    both.fill("c", [{"_id": at, "l": value} for at, value in enumerate(SHAPES)])
    yield both
    for client in (both.oracle, both.pando):
        client.drop_database(both.name)


@pytest.mark.parametrize("argument", REGIONS + [{"$geometry": value} for value in SHAPES], ids=lambda value: repr(value)[:60])
@pytest.mark.parametrize("operator", ["$geoWithin", "$geoIntersects"])
def test_every_argument_finds_the_same_shapes_or_is_refused_alike(shapes, operator, argument):
    found(shapes, {"l": {operator: argument}})


@pytest.mark.parametrize("condition", [
    {"$within": {"$box": [[-5, -5], [5, 5]]}}, {"$not": {"$geoWithin": {"$box": [[-5, -5], [5, 5]]}}}, {"$elemMatch": {"$geoWithin": {"$box": [[-5, -5], [5, 5]]}}},
    {"$geoWithin": {"$box": [[0, 0], [5, 5]]}, "$exists": True}, {"$geoWithin": {"$box": [[0, 0], [5, 5]]}, "$maxDistance": 5}, {"$maxDistance": 5}, {"$minDistance": 5},
    {"$geoWithin": {"$box": [[0, 0], [5, 5]]}, "$geoIntersects": {"$geometry": geo("Point", [1, 2])}}, {"$uniqueDocs": 1},
], ids=repr)
def test_geometry_combines_with_other_operators(shapes, condition):
    found(shapes, {"l": condition})


@pytest.mark.parametrize("seed,spread,centre", [
    (1, 10, (20, 30)), (2, 40, (0, 0)), (3, 5, (179, 10)), (4, 15, (-178, -60)), (5, 8, (100, 85)), (6, 20, (0, -80)), (7, 0.01, (13.4, 52.5)), (8, 60, (-90, 0)),
])
def test_random_shapes_lie_in_random_regions(both, seed, spread, centre):
    chance = random.Random(seed)
    both.fill("c", [{"_id": at, "l": shape(chance, spread, centre)} for at in range(300)])
    seen = 0
    for _ in range(40):
        wanted = region(chance, spread, centre)
        seen += len(found(both, {"l": {"$geoWithin": wanted}}) or [])
        other = shape(chance, spread, centre)
        seen += len(found(both, {"l": {"$geoIntersects": {"$geometry": other}}}) or [])
        if "$geometry" in wanted:
            seen += len(found(both, {"l": {"$geoIntersects": wanted}}) or [])
    assert seen > 500


# ---- indexes

SPHERE, PLANE = {"l": "2dsphere"}, {"l": "2d"}


@pytest.mark.parametrize("key,options", [
    *[(SPHERE, {"2dsphereIndexVersion": version}) for version in (1, 2, 3, 3.0, 4, 0, 2.5, "x", None)],
    *[(SPHERE, {name: level}) for name in ("finestIndexedLevel", "coarsestIndexedLevel") for level in (0, 10, 10.0, 10.7, 24, 30, 31, -1, "a", True)],
    (SPHERE, {"finestIndexedLevel": 12, "coarsestIndexedLevel": 3, "sparse": True, "expireAfterSeconds": 7, "2dsphereIndexVersion": 2}), (SPHERE, {"unique": True, "hidden": True}),
    (SPHERE, {"bits": 5, "min": 1}), (SPHERE, {"partialFilterExpression": {"a": 1}}), (SPHERE, {"partialFilterExpression": {"l": {"$geoWithin": {"$box": [[0, 0], [1, 1]]}}}}),
    (SPHERE, {"partialFilterExpression": {"l": {"$near": [0, 0]}}}),
    *[(PLANE, {"bits": bits}) for bits in (1, 10, 10.7, 26, 32, 33, 0, -1, "a", None)],
    *[(PLANE, options) for options in ({"min": 0, "max": 10}, {"min": 10, "max": 0}, {"min": 5, "max": 5}, {"min": "a"}, {"min": float("nan")}, {"max": float("inf")}, {"min": -1e300, "max": 1e300},
                                       {"max": 50, "min": -50.5, "bits": 12}, {"bucketSize": 1}, {"unique": True}, {"sparse": True}, {"expireAfterSeconds": 5}, {"2dsphereIndexVersion": 3})],
    *[(key, {}) for key in ({"l": "2dsphere", "a": 1}, {"a": 1, "l": "2dsphere"}, {"a": 1, "l": "2dsphere", "b": -1}, {"l": "2dsphere", "m": "2dsphere"}, {"l": "2dsphere", "m": "2d"},
                            {"l": "2dsphere", "m": "hashed"}, {"l": "2d", "m": "2dsphere"}, {"l": "2d", "m": "hashed"}, {"l": "2d", "a": 1, "b": -1}, {"a": 1, "l": "2d"}, {"l": "2d", "m": "2d"},
                            {"a": 1, "l": "2d", "m": "2d"}, {"l": "geoHaystack", "a": 1}, {"_id": "2dsphere"}, {"_id": "2d"}, {"l": "2dsphere", "a": "foo"})],
    *[({"a": 1}, options) for options in ({"bits": 5, "min": 1, "2dsphereIndexVersion": 7}, {"finestIndexedLevel": 5}, {"bits": "x"}, {"finestIndexedLevel": "x"}, {"2dsphereIndexVersion": "x"})],
], ids=repr)
def test_specifications_are_kept_or_refused_alike(both, key, options):
    both.same({"createIndexes": "c", "indexes": [{"key": key, "name": "n", **options}]})
    both.same({"listIndexes": "c"})


def test_an_equal_index_exists(both):
    for key, options in ((SPHERE, {}), (PLANE, {"name": "p"})):
        for more in (options, {"name": "m"}, {"2dsphereIndexVersion": 2}, {"finestIndexedLevel": 5}, {"bits": 26}, {"bits": 5, "name": "q"}):
            both.same({"createIndexes": "c", "indexes": [{"key": key, "name": "n", **options, **more}]})
    both.same({"listIndexes": "c"})


@pytest.mark.parametrize("key", [SPHERE, PLANE, {"l": "2dsphere", "a": 1}, {"l": "2d", "a": 1}, {"a": 1, "l": "2dsphere"}, {"l.k": "2dsphere"}, {"l.k": "2d"}], ids=repr)
def test_documents_are_indexed_or_refused_alike(both, key):
    both.same({"createIndexes": "c", "indexes": [{"key": key, "name": "n"}]})
    wraps = [lambda value: value, lambda value: {"k": value}, lambda value: [{"k": value}, {"k": [1, 2]}], lambda value: [value, value], lambda value: [{"k": value}, {}]]
    for place, wrap in enumerate(wraps):
        documents = [{"_id": at * 10 + place, "l": wrap(value), "a": [at, 1]} for at, value in enumerate(SHAPES)]
        both.same({"insert": "c", "documents": documents, "ordered": False})
    found(both, {})
    both.rows({"find": "c", "filter": {}, "hint": "n", "projection": {"_id": 1}}, order=Order.FREE)


def test_plans_have_the_same_stages(both):
    both.fill("c", [{"_id": at, "l": [at / 10, at / 20], "m": [at / 10, at / 20], "a": at % 5} for at in range(500)])
    square = {"$geometry": geo("Polygon", [[[0, 0], [0, 5], [5, 5], [5, 0], [0, 0]]])}
    both.same({"createIndexes": "c", "indexes": [{"key": SPHERE, "name": "l"}, {"key": {"a": 1, "l": "2dsphere"}, "name": "al"}, {"key": {"m": "2d"}, "name": "m"}]})
    for query in (
        {"l": {"$geoWithin": square}}, {"l": {"$geoIntersects": square}}, {"l": {"$geoWithin": {"$centerSphere": [[0, 0], 0.1]}}}, {"l": {"$geoWithin": {"$box": [[0, 0], [5, 5]]}}},
        {"a": 1}, {"l": [1, 2]}, {"l": {"$exists": False}}, {"m": {"$geoWithin": {"$box": [[0, 0], [5, 5]]}}}, {"m": {"$geoWithin": {"$center": [[0, 0], 5]}}},
        {"m": {"$geoWithin": {"$centerSphere": [[0, 0], 0.1]}}}, {"m": {"$geoWithin": {"$polygon": [[0, 0], [0, 5], [5, 5]]}}}, {"m": {"$geoWithin": square}}, {"m": {"$geoIntersects": square}},
        {"m": [1, 2]}, {"a": 1, "l": {"$geoWithin": square}},
    ):
        both.plan({"find": "c", "filter": query})
        found(both, query)


# ---- real data


@pytest.fixture(scope="module")
def real(servers):
    both = servers.on("real_geometry")
    lines = lambda name: [json.loads(line) for line in gzip.open(os.path.join(REAL, name), "rt")]
    cities = lines("cities.jsonl.gz")[::25]
    both.fill("cities", [{"_id": city["_id"], "l": city["location"], "country": city["country"]} for city in cities])
    borders = [border for border in lines("borders.jsonl.gz") if len(json.dumps(border)) < 40_000]
    both.fill("borders", [{"_id": border["_id"], "l": border["geometry"]} for border in borders])
    for name in ("cities", "borders"):
        both.same({"createIndexes": name, "indexes": [{"key": SPHERE, "name": "l"}]})
    yield both
    for client in (both.oracle, both.pando):
        client.drop_database(both.name)


def test_cities_lie_in_the_same_countries(real):
    borders = real.rows({"find": "borders", "filter": {}, "sort": {"_id": 1}})
    seen = 0
    for border in borders[::5]:
        rows = real.rows({"find": "cities", "filter": {"l": {"$geoWithin": {"$geometry": border["l"]}}}, "projection": {"_id": 1}}, order=Order.FREE)
        seen += len(rows or [])
    assert seen > 100


def test_points_lie_in_the_same_countries_and_circles_meet_the_same(real):
    chance = random.Random(9)
    for city in chance.sample(real.rows({"find": "cities", "filter": {}, "sort": {"_id": 1}}), 40):
        point = {"$geometry": city["l"]}
        real.rows({"find": "borders", "filter": {"l": {"$geoIntersects": point}}, "projection": {"_id": 1}}, order=Order.FREE)
        circle = {"$centerSphere": [city["l"]["coordinates"], chance.uniform(0.001, 0.3)]}
        real.rows({"find": "borders", "filter": {"l": {"$geoWithin": circle}}, "projection": {"_id": 1}}, order=Order.FREE)
