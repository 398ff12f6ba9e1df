"""Encrypted stores: the server and the tools with keys, without keys, and with wrong ones."""

import os
import random
import subprocess
import time

import pytest

from server import PANDO, Server

MARKER = "Vermilion-Quartz"


def key_file(folder, name="master.key", digit="5a"):
    path = folder / name
    path.write_text(digit * 32 + "\n")
    path.chmod(0o600)
    return str(path)


def pando(*arguments):
    return subprocess.run([PANDO, *map(str, arguments)], capture_output=True, text=True, timeout=120)


def refusal(folder, *arguments, engine="betree"):
    with pytest.raises(RuntimeError) as error:
        Server(folder, *arguments, engine=engine).start()
    return str(error.value)


def fill(server):
    with server.client() as client:
        people = client["shop"][f"people-{MARKER}"]
        people.insert_many([{"_id": number, "name": f"{MARKER} {number}", "text": MARKER * 20} for number in range(2_000)])
        people.create_index([("name", 1)])
        assert people.count_documents({}) == 2_000


def files_with_marker(folder):
    return [path for path in folder.rglob("*") if path.is_file() and MARKER.encode() in path.read_bytes()]


def test_a_store_is_served_with_its_key_alone_and_no_file_has_its_data(tmp_path):
    key, other = key_file(tmp_path), key_file(tmp_path, "other.key", "a5")
    server = Server(tmp_path / "data", "--encryption-key-file", key).start()
    fill(server)
    with server.client() as client:
        people = client["shop"][f"people-{MARKER}"]
        assert "5a5a" not in str(client.admin.command("currentOp", {"$all": True})) + server.whole_log()
        assert len(list(people.aggregate([{"$sort": {"text": 1, "name": -1}}], allowDiskUse=True))) == 2_000
        client.admin.command("pandoBackup", 1, to=str(tmp_path / "backup"))
    assert not files_with_marker(tmp_path / "data")
    assert server.stop() == 0
    assert not files_with_marker(tmp_path / "data") and not files_with_marker(tmp_path / "backup")

    assert "is encrypted" in refusal(tmp_path / "data") and "--encryption-key-file" in refusal(tmp_path / "data")
    assert "other.key does not have the master key" in refusal(tmp_path / "data", "--encryption-key-file", other)
    os.chmod(key, 0o644)
    assert "chmod 0600" in refusal(tmp_path / "data", "--encryption-key-file", key)
    os.chmod(key, 0o600)
    assert "needs a key" in refusal(tmp_path / "data", "--enableEncryption")

    assert pando("verify", tmp_path / "data").returncode != 0
    sound = pando("verify", tmp_path / "data", "--collections", "--encryption-key-file", key)
    assert sound.returncode == 0, sound.stderr
    exported = ["export", "--data", tmp_path / "data", "--db", "shop", "--collection", f"people-{MARKER}"]
    assert pando(*exported).returncode != 0
    assert pando(*exported, "--encryption-key-file", key).stdout.count(f"{MARKER} ") >= 2_000

    assert pando("restore", tmp_path / "backup", "--to", tmp_path / "restored").returncode != 0
    restored = pando("restore", tmp_path / "backup", "--to", tmp_path / "restored", "--encryption-key-file", key)
    assert restored.returncode == 0, restored.stderr
    server = Server(tmp_path / "restored", "--enableEncryption", "--encryptionKeyFile", key, "--encryptionCipherMode", "AES256-GCM").start()
    with server.client() as client:
        assert client["shop"][f"people-{MARKER}"].count_documents({"name": f"{MARKER} 7"}) == 1
    server.kill()
    server = Server(tmp_path / "restored", "--encryption-key-file", key).start()
    assert server.stop() == 0


def test_a_plain_store_becomes_encrypted_by_a_copy(tmp_path):
    key = key_file(tmp_path)
    server = Server(tmp_path / "plain").start()
    fill(server)
    assert server.stop() == 0
    assert "is not encrypted" in refusal(tmp_path / "plain", "--encryption-key-file", key)
    copied = pando("copy", "--from", tmp_path / "plain", "--to", tmp_path / "sealed", "--encryption-key-file", key,
                   "--encryption-cipher", "ChaCha20-Poly1305")
    assert copied.returncode == 0, copied.stderr
    assert files_with_marker(tmp_path / "plain") and not files_with_marker(tmp_path / "sealed")
    back = pando("copy", "--from", tmp_path / "sealed", "--to", tmp_path / "back", "--from-encryption-key-file", key)
    assert back.returncode == 0, back.stderr


