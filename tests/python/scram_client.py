"""The client's side of SCRAM, message by message, so that tests can send wrong ones; and the stored document of a user."""

import base64
import hashlib
import hmac
import os
import uuid

import bson

HASHES = {"SCRAM-SHA-1": "sha1", "SCRAM-SHA-256": "sha256"}
ROUNDS = {"SCRAM-SHA-1": 10_000, "SCRAM-SHA-256": 15_000}
SALT_BYTES = {"SCRAM-SHA-1": 16, "SCRAM-SHA-256": 28}


def secret(mechanism, user, password):
    """What the keys are derived from."""
    if mechanism == "SCRAM-SHA-1":
        return hashlib.md5(f"{user}:mongo:{password}".encode()).hexdigest().encode()
    return password.encode()


def mac(mechanism, key, data):
    return hmac.new(key, data, HASHES[mechanism]).digest()


def stored_user(user, database, password, roles, mechanisms=tuple(HASHES)):
    """A document of admin.system.users, as MongoDB writes it."""
    credentials = {}
    for mechanism in mechanisms:
        salt, rounds = os.urandom(SALT_BYTES[mechanism]), ROUNDS[mechanism]
        salted = hashlib.pbkdf2_hmac(HASHES[mechanism], secret(mechanism, user, password), salt, rounds)
        stored = hashlib.new(HASHES[mechanism], mac(mechanism, salted, b"Client Key")).digest()
        text = lambda data: base64.b64encode(data).decode()
        credentials[mechanism] = {
            "iterationCount": rounds, "salt": text(salt), "storedKey": text(stored),
            "serverKey": text(mac(mechanism, salted, b"Server Key"))}
    return {
        "_id": f"{database}.{user}", "userId": bson.Binary.from_uuid(uuid.uuid4()), "user": user, "db": database,
        "credentials": credentials, "roles": [{"role": role, "db": database} for role in roles]}


def start(first, mechanism="SCRAM-SHA-256", **more):
    return {"saslStart": 1, "mechanism": mechanism, "payload": first, **more}


def going_on(payload, conversation=1):
    return {"saslContinue": 1, "conversationId": conversation, "payload": payload}


class Attempt:
    """One login, of which each message can be changed before it is sent."""

    def __init__(self, user, password, mechanism="SCRAM-SHA-256", nonce=None):
        self.user, self.password, self.mechanism = user, password, mechanism
        self.nonce = nonce or base64.b64encode(os.urandom(24)).decode()
        self.bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={self.nonce}"
        self.signature = None

    @property
    def first(self):
        return f"n,,{self.bare}".encode()

    def final(self, server_first):
        fields = dict(part.split("=", 1) for part in server_first.decode().split(","))
        salt, rounds = base64.b64decode(fields["s"]), int(fields["i"])
        salted = hashlib.pbkdf2_hmac(HASHES[self.mechanism], secret(self.mechanism, self.user, self.password), salt, rounds)
        client_key = mac(self.mechanism, salted, b"Client Key")
        without_proof = f"c=biws,r={fields['r']}"
        signed = f"{self.bare},{server_first.decode()},{without_proof}".encode()
        signature = mac(self.mechanism, hashlib.new(HASHES[self.mechanism], client_key).digest(), signed)
        proof = bytes(left ^ right for left, right in zip(client_key, signature))
        self.signature = base64.b64encode(mac(self.mechanism, mac(self.mechanism, salted, b"Server Key"), signed))
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()


def log_in(raw, database, user, password, mechanism="SCRAM-SHA-256", **options):
    """Sends the messages of a whole login. Gives the last reply."""
    attempt = Attempt(user, password, mechanism)
    reply = raw.ask(database, start(attempt.first, mechanism, options=options))
    if not reply["ok"]:
        return reply
    reply = raw.ask(database, going_on(attempt.final(reply["payload"])))
    if reply["ok"]:
        assert reply["payload"] == b"v=" + attempt.signature
    if reply["ok"] and not reply["done"]:
        reply = raw.ask(database, going_on(b""))
    return reply
