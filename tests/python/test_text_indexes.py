"""Text indexes: words of documents with scores, searches for words and phrases, and the places that a score may stand in."""

import random

import pytest
from pymongo.errors import OperationFailure, WriteError

SCORE = {"$meta": "textScore"}
DOCUMENTS = [
    {"_id": 1, "a": "running runner runs"}, {"_id": 2, "a": "The quick brown fox, the Fox!", "n": [{"x": "fox"}, {"x": "dog cat"}]},
    {"_id": 3, "a": ["fox", "dog fox dog"]}, {"_id": 4, "a": "Fox"}, {"_id": 5, "n": {"x": "café au lait"}}, {"_id": 6, "a": "CAFE"},
    {"_id": 7, "a": "don't stop-believing"}, {"_id": 8, "a": "fox "}, {"_id": 9, "a": "stop"}, {"_id": 10, "a": "foxes"}, {"_id": 11, "a": "foxes run, dog"},
]


def search(text, **options):
    return {"$text": {"$search": text, **options}}


@pytest.fixture
def filled(db):
    db.c.create_index([("a", "text"), ("n.x", "text")], weights={"a": 3})
    db.c.insert_many(DOCUMENTS)
    return db


def scores(db, text, **options):
    found = db.c.find(search(text, **options), {"s": SCORE})
    return {document["_id"]: round(document["s"], 9) for document in found}


FOX = {2: 4.475, 3: 5.3, 4: 3.3, 8: 3.0, 10: 3.0, 11: 2.0}


@pytest.mark.parametrize("text,wanted", [
    ("fox", FOX), ("FOXES", FOX), ("run", {1: 3.75, 11: 2.0}), ("fox dog", {2: 5.225, 3: 9.05, 4: 3.3, 8: 3.0, 10: 3.0, 11: 4.0}),
    ("fox -dog", {4: 3.3, 8: 3.0, 10: 3.0}), ('"quick brown"', {2: 3.75}), ('"Brown FOX"', {2: 6.35}), ("-fox", {}), ('fox "quick"', {2: 6.35}),
    ('"fox" "dog"', {2: 5.225, 3: 9.05, 11: 4.0}), ('"fox" -"quick brown"', {3: 5.3, 4: 3.3, 8: 3.0, 10: 3.0, 11: 2.0}), ("cafe", {5: 0.666666667, 6: 3.3}),
    ("the", {}), ("", {}), ("don't", {}), ("stop-believing", {7: 4.5, 9: 3.3}), ("-stop believing", {}), ('"fox', FOX), ("fox-dog cat", {2: 5.975, 3: 9.05, 4: 3.3, 8: 3.0, 10: 3.0, 11: 4.0}),
], ids=repr)
def test_searches_and_their_scores(filled, text, wanted):
    assert scores(filled, text) == wanted
    assert {document["_id"] for document in filled.c.find(search(text))} == set(wanted)
    assert filled.c.count_documents(search(text)) == len(wanted)


def test_case_diacritics_and_languages(filled):
    assert set(scores(filled, "Fox", **{"$caseSensitive": True})) == {2, 4}
    assert set(scores(filled, "fox", **{"$caseSensitive": True})) == {2, 3, 8, 10, 11}
    assert set(scores(filled, "café", **{"$diacriticSensitive": True})) == {5}
    assert set(scores(filled, "cafe", **{"$diacriticSensitive": True})) == {6}
    assert set(scores(filled, '"Quick" fox', **{"$caseSensitive": True})) == set()
    assert scores(filled, "running", **{"$language": "german"}) == {}
    filled.c.insert_one({"_id": 20, "a": "die Häuser", "language": "de"})
    assert scores(filled, "Haus", **{"$language": "german"}) == {20: 3.0}


@pytest.mark.parametrize("query,code", [
    ({"$text": "x"}, 2), ({"$text": {}}, 4), ({"$text": {"$search": 5}}, 14), ({"a": search("x")}, 2), (search("x", **{"$language": "xx"}), 2),
    (search("x", **{"$caseSensitive": 1}), 14), (search("x", **{"$bogus": 1}), 2), ({"$and": [search("x"), search("y")]}, 2), ({"$nor": [search("x")]}, 2),
    ({"$or": [search("x"), {"q": 1}]}, 291), ({"a": {"$elemMatch": search("x")}}, 2),
], ids=repr)
def test_searches_that_there_cannot_be(filled, query, code):
    with pytest.raises(OperationFailure) as refused:
        list(filled.c.find(query))
    assert refused.value.code == code


