"""Dependencies between transactions, as edges: which one must come before which.

- `ww`: the source installed a version, the target the version after it.
- `wr`: the target found the version that the source installed.
- `rw`: the source found a version, the target installed the one after it (an anti-dependency).

The order of versions comes from the longest list of each key, or for registers from transactions that found
one version and wrote the next, and from writes of which one ended before the other began.
"""

import dataclasses

from anomaly import Anomaly
from footprints import Lists, Observations, text
from history import OK


@dataclasses.dataclass(slots=True, frozen=True)
class Edge:
    source: int
    target: int
    kind: str
    key: object = None
    version: object = None
    next: object = None

    def fact(self):
        source, target = f"T{self.source}", f"T{self.target}"
        version = text(self.version)
        reasons = {
            "ww": f"{target} wrote {self.next} to {self.key} after {source} had written {version}",
            "wr": f"{target} found {version} in {self.key}, the last of it written by {source}",
            "rw": f"{source} found {version} in {self.key}, without the {self.next} of {target}",
            "session": f"the same client committed {source} before it began {target}",
            "realtime": f"{source} had committed before {target} began",
        }
        return f"{source} -{self.kind}-> {target}: {reasons[self.kind]}"


def list_edges(observations):
    """The edges of each key, and the anomalies that leave a key without an order."""
    anomalies, edges = [], []
    finders, appends = finders_of(observations), appends_of(observations)
    for key in finders.keys() | appends.keys():
        found = finders.get(key, [])
        faults = faults_of_lists(key, found)
        anomalies += faults
        if not faults:
            edges += edges_of_list(observations, key, found, appends.get(key, []))
    return anomalies, edges


def finders_of(observations):
    """Per key, who found which version."""
    finders = {}
    for footprint in observations.footprints:
        for key, version in footprint.found.items():
            finders.setdefault(key, []).append((version, footprint.transaction))
    return finders


def appends_of(observations):
    """Per key, the committed values in no particular order, with their writers."""
    appends = {}
    for footprint in observations.footprints:
        if observations.is_committed(footprint):
            for key, values in footprint.written.items():
                appends.setdefault(key, []).extend((value, footprint.transaction) for value in values)
    return appends


def faults_of_lists(key, found):
    for version, transaction in found:
        if len(set(version)) < len(version):
            twice = sorted({value for value in version if version.count(value) > 1})
            return [Anomaly("duplicate elements", [transaction], [f"{key} has {twice} more than once"])]
    longest, whose = max(found, key=lambda pair: len(pair[0]), default=((), None))
    for version, transaction in found:
        if version != longest[: len(version)]:
            fact = f"{text(version)} is no beginning of {text(longest)} in {key}"
            return [Anomaly("incompatible order", [transaction, whose], [fact])]
    return []


def edges_of_list(observations, key, found, appended):
    longest = max((version for version, _ in found), key=len, default=())
    writers = [observations.writers.get((key, value)) for value in longest]
    writers = [writer and writer.transaction.index for writer in writers]
    seen = set(longest)
    # An append that nobody found comes after every list that anybody found.
    unseen = [(value, transaction.index) for value, transaction in appended if value not in seen]
    for position in range(1, len(longest)):
        yield from edge(writers[position - 1], writers[position], "ww", key, longest[position - 1], longest[position])
    for value, writer in unseen:
        yield from edge(writers[-1] if writers else None, writer, "ww", key, longest[-1] if longest else None, value)
    for version, transaction in found:
        length = len(version)
        if length:
            yield from edge(writers[length - 1], transaction.index, "wr", key, version)
        followers = [(longest[length], writers[length])] if length < len(longest) else unseen
        for value, writer in followers:
            yield from edge(transaction.index, writer, "rw", key, version, value)


def edge(source, target, kind, key, version, next=None):
    if source is not None and target is not None and source != target:
        yield Edge(source, target, kind, key, version, next)


def register_edges(observations):
    edges, finders = [], finders_of(observations)
    installed = {}
    for footprint in observations.footprints:
        if observations.is_committed(footprint):
            for key, values in footprint.written.items():
                installed.setdefault(key, {})[values[-1]] = footprint
    for key in finders.keys() | installed.keys():
        edges += edges_of_register(key, finders.get(key, []), installed.get(key, {}))
    return [], edges


def edges_of_register(key, found, installed):
    followers = followers_of(key, installed)
    for version, next_versions in followers.items():
        for next_version in next_versions if version in installed else ():
            source, target = installed[version].transaction.index, installed[next_version].transaction.index
            yield from edge(source, target, "ww", key, version, next_version)
    for version, transaction in found:
        if version in installed:
            yield from edge(installed[version].transaction.index, transaction.index, "wr", key, version)
        for next_version in followers.get(version, ()):
            yield from edge(
                transaction.index, installed[next_version].transaction.index, "rw", key, version, next_version
            )


def followers_of(key, installed):
    """Per version, versions that certainly come later.

    The initial version comes before all that have no other before them.
    """
    followers = {}
    for value, footprint in installed.items():
        if key in footprint.found:
            followers.setdefault(footprint.found[key], set()).add(value)
    for value, later in immediate_followers(installed):
        followers.setdefault(value, set()).add(later)
    with_predecessor = set().union(*(later for version, later in followers.items() if version is not None))
    followers.setdefault(None, set()).update(set(installed) - with_predecessor)
    return followers


def immediate_followers(installed):
    """Pairs of writes of which the first ended before the second began, and no third lies between them."""
    writes = sorted(
        ((f.transaction.began_ns, f.transaction, value) for value, f in installed.items()), key=lambda w: (w[0], w[2])
    )
    for value, footprint in installed.items():
        if footprint.transaction.outcome != OK:
            continue  # an unknown commit may take effect after its answer was given up
        horizon = None
        for began_ns, transaction, later in writes:
            if began_ns <= footprint.transaction.ended_ns:
                continue
            if horizon is not None and began_ns > horizon:
                break
            yield value, later
            if transaction.outcome == OK:
                horizon = transaction.ended_ns if horizon is None else min(horizon, transaction.ended_ns)


def lost_appends(observations):
    """Acknowledged appends that a list lacks which was read after the last write of the history had ended."""
    writing = [f.transaction.ended_ns for f in observations.footprints if f.written]
    quiet_ns = max(writing, default=0)
    final = {}
    for footprint in observations.footprints:
        if footprint.transaction.began_ns > quiet_ns:
            final.update((key, (set(version), footprint.transaction)) for key, version in footprint.found.items())
    for key, appended in appends_of(observations).items():
        if key in final:
            present, reader = final[key]
            for value, transaction in appended:
                if value not in present and transaction.outcome == OK:
                    yield Anomaly(
                        "lost append", [transaction, reader], [f"{value} is missing in the last list of {key}"]
                    )


def infer(history, model):
    """The observations of a history, the anomalies that single reads show, and the edges between its transactions."""
    observations = Observations(history, model)
    anomalies, edges = (list_edges if model is Lists else register_edges)(observations)
    if model is Lists:
        anomalies += lost_appends(observations)
    return observations, observations.anomalies + anomalies, edges
