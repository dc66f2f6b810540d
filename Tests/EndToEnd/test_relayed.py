"""The main job through relays: hosts and clients that have no other way to each other."""

import asyncio
import contextlib
import hashlib
import json
import os

import iroh
import pytest

import iroh_peers
import relays
import wire
from clients import curl, do_the_main_job, open_socket, request
from daemons import EXIT_REFUSED, EXIT_USAGE, assert_clear_failure, run, wait_for
from lab import RELAY_ADDRESS, two_machines
from origin import pattern
from plain_relay import plain_relay
from relays import INSECURE, relayed_tunnel


def relays_of(invite):
    """The relay URLs in an invite's ticket, which must be those in its metadata."""
    _, payload = wire.parse_invite(invite)
    metadata = payload["transports"]["iroh"]
    address = iroh.EndpointTicket.from_string(metadata["ticket"]).endpoint_addr()
    url = address.relay_url()
    assert metadata.get("relayUrls", []) == ([url] if url else [])
    return metadata.get("relayUrls", []), address.direct_addresses()


# Two machines without a way to each other


@pytest.fixture
def machines():
    with two_machines() as machines:
        yield machines


@contextlib.contextmanager
def tunnel_between(machines, workshop, url, *options):
    """Gives the client's machine and its proxy's URL."""
    left, right = machines
    origin = workshop.origin(unix_path=workshop.directory("origin.sock"))
    host = workshop.host(origin.target, "--relay", url, *options, listen="0.0.0.0:0", before=left.before)
    host.daemon.event("relay", state="connected")
    assert left.address in str(relays_of(host.ready["invite"])[1]), "direct addresses are tried too"
    client = workshop.connect(host.ready["invite"], *options, before=right.before)
    client.daemon.event("path", kind="relay")
    yield right, client.url
    assert client.daemon.stop() == 0
    assert host.daemon.stop() == 0


def test_main_job_between_machines_through_our_relay(machines, workshop):
    with relays.relay("--metrics", "127.0.0.1:0", listen=f"{RELAY_ADDRESS}:0") as relay:
        url = f"http://{RELAY_ADDRESS}:{relay.port}"
        with tunnel_between(machines, workshop, url, INSECURE) as (machine, proxy):
            do_the_main_job(proxy, machine.before)
            assert relay.metrics()["culvert_relay_forwarded_bytes_total"] > 7_000_000


def test_main_job_between_machines_over_tls_with_a_token(machines, workshop, tmp_path):
    authority, chain, key = relays.certificate(tmp_path, address=RELAY_ADDRESS)
    token = tmp_path / "token"
    token.write_text("s3cret-of-this-relay\n")
    token.chmod(0o600)
    with relays.relay("--tls-cert", chain, "--tls-key", key, "--token-file", token, listen=f"{RELAY_ADDRESS}:0") as relay:
        url = f"https://{RELAY_ADDRESS}:{relay.port}"
        options = ("--relay-ca", authority, "--relay-token-file", token)
        with tunnel_between(machines, workshop, url, *options) as (machine, proxy):
            do_the_main_job(proxy, machine.before)


@pytest.mark.parametrize("version", ["iroh-relay-v2", "iroh-relay-v1"])
def test_main_job_between_machines_through_an_independent_relay(machines, workshop, version):
    """A relay of the other's making, which sees no plaintext and only datagrams of the fixed size."""
    canary = b"the canary sings of culverts and tunnels"
    with plain_relay(version, RELAY_ADDRESS) as (relay, url):
        with tunnel_between(machines, workshop, url, INSECURE) as (machine, proxy):
            do_the_main_job(proxy, machine.before)
            answer = curl("--data-binary", "@-", proxy + "/echo", stdin=canary * 100, before=machine.before)
            assert answer.json["sha256"] == hashlib.sha256(canary * 100).hexdigest()
        assert len(relay.passed) > 7_000_000 and canary not in relay.passed
        assert max(relay.segments) <= 1280


# Real iroh on the other side


