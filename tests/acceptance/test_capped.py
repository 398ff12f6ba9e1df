"""Capped collections: options and errors, contents after each of many inserts, and tailable cursors."""

import random

import pytest

from both import Order, Texts

CREATES = [
    {}, {"size": 0}, {"size": 1}, {"size": 257}, {"size": 4096}, {"size": -1}, {"size": "x"}, {"size": 1e3}, {"size": 2**50}, {"size": 2**50 + 1},
    *({"size": 1000, "max": most} for most in (0, -5, 1, 2.5, 2**31 - 1, 2**31, "x", None)), {"max": 5}, {"size": None},
    {"size": 1000, "clusteredIndex": {"key": {"_id": 1}, "unique": True}}, {"size": 1000, "expireAfterSeconds": 3}, {"size": 1000, "autoIndexId": False},
    {"size": 1000, "validator": {"a": 1}},
]


@pytest.mark.parametrize("fields", CREATES, ids=repr)
def test_creates(both, fields):
    both.same({"create": "c", "capped": True, **fields}, texts=Texts.COMPARED)
    both.same({"listCollections": 1, "filter": {"name": "c"}}, order=Order.FREE)


@pytest.mark.parametrize("seed", range(4))
def test_random_writes(both, seed):
    chance = random.Random(seed)
    both.same({"create": "c", "capped": True, "size": chance.choice([1000, 5000]), "max": chance.choice([5, 40])})
    both.same({"createIndexes": "c", "indexes": [{"key": {"x": 1}, "name": "x_1"}]}, ignore=["note"])
    at = 0
    for _ in range(60):
        kind = chance.random()
        if kind < 0.75:
            documents = []
            for _ in range(chance.randint(1, 8)):
                documents.append({"_id": at, "x": chance.randint(0, 9), "p": "y" * (7000 if chance.random() < 0.02 else chance.randint(0, 400))})
                at += chance.choice([0, 1, 1, 1, 1])
            both.same({"insert": "c", "documents": documents, "ordered": chance.random() < 0.5})
            at += 1
        elif kind < 0.85:
            both.same({"update": "c", "updates": [{"q": {"x": chance.randint(0, 9)}, "u": {"$set": {"p": "z" * chance.randint(0, 900)}}, "multi": True}]})
        elif kind < 0.95:
            both.same({"delete": "c", "deletes": [{"q": {"x": chance.randint(0, 9)}, "limit": chance.randint(0, 1)}]})
        else:
            both.same({"collMod": "c", "cappedMax": chance.randint(1, 50)})
        both.rows({"find": "c"})
        both.rows({"find": "c", "sort": {"$natural": -1}, "showRecordId": False})


@pytest.mark.parametrize("fields", [
    {"size": 4096}, {}, {"size": 0}, {"size": -1}, {"size": "x"}, {"size": 10, "max": 3}, {"size": 4096.5}, {"size": 2**60}, {"size": 4096, "foo": 1},
], ids=repr)
def test_copies(both, fields):
    both.same({"insert": "c", "documents": [{"_id": at, "x": "y" * 100} for at in range(100)]})
    both.same({"cloneCollectionAsCapped": "c", "toCollection": "d", **fields}, texts=Texts.COMPARED)
    both.same({"convertToCapped": "c", **fields}, texts=Texts.COMPARED)
    both.same({"convertToCapped": "nope", **fields}, texts=Texts.COMPARED)
    both.rows({"find": "c", "sort": {"$natural": 1}})
    both.rows({"find": "d", "sort": {"$natural": 1}})
    both.same({"listCollections": 1}, order=Order.FREE)


@pytest.mark.parametrize("fields", [
    {}, {"filter": {"_id": {"$gt": 1}}}, {"filter": {"_id": 999}}, {"limit": 2}, {"limit": 4}, {"batchSize": 0}, {"batchSize": 1}, {"skip": 2, "batchSize": 2},
    {"singleBatch": True}, {"sort": {"_id": 1}}, {"sort": {"$natural": 1}}, {"sort": {"$natural": -1}}, {"hint": {"_id": 1}}, {"hint": {"$natural": 1}},
    {"projection": {"a": 1}}, {"returnKey": True}, {"awaitData": True}, {"find": "plain"}, {"find": "missing"}, {"find": "empty"},
], ids=repr)
def test_tailable_cursors(both, fields):
    both.same({"create": "c", "capped": True, "size": 4096, "max": 6})
    both.same({"create": "empty", "capped": True, "size": 4096})
    both.same({"insert": "plain", "documents": [{"_id": 1}]})
    both.same({"insert": "c", "documents": [{"_id": at, "a": at % 2} for at in range(3)]})
    first = both.same({"find": "c", "tailable": True, **fields})
    if both.refused_with or not first.is_open():
        return
    more = {"getMore": first.cursor, "collection": "c", **({"maxTimeMS": 10} if "awaitData" in fields else {})}
    both.same({**more, "batchSize": 1})
    both.same({"insert": "c", "documents": [{"_id": 10 + at, "a": 7} for at in range(2)]})
    both.same({**more, "batchSize": 1})
    both.same(more)
    both.same({"insert": "c", "documents": [{"_id": 20 + at, "a": 7} for at in range(6)]})
    both.same(more, texts=Texts.COMPARED)
    both.same(more)
