"""The relay over TLS: certificates, reloading, hostile handshakes, and what passes through."""

import asyncio
import contextlib
import http.client
import os
import shutil
import socket
import ssl
import subprocess
import time

import pytest

import daemons
import relays
from relays import GOT
from test_relay import raw, run


class Secure:
    """A relay over TLS, and what its clients need."""

    def __init__(self, directory, *options):
        self.directory = directory
        self.authority, self.chain, self.key = relays.certificate(directory)
        self.relay = relays.Relay("--tls-cert", self.chain, "--tls-key", self.key, "--metrics", "127.0.0.1:0", *options)
        self.context = ssl.create_default_context(cafile=self.authority)
        self.url = f"https://127.0.0.1:{self.relay.port}"

    def client(self, **more):
        return relays.client(self.url, ssl=self.context, **more)

    def subject(self):
        with socket.create_connection(("127.0.0.1", self.relay.port), 5) as plain:
            with self.context.wrap_socket(plain, server_hostname="localhost") as secure:
                return dict(pair[0] for pair in secure.getpeercert()["subject"])["commonName"], secure.version()


@pytest.fixture
def secure(tmp_path):
    secure = Secure(tmp_path)
    yield secure
    secure.relay.close()


def test_pages_and_datagrams_over_tls(secure):
    connection = http.client.HTTPSConnection("127.0.0.1", secure.relay.port, timeout=5, context=secure.context)
    for _ in range(3):
        connection.request("GET", "/ping")
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200

    async def scenario():
        async with secure.client() as one, secure.client() as two:
            for number in range(300):
                await one.send(two.id, number.to_bytes(4, "big") + os.urandom(1200))
                await two.send(one.id, b"y" * 60_000)
                assert (await two.receive())[:38] == bytes([GOT]) + one.id + b"\0" + number.to_bytes(4, "big")
                assert len(await one.receive()) == 60_034
    run(scenario())
    assert secure.relay.metrics()["culvert_relay_certificate_end_seconds"] > time.time() + 86_000


def test_many_datagrams_at_once_over_tls_arrive_in_order(secure):
    async def scenario():
        async with secure.client() as one, secure.client() as two:
            async def send():
                for number in range(20_000):
                    await one.send(two.id, number.to_bytes(4, "big") + b"x" * 1000)
                    if number % 200 == 0:
                        await asyncio.sleep(0.005)

            sender = asyncio.ensure_future(send())
            last = -1
            count = 0
            while last < 19_990:
                number = int.from_bytes((await two.receive())[34:38], "big")
                assert number > last
                last, count = number, count + 1
            await sender
            assert count > 15_000
    run(scenario())


def test_nothing_is_left_lying_between_tls_and_the_socket(secure):
    async def scenario():
        async with secure.client() as one:
            for size in range(20_000, 65_000, 1_111):
                for _ in range(3):
                    await one.send(os.urandom(32), b"x" * size)
                await one.synchronize()  # The Pong comes although nothing more arrives at the socket.
    run(scenario())


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_both_versions_of_tls_and_no_older_one(secure, version):
    number = getattr(ssl.TLSVersion, version.replace(".", "_"))
    secure.context.minimum_version = secure.context.maximum_version = number
    assert secure.subject()[1] == version
    done = subprocess.run(["openssl", "s_client", "-tls1_1", "-cipher", "ALL:@SECLEVEL=0", "-connect",
                           f"127.0.0.1:{secure.relay.port}"], stdin=subprocess.DEVNULL, capture_output=True, timeout=10)
    assert done.returncode != 0


def test_a_new_certificate_without_dropping_anyone(secure):
    async def scenario():
        async with secure.client() as old:
            _, chain, key = relays.certificate(secure.directory, "renewed")
            shutil.copy(chain, secure.chain)
            assert "stay as they were" in secure.relay.reload(), "the old key does not fit the new certificate"
            assert (await asyncio.to_thread(secure.subject))[0] == "server"
            shutil.copy(key, secure.key)
            assert "read again" in secure.relay.reload()
            assert (await asyncio.to_thread(secure.subject))[0] == "renewed"
            async with secure.client() as new:
                await new.send(old.id, b"hello")
                assert (await old.receive())[34:] == b"hello"
    run(scenario())


def test_handshakes_that_fail_hurt_nobody(secure):
    assert not raw(secure.relay, b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n").startswith(b"HTTP")
    raw(secure.relay, b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00" + os.urandom(200))
    raw(secure.relay, b"")
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            stack.enter_context(socket.create_connection(("127.0.0.1", secure.relay.port)))
        assert secure.subject()[0] == "server"
    refused = secure.relay.metrics()['culvert_relay_refused_total{reason="tls"}']
    assert refused >= 2


def test_a_silent_tls_client_is_given_up(tmp_path):
    secure = Secure(tmp_path, "--handshake-time", 1)
    try:
        with socket.create_connection(("127.0.0.1", secure.relay.port), 5) as silent:
            start = time.monotonic()
            with contextlib.suppress(ConnectionError):
                assert silent.recv(100) == b""
            assert time.monotonic() - start < 3
    finally:
        secure.relay.close()


def test_a_deaf_client_over_tls_holds_no_more_than_its_queue(secure):
    async def scenario():
        async with secure.client() as one:
            async with secure.client(max_queue=1) as deaf:
                for _ in range(20):
                    for _ in range(500):
                        await one.send(deaf.id, b"x" * 1200)
                    await one.synchronize()
                deaf.transport.abort()
    run(scenario())
    assert secure.relay.metrics()['culvert_relay_dropped_datagrams_total{reason="queue_full"}'] > 0


def test_bad_certificates_are_refused_at_the_start(tmp_path):
    _, chain, key = relays.certificate(tmp_path)
    _, _, other_key = relays.certificate(tmp_path, "other")

    def refusal(*options):
        done = subprocess.run([daemons.BIN / "culvert-relay", *map(str, options)], capture_output=True, text=True, timeout=10)
        assert done.returncode == 2
        return done.stderr

    assert "must be given together" in refusal("--tls-cert", chain)
    assert "does not belong" in refusal("--tls-cert", chain, "--tls-key", other_key)
    assert "cannot be read" in refusal("--tls-cert", key, "--tls-key", key)
    key.chmod(0o644)
    assert "open to everyone" in refusal("--tls-cert", chain, "--tls-key", key)
