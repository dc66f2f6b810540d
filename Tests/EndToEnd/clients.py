"""HTTP clients for the tests: curl as people use it, WebSockets, and a bare socket for what they never do."""

import dataclasses
import hashlib
import json
import re
import socket
import struct
import subprocess

from websockets.sync.client import connect as websocket

from origin import pattern, pattern_digest


@dataclasses.dataclass
class CurlResult:
    exit: int
    status: int
    body: bytes
    seconds: float
    size: int
    error: str

    @property
    def json(self):
        return json.loads(self.body)


def curl(*arguments, timeout=60, stdin=None, before=()):
    """Runs curl; its exit code, the last status, and the body."""
    done = subprocess.run(
        [*before, "curl", "-sS", "--noproxy", "*", "--max-time", str(timeout),
         "-w", "%{stderr}\n@@%{http_code} %{time_total} %{size_download}", *map(str, arguments)],
        input=stdin, stdin=subprocess.DEVNULL if stdin is None else None, capture_output=True, timeout=timeout + 10,
    )
    error, _, figures = done.stderr.decode(errors="replace").rpartition("\n@@")
    status, seconds, size = figures.split()
    return CurlResult(done.returncode, int(status), done.stdout, float(seconds), int(size), error)


def do_the_main_job(url, before=()):
    """Small and large, both ways, and the end of one direction before the other's."""
    assert curl(url + "/hello", before=before).body == b"hello\n"
    assert hashlib.sha256(curl(url + "/bytes/5000000", before=before).body).hexdigest() == pattern_digest(5_000_000)
    body = pattern(2_000_000)
    answer = curl("--data-binary", "@-", url + "/echo", stdin=body, before=before)
    assert answer.json["sha256"] == hashlib.sha256(body).hexdigest()


def open_socket(tunnel, path="/socket"):
    return websocket(f"ws://127.0.0.1:{tunnel.port}{path}", max_size=1 << 24, ping_interval=None, proxy=None)


def connect(port, timeout=20):
    connection = socket.create_connection(("127.0.0.1", port), timeout=timeout)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def request(path, method="GET", *fields, host="127.0.0.1"):
    return "\r\n".join([f"{method} {path} HTTP/1.1", f"Host: {host}", *fields, "", ""]).encode()


def read_to_end(connection):
    """Everything until the peer's FIN. A reset raises ConnectionResetError."""
    data = bytearray()
    while piece := connection.recv(1 << 16):
        data += piece
    return bytes(data)


def read_head(connection):
    """(status, head, first bytes of the body) of the next answer."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(1 << 16)
        assert piece, f"the connection ended inside a head: {data!r}"
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    return int(re.match(rb"HTTP/1\.1 (\d{3})", head).group(1)), head, rest


def read_answer(connection):
    """(status, body) of the next answer, which must have a Content-Length."""
    status, head, body = read_head(connection)
    size = int(re.search(rb"(?i)content-length: *(\d+)", head).group(1))
    while len(body) < size:
        piece = connection.recv(1 << 16)
        assert piece, f"the body ended at {len(body)} of {size}"
        body += piece
    return status, body


def exchange(port, data):
    """Sends bytes on a new connection and gives (status, body) of the answer."""
    with connect(port) as connection:
        connection.sendall(data)
        return read_answer(connection)


def reset(connection):
    """Ends the connection with RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def is_served(port):
    try:
        with connect(port, timeout=3) as connection:
            connection.sendall(request("/hello"))
            return read_head(connection)[0] == 200
    except (OSError, AssertionError):
        return False