def test_places_that_have_no_score(filled):
    for cursor, code in [
        (filled.c.find({"a": 1}, {"s": SCORE}), 40218), (filled.c.find({"a": 1}).sort([("s", SCORE)]), 40218), (filled.c.find(search("fox")).hint("_id_"), 2),
        (filled.c.find(search("fox")).sort("$natural", 1), 2), (filled.other.find(search("fox")), 27), (filled.c.find({"a": 1}).hint("a_text_n.x_text"), 291),
    ]:
        with pytest.raises(OperationFailure) as refused:
            list(cursor)
        assert refused.value.code == code
    filled.other.insert_one({})
    with pytest.raises(OperationFailure) as refused:
        list(filled.other.find({"_id": 1, **search("fox")}))
    assert refused.value.code == 27


def test_scores_order_and_project(filled):
    by_score = [("s", SCORE), ("_id", -1)]
    assert [found["_id"] for found in filled.c.find(search("fox")).sort(by_score)] == [3, 2, 4, 10, 8, 11]
    assert list(filled.c.find(search("fox"), {"_id": 1}).sort(by_score).limit(2)) == [{"_id": 3}, {"_id": 2}]
    assert list(filled.c.find(search("dog cat"), {"a": 0, "n": 0, "s": SCORE}).sort("_id", 1))[0] == {"_id": 2, "s": 1.5}
    assert list(filled.c.find(search("stop"), {"a": 1, "s": {"$add": [SCORE, 1]}}).sort("_id", -1))[0] == {"_id": 9, "a": "stop", "s": 4.3000000000000003}
    assert all("$textScore" not in found for found in filled.c.find(search("fox")).sort(by_score))
    assert filled.c.find_one_and_update(search("fox"), {"$set": {"u": 1}}, sort=by_score)["_id"] == 3
    assert filled.c.update_many(search("fox"), {"$set": {"u": 2}}).modified_count == 6
    assert filled.c.delete_many(search("believing")).deleted_count == 1
    assert sorted(filled.c.distinct("_id", search("cafe"))) == [5, 6]


@pytest.mark.parametrize("stages,wanted", [
    ([{"$sort": {"s": SCORE, "_id": 1}}, {"$limit": 2}, {"$project": {"a": 0, "n": 0}}], [{"_id": 3}, {"_id": 2}]),
    ([{"$project": {"s": SCORE}}, {"$sort": {"s": -1, "_id": 1}}, {"$limit": 1}], [{"_id": 3, "s": 5.3}]),
    ([{"$group": {"_id": None, "n": {"$sum": SCORE}}}], [{"_id": None, "n": 21.075}]),
    ([{"$group": {"_id": SCORE, "n": {"$sum": 1}}}, {"$sort": {"_id": 1}}, {"$limit": 2}], [{"_id": 2.0, "n": 1}, {"_id": 3.0, "n": 2}]),
    ([{"$project": {"_id": 1}}, {"$addFields": {"s": SCORE}}, {"$match": {"s": {"$gt": 5}}}], [{"_id": 3, "s": 5.3}]),
    ([{"$replaceRoot": {"newRoot": {"q": "$_id"}}}, {"$set": {"s": SCORE}}, {"$sort": {"s": -1}}, {"$limit": 1}], [{"q": 3, "s": 5.3}]),
    ([{"$facet": {"x": [{"$project": {"s": SCORE}}, {"$match": {"s": {"$gt": 5}}}]}}], [{"x": [{"_id": 3, "s": 5.3}]}]),
    ([{"$count": "n"}], [{"n": 6}]),
], ids=repr)
def test_scores_go_through_pipelines(filled, stages, wanted):
    def rounded(value):
        if isinstance(value, float):
            return round(value, 9)
        if isinstance(value, dict):
            return {name: rounded(inner) for name, inner in value.items()}
        return [rounded(inner) for inner in value] if isinstance(value, list) else value

    assert rounded(list(filled.c.aggregate([{"$match": search("fox")}, *stages]))) == wanted


