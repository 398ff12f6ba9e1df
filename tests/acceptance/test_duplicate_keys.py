"""Duplicate keys of every shape: the text of the error (people parse it), keyPattern and keyValue are MongoDB's."""

import datetime
import re
import struct
import uuid

import pytest
from bson import Binary, Code, Decimal128, Int64, MaxKey, MinKey, ObjectId, Timestamp
from bson.datetime_ms import DatetimeMS

import sort_order
from both import Texts
from exact import encode

SHAPES = {
    "zero": 0, "int": 7, "negative": -7, "long": Int64(2**40), "long that fits an int": Int64(7), "double": 1.5, "whole double": 7.0,
    "minus zero": -0.0, "large double": 1e300, "small double": 1e-7, "double 0.1": 0.1, "2^53": 2.0**53, "1e15": 1e15, "1e16": 1e16,
    "NaN": float("nan"), "infinity": float("inf"), "minus infinity": float("-inf"), "tiny": 5e-324, "third": 1 / 3,
    "decimal": Decimal128("1.10"), "decimal 0": Decimal128("-0E+3"), "decimal NaN": Decimal128("NaN"), "large decimal": Decimal128("1E+400"),
    "string": "abc", "quotes": 'say "hi"', "apostrophe": "it's", "backslash": "a\\b", "newline": "a\nb\tc", "controls": "\1\x1f\x7f",
    "unicode": "Zürich 😀 \u2028", "empty": "", "NUL": "a\0b", "long string": "x" * 300, "braces": "{ a: 1 }",
    "date": datetime.datetime(2026, 1, 2, 3, 4, 5, 678000), "date before 1970": datetime.datetime(1905, 5, 6),
    "far date": DatetimeMS(2**60), "far past": DatetimeMS(-(2**60)), "date 0": datetime.datetime(1970, 1, 1), "year 10000": DatetimeMS(253402300800000),
    "ObjectId": ObjectId("5f0102030405060708090a0b"), "true": True, "false": False, "null": None, "MinKey": MinKey(), "MaxKey": MaxKey(),
    "nested": {"a": 1, "b": {"c": "x", "d": [1, {"e": None}]}}, "empty object": {}, "object with quotes": {'a"b': "c'd"},
    "object with dots": {"a.b": 1, "c d": 2, "": 3, "$x": 4},
    "array": [1, 2], "empty array": [], "array in array": [[1, 2]], "array of objects": [{"a": [1]}],
    "regex": re.compile("a/b", re.I), "regex with options": re.compile("^x", re.M | re.S | re.X),
    "binary": Binary(b"\0\1\xff", 0), "binary 128": Binary(b"abc", 128), "uuid": Binary.from_uuid(uuid.UUID(int=1)), "md5": Binary(b"m" * 16, 5),
    "old uuid": Binary(b"u" * 16, 3), "empty binary": Binary(b"", 0), "timestamp": Timestamp(1234567890, 17), "code": Code("f('\"')"),
    "code with scope": Code("f()", {"a": 1}),
    "symbol": sort_order.Value(14, sort_order.string('s"y'), None), "undefined": sort_order.Value(6, b"", None),
    "dbPointer": sort_order.Value(12, sort_order.string("db.c") + bytes(range(12)), None),
    "old binary": sort_order.Value(5, struct.pack("<iBi", 6, 2, 2) + b"ab", None),
}
KEYS = {
    "k": {"k": 1}, "k descending": {"k": -1}, "k and m": {"k": 1, "m": -1}, "m and n.k": {"m": 1, "n.k": 1},
}


