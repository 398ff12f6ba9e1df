"""Collations on both servers: their options and faults, and the order, equality, groups and uniqueness of random strings.

MongoDB has the rules of ICU 57, Pando those of ICU4X. `ALPHABETS` holds characters that both know.
"""

import os
import random
import unicodedata

import pytest
from pymongo.collation import Collation
from pymongo.errors import BulkWriteError, OperationFailure

from both import Order, Texts

SEED = int(os.environ.get("PANDO_ACCEPTANCE_SEED", "1"))
NO_CASE = {"locale": "en", "strength": 2}
FAULTS = [
    {}, {"locale": 1}, {"locale": None}, {"locale": ""}, {"locale": "xx"}, {"locale": "en_GB"}, {"locale": "en-US"}, {"locale": "EN"}, {"locale": "root"}, {"locale": "en\0x"},
    {"locale": "de@collation=standard"}, {"locale": "zh@collation=pinyin"}, {"locale": "de@phonebook"}, {"locale": "no"}, {"locale": "tl"},
    {"locale": "en", "strength": 0}, {"locale": "en", "strength": 6}, {"locale": "en", "strength": -1}, {"locale": "en", "strength": "1"}, {"locale": "en", "strength": None},
    {"locale": "en", "strength": 2.5}, {"locale": "en", "caseLevel": 1}, {"locale": "en", "caseFirst": "no"}, {"locale": "en", "caseFirst": 1},
    {"locale": "en", "numericOrdering": 1}, {"locale": "en", "alternate": "x"}, {"locale": "en", "maxVariable": "x"}, {"locale": "en", "normalization": 1},
    {"locale": "en", "backwards": 1}, {"locale": "en", "foo": 1}, {"foo": 1}, {"strength": 2}, {"locale": "simple", "strength": 2}, {"locale": "simple", "foo": 2},
    {"locale": "en", "version": "57.1"}, {"locale": "en", "version": "58"}, {"locale": "en", "version": 3}, {"locale": "en", "caseFirst": "upper", "strength": 1},
    {"locale": "en", "caseFirst": "lower", "strength": 2}, {"locale": "en", "caseFirst": "upper", "strength": 1, "caseLevel": True},
    {"locale": "en", "backwards": True, "strength": 1}, {"locale": "fr_CA", "backwards": False}, {"locale": "sr_Latn"}, {"locale": "zh_Hant"}, {"locale": "en_US_POSIX"},
    {"locale": "es@collation=traditional"}, {"locale": "si@collation=dictionary"}, {"locale": "sv@collation=standard"}, {"locale": "de@collation=emoji"},
]
COMMANDS = [
    {"find": "c"}, {"count": "c"}, {"distinct": "c", "key": "a"}, {"aggregate": "c", "pipeline": [], "cursor": {}},
    {"findAndModify": "c", "remove": True, "query": {"none": 1}},
]


@pytest.mark.parametrize("collation", FAULTS, ids=repr)
def test_specifications_are_taken_and_refused_alike(both, collation):
    both.same({"insert": "c", "documents": [{"_id": 1, "a": "x"}, {"_id": 2, "a": "X"}]})
    for command in COMMANDS:
        both.same({**command, "collation": collation})
    both.same({"update": "c", "updates": [{"q": {"a": "X"}, "u": {"$set": {"b": 1}}, "multi": True, "collation": collation}]})
    both.same({"delete": "c", "deletes": [{"q": {"a": "none"}, "limit": 0, "collation": collation}]})
    both.same({"create": "made", "collation": collation})
    both.same({"create": "view", "viewOn": "c", "pipeline": [], "collation": collation})
    both.same({"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a", "collation": collation}]})
    for client in (both.oracle, both.pando):
        listed(client[both.name])
    assert listed(both.oracle[both.name]) == listed(both.pando[both.name])
    both.same({"find": "c", "sort": {"_id": 1}})


