"""Ends and resets travel one by one, and a broken body never looks complete."""

import contextlib
import socket
import threading

import pytest

from clients import connect, curl, read_answer, read_head, read_to_end, request, reset
from daemons import wait_for
from origin import pattern


def test_half_closed_client_gets_the_delayed_answer(tunnel):
    with connect(tunnel.port) as connection:
        connection.sendall(request("/after-end", "POST") + b"x" * 1000)
        connection.shutdown(1)
        status, body = read_answer(connection)
    assert (status, body) == (200, b'{"size": 1000}')


def test_server_that_ends_first_delivers_every_byte(tunnel):
    with connect(tunnel.port) as connection:
        connection.sendall(request("/end-first/3000000"))
        _, _, body = read_head(connection)
        body += read_to_end(connection)
    assert body == pattern(3_000_000)
    # The end of the answer ended the stream, so the server is rid of the connection although the client never ended it.
    wait_for(lambda: "/end-first/3000000" in tunnel.origin.ends, "the end of the connection at the server")


def test_reset_by_the_server_is_a_reset_at_the_client(tunnel):
    with connect(tunnel.port) as connection:
        connection.sendall(request("/reset"))
        with pytest.raises(ConnectionResetError):
            read_to_end(connection)


def test_reset_by_the_client_is_a_reset_at_the_server(tunnel):
    connection = connect(tunnel.port)
    connection.sendall(request("/hang/reset-by-client"))
    wait_for(lambda: tunnel.origin.is_waiting("reset-by-client"), "the request at the server")
    reset(connection)
    wait_for(lambda: tunnel.origin.ends.get("/hang/reset-by-client") == "reset", "the reset at the server")


def test_client_that_goes_away_is_noticed_at_once(tunnel):
    connection = connect(tunnel.port)
    connection.sendall(request("/hang/gone"))
    wait_for(lambda: tunnel.origin.is_waiting("gone"), "the request at the server")
    connection.close()
    wait_for(lambda: "/hang/gone" in tunnel.origin.ends, "the end at the server", timeout=2)


@pytest.mark.parametrize("how", ["close", "reset"])
def test_body_that_the_server_cuts_short_is_an_error(tunnel, how):
    answer = curl(f"{tunnel.url}/stopped/{how}")
    assert answer.exit in (18, 56), answer  # partial file, or reset
    assert len(answer.body) < 65536


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
def test_server_killed_in_the_middle_is_never_a_clean_end(workshop, framing):
    tunnel = workshop.tunnel()
    with connect(tunnel.port) as connection:
        connection.sendall(request(f"/never-ending/{framing}"))
        assert read_head(connection)[0] == 200
        connection.recv(1024)
        tunnel.origin.stop()
        with pytest.raises(ConnectionResetError):
            read_to_end(connection)


def test_host_killed_in_the_middle_is_never_a_clean_end(workshop):
    tunnel = workshop.tunnel()
    with connect(tunnel.port, timeout=60) as connection:
        connection.sendall(request("/never-ending/close"))
        assert read_head(connection)[0] == 200
        tunnel.host.daemon.kill()
        with pytest.raises(ConnectionResetError):
            read_to_end(connection)


def test_server_that_never_answers_holds_up_nobody_else(tunnel):
    with connect(tunnel.port) as stuck:
        stuck.sendall(request("/hang/for-long"))
        wait_for(lambda: tunnel.origin.is_waiting("for-long"), "the request at the server")
        assert curl(tunnel.url + "/hello", timeout=5).status == 200
        tunnel.origin.open_gate("for-long")
        assert read_answer(stuck)[0] == 200


class AbruptServer:
    """Answers as soon as it has read a head, and closes with the rest unread: the kernel then sends a reset."""

    def __init__(self, answer):
        self._answer = answer
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.target = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                head = b""
                while b"\r\n\r\n" not in head:
                    head += connection.recv(1024)
                connection.sendall(self._answer)

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def test_answer_of_a_server_that_does_not_read_the_upload_arrives(workshop):
    answer = b"HTTP/1.1 413 Too Large\r\nContent-Length: 6\r\nConnection: close\r\n\r\nlarge\n"
    with contextlib.closing(AbruptServer(answer)) as server:
        tunnel = workshop.tunnel(origin=server)
        for _ in range(20):
            with connect(tunnel.port) as connection:
                connection.sendall(request("/upload", "POST", "Content-Length: 100000000"))
                with contextlib.suppress(OSError):
                    connection.sendall(b"x" * 200_000)
                assert read_answer(connection) == (413, b"large\n")
