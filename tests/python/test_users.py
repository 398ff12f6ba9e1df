"""Users and roles with access control: the first user, changes on open connections, secrets, restrictions, and `pando user`."""

import subprocess
import time

import pytest
from pymongo import MongoClient
from pymongo.errors import OperationFailure

from raw_connection import Raw
from scram_client import Attempt, going_on, log_in, start
from server import PANDO, Server


@pytest.fixture
def vacant(tmp_path):
    """A server with access control and without users."""
    server = Server(tmp_path / "data", "--auth").start()
    yield server
    if server.is_running():
        assert server.terminate() == 0
    assert "panic" not in server.log()


@pytest.fixture
def guarded(vacant):
    """The same with the user ada, who may do everything."""
    with vacant.client() as client:
        client.admin.command("createUser", "ada", pwd="secret", roles=["root"])
    return vacant


@pytest.fixture
def admin(guarded):
    with guarded.client(username="ada", password="secret") as client:
        yield client.admin


def users_of(raw):
    return [user["user"] for user in raw.command("admin", {"connectionStatus": 1})["authInfo"]["authenticatedUsers"]]


def test_the_first_user_is_made_on_this_machine_and_no_second_one(vacant):
    with Raw(vacant.port) as raw:
        assert raw.ask("admin", {"find": "c"})["code"] == 13
        assert raw.ask("test", {"createUser": "x", "pwd": "p", "roles": []})["code"] == 13
        assert raw.ask("admin", {"createUser": "", "pwd": "p", "roles": []})["code"] == 2
        raw.command("admin", {"createUser": "ada", "pwd": "secret", "roles": ["root"]})
        assert raw.ask("admin", {"createUser": "bob", "pwd": "secret", "roles": ["root"]})["code"] == 13
        assert log_in(raw, "admin", "ada", "secret")["done"]
        raw.command("admin", {"createUser": "bob", "pwd": "secret", "roles": ["root"]})
        raw.command("admin", {"dropAllUsersFromDatabase": 1})
        # The exception does not come back while the server runs.
        assert raw.ask("admin", {"createUser": "eve", "pwd": "p", "roles": ["root"]})["code"] == 13


def test_changes_take_effect_with_the_next_request(guarded, admin):
    admin.command("createUser", "open", pwd="p", roles=["readWrite"])
    with Raw(guarded.port) as raw:
        assert log_in(raw, "admin", "open", "p")["done"]
        admin.command("updateUser", "open", pwd="q")
        assert users_of(raw) == ["open"]
        admin.command("grantRolesToUser", "open", roles=["dbAdmin"])
        roles = raw.command("admin", {"connectionStatus": 1})["authInfo"]["authenticatedUserRoles"]
        assert {role["role"] for role in roles} == {"readWrite", "dbAdmin"}
        admin.command("createRole", "mine", privileges=[], roles=["read"])
        admin.command("updateUser", "open", roles=["mine"])
        roles = raw.command("admin", {"connectionStatus": 1})["authInfo"]["authenticatedUserRoles"]
        assert {role["role"] for role in roles} == {"mine", "read"}
        admin.command("dropRole", "mine")
        assert raw.command("admin", {"connectionStatus": 1})["authInfo"]["authenticatedUserRoles"] == []
        admin.command("updateUser", "open", authenticationRestrictions=[{"clientSource": ["10.0.0.1"]}])
        assert users_of(raw) == [] and log_in(raw, "admin", "open", "q")["code"] == 18
        admin.command("updateUser", "open", authenticationRestrictions=[{"clientSource": ["127.0.0.0/8"]}])
        assert log_in(raw, "admin", "open", "q")["done"]
        admin.command("dropUser", "open")
        assert raw.ask("admin", {"find": "c"})["code"] == 13
        admin.command("createUser", "open", pwd="q", roles=["root"])
        assert users_of(raw) == []
        assert log_in(raw, "admin", "open", "q")["done"]
        # Another user of the same name.
        admin.command("dropUser", "open")
        admin.command("createUser", "open", pwd="q", roles=["root"])
        assert users_of(raw) == []


def test_a_write_to_the_collection_itself_takes_effect_as_well(guarded, admin):
    admin.command("createUser", "open", pwd="p", roles=["read"])
    with Raw(guarded.port) as raw:
        assert log_in(raw, "admin", "open", "p")["done"]
        admin["system.users"].update_one({"user": "open"}, {"$set": {"roles": [{"role": "root", "db": "admin"}]}})
        assert raw.command("admin", {"connectionStatus": 1})["authInfo"]["authenticatedUserRoles"] == [{"role": "root", "db": "admin"}]
        admin["system.users"].delete_one({"user": "open"})
        assert users_of(raw) == []


