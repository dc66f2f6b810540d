"""Stopping: requests finish or are cut, peers hear of it, and nothing is claimed that is not known."""

import contextlib
import signal
import socket
import threading

import pytest

from clients import connect, is_served, read_head, read_to_end, request
from daemons import (
    EXIT_FAILURE, EXIT_SUCCESS, EXIT_UNREACHABLE, assert_clear_failure, free_udp_port, pair, run, wait_for,
)
from origin import pattern

EXIT_INTERRUPTED = 130


@pytest.mark.parametrize("side", ["host", "client"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stop_lets_a_running_download_finish(workshop, side, number):
    tunnel = workshop.tunnel()
    daemon = getattr(tunnel, side).daemon
    with connect(tunnel.port) as download:
        download.sendall(request("/half/stop", "GET", "Connection: close"))
        _, _, body = read_head(download)
        while len(body) < 32768:
            body += download.recv(65536)
        daemon.signal(number)
        # Only what runs may finish: nothing new is served from now on.
        wait_for(lambda: not is_served(tunnel.port), "the refusal of new requests", timeout=4)
        assert daemon.is_running
        tunnel.origin.open_gate("stop")
        while len(body) < 65536:
            piece = download.recv(65536)
            assert piece, f"cut at {len(body)}"
            body += piece
    assert body == pattern(65536)
    assert daemon.exit_code(timeout=7) == EXIT_SUCCESS
    assert "error" not in daemon.error_text.lower()
    assert not [event for event in daemon.events if event["event"] == "error"]


@pytest.mark.parametrize("side", ["host", "client"])
def test_stop_does_not_wait_for_ever(workshop, side):
    tunnel = workshop.tunnel()
    daemon = getattr(tunnel, side).daemon
    with connect(tunnel.port) as stuck:
        stuck.sendall(request("/half/never"))
        assert read_head(stuck)[0] == 200
        assert daemon.stop(timeout=8) == EXIT_SUCCESS


@pytest.mark.parametrize("side", ["host", "client"])
def test_second_signal_stops_at_once_and_the_peer_hears_of_it(workshop, side):
    tunnel = workshop.tunnel()
    daemon = getattr(tunnel, side).daemon
    with connect(tunnel.port) as stuck:
        stuck.sendall(request("/half/never"))
        assert read_head(stuck)[0] == 200
        daemon.signal(signal.SIGINT)
        wait_for(lambda: not is_served(tunnel.port), "the refusal of new requests", timeout=4)
        daemon.signal(signal.SIGINT)
        # Without a word, the peer would notice only after 30 s of silence.
        assert daemon.exit_code(timeout=2) == EXIT_FAILURE
        with pytest.raises(ConnectionResetError):
            read_to_end(stuck)
    if side == "host":
        tunnel.client.daemon.event("disconnected", timeout=2)
    else:
        tunnel.host.daemon.event("disconnected", timeout=2)
    assert daemon.errors == ["culvert: stopped at once; open requests were cut\n"]
    assert daemon.events[-1]["event"] == "error" and daemon.events[-1]["kind"] == "cancelled"


@contextlib.contextmanager
def silent_host(workshop):
    """A host that has gone, with something on its UDP port that never answers: (state of a paired client, an invite
    that is not used, the socket)."""
    port = free_udp_port()
    host = workshop.host(workshop.origin().target, "--name", "studio", listen=f"127.0.0.1:{port}")
    state, invite = pair(workshop, host), host.invite()
    host.daemon.stop()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", port))
        silent.settimeout(10)
        yield state, invite, silent


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("pairs", [True, False])
def test_stop_before_ready_is_no_success(workshop, number, pairs):
    with silent_host(workshop) as (state, invite, silent):
        daemon = workshop.daemon("connect", "--json", invite if pairs else "studio", "--state-dir", state)
        silent.recv(2048)
        daemon.signal(number)
        assert daemon.exit_code(timeout=5) == EXIT_INTERRUPTED
    assert daemon.errors == ["culvert: stopped before it was ready\n"]
    assert [(event["event"], event["kind"]) for event in daemon.events] == [("error", "cancelled")]


@contextlib.contextmanager
def deaf_forwarder(port, host_port):
    """Forwards UDP, but of what the host says only the handshake (long headers, RFC 9000 section 17.2)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as outside, \
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as inside:
        outside.bind(("127.0.0.1", port))
        inside.connect(("127.0.0.1", host_port))
        client = []

        def to_host():
            with contextlib.suppress(OSError):
                while data := outside.recvfrom(65536):
                    client[:] = [data[1]]
                    inside.send(data[0])

        def to_client():
            with contextlib.suppress(OSError):
                while data := inside.recv(65536):
                    if data[0] & 0x80:
                        outside.sendto(data, client[0])

        threads = [threading.Thread(target=work, daemon=True) for work in (to_host, to_client)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            for end in (outside, inside):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            for thread in threads:
                thread.join(5)


def test_stop_during_pairing_tells_that_the_result_is_unknown(workshop):
    port, moved = free_udp_port(), free_udp_port()
    target = workshop.origin().target
    host = workshop.host(target, listen=f"127.0.0.1:{port}")
    invite = host.invite()
    host.daemon.stop()
    host = workshop.host(target, state=host.state, listen=f"127.0.0.1:{moved}")
    with deaf_forwarder(port, moved):
        daemon = workshop.daemon("connect", "--json", invite, "--state-dir", workshop.directory())
        host.daemon.event("paired")
        daemon.signal(signal.SIGINT)
        assert daemon.exit_code(timeout=5) == EXIT_INTERRUPTED
    (event,) = daemon.events
    assert event["event"] == "error" and event["kind"] == "authentication" and "unknown" in event["message"]
    assert "result is unknown; ask for a fresh invite" in daemon.error_text


@pytest.mark.parametrize("pairs", [True, False])
def test_silent_host_is_explained(workshop, pairs):
    with silent_host(workshop) as (state, invite, _):
        done = run("connect", invite if pairs else "studio", "--state-dir", state)
    assert_clear_failure(done, EXIT_UNREACHABLE)
    assert "studio did not answer in time; is culvert host running there" in done.stderr
