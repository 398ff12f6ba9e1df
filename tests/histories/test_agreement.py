"""The comparison of documents, indexes and counters finds each kind of disagreement, in a database that lies."""

import pytest
from agreement import disagreements

DOCUMENTS = [{"_id": n, "a": n % 2} for n in range(4)]


class Cursor(list):
    def hint(self, _):
        return self


class Liar:
    """A database with one collection, whose answers are right apart from those that a test replaces."""

    name = "c"

    def __init__(self, **lies):
        self.lies = lies

    def __getitem__(self, _):
        return self

    def list_collection_names(self):
        return ["c"]

    def command(self, name, _, **options):
        if name == "validate":
            return self.lies.get("validate", {"valid": True, "errors": []})
        return {"n": self.lies.get("count", 4)}

    def count_documents(self, _):
        return self.lies.get("count_documents", 4)

    def index_information(self):
        return {"_id_": {"key": [("_id", 1)]}, "a_1": {"key": [("a", 1)]}}

    def find(self, filter, projection=None, sort=None, hint=None):
        if hint != "a_1":
            return Cursor(DOCUMENTS)
        kind = "range" if filter else "forward" if sort[0][1] == 1 else "backward"
        return Cursor(self.lies.get(kind, DOCUMENTS))


def facts(**lies):
    return [anomaly.facts[0] for anomaly in disagreements(Liar(**lies))]


def test_a_whole_database_agrees():
    assert facts() == []


@pytest.mark.parametrize(
    ("lies", "fact"),
    [
        ({"validate": {"valid": False, "errors": ["broken"]}}, "validate c: ['broken']"),
        ({"count": 5}, "c: its counter says 5, a scan finds 4"),
        ({"count_documents": 3}, "c: count_documents says 3, a scan finds 4"),
        ({"forward": DOCUMENTS[1:]}, "index a_1 of c finds 3 documents, a scan 4"),
        ({"backward": DOCUMENTS + DOCUMENTS[:1]}, "index a_1 of c finds 5 documents, a scan 4"),
        ({"forward": [*DOCUMENTS[:3], {"_id": 3, "a": 7}]}, "index a_1 of c finds other documents than a scan"),
        ({"range": DOCUMENTS[1:]}, "index a_1 of c lacks ['0'] in a range scan"),
    ],
)
def test_each_disagreement_is_found(lies, fact):
    assert facts(**lies) == [fact]
