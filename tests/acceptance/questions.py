"""The questions about the real data: finds with the indexes that can serve them, counts, distincts and aggregates.

`cities` has per document: _id (int), name, country, admin1, admin2, location{type, coordinates[2 doubles]}, and two fields that
the test adds: `key` (unique) and, in each seventh only, `rank`. `countries` is nested: name.common, languages{…}, borders[],
latlng[], currencies{code: {name, symbol}}, translations{…}, demonyms{…}.
"""

import re
from dataclasses import dataclass, field

CITY_INDEXES = [
    {"key": {"country": 1}, "name": "country"},
    {"key": {"name": 1}, "name": "name"},
    {"key": {"country": 1, "name": 1}, "name": "country_name"},
    {"key": {"admin1": -1}, "name": "admin1_down"},
    {"key": {"location.coordinates": 1}, "name": "coordinates"},
    {"key": {"country": -1, "admin1": 1, "_id": -1}, "name": "country_admin1_id"},
    {"key": {"key": 1}, "name": "key", "unique": True},
    {"key": {"rank": 1}, "name": "rank", "sparse": True},
]
COUNTRY_INDEXES = [
    {"key": {"name.common": 1}, "name": "common"},
    {"key": {"region": 1, "subregion": -1}, "name": "region_subregion"},
    {"key": {"borders": 1}, "name": "borders"},
    {"key": {"area": -1}, "name": "area_down"},
    {"key": {"languages.spa": 1}, "name": "spanish", "sparse": True},
    {"key": {"tld": 1, "region": 1}, "name": "tld_region"},
    {"key": {"latlng": 1}, "name": "latlng"},
    {"key": {"cca2": 1}, "name": "cca2", "unique": True},
    {"key": {"independent": 1, "unMember": 1, "landlocked": 1}, "name": "flags"},
]


@dataclass
class Question:
    """A request, and the names of the indexes with which it is asked again as a hint."""

    request: dict
    hints: list = field(default_factory=list)

    @property
    def is_ordered(self):
        return "sort" in self.request

    def __str__(self):
        return re.sub(r"\s+", " ", repr(self.request))[:100]


def find(collection, filter=None, *hints, **options):
    return Question({"find": collection, "filter": filter or {}, **options}, list(hints))


def count(collection, query=None, *hints, **options):
    return Question({"count": collection, "query": query or {}, **options}, list(hints))


def distinct(collection, key, query=None):
    return Question({"distinct": collection, "key": key, "query": query or {}})


def aggregate(collection, *stages):
    return Question({"aggregate": collection, "pipeline": list(stages), "cursor": {"batchSize": 1_000_000}})


