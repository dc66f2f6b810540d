"""The main job with curl and bare sockets: every byte and every end passes through unchanged."""

import hashlib
import subprocess

import pytest

from clients import connect, curl, read_answer, read_head, read_to_end, request
from daemons import wait_for
from origin import pattern, pattern_digest


def test_get(tunnel):
    answer = curl(tunnel.url + "/hello")
    assert (answer.exit, answer.status, answer.body) == (0, 200, b"hello\n")


def test_head_keeps_the_length_and_sends_no_body(tunnel):
    answer = curl("--head", tunnel.url + "/bytes/123456")
    assert answer.exit == 0 and b"Content-Length: 123456" in answer.body
    assert answer.body.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_body_with_content_length(tunnel, method):
    body = pattern(300_000)
    seen = curl("-X", method, "--data-binary", "@-", tunnel.url + "/echo", stdin=body).json
    assert (seen["method"], seen["size"]) == (method, len(body))
    assert seen["sha256"] == hashlib.sha256(body).hexdigest()


def test_empty_body_keeps_its_content_length(tunnel):
    seen = curl("-X", "POST", "-H", "Content-Length: 0", tunnel.url + "/echo").json
    assert ["Content-Length", "0"] in seen["headers"]


def test_chunked_upload(tunnel):
    body = pattern(300_000)
    seen = curl("-T", "-", "-H", "Transfer-Encoding: chunked", tunnel.url + "/echo", stdin=body).json
    assert ["Transfer-Encoding", "chunked"] in seen["headers"]
    assert seen["sha256"] == hashlib.sha256(body).hexdigest()


def test_trailers_of_an_upload(tunnel):
    with connect(tunnel.port) as connection:
        connection.sendall(request("/echo", "POST", "Transfer-Encoding: chunked", "Trailer: X-Sum"))
        connection.sendall(b"5\r\nhello\r\n0\r\nX-Sum: 7\r\n\r\n")
        _, body = read_answer(connection)
    assert b"X-Sum: 7" in body


def test_chunks_and_trailers_of_a_download(tunnel):
    with connect(tunnel.port) as connection:
        connection.sendall(request("/chunked", "GET", "Connection: close"))
        data = b""
        while not data.endswith(b"\r\n\r\n") or b"0\r\nX-Checksum" not in data:
            data += connection.recv(65536)
    assert data.endswith(b"4\r\none \r\n4\r\ntwo \r\n6\r\nthree\n\r\n0\r\nX-Checksum: 42\r\n\r\n")


def test_expect_100_continue(tunnel):
    answer = curl("-v", "-H", "Expect: 100-continue", "--expect100-timeout", "30", "--data-binary", "@-",
                  tunnel.url + "/echo", stdin=pattern(200_000))
    assert answer.exit == 0 and answer.json["size"] == 200_000
    assert "100 Continue" in answer.error
    assert answer.seconds < 20, "the client waited for its own timer instead of the 100"


def test_range(tunnel):
    answer = curl("-r", "100000-150000", tunnel.url + "/bytes/1000000")
    assert answer.status == 206
    assert answer.body == pattern(50_001, 100_000)


def test_request_bytes_arrive_unchanged(tunnel):
    head = b"GET /echo?q=a%20b&c HTTP/1.1\r\nhOsT:   localhost\r\nX-Odd:\tvalue  \r\nx-odd: again\r\n\r\n"
    with connect(tunnel.port) as connection:
        connection.sendall(head)
        assert read_answer(connection)[0] == 200
    assert any(seen.raw_head == head for seen in tunnel.origin.requests)


def test_connection_is_reused(tunnel):
    urls = [tunnel.url + "/hello"] * 20
    done = subprocess.run(["curl", "-sv", "--noproxy", "*", "--max-time", "30", *urls], capture_output=True, text=True)
    assert done.stdout == "hello\n" * 20
    assert done.stderr.count("Connected to") == 1
    assert done.stderr.count("Re-using existing connection") == 19


