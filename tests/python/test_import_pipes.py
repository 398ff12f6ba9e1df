"""`pando import` from what can be read once only: a named pipe, and the pipe of another program."""

import os
import subprocess
import threading

import pytest

from server import PANDO

LINES = b'{"_id":1}\n{"_id":2}\n'


def run(arguments, **options):
    return subprocess.run([PANDO, *arguments], capture_output=True, timeout=60, **options)


def imported(tmp_path, source, **options):
    done = run(["import", str(source), "--data", str(tmp_path / "data"), "--db", "d", "--collection", "c", "--drop"], **options)
    assert done.returncode == 0, done.stderr
    listed = run(["export", "--data", str(tmp_path / "data"), "--db", "d", "--collection", "c"])
    return listed.stdout


@pytest.mark.parametrize("content", [LINES, LINES + b'{"_id":3,"text":"' + b"x" * 100_000 + b'"}\n'], ids=["short", "long"])
def test_a_named_pipe_is_read_once(tmp_path, content):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[content], daemon=True)
    writer.start()
    assert imported(tmp_path, pipe) == content
    writer.join(timeout=60)


def test_standard_input_has_a_path_too(tmp_path):
    assert imported(tmp_path, "/dev/stdin", input=LINES) == LINES
