"""The relay server: its HTTP, what section 5 of the protocol says about clients, and real iroh endpoints on it."""

import asyncio
import contextlib
import hashlib
import http.client
import os
import signal
import socket
import subprocess

import iroh
import nacl.signing
import pytest
from websockets.exceptions import InvalidStatus

import iroh_peers
import relays
from relays import GONE, GOT, GOT_BATCH, HEALTH, RESTARTING, SEND_BATCH, STATUS

ECHO = "culvert/echo/1"


def run(coroutine, timeout=60):
    return asyncio.run(asyncio.wait_for(coroutine, timeout))


def get(relay, path, **fields):
    connection = http.client.HTTPConnection("127.0.0.1", relay.port, timeout=5)
    connection.request("GET", path, headers=fields)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, answer.headers, body


def test_http_pages(relay):
    assert get(relay, "/ping")[0] == 200 and get(relay, "/ping")[2] == b""
    assert get(relay, "/ping")[1]["Access-Control-Allow-Origin"] == "*"
    assert get(relay, "/healthz")[0] == 200
    assert b"Disallow: /" in get(relay, "/robots.txt")[2]
    assert get(relay, "/")[0] == 200
    assert get(relay, "/nothing")[0] == 404
    status, headers, body = get(relay, "/generate_204", **{"X-Iroh-Challenge": "ts_1.example"})
    assert status == 204 and body == b"" and headers["X-Iroh-Response"] == "response ts_1.example"
    assert get(relay, "/generate_204", **{"X-Iroh-Challenge": "a b"})[1]["X-Iroh-Response"] is None


def test_http_connection_is_kept(relay):
    connection = http.client.HTTPConnection("127.0.0.1", relay.port, timeout=5)
    for _ in range(50):
        connection.request("GET", "/ping")
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 200
    connection.close()


def test_datagrams_between_two_clients(relay):
    async def scenario():
        async with relays.client(relay.url) as one, relays.client(relay.url, versions=["iroh-relay-v1"]) as two:
            assert (one.version, two.version) == ("iroh-relay-v2", "iroh-relay-v1")
            await one.send(two.id, b"there", ecn=2)
            assert await two.receive() == bytes([GOT]) + one.id + b"\x02there"
            batch = b"\x03\x00\x05" + b"x" * 12
            await two.send_frame(bytes([SEND_BATCH]) + one.id + batch)
            assert await one.receive() == bytes([GOT_BATCH]) + two.id + batch
            await one.send(one.id, b"to myself")
            assert await one.receive() == bytes([GOT]) + one.id + b"\0to myself"
            await one.send(two.id, b"y" * (65536 - 33))  # the largest frame
            assert len(await two.receive()) == 65537
            await one.send(os.urandom(32), b"nobody")
            await one.synchronize()
            assert await two.nothing()
    run(scenario())


def test_order_is_kept_and_nothing_is_lost_at_a_moderate_rate(relay):
    async def scenario():
        async with relays.client(relay.url) as one, relays.client(relay.url) as two:
            for number in range(2000):
                await one.send(two.id, number.to_bytes(4, "big") + b"z" * 1200)
                if number % 100 == 99:
                    for expected in range(number - 99, number + 1):
                        assert (await two.receive())[34:38] == expected.to_bytes(4, "big")
    run(scenario())


def test_who_was_sent_to_hears_that_a_node_is_gone(relay):
    async def scenario():
        async with relays.client(relay.url) as two, relays.client(relay.url) as three:
            async with relays.client(relay.url) as one:
                await one.send(two.id, b"hello")
                await two.receive()
                await three.send(one.id, b"hello")
                await one.receive()
            assert await two.receive() == bytes([GONE]) + one.id
            assert await three.nothing(), "one had never sent to three"
    run(scenario())


@pytest.mark.parametrize("version", ["iroh-relay-v1", "iroh-relay-v2"])
def test_the_newest_connection_of_a_node_wins_and_the_older_is_told(relay, version):
    key = nacl.signing.SigningKey.generate()

    async def scenario():
        async with relays.client(relay.url) as other, relays.client(relay.url, key, [version]) as old:
            async with relays.client(relay.url, key) as new:
                told = await old.receive()
                assert told == (bytes([STATUS, 1]) if version.endswith("2")
                                else bytes([HEALTH]) + b"another endpoint with this id connected")
                await other.send(new.id, b"for the newest")
                assert (await new.receive())[34:] == b"for the newest"
                assert await old.nothing()
                await old.send(other.id, b"still allowed to send")
                assert (await other.receive())[34:] == b"still allowed to send"
            told = await old.receive()
            assert told == (bytes([STATUS, 0]) if version.endswith("2") else bytes([HEALTH]) + b"healthy")
            await other.send(old.id, b"back")
            assert (await old.receive())[34:] == b"back"
            assert await other.nothing(), "the node has not left"
    run(scenario())