def test_a_collection_that_is_renamed_takes_effect_as_well(guarded, admin):
    admin.command("createRole", "mine", privileges=[], roles=["read"])
    admin.command("createUser", "open", pwd="p", roles=["mine"])
    with Raw(guarded.port) as raw:
        roles = lambda: raw.command("admin", {"connectionStatus": 1})["authInfo"]["authenticatedUserRoles"]
        assert log_in(raw, "admin", "open", "p")["done"] and len(roles()) == 2
        # The role root has no right to it.
        admin.command("grantRolesToUser", "ada", roles=["__system"])
        admin.command("renameCollection", "admin.system.roles", to="admin.away")
        assert roles() == []


def test_a_user_that_is_dropped_during_his_login_is_not_logged_in(guarded, admin):
    admin.command("createUser", "short", pwd="p", roles=[])
    with Raw(guarded.port) as raw:
        attempt = Attempt("short", "p")
        reply = raw.command("admin", start(attempt.first))
        reply = raw.command("admin", going_on(attempt.final(reply["payload"])))
        admin.command("dropUser", "short")
        assert raw.ask("admin", going_on(b""))["code"] == 18
        admin.command("createUser", "short", pwd="p", roles=[])
        attempt = Attempt("short", "p")
        reply = raw.command("admin", start(attempt.first, options={"skipEmptyExchange": True}))
        admin.command("updateUser", "short", pwd="q")
        assert raw.ask("admin", going_on(attempt.final(reply["payload"])))["code"] == 18


@pytest.mark.parametrize("password", ["s\u00e9cret", "\u2168", "a\u00adb", "\u00a0x", "p\u0308"])
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-1", "SCRAM-SHA-256"])
def test_passwords_of_unicode_are_those_of_pymongo(server, client, password, mechanism):
    client.prepared.command("createUser", "u", pwd=password, roles=["read"])
    try:
        with server.client(username="u", password=password, authSource="prepared", authMechanism=mechanism) as user:
            assert user.prepared.command("connectionStatus")["authInfo"]["authenticatedUsers"] == [{"user": "u", "db": "prepared"}]
    finally:
        client.prepared.command("dropAllUsersFromDatabase")


def test_secrets_stand_in_no_log_and_no_list(guarded, admin):
    admin.command("profile", 2)
    admin.command("createUser", "quiet", pwd="hush-one", roles=[])
    admin.command("updateUser", "quiet", pwd="hush-two")
    with pytest.raises(OperationFailure):
        admin.command("createuser", "quiet", pwd="hush-three", roles=[])
    with pytest.raises(OperationFailure):
        admin.command("createUser", "quiet", pwd="hush-four", roles=["nope"])
    with MongoClient(guarded.uri, username="quiet", password="hush-two") as client:
        client.admin.command("connectionStatus")
    admin.command("profile", 0)
    profiled = list(admin["system.profile"].find())
    assert any(entry["command"].get("createUser") == "quiet" for entry in profiled)
    shown = str(profiled) + str(admin.command("getLog", "global")) + guarded.whole_log()
    assert "hush" not in shown and "n,,n=" not in shown
    assert str(admin.command("usersInfo", {"forAllDBs": True})).find("storedKey") < 0


def test_failed_logins_delay_those_that_follow(guarded):
    with Raw(guarded.port) as raw:
        began = time.monotonic()
        for _ in range(5):
            assert log_in(raw, "admin", "ada", "wrong")["code"] == 18
        quick = time.monotonic() - began
        began = time.monotonic()
        for _ in range(4):
            assert log_in(raw, "admin", "ada", "wrong")["code"] == 18
        slow = time.monotonic() - began
        assert slow > 1.2 > quick or slow > quick + 1
        # No thread waits: another client is answered meanwhile, and the right password is, a little later.
        attempt = Attempt("ada", "wrong")
        reply = raw.command("admin", start(attempt.first))
        raw.send("admin", going_on(attempt.final(reply["payload"])))
        with Raw(guarded.port) as other:
            began = time.monotonic()
            assert other.command("admin", {"ping": 1})["ok"] == 1
            assert time.monotonic() - began < 1
            assert log_in(other, "admin", "ada", "secret")["done"]


def run(*arguments, password=None):
    return subprocess.run([PANDO, *arguments], input=password, capture_output=True, text=True, timeout=120)