def test_keys_rotate_and_may_come_from_a_command(tmp_path):
    old, new = key_file(tmp_path, "old.key", "5a"), key_file(tmp_path, "new.key", "a5")
    server = Server(tmp_path / "data", "--encryption-key-file", old).start()
    fill(server)
    assert server.stop() == 0
    rotate = ["key", "rotate", "--data", tmp_path / "data"]
    wrong = pando(*rotate, "--encryption-key-file", new, "--new-encryption-key-file", old)
    assert wrong.returncode == 1 and "does not have the master key" in wrong.stderr
    twin = key_file(tmp_path, "twin.key", "5a")
    same = pando(*rotate, "--encryption-key-file", old, "--new-encryption-key-file", twin, "--new-data-key")
    assert same.returncode == 1 and "twin.key has the master key that the store has already" in same.stderr
    done = pando(*rotate, "--encryption-key-file", old, "--new-encryption-key-file", new, "--new-data-key")
    assert done.returncode == 0 and "2 data keys" in done.stdout, done.stderr
    assert "does not have the master key" in refusal(tmp_path / "data", "--encryption-key-file", old)
    hook = tmp_path / "hook"
    hook.write_text(f"#!/bin/sh\ntest \"$1\" = shop/2 && cat {old}\n")
    hook.chmod(0o700)
    done = pando(*rotate, "--encryption-key-file", new, "--new-encryption-key-command", hook, "--new-encryption-key-id", "shop/2")
    assert done.returncode == 0, done.stderr
    # The store names its key, whatever the id for new stores is.
    server = Server(tmp_path / "data", "--encryption-key-command", str(hook)).start()
    with server.client() as client:
        assert client["shop"][f"people-{MARKER}"].count_documents({}) == 2_000
    assert "encrypted under the key 'shop/2' of the key command" in server.whole_log()
    assert server.stop() == 0
    named = ["--encryption-key-command", str(hook), "--encryption-key-id"]
    other = refusal(tmp_path / "data", *named, "shop/1")
    assert "names the master key 'shop/2', not 'shop/1'" in other and "leave the option out" in other
    assert "a key file has one key" in refusal(tmp_path / "data", "--encryption-key-file", old, "--encryption-key-id", "shop/2")
    assert "no part of it is '..'" in refusal(tmp_path / "data", *named, "shop/../2")
    assert pando("verify", tmp_path / "data", *named, "shop/1").returncode == 1
    assert pando("verify", tmp_path / "data", *named, "shop/2").returncode == 0
    server = Server(tmp_path / "data", *named, "shop/2").start()
    assert server.stop() == 0
    hook.write_text("#!/bin/sh\nexit 3\n")
    assert "exit status: 3" in refusal(tmp_path / "data", "--encryption-key-command", str(hook))
    hook.write_text("#!/bin/sh\nsleep 60\n")
    late = refusal(tmp_path / "data", "--encryption-key-command", str(hook), "--encryption-key-timeout", "1")
    assert str(hook) in late and "within 1 s" in late and "--encryption-key-timeout" in late
    late = pando("verify", tmp_path / "data", "--encryption-key-command", hook, "--encryption-key-timeout", "1")
    assert late.returncode == 1 and "within 1 s" in late.stderr