def test_the_ninth_connection_of_a_node_ends_the_oldest(relay):
    key = nacl.signing.SigningKey.generate()

    async def scenario():
        async with contextlib.AsyncExitStack() as stack:
            first = await stack.enter_async_context(relays.client(relay.url, key))
            for _ in range(8):
                await stack.enter_async_context(relays.client(relay.url, key))
            assert await first.receive() == bytes([STATUS, 1])
            assert await first.closed() == 1008
    run(scenario())


def test_wrong_proofs_are_denied(relay):
    def of_another_challenge(key, challenge):
        return relays.proof(key, bytes(16))

    def of_another_key(key, challenge):
        other = relays.proof(nacl.signing.SigningKey.generate(), challenge)
        return other[:1] + bytes(key.verify_key) + other[33:]

    async def scenario(answer, reason):
        with pytest.raises(relays.Denied, match=reason):
            async with relays.client(relay.url, answer=answer):
                pass

    run(scenario(of_another_challenge, "signature invalid"))
    run(scenario(of_another_key, "signature invalid"))
    run(scenario(lambda key, challenge: relays.proof(key, challenge)[:-1], "malformed client auth"))


def test_requests_that_are_no_upgrade_are_refused(relay):
    assert get(relay, "/relay")[0] == 400

    async def scenario():
        with pytest.raises(InvalidStatus) as refused:
            async with relays.client(relay.url, versions=["iroh-relay-v9"]):
                pass
        assert refused.value.response.status_code == 400
    run(scenario())


def raw(relay, data, timeout=5):
    """Sends bytes and reads to the end."""
    with socket.create_connection(("127.0.0.1", relay.port), timeout) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        with contextlib.suppress(ConnectionError):
            while piece := connection.recv(65536):
                answer += piece
        return answer