def test_pipelined_requests_are_answered_in_order(tunnel):
    with connect(tunnel.port) as connection:
        connection.sendall(b"".join(request(f"/bytes/{size}") for size in (10, 70_000, 1))
                           + request("/bytes/3", "GET", "Connection: close"))
        data = bytearray()
        while data.count(b"HTTP/1.1 200 OK") < 4 or not data.endswith(pattern(3)):
            piece = connection.recv(65536)
            assert piece
            data += piece
    bodies = [part.partition(b"\r\n\r\n")[2] for part in bytes(data).split(b"HTTP/1.1 200 OK")[1:]]
    assert [len(body) for body in bodies] == [10, 70_000, 1, 3]
    assert bodies[1] == pattern(70_000)


def test_body_that_ends_with_the_connection(tunnel):
    answer = curl(tunnel.url + "/until-close/500000")
    assert answer.exit == 0 and answer.body == pattern(500_000)


def test_server_sent_event_arrives_before_the_next_is_made(tunnel):
    with connect(tunnel.port) as connection:
        connection.sendall(request("/events/prompt"))
        _, _, data = read_head(connection)
        while b"data: first\n\n" not in data:
            data += connection.recv(4096)
        assert b"second" not in data
        tunnel.origin.open_gate("prompt")
        assert b"data: second\n\n" in read_to_end(connection)


def test_early_answer_to_a_big_upload(tunnel):
    for _ in range(5):
        answer = curl("-T", "-", "-H", "Expect:", tunnel.url + "/early", stdin=pattern(20_000_000))
        assert answer.status == 413, answer
        assert answer.body == b"too large\n"


def test_download_of_1_gib(tunnel):
    size = 1 << 30
    with subprocess.Popen(["curl", "-sS", "--noproxy", "*", "--max-time", "60", f"{tunnel.url}/bytes/{size}"],
                          stdout=subprocess.PIPE) as process:
        digest, count = hashlib.sha256(), 0
        while piece := process.stdout.read(1 << 20):
            digest.update(piece)
            count += len(piece)
    assert (process.returncode, count) == (0, size)
    assert digest.hexdigest() == pattern_digest(size)


def test_upload_of_1_gib(tunnel, big_file):
    path, size, digest = big_file
    answer = curl("-T", path, "-H", "Expect:", tunnel.url + "/echo", timeout=60)
    assert answer.exit == 0
    assert (answer.json["size"], answer.json["sha256"]) == (size, digest)


def test_many_transfers_at_once_do_not_mix(tunnel):
    sizes = [(1 << 20) + 4099 * number for number in range(32)]
    processes = [
        subprocess.Popen(["curl", "-sS", "--noproxy", "*", "--max-time", "60", f"{tunnel.url}/bytes/{size}"], stdout=subprocess.PIPE)
        for size in sizes
    ]
    for process, size in zip(processes, sizes):
        body, _ = process.communicate(timeout=60)
        assert process.returncode == 0 and hashlib.sha256(body).hexdigest() == pattern_digest(size)


def test_target_on_a_unix_socket(workshop):
    origin = workshop.origin(unix_path=str(workshop.directory("app")))
    tunnel = workshop.tunnel(origin=origin)
    body = pattern(1 << 20)
    assert curl(tunnel.url + "/hello").body == b"hello\n"
    assert curl("--data-binary", "@-", tunnel.url + "/echo", stdin=body).json["size"] == len(body)


def test_url_is_loopback_and_the_proxy_listens_nowhere_else(tunnel):
    assert tunnel.url == f"http://127.0.0.1:{tunnel.port}"
    listening = wait_for(lambda: [
        line.split()[1] for line in open("/proc/net/tcp").readlines()[1:]
        if line.split()[3] == "0A" and int(line.split()[1].split(":")[1], 16) == tunnel.port
    ], "the proxy's listener")
    assert [address.split(":")[0] for address in listening] == ["0100007F"]
    assert not any(int(line.split()[1].split(":")[1], 16) == tunnel.port and line.split()[3] == "0A"
                   for line in open("/proc/net/tcp6").readlines()[1:])
