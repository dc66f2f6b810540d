"""Truncated, oversized, bit-flipped and random input gets an error; the daemons live on and leak nothing."""

import asyncio
import json
import random
import socket

import pytest

import iroh_peers
import wire
from clients import connect, curl, exchange, request
from daemons import EXIT_FAILURE, EXIT_REFUSED, EXIT_UNTRUSTED, EXIT_USAGE, assert_clear_failure, rows, run, wait_for

SEED = 20260


def answer_or_end(port, data, half_close=True):
    """Sends bytes and gives all that comes back until the end or reset; fails when the proxy hangs."""
    with connect(port, timeout=10) as connection:
        received = b""
        try:
            connection.sendall(data)
            if half_close:
                connection.shutdown(socket.SHUT_WR)
            while piece := connection.recv(1 << 16):
                received += piece
        except (ConnectionResetError, BrokenPipeError):
            pass
        return received


def test_fuzzed_request_heads(tunnel):
    chance = random.Random(SEED)
    good = request("/hello", "GET", "Accept: */*", "Connection: close")
    for _ in range(300):
        data = bytearray(good)
        for _ in range(chance.randint(1, 6)):
            place = chance.randrange(len(data))
            match chance.randrange(4):
                case 0:
                    data[place] ^= 1 << chance.randrange(8)
                case 1:
                    del data[place:]
                case 2:
                    data[place:place] = chance.randbytes(chance.randint(1, 40))
                case _:
                    data[place:place] = data[:place]
            if not data:
                break
        received = answer_or_end(tunnel.port, bytes(data))
        assert not received or received.startswith(b"HTTP/1.1 "), (bytes(data), received[:100])
    assert curl(tunnel.url + "/hello").status == 200


@pytest.mark.parametrize("data, status", [
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500), 400),  # a TLS hello
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    (b"GET /hello HTTP/1.1\r\n\r\n", 400),  # no Host
    (b"GET /hello HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", 400),
    (b"GET /hello HTTP/1.1\r\nHost: localhost\r\n folded: x\r\n\r\n", 400),
    (b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 403),
    (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 431),
    (b"GET /hello HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 20_000 + b"\r\n", 431),
])
def test_heads_that_are_no_request_are_refused(tunnel, data, status):
    before = len(tunnel.origin.requests)
    received = answer_or_end(tunnel.port, data, half_close=False)
    assert received.startswith(b"HTTP/1.1 %d " % status), received[:200]
    assert len(tunnel.origin.requests) == before


def test_head_that_does_not_arrive_is_given_up(tunnel):
    with connect(tunnel.port, timeout=10) as slow:
        slow.sendall(b"GET /hello HTTP/1.1\r\nHost: local")
        assert slow.recv(65536).startswith(b"HTTP/1.1 408 ")
    assert curl(tunnel.url + "/hello").status == 200


def mutations(link, chance, count):
    """Bad variants of an invite link: cut, flipped, spliced and random."""
    prefix, _, text = link.partition("invite=")
    envelope = json.loads(wire.decode(text))
    for number in range(count):
        match number % 6:
            case 0:
                yield prefix + "invite=" + text[: chance.randrange(len(text))]
            case 1:
                place = chance.randrange(len(text))
                yield prefix + "invite=" + text[:place] + chance.choice("ABCxyz019-_=%&") + text[place + 1 :]
            case 2:
                field = chance.choice(list(envelope))
                yield wire.link({**envelope, field: chance.choice([None, 5, "", "AAAA", [], {}, True, "x" * 1000])})
            case 3:
                data = bytearray(wire.decode(envelope[field := chance.choice(["signedPayload", "publicKey", "signature"])]))
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
                yield wire.link({**envelope, field: wire.encode(bytes(data))})
            case 4:
                yield prefix + "invite=" + wire.encode(chance.randbytes(chance.randrange(600)))
            case _:
                yield prefix + "invite=" + wire.encode(b'{"v":4,"alg":' + b"[" * chance.randrange(1, 5000))


def test_fuzzed_invites(workshop):
    host = workshop.host("http://127.0.0.1:9")
    state = workshop.directory()
    for link in mutations(host.ready["invite"], random.Random(SEED), 90):
        if link == host.ready["invite"]:
            continue
        done = run("connect", link, "--state-dir", state)
        assert done.returncode in (EXIT_FAILURE, EXIT_USAGE, EXIT_REFUSED, EXIT_UNTRUSTED), (link, done.returncode, done.stderr)
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert rows(state, "servers") == [] and host.devices() == []


