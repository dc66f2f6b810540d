"""Memory, descriptors and connections stay within their bounds, whatever the clients do."""

import socket
import time

from clients import connect, curl, exchange, read_answer, read_head, request
from daemons import wait_for

MEMORY_LIMIT = 96 << 20  # far above what two windows of 8 MiB need, far below 1 GiB
LOCAL_CONNECTIONS = 1024


def settled(read, still=1.0, timeout=30.0):
    """Waits until a number has not changed for `still` seconds."""
    deadline, value, since = time.monotonic() + timeout, read(), time.monotonic()
    while time.monotonic() - since < still:
        assert time.monotonic() < deadline, "the number keeps changing"
        time.sleep(0.05)
        if (now := read()) != value:
            value, since = now, time.monotonic()
    return value


def test_stalled_reader_of_1_gib_costs_little_memory_and_slows_nobody(workshop):
    tunnel = workshop.tunnel()
    path = f"/stream/{1 << 30}"
    with connect(tunnel.port) as stalled:
        stalled.sendall(request(path))
        read_head(stalled)
        taken = settled(lambda: tunnel.origin.sent.get(path, 0))
        assert taken < 64 << 20, f"{taken >> 20} MiB are buffered for a reader that reads nothing"
        assert curl(tunnel.url + "/hello").seconds < 1
        assert curl(f"{tunnel.url}/bytes/{64 << 20}", timeout=20).size == 64 << 20
        for daemon in (tunnel.host.daemon, tunnel.client.daemon):
            assert daemon.peak_memory() < MEMORY_LIMIT, f"{daemon.peak_memory() >> 20} MiB"


def test_many_stalled_readers_cost_bounded_memory(workshop):
    tunnel = workshop.tunnel()
    readers = []
    for number in range(20):
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.connect(("127.0.0.1", tunnel.port))
        reader.sendall(request(f"/stream/{(1 << 30) + number}"))
        readers.append(reader)
    settled(lambda: sum(tunnel.origin.sent.values()))
    assert curl(tunnel.url + "/hello", timeout=20).status == 200
    for daemon in (tunnel.host.daemon, tunnel.client.daemon):
        assert daemon.peak_memory() < 4 * MEMORY_LIMIT, f"{daemon.peak_memory() >> 20} MiB"
    for reader in readers:
        reader.close()


def test_stalled_upload_costs_little_memory(workshop):
    tunnel = workshop.tunnel()
    with connect(tunnel.port) as upload:
        upload.sendall(request("/hang/upload", "POST", f"Content-Length: {1 << 30}"))
        wait_for(lambda: tunnel.origin.is_waiting("upload"), "the request")
        upload.settimeout(1)
        sent = 0
        try:
            while sent < 1 << 28:
                sent += upload.send(bytes(1 << 16))
        except TimeoutError:
            pass
    for daemon in (tunnel.host.daemon, tunnel.client.daemon):
        assert daemon.peak_memory() < MEMORY_LIMIT, f"{daemon.peak_memory() >> 20} MiB"


def test_500_connections_leave_no_descriptor_behind(workshop):
    tunnel = workshop.tunnel()
    daemons = (tunnel.host.daemon, tunnel.client.daemon)
    assert curl(tunnel.url + "/hello").status == 200
    before = [settled(daemon.descriptors, still=0.3) for daemon in daemons]
    for number in range(500):
        with connect(tunnel.port) as connection:
            kind = number % 5
            if kind == 0:
                connection.sendall(request("/hello"))
                assert read_answer(connection)[0] == 200
            elif kind == 1:  # goes away in the middle of a body
                connection.sendall(request("/bytes/10000000"))
                read_head(connection)
            elif kind == 2:  # goes away before the answer
                connection.sendall(request("/hang/left"))
            elif kind == 3:  # the server resets
                connection.sendall(request("/reset"))
            else:  # says nothing, or nonsense
                connection.sendall(b"nonsense\r\n\r\n" if number % 2 else b"")
    wait_for(lambda: [daemon.descriptors() for daemon in daemons] <= before, "all descriptors to be closed", timeout=20)
    assert curl(tunnel.url + "/hello").status == 200


def test_connections_above_the_limit_are_refused_clearly(workshop):
    tunnel = workshop.tunnel()
    crowd = []
    try:
        for _ in range(LOCAL_CONNECTIONS):
            connection = connect(tunnel.port)
            connection.sendall(request("/hang/crowd"))
            crowd.append(connection)
        wait_for(lambda: len(tunnel.origin.requests) == LOCAL_CONNECTIONS, "all requests at the server", timeout=60)
        status, body = exchange(tunnel.port, request("/hello"))
        assert status == 503 and b'"limit"' in body
        crowd.pop().close()
        wait_for(lambda: exchange(tunnel.port, request("/hello"))[0] == 200, "a free place")
        tunnel.origin.open_gate("crowd")
        assert all(read_answer(connection)[0] == 200 for connection in crowd)
    finally:
        for connection in crowd:
            connection.close()


def test_limit_of_local_connections_can_be_set(workshop):
    tunnel = workshop.tunnel("--max-connections", "2")
    with connect(tunnel.port) as one, connect(tunnel.port) as two:
        for connection in (one, two):
            connection.sendall(request("/hello"))
            assert read_answer(connection)[0] == 200
        assert exchange(tunnel.port, request("/hello"))[0] == 503


def test_running_out_of_descriptors_does_not_end_the_listener(workshop):
    tunnel = workshop.tunnel(before=["prlimit", "--nofile=100:100"])
    crowd = [connect(tunnel.port) for _ in range(200)]
    for connection in crowd:
        connection.close()
    assert curl(tunnel.url + "/hello", timeout=20).status == 200
    assert tunnel.client.daemon.is_running