def document(number, value):
    return encode({"_id": number, "k": value, "m": "m", "n": {"k": value}})


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_a_duplicate_is_shown_as_mongodb_shows_it(both, key):
    name = "_".join(f"{field}_{way}" for field, way in key.items())
    both.same({"createIndexes": "c", "indexes": [{"key": key, "name": name, "unique": True}]})
    found = []
    for shape, value in SHAPES.items():
        both.same({"delete": "c", "deletes": [{"q": {}, "limit": 0}]})
        try:
            both.same({"insert": "c", "documents": [document(1, value), document(2, value)]}, texts=Texts.COMPARED)
        except AssertionError as difference:
            found.append(f"{shape}:{difference}")
    assert not found, f"{len(found)} of {len(SHAPES)} shapes differ\n" + "\n".join(found)


def test_a_duplicate_id_is_shown_as_mongodb_shows_it(both):
    found = []
    for shape, value in SHAPES.items():
        one = encode({"_id": value})
        try:
            both.same({"insert": "c", "documents": [one, one]}, texts=Texts.COMPARED)
        except AssertionError as difference:
            found.append(f"{shape}:{difference}")
    assert not found, f"{len(found)} of {len(SHAPES)} shapes differ\n" + "\n".join(found)


@pytest.mark.parametrize("name", ["x", "a b", 'quote"s', "ä", "with.dots", "$dollar", "-1"])
def test_the_name_of_the_index_stands_in_the_text(both, name):
    both.same({"createIndexes": "c", "indexes": [{"key": {"k": 1}, "name": name, "unique": True}]})
    both.same({"insert": "c", "documents": [{"_id": 1, "k": 1}, {"_id": 2, "k": 1}]}, texts=Texts.COMPARED)


def test_missing_fields_collide_as_null_and_a_sparse_index_leaves_them_out(both):
    both.same({"createIndexes": "c", "indexes": [{"key": {"k": 1, "l": 1}, "name": "k_l", "unique": True}]})
    both.same({"insert": "c", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3, "k": None}, {"_id": 4, "k": None, "l": 1}]},
              texts=Texts.COMPARED)
    both.same({"insert": "c", "documents": [{"_id": at} for at in range(10, 13)], "ordered": False}, texts=Texts.COMPARED)
    both.same({"createIndexes": "s", "indexes": [{"key": {"k": 1}, "name": "k", "unique": True, "sparse": True}]})
    both.same({"insert": "s", "documents": [{"_id": 1}, {"_id": 2}, {"_id": 3, "k": None}, {"_id": 4, "k": None}]},
              texts=Texts.COMPARED)


def test_one_document_may_hold_a_key_twice_but_not_another_documents(both):
    both.same({"createIndexes": "c", "indexes": [{"key": {"k": 1}, "name": "k", "unique": True}]})
    for documents in ([{"_id": 1, "k": [7, 7]}], [{"_id": 2, "k": [8, 7]}], [{"_id": 3, "k": 7.0}], [{"_id": 4, "k": [[7]]}],
                      [{"_id": 5, "k": []}], [{"_id": 6, "k": []}], [{"_id": 7, "k": None}], [{"_id": 8, "k": [None]}]):
        both.same({"insert": "c", "documents": documents}, texts=Texts.COMPARED)


def test_a_unique_index_is_not_built_over_duplicates(both):
    both.same({"insert": "c", "documents": [{"_id": 1, "k": "a"}, {"_id": 2, "k": "b"}, {"_id": 3, "k": "a"}]})
    both.fails({"createIndexes": "c", "indexes": [{"key": {"k": 1}, "name": "k", "unique": True}]}, 11000)
    both.same({"listIndexes": "c"})


@pytest.mark.parametrize("value", [[1, 2], [1], [], [[1]]], ids=repr)
def test_two_arrays_in_one_compound_index_are_refused(both, value):
    both.same({"createIndexes": "c", "indexes": [{"key": {"a": 1, "b": 1}, "name": "ab"}]})
    both.same({"insert": "c", "documents": [{"_id": 1, "a": value, "b": 1}, {"_id": 2, "a": value, "b": value}]}, texts=Texts.COMPARED)
    both.same({"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$set": {"b": value}}}]}, texts=Texts.COMPARED)
    both.rows({"find": "c"})
