"""`$sample`: how often documents are drawn, and how many are read for it."""

import collections

import pytest

DOCUMENTS = 40_000
IDENTITIES = {
    "numbers": lambda number: number,
    "strings": lambda number: f"{number % 7}-{number:08}",
    "heap": lambda number: number,
    # All but one begin with more bytes than are bisected.
    "uneven": lambda number: f"user:2024-06-01:{number:08}" if number else "a",
}


@pytest.fixture(params=IDENTITIES)
def filled(db, request):
    if request.param == "heap":
        db.command("create", "c", layout="heap")
    identity = IDENTITIES[request.param]
    for start in range(0, DOCUMENTS, 10_000):
        db.c.insert_many([{"_id": identity(number), "number": number, "text": "x" * (number % 100)} for number in range(start, start + 10_000)])
    # Estimates do not tell the places of documents that are not in the tree yet.
    db.client.admin.command("fsync")
    return db


def drawn(db, size, **options):
    return list(db.c.aggregate([{"$sample": {"size": size}}], **options))


def examined(db, size):
    command = {"aggregate": "c", "pipeline": [{"$sample": {"size": size}}], "cursor": {}}
    return db.command("explain", command, verbosity="executionStats")["stages"][0]["$cursor"]["executionStats"]


def test_few_documents_are_read_for_a_small_sample(filled, request):
    figures = examined(filled, 20)
    engine = filled.client.admin.command("serverStatus")["storageEngine"]["name"]
    if engine == "betree" and "uneven" not in request.node.name:
        assert figures["nReturned"] == 20
        assert figures["totalDocsExamined"] < DOCUMENTS / 2, figures
    assert examined(filled, DOCUMENTS // 100)["totalDocsExamined"] == DOCUMENTS


@pytest.mark.parametrize("size", [1, 50, 80, 81, DOCUMENTS + 1])
def test_a_sample_has_its_size_and_no_document_twice(filled, size):
    found = drawn(filled, size)
    assert len(found) == len({document["_id"] for document in found}) == min(size, DOCUMENTS)
    assert all(document["text"] == "x" * (document["number"] % 100) for document in found)


def test_documents_are_drawn_about_as_often_as_others(filled):
    found = [document["number"] for _ in range(250) for document in drawn(filled, 80)]
    tenths = collections.Counter(number * 10 // DOCUMENTS for number in found)
    # 2,000 each, with a standard deviation of 42; and 2,500 with one of 47.
    assert all(1_700 < tenths[tenth] < 2_300 for tenth in range(10)), tenths
    places = collections.Counter(number % 8 for number in found)
    assert all(2_200 < places[place] < 2_800 for place in range(8)), places
    assert max(collections.Counter(found).values()) < 12


def test_fresh_and_deleted_documents_count(filled):
    filled.c.delete_many({"number": {"$lt": DOCUMENTS // 2}})
    filled.c.insert_many([{"_id": f"new {number}", "number": -1 - number, "text": ""} for number in range(DOCUMENTS // 4)])
    for _ in range(2):
        found = [document["number"] for _ in range(100) for document in drawn(filled, 50)]
        fresh = [number for number in found if number < 0]
        kept = collections.Counter(number * 10 // DOCUMENTS for number in found if number >= 0)
        # A third of 5,000, in two halves; the rest by tenths: 667 each, with a standard deviation of 24.
        assert 1_500 < len(fresh) < 1_850
        assert 700 < sum(number < -DOCUMENTS // 8 for number in fresh) < 960
        assert sorted(kept) == [5, 6, 7, 8, 9] and all(540 < count < 800 for count in kept.values()), kept
        filled.client.admin.command("fsync")


def test_documents_whose_keys_begin_alike_are_drawn_as_often_as_others(db):
    """A place among those cannot be told by the first bytes of keys, and half of the draws are of such places."""
    for begin in range(0, 30_000, 10_000):
        db.c.insert_many([{"_id": f"{'new' if number < 10_000 else 'user:2024-06-01:'}{number:08}", "number": number} for number in range(begin, begin + 10_000)])
    db.client.admin.command("fsync")
    found = [document["number"] for _ in range(40) for document in drawn(db, 50)]
    # A third of 2,000, with a standard deviation of 21.
    assert 560 < sum(number < 10_000 for number in found) < 780


def test_a_sample_within_a_transaction_sees_its_writes(filled):
    with filled.client.start_session() as session, session.start_transaction():
        filled.c.delete_many({"number": {"$gte": 100}}, session=session)
        found = drawn(filled, 50, session=session)
        assert len({document["_id"] for document in found}) == 50
        assert all(document["number"] < 100 for document in found)
        session.abort_transaction()
