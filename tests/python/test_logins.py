"""Logins by SCRAM, with access control and without."""

import pytest
from pymongo.errors import OperationFailure

from raw_connection import Raw
from scram_client import Attempt, going_on, log_in, start, stored_user
from server import Server

MECHANISMS = ["SCRAM-SHA-1", "SCRAM-SHA-256"]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server with access control, and the user ada of admin, who may do everything."""
    folder = tmp_path_factory.mktemp("guarded") / "data"
    server = Server(folder).start()
    with server.client() as client:
        users = [
            stored_user("ada", "admin", "secret", ["root"]),
            stored_user("old", "admin", "secret", ["root"], ["SCRAM-SHA-1"]),
            stored_user("new", "admin", "secret", ["root"], ["SCRAM-SHA-256"]),
            stored_user("ada", "test", "other", ["readWrite"]),
            stored_user("a,b=c", "admin", "secret", ["read"]),
        ]
        client.admin["system.users"].insert_many(users)
    assert server.stop() == 0
    server = Server(folder, "--auth").start()
    yield server
    assert server.terminate() == 0
    assert "panic" not in server.log()


@pytest.fixture
def raw(guarded):
    with Raw(guarded.port) as raw:
        yield raw


def users_of(raw):
    return raw.command("admin", {"connectionStatus": 1})["authInfo"]["authenticatedUsers"]


ADA = {"user": "ada", "db": "admin"}


@pytest.mark.parametrize("mechanism", [None, *MECHANISMS])
def test_pymongo_logs_in(guarded, mechanism):
    options = {"authMechanism": mechanism} if mechanism else {}
    with guarded.client(username="ada", password="secret", **options) as client:
        client.test.c.insert_one({"a": 1})
        assert client.test.c.count_documents({}) >= 1
        status = client.admin.command("connectionStatus", showPrivileges=True)["authInfo"]
        assert status["authenticatedUsers"] == [ADA]
        assert status["authenticatedUserRoles"] == [{"role": "root", "db": "admin"}]
        assert any(privilege["resource"] == {"cluster": True} for privilege in status["authenticatedUserPrivileges"])
    with guarded.client(username="ada", password="other", authSource="test", **options) as client:
        status = client.admin.command("connectionStatus")["authInfo"]
        assert status["authenticatedUsers"] == [{"user": "ada", "db": "test"}]


@pytest.mark.parametrize("mechanism", [None, *MECHANISMS])
@pytest.mark.parametrize("user, source", [("ada", "admin"), ("nobody", "admin"), ("ada", "nowhere")])
def test_a_wrong_name_and_a_wrong_password_are_refused_alike(guarded, mechanism, user, source):
    options = {"authMechanism": mechanism} if mechanism else {}
    with guarded.client(username=user, password="wrong", authSource=source, **options) as client:
        with pytest.raises(OperationFailure) as refused:
            client.test.c.find_one()
    assert refused.value.code == 18 and refused.value.details["errmsg"] == "Authentication failed."


def test_a_user_of_one_mechanism_logs_in_by_that(guarded):
    for user, mechanism in [("old", "SCRAM-SHA-1"), ("new", "SCRAM-SHA-256")]:
        with guarded.client(username=user, password="secret") as client:
            assert client.admin.command("connectionStatus")["authInfo"]["authenticatedUsers"][0]["user"] == user
        for asked in MECHANISMS:
            with Raw(guarded.port) as raw:
                reply = raw.ask("admin", start(Attempt(user, "secret", asked).first, asked))
                assert reply.get("code") == (None if asked == mechanism else 18)


def test_only_a_few_commands_are_answered_before_the_login(raw):
    for name in ["hello", "isMaster", "ping", "buildInfo", "connectionStatus", "whatsmyuri", "listCommands"]:
        assert raw.ask("admin", {name: 1})["ok"] == 1, name
    for request in [
        {"find": "c"}, {"insert": "c", "documents": [{}]}, {"listDatabases": 1}, {"logout": 1}, {"serverStatus": 1}, {"getCmdLineOpts": 1}, {"endSessions": []},
    ]:
        assert raw.ask("admin", request)["code"] == 13, request
    assert raw.ask("admin", {"bogus": 1})["code"] == 59


def test_the_last_exchange_is_empty_unless_it_is_skipped(raw):
    attempt = Attempt("ada", "secret")
    reply = raw.command("admin", start(attempt.first))
    assert (reply["conversationId"], reply["done"]) == (1, False)
    reply = raw.command("admin", going_on(attempt.final(reply["payload"])))
    assert (reply["conversationId"], reply["done"], reply["payload"]) == (1, False, b"v=" + attempt.signature)
    assert users_of(raw) == []
    reply = raw.command("admin", going_on(b""))
    assert (reply["conversationId"], reply["done"], reply["payload"]) == (1, True, b"")
    assert users_of(raw) == [ADA]
    assert raw.ask("admin", going_on(b""))["code"] == 17
    assert log_in(raw, "admin", "ada", "secret", skipEmptyExchange=True)["done"] is True


def test_a_hello_logs_in_speculatively(raw):
    attempt = Attempt("ada", "secret")
    speculative = start(attempt.first, db="admin", options={"skipEmptyExchange": True})
    hello = {"hello": 1, "saslSupportedMechs": "admin.ada", "speculativeAuthenticate": speculative}
    reply = raw.command("admin", hello)
    assert reply["saslSupportedMechs"] == ["SCRAM-SHA-256", "SCRAM-SHA-1"]
    begun = reply["speculativeAuthenticate"]
    assert raw.command("admin", going_on(attempt.final(begun["payload"])))["done"] is True
    assert users_of(raw) == [ADA]


def test_a_speculative_login_that_cannot_begin_is_passed_over(raw):
    for speculative in [
        start(b"nothing", db="admin"), start(Attempt("ada", "secret").first), start(b"", "BOGUS", db="admin"),
        {"authenticate": 1, "mechanism": "MONGODB-X509"},
    ]:
        assert "speculativeAuthenticate" not in raw.command("admin", {"hello": 1, "speculativeAuthenticate": speculative})
    for speculative, code in [({}, 2), (1, 14), ({"bogus": 1}, 51769)]:
        assert raw.ask("admin", {"hello": 1, "speculativeAuthenticate": speculative})["code"] == code


def test_a_name_without_a_user_cannot_be_told_from_one_with(guarded):
    def begun(name, mechanism):
        with Raw(guarded.port) as raw:
            attempt = Attempt(name, "wrong", mechanism)
            reply = raw.command("admin", start(attempt.first, mechanism))
            fields = dict(part.split("=", 1) for part in reply["payload"].decode().split(","))
            failed = raw.ask("admin", going_on(attempt.final(reply["payload"])))
            return fields["s"], fields["i"], failed["code"], failed["errmsg"]

    for mechanism in MECHANISMS:
        known, unknown = begun("ada", mechanism), begun("nobody", mechanism)
        assert known[1:] == unknown[1:] and len(known[0]) == len(unknown[0])
        assert unknown == begun("nobody", mechanism) and unknown != begun("nobody2", mechanism)
    with Raw(guarded.port) as raw:
        mechanisms = [raw.command("admin", {"hello": 1, "saslSupportedMechs": f"admin.{name}"}) for name in ["ada", "nobody"]]
        assert mechanisms[0]["saslSupportedMechs"] == mechanisms[1]["saslSupportedMechs"]


def test_messages_of_another_exchange_do_not_log_in(guarded):
    with Raw(guarded.port) as first, Raw(guarded.port) as second:
        attempt, other = Attempt("ada", "secret"), Attempt("ada", "secret")
        proof = attempt.final(first.command("admin", start(attempt.first))["payload"])
        reply = second.command("admin", start(other.first))
        # The proof of one connection on another, and a second time on its own.
        assert second.ask("admin", going_on(proof))["code"] == 18
        assert second.ask("admin", going_on(other.final(reply["payload"])))["code"] == 17
        assert first.command("admin", going_on(proof))["done"] is False
        assert first.command("admin", going_on(b""))["done"] is True
        assert first.ask("admin", going_on(proof))["code"] == 17
        first.command("admin", {"logout": 1})
        # The same first message gets another nonce, for which the old proof is wrong.
        again = first.command("admin", start(attempt.first))
        assert again["ok"] == 1 and first.ask("admin", going_on(proof))["code"] == 18
        assert users_of(first) == [] and users_of(second) == []


def test_spliced_messages_do_not_log_in(guarded):
    with Raw(guarded.port) as raw:
        for change in [
            lambda final: final.replace(b"c=biws", b"c=eSws"),
            lambda final: final.replace(b",p=", b",x=y,p="),
            lambda final: final.replace(b"r=", b"r=a"),
            lambda final: final[:-4] + b"AAA=",
            lambda final: final.split(b",p=")[0],
            lambda final: final + b"," + final,
            lambda final: b"",
        ]:
            attempt = Attempt("ada", "secret")
            reply = raw.command("admin", start(attempt.first))
            assert raw.ask("admin", going_on(change(attempt.final(reply["payload"]))))["code"] == 18
            assert users_of(raw) == []
        # The proof of another user's password.
        attempt = Attempt("new", "secret")
        reply = raw.command("admin", start(Attempt("ada", "secret", nonce=attempt.nonce).first))
        assert raw.ask("admin", going_on(attempt.final(reply["payload"])))["code"] == 18


@pytest.mark.parametrize("first", [
    b"", b"n,,", b"n,,n=ada", b"y,,n=ada,r=abcdefgh", b"p=tls-unique,,n=ada,r=abcdefgh", b"n,a=root,n=ada,r=abcdefgh",
    b"n,,m=x,n=ada,r=abcdefgh", b"n,,n=a=da,r=abcdefgh", b"n,,n=a\0da,r=abcdefgh", b"n,,n=\xff,r=abcdefgh",
    b"n,,n=ada,r=", b"n,,n=ada,r=\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9",
])
def test_a_first_message_that_is_none_is_refused(raw, first):
    assert raw.ask("admin", start(first))["code"] == 18
    assert raw.ask("admin", going_on(b"x"))["code"] == 17


@pytest.mark.parametrize("first", [b"n,,n=" + b"a" * 100_000 + b",r=abcdefgh", b"n,,n=ada,r=" + b"a" * 100_000])
def test_an_oversized_message_is_refused_and_ends_a_guarded_connection(guarded, server, first):
    with Raw(server.port) as raw:
        assert raw.ask("admin", start(first))["code"] == 18
        assert raw.ask("admin", going_on(b"x"))["code"] == 17
    with Raw(guarded.port) as raw, pytest.raises((AssertionError, OSError)):
        raw.ask("admin", start(first))


def test_names_that_look_alike_are_others(raw):
    for name in ["Ada", "ada ", " ada", "\u0430da", "ad\u0430", "ada\u200b", "a\u0301da", "ada.", "admin.ada"]:
        assert log_in(raw, "admin", name, "secret")["code"] == 18, name
    assert log_in(raw, "admin", "a,b=c", "secret")["done"] is True


def test_the_fields_are_checked(raw):
    first = Attempt("ada", "secret").first
    for request, code in [
        ({"saslStart": 1}, 40414), ({"saslStart": 1, "mechanism": "SCRAM-SHA-256"}, 40414), (start(first, "BOGUS"), 334),
        (start(first, "scram-sha-256"), 334), (start(first, ""), 334), (start(first, 1), 14), (start("!"), 10270), (start(1), 2),
        (start(first, bogus=1), 40415), (start(first, db="admin"), 40415), (start(first, options=1), 14),
        (start(first, options={"skipEmptyExchange": 1}), 2), ({"saslContinue": 1}, 40414), (going_on(b""), 17),
        (going_on(b"", "x"), 14), (going_on(b"", 1.0), 14), ({**going_on(b""), "bogus": 1}, 40415),
        ({"authenticate": 1}, 40414), ({"authenticate": 1, "mechanism": "MONGODB-CR"}, 334),
        ({"authenticate": 1, "mechanism": "MONGODB-X509"}, 17), ({"authenticate": 1, "mechanism": "SCRAM-SHA-1"}, 2),
    ]:
        assert raw.ask("admin", request)["code"] == code, request
    raw.command("admin", start(first))
    assert raw.ask("admin", going_on(b"", 2))["code"] == 17
    assert raw.ask("admin", going_on(b""))["code"] == 17


def test_a_connection_has_one_user_until_it_logs_out(raw):
    assert log_in(raw, "admin", "ada", "secret")["done"] is True
    assert log_in(raw, "admin", "ada", "secret", "SCRAM-SHA-1")["done"] is True
    assert log_in(raw, "admin", "old", "secret", "SCRAM-SHA-1")["code"] == 5626702
    assert log_in(raw, "test", "ada", "other")["code"] == 5626701
    raw.command("test", {"logout": 1})
    assert users_of(raw) == [ADA]
    raw.command("admin", {"logout": 1})
    assert users_of(raw) == [] and raw.ask("admin", {"find": "c"})["code"] == 13
    assert log_in(raw, "test", "ada", "other")["done"] is True
    assert users_of(raw) == [{"user": "ada", "db": "test"}]


def test_logins_work_without_access_control_and_change_nothing(server, client):
    users = client.admin["system.users"]
    users.insert_one(stored_user("loginless", "admin", "secret", ["read"]))
    try:
        with Raw(server.port) as raw:
            assert log_in(raw, "admin", "loginless", "wrong")["code"] == 18
            assert log_in(raw, "admin", "loginless", "secret")["done"] is True
            assert users_of(raw) == [{"user": "loginless", "db": "admin"}]
            assert raw.ask("admin", {"insert": "logins", "documents": [{"a": 1}]})["n"] == 1
            users.delete_one({"user": "loginless"})
            # The next request of the connection knows it.
            assert users_of(raw) == []
    finally:
        users.delete_one({"user": "loginless"})
