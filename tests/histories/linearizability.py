"""Linearizability of registers, decided by zones (Gibbons and Korach: Testing Shared Memories, 1997).

Each transaction of the history is a single read or write of one register, and no value is written twice.

1. The *cluster* of a value is its write and all reads that found it. The register has the value at one time
   only, so all operations of one cluster take effect before all of another.
2. A cluster is before another if any of its operations ended before any of the other began. Its first end
   and its last begin decide that: its *zone*.
3. The history is linearizable exactly if no two clusters are before each other, and no read ended before
   the write of its value began.

A write with an unknown outcome has no end. It counts if a read found it, and may else have had no effect.
"""

import dataclasses
import math

from anomaly import Anomaly
from footprints import text
from history import FAIL, OK

INITIAL = None


@dataclasses.dataclass(slots=True)
class Access:
    """An operation of the history, with the times between which it took effect."""

    transaction: object
    began_ns: float
    ended_ns: float


class Cluster:
    """A value of a register, with its write and its reads. The initial value has a write before all times."""

    def __init__(self, value):
        self.value = value
        self.write = None
        self.accesses = []
        if value is INITIAL:
            self.write = Access(None, -math.inf, -math.inf)
            self.accesses.append(self.write)

    @property
    def first_end(self):
        return min(self.accesses, key=lambda access: access.ended_ns)

    @property
    def last_begin(self):
        return max(self.accesses, key=lambda access: access.began_ns)

    def precedes(self, other):
        return self.first_end.ended_ns < other.last_begin.began_ns


def clusters_of(history):
    """Per register its clusters by value, and the rolled back writes by register and value."""
    registers, rolled_back = {}, {}
    for transaction in history:
        for name, key, value in transaction.operations:
            if name == "r" and transaction.outcome != OK:
                continue
            if name != "r" and transaction.outcome == FAIL:
                rolled_back[key, value] = transaction
                continue
            clusters = registers.setdefault(key, {INITIAL: Cluster(INITIAL)})
            cluster = clusters.setdefault(value, Cluster(value))
            known = transaction.outcome == OK
            access = Access(transaction, transaction.began_ns, transaction.ended_ns if known else math.inf)
            cluster.accesses.append(access)
            if name != "r":
                assert cluster.write is None, f"{value} was written to {key} twice"
                cluster.write = access
    return registers, rolled_back


def check_linearizability(history):
    """The anomalies of a history of registers; an empty list if it is linearizable."""
    registers, rolled_back = clusters_of(history)
    return [
        anomaly
        for key, clusters in registers.items()
        for anomaly in faults_of_register(key, list(clusters.values()), rolled_back)
    ]


def faults_of_register(key, clusters, rolled_back):
    faults = [fault for cluster in clusters for fault in faults_of_reads(key, cluster, rolled_back)]
    if faults:
        return faults
    present = [cluster for cluster in clusters if not has_perhaps_no_effect(cluster)]
    return [
        contradiction(key, one, other)
        for position, one in enumerate(present)
        for other in present[:position]
        if one.precedes(other) and other.precedes(one)
    ]


def has_perhaps_no_effect(cluster):
    return cluster.accesses == [cluster.write] and cluster.write.ended_ns == math.inf


def faults_of_reads(key, cluster, rolled_back):
    """Reads of a value that no write can explain."""
    value = text(cluster.value)
    for read in cluster.accesses:
        name = read.transaction.name if read.transaction else ""
        if cluster.write is None and (key, cluster.value) in rolled_back:
            writer = rolled_back[key, cluster.value]
            fact = f"{name} found {value} in {key}, which {writer.name} wrote and rolled back"
            yield Anomaly("G1a (aborted read)", [read.transaction, writer], [fact])
        elif cluster.write is None:
            yield Anomaly("unwritten value", [read.transaction], [f"{name} found {value} in {key}, nobody wrote it"])
        elif read.ended_ns < cluster.write.began_ns:
            writer = cluster.write.transaction
            fact = f"{name} found {value} in {key}, and had ended before {writer.name} began to write it"
            yield Anomaly("read of the future", [read.transaction, writer], [fact])


def contradiction(key, one, other):
    """Two values, each of which the register must have had before the other."""
    facts, transactions = [], []
    for before, after in ((one, other), (other, one)):
        end, begin = before.first_end, after.last_begin
        transactions += [access.transaction for access in (end, begin) if access.transaction]
        ended = f"{end.transaction.name} ended with" if end.transaction else "it began with"
        began = f"{begin.transaction.name} began, with {text(after.value)}"
        facts.append(f"{key}: {ended} {text(before.value)} before {began}")
    return Anomaly("not linearizable", list({t.index: t for t in transactions}.values()), facts)
