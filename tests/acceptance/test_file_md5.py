"""`filemd5`, by which drivers of 2012 check a file of GridFS after they have stored it."""

import pytest
from bson import Binary

CHUNKS = [
    {"files_id": 1, "n": 0, "data": b"a" * 300}, {"files_id": 1, "n": 1, "data": b"b"}, {"files_id": "two", "n": 0.0, "data": Binary(b"old", 2)},
    {"files_id": {"a": 1}, "n": 0, "data": b""}, {"files_id": "gap", "n": 0, "data": b"a"}, {"files_id": "gap", "n": 2, "data": b"a"},
    {"files_id": "late", "n": 1, "data": b"a"}, {"files_id": "text", "n": 0, "data": "a"}, {"files_id": "none", "n": 0},
]


@pytest.fixture
def files(both):
    for root in ("fs", "other"):
        both.fill(f"{root}.chunks", CHUNKS)
        both.same({"createIndexes": f"{root}.chunks", "indexes": [{"key": {"files_id": 1, "n": 1}, "name": "files_id_1_n_1"}]})
    both.same({"create": "seen.chunks", "viewOn": "fs.chunks", "pipeline": []})
    return both


@pytest.mark.parametrize("root", [{}, {"root": "other"}, {"root": ""}, {"root": "no_such"}, {"root": "seen"}, {"root": 5}, {"root": "fs", "bogus": 1}], ids=repr)
@pytest.mark.parametrize("file", [1, 1.0, "two", {"a": 1}, "gap", "late", "text", "none", "absent", None, {"$in": ["two"]}], ids=repr)
def test_the_digest_is_of_all_chunks_in_their_order(files, file, root):
    files.same({"filemd5": file, **root})
