"""Differences from MongoDB that are known and not mended yet: expected failures, by test.

`open_differences.txt` has one test a line (its identity without parameters), as a ratchet: a test that is not listed must pass, and a
line goes when its difference is mended. `ACCEPTANCE_STRICT=1` expects nothing, and shows every difference.
"""

import os
import pathlib

import pytest

LISTED = {
    line.split("#")[0].strip()
    for line in (pathlib.Path(__file__).parent / "open_differences.txt").read_text().splitlines()
    if line.split("#")[0].strip()
}


def expect(items):
    """Marks the listed tests."""
    if os.environ.get("ACCEPTANCE_STRICT"):
        return
    for item in items:
        name = f"{pathlib.Path(item.fspath).name}::{getattr(item, 'originalname', item.name)}"
        if name in LISTED:
            item.add_marker(pytest.mark.xfail(reason="a known difference, see open_differences.txt", strict=False))
