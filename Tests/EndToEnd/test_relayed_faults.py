"""What may go wrong with relays, and how hosts and clients take it."""

import base64
import contextlib
import hashlib
import pathlib
import signal
import time

import pytest

import relays
import wire
from clients import connect, curl, do_the_main_job, read_head, request
from daemons import EXIT_UNREACHABLE, assert_clear_failure, run
from origin import pattern_digest
from plain_relay import connect_proxy
from relays import INSECURE, relayed_tunnel

FAKE_TIME = next(pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))


@pytest.mark.timeout(240)
def test_download_survives_the_death_of_the_relay(workshop, big_file):
    """kill -9 in the middle of 1 GiB: the same TCP connection to the proxy gets all of it."""
    size = big_file[1]
    with relays.relay() as first:
        port = first.port
        tunnel = relayed_tunnel(workshop, first, "--path", "relay")
        connection = connect(tunnel.port)
        connection.sendall(request(f"/bytes/{size}"))
        status, _, body = read_head(connection)
        assert status == 200
        digest, received = hashlib.sha256(body), len(body)
        was_killed = False
        while received < size:
            piece = connection.recv(1 << 18)
            assert piece, "the proxy closed the connection"
            digest.update(piece)
            received += len(piece)
            if not was_killed and received > size // 3:
                was_killed = True
                first.signal(signal.SIGKILL)
                time.sleep(2)  # so that probes and attempts to connect fail before the relay is back
                workshop.enter(relays.relay(listen=f"127.0.0.1:{port}"))
        assert (received, digest.hexdigest()) == (size, pattern_digest(size))
        assert was_killed


def test_a_relay_that_restarts_in_order_is_found_again(workshop):
    with relays.relay() as first:
        port = first.port
        tunnel = relayed_tunnel(workshop, first, "--path", "relay")
        assert curl(tunnel.url + "/hello").body == b"hello\n"
        assert first.stop() == 0
        with relays.relay(listen=f"127.0.0.1:{port}"):
            assert curl(tunnel.url + "/hello").body == b"hello\n"
        tunnel.host.daemon.event("relay", state="lost")
        tunnel.host.daemon.event("relay", state="connected")


def test_a_dead_relay_does_not_hold_up_a_direct_connection(workshop, relay):
    host = workshop.host(workshop.origin().target, "--relay", relay.url, INSECURE)
    relay.close()
    client = workshop.connect(host.ready["invite"], INSECURE)
    client.daemon.event("path", kind="direct")


def test_a_clock_that_is_set_back_a_day(workshop, tmp_path):
    """The clock of all three goes back while a download runs: what lives by time goes on, and new invites work."""
    clock = tmp_path / "clock"
    clock.write_text("+0\n")
    # The library changes the environment before main, which must not cost a program its options.
    before = ("env", f"LD_PRELOAD={FAKE_TIME}", f"FAKETIME_TIMESTAMP_FILE={clock}", "FAKETIME_NO_CACHE=1",
              "FAKETIME_DONT_FAKE_MONOTONIC=1")
    with relays.relay(before=before) as relay:
        host = workshop.host(
            workshop.origin().target, "--relay", relay.url, INSECURE, "--path", "relay", before=before)
        client = workshop.connect(host.ready["invite"], INSECURE, before=before)
        with contextlib.closing(connect(client.port)) as connection:
            size = 50_000_000
            connection.sendall(request(f"/bytes/{size}"))
            _, _, body = read_head(connection)
            clock.write_text("-1d\n")
            digest, received = hashlib.sha256(body), len(body)
            while received < size:
                piece = connection.recv(1 << 18)
                assert piece, "the proxy closed the connection"
                digest.update(piece)
                received += len(piece)
            assert digest.hexdigest() == pattern_digest(size)
        invite = host.invite()
        assert wire.parse_invite(invite)[1]["expiresAt"] < wire.date(-80_000), "the host's clock was set back"
        late = workshop.connect(invite, INSECURE, before=before)
        do_the_main_job(late.url)
        relay.signal(signal.SIGKILL)
        with relays.relay(listen=f"127.0.0.1:{relay.port}"):
            do_the_main_job(client.url)