def test_a_rotation_that_is_killed_leaves_exactly_one_master_key_in_force(tmp_path):
    keys = [key_file(tmp_path, "old.key", "5a"), key_file(tmp_path, "new.key", "a5")]
    server = Server(tmp_path / "data", "--encryption-key-file", keys[0]).start()
    fill(server)
    assert server.stop() == 0

    def rotation():
        return subprocess.Popen([PANDO, "key", "rotate", "--data", tmp_path / "data", "--encryption-key-file", keys[0],
                                 "--new-encryption-key-file", keys[1], "--new-data-key"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def in_force():
        return [key for key in keys if pando("key", "status", "--data", tmp_path / "data", "--encryption-key-file", key).returncode == 0]

    begun = time.monotonic()
    assert rotation().wait() == 0
    whole, chance, outcomes = time.monotonic() - begun, random.Random(7), set()
    keys.reverse()
    for _ in range(20):
        assert in_force() == keys[:1]
        killed = rotation()
        time.sleep(chance.uniform(0, 1.1 * whole))
        killed.kill()
        killed.wait()
        found = in_force()
        assert len(found) == 1, found
        outcomes.add(found == keys[:1])
        if found != keys[:1]:
            keys.reverse()
    assert outcomes == {True, False}
    assert pando("verify", tmp_path / "data", "--collections", "--encryption-key-file", keys[0]).returncode == 0
    server = Server(tmp_path / "data", "--encryption-key-file", keys[0]).start()
    with server.client() as client:
        assert client["shop"][f"people-{MARKER}"].count_documents({}) == 2_000
    assert server.stop() == 0


def test_an_encryption_option_without_effect_stops_the_server(tmp_path):
    key = key_file(tmp_path)
    for options, words in (
        (["--encryption-cipher", "AES256-GCM"], "--encryption-cipher needs a key"),
        (["--encryption-key-id", "shop/1"], "--encryption-key-id is for --encryption-key-command"),
        (["--encryption-key-timeout", "9"], "--encryption-key-timeout is for --encryption-key-command"),
        (["--encryption-key-file", key, "--encryption-key-timeout", "9"], "a key file has one key"),
    ):
        assert words in refusal(tmp_path / "data", *options), options
        assert not (tmp_path / "data" / "data.0000").exists()
    server = Server(tmp_path / "data", "--encryption-key-file", key, "--encryption-cipher", "ChaCha20-Poly1305").start()
    assert server.stop() == 0
    other = refusal(tmp_path / "data", "--encryption-key-file", key, "--encryption-cipher", "AES256-GCM")
    assert "has the cipher ChaCha20-Poly1305" in other and "pando copy" in other
    for same in ([], ["--encryption-cipher", "ChaCha20-Poly1305"]):
        server = Server(tmp_path / "data", "--encryption-key-file", key, *same).start()
        assert server.stop() == 0


def test_a_server_rewrites_the_store_under_a_new_data_key(tmp_path):
    key = key_file(tmp_path)
    named = ["--encryption-key-file", key]
    server = Server(tmp_path / "data", *named).start()
    fill(server)
    assert server.stop() == 0
    rotated = pando("key", "rotate", "--data", tmp_path / "data", *named, "--new-data-key")
    assert rotated.returncode == 0 and "2 data keys" in rotated.stdout, rotated.stderr
    server = Server(tmp_path / "data", *named, "--engine-option", "keyRewriteRate=0").start()
    with server.client() as client:
        def section():
            return client.admin.command("serverStatus")["security"]["encryptionAtRest"]

        assert (section()["dataKeys"], section()["rewriting"]["phase"]) == (2, "rewriting")
        operations = client.admin.command("currentOp", desc="KeyRewriting")["inprog"]
        assert [(op["msg"], op["progress"]["total"] > 0) for op in operations] == [("Key rewriting: rewriting", True)]
        told = pando("key", "status", "--uri", f"mongodb://127.0.0.1:{server.port}")
        assert told.returncode == 0 and told.stdout.startswith("2 data keys; rewriting: pass 1, 0 B of "), told
        client.admin.command("setParameter", 1, betreeKeyRewriteRate="64MB")
        deadline = time.monotonic() + 90
        while section()["dataKeys"] == 2:
            assert time.monotonic() < deadline, section()
            time.sleep(0.2)
        assert section()["rewriting"]["phase"] == "none" and section()["rewriting"]["rewrittenBytes"] > 10_000
        assert client.admin.command("currentOp", desc="KeyRewriting")["inprog"] == []
        assert client["shop"][f"people-{MARKER}"].count_documents({}) == 2_000
    server.kill()
    told = pando("key", "status", "--data", tmp_path / "data", *named)
    assert told.stdout == "1 data key; nothing is to be rewritten\n", told
    assert pando("verify", tmp_path / "data", "--collections", *named).returncode == 0
    plain = Server(tmp_path / "plain").start()
    told = pando("key", "status", "--uri", f"mongodb://127.0.0.1:{plain.port}")
    assert told.returncode == 1 and "is not encrypted" in told.stderr
    assert plain.stop() == 0


def test_a_key_that_would_have_no_effect_is_a_usage_error(tmp_path):
    key, uri = key_file(tmp_path), "mongodb://127.0.0.1:1"
    for command in (
        ["verify", "--uri", uri],
        ["export", "--uri", uri, "--db", "shop", "--collection", "people"],
        ["export", "--host", "127.0.0.1:1", "--db", "shop", "--collection", "people"],
        ["import", "--db", "shop", "--collection", "people"],
        ["user", "list", "--uri", uri],
        ["backup", "--uri", uri, "--to", tmp_path / "backup"],
        ["copy", "--from", tmp_path / "data", "--to", uri],
    ):
        refused = pando(*command, "--encryption-key-file", key)
        assert refused.returncode == 2 and "a server has its own" in refused.stderr, (command, refused.stderr)
    refused = pando("copy", "--from", uri, "--to", tmp_path / "data", "--from-encryption-key-file", key)
    assert refused.returncode == 2 and "--from-encryption-key-file" in refused.stderr
    refused = pando("copy", "--from", uri, "--to", tmp_path / "data", "--encryption-cipher", "AES256-GCM")
    assert refused.returncode == 2 and "needs a key" in refused.stderr


def test_keys_that_stayed_behind_are_not_written_over(tmp_path):
    key = key_file(tmp_path)
    server = Server(tmp_path / "data", "--encryption-key-file", key).start()
    fill(server)
    assert server.stop() == 0
    kept = (tmp_path / "data" / "keys").read_bytes()
    for name in ("data.0000", "wal"):
        (tmp_path / "data" / name).rename(tmp_path / name)
    for arguments in (["--encryption-key-file", key], []):
        assert "has its keys ('keys') and no data file" in refusal(tmp_path / "data", *arguments)
    assert (tmp_path / "data" / "keys").read_bytes() == kept
    for name in ("data.0000", "wal"):
        (tmp_path / name).rename(tmp_path / "data" / name)
    server = Server(tmp_path / "data", "--encryption-key-file", key).start()
    assert server.stop() == 0


def test_other_engines_refuse_a_key(tmp_path):
    assert "does not encrypt" in refusal(tmp_path / "data", "--encryption-key-file", key_file(tmp_path), engine="memory")