def test_a_search_within_a_join(filled):
    filled.d.insert_one({"_id": 1})
    found = filled.d.aggregate([{"$lookup": {"from": "c", "pipeline": [{"$match": search("stop")}, {"$project": {"s": SCORE}}, {"$sort": {"_id": 1}}], "as": "z"}}])
    assert list(found) == [{"_id": 1, "z": [{"_id": 7, "s": 2.25}, {"_id": 9, "s": 3.3000000000000003}]}]


def test_a_search_within_a_union(filled):
    filled.d.insert_one({"_id": 1})
    union = {"$unionWith": {"coll": "c", "pipeline": [{"$match": search("stop")}, {"$project": {"s": SCORE}}, {"$sort": {"_id": 1}}]}}
    assert list(filled.d.aggregate([union])) == [{"_id": 1}, {"_id": 7, "s": 2.25}, {"_id": 9, "s": 3.3000000000000003}]
    assert list(filled.d.aggregate([union, {"$match": {"_id": {"$gte": 9}}}])) == [{"_id": 9, "s": 3.3000000000000003}]


@pytest.mark.parametrize("pipeline,code", [
    ([{"$project": {"a": 1}}, {"$match": search("x")}], 17313), ([{"$match": {"a": 1}}, {"$project": {"s": SCORE}}], 40218), ([{"$sort": {"s": SCORE}}], 40218),
], ids=repr)
def test_pipelines_that_there_cannot_be(filled, pipeline, code):
    with pytest.raises(OperationFailure) as refused:
        list(filled.c.aggregate(pipeline))
    assert refused.value.code == code


def test_an_or_searches_and_looks_up(filled):
    assert sorted(found["_id"] for found in filled.c.find({"$or": [search("fox"), {"_id": 9}, {"_id": 4}]})) == [2, 3, 4, 8, 9, 10, 11]
    assert sorted(found["_id"] for found in filled.c.find({"$or": [search("fox -dog"), {"_id": 3}], "a": {"$ne": "Fox"}})) == [3, 8, 10]


def test_plans_are_shown(filled):
    plan = filled.c.find({**search('fox "dog cat" -run'), "_id": {"$gt": 0}}).explain()["queryPlanner"]
    assert plan["parsedQuery"] == {"$and": [
        {"$text": {"$search": 'fox "dog cat" -run', "$language": "english", "$caseSensitive": False, "$diacriticSensitive": False}}, {"_id": {"$gt": 0}}]}
    outer = plan["winningPlan"]
    assert (outer["stage"], outer["filter"], outer["inputStage"]["stage"]) == ("FETCH", {"_id": {"$gt": 0}}, "TEXT_MATCH")
    assert outer["inputStage"]["parsedTextQuery"] == {"terms": ["cat", "dog", "fox"], "negatedTerms": ["run"], "phrases": ["dog cat"], "negatedPhrases": []}
    scored = filled.c.find(search("fox"), {"s": SCORE}).explain()["queryPlanner"]["winningPlan"]
    assert scored["stage"] == "PROJECTION_DEFAULT" and scored["inputStage"]["inputStage"]["stage"] == "TEXT_OR"


def test_fields_beside_the_text(db):
    db.c.create_index([("p", 1), ("a", "text"), ("s", 1)])
    db.c.insert_many([{"_id": at, "p": at % 2, "a": "fox", "s": at} for at in range(6)])
    assert sorted(found["_id"] for found in db.c.find({**search("fox"), "p": 1, "s": {"$gt": 1}})) == [3, 5]
    assert sorted(found["_id"] for found in db.c.find({**search("fox"), "p": {"$in": [0, 1]}, "s": {"$lt": 2}})) == [0, 1]
    for query in (search("fox"), {**search("fox"), "p": {"$gt": 0}}):
        with pytest.raises(OperationFailure) as refused:
            list(db.c.find(query))
        assert refused.value.code == 291
    with pytest.raises(WriteError) as array:
        db.c.insert_one({"p": [1], "a": "x"})
    assert array.value.code == 201
    db.c.insert_one({"_id": 9, "p": "x" * 4000, "a": "fox fox"})
    assert [round(found["q"], 6) for found in db.c.find({**search("fox"), "p": "x" * 4000}, {"q": SCORE})] == [1.5]


