"""Wildcard and text indexes: the same documents, scores and refusals as MongoDB's."""

import gzip
import itertools
import json
import os
import pathlib
import random

import pytest
from bson import MaxKey, MinKey

SCORE = {"$meta": "textScore"}
CITIES = pathlib.Path(os.environ.get("SHARED", "")) / "data" / "cities.jsonl.gz"


def asked(both, command):
    """The documents or the code of either server."""
    answers = []
    for client in (both.oracle, both.pando):
        try:
            reply = client[both.name].command(command)
            answers.append(reply["cursor"]["firstBatch"] if "cursor" in reply else "done")
        except Exception as error:
            answers.append(getattr(error, "code", error))
    return answers


def same_scores(both, collection, search):
    """Both find the same documents with the same scores; gives their number."""
    command = {"find": collection, "filter": {"$text": search}, "projection": {"s": SCORE}, "batchSize": 100_000, "singleBatch": True}
    oracle, pando = asked(both, command)
    if not isinstance(oracle, list) or not isinstance(pando, list):
        assert oracle == pando, search
        return 0
    wanted, found = ({document["_id"]: document["s"] for document in answer} for answer in (oracle, pando))
    assert wanted.keys() == found.keys(), (search, wanted.keys() ^ found.keys())
    for key, score in wanted.items():
        assert abs(found[key] - score) <= 1e-9 * max(1, score), (search, key, score, found[key])
    return len(wanted)


# ---- wildcard indexes

VALUES = [None, 0, 1, 2.5, "a", "b", True, [], [1], [1, "b"], [None], {}, {"y": 1}, {"y": [1, 2]}, [{"y": 1}, {"z": 2}], [[1]], {"y": {"y": 1}}, MinKey(), MaxKey()]
PROJECTIONS = [None, {"a": 1}, {"a.y": 1, "x": 1}, {"a.y": 0}, {"x": 0, "_id": 1}, {"_id": 1}]


def a_test(chance):
    value = chance.choice(VALUES)
    kind = chance.randrange(9)
    if kind < 5:
        return {chance.choice(["$eq", "$gt", "$gte", "$lt", "$lte"]): value}
    return [{"$in": [value, chance.choice(VALUES)]}, {"$ne": value}, {"$exists": chance.random() < 0.7}, {"$elemMatch": {"y": 1}}][kind - 5]


def loses_documents(query):
    """Whether MongoDB's index may lose documents: comparisons with null, MinKey and MaxKey also find documents without the field."""
    return any(type(test.get(operator)) in (type(None), MinKey, MaxKey) for test in query.values() for operator in ("$gt", "$gte", "$lt", "$lte"))


@pytest.mark.parametrize("projection", PROJECTIONS, ids=repr)
def test_wildcard_indexes_find_the_same(both, projection):
    chance = random.Random(11)
    documents = [{"_id": at, **{name: chance.choice(VALUES) for name in ("a", "x") if chance.random() < 0.9}} for at in range(150)]
    both.same({"insert": "c", "documents": documents})
    specification = {"key": {"$**": 1}, "name": "w", **({"wildcardProjection": projection} if projection else {})}
    both.same({"createIndexes": "c", "indexes": [specification]})
    both.same({"listIndexes": "c"})
    for _ in range(120):
        query = {path: a_test(chance) for path in chance.sample(["a", "x", "a.y", "x.y", "a.y.y"], chance.randint(1, 2))}
        if loses_documents(query):
            continue
        both.rows({"find": "c", "filter": query, "sort": {"_id": 1}})


@pytest.mark.parametrize("specification", [
    {"key": {"$**": -1}}, {"key": {"$**": "hashed"}}, {"key": {"$**": 0}}, {"key": {"a.$**.b": 1}}, {"key": {"$**": 1}, "unique": True}, {"key": {"$**": 1}, "sparse": True},
    {"key": {"$**": 1}, "expireAfterSeconds": 5}, {"key": {"$**": 1}, "v": 1}, {"key": {"$**": 1}, "hidden": True}, {"key": {"a..$**": 1}}, {"key": {"$**": "x"}},
    *({"key": {"$**": 1}, "wildcardProjection": projection} for projection in (
        {}, {"a": 1, "b": 0}, {"a": 1, "a.b": 1}, {"a": "x"}, {"a": {}}, {"a": {"b": 1}}, {"$a": 1}, {"a.$": 1}, {"a..b": 1}, {"": 1}, 5)),
    {"key": {"a.$**": 1}, "wildcardProjection": {"a": 1}}, {"key": {"a": 1}, "wildcardProjection": {"a": 1}},
    {"key": {"a": "text", "b": "text"}}, {"key": {"$**": "text"}, "weights": {"a": 5}}, {"key": {"p": 1, "b": "text", "a": "text", "q": -1}, "default_language": "de"},
    {"key": {"a": "text", "p": 1, "b": "text"}}, {"key": {"a": "text"}, "weights": {"a": 0}}, {"key": {"a": "text"}, "weights": {"a": "x"}}, {"key": {"a": "text"}, "weights": "$**"},
    {"key": {"a": "text"}, "default_language": "xx"}, {"key": {"a": "text"}, "language_override": "a.b"}, {"key": {"a": "text"}, "textIndexVersion": 4},
    {"key": {"a": "text", "b": "hashed"}}, {"key": {"a.$**": "text"}}, {"key": {"_fts": "text", "_ftsx": 1}, "weights": {"a": 1}}, {"key": {"_fts": "text", "_ftsx": 1}},
], ids=repr)
def test_specifications(both, specification):
    both.same({"createIndexes": "c", "indexes": [{"name": "n", **specification}]})
    both.same({"listIndexes": "c"})


