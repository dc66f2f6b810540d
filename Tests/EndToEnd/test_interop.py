"""Interoperability with real iroh (PyPI iroh 1.2.0), in both roles, and refusals on both sides."""

import asyncio
import contextlib
import hashlib
import json
import os
import subprocess

import pytest
from aioquic.asyncio import serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.tls import AlertDescription
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import NameOID

import iroh_peers
import keyless
import wire
from clients import curl, request
from daemons import BIN, EXIT_FAILURE, EXIT_UNTRUSTED, _in_child, run
from iroh_peers import dial, echo, endpoint, exchange, port_of, serving, ticket_for, ticket_of
from origin import pattern, pattern_digest

ALPN = "culvert/echo/1"
TEN_MIB = 10 << 20


async def probe_echo(ticket, alpn=ALPN, size=TEN_MIB):
    """Our client: (exit code, events) of an echo to the node of `ticket`."""
    process = await asyncio.create_subprocess_exec(
        BIN / "culvert-probe", "echo", "--ticket", ticket, "--alpn", alpn, "--bytes", str(size),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=_in_child)
    output, errors = await asyncio.wait_for(process.communicate(), 90)
    events = [json.loads(line) for line in output.splitlines()]
    return process.returncode, events, errors.decode()


@contextlib.asynccontextmanager
async def probe_server(alpn=ALPN):
    """Our endpoint as an echo server; gives its ready event."""
    process = await asyncio.create_subprocess_exec(
        BIN / "culvert-probe", "serve-echo", "--alpn", alpn, "--listen", "127.0.0.1:0",
        stdout=subprocess.PIPE, preexec_fn=_in_child)
    try:
        ready = json.loads(await asyncio.wait_for(process.stdout.readline(), 20))
        assert ready["event"] == "ready"
        yield ready
    finally:
        process.kill()
        await process.wait()


def error_of(events):
    (error,) = [event for event in events if event["event"] == "error"]
    return error["kind"]


def test_our_client_echoes_10_mib_through_iroh():
    async def main():
        async with endpoint(ALPN) as node, serving(node, (ALPN, echo)):
            code, events, errors = await probe_echo(ticket_of(node))
        assert code == 0, (events, errors)

    asyncio.run(main())


def test_iroh_client_echoes_10_mib_through_us():
    async def main():
        data = os.urandom(TEN_MIB)
        async with probe_server() as ready, endpoint() as node:
            connection = await dial(node, ready["ticket"], ALPN)
            assert str(connection.remote_id()) == ready["nodeId"]
            assert bytes(await exchange(connection, data)) == data
            connection.close(0, b"done")

    asyncio.run(main())


def test_iroh_client_runs_many_streams_at_once():
    async def main():
        async with probe_server() as ready, endpoint() as node:
            connection = await dial(node, ready["ticket"], ALPN)
            parts = [os.urandom(50_000 + number) for number in range(40)]
            assert [bytes(data) for data in await asyncio.gather(*(exchange(connection, part) for part in parts))] == parts
            connection.close(0, b"done")

    asyncio.run(main())


@pytest.mark.parametrize("alpns", [
    ("oppi/http/1", "oppi/pair/1"), ("culvert/http/1", "culvert/pair/1"),
], ids=["oppi", "culvert"])
def test_iroh_script_as_host_serves_curl_through_our_proxy(workshop, alpns):
    """The script pairs by the frame protocol, reads the preface and answers HTTP; its invite comes as an oppi:// link."""
    origin = workshop.origin()

    async def main():
        seed = os.urandom(32)
        async with endpoint(*alpns, seed=seed) as node:
            invites = wire.InviteMaker(seed, ticket_of(node), list(alpns))
            script = iroh_peers.HostScript(invites.token, ("127.0.0.1", origin.port))
            http, pairing = alpns
            async with serving(node, (pairing, script.pair), (http, script.tunnel)):
                await asyncio.to_thread(use_through_proxy, invites.link(scheme="oppi"), script)

    def use_through_proxy(link, script):
        client = workshop.connect(link)
        assert client.ready["server"] == "an iroh host"
        assert curl(client.url + "/hello").body == b"hello\n"
        body = pattern(1_000_000)
        assert curl("--data-binary", "@-", client.url + "/echo", stdin=body).json["sha256"] == hashlib.sha256(body).hexdigest()
        answer = curl(f"{client.url}/bytes/3000000")
        assert hashlib.sha256(answer.body).hexdigest() == pattern_digest(3_000_000)
        assert script.prefaces and all(preface["kind"] == "httpTunnel" and preface["v"] == 1 for preface in script.prefaces)
        assert client.daemon.stop() == 0

    asyncio.run(main())


@pytest.mark.parametrize("pairing, http", [("culvert/pair/1", "culvert/http/1"), ("oppi/pair/1", "oppi/http/1")])
def test_iroh_client_pairs_and_speaks_http_with_our_host(workshop, pairing, http):
    origin = workshop.origin()
    host = workshop.host(origin.target)
    _, payload = wire.parse_invite(host.ready["invite"])
    ticket = payload["transports"]["iroh"]["ticket"]

    async def main():
        async with endpoint() as node:
            connection = await dial(node, ticket, pairing)
            header, _ = wire.parse_frame(bytes(await exchange(connection, wire.pair_request(payload["pairingToken"]))))
            assert header["ok"] is True and "iroh" in header["credentialTransports"]
            replay, _ = wire.parse_frame(bytes(await exchange(connection, wire.pair_request(payload["pairingToken"]))))
            assert replay["ok"] is False and replay["status"] == 401
            connection.close(0, b"paired")

            connection = await dial(node, ticket, http)
            preface = wire.preface(header["deviceToken"])
            answer = bytes(await exchange(connection, preface + request("/bytes/500000", "GET", "Connection: close")))
            head, _, body = answer.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 ") and body == pattern(500_000)
            upload = pattern(1 << 20)
            answer = bytes(await exchange(
                connection,
                preface + request("/echo", "POST", f"Content-Length: {len(upload)}", "Connection: close") + upload))
            seen = json.loads(answer.partition(b"\r\n\r\n")[2])
            assert seen["sha256"] == hashlib.sha256(upload).hexdigest()
            # The end of the request does not end the answer.
            answer = bytes(await exchange(connection, preface + request("/after-end", "POST") + b"12345"))
            assert answer.endswith(b'{"size": 5}')
            connection.close(0, b"done")

    asyncio.run(main())
    (device,) = host.devices()
    assert device["name"] == "an iroh client"