def listed(database):
    """The options of collections and indexes, without the version of the rules."""
    found = {}
    for collection in database.list_collections(filter={"name": {"$ne": "system.views"}}):
        options = collection.get("options", {})
        options.get("collation", {}).pop("version", None)
        found[collection["name"]] = list(options.items())
        if collection["type"] == "collection":
            for index in database[collection["name"]].list_indexes():
                index.get("collation", {}).pop("version", None)
                found[collection["name"], index["name"]] = dict(index)
    return found


@pytest.mark.parametrize("value", [5, None, "en", [], True], ids=repr)
def test_a_collation_is_a_document(both, value):
    both.same({"insert": "c", "documents": [{"_id": 1}]})
    for command in [*COMMANDS, {"create": "d"}]:
        both.same({**command, "collation": value}, texts=Texts.COMPARED)
    both.same({"update": "c", "updates": [{"q": {}, "u": {"$set": {"b": 1}}, "collation": value}]}, texts=Texts.COMPARED)
    both.same({"createIndexes": "c", "indexes": [{"key": {"a": 1}, "name": "a", "collation": value}]}, texts=Texts.COMPARED)


def test_indexes_of_one_key_differ_by_their_collation(both):
    both.same({"create": "c", "collation": NO_CASE})
    make = lambda name, **options: both.same({"createIndexes": "c", "indexes": [{"key": {"u": 1}, "name": name, **options}]})
    make("u", unique=True)
    make("simple", collation={"locale": "simple"})
    make("fr", collation={"locale": "fr"})
    make("fr", collation={"locale": "de"})
    make("fr2", collation={"locale": "fr"})
    make("fr", collation={"locale": "fr", "strength": 3})
    assert listed(both.oracle[both.name]) == listed(both.pando[both.name])
    both.same({"insert": "c", "documents": [{"_id": "a", "u": "x"}, {"_id": "b", "u": "y"}]})
    for document in ({"_id": "A"}, {"_id": "q", "u": "X"}):
        for client in (both.oracle, both.pando):
            reply = client[both.name].command({"insert": "c", "documents": [document]}, check=False)
            error = reply["writeErrors"][0]
            assert error["code"] == 11000 and error["hexEncoded"] == [True] and error["collation"]["strength"] == 2
            assert set(error) == {"index", "code", "errmsg", "keyPattern", "keyValue", "hexEncoded", "collation"}
    for find in ({"filter": {"u": "X"}}, {"filter": {"u": {"$gt": "X"}}}, {"filter": {"_id": "A"}}, {"sort": {"u": 1}}, {"filter": {"u": 1}, "collation": {"locale": "it"}},
                 {"filter": {"u": "x"}, "collation": {"locale": "it"}}, {"filter": {"u": "x"}, "collation": {"locale": "simple"}}, {"filter": {"u": None}, "collation": {"locale": "it"}},
                 {"filter": {"u": {"$in": ["X", 4]}}}, {"filter": {"u": {"x": 1}}, "collation": {"locale": "it"}},
                 {"filter": {"u": "x"}, "hint": "fr"}, {"filter": {"u": {"$gt": 1}}, "sort": {"u": 1}, "collation": {"locale": "it"}}):
        both.rows({"find": "c", **find}, order=Order.FREE)
        both.same({"explain": {"find": "c", **find}, "verbosity": "queryPlanner"})
    both.same({"find": "c", "hint": {"u": 1}})
    both.same({"find": "c", "hint": "simple", "min": {"u": "s"}})
    both.same({"find": "c", "hint": "simple", "min": {"u": 5}})
    both.same({"find": "c", "hint": "u", "min": {"u": "X"}, "max": {"u": "Y"}})
    both.same({"createIndexes": "c", "indexes": [{"key": {"_id": 1}, "name": "_id_"}]})
    both.same({"createIndexes": "c", "indexes": [{"key": {"_id": 1}, "name": "_id_", "collation": {"locale": "simple"}}]})
    both.same({"createIndexes": "c", "indexes": [{"key": {"_id": 1}, "name": "_id_", "collation": NO_CASE}]})
    both.same({"create": "e", "collation": NO_CASE, "idIndex": {"key": {"_id": 1}, "name": "_id_", "v": 2, "collation": {"locale": "fr"}}})
    both.same({"create": "e", "collation": NO_CASE, "idIndex": {"key": {"_id": 1}, "name": "_id_", "v": 2, "collation": NO_CASE}})
    both.same({"create": "c", "collation": NO_CASE})
    both.same({"create": "c"})