@contextlib.asynccontextmanager
async def iroh_on(relay_url, *alpns, seed=None):
    """An endpoint that knows the relay."""
    iroh_peers.require_namespace()
    known = iroh.RelayMap.empty()
    known.insert(iroh.RelayConfig(url=relay_url, quic_port=None, auth_token=None))
    node = await iroh.Endpoint.bind(iroh.EndpointOptions(
        preset=iroh.preset_minimal(), bind_addr="127.0.0.1:0", secret_key=seed or os.urandom(32),
        alpns=[alpn.encode() for alpn in alpns], relay_mode=iroh.RelayMode.custom(known)))
    try:
        yield node
    finally:
        await node.close()


def test_our_client_reaches_an_iroh_host_through_our_relay(workshop, relay):
    origin = workshop.origin()

    async def main():
        seed = os.urandom(32)
        http, pairing = "oppi/http/1", "oppi/pair/1"
        async with iroh_on(relay.url, http, pairing, seed=seed) as node:
            await asyncio.wait_for(node.online(), 20)
            ticket = str(iroh.EndpointTicket.from_addr(iroh.EndpointAddr(node.id(), relay.url, [])))
            invites = wire.InviteMaker(seed, ticket, [http, pairing])
            script = iroh_peers.HostScript(invites.token, ("127.0.0.1", origin.port))
            async with iroh_peers.serving(node, (pairing, script.pair), (http, script.tunnel)):
                await asyncio.to_thread(use, invites.link(scheme="oppi"))

    def use(link):
        client = workshop.connect(link, INSECURE)
        client.daemon.event("path", kind="relay")
        do_the_main_job(client.url)
        assert client.daemon.stop() == 0

    asyncio.run(main())


def test_an_iroh_client_reaches_our_host_through_our_relay(workshop, relay):
    origin = workshop.origin()
    host = workshop.host(origin.target, "--relay", relay.url, INSECURE, "--path", "relay")
    _, payload = wire.parse_invite(host.ready["invite"])
    ticket = payload["transports"]["iroh"]["ticket"]
    assert iroh.EndpointTicket.from_string(ticket).endpoint_addr().direct_addresses() == []

    async def main():
        async with iroh_on(relay.url) as node:
            connection = await iroh_peers.dial(node, ticket, "oppi/pair/1")
            answer = bytes(await iroh_peers.exchange(connection, wire.pair_request(payload["pairingToken"])))
            header, _ = wire.parse_frame(answer)
            assert header["ok"] is True
            connection = await iroh_peers.dial(node, ticket, "oppi/http/1")
            preface = wire.preface(header["deviceToken"])
            data = pattern(3 << 20)
            answer = bytes(await iroh_peers.exchange(
                connection,
                preface + request("/echo", "POST", f"Content-Length: {len(data)}", "Connection: close") + data))
            assert json.loads(answer.partition(b"\r\n\r\n")[2])["sha256"] == hashlib.sha256(data).hexdigest()
            answer = bytes(await iroh_peers.exchange(
                connection, preface + request("/bytes/3000000", "GET", "Connection: close")))
            assert answer.partition(b"\r\n\r\n")[2] == pattern(3_000_000)
            connection.close(0, b"done")

    asyncio.run(main())
    host.daemon.event("path", kind="relay")


# Which path, and who says so


def test_a_direct_path_is_taken_where_there_is_one(workshop, relay):
    tunnel = relayed_tunnel(workshop, relay)
    tunnel.client.daemon.event("path", kind="direct")
    assert relays_of(tunnel.host.ready["invite"])[0] == [relay.url + "/"]


def test_path_relay_holds_the_client_to_the_relay(workshop, relay):
    tunnel = relayed_tunnel(workshop, relay, "--path", "relay")
    tunnel.client.daemon.event("path", kind="relay")
    do_the_main_job(tunnel.url)
    tunnel.host.daemon.event("path", kind="relay")


def test_path_direct_needs_no_relay(workshop, relay):
    tunnel = relayed_tunnel(workshop, relay, "--path", "direct")
    tunnel.client.daemon.event("path", kind="direct")
    relay.close()
    do_the_main_job(tunnel.url)