def test_oversized_invite(workshop):
    done = run("connect", "culvert://connect?v=4&invite=" + "A" * 120_000, "--state-dir", workshop.directory())
    assert done.returncode in (EXIT_FAILURE, EXIT_USAGE) and len(done.stderr.strip().splitlines()) == 1


@pytest.fixture
def invites(workshop):
    """A maker of invites that are well signed, for a node that nobody runs."""
    import os

    import nacl.signing

    seed = os.urandom(32)
    node = bytes(nacl.signing.SigningKey(seed).verify_key).hex()
    return wire.InviteMaker(seed, iroh_peers.ticket_for(node, 9), ["culvert/http/1", "culvert/pair/1"])


def with_metadata(invites, **changes):
    return {"transports": {"iroh": {**invites.payload["transports"]["iroh"], **changes}}}


def test_each_fault_of_an_invite_has_its_own_error(workshop, invites):
    other = wire.InviteMaker(bytes(32), "", []).public.hex()
    envelope = invites.envelope()
    links = {
        "algorithm": wire.link({**envelope, "alg": "rsa"}),
        "signature": wire.link({**envelope, "signature": wire.encode(bytes(64))}),
        "fingerprint": invites.link(fingerprint=wire.fingerprint(bytes(32))),
        "version": invites.link(v=5),
        "expired": invites.link(expiresAt=wire.date(-3600)),
        "clock": invites.link(expiresAt=wire.date(400 * 86_400)),
        "node": invites.link(**with_metadata(invites, nodeId="zz" * 32)),
        "alpn": invites.link(**with_metadata(invites, alpns=["h3"])),
        "ticket missing": invites.link(**with_metadata(invites, ticket=None)),
        "ticket": invites.link(**with_metadata(invites, ticket="endpointaaaa")),
        "ticket node": invites.link(**with_metadata(invites, ticket=iroh_peers.ticket_for(other, 9))),
        "relay": invites.link(**with_metadata(invites, relayUrls=["https://user@relay.example/"])),
        "private relay": invites.link(**with_metadata(invites, relayUrls=["https://10.0.0.1/"])),
    }
    messages = {}
    for fault, link in links.items():
        done = run("connect", link, "--state-dir", workshop.directory())
        assert done.returncode in (EXIT_FAILURE, EXIT_REFUSED, EXIT_UNTRUSTED), (fault, done.returncode, done.stderr)
        messages[fault] = done.stderr
    relays = {messages.pop("relay"), messages.pop("private relay")}
    assert len(set(messages.values()) | relays) >= len(messages) + 1, messages
    assert "clock" in messages["expired"] + messages["clock"]


def on_host(host, *alpns_and_work):
    """Runs coroutine functions, each with a connection of a real iroh client to our host."""

    async def main():
        async with iroh_peers.endpoint() as node:
            for alpn, work in alpns_and_work:
                connection = await iroh_peers.dial(node, host.ready["ticket"], alpn)
                await work(node, connection)
                connection.close(0, b"done")

    asyncio.run(main())


def test_prefaces_that_are_refused(workshop):
    tunnel = workshop.tunnel()
    (file,) = (tunnel.client.state / "servers").glob("*.json")
    token = json.loads(file.read_text())["deviceToken"]
    unknown = "dt_" + wire.encode(bytes(32))
    header = {"v": 1, "kind": "httpTunnel", "authorization": f"Bearer {unknown}"}
    cases = [
        (wire.frame({**header, "v": 2}), 400, "bad_preface"),
        (wire.frame({**header, "kind": "other"}), 400, "bad_preface"),
        (wire.frame(b"not json"), 400, "bad_preface"),
        (wire.frame({**header, "pad": "x" * 5000}), 400, "bad_preface"),  # above 4 KiB
        (b"\xff\xff\xff\xff", 400, "bad_preface"),
        (b"\x00\x00\x00\x00", 400, "bad_preface"),
        (wire.frame({"v": 1, "kind": "httpTunnel"}), 401, "missing_bearer"),
        (wire.frame({**header, "authorization": ""}), 401, "missing_bearer"),
        (wire.frame({**header, "authorization": "Bearer " + "x" * 600}), 400, "bad_preface"),
        (wire.preface(unknown), 401, "unknown_token"),
        (wire.preface(token), 403, "binding_mismatch"),  # a good token, shown by another node
    ]

    async def work(_, connection):
        for preface, status, code in cases:
            answer = bytes(await iroh_peers.exchange(connection, preface + request("/hello")))
            head, _, body = answer.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 %d " % status), (preface[:80], answer)
            assert json.loads(body)["code"] == code, (preface[:80], body)

    on_host(tunnel.host, ("culvert/http/1", work), ("oppi/http/1", work))
    assert curl(tunnel.url + "/hello").status == 200
    assert tunnel.origin.requests[-1].path == "/hello" and len(tunnel.origin.requests) == 1


