"""Runs `culvert-relay`, and speaks its protocol as a client in a few lines (the layouts are iroh's)."""

import asyncio
import contextlib
import ctypes
import http.client
import os
import re
import signal
import subprocess
import threading

import blake3
import nacl.signing
from websockets.asyncio.client import connect

import daemons

CHALLENGE, AUTH, CONFIRMS, DENIES, SEND, SEND_BATCH, GOT, GOT_BATCH, GONE, PING, PONG, HEALTH, RESTARTING, STATUS = range(14)


class Relay:
    """A running relay; `port` is that of its first listener."""

    def __init__(self, *options, listen="127.0.0.1:0", before=()):
        listen = ["--listen", listen] if listen else []
        self._process = subprocess.Popen(
            [*before, daemons.BIN / "culvert-relay", *listen, *map(str, options)], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            preexec_fn=lambda: ctypes.CDLL(None).prctl(1, signal.SIGKILL))
        self.pid = self._process.pid
        self.lines, self.errors = [], []
        self._threads = [threading.Thread(target=self._read, args=pair, daemon=True)
                         for pair in ((self._process.stdout, self.lines), (self._process.stderr, self.errors))]
        for thread in self._threads:
            thread.start()
        self.port = self.port_of("listening")

    @staticmethod
    def _read(stream, lines):
        for line in stream:
            lines.append(line.rstrip("\n"))

    def port_of(self, what):
        """The port in the line that begins with `what`."""
        def find():
            assert self._process.poll() is None, f"the relay ended: {self.errors}"
            return next((m for line in list(self.lines) if (m := re.match(rf"{what} on .*:(\d+)", line))), None)
        return int(daemons.wait_for(find, f"the relay says where it is {what}").group(1))

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def metrics(self):
        """The samples of the page, by name and labels."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port_of("metrics"), timeout=5)
        connection.request("GET", "/metrics")
        answer = connection.getresponse()
        page = answer.read().decode()
        assert answer.status == 200 and answer.headers["Content-Type"].startswith("application/openmetrics-text")
        assert page.endswith("# EOF\n")
        return {name: float(value) for name, _, value in
                (line.rpartition(" ") for line in page.splitlines() if not line.startswith("#"))}

    def signal(self, number):
        os.kill(self.pid, number)

    def reload(self):
        """Reads all files again; gives what the relay says about it."""
        before = len(self.errors)
        self.signal(signal.SIGHUP)
        daemons.wait_for(lambda: len(self.errors) > before, "the relay says that it has read its files")
        return self.errors[before]

    @property
    def is_running(self):
        return self._process.poll() is None

    def stop(self):
        self.signal(signal.SIGTERM)
        return self._process.wait(10)

    def close(self):
        if self.is_running:
            self.signal(signal.SIGKILL)
        self._process.wait(10)
        for thread in self._threads:
            thread.join(5)


@contextlib.contextmanager
def relay(*options, **more):
    running = Relay(*options, **more)
    try:
        yield running
    finally:
        running.close()


INSECURE = "--allow-insecure-relay"  # what our relays need from hosts and clients, as they are on this machine


def relayed_tunnel(workshop, relay, *connect_options, host_options=()):
    """A tunnel whose ends know `relay`."""
    return workshop.tunnel(INSECURE, *connect_options, host_options=("--relay", relay.url, INSECURE, *host_options))


class Denied(Exception):
    pass


class Client:
    """A client of a relay that has proved its key."""

    def __init__(self, socket, key):
        self._socket = socket
        self.id = bytes(key.verify_key)
        self.version = socket.subprotocol

    async def send(self, destination, datagram, ecn=0):
        await self._socket.send(bytes([SEND]) + destination + bytes([ecn]) + datagram)

    async def send_frame(self, frame):
        await self._socket.send(frame)

    async def receive(self, timeout=5):
        """The next frame."""
        return await asyncio.wait_for(self._socket.recv(), timeout)

    async def nothing(self, timeout=0.2):
        """True when nothing comes for a while."""
        try:
            frame = await self.receive(timeout)
        except asyncio.TimeoutError:
            return True
        raise AssertionError(f"there came {frame[:40].hex()}")

    async def synchronize(self):
        """Returns when the relay has handled everything that was sent before."""
        token = os.urandom(8)
        await self._socket.send(bytes([PING]) + token)
        assert await self.receive() == bytes([PONG]) + token

    async def closed(self, timeout=5):
        """The code with which the relay closes."""
        await asyncio.wait_for(self._socket.wait_closed(), timeout)
        return self._socket.close_code

    async def close(self):
        await self._socket.close()

    @property
    def transport(self):
        return self._socket.transport


def proof(key, challenge):
    message = blake3.blake3(challenge, derive_key_context="iroh-relay handshake v1 challenge signature").digest()
    return bytes([AUTH]) + bytes(key.verify_key) + b"\x40" + key.sign(message).signature


@contextlib.asynccontextmanager
async def client(url, key=None, versions=("iroh-relay-v2", "iroh-relay-v1"), answer=proof, **more):
    """Connects; raises Denied when the relay refuses the node."""
    key = key or nacl.signing.SigningKey.generate()
    address = url.replace("http", "ws", 1) + "/relay" + more.pop("query", "")
    options = {"compression": None, "ping_interval": None, "close_timeout": 1} | more
    async with connect(address, subprotocols=list(versions), **options) as socket:
        challenge = await asyncio.wait_for(socket.recv(), 5)
        assert challenge[0] == CHALLENGE and len(challenge) == 17
        await socket.send(answer(key, challenge[1:]))
        verdict = await asyncio.wait_for(socket.recv(), 5)
        if verdict[0] == DENIES:
            raise Denied(verdict[2:].decode())
        assert verdict == bytes([CONFIRMS])
        yield Client(socket, key)


def certificate(directory, name="server", address="127.0.0.1"):
    """A private authority and a certificate of it for `address` and localhost: (authority, chain, key) as files."""
    def openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)

    authority, authority_key = directory / "ca.pem", directory / "ca.key"
    chain, key, request = directory / f"{name}.pem", directory / f"{name}.key", directory / f"{name}.csr"
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    if not authority.exists():
        openssl("req", "-x509", *curve, "-days", 2, "-subj", "/CN=test authority", "-keyout", authority_key, "-out", authority)
    openssl("req", *curve, "-subj", f"/CN={name}", "-keyout", key, "-out", request)
    extensions = directory / "extensions"
    extensions.write_text(f"subjectAltName=IP:{address},DNS:localhost\n")
    openssl("x509", "-req", "-in", request, "-CA", authority, "-CAkey", authority_key, "-days", 2, "-extfile", extensions,
            "-out", chain)
    return authority, chain, key
