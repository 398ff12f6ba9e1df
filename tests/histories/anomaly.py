"""An anomaly: its name, the transactions that are in it, and a sentence for each fact that makes it one."""

import dataclasses


@dataclasses.dataclass
class Anomaly:
    name: str
    transactions: list = dataclasses.field(default_factory=list)
    facts: list = dataclasses.field(default_factory=list)

    def __str__(self):
        lines = [self.name]
        lines += [f"    {transaction}" for transaction in self.transactions]
        lines += [f"    - {fact}" for fact in self.facts]
        return "\n".join(lines)
