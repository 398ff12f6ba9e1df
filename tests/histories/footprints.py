"""The footprint of a transaction: per key, the version that it found and the values that it wrote.

*Found* is the version from outside, as it was before the transaction's own writes. Each model (lists,
registers) says how a read after own writes leads back to it. A transaction must see its own writes, and must
find the same version whenever it looks: a transaction in which this is not so has the anomaly `internal`.
"""

import dataclasses

from anomaly import Anomaly
from history import FAIL, OK

UNKNOWN = object()


@dataclasses.dataclass(slots=True)
class Footprint:
    transaction: object
    found: dict
    written: dict


class Lists:
    """A version is the whole list, so each read tells the order of all earlier versions."""

    write = "append"
    initial = ()

    @staticmethod
    def found_by(value, own):
        """The list without the own appends at its end; UNKNOWN if they are not there. Elle may write nil for []."""
        value = value or ()
        if not own:
            return value
        return value[: -len(own)] if value[-len(own) :] == tuple(own) else UNKNOWN

    @staticmethod
    def values_of(version):
        return version

    @staticmethod
    def last_of(version):
        return version[-1] if version else None


class Registers:
    """A version is one value. A read after an own write must give this write, and tells no more."""

    write = "w"
    initial = None

    @staticmethod
    def found_by(value, own):
        if not own:
            return value
        return None if value == own[-1] else UNKNOWN

    @staticmethod
    def values_of(version):
        return () if version is None else (version,)

    @staticmethod
    def last_of(version):
        return version


MODELS = {"list-append": Lists, "register": Registers}


def footprint_of(transaction, model, anomalies):
    footprint = Footprint(transaction, {}, {})
    for name, key, value in transaction.operations:
        if name != "r":
            footprint.written.setdefault(key, []).append(value)
            continue
        own = footprint.written.get(key, [])
        found = model.found_by(value, own)
        if found is UNKNOWN:
            fact = f"it wrote {own} to {key} and then read {text(value)}"
            anomalies.append(Anomaly("internal", [transaction], [fact]))
        elif own and model is Registers:
            continue
        elif footprint.found.setdefault(key, found) != found:
            fact = f"it found {text(footprint.found[key])} in {key}, and later {text(found)}"
            anomalies.append(Anomaly("internal", [transaction], [fact]))
    return footprint


def text(version):
    if isinstance(version, tuple):
        return f"[{' '.join(map(str, version))}]"
    return "nil" if version is None else str(version)


class Observations:
    """All footprints of a history, the writer of each value, and the transactions that must have committed.

    An unknown transaction has committed if anybody found one of its writes.
    """

    def __init__(self, history, model):
        self.model = model
        self.anomalies = []
        self.footprints = [footprint_of(transaction, model, self.anomalies) for transaction in history]
        self.writers = {}
        for footprint in self.footprints:
            for key, values in footprint.written.items():
                for value in values:
                    other = self.writers.setdefault((key, value), footprint)
                    assert other is footprint and values.count(value) == 1, f"{value} was written to {key} twice"
        self.committed = {f.transaction.index for f in self.footprints if f.transaction.outcome == OK}
        for footprint in self.footprints:
            self._observe(footprint)
        self._find_lost_updates()

    def is_committed(self, footprint):
        return footprint.transaction.index in self.committed

    def _observe(self, footprint):
        name = footprint.transaction.name
        for key, version in footprint.found.items():
            for value in self.model.values_of(version):
                writer = self.writers.get((key, value))
                if writer is None:
                    self._report("unwritten value", [footprint], f"{name} found {value} in {key}, nobody wrote it")
                elif writer.transaction.outcome == FAIL:
                    fact = f"{name} found {value} in {key}, which {writer.transaction.name} wrote and rolled back"
                    self._report("G1a (aborted read)", [footprint, writer], fact)
                elif writer is footprint:
                    self._report("internal", [footprint], f"it found {value} in {key} before it wrote it")
                else:
                    self.committed.add(writer.transaction.index)
            self._find_intermediate_read(footprint, key, version)

    def _find_intermediate_read(self, footprint, key, version):
        last = self.model.last_of(version)
        writer = self.writers.get((key, last))
        if writer and writer is not footprint and writer.written[key][-1] != last:
            names = footprint.transaction.name, writer.transaction.name
            fact = f"{names[0]} found {last} in {key}, but {names[1]} went on to {writer.written[key][-1]}"
            self._report("G1b (intermediate read)", [footprint, writer], fact)

    def _find_lost_updates(self):
        """Of two transactions that find the same version and write the key, one has overwritten the other unseen."""
        updaters = {}
        for footprint in self.footprints:
            if self.is_committed(footprint):
                for key in footprint.found.keys() & footprint.written.keys():
                    updaters.setdefault((key, footprint.found[key]), []).append(footprint)
        for (key, version), found in updaters.items():
            if len(found) > 1:
                self._report("lost update", found, f"each of them found {text(version)} in {key} and wrote {key}")

    def _report(self, name, footprints, fact):
        self.anomalies.append(Anomaly(name, [f.transaction for f in footprints], [fact]))
