"""The order of random values of all types, by the script sort_order.py."""

import os
import pathlib
import subprocess
import sys

TARGET = pathlib.Path(os.environ.get("TARGET", pathlib.Path(__file__).parents[2] / "target"))


def test_random_values_sort_as_in_mongodb_by_comparing_and_by_key_bytes(oracle_server):
    script = pathlib.Path(__file__).parent / "sort_order.py"
    program = TARGET / "debug/examples/sort_values"
    assert program.exists(), f"build it: cargo build -p pando-keyorder --example sort_values ({program})"
    done = subprocess.run(
        [sys.executable, script, "--uri", oracle_server.uri, "--program", program, "--values", "3000"],
        capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
