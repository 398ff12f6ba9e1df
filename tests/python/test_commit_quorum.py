"""`commitQuorum` of `createIndexes`, and `validate` in the background: the answers of a MongoDB 6.0.27 that is a set of one member."""
import pymongo
import pytest

from server import Server

INDEX = [{"key": {"a": 1}, "name": "a"}]


@pytest.fixture(scope="module", params=["replica-set", "standalone"])
def persona_and_database(request, tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("store") / "data", "--persona", request.param, engine="memory").start()
    with pymongo.MongoClient(server.uri, directConnection=True) as client:
        yield request.param, client["quorum"]
    assert server.stop() == 0, server.log()


def answer(database, **fields):
    """The quorum that the reply names, or the code and text of the error."""
    database.drop_collection("c")
    try:
        return database.command("createIndexes", "c", indexes=INDEX, **fields).get("commitQuorum")
    except pymongo.errors.OperationFailure as error:
        return error.code, error.details["errmsg"]


@pytest.mark.parametrize("given, expected", [
    ("majority", "majority"), ("votingMembers", "votingMembers"), (0, 0), (1, 1), (1.5, 1), (None, "votingMembers"),
    (2, (278, "Not enough data-bearing nodes to satisfy commit quorum")),
    ("foo", (79, "No write concern mode named 'foo' found in replica set configuration")),
])
def test_a_quorum_of_one_member(persona_and_database, given, expected):
    persona, database = persona_and_database
    if persona == "standalone":
        expected = None if given is None else (2, "Standalones can't specify commitQuorum")
    assert answer(database, commitQuorum=given) == expected


@pytest.mark.parametrize("given, expected", [
    (51, (9, "commitQuorum has to be a non-negative number and not greater than 50")),
    (-1, (9, "commitQuorum has to be a non-negative number and not greater than 50")),
    ("", (9, "commitQuorum can't be an empty string")),
    (True, (14, "BSON field 'createIndexes.commitQuorum' is the wrong type 'bool', expected types '[long, int, decimal, double, string']")),
])
def test_no_quorum(persona_and_database, given, expected):
    assert answer(persona_and_database[1], commitQuorum=given) == expected


def test_indexes_that_exist_name_no_quorum(persona_and_database):
    _, database = persona_and_database
    answer(database)
    assert "commitQuorum" not in database.command("createIndexes", "c", indexes=INDEX)


def test_validate_in_the_background_is_not_full(persona_and_database):
    _, database = persona_and_database
    answer(database)
    assert database.command("validate", "c", background=True)["valid"]
    with pytest.raises(pymongo.errors.OperationFailure) as error:
        database.command("validate", "c", background=True, full=True)
    assert error.value.code == 72