def test_views_have_one_collation(both):
    for name, options in (("plain", {}), ("folded", {"collation": NO_CASE})):
        both.same({"create": name, **options})
        both.same({"insert": name, "documents": [{"_id": 1, "a": "x"}, {"_id": 2, "a": "X"}, {"_id": 3, "a": "y"}]})
    lookup = {"$lookup": {"from": "v3", "localField": "a", "foreignField": "a", "as": "z"}}
    both.same({"create": "v1", "viewOn": "folded", "pipeline": []})
    both.same({"create": "v2", "viewOn": "folded", "pipeline": [], "collation": NO_CASE})
    both.same({"create": "v3", "viewOn": "plain", "pipeline": [], "collation": NO_CASE})
    both.same({"create": "v4", "viewOn": "v3", "pipeline": []})
    both.same({"create": "v5", "viewOn": "v3", "pipeline": [], "collation": NO_CASE})
    both.same({"create": "v6", "viewOn": "v3", "pipeline": [], "collation": {"locale": "fr"}})
    both.same({"create": "v7", "viewOn": "plain", "pipeline": [lookup]})
    both.same({"create": "v8", "viewOn": "plain", "pipeline": [lookup], "collation": NO_CASE})
    assert listed(both.oracle[both.name]) == listed(both.pando[both.name])
    for view in ("v1", "v2", "v3", "v5", "v8"):
        for collation in ({}, {"collation": {}}, {"collation": NO_CASE}, {"collation": {"locale": "simple"}}, {"collation": {"locale": "fr"}}):
            both.same({"find": view, "filter": {"a": "x"}, **collation})
            both.same({"count": view, "query": {"a": "x"}, **collation}, ignore=["ok"])
            both.same({"aggregate": view, "pipeline": [{"$match": {"a": "X"}}, {"$count": "n"}], "cursor": {}, **collation})
            both.same({"aggregate": view, "pipeline": [{"$group": {"_id": "$a", "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}], "cursor": {}, **collation})
            both.same({"explain": {"find": view, "filter": {"a": "x"}, **collation}, "verbosity": "queryPlanner"})
    for source in ("plain", "folded"):
        for stage in (lookup, {"$unionWith": "v3"}, {"$unionWith": "v1"}, {"$graphLookup": {"from": "v3", "startWith": "$a", "connectFromField": "a", "connectToField": "a", "as": "z"}}):
            for collation in ({}, {"collation": NO_CASE}, {"collation": {"locale": "simple"}}):
                both.same({"aggregate": source, "pipeline": [stage, {"$project": {"a": 1, "n": {"$size": {"$ifNull": ["$z", []]}}}}], "cursor": {}, **collation})


EXPRESSIONS = [
    {"$eq": ["A", "a"]}, {"$ne": ["A", "a"]}, {"$lt": ["a", "B"]}, {"$gte": ["a", "A"]}, {"$cmp": ["a", "A"]}, {"$setUnion": [["a", "A", "b"], ["B"]]}, {"$in": ["A", ["a"]]},
    {"$indexOfArray": [["q", "A"], "a"]}, {"$strcasecmp": ["a", "A"]}, {"$indexOfCP": ["A", "a"]}, {"$indexOfBytes": ["A", "a"]}, {"$max": ["a", "A"]}, {"$min": ["B", "a"]},
    {"$sortArray": {"input": ["b", "A", "a", "B"], "sortBy": 1}}, {"$sortArray": {"input": [{"x": "b"}, {"x": "A"}], "sortBy": {"x": 1}}}, {"$setDifference": [["a", "b"], ["A"]]},
    {"$setEquals": [["a"], ["A"]]}, {"$setIsSubset": [["a"], ["A"]]}, {"$setIntersection": [["a", "c"], ["A"]]}, {"$maxN": {"n": 1, "input": ["a", "B"]}}, {"$minN": {"n": 2, "input": ["b", "B", "a"]}},
    {"$replaceAll": {"input": "aA", "find": "a", "replacement": "z"}}, {"$split": ["aXb", "x"]}, {"$regexMatch": {"input": "A", "regex": "a"}}, {"$eq": [{"x": "A"}, {"x": "a"}]},
    {"$eq": [{"A": 1}, {"a": 1}]}, {"$eq": [["A", ["B"]], ["a", ["b"]]]}, {"$filter": {"input": ["a", "A", "b"], "cond": {"$eq": ["$$this", "A"]}}}, {"$cond": [{"$eq": ["$s", "X"]}, 1, 0]},
    {"$switch": {"branches": [{"case": {"$eq": ["$s", "X"]}, "then": 1}], "default": 0}}, {"$mergeObjects": [{"a": 1}, {"A": 2}]}, {"$toUpper": "$s"}, {"$trim": {"input": "AxA", "chars": "a"}},
    {"$reduce": {"input": ["b", "A"], "initialValue": "B", "in": {"$min": ["$$value", "$$this"]}}}, {"$anyElementTrue": [[{"$eq": ["a", "A"]}]]},
]


@pytest.mark.parametrize("explicit", [True, False])
def test_expressions_accumulators_and_updates_compare_alike(both, explicit):
    options = {"collation": NO_CASE} if explicit else {}
    both.same({"create": "c", **({} if explicit else {"collation": NO_CASE})})
    words = ["x", "X", "y", "Y", "z", "a", "B", "b", 5, None, ["X", "q"], {"s": "X"}]
    both.same({"insert": "c", "documents": [{"_id": at, "s": word, "t": ["a", "B", "c"], "m": "b"} for at, word in enumerate(words)]})
    for expression in EXPRESSIONS:
        both.rows({"aggregate": "c", "pipeline": [{"$match": {"_id": {"$lt": 3}}}, {"$project": {"v": expression}}], "cursor": {}, **options})
        both.rows({"find": "c", "filter": {"$expr": expression}, **options})
    grouped = {"_id": "$s", "n": {"$sum": 1}, "all": {"$addToSet": "$m"}, "max": {"$max": "$s"}, "min": {"$min": "$s"}, "top": {"$top": {"sortBy": {"s": 1, "_id": 1}, "output": "$_id"}},
               "two": {"$minN": {"n": 2, "input": "$s"}}}
    for pipeline in ([{"$sort": {"_id": 1}}, {"$group": grouped}], [{"$sort": {"_id": 1}}, {"$group": {**grouped, "_id": {"s": "$s"}}}], [{"$group": {**grouped, "_id": None, "set": {"$addToSet": "$s"}}}, {"$set": {"set": {"$size": "$set"}}}],
                     [{"$sort": {"_id": 1}}, {"$sortByCount": "$s"}], [{"$match": {"_id": {"$lt": 7}}}, {"$bucket": {"groupBy": "$s", "boundaries": ["A", "c", "ZZ"]}}],
                     [{"$bucket": {"groupBy": "$s", "boundaries": ["a", "A"]}}], [{"$setWindowFields": {"sortBy": {"s": 1, "_id": 1}, "output": {"r": {"$push": "$_id"}}}}, {"$limit": 1}],
                     [{"$setWindowFields": {"sortBy": {"s": 1}, "output": {"r": {"$rank": {}}, "d": {"$denseRank": {}}}}}, {"$sort": {"_id": 1}}],
                     [{"$match": {"_id": {"$lt": 8}}}, {"$setWindowFields": {"partitionBy": "$s", "sortBy": {"_id": 1}, "output": {"n": {"$sum": 1}}}}, {"$sort": {"_id": 1}}],
                     [{"$lookup": {"from": "c", "localField": "s", "foreignField": "s", "as": "f"}}, {"$project": {"n": {"$size": "$f"}}}],
                     [{"$lookup": {"from": "c", "let": {"s": "$s"}, "pipeline": [{"$match": {"$expr": {"$eq": ["$s", "$$s"]}}}], "as": "f"}}, {"$project": {"n": {"$size": "$f"}}}],
                     [{"$graphLookup": {"from": "c", "startWith": "$s", "connectFromField": "s", "connectToField": "s", "as": "f"}}, {"$project": {"n": {"$size": "$f"}}}],
                     [{"$facet": {"a": [{"$match": {"s": "X"}}], "b": [{"$sort": {"s": -1, "_id": 1}}, {"$limit": 3}]}}], [{"$redact": {"$cond": [{"$eq": ["$s", "Y"]}, "$$KEEP", "$$PRUNE"]}}]):
        both.rows({"aggregate": "c", "pipeline": pipeline, "cursor": {}, **options}, order=Order.FREE)
    for update in ({"$addToSet": {"t": {"$each": ["A", "d"]}}}, {"$pull": {"t": "b"}}, {"$pull": {"t": {"$in": ["C"]}}}, {"$pullAll": {"t": ["A"]}}, {"$min": {"m": "B"}}, {"$max": {"m": "C"}},
                   {"$push": {"t": {"$each": ["b", "A", "a", "B"], "$sort": 1}}}, {"$push": {"t": {"$each": ["C"], "$sort": -1, "$slice": 4}}}, [{"$set": {"e": {"$eq": ["$m", "c"]}}}]):
        both.same({"update": "c", "updates": [{"q": {"s": "X"}, "u": update, "multi": True, **options}]})
        both.rows({"find": "c", "sort": {"_id": 1}})
    both.same({"update": "c", "updates": [{"q": {"s": "X"}, "u": {"$set": {"t.$[e]": "Z"}}, "arrayFilters": [{"e": "A"}], **options}]})
    both.same({"update": "c", "updates": [{"q": {"t": "z"}, "u": {"$set": {"t.$": "Q"}}, **options}]})
    both.same({"update": "c", "updates": [{"q": {"w": "Z"}, "u": {"$set": {"x": 6}}, "upsert": True, **options}]}, ignore=["upserted"])
    both.same({"findAndModify": "c", "query": {"s": "Y"}, "sort": {"s": 1, "_id": -1}, "update": {"$set": {"y": 1}}, "new": True, **options})
    both.same({"delete": "c", "deletes": [{"q": {"s": "Y"}, "limit": 0, **options}]})
    both.rows({"find": "c", "projection": {"_id": 0}}, order=Order.FREE)


ALPHABETS = [
    "abcxyzABCXYZ", "aàáâäãåeèéêëiíïoóòôöøuüùñçßsSÄÖÜÉ", "0123456789", " _-,.;:!?'\"()[]{}@*/&#%$+<=>|~^`", "αβγδεζΑΒΓάέ", "абвгджэюяАБВёй",
    "אבגדהש", "اأبتثجحخةىي", "あいうかがさざアイウカガっッゃャー", "가각간갈나다라마바사ㄱㄴ", "กขคงเแโไา", "अआइकखगघ", "\u0300\u0301\u0308\u0323",
]
LOCALES = ["en", "de", "fr", "sv", "es", "da", "fi", "cs", "pl", "tr", "hu", "hr", "lt", "vi", "ru", "uk", "el", "he", "ar", "hi", "th", "ja", "ko", "zh", "zh_Hant",
           "de@collation=phonebook", "es@collation=traditional", "fr_CA", "en_US_POSIX", "nb", "et", "sk", "sl", "ro", "is", "ca", "cy", "bg", "sr", "sr_Latn", "zh_Hant@collation=pinyin",
           "fi@collation=traditional", "sv@collation=standard", "zh@collation=zhuyin", "zh@collation=unihan"]


def texts(chance, count):
    """Random strings, with variants of one another."""
    found = ["", "a", "A", "á", "Á", "a\u0301", "a b", "ab", "a-b", "a10", "a9", "a09", "ß", "ss", "SS", "æ", "ae", "ch", "cz", "ll", "lz", "ö", "oe", "o"]
    while len(found) < count:
        if chance.random() < 0.4:
            word = chance.choice(found)
            change = chance.choice([str.upper, str.lower, str.title, lambda word: word + chance.choice(" -.'"), lambda word: " " + word, lambda word: word[:-1], lambda word: word + word])
            found.append(change(word))
        else:
            alphabet = chance.choice(ALPHABETS)
            found.append("".join(chance.choice(alphabet) for _ in range(chance.randint(1, 4))) + chance.choice(["", "", chance.choice(ALPHABETS[0])]))
    # Marks in disorder have a meaning without normalisation that Pando does not follow.
    return list(dict.fromkeys(unicodedata.normalize(chance.choice(["NFC", "NFD"]), word) for word in found))


def options_of(chance, locale):
    options = {"locale": locale, "strength": chance.choice([1, 2, 3, 3, 4, 5])}
    for name, values in {"caseLevel": [True], "caseFirst": ["upper", "lower"], "numericOrdering": [True], "alternate": ["shifted"], "maxVariable": ["space"], "backwards": [True], "normalization": [True]}.items():
        if chance.random() < 0.3:
            options[name] = chance.choice(values)
    if options["strength"] < 3 and not options.get("caseLevel"):
        options.pop("caseFirst", None)
    if options["strength"] < 3 and locale == "da":
        options.update(caseLevel=True)
    if options["strength"] == 1:
        options.pop("backwards", None)
        if locale == "fr_CA":
            options["strength"] = 2
    return options


@pytest.mark.parametrize("locale", LOCALES)
def test_random_strings_are_in_the_same_order_and_the_same_groups(both, locale):
    chance = random.Random(f"{SEED} {locale}")
    words = texts(chance, 300)
    databases = [client[both.name] for client in (both.oracle, both.pando)]
    for database in databases:
        database.c.insert_many([{"_id": at, "s": word, "o": {"a": [word]}} for at, word in enumerate(words)])
    for collation in [{"locale": locale, "strength": 3}, *(options_of(chance, locale) for _ in range(4))]:
        kept = {"collation": collation}
        answers = []
        for database in databases:
            ordered = [words[found["_id"]] for found in database.c.find({}, {"_id": 1}, **kept).sort([("s", 1), ("_id", 1)])]
            groups = sorted(sorted(words[at] for at in group["all"]) for group in database.c.aggregate([{"$group": {"_id": "$s", "all": {"$push": "$_id"}}}], **kept))
            nested = len(database.c.distinct("o", **kept))
            answers.append((ordered, groups, nested))
        oracle, pando = answers
        differing = [pair for pair in zip(oracle[0], pando[0]) if pair[0] != pair[1]][:6]
        assert not differing, (collation, differing)
        assert oracle[1] == pando[1], (collation, [group for group in oracle[1] if group not in pando[1]][:5], [group for group in pando[1] if group not in oracle[1]][:5])
        assert oracle[2] == pando[2], collation
        sought = chance.sample(words, 12)
        for word in sought:
            for condition in (word, {"$gt": word}, {"$lte": word}):
                both.rows({"find": "c", "filter": {"s": condition}, "projection": {"_id": 1}, "sort": {"_id": 1}, **kept})
        unique = []
        for name, database in zip(("oracle", "pando"), databases):
            database.u.drop()
            database.u.create_index("s", unique=True, collation=collation)
            try:
                database.u.insert_many([{"_id": at, "s": word} for at, word in enumerate(words)], ordered=False)
                unique.append([])
            except BulkWriteError as error:
                unique.append(sorted(words[failed["index"]] for failed in error.details["writeErrors"]))
        assert unique[0] == unique[1], collation