@pytest.mark.parametrize("request_bytes, status", [
    (b"GET /ping HTTP/1.1\n\n", b"400"),
    (b"GET /ping HTTP/1.1\r\n\r\n", b"400"),
    (b"GET /ping HTTP/2.0\r\nHost: x\r\n\r\n", b"505"),
    (b"POST /ping HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", b"413"),
    (b"POST /ping HTTP/1.1\r\nHost: x\r\n\r\n", b"405"),
    (b"GET /ping HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 9000 + b"\r\n\r\n", b"431"),
    (b"\x16\x03\x01\x02\x00\x01", b"400"),
])
def test_bad_requests_are_answered(relay, request_bytes, status):
    assert raw(relay, request_bytes).startswith(b"HTTP/1.1 " + status)
    assert get(relay, "/healthz")[0] == 200


def test_frames_that_break_the_protocol_end_their_connection_only(relay):
    async def scenario():
        async with relays.client(relay.url) as witness:
            for frame, code in [(b"", 1002), (b"\x00" + bytes(16), 1002), (bytes([14]) + b"x", 1002), (b"\x04short", 1002),
                                (b"\x09seven..", 1002), (b"\x04" + bytes(65537), 1009)]:
                async with relays.client(relay.url) as bad:
                    await bad.send_frame(frame)
                    assert await bad.closed() == code, frame[:8]
            async with relays.client(relay.url) as bad:
                bad.transport.write(b"\x82\x01a")  # not masked
                assert await bad.closed() == 1002
            await witness.synchronize()
    run(scenario())


def test_a_stopping_relay_says_so(relay):
    async def scenario():
        async with relays.client(relay.url) as one:
            relay.signal(signal.SIGTERM)
            assert (await one.receive())[0] == RESTARTING
            assert await one.closed() == 1001
    run(scenario())
    assert relay._process.wait(5) == 0


# Real iroh endpoints


@contextlib.asynccontextmanager
async def iroh_on(relay_url, *alpns, token=None):
    """An endpoint that knows only the relay."""
    iroh_peers.require_namespace()
    relays_map = iroh.RelayMap.empty()
    relays_map.insert(iroh.RelayConfig(url=relay_url, quic_port=None, auth_token=token))
    node = await iroh.Endpoint.bind(iroh.EndpointOptions(
        preset=iroh.preset_minimal(), bind_addr="127.0.0.1:0", secret_key=os.urandom(32),
        alpns=[alpn.encode() for alpn in alpns], relay_mode=iroh.RelayMode.custom(relays_map)))
    try:
        yield node
    finally:
        await node.close()


async def iroh_exchange(relay_url, data, token=None):
    """One endpoint echoes what another sends; the other is given nothing but the relay's URL."""
    async with iroh_on(relay_url, ECHO, token=token) as server, iroh_on(relay_url, token=token) as caller:
        await asyncio.wait_for(server.online(), 20)
        async with iroh_peers.serving(server, (ECHO, iroh_peers.echo)):
            address = iroh.EndpointAddr(server.id(), relay_url, [])
            connection = await asyncio.wait_for(caller.connect(address, ECHO.encode()), 20)
            back = bytes(await iroh_peers.exchange(connection, data, timeout=120))
            connection.close(0, b"done")
            assert hashlib.sha256(back).digest() == hashlib.sha256(data).digest()


@pytest.fixture
def without_udp():
    """Routes no UDP in the tests' namespace, so that only the relay is left."""
    def rules(*commands):
        for family in ("-4", "-6"):
            for command in commands:
                subprocess.run(["ip", family, *command.split()], check=True)

    def reachable(family, host):
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            return probe.connect_ex((host, 9)) == 0

    hosts = [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
    rules("rule add pref 2 lookup local", "rule add pref 1 ipproto udp prohibit", "rule del pref 0")
    try:
        assert not any(reachable(*host) for host in hosts)
        yield
    finally:
        rules("rule add pref 0 lookup local", "rule del pref 1", "rule del pref 2")
        assert all(reachable(*host) for host in hosts)


def test_two_real_iroh_endpoints_exchange_10_mib(without_udp):
    with relays.relay("--metrics", "127.0.0.1:0") as relay:
        run(iroh_exchange(relay.url, os.urandom(10 << 20)), 140)
        assert relay.metrics()["culvert_relay_forwarded_bytes_total"] > 20 << 20


def test_real_iroh_endpoints_with_udp_between_them_start_on_the_relay(relay):
    run(iroh_exchange(relay.url, os.urandom(1 << 20)))


def test_a_connection_of_real_iroh_survives_a_killed_relay(without_udp):
    async def scenario():
        with contextlib.ExitStack() as stack:
            relay = stack.enter_context(relays.relay())
            place = f"127.0.0.1:{relay.port}"
            async with iroh_on(relay.url, ECHO) as server, iroh_on(relay.url) as caller:
                await asyncio.wait_for(server.online(), 20)
                async with iroh_peers.serving(server, (ECHO, iroh_peers.echo)):
                    address = iroh.EndpointAddr(server.id(), relay.url, [])
                    connection = await asyncio.wait_for(caller.connect(address, ECHO.encode()), 20)
                    data = os.urandom(4 << 20)
                    exchange = asyncio.ensure_future(iroh_peers.exchange(connection, data, timeout=60))
                    await asyncio.sleep(0.3)
                    assert not exchange.done()
                    relay.close()  # kill -9
                    stack.enter_context(relays.relay(listen=place))
                    assert bytes(await exchange) == data
                    connection.close(0, b"done")
    run(scenario(), 90)


@contextlib.asynccontextmanager
async def tap(port):
    """Forwards a port to `port`; gives its own and what comes back from there, which WebSocket does not mask."""
    seen = bytearray()

    async def copy(reader, writer, record):
        with contextlib.suppress(ConnectionError):
            while piece := await reader.read(1 << 16):
                if record:
                    seen.extend(piece)
                writer.write(piece)
                await writer.drain()
        writer.close()

    async def connected(reader, writer):
        back, forth = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(copy(reader, forth, False), copy(back, writer, True))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], seen
    finally:
        server.close()


def test_the_relay_sees_no_plaintext(relay, without_udp):
    canary = b"canary-" + os.urandom(16).hex().encode()

    async def scenario():
        async with tap(relay.port) as (port, seen):
            async with relays.client(f"http://127.0.0.1:{port}") as one:
                await one.send(one.id, canary)
                await one.receive()
            assert canary in seen, "the tap would see it"
            seen.clear()
            await iroh_exchange(f"http://127.0.0.1:{port}", canary * 20_000)
            assert len(seen) > 2 * 20_000 * len(canary) and canary not in seen
            assert canary[7:] not in seen
    run(scenario())