def test_fuzzed_prefaces(workshop):
    tunnel = workshop.tunnel()
    chance = random.Random(SEED)
    good = wire.preface("dt_" + wire.encode(bytes(32))) + request("/hello")

    async def work(node, connection):
        for _ in range(150):
            data = bytearray(good)
            for _ in range(chance.randint(1, 4)):
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            cut = bytes(data[: chance.randrange(1, len(data) + 1)])
            answer = bytes(await iroh_peers.exchange(connection, cut, timeout=15))
            assert answer.startswith(b"HTTP/1.1 4"), (cut, answer)

    on_host(tunnel.host, ("culvert/http/1", work))
    assert curl(tunnel.url + "/hello").status == 200
    assert len(tunnel.origin.requests) == 1


def test_pairing_requests_that_are_refused(workshop):
    host = workshop.host(workshop.origin().target)
    good = {"v": 1, "kind": "pairRequest", "pairingToken": "pt_" + wire.encode(bytes(32))}
    frames = [wire.frame(good), wire.frame({**good, "v": 9}), wire.frame(b"{"), wire.frame({**good, "pairingToken": 5})]

    async def work(_, connection):
        for data in frames:
            header, rest = wire.parse_frame(bytes(await iroh_peers.exchange(connection, data)))
            assert header["ok"] is False and header["kind"] == "pairResponse" and rest == b""
            assert 400 <= header["status"] < 500 and header["error"]

    on_host(host, ("culvert/pair/1", work))
    assert host.devices() == []
    client = workshop.connect(host.ready["invite"])
    assert curl(client.url + "/hello").status == 200


def test_five_failed_pairings_block_the_source(workshop):
    host = workshop.host(workshop.origin().target)
    wrong = wire.pair_request("pt_" + wire.encode(bytes(32)))

    async def work(_, connection):
        for _ in range(5):
            header, _ = wire.parse_frame(bytes(await iroh_peers.exchange(connection, wrong)))
            assert header["status"] == 401
        header, _ = wire.parse_frame(bytes(await iroh_peers.exchange(connection, wrong)))
        assert header["status"] == 429

    on_host(host, ("culvert/pair/1", work))
    done = run("connect", host.ready["invite"], "--state-dir", workshop.directory())
    assert done.returncode != 0 and "minutes" in done.stderr
    assert host.devices() == []


def test_fuzzed_pairing_frames(workshop):
    origin = workshop.origin()
    chance = random.Random(SEED)
    for _ in range(3):
        # A source is blocked after a few failures, so each host gets a few frames before that and many after.
        host = workshop.host(origin.target)

        async def work(_, connection):
            for _ in range(40):
                data = bytearray(wire.pair_request("pt_" + wire.encode(chance.randbytes(32))))
                for _ in range(chance.randint(1, 5)):
                    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
                try:
                    answer = bytes(await iroh_peers.exchange(connection, bytes(data), timeout=15))
                except iroh_peers.iroh.IrohError:
                    continue  # the stream was reset
                assert wire.parse_frame(answer)[0]["ok"] is False

        on_host(host, ("oppi/pair/1", work))
        assert host.daemon.is_running and host.devices() == []


def test_random_datagrams_disturb_nobody(workshop):
    tunnel = workshop.tunnel()
    chance = random.Random(SEED)
    ticket = iroh_peers.iroh.EndpointTicket.from_string(tunnel.host.ready["ticket"]).endpoint_addr()
    address, _, port = ticket.direct_addresses()[0].rpartition(":")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for number in range(2000):
            data = bytearray(chance.randbytes(chance.randrange(1500)))
            if data and number % 2:
                data[0] |= 0xC0  # looks like a long header
                data[1:5] = b"\x00\x00\x00\x01"
            sender.sendto(bytes(data), (address, int(port)))
    assert curl(tunnel.url + "/hello").status == 200
    late = workshop.connect(tunnel.host.invite())
    assert curl(late.url + "/hello").status == 200
    wait_for(lambda: tunnel.host.daemon.is_running, "the host")
    assert exchange(late.port, request("/hello"))[0] == 200


def test_unknown_name_fails_clearly(workshop):
    assert_clear_failure(run("connect", "nobody", "--state-dir", workshop.directory()), EXIT_FAILURE)
