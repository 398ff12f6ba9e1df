"""`pando ping`: whether a server answers, by the exit code."""

import contextlib
import json
import socket
import subprocess

from server import PANDO, Server, free_port


def ping(*arguments, **more):
    return subprocess.run([PANDO, "ping", *arguments], capture_output=True, text=True, timeout=100, **more)


def test_a_server_that_answers_is_told_with_its_version(tmp_path):
    server = Server(tmp_path / "data").start()
    try:
        done = ping("--uri", server.uri)
        assert done.returncode == 0 and "answers in" in done.stdout and "Pando" in done.stdout and done.stderr == "", done
        told = json.loads(ping("--uri", server.uri, "--json").stdout)
        with server.client() as client:
            assert told["answers"] and told["pando"] == client.admin.command("buildInfo")["pando"]["version"]
        quiet = ping("--uri", server.uri, "--quiet")
        assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
    finally:
        assert server.stop() == 0


def test_a_server_that_starts_meanwhile_is_waited_for(tmp_path):
    port = free_port()
    waiting = subprocess.Popen([PANDO, "ping", "--uri", f"mongodb://127.0.0.1:{port}", "--wait", "60"], stdout=subprocess.PIPE, text=True)
    server = Server(tmp_path / "data").start(port)
    try:
        assert "answers in" in waiting.communicate(timeout=90)[0] and waiting.returncode == 0
    finally:
        assert server.stop() == 0


def test_no_server_and_one_that_keeps_silent_are_told_apart():
    absent = ping("--uri", f"mongodb://127.0.0.1:{free_port()}")
    assert absent.returncode == 1 and "cannot reach a server" in absent.stderr, absent.stderr
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(100)
        silent = ping("--uri", f"mongodb://127.0.0.1:{listener.getsockname()[1]}", "--within", "1", "--json")
        again = ping("--uri", f"mongodb://127.0.0.1:{listener.getsockname()[1]}", "--within", "1", "--wait", "3")
        listener.setblocking(False)
        tries = 0
        with contextlib.suppress(BlockingIOError):
            while listener.accept():
                tries += 1
    assert again.returncode == 1 and tries >= 3, (again, tries)
    assert silent.returncode == 1 and "has not answered within 1 s" in json.loads(silent.stdout)["error"], silent
    for faulty in (["--uri", "data"], ["--wait", "soon"], ["--within", "2h"]):
        assert ping(*faulty).returncode == 2, faulty


def test_a_refused_login_ends_at_once_and_a_right_one_answers(tmp_path):
    server = Server(tmp_path / "data", "--auth").start()
    try:
        with server.client() as client:
            client.admin.command("createUser", "ada", pwd="secret", roles=["root"])
        assert ping("--uri", server.uri).returncode == 0, "ping needs no login"
        login = ["--username", "ada", "--password-file", "-"]
        assert ping("--uri", server.uri, *login, input="secret\n").returncode == 0
        refused = ping("--uri", server.uri, *login, "--wait", "3600", input="wrong\n")
        assert refused.returncode == 1 and "uthentication" in refused.stderr, refused.stderr
    finally:
        assert server.stop() == 0
