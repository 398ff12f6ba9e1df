"""Each workload finds the faults that it is there for: a test falsifies the end state, a client, or messages.

The server is a correct one, so each run without sabotage must be good.
"""

import hashlib
import re
import time

import pytest
from conftest import PEER
from histories import WORKLOADS, play
from proxy import Proxy
from workload import Settings
from workloads.bank import Bank
from workloads.batches import Batches
from workloads.causal import Causal
from workloads.linearizable import Linearizable
from workloads.list_append import ListAppend
from workloads.register import Register
from workloads.retryable import Retryable
from workloads.skew import Skew
from workloads.snapshot_sessions import SnapshotSessions

SEED = 4711
TRIES = 10


def settings_of(**changes):
    settings = {"seed": SEED, "clients": 4, "seconds": 0.4, "read_concerns": PEER.read_concerns["snapshot"]}
    return Settings(**{**settings, "strict_statements": PEER.strict_statements, **changes})


def names(anomalies):
    return {anomaly.name for anomaly in anomalies}


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_a_run_on_a_correct_server_is_good(server, workload):
    assert [str(anomaly) for anomaly in play(workload(settings_of()), server)] == []


def falsified(workload, server, sabotage):
    return names(play(workload(settings_of()), server, sabotage))


def test_a_lost_append_is_found(server):
    found = falsified(
        ListAppend, server, lambda db: db["keys"].update_many({}, {"$pop": {"values": 1}, "$inc": {"size": -1}})
    )
    assert "lost append" in found


def test_a_doubled_append_is_found(server):
    double = [{"$set": {"values": {"$concatArrays": ["$values", "$values"]}, "size": {"$multiply": ["$size", 2]}}}]
    assert "duplicate elements" in falsified(ListAppend, server, lambda db: db["keys"].update_many({}, double))


def test_a_document_whose_fields_disagree_is_found(server):
    assert "torn document" in falsified(
        ListAppend, server, lambda db: db["keys"].update_many({}, {"$inc": {"size": 1}})
    )


def test_a_register_that_goes_back_is_found(server):
    found = falsified(Register, server, lambda db: db["keys"].delete_many({}))
    assert any(name.startswith("G-single") for name in found), found


def test_a_lost_retryable_write_is_found(server):
    assert "lost or doubled write" in falsified(Retryable, server, lambda db: db.documents.delete_many({}))


def test_a_doubled_retryable_write_is_found(server):
    double = [{"$set": {"values": {"$concatArrays": ["$values", "$values"]}}}]
    assert "lost or doubled write" in falsified(Retryable, server, lambda db: db.lists.update_many({}, double))


def test_a_doubled_retryable_delete_is_found(server):
    assert "lost or doubled write" in falsified(Retryable, server, lambda db: db.pairs.delete_many({}))


def test_a_torn_transfer_is_found(server):
    assert "wrong balances" in falsified(Bank, server, lambda db: db.accounts.update_one({}, {"$inc": {"balance": 1}}))


def test_a_lost_transfer_is_found(server):
    assert "lost write" in falsified(Bank, server, lambda db: db.book.delete_many({}))


def test_a_batch_in_part_is_found(server):
    assert "torn batch" in falsified(Batches, server, lambda db: db.left.delete_one({"size": {"$gt": 1}}))


def test_a_lost_batch_is_found(server):
    assert "lost write" in falsified(Batches, server, lambda db: db.left.delete_many({}))


def found_within_tries(play_once, is_found):
    """Plays until chance brings the fault about. A checker that does not see it never does."""
    for _ in range(TRIES):
        found = names(play_once())
        if is_found(found):
            return
    pytest.fail(f"{TRIES} runs showed only {found}")


class TornBank(Bank):
    """One transfer is not one transaction."""

    def transfer(self, client, session, name):
        return super().transfer(client, None, name)


def test_a_torn_snapshot_is_found(server):
    found_within_tries(lambda: play(TornBank(settings_of()), server), {"torn snapshot"}.intersection)