def test_revoking_an_iroh_client_closes_its_connection(workshop):
    origin = workshop.origin()
    host = workshop.host(origin.target)
    _, payload = wire.parse_invite(host.ready["invite"])

    async def main():
        async with endpoint() as node:
            connection = await dial(node, host.ready["ticket"], "culvert/pair/1")
            header, _ = wire.parse_frame(bytes(await exchange(connection, wire.pair_request(payload["pairingToken"]))))
            live = await dial(node, host.ready["ticket"], "culvert/http/1")
            assert b"200 OK" in bytes(await exchange(
                live, wire.preface(header["deviceToken"]) + request("/hello", "GET", "Connection: close")))
            (device,) = host.devices()
            done = await asyncio.to_thread(run, "revoke", device["id"], "--state-dir", host.state)
            assert done.returncode == 0
            await asyncio.wait_for(live.closed(), 10)

    asyncio.run(main())


# Refusals


def test_our_client_refuses_an_iroh_node_with_another_id():
    async def main():
        async with endpoint(ALPN) as node, endpoint(ALPN) as other, serving(node, (ALPN, echo)):
            code, events, errors = await probe_echo(ticket_for(other.id(), port_of(node)))
        assert (code, error_of(events)) == (EXIT_UNTRUSTED, "peer-identity"), (events, errors)

    asyncio.run(main())


def test_our_client_is_told_that_iroh_does_not_speak_its_protocol():
    async def main():
        async with endpoint("another/protocol") as node, serving(node, ("another/protocol", echo)):
            code, events, errors = await probe_echo(ticket_of(node))
        assert (code, error_of(events)) == (EXIT_FAILURE, "alpn"), (events, errors)

    asyncio.run(main())


def test_iroh_refuses_our_node_under_another_id_and_we_live_on():
    async def main():
        async with probe_server() as ready, endpoint() as node, endpoint() as other:
            port = ticket_port(ready["ticket"])
            with pytest.raises(iroh_peers.iroh.IrohError):
                await dial(node, ticket_for(other.id(), port), ALPN)
            connection = await dial(node, ready["ticket"], ALPN)
            assert bytes(await exchange(connection, b"still there")) == b"still there"

    asyncio.run(main())


def test_our_server_refuses_an_iroh_client_of_another_protocol():
    async def main():
        async with probe_server() as ready, endpoint() as node:
            with pytest.raises(iroh_peers.iroh.IrohError) as caught:
                await dial(node, ready["ticket"], "another/protocol")
            assert "120" in caught.value.debug_message() or "application protocol" in caught.value.debug_message().lower()
            connection = await dial(node, ready["ticket"], ALPN)
            assert bytes(await exchange(connection, b"still there")) == b"still there"

    asyncio.run(main())


def test_our_server_refuses_a_client_without_a_key():
    async def main():
        async with probe_server() as ready:
            port = ticket_port(ready["ticket"])
            assert await keyless.connect(port, ALPN, show_key=True) is None, "the same client with a key is welcome"
            refused = await keyless.connect(port, ALPN, show_key=False)
            assert refused is not None
            assert refused.error_code in {0x100 + AlertDescription.certificate_required, 0x100 + AlertDescription.bad_certificate}, refused

    asyncio.run(main())


def test_host_refuses_a_client_without_a_key(workshop):
    host = workshop.host("http://127.0.0.1:9")
    port = ticket_port(host.ready["ticket"])
    for alpn in ("culvert/http/1", "oppi/pair/1"):
        assert asyncio.run(keyless.connect(port, alpn, show_key=True)) is None
        assert asyncio.run(keyless.connect(port, alpn, show_key=False)) is not None
    assert host.devices() == []


def test_our_client_refuses_a_server_with_a_certificate_instead_of_a_key(tmp_path):
    configuration = QuicConfiguration(is_client=False, alpn_protocols=[ALPN])
    configuration.load_cert_chain(*certificate(tmp_path))

    async def main():
        server = await serve("127.0.0.1", 0, configuration=configuration)
        port = server._transport.get_extra_info("sockname")[1]
        try:
            code, events, errors = await probe_echo(ticket_for(wire.InviteMaker(bytes(32), "", []).public.hex(), port))
        finally:
            server.close()
        assert (code, error_of(events)) == (EXIT_UNTRUSTED, "peer-identity"), (events, errors)

    asyncio.run(main())


def ticket_port(ticket):
    addresses = iroh_peers.iroh.EndpointTicket.from_string(ticket).endpoint_addr().direct_addresses()
    return int(next(a for a in addresses if a.startswith("127.0.0.1:")).rpartition(":")[2])


def certificate(directory):
    """A self-signed X.509 certificate with an Ed25519 key, the only kind of signature we offer: (certificate file, key
    file)."""
    import datetime

    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = Ed25519PrivateKey.generate()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1)).sign(key, None))
    (directory / "certificate.pem").write_bytes(made.public_bytes(Encoding.PEM))
    (directory / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return directory / "certificate.pem", directory / "key.pem"