CITIES = [
    # Equality, and what becomes of it with other indexes.
    find("cities", {"_id": 77}, "_id_"),
    find("cities", {"_id": {"$in": [5, 3, 99999999, 171075]}}, "_id_"),
    find("cities", {"_id": {"$gt": 1000, "$lte": 1010}}, "_id_", sort={"_id": -1}),
    find("cities", {"key": "AD-000007"}, "key"),
    find("cities", {"country": "CH"}, "country", "country_name", sort={"_id": 1}),
    find("cities", {"country": "LI"}, "country", "country_name", "country_admin1_id"),
    find("cities", {"country": "LI"}, "country", projection={"name": 1, "_id": 0}),
    find("cities", {"country": "MC", "name": {"$gte": "L"}}, "country_name", "country", "name"),
    find("cities", {"name": "Springfield"}, "name", sort={"_id": 1}),
    find("cities", {"name": "Springfield", "country": "US"}, "name", "country_name", sort={"_id": 1}),
    find("cities", {"name": {"$in": ["Paris", "London", "Bern", "Nowhere at all"]}}, "name", sort={"name": 1, "_id": 1}),
    find("cities", {"name": {"$eq": "Sant Julià de Lòria"}}, "name"),
    find("cities", {"country": "XX"}, "country", "country_name"),
    find("cities", {"country": None}, "country"),
    find("cities", {"rank": None}, sort={"_id": 1}, limit=5),
    find("cities", {"rank": {"$exists": False}}, sort={"_id": 1}, limit=5),
    find("cities", {"rank": 700}, "rank"),
    find("cities", {"rank": {"$gte": 10, "$lt": 50}}, "rank", sort={"rank": 1}),
    find("cities", {"rank": {"$gte": 10, "$lt": 50}}, "rank", sort={"rank": -1}, limit=3),
    # Ranges.
    find("cities", {"name": {"$gte": "Zwei", "$lt": "Zwi"}}, "name", sort={"name": 1, "_id": 1}),
    find("cities", {"name": {"$gt": "Ω"}}, "name", sort={"name": 1, "_id": 1}, limit=40),
    find("cities", {"name": {"$lt": "A"}}, "name", sort={"name": 1, "_id": 1}),
    find("cities", {"name": {"$lt": 5}}, "name"),
    find("cities", {"name": {"$gte": "Zug", "$lte": "Zug"}}, "name", sort={"_id": 1}),
    find("cities", {"country": {"$gte": "VA", "$lte": "VE"}, "name": {"$lt": "C"}}, "country_name", sort={"_id": 1}),
    find("cities", {"country": {"$in": ["AD", "SM", "VA"]}}, "country", "country_name", sort={"name": 1, "_id": 1}),
    find("cities", {"country": {"$in": ["AD", "SM"]}}, "country_name", sort={"country": -1, "name": -1, "_id": 1}),
    find("cities", {"country": {"$nin": ["US", "IN", "CN", "FR", "DE", "IT", "MX", "BR"]}, "name": {"$lt": "Ab"}},
         "country_name", "name", sort={"_id": 1}),
    find("cities", {"country": {"$ne": "US"}, "name": "Springfield"}, "name", "country_name", sort={"_id": 1}),
    find("cities", {"country": {"$not": {"$lt": "ZM"}}}, "country", sort={"_id": 1}, limit=60),
    find("cities", {"admin1": "03", "country": "AD"}, "admin1_down", "country_admin1_id"),
    find("cities", {"admin1": {"$gt": "Z"}}, "admin1_down", sort={"admin1": -1, "_id": 1}),
    find("cities", {"admin1": ""}, "admin1_down", sort={"_id": 1}, limit=100),
    find("cities", {"country": "AD", "admin1": {"$gte": "05"}}, "country_admin1_id"),
    find("cities", {"country": "CH", "admin1": {"$in": ["ZH", "ZG"]}}, "country_admin1_id",
         sort={"country": 1, "admin1": -1, "_id": 1}),
    find("cities", {"country": {"$gte": "LI", "$lt": "LK"}}, "country_admin1_id",
         sort={"country": -1, "admin1": 1, "_id": -1}),
    # Arrays of numbers.
    find("cities", {"location.coordinates": {"$gt": 179.5}}, "coordinates", sort={"_id": 1}),
    find("cities", {"location.coordinates": {"$lt": -178}}, "coordinates", sort={"_id": 1}),
    find("cities", {"location.coordinates": {"$gte": 47.3, "$lte": 47.31}}, "coordinates", sort={"_id": 1}, limit=50),
    find("cities", {"location.coordinates": {"$elemMatch": {"$gte": 179.3, "$lt": 179.4}}}, "coordinates", sort={"_id": 1}),
    find("cities", {"location.coordinates": [1.56654, 42.53176]}, "coordinates"),
    find("cities", {"location.coordinates.0": {"$gt": 179.4}}, sort={"_id": 1}),
    find("cities", {"location.coordinates": {"$size": 2}, "country": "VA"}, "country"),
    find("cities", {"location.coordinates": {"$all": [1.56654, 42.53176]}}, "coordinates"),
    find("cities", {"location": {"type": "Point", "coordinates": [1.56654, 42.53176]}}),
    find("cities", {"location.type": {"$ne": "Point"}}),
    find("cities", {"location.coordinates": {"$mod": [45, 0]}}, "coordinates", sort={"_id": 1}, limit=30),
    # Regular expressions.
    find("cities", {"name": {"$regex": "^Zwe"}}, "name", sort={"_id": 1}),
    find("cities", {"name": {"$regex": "^zwe", "$options": "i"}}, "name", sort={"_id": 1}),
    find("cities", {"name": {"$regex": "burg$"}, "country": "CH"}, "country", "country_name", sort={"_id": 1}),
    find("cities", {"name": re.compile("^Sankt .*[ü]")}, "name", sort={"_id": 1}),
    find("cities", {"name": {"$not": re.compile("[aeiou]", re.I)}}, sort={"_id": 1}),
    find("cities", {"name": {"$in": [re.compile("^Zzy"), re.compile("^Ål"), "Bern"]}}, "name", sort={"_id": 1}),
    find("cities", {"name": {"$regex": "^(New|Old) Y"}}, "name", sort={"_id": 1}),
    find("cities", {"name": {"$regex": r"^\d"}}, "name", sort={"_id": 1}),
    find("cities", {"name": {"$regex": "^St\\. (?!G)"}, "country": {"$in": ["AT", "CH"]}}, "name", sort={"_id": 1}),
    # Logic.
    find("cities", {"$or": [{"country": "VA"}, {"name": "Monaco"}, {"_id": 3}]}, sort={"_id": 1}),
    find("cities", {"$or": [{"country": "MC", "name": {"$gt": "L"}}, {"key": "AD-000002"}]}, sort={"name": 1, "_id": 1}),
    find("cities", {"$and": [{"name": {"$gte": "Bern"}}, {"name": {"$lte": "Berna"}}]}, "name", sort={"_id": 1}),
    find("cities", {"$nor": [{"country": {"$lt": "ZM"}}, {"name": {"$gt": "B"}}]}, "country", "name", sort={"_id": 1}),
    find("cities", {"$expr": {"$eq": ["$name", "$country"]}}, sort={"_id": 1}),
    find("cities", {"country": "SM", "$expr": {"$gt": ["$name", "F"]}}, "country", sort={"_id": 1}),
    find("cities", {"$or": [{"rank": {"$lt": 20}}, {"rank": {"$exists": False}, "country": "VA"}]}, sort={"_id": 1}),
    # Sorts, skips and limits.
    find("cities", {}, "name", sort={"name": 1, "_id": 1}, limit=20),
    find("cities", {}, sort={"name": -1, "_id": 1}, limit=20, skip=10),
    find("cities", {}, "country_name", sort={"country": 1, "name": 1, "_id": 1}, limit=30),
    find("cities", {}, sort={"country": -1, "name": -1, "_id": 1}, limit=30),
    find("cities", {}, sort={"country": 1, "name": -1, "_id": 1}, limit=30),
    find("cities", {}, "coordinates", sort={"location.coordinates": 1, "_id": 1}, limit=15),
    find("cities", {}, sort={"location.coordinates": -1, "_id": 1}, limit=15),
    find("cities", {}, sort={"rank": 1, "_id": 1}, limit=15),
    find("cities", {"rank": {"$exists": True}}, "rank", sort={"rank": -1}, limit=15),
    find("cities", {}, sort={"_id": -1}, limit=10),
    find("cities", {}, sort={"_id": 1}, skip=171070),
    find("cities", {"country": "FR"}, "country_name", sort={"name": 1, "_id": 1}, limit=50, skip=5000),
    find("cities", {}, sort={"admin2": -1, "name": 1, "_id": 1}, limit=20),
    find("cities", {}, limit=7, skip=3, hint="_id_"),
    # Projections, covered ones too.
    find("cities", {"country": "LI"}, "country_name", projection={"_id": 0, "country": 1, "name": 1}),
    find("cities", {"country": "LI"}, "country", projection={"location": 0, "admin2": 0}),
    find("cities", {"country": "LI"}, "country", projection={"location.type": 0}),
    find("cities", {"country": "LI"}, "country", projection={"location.coordinates": 1}),
    find("cities", {"country": "VA"}, "country", projection={"location.coordinates": {"$slice": 1}}),
    find("cities", {"country": "VA"}, "country", projection={"location.coordinates": {"$slice": [-1, 1]}, "name": 1}),
    find("cities", {"country": "VA"}, "country", projection={"location.coordinates": {"$elemMatch": {"$gt": 20}}}),
    find("cities", {"location.coordinates": {"$gt": 179.5}}, "coordinates", projection={"location.coordinates.$": 1},
         sort={"_id": 1}),
    find("cities", {"country": "VA"}, "country", projection={"where": "$location.coordinates", "k": {"$literal": 1}}),
    find("cities", {"rank": {"$lt": 40}}, "rank", projection={"_id": 0, "rank": 1}, sort={"rank": 1}),
    find("cities", {"key": {"$gte": "VA-", "$lt": "VB"}}, "key", projection={"_id": 0, "key": 1}, sort={"key": -1}),
    # Counts.
    count("cities"),
    count("cities", {"country": "US"}, "country", "country_name", "country_admin1_id"),
    count("cities", {"country": {"$gt": "US"}}, "country"),
    count("cities", {"name": re.compile("^San ")}, "name"),
    count("cities", {"location.coordinates": {"$gt": 60}}, "coordinates"),
    count("cities", {"location.coordinates": {"$gt": 60, "$lt": 10}}, "coordinates"),
    count("cities", {"rank": {"$exists": True}}, "rank"),
    count("cities", {"country": "CH"}, "country", skip=100, limit=50),
    count("cities", {"country": "CH"}, "country", skip=10_000),
    count("cities", {}, limit=12),
    count("cities", {"nothing": {"$exists": True}}),
    count("cities", {"$or": [{"country": "CH"}, {"name": "Bern"}]}),
    # Distinct values.
    distinct("cities", "country"),
    distinct("cities", "admin1", {"country": "CH"}),
    distinct("cities", "location.type"),
    distinct("cities", "location.coordinates", {"country": "VA"}),
    distinct("cities", "nothing"),
    distinct("cities", "name", {"country": {"$in": ["MC", "VA", "SM"]}}),
    distinct("cities", "rank", {"rank": {"$lt": 100}}),
    # Aggregates.
    aggregate("cities", {"$group": {"_id": "$country", "n": {"$sum": 1}}}, {"$sort": {"n": -1, "_id": 1}}),
    aggregate("cities", {"$match": {"country": "CH"}}, {"$group": {"_id": "$admin1", "first": {"$min": "$name"},
              "last": {"$max": "$name"}, "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}),
    aggregate("cities", {"$match": {"country": {"$in": ["LI", "MC"]}}}, {"$sort": {"name": 1, "_id": 1}},
              {"$group": {"_id": "$country", "names": {"$push": "$name"}, "a": {"$first": "$name"}, "z": {"$last": "$name"}}},
              {"$sort": {"_id": 1}}),
    aggregate("cities", {"$match": {"rank": {"$exists": True}}},
              {"$group": {"_id": None, "sum": {"$sum": "$rank"}, "avg": {"$avg": "$rank"}, "max": {"$max": "$rank"}}}),
    aggregate("cities", {"$unwind": "$location.coordinates"}, {"$match": {"location.coordinates": {"$gt": 179.6}}},
              {"$sort": {"_id": 1}}, {"$project": {"name": 1, "at": "$location.coordinates"}}),
    aggregate("cities", {"$match": {"country": "VA"}}, {"$unwind": {"path": "$location.coordinates", "includeArrayIndex": "i"}},
              {"$sort": {"_id": 1, "i": -1}}),
    aggregate("cities", {"$sort": {"country": 1, "name": -1, "_id": 1}}, {"$skip": 1000}, {"$limit": 10}),
    aggregate("cities", {"$match": {"name": re.compile("^B")}}, {"$count": "total"}),
    aggregate("cities", {"$match": {"country": "nowhere"}}, {"$count": "total"}),
    aggregate("cities", {"$group": {"_id": {"c": "$country", "a": "$admin1"}, "n": {"$sum": 1}}}, {"$match": {"n": {"$gt": 900}}},
              {"$sort": {"n": -1, "_id": 1}}),
    aggregate("cities", {"$match": {"country": "SM"}}, {"$project": {"_id": 0, "name": 1, "again": "$name",
              "lon": {"$literal": 5}, "location": {"type": 1}}}, {"$sort": {"name": 1}}),
    aggregate("cities", {"$limit": 5}, {"$project": {"location": 0}}),
    aggregate("cities", {"$match": {"$expr": {"$gt": ["$country", "$name"]}}}, {"$group": {"_id": "$country",
              "n": {"$sum": 1}}}, {"$sort": {"n": -1, "_id": 1}}, {"$limit": 10}),
    aggregate("cities", {"$group": {"_id": {}, "countries": {"$addToSet": "$location.type"}}}),
]

COUNTRIES = [
    find("countries", {"_id": "CHE"}, "_id_"),
    find("countries", {"name.common": "Switzerland"}, "common"),
    find("countries", {"name.common": {"$gte": "S", "$lt": "T"}}, "common", sort={"name.common": 1}),
    find("countries", {"name.native.deu.common": {"$exists": True}}, sort={"_id": 1}),
    find("countries", {"languages.spa": "Spanish"}, "spanish", sort={"_id": 1}),
    find("countries", {"languages.spa": {"$exists": True}}, "spanish", sort={"_id": 1}, projection={"languages": 1}),
    find("countries", {"languages.spa": None, "region": "Europe"}, "region_subregion", sort={"_id": 1}, projection={"_id": 1}),
    find("countries", {"borders": "CHE"}, "borders", sort={"_id": 1}),
    find("countries", {"borders": {"$all": ["CHE", "DEU"]}}, "borders", sort={"_id": 1}),
    find("countries", {"borders": {"$in": ["CHE", "CHN"]}}, "borders", sort={"_id": 1}),
    find("countries", {"borders": {"$nin": ["CHE", "CHN"]}, "region": "Europe"}, "region_subregion", sort={"_id": 1}),
    find("countries", {"borders": {"$size": 0}}, "borders", sort={"_id": 1}, projection={"borders": 1}),
    find("countries", {"borders": []}, "borders", sort={"_id": 1}, projection={"borders": 1}),
    find("countries", {"borders": {"$size": 5}}, sort={"area": -1}),
    find("countries", {"borders.0": "AUT"}, sort={"_id": 1}),
    find("countries", {"borders": {"$gt": "Y"}}, "borders", sort={"_id": 1}),
    find("countries", {"borders": {"$elemMatch": {"$gte": "CHE", "$lte": "CHN"}}}, "borders", sort={"_id": 1}),
    find("countries", {"region": "Europe", "subregion": "Western Europe"}, "region_subregion", sort={"_id": 1}),
    find("countries", {"region": "Europe"}, "region_subregion", sort={"subregion": 1, "_id": 1}),
    find("countries", {"region": {"$gt": "Asia"}}, sort={"region": 1, "subregion": -1, "_id": 1}, projection={"region": 1}),
    find("countries", {"area": {"$lt": 1}}, "area_down", sort={"_id": 1}),
    find("countries", {"area": {"$gt": 7_000_000.5}}, "area_down", sort={"area": 1}),
    find("countries", {"area": {"$type": "double"}}, "area_down", sort={"_id": 1}, projection={"area": 1}),
    find("countries", {"area": {"$type": "int"}, "region": "Polar"}, sort={"_id": 1}),
    find("countries", {"area": {"$mod": [10, 3]}}, "area_down", sort={"_id": 1}, projection={"area": 1}),
    find("countries", {"tld": ".ch"}, "tld_region"),
    find("countries", {"tld": {"$regex": r"^\.c"}, "region": "Europe"}, "tld_region", sort={"_id": 1}),
    find("countries", {"latlng": {"$lt": -170}}, "latlng", sort={"_id": 1}),
    find("countries", {"latlng": {"$gt": 10, "$lt": 11}}, "latlng", sort={"_id": 1}),
    find("countries", {"latlng": {"$elemMatch": {"$gt": 10, "$lt": 11}}}, "latlng", sort={"_id": 1}),
    find("countries", {}, sort={"latlng": 1, "_id": 1}, limit=20, projection={"latlng": 1}),
    find("countries", {}, sort={"borders": -1, "_id": 1}, projection={"borders": 1}),
    find("countries", {}, sort={"borders": 1, "_id": 1}, projection={"borders": 1}),
    find("countries", {}, sort={"languages": 1, "_id": 1}, projection={"languages": 1}),
    find("countries", {}, sort={"idd.suffixes": 1, "_id": 1}, projection={"idd": 1}),
    find("countries", {"independent": None}, "flags", sort={"_id": 1}),
    find("countries", {"independent": True, "unMember": False}, "flags", sort={"_id": 1}),
    find("countries", {"independent": False}, "flags", sort={"unMember": -1, "landlocked": 1, "_id": 1}),
    find("countries", {"landlocked": True, "region": "Asia"}, "region_subregion", sort={"_id": 1}),
    find("countries", {"cca2": {"$in": ["CH", "de", "DE"]}}, "cca2", sort={"cca2": -1}),
    find("countries", {"currencies.EUR.symbol": "€"}, sort={"_id": 1}, projection={"currencies.EUR": 1}),
    find("countries", {"currencies": {}}, sort={"_id": 1}),
    find("countries", {"capital": {"$size": 2}}, sort={"_id": 1}, projection={"capital": {"$slice": -1}}),
    find("countries", {"translations.deu.common": re.compile("land$")}, sort={"_id": 1},
         projection={"translations.deu.common": 1, "_id": 0}),
    find("countries", {"$expr": {"$eq": ["$cca3", "$cioc"]}}, sort={"_id": 1}, projection={"cca3": 1, "cioc": 1}),
    find("countries", {"name": {"$type": "array"}}),
    find("countries", {"demonyms.eng": {"f": "Swiss", "m": "Swiss"}}, sort={"_id": 1}),
    find("countries", {"demonyms.eng": {"m": "Swiss", "f": "Swiss"}}, sort={"_id": 1}),
    count("countries", {"borders": {"$gt": "A"}}, "borders"),
    count("countries", {"region": "Africa"}, "region_subregion"),
    count("countries", {"languages.spa": {"$exists": True}}, "spanish"),
    distinct("countries", "region"),
    distinct("countries", "borders", {"region": "Europe"}),
    distinct("countries", "name.native.fra.common"),
    distinct("countries", "latlng", {"region": "Polar"}),
    distinct("countries", "independent"),
    distinct("countries", "area", {"area": {"$lt": 10}}),
    aggregate("countries", {"$group": {"_id": "$region", "area": {"$sum": "$area"}, "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}),
    aggregate("countries", {"$unwind": "$borders"}, {"$group": {"_id": "$borders", "n": {"$sum": 1}}},
              {"$sort": {"n": -1, "_id": 1}}, {"$limit": 10}),
    aggregate("countries", {"$unwind": {"path": "$borders", "preserveNullAndEmptyArrays": True}},
              {"$project": {"borders": 1}}, {"$sort": {"borders": 1, "_id": 1}}),
    aggregate("countries", {"$sort": {"_id": 1}}, {"$group": {"_id": "$subregion", "first": {"$first": "$name.common"},
              "last": {"$last": "$name.common"}, "smallest": {"$min": "$area"}, "largest": {"$max": "$area"}}},
              {"$sort": {"_id": -1}}),
    aggregate("countries", {"$sort": {"_id": 1}}, {"$group": {"_id": "$landlocked", "avg": {"$avg": {"$size": "$borders"}}}},
              {"$sort": {"_id": 1}}),
    aggregate("countries", {"$match": {"borders": "CHE"}}, {"$sort": {"_id": 1}}, {"$project": {"first": "$name.common",
              "borders.0": 1}}),
    aggregate("countries", {"$unwind": "$capital"}, {"$unwind": "$tld"}, {"$group": {"_id": "$region",
              "pairs": {"$sum": 1}}}, {"$sort": {"pairs": -1, "_id": 1}}),
    aggregate("countries", {"$project": {"_id": 0, "n": "$name.common", "native": "$name.native"}}, {"$sort": {"n": 1}},
              {"$limit": 30}),
]