def test_users_are_made_without_a_server(tmp_path):
    folder = str(tmp_path / "data")
    added = run("user", "add", "ada", "--data", folder, password="secret\n")
    assert added.returncode == 0 and "added ada@admin" in added.stdout, added.stderr
    assert run("user", "add", "ada", "--data", folder, password="secret\n").returncode == 1
    assert run("user", "add", "bob", "--data", folder, password="\n").returncode == 2
    assert run("user", "add", "bob", "--db", "shop", "--data", folder, password="p").returncode == 2
    added = run("user", "add", "bob", "--db", "shop", "--role", "readWrite", "--role", "read@stock", "--data", folder, password="p")
    assert added.returncode == 0, added.stderr
    listed = run("user", "list", "--data", folder)
    assert listed.stdout.splitlines() == ["ada@admin  root@admin", "bob@shop  readWrite@shop read@stock"]
    server = Server(folder, "--auth").start()
    with server.client(username="ada", password="secret") as client:
        client.shop.c.insert_one({"a": 1})
    with server.client(username="bob", password="p", authSource="shop") as client:
        assert client.shop.c.count_documents({}) == 1
    assert server.terminate() == 0
    assert run("user", "remove", "bob", "--db", "shop", "--data", folder).returncode == 0
    assert run("user", "remove", "bob", "--db", "shop", "--data", folder).returncode == 1
    assert '"user":"ada"' in run("user", "list", "--json", "--data", folder).stdout.replace(" ", "")


def test_other_addresses_need_access_control(tmp_path):
    server = Server(tmp_path / "data", "--listen", "0.0.0.0:0")
    with pytest.raises(RuntimeError) as refused:
        server.start()
    assert "--auth" in str(refused.value)


def test_users_and_roles_outlive_a_kill(guarded, admin):
    admin.command("createRole", "r", privileges=[{"resource": {"db": "test", "collection": "c"}, "actions": ["find"]}], roles=[])
    admin.command("createUser", "bob", pwd="p", roles=["r"], writeConcern={"w": 1, "j": True})
    guarded.kill()
    guarded.start()
    with guarded.client(username="bob", password="p") as client:
        granted = client.admin.command("connectionStatus", showPrivileges=True)["authInfo"]["authenticatedUserPrivileges"]
        assert granted == [{"resource": {"db": "test", "collection": "c"}, "actions": ["find"]}]


def test_a_password_and_documents_do_not_share_standard_input():
    refused = run("import", "--collection", "c", "--username", "ada", "--password-file", "-", password='secret\n{"a": 1}\n')
    assert refused.returncode == 2 and "--password-file -" in refused.stderr, refused.stderr


def test_two_passwords_do_not_share_standard_input():
    sides = ["--from", "mongodb://127.0.0.1:1", "--from-username", "ada", "--to", "mongodb://127.0.0.1:2", "--username", "bob"]
    refused = run("copy", *sides, "--from-password-file", "-", "--password-file", "-", password="secret\n")
    assert refused.returncode == 2 and "--from-password-file -" in refused.stderr, refused.stderr


def test_every_tool_logs_in_by_a_file_of_the_password(guarded, tmp_path):
    password, own = tmp_path / "ada.txt", f"mongodb://127.0.0.1:{guarded.port}"
    password.write_text("secret\n")
    login = ["--username", "ada", "--password-file", password]
    cities = tmp_path / "cities.jsonl"
    cities.write_text('{"_id": 1, "name": "Utrecht"}\n')
    calls = [
        ["import", cities, "--uri", own], ["export", "--collection", "cities", "--uri", own], ["verify", "--uri", own], ["user", "list", "--uri", own],
        ["backup", "--uri", own, "--to", tmp_path / "backup"],
    ]
    for call in calls:
        stranger = run(*call)
        assert stranger.returncode == 1 and "log in with --username" in stranger.stderr, stranger.stderr
        assert run(*call, *login).returncode == 0, call
        refused = run(*call, "--username", "ada", "--password", "secret")
        assert refused.returncode == 2 and "--password-file" in refused.stderr, refused.stderr
    added = run("user", "add", "bob", "--uri", own, *login, password="p\n")
    assert added.returncode == 0, added.stderr
    twice = run("user", "add", "eve", "--uri", own, "--username", "ada", "--password-file", "-", password="secret\n")
    assert twice.returncode == 2 and "standard input" in twice.stderr, twice.stderr
    assert run("user", "remove", "bob", "--uri", own, *login).returncode == 0
    # A copy has two sides, and each has its login.
    copied = run("copy", "--from", own, "--from-username", "ada", "--from-password-file", password, "--to", tmp_path / "copy")
    assert copied.returncode == 0, copied.stderr
    copied = run("copy", "--from", tmp_path / "copy", "--to", own, "--drop", *login)
    assert copied.returncode == 0, copied.stderr


@pytest.mark.parametrize("call", [["import", "x.jsonl"], ["export", "-c", "x"], ["verify"], ["user", "list"], ["backup", "--to", "b"]], ids=lambda call: call[0])
def test_a_login_to_a_folder_is_refused(tmp_path, call):
    refused = run(*call, "--data", tmp_path / "none", "--username", "ada")
    assert refused.returncode == 2 and "--username" in refused.stderr, refused.stderr
