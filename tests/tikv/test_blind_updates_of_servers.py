"""Updates that a client does not wait for, or demands to be blind, from two servers on one store: none is lost, none counts twice, no removed
document comes back, and indexes agree.

The engine `tikv` reads the document of such an update. tests/python/test_blind_updates.py has the same for one server: ENGINES=tikv.
"""

import pathlib
import random
import sys
import threading
import time

from bson.int64 import Int64
from pymongo import WriteConcern
from pymongo.errors import AutoReconnect, OperationFailure

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "python"))
from test_blind_updates import blind, performed  # noqa: E402
from test_servers import check_sound, eventually, indexes, pair, same_session, side_by_side  # noqa: E402, F401


def check_blind(reply):
    assert reply.get("blind") == 1 and "writeErrors" not in reply, reply


def unheard(client):
    return client.test.get_collection("c", write_concern=WriteConcern(w=0))


def filled(pair, documents):
    one, other = pair.clients()
    one.test.c.insert_many(documents)
    eventually("the collection is there", lambda: other.test.c.count_documents({}) == len(documents))
    return one, other


def test_blind_updates_of_both_servers_are_all_there(pair):  # noqa: F811
    clients = filled(pair, [{"_id": id, "n": 0} for id in range(3)])
    before = [performed(client)["performed"] for client in clients]
    demanded, unanswered = [0, 0], [0, 0]

    def work(at):
        client, chance = clients[at], random.Random(at)
        for _ in range(150):
            id, action = chance.randrange(3), chance.random()
            if action < 0.4:
                check_blind(blind(client.test.c, (id, {"$inc": {"n": 1}})))
                demanded[at] += 1
            elif action < 0.7:
                unheard(client).update_one({"_id": id}, {"$inc": {"n": 1}})
                unanswered[at] += 1
            else:
                assert client.test.c.update_one({"_id": id}, {"$inc": {"n": 1}}).modified_count == 1

    side_by_side([lambda: work(0), lambda: work(1)])
    for at, client in enumerate(clients):
        eventually("all are there", lambda: sum(row["n"] for row in client.test.c.find()) == 300, 30)
        assert performed(client)["performed"] - before[at] == demanded[at] + unanswered[at]
        check_sound(client)


def test_a_blind_update_brings_back_no_document_that_the_other_server_has_removed(pair):  # noqa: F811
    one, other = filled(pair, [{"_id": "stays"}])
    ended = threading.Event()

    def change():
        try:
            for number in range(100):
                one.test.c.insert_one({"_id": number % 5, "n": 0})
                assert one.test.c.delete_one({"_id": number % 5}).deleted_count == 1
        finally:
            ended.set()

    def update():
        number = 0
        while not ended.is_set():
            check_blind(blind(other.test.c, (number % 5, {"$set": {"text": "x" * 100}})))
            number += 1

    side_by_side([change, update])
    for client in (one, other):
        assert list(client.test.c.find()) == [{"_id": "stays"}]
        check_sound(client)


def test_an_index_that_one_server_makes_and_drops_is_right_beside_blind_updates_of_the_other(pair):  # noqa: F811
    one, other = filled(pair, [{"_id": id, "n": id} for id in range(50)])
    ended, done = threading.Event(), {"blind": 0, "refused": 0, "unheard": 0}

    def update():
        chance = random.Random(5)
        while not ended.is_set():
            update = {"$inc": {"n": chance.randrange(1, 9)}}
            unheard(other).update_one({"_id": chance.randrange(50)}, update)
            done["unheard"] += 1
            reply = blind(other.test.c, (chance.randrange(50), update))
            if "writeErrors" in reply:
                assert reply["writeErrors"][0]["code"] == 72, reply
            done["refused" if "writeErrors" in reply else "blind"] += 1

    def change():
        try:
            for _ in range(5):
                for kind in ("refused", "blind"):
                    before = done[kind]
                    if kind == "refused":
                        one.test.c.create_index("n")
                    eventually(kind, lambda: done[kind] > before + 3, 30)
                    if kind == "refused":
                        report = one.test.command("validate", "c", full=True)
                        assert report["valid"], report
                        one.test.c.drop_index("n_1")
            one.test.c.create_index("n")
        finally:
            ended.set()

    side_by_side([update, change])
    print(done)
    for client in (one, other):
        eventually("the index is there", lambda: indexes(client) == ["_id_", "n_1"])
        check_sound(client)


def test_a_blind_update_that_is_repeated_at_the_other_server_counts_once(pair):  # noqa: F811
    one, other = filled(pair, [{"_id": 1, "n": 0}])
    sessions = same_session(one, other)

    def raise_it(client, session, number):
        statement = {"q": {"_id": 1}, "u": {"$inc": {"n": 1}}, "blind": True}
        return client.test.command("update", "c", updates=[statement], session=session, txnNumber=Int64(number))

    for number in range(101, 111):
        for client, session in zip((one, other), sessions):
            check_blind(raise_it(client, session, number))
    assert one.test.c.find_one() == {"_id": 1, "n": 10}


def test_blind_updates_that_were_answered_survive_a_killed_server(pair):  # noqa: F811
    one, other = filled(pair, [{"_id": id, "n": 0} for id in range(4)])
    told = [0] * 4

    def work(id, client):
        try:
            while True:
                check_blind(blind(client.test.c, (id, {"$inc": {"n": 1}})))
                told[id] += 1
        except (AutoReconnect, OperationFailure) as lost:
            assert isinstance(lost, AutoReconnect) or lost.code in (11_600, 91), lost

    def kill():
        eventually("all write", lambda: min(told) > 20, 60)
        pair.servers[0].kill()

    side_by_side([*(lambda id=id: work(id, one) for id in range(4)), kill])
    # The last one of each was not answered.
    for id, count in enumerate(told):
        assert other.test.c.find_one({"_id": id})["n"] in (count, count + 1)
    begun = time.monotonic()
    check_blind(blind(other.test.c, (0, {"$inc": {"n": 1}})))
    assert time.monotonic() - begun < 10
    check_sound(other)