def test_a_host_held_to_relays_names_no_address_and_hears_none(workshop, relay):
    tunnel = relayed_tunnel(workshop, relay, host_options=("--path", "relay"))
    assert relays_of(tunnel.host.ready["invite"]) == ([relay.url + "/"], [])
    tunnel.client.daemon.event("path", kind="relay")


def test_websocket_stays_open_through_the_relay(workshop, relay):
    tunnel = relayed_tunnel(workshop, relay, "--path", "relay")
    with open_socket(tunnel) as socket:
        for size in (1, 1000, 200_000):
            socket.send(b"x" * size)
            assert socket.recv(10) == b"x" * size


def test_revoking_closes_a_relayed_connection(workshop, relay):
    tunnel = relayed_tunnel(workshop, relay, "--path", "relay")
    assert curl(tunnel.url + "/hello").body == b"hello\n"
    (device,) = tunnel.host.devices()
    assert run("revoke", device["id"], "--state-dir", tunnel.host.state).returncode == 0
    assert tunnel.client.daemon.exit_code() == EXIT_REFUSED


# The home relay


def test_the_host_chooses_the_relay_that_answers(workshop, relay):
    with relays.relay() as dead:
        gone = dead.url
    host = workshop.host(workshop.origin().target, "--relay", gone, "--relay", relay.url, INSECURE)
    host.daemon.event("relay", state="connected")
    assert relays_of(host.ready["invite"])[0] == [relay.url + "/"]


@pytest.mark.timeout(120)
def test_the_host_changes_its_relay_and_stays_at_those_it_promised(workshop):
    with relays.relay("--metrics", "127.0.0.1:0") as first, relays.relay("--metrics", "127.0.0.1:0") as second:
        by_url = {relay.url + "/": relay for relay in (first, second)}
        host = workshop.host(
            workshop.origin().target, "--relay", first.url, "--relay", second.url, INSECURE, "--path", "relay")
        host.daemon.event("relay", state="connected")
        (home,) = relays_of(host.ready["invite"])[0]
        old = by_url.pop(home)
        ((other, new),) = by_url.items()
        port = old.port
        old.close()
        wait_for(lambda: relays_of(host.invite())[0] == [other], "an invite names the other relay", 60)
        client = workshop.connect(host.invite(), INSECURE)
        assert curl(client.url + "/hello").body == b"hello\n"
        # Whoever holds the first invite finds the host once the first relay is back.
        with relays.relay("--metrics", "127.0.0.1:0", listen=f"127.0.0.1:{port}") as back:
            wait_for(lambda: back.metrics()["culvert_relay_nodes"] >= 1, "the host is at its first relay again", 60)
            late = workshop.connect(host.ready["invite"], INSECURE)
            assert curl(late.url + "/hello").body == b"hello\n"


def test_a_promised_relay_is_kept_by_a_host_that_has_others_now(workshop):
    """Whoever was invited, or paired, while the host used the first relay can still come through it."""
    with relays.relay() as first, relays.relay() as second:
        target = workshop.origin().target
        host = workshop.host(target, "--relay", first.url, INSECURE, "--name", "studio")
        what, state = host.invite(), workshop.directory("client")
        for options in (("--relay", second.url), ()):
            assert host.daemon.stop() == 0
            host = workshop.host(target, INSECURE, *options, "--name", "studio", state=host.state)
            client = workshop.connect(what, INSECURE, "--path", "relay", state=state)
            assert curl(client.url + "/hello").body == b"hello\n"
            assert client.daemon.stop() == 0
            what = "studio"


def test_usage(workshop):
    for options in (("--path", "relay"), ("--path", "sideways"), ("--relay", "https://relay.example.com/path"),
                    ("--relay", "http://relay.example.com")):
        done = run("host", "--target", "http://127.0.0.1:9", "--state-dir", workshop.directory(), *options)
        assert done.returncode == EXIT_USAGE, (options, done)
    done = run("host", "--target", "http://127.0.0.1:9", "--state-dir", workshop.directory(),
               "--relay-ca", "/nonexistent")
    assert_clear_failure(done, 1)
    assert "--relay-ca: there is no such file" in done.stderr
