"""Write concerns of a replica set of one beside those of the real one: what it cannot keep, the defaults, and the lock of
fsync."""

import pytest

from server import Server
from test_transactions import play, replica_set, sides  # noqa: F401 (fixtures)


@pytest.fixture(scope="module")
def pando_server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("store") / "data", "--persona", "replica-set").start()
    yield server
    assert server.stop() == 0, server.log()


UPDATE = {"update": "c", "updates": [{"q": {"_id": 1}, "u": {"$inc": {"a": 1}}}]}
CONCERNS = [
    {"w": 2}, {"w": 2, "wtimeout": 1}, {"w": 2, "j": True}, {"w": 3, "wtimeout": 0}, {"w": 50}, {"w": "x"}, {"w": ""}, {"w": None},
    {"w": {"a": 1}}, {"w": "majority", "wtimeout": 5}, {"w": 1, "wtimeout": -1}, {"w": 51}, {"w": {}}, {"w": {"a": "x"}},
    {"w": 1, "fsync": True}, {"j": True, "fsync": True},
]


@pytest.mark.parametrize("concern", CONCERNS, ids=repr)
def test_concerns(sides, concern):
    play(sides, [
        {**UPDATE, "writeConcern": concern}, {"insert": "c", "documents": [{"_id": 1}], "writeConcern": concern},
        {"delete": "c", "deletes": [{"q": {"_id": 2}, "limit": 1}], "writeConcern": concern},
        {"findAndModify": "c", "query": {"_id": 3}, "update": {"$set": {"z": 1}}, "writeConcern": concern},
        {"create": "w", "writeConcern": concern}, {"create": "w", "writeConcern": concern}, {"drop": "none", "writeConcern": concern},
    ])


DEFAULTS = [
    {}, {"defaultWriteConcern": {"w": 1}}, {"defaultWriteConcern": {"w": "majority", "j": True}}, {"defaultWriteConcern": {}},
    {"defaultReadConcern": {"level": "majority"}}, {"defaultReadConcern": {"level": "available"}}, {"defaultReadConcern": {}},
    {"defaultReadConcern": {"level": "snapshot"}}, {"defaultReadConcern": {"level": "linearizable"}}, {"defaultReadConcern": {"level": "bogus"}},
    {"defaultReadConcern": {"level": 1}}, {"defaultReadConcern": {"bogus": 1}}, {"defaultReadConcern": 1}, {"defaultWriteConcern": 1},
    {"defaultWriteConcern": {"w": 0}}, {"defaultWriteConcern": {"j": True}}, {"defaultWriteConcern": {"w": 1, "wtimeout": 5}}, {"x": 1},
    {"defaultWriteConcern": {"w": "x"}}, {"defaultWriteConcern": {"w": 51}}, {"defaultWriteConcern": {"w": 1}, "defaultReadConcern": {"level": "local"}},
]
MOMENTS = ["updateOpTime", "updateWallClockTime", "localUpdateWallClockTime"]


def test_defaults(sides):
    def ask(step):
        oracle, pando = (side.ask(dict(step)) for side in sides)
        for name in MOMENTS:
            assert (name in oracle) == (name in pando), (step, oracle, pando)
            oracle.pop(name, None), pando.pop(name, None)
        assert pando == oracle, f"{step}\n  MongoDB: {oracle}\n  Pando:   {pando}"

    # Until it is set, MongoDB's default is w: majority, and this server's w: 1.
    ask({"setDefaultRWConcern": 1, "defaultWriteConcern": {"w": 1}, "on": "admin"})
    for fields in DEFAULTS:
        ask({"setDefaultRWConcern": 1, **fields, "on": "admin"})
        ask({"getDefaultRWConcern": 1, "on": "admin"})
    ask({"setDefaultRWConcern": 1, "defaultWriteConcern": {"w": 2}, "writeConcern": {"w": 1}, "on": "admin"})
    ask(UPDATE)
    ask({**UPDATE, "writeConcern": {"w": 1}})
    ask({"setDefaultRWConcern": 1, "defaultWriteConcern": {"w": 1}, "defaultReadConcern": {}, "writeConcern": {"w": 1}, "on": "admin"})
    ask({"setDefaultRWConcern": 1, "defaultWriteConcern": {"w": 1}})


def test_the_lock(sides):
    play(sides, [{"on": "admin", **step} for step in (
        {"fsyncUnlock": 1}, {"fsync": 1}, {"fsync": 1, "lock": True}, {"fsync": 1, "lock": "x"}, {"fsyncUnlock": 1}, {"fsyncUnlock": 1, "x": 1},
        {"fsyncUnlock": 1}, {"fsync": 1, "lock": False, "async": True})] + [{"fsync": 1, "lock": True}, {"fsyncUnlock": 1}])
