"""Twenty reports over real data, with joins and windows: both servers give the same, with and without an index for the joins.

`cities` are 20,000 of the cities of the data set, `countries` and `borders` are whole.
"""

import gzip
import json

import pytest

from both import Order
from oracle import SHARED


def documents_of(name):
    with gzip.open(SHARED / f"data/{name}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def country_of_city(name="country_of"):
    return [{"$lookup": {"from": "countries", "localField": "country", "foreignField": "cca2", "as": name}}, {"$unwind": f"${name}"}]


BY_COUNTRY = {"$group": {"_id": "$country", "n": {"$sum": 1}}}
LATITUDE = {"$arrayElemAt": ["$location.coordinates", 1]}
REPORTS = {
    "the countries with the most cities": ("cities", [BY_COUNTRY, {"$sort": {"n": -1, "_id": 1}}, {"$limit": 20}]),
    "cities of each region": ("cities", [*country_of_city(), {"$group": {"_id": "$country_of.region", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}]),
    "cities of each subregion, by languages": ("cities", [
        *country_of_city(), {"$match": {"country_of.region": "Europe"}}, {"$set": {"languages": {"$objectToArray": "$country_of.languages"}}},
        {"$unwind": "$languages"}, {"$group": {"_id": {"s": "$country_of.subregion", "l": "$languages.v"}, "n": {"$sum": 1}}}, {"$sort": {"n": -1, "_id": 1}}, {"$limit": 40}]),
    "names that many countries have": ("cities", [
        {"$group": {"_id": "$name", "countries": {"$addToSet": "$country"}, "n": {"$sum": 1}}}, {"$match": {"n": {"$gt": 4}}},
        {"$project": {"n": 1, "countries": {"$size": "$countries"}}}, {"$sort": {"countries": -1, "n": -1, "_id": 1}}, {"$limit": 30}]),
    "the northernmost cities of each country": ("cities", [
        {"$set": {"latitude": LATITUDE}}, {"$setWindowFields": {"partitionBy": "$country", "sortBy": {"latitude": -1}, "output": {"place": {"$documentNumber": {}}}}},
        {"$match": {"place": {"$lte": 2}}}, {"$project": {"name": 1, "country": 1, "place": 1, "latitude": 1}}, {"$sort": {"country": 1, "place": 1, "_id": 1}}]),
    "running counts by latitude": ("cities", [
        {"$set": {"band": {"$floor": LATITUDE}}}, {"$group": {"_id": "$band", "n": {"$sum": 1}}},
        {"$setWindowFields": {"sortBy": {"_id": 1}, "output": {
            "so_far": {"$sum": "$n", "window": {"documents": ["unbounded", "current"]}}, "around": {"$avg": "$n", "window": {"range": [-2, 2]}}}}}, {"$sort": {"_id": 1}}]),
    "neighbours of each country": ("countries", [
        {"$lookup": {"from": "countries", "localField": "borders", "foreignField": "cca3", "as": "neighbours"}},
        {"$project": {"_id": 1, "n": {"$size": "$neighbours"}, "area": {"$sum": "$neighbours.area"}}}, {"$sort": {"_id": 1}}]),
    "larger neighbours": ("countries", [
        {"$lookup": {"from": "countries", "localField": "borders", "foreignField": "cca3", "let": {"mine": "$area"}, "as": "larger",
                     "pipeline": [{"$match": {"$expr": {"$gt": ["$area", "$$mine"]}}}, {"$sort": {"cca3": 1}}, {"$project": {"cca3": 1}}]}},
        {"$project": {"larger": "$larger.cca3"}}, {"$sort": {"_id": 1}}]),
    "countries without cities": ("countries", [
        {"$lookup": {"from": "cities", "localField": "cca2", "foreignField": "country", "as": "c"}}, {"$match": {"c": []}}, {"$project": {"cca2": 1}}, {"$sort": {"_id": 1}}]),
    "cities a unit of area": ("countries", [
        {"$lookup": {"from": "cities", "localField": "cca2", "foreignField": "country", "as": "c", "pipeline": [{"$count": "n"}]}},
        {"$set": {"n": {"$ifNull": [{"$first": "$c.n"}, 0]}}}, {"$match": {"area": {"$gt": 0}}}, {"$project": {"n": 1, "density": {"$divide": ["$n", "$area"]}}},
        {"$sort": {"density": -1, "_id": 1}}, {"$limit": 25}]),
    "shapes of the borders": ("borders", [
        {"$project": {"type": "$geometry.type", "parts": {"$size": "$geometry.coordinates"}}}, {"$group": {"_id": "$type", "n": {"$sum": 1}, "parts": {"$sum": "$parts"}, "most": {"$max": "$parts"}}},
        {"$sort": {"_id": 1}}]),
    "borders without a country, and the other way round": ("borders", [
        {"$lookup": {"from": "countries", "localField": "_id", "foreignField": "cca3", "as": "c"}}, {"$match": {"c": {"$size": 0}}}, {"$project": {"kind": "borders"}},
        {"$unionWith": {"coll": "countries", "pipeline": [{"$lookup": {"from": "borders", "localField": "cca3", "foreignField": "_id", "as": "b"}}, {"$match": {"b": []}},
                                                          {"$project": {"_id": "$cca3", "kind": "countries"}}]}}, {"$sort": {"kind": 1, "_id": 1}}]),
    "buckets of areas": ("countries", [{"$bucketAuto": {"groupBy": "$area", "buckets": 8, "output": {"n": {"$sum": 1}, "largest": {"$max": "$area"}}}}]),
    "rounded buckets of areas": ("countries", [{"$match": {"area": {"$gt": 0}}}, {"$bucketAuto": {"groupBy": "$area", "buckets": 5, "granularity": "R10"}}]),
    "facets of the countries": ("countries", [{"$facet": {
        "regions": [{"$sortByCount": "$region"}, {"$sort": {"count": -1, "_id": 1}}], "largest": [{"$sort": {"area": -1}}, {"$limit": 5}, {"$project": {"area": 1}}],
        "sizes": [{"$bucket": {"groupBy": "$area", "boundaries": [0, 1000, 100000, 1e9], "default": "other"}}]}}]),
    "the share of each country in its region": ("countries", [
        {"$setWindowFields": {"partitionBy": "$region", "sortBy": {"area": -1}, "output": {
            "whole": {"$sum": "$area", "window": {"documents": ["unbounded", "unbounded"]}}, "rank": {"$rank": {}}, "larger": {"$shift": {"output": "$cca3", "by": -1}}}}},
        {"$match": {"rank": {"$lte": 3}, "whole": {"$gt": 0}}}, {"$project": {"region": 1, "rank": 1, "larger": 1, "share": {"$round": [{"$divide": ["$area", "$whole"]}, 6]}}},
        {"$sort": {"region": 1, "rank": 1, "_id": 1}}]),
    "currencies that several countries use": ("countries", [
        {"$project": {"cca3": 1, "c": {"$objectToArray": {"$ifNull": ["$currencies", {}]}}}}, {"$match": {"c": {"$type": "object"}}}, {"$unwind": "$c"},
        {"$group": {"_id": "$c.k", "n": {"$sum": 1}}}, {"$match": {"n": {"$gt": 1}}}, {"$sort": {"n": -1, "_id": 1}}]),
    "countries within two borders of one": ("countries", [
        {"$match": {"cca3": {"$in": ["CHE", "AND", "LSO"]}}},
        {"$graphLookup": {"from": "countries", "startWith": "$borders", "connectFromField": "borders", "connectToField": "cca3", "maxDepth": 1, "depthField": "d", "as": "near"}},
        {"$unwind": "$near"}, {"$project": {"from": "$cca3", "to": "$near.cca3", "d": "$near.d"}}, {"$sort": {"from": 1, "d": 1, "to": 1}}]),
    "first letters of names": ("cities", [
        {"$group": {"_id": {"$toUpper": {"$substrCP": ["$name", 0, 1]}}, "n": {"$sum": 1}, "first": {"$min": "$name"}, "length": {"$avg": {"$strLenCP": "$name"}}}},
        {"$match": {"_id": {"$regex": "^[A-Z]$"}}}, {"$sort": {"_id": 1}}]),
    "cities of the same name in neighbouring countries": ("cities", [
        {"$match": {"country": {"$in": ["LI", "LU", "BE", "CH", "AT"]}}}, {"$lookup": {"from": "cities", "localField": "name", "foreignField": "name", "as": "same"}}, {"$unwind": "$same"},
        {"$match": {"$expr": {"$ne": ["$country", "$same.country"]}}}, {"$group": {"_id": "$name", "countries": {"$addToSet": "$same.country"}}},
        {"$project": {"countries": {"$sortArray": {"input": "$countries", "sortBy": 1}}}}, {"$sort": {"_id": 1}}]),
}


@pytest.fixture(scope="module")
def world(servers):
    both = servers.on("reports")
    both.fill("cities", documents_of("cities")[::9])
    both.fill("countries", documents_of("countries"))
    both.fill("borders", documents_of("borders"))
    yield both
    for client in (both.oracle, both.pando):
        client.drop_database("reports")


def ask(world, name):
    collection, pipeline = REPORTS[name]
    found = world.rows({"aggregate": collection, "pipeline": pipeline}, order=Order.DEFINED)
    assert found, name


@pytest.mark.parametrize("name", REPORTS)
def test_reports(world, name):
    ask(world, name)


def test_reports_with_indexes_for_their_joins(world):
    for collection, field in [("countries", "cca2"), ("countries", "cca3"), ("cities", "country"), ("cities", "name")]:
        world.same({"createIndexes": collection, "indexes": [{"key": {field: 1}, "name": field}]}, ignore=["numIndexesBefore", "numIndexesAfter"])
    for name in REPORTS:
        ask(world, name)