@pytest.mark.parametrize("document,code", [
    ({"a": "x", "language": "xx"}, 17262), ({"a": "x", "language": 5}, 17261), ({"n": {"x": "y", "language": "xx"}}, 17262), ({"m": {"language": 5}}, None),
    ({"a": ["x", 5, ["y"]], "language": "DE"}, None),
], ids=repr)
def test_documents_name_their_language(filled, document, code):
    if code is None:
        filled.c.insert_one(document)
        return
    with pytest.raises(WriteError) as refused:
        filled.c.insert_one(document)
    assert refused.value.code == code


def test_the_wildcard_has_all_strings(db):
    db.c.create_index([("$**", "text")], weights={"b": 2})
    db.c.insert_many([{"_id": "fox", "a": "x"}, {"_id": 2, "a": "fox"}, {"_id": 3, "b": "fox"}, {"_id": 4, "q": [["fox", {"z": "fox dog"}]]}, {"_id": 5, "language": "german"}])
    assert scores(db, "fox") == {"fox": 1.1, 2: 1.1, 3: 2.2, 4: 1.85}
    assert scores(db, "german") == {}


def test_specifications_are_kept_as_they_are_listed(db):
    db.c.create_index([("p", 1), ("b", "text"), ("a", "text")], weights={"c": 7}, default_language="de", name="t")
    kept = db.c.index_information()["t"]
    assert kept["key"] == [("p", 1), ("_fts", "text"), ("_ftsx", 1)] and kept["weights"] == {"a": 1, "b": 1, "c": 7}
    assert (kept["default_language"], kept["language_override"], kept["textIndexVersion"]) == ("de", "language", 3)
    for key, options, code in [
        ([("a", "text")], {"name": "u"}, 67), ([("b", "text"), ("q", 1), ("c", "text")], {"name": "u"}, 67), ([("a", "text")], {"name": "u", "weights": {"a": 0}}, 67),
        ([("a", "text")], {"name": "u", "default_language": "xx"}, 67), ([("a", "text"), ("b", "hashed")], {"name": "u"}, 67), ([("p", 1), ("a", "text")], {"name": "u"}, 85),
    ]:
        with pytest.raises(OperationFailure) as refused:
            db.command("createIndexes", "c", indexes=[{"key": dict(key), **options}])
        assert refused.value.code == code, key


def test_an_index_follows_documents(filled):
    def entries():
        report = filled.command("validate", "c")
        assert report["valid"], report
        return report["keysPerIndex"]["a_text_n.x_text"]

    before = entries()
    filled.c.update_one({"_id": 4}, {"$set": {"a": "Fox and hound"}})
    assert entries() == before + 1 and scores(filled, "hound") == {4: 2.25}
    filled.c.update_one({"_id": 4}, {"$unset": {"a": 1}})
    assert entries() == before - 1
    filled.c.drop_index("a_text_n.x_text")
    filled.c.create_index([("a", "text"), ("n.x", "text")], weights={"a": 3})
    assert entries() == before - 1
    filled.c.delete_many({})
    assert entries() == 0


def test_a_search_finds_what_the_words_of_documents_say(db):
    """Random documents: the same by the index as by looking at every document."""
    chance = random.Random(3)
    words = ["fox", "dog", "cat", "house", "tree", "river", "stone", "cloud"]
    documents = [{"_id": at, "a": " ".join(chance.choices(words, k=chance.randint(0, 6))), "b": at % 7} for at in range(400)]
    db.c.create_index([("a", "text")])
    db.c.create_index("b")
    db.c.insert_many(documents)
    for _ in range(60):
        wanted, refused = chance.sample(words, 2), chance.sample(words, chance.randint(0, 2))
        text = " ".join(wanted + [f"-{word}" for word in refused])
        expected = [document["_id"] for document in documents
                    if set(wanted) & set(document["a"].split()) - set(refused) and not set(refused) & set(document["a"].split()) and document["b"] < 5]
        assert sorted(found["_id"] for found in db.c.find({**search(text), "b": {"$lt": 5}})) == expected, text
