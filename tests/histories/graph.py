"""Directed graphs with weights: strongly connected components, and the lightest cycle in one."""

import heapq


class Graph:
    """Nodes are integers. Of several edges between two nodes the lightest counts; each carries a label."""

    def __init__(self):
        self.successors = {}

    def add(self, source, target, weight, label=None):
        targets = self.successors.setdefault(source, {})
        self.successors.setdefault(target, {})
        if target not in targets or weight < targets[target][0]:
            targets[target] = (weight, label)

    def components(self):
        """The strongly connected components that have a cycle, by Tarjan's algorithm, without recursion."""
        order, low, on_stack, stack, found = {}, {}, set(), [], []
        for root in self.successors:
            if root in order:
                continue
            order[root] = low[root] = len(order)
            stack.append(root)
            on_stack.add(root)
            path = [(root, iter(self.successors[root]))]
            while path:
                node, targets = path[-1]
                target = next(targets, None)
                if target is None:
                    path.pop()
                    if path:
                        low[path[-1][0]] = min(low[path[-1][0]], low[node])
                    if low[node] == order[node]:
                        self._pop_component(node, stack, on_stack, found)
                elif target not in order:
                    order[target] = low[target] = len(order)
                    stack.append(target)
                    on_stack.add(target)
                    path.append((target, iter(self.successors[target])))
                elif target in on_stack:
                    low[node] = min(low[node], order[target])
        return found

    def _pop_component(self, root, stack, on_stack, found):
        component = []
        while not component or component[-1] != root:
            component.append(stack.pop())
            on_stack.discard(component[-1])
        if len(component) > 1 or root in self.successors[root]:
            found.append(component)

    def lightest_cycle(self, component, starts_max):
        """The lightest cycle through one of the first nodes of a component: its labels in order, without empty ones."""
        inside = set(component)
        best = None
        for start in sorted(component)[:starts_max]:
            cycle = self._lightest_way_back(start, inside, best[0] if best else None)
            best = cycle or best
        return [label for label in best[1] if label is not None]

    def _lightest_way_back(self, start, inside, limit):
        """The lightest cycle through one node, if it is lighter than the limit, as (weight, labels)."""
        weights, came_from, queue = {}, {}, [(0, start)]
        while queue:
            weight, node = heapq.heappop(queue)
            if limit is not None and weight >= limit:
                return None
            if node == start and weights:
                return weight, self._labels_to(start, came_from)
            if weight > weights.get(node, weight):
                continue
            for target, (step, _) in self.successors[node].items():
                if target in inside and weight + step < weights.get(target, float("inf")):
                    weights[target] = weight + step
                    came_from[target] = node
                    heapq.heappush(queue, (weight + step, target))
        return None

    def _labels_to(self, start, came_from):
        labels, node = [], start
        while True:
            before = came_from[node]
            labels.append(self.successors[before][node][1])
            node = before
            if node == start:
                return labels[::-1]