# ---- text indexes


def test_searches_in_the_names_of_cities(both):
    with gzip.open(CITIES, "rt") as lines:
        cities = [json.loads(line) for line in itertools.islice(lines, 3_000)]
    documents = [{"_id": at, **{name: value for name, value in city.items() if name != "_id" and isinstance(value, (str, list, dict))}} for at, city in enumerate(cities)]
    for client in (both.oracle, both.pando):
        client[both.name].c.insert_many(documents)
    both.same({"createIndexes": "c", "indexes": [{"key": {"$**": "text"}, "name": "t"}]})
    chance = random.Random(4)
    words = [word for document in documents for value in document.values() if isinstance(value, str) for word in value.split() if word.isascii()]
    found = 0
    for _ in range(60):
        text = " ".join(chance.choices(words, k=chance.randint(1, 3)) + [f"-{word}" for word in chance.sample(words, chance.randint(0, 1))])
        found += same_scores(both, "c", {"$search": text})
    assert found > 100


SENTENCES = {
    "english": ["The quick brown foxes are jumping over lazy dogs.", "Running water runs deep; the runner was running.", "She couldn't have known what's happening in these countries.",
                "National relations and organizations generalize conditional responsibilities.", "He said: 'don't stop', and we would've stopped!", "Dogs, dogs and more dogs"],
    "german": ["Die Häuser in der alten Straße sind schöner geworden.", "Mädchen laufen schnell durch die Wälder und über Brücken.", "Er lief, sie lief, alle liefen nach Hause.",
               "Unabhängigkeitserklärungen sind lange Wörter.", "Das Kind spielte mit dem kleinen Hund im Garten."],
    "french": ["Les chevaux couraient rapidement dans les champs verts.", "Mes amis mangent des pommes rouges au village.", "Nous parlions longuement, vous parliez fort.",
               "Cafés, théâtres et musées étaient fermés hier.", "Une petite fille chantait une chanson française."],
    "spanish": ["Los caballos corrían rápidamente por los campos verdes.", "Mis amigos comían manzanas rojas en la ciudad.", "Las canciones españolas son hermosas."],
    "swedish": ["Flickorna sprang snabbt genom skogen.", "Husen på gatan är gamla och vackra."],
    "none": ["The Quick brown FOX", "the the the"],
}


@pytest.mark.parametrize("language", SENTENCES)
def test_searches_in_sentences(both, language):
    chance = random.Random(9)
    sentences = SENTENCES[language]
    words = [word.strip(".,;:!'") for sentence in sentences for word in sentence.split()]
    documents = [{"_id": at, "a": sentence, "n": [{"x": " ".join(chance.choices(words, k=3))} for _ in range(chance.randint(0, 2))]} for at, sentence in enumerate(sentences)]
    documents += [{"_id": 100 + at, "a": " ".join(chance.choices(words, k=chance.randint(1, 8)))} for at in range(40)]
    both.same({"insert": "c", "documents": documents})
    both.same({"createIndexes": "c", "indexes": [{"key": {"a": "text", "n.x": "text"}, "weights": {"a": 10}, "name": "t", "default_language": language}]})
    for word in words:
        same_scores(both, "c", {"$search": word})
    for _ in range(60):
        parts = chance.choices(words, k=chance.randint(1, 3)) + [f"-{word}" for word in chance.sample(words, chance.randint(0, 1))]
        if chance.random() < 0.4:
            sentence = chance.choice(sentences).split()
            at = chance.randrange(len(sentence))
            parts.append(chance.choice(["", "-"]) + '"' + " ".join(sentence[at:at + 2]).replace('"', "") + '"')
        options = {"$caseSensitive": chance.random() < 0.2, "$diacriticSensitive": chance.random() < 0.2}
        same_scores(both, "c", {"$search": " ".join(parts), **options})


@pytest.mark.parametrize("filter_", [
    {"$text": "x"}, {"$text": {}}, {"$text": {"$search": 5}}, {"a": {"$text": {"$search": "x"}}}, {"$text": {"$search": "x", "$language": "xx"}}, {"$text": {"$search": "x", "$bogus": 1}},
    {"$and": [{"$text": {"$search": "x"}}, {"$text": {"$search": "y"}}]}, {"$nor": [{"$text": {"$search": "x"}}]}, {"$or": [{"$text": {"$search": "x"}}, {"q": 1}]},
    {"$or": [{"$text": {"$search": "fox"}}, {"_id": 1}]}, {"$text": {"$search": "fox"}, "_id": {"$gt": 1}}, {"$text": {"$search": "fox"}, "_id": 1},
], ids=repr)
def test_filters_with_a_search(both, filter_):
    both.same({"insert": "c", "documents": [{"_id": at, "a": text} for at, text in enumerate(["fox", "dog", "fox dog", "cat"])]})
    both.same({"find": "c", "filter": {"$text": {"$search": "x"}}})
    both.same({"find": "nothing", "filter": {"$text": {"$search": "x"}}})
    both.same({"createIndexes": "c", "indexes": [{"key": {"a": "text"}, "name": "t"}]})
    both.same({"find": "c", "filter": filter_, "sort": {"_id": 1}})
    both.same({"find": "c", "filter": filter_, "sort": {"s": SCORE, "_id": 1}, "projection": {"s": SCORE}})