class ForgetfulCausal(Causal):
    """Another client sets numbers back."""

    def write(self, client):
        super().write(client)
        if client.chance.random() < 0.1:
            client.db.numbers.update_many({}, {"$set": {"number": 0, "copy": 0}})


def test_a_read_that_goes_back_in_time_is_found(server):
    found_within_tries(lambda: play(ForgetfulCausal(settings_of()), server), {"not causal"}.intersection)


class ForgetfulProxy(Proxy):
    """Each connection has session ids of its own, so the server does not recognise a repetition through another."""

    def forwarded(self, request, route):
        own = hashlib.md5(str(id(route)).encode()).digest()
        return re.sub(rb"(\x05id\0\x10\0\0\0\x04).{16}", lambda found: found[1] + own, request, flags=re.DOTALL)


def test_a_retryable_write_that_is_executed_again_is_found(server):
    """Either an effect is there twice, or the repetition gives another reply, or finds its own document in the way."""
    found_within_tries(
        lambda: play(Retryable(settings_of()), server, proxy_class=ForgetfulProxy),
        {"lost or doubled write", "doubled write", "wrong reply", "surprise"}.intersection,
    )


def kill_all_sessions(db):
    """Transactions that only the server knows of are still open."""
    db.client.admin.command("killAllSessions", [])


def test_a_commit_that_the_server_forgets_is_found(server):
    settings = settings_of(clients=8, breaks=True, strict_statements=False)
    found_within_tries(
        lambda: play(ListAppend(settings), server, kill_all_sessions, ForgetfulProxy),
        {"G1a (aborted read)"}.intersection,
    )


class TornListAppend(ListAppend):
    """Reads take a snapshot each instead of that of the transaction."""

    def operate(self, client, session, operations):
        client.chance.choice(self.reads)(client, None, operations)
        client.chance.choice(self.writes)(client, session, operations)


def test_reads_without_a_snapshot_are_found(server):
    expected = {"internal", "G-single (read skew)", "lost update"}
    found_within_tries(lambda: play(TornListAppend(settings_of()), server), expected.intersection)


def test_write_skew_is_found_where_it_is_forbidden(server):
    settings = settings_of(level="serializable", clients=8)
    found_within_tries(lambda: play(Skew(settings), server), {"serializability broken"}.intersection)


class LaggingLinearizable(Linearizable):
    """Reads come from a snapshot of some time ago, as from a replica that lags behind."""

    def __init__(self, settings):
        super().__init__(settings)
        self.reads = [self.by_id_in_the_past]
        self.pasts = {}

    def by_id_in_the_past(self, client, key):
        session, uses = self.pasts.get(client.number, (None, 0))
        if uses == 0:
            session, uses = client.mongo.start_session(snapshot=True), 10
        self.pasts[client.number] = (session, uses - 1)
        return self.value_of(key, client.db.registers.find_one({"_id": key}, session=session))


def test_stale_linearizable_reads_are_found(server):
    found_within_tries(lambda: play(LaggingLinearizable(settings_of()), server), {"not linearizable"}.intersection)


def test_a_lost_write_of_a_register_is_found(server):
    found = falsified(Linearizable, server, lambda db: db.registers.delete_many({}))
    assert found == {"not linearizable"}


class TornSnapshots(SnapshotSessions):
    """The reads of a snapshot come from two times."""

    def read_at(self, client, snapshot):
        super().read_at(client, snapshot)
        snapshot.time = None
        return super().read_at(client, snapshot)


def test_a_snapshot_of_two_times_is_found(server):
    expected = {"internal", "G-single (read skew)"}
    found_within_tries(lambda: play(TornSnapshots(settings_of()), server), expected.intersection)


class LateSnapshots(SnapshotSessions):
    """A snapshot is said to have begun when it ends, so it lacks what was acknowledged before."""

    def end(self, snapshot, *outcome):
        snapshot.began_ns = time.monotonic_ns()
        super().end(snapshot, *outcome)


def test_a_snapshot_of_the_past_is_found(server):
    expected = {"G-single-realtime (read skew)"}
    found_within_tries(lambda: play(LateSnapshots(settings_of()), server), expected.intersection)
