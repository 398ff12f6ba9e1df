"""A history: every transaction that clients tried, with its results and its outcome.

A micro-operation is a tuple `(name, key, value)`:
- `("append", key, value)` adds a value, unique for its key, to the end of a list;
- `("w", key, value)` sets a register to a value, unique for its key;
- `("r", key, value)` has read a list (a tuple, `()` where there is none yet) or a register (`None` where
  there is none).

Outcomes have Jepsen's names: `ok` is committed, `fail` is certainly not committed, `info` is unknown. Times
are those of one monotonic clock. `began_ns` was taken before the first statement was sent, `ended_ns` after
the last answer was there.
"""

import dataclasses
import threading

OK, FAIL, INFO = "ok", "fail", "info"


@dataclasses.dataclass(slots=True)
class Transaction:
    index: int
    process: int
    outcome: str
    operations: list
    began_ns: int
    ended_ns: int
    error: str = ""

    @property
    def name(self):
        return f"T{self.index}"

    def __str__(self):
        words = [word_of(operation) for operation in self.operations]
        error = f"  ({self.error})" if self.error else ""
        return f"{self.name} client {self.process} {self.outcome}: {', '.join(words)}{error}"


def word_of(operation):
    name, key, value = operation
    if isinstance(value, tuple):
        value = f"[{' '.join(map(str, value))}]"
    return f"{name} {key} {'nil' if value is None else value}"


class History:
    """The transactions of one run, in the order in which they ended. Threads may add to it at the same time."""

    def __init__(self, transactions=()):
        self.transactions = list(transactions)
        self.lock = threading.Lock()

    def add(self, process, outcome, operations, began_ns, ended_ns, error=""):
        with self.lock:
            index = len(self.transactions)
            self.transactions.append(Transaction(index, process, outcome, list(operations), began_ns, ended_ns, error))

    def copy(self):
        return History(dataclasses.replace(t, operations=list(t.operations)) for t in self.transactions)

    def __len__(self):
        return len(self.transactions)

    def __iter__(self):
        return iter(self.transactions)

    def __getitem__(self, index):
        return self.transactions[index]

    def outcomes(self):
        counts = {OK: 0, FAIL: 0, INFO: 0}
        for transaction in self.transactions:
            counts[transaction.outcome] += 1
        return counts
