"""Cycles that an isolation level forbids, found as cycles of a graph of events.

Under snapshot isolation a transaction has two events, its start (its snapshot) and its commit. Each edge says
which event is earlier:

    ww, wr, session, realtime    commit of the source  ->  start of the target
    rw                           start of the source   ->  commit of the target
    every transaction            its start             ->  its commit

Under first-committer-wins a cycle of these events is exactly a cycle of transactions in which no two `rw`
edges are adjacent, and snapshot isolation forbids just these. Under serializability both events are one, so
every cycle is forbidden.

Real time needs no edge for each pair: completions form a chain in order of time, each commit leads into the
chain, and the chain leads to each start after it.

The lightest cycle is reported. Weights prefer cycles without real time, then those with few `rw` edges, then
short ones, so a simple anomaly is not hidden behind a complicated one.
"""

from anomaly import Anomaly
from dependencies import Edge
from graph import Graph
from history import OK

LEVELS = ("snapshot", "serializable")
ORDERS = ("none", "session", "realtime")
WEIGHTS = {"ww": 1, "wr": 2, "rw": 1_000, "session": 1_000_000, "realtime": 1_000_000}
STARTS_MAX = 40
REPORTS_MAX = 10


class Events:
    """The graph of events of a history at one level."""

    def __init__(self, history, level):
        self.history = history
        self.graph = Graph()
        self.commit_offset = 1 if level == "snapshot" else 0
        if level == "snapshot":
            for transaction in history:
                self.graph.add(self.start(transaction.index), self.commit(transaction.index), 0)

    def start(self, index):
        return 2 * index

    def commit(self, index):
        return 2 * index + self.commit_offset

    def add(self, edge):
        if edge.kind == "rw":
            source, target = self.start(edge.source), self.commit(edge.target)
        else:
            source, target = self.commit(edge.source), self.start(edge.target)
        self.graph.add(source, target, WEIGHTS[edge.kind], edge)

    def add_sessions(self):
        last = {}
        for transaction in sorted(self.history, key=lambda t: t.began_ns):
            before = last.get(transaction.process)
            if before is not None:
                self.add(Edge(before, transaction.index, "session"))
            if transaction.outcome == OK:
                last[transaction.process] = transaction.index

    def add_realtime(self):
        """The chain of completions. An unknown transaction may commit at any time, so it is not in it."""
        completed = sorted((t.ended_ns, t.index) for t in self.history if t.outcome == OK)
        first = 2 * len(self.history)
        for position, (_, index) in enumerate(completed):
            self.graph.add(self.commit(index), first + position, 0, Edge(index, index, "realtime"))
            if position:
                self.graph.add(first + position - 1, first + position, 0)
        position = -1
        for transaction in sorted(self.history, key=lambda t: t.began_ns):
            while position + 1 < len(completed) and completed[position + 1][0] < transaction.began_ns:
                position += 1
            if position >= 0:
                start = self.start(transaction.index)
                self.graph.add(
                    first + position, start, WEIGHTS["realtime"], Edge(transaction.index, transaction.index, "realtime")
                )

    def cycles(self):
        for component in self.graph.components()[:REPORTS_MAX]:
            yield without_chain(self.graph.lightest_cycle(component, STARTS_MAX))


def without_chain(edges):
    """A cycle in which each way through the chain, one edge in and one edge out, is a single edge."""
    while edges[-1].kind == "realtime":
        edges = edges[-1:] + edges[:-1]
    joined, rest = [], iter(edges)
    for edge in rest:
        joined.append(Edge(edge.source, next(rest).target, "realtime") if edge.kind == "realtime" else edge)
    return joined


def name_of(cycle):
    kinds = [edge.kind for edge in cycle]
    suffix = "-realtime" if "realtime" in kinds else "-session" if "session" in kinds else ""
    anti = kinds.count("rw")
    adjacent = any(kinds[i - 1] == kinds[i] == "rw" for i in range(len(kinds)))
    if anti == 0:
        return f"G0{suffix} (write cycle)" if "wr" not in kinds else f"G1c{suffix} (circular information flow)"
    if anti == 1:
        return f"G-single{suffix} (read skew)"
    if not adjacent:
        return f"G-nonadjacent{suffix} (long fork)"
    return f"G2-item{suffix} (write skew)"


def anomaly_of(history, cycle):
    """A cycle as an anomaly: each transaction once, in the order of the cycle."""
    indices = dict.fromkeys(edge.source for edge in cycle)
    return Anomaly(name_of(cycle), [history[index] for index in indices], [edge.fact() for edge in cycle])


def find_cycles(history, edges, level, order):
    """Anomalies of the data alone; where there are none, those that need the order of sessions or real time as well."""
    for added_order in dict.fromkeys(("none", order)):
        events = Events(history, level)
        for edge in edges:
            events.add(edge)
        if added_order == "session":
            events.add_sessions()
        if added_order == "realtime":
            events.add_realtime()
        anomalies = [anomaly_of(history, cycle) for cycle in events.cycles()]
        if anomalies:
            return anomalies
    return []
