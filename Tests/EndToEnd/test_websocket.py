"""WebSocket clients, a browser and URLSession use the loopback URL unchanged."""

import contextlib
import html
import json
import re
import shutil
import subprocess
import threading
import time

import pytest
from websockets.exceptions import ConnectionClosed

from clients import open_socket
from conftest import ROOT
from daemons import wait_for

IDLE_SECONDS = 75  # longer than any idle time that a proxy or QUIC connection may have


@pytest.fixture(scope="session", autouse=True)
def idle_socket(tunnel):
    """Opened at the beginning of the run, so that its silence costs no time. (connection, time)"""
    with open_socket(tunnel, "/socket/idle") as connection:
        connection.send("first")
        assert connection.recv(10) == "first"
        yield connection, time.monotonic()


def test_text_and_binary_messages(tunnel):
    with open_socket(tunnel) as connection:
        for message in ("hello", "", "snow ☃ " * 5000, b"\x00\xff" * 10, bytes(4_000_000)):
            connection.send(message)
            assert connection.recv(30) == message


def test_ping_is_answered_by_the_server(tunnel):
    with open_socket(tunnel) as connection:
        assert connection.ping(b"are you there").wait(10)


def test_close_code_of_the_client_reaches_the_server(tunnel):
    with open_socket(tunnel, "/socket/closed-by-client") as connection:
        connection.close(4123, "done here")
    assert wait_for(lambda: tunnel.origin.ends.get("/socket/closed-by-client"), "the close") == (4123, "done here")


def test_close_code_of_the_server_reaches_the_client(tunnel):
    with open_socket(tunnel) as connection:
        connection.send("close 4321 that is all")
        with pytest.raises(ConnectionClosed) as caught:
            connection.recv(10)
    assert (caught.value.rcvd.code, caught.value.rcvd.reason) == (4321, "that is all")


def test_hundred_sockets_at_once(tunnel):
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(open_socket(tunnel)) for _ in range(100)]
        for number, connection in enumerate(connections):
            connection.send(f"message {number}")
        for number, connection in enumerate(connections):
            assert connection.recv(20) == f"message {number}"


@pytest.mark.last
def test_connection_idle_for_more_than_a_minute_stays_open(idle_socket):
    connection, opened = idle_socket
    # The one wait for time itself; the other tests have used up most or all of it.
    threading.Event().wait(max(0, opened + IDLE_SECONDS - time.monotonic()))
    connection.send("still there")
    assert connection.recv(10) == "still there"
    assert connection.ping().wait(10)


# The picture keeps the page loading, and the browser from printing it, until the script is done.
PAGE = """<!doctype html><meta charset="utf-8"><pre id="results">running</pre><img src="/hang/page-done"><script>
(async () => {
  const results = {};
  try {
    results.get = await (await fetch("/hello")).text();
    const body = new Uint8Array(2 << 20).fill(7);
    results.post = (await (await fetch("/echo", { method: "POST", body })).json()).size;
    const pieces = await Promise.all([...Array(12).keys()].map((n) => fetch(`/bytes/${100000 + n}`)));
    results.parallel = await Promise.all(pieces.map(async (answer) => (await answer.arrayBuffer()).byteLength));
    results.socket = await new Promise((resolve, reject) => {
      const socket = new WebSocket(`ws://${location.host}/socket`);
      const got = [];
      socket.binaryType = "arraybuffer";
      socket.onopen = () => { socket.send("text"); socket.send(new Uint8Array([1, 2, 3])); };
      socket.onmessage = (event) => {
        got.push(typeof event.data === "string" ? event.data : [...new Uint8Array(event.data)]);
        if (got.length === 2) socket.send("close 4000 bye");
      };
      socket.onclose = (event) => resolve([...got, event.code, event.reason]);
      socket.onerror = () => reject(new Error("WebSocket failed"));
    });
  } catch (error) {
    results.error = String(error);
  }
  document.getElementById("results").textContent = JSON.stringify(results);
  await fetch("/open/page-done");
})();
</script>"""


def test_browser_uses_fetch_and_websocket(tunnel, tmp_path):
    chromium = shutil.which("chromium") or shutil.which("chromium-headless-shell")
    assert chromium, "no chromium; ./test installs it"
    tunnel.origin.pages["browser"] = PAGE.encode()
    done = subprocess.run(
        [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
         "--disable-background-networking", "--no-proxy-server", f"--user-data-dir={tmp_path}",
         "--dump-dom", f"{tunnel.url}/page/browser"],
        capture_output=True, text=True, timeout=90)
    results = re.search(r'<pre id="results">(.*?)</pre>', done.stdout, re.DOTALL)
    assert results, (done.stdout[-2000:], done.stderr[-2000:])
    assert json.loads(html.unescape(results.group(1))) == {
        "get": "hello\n",
        "post": 2 << 20,
        "parallel": [100000 + n for n in range(12)],
        "socket": ["text", [1, 2, 3], 4000, "bye"],
    }


def test_urlsession(tunnel, tmp_path):
    example = ROOT / "examples/url-session/Sources/url-session/main.swift"
    program = tmp_path / "url-session"
    built = subprocess.run(["swiftc", "-swift-version", "6", example, "-o", program], capture_output=True, text=True, timeout=120)
    assert built.returncode == 0, built.stderr
    done = subprocess.run([program, tunnel.url], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert done.stdout.splitlines() == ["GET /hello: 200, 6 bytes", "POST /echo: 200, the server got 1000000 bytes"]