def fails_to_connect(workshop, invite, *options, environment=None):
    done = run("connect", invite, "--state-dir", workshop.directory("client"), *options, environment=environment)
    assert "127.0.0.1" not in done.stderr and "localhost" not in done.stderr, "no relay URL in what people see"
    return done


def test_what_is_wrong_with_a_relay_is_told(workshop, relay):
    host = workshop.host(workshop.origin().target, "--relay", relay.url, INSECURE, "--path", "relay")
    done = fails_to_connect(workshop, host.ready["invite"])
    assert_clear_failure(done, 1)
    assert "--allow-insecure-relay" in done.stderr
    relay.close()
    done = fails_to_connect(workshop, host.ready["invite"], INSECURE)
    assert_clear_failure(done, EXIT_UNREACHABLE)
    assert "relay" in done.stderr


def test_a_relay_that_asks_for_a_token(workshop, tmp_path):
    token, wrong = tmp_path / "token", tmp_path / "wrong"
    for path, text in ((token, "right"), (wrong, "wrong")):
        path.write_text(text + "\n")
        path.chmod(0o600)
    with relays.relay("--token-file", token) as relay:
        host = workshop.host(
            workshop.origin().target, "--relay", relay.url, INSECURE, "--path", "relay", "--relay-token-file", token)
        for options in ((), ("--relay-token-file", wrong)):
            done = fails_to_connect(workshop, host.ready["invite"], INSECURE, *options)
            assert_clear_failure(done, EXIT_UNREACHABLE)
            assert "token" in done.stderr
        client = workshop.connect(host.ready["invite"], INSECURE, "--relay-token-file", token)
        do_the_main_job(client.url)


def test_a_relay_that_nobody_vouches_for(workshop, tmp_path):
    authority, chain, key = relays.certificate(tmp_path)
    with relays.relay("--tls-cert", chain, "--tls-key", key) as relay:
        url = f"https://127.0.0.1:{relay.port}"
        host = workshop.host(
            workshop.origin().target, "--relay", url, INSECURE, "--path", "relay", "--relay-ca", authority)
        done = fails_to_connect(workshop, host.ready["invite"], INSECURE)
        assert_clear_failure(done, EXIT_UNREACHABLE)
        assert "certificate" in done.stderr
        client = workshop.connect(host.ready["invite"], INSECURE, "--relay-ca", authority)
        do_the_main_job(client.url)


def test_the_host_tells_when_its_relay_refuses_it(workshop, tmp_path):
    nobody = tmp_path / "allow"
    nobody.write_text("# nobody\n")
    with relays.relay("--allow", nobody) as relay:
        host = workshop.host(workshop.origin().target, "--relay", relay.url, INSECURE)
        assert "refuses this node" in host.daemon.event("error")["message"]


def test_relays_are_reached_through_an_http_proxy(workshop, tmp_path):
    authority, chain, key = relays.certificate(tmp_path)
    with relays.relay("--tls-cert", chain, "--tls-key", key) as relay, \
            connect_proxy(base64.b64encode(b"me:secret").decode().lower()) as (port, targets):
        url = f"https://127.0.0.1:{relay.port}"
        host = workshop.host(
            workshop.origin().target, "--relay", url, INSECURE, "--path", "relay", "--relay-ca", authority)
        options = (INSECURE, "--relay-ca", authority)
        done = fails_to_connect(
            workshop, host.ready["invite"], *options, environment={"HTTPS_PROXY": f"http://127.0.0.1:{port}"})
        assert_clear_failure(done, EXIT_UNREACHABLE)
        assert "proxy" in done.stderr and targets
        client = workshop.connect(
            host.ready["invite"], *options, environment={"HTTPS_PROXY": f"http://me:secret@127.0.0.1:{port}"})
        do_the_main_job(client.url)
        assert set(targets) == {f"127.0.0.1:{relay.port}"}
        count = len(targets)
        other = workshop.connect(host.invite(), *options, environment={
            "HTTPS_PROXY": f"http://127.0.0.1:{port}", "NO_PROXY": "example.com,127.0.0.0/8"})
        assert curl(other.url + "/hello").body == b"hello\n"
        assert len(targets) == count
