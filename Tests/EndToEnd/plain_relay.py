"""A relay in a few lines, independent of the product, that keeps all it passes on; and an HTTP proxy that knows CONNECT."""

import asyncio
import concurrent.futures
import contextlib
import http
import os
import threading

import blake3
import nacl.signing
from websockets.asyncio.server import serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Response

from relays import AUTH, CHALLENGE, CONFIRMS, GOT, GOT_BATCH, PING, PONG, SEND, SEND_BATCH

CONTEXT = "iroh-relay handshake v1 challenge signature"


class PlainRelay:
    """Speaks one version of the relay protocol, without limits and without rules."""

    def __init__(self, version):
        self.version = version
        self.passed = bytearray()
        self.segments = set()
        self._clients = {}

    async def _serve(self, socket):
        challenge = os.urandom(16)
        await socket.send(bytes([CHALLENGE]) + challenge)
        answer = await socket.recv()
        assert answer[0] == AUTH and answer[33] == 64
        node = answer[1:33]
        signed = blake3.blake3(challenge, derive_key_context=CONTEXT).digest()
        nacl.signing.VerifyKey(node).verify(signed, answer[34:])
        await socket.send(bytes([CONFIRMS]))
        self._clients[node] = socket
        with contextlib.suppress(ConnectionClosed):
            async for frame in socket:
                await self._take(socket, node, frame)
        if self._clients.get(node) is socket:
            del self._clients[node]

    async def _take(self, socket, node, frame):
        kind = frame[0]
        if kind == PING:
            return await socket.send(bytes([PONG]) + frame[1:])
        if kind == PONG:
            return
        assert kind in (SEND, SEND_BATCH), f"a client sent a frame of type {kind}"
        self.passed += frame
        self.segments.add(int.from_bytes(frame[34:36], "big") if kind == SEND_BATCH else len(frame) - 34)
        if (other := self._clients.get(frame[1:33])) is not None:
            with contextlib.suppress(ConnectionClosed):
                await other.send(bytes([GOT if kind == SEND else GOT_BATCH]) + node + frame[33:])

    @staticmethod
    def _answer(_, request):
        if request.path == "/ping":
            return Response(http.HTTPStatus.OK, "OK", Headers({"Content-Length": "0"}), b"")


@contextlib.contextmanager
def in_thread(start):
    """Runs what the coroutine function `start` gives, an asynchronous context, on a loop of its own; gives its value."""
    started = concurrent.futures.Future()

    async def main():
        stop = asyncio.Event()
        async with start() as served:
            started.set_result((served, asyncio.get_running_loop(), stop))
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    served, loop, stop = started.result(5)
    try:
        yield served
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)


@contextlib.contextmanager
def plain_relay(version="iroh-relay-v2", address="127.0.0.1"):
    """Gives (relay, URL)."""
    relay = PlainRelay(version)

    @contextlib.asynccontextmanager
    async def start():
        async with serve(relay._serve, address, 0, subprotocols=[version], compression=None, max_size=1 << 20,
                         process_request=relay._answer) as server:
            yield server.sockets[0].getsockname()[1]

    with in_thread(start) as port:
        yield relay, f"http://{address}:{port}"


@contextlib.contextmanager
def connect_proxy(credentials=None):
    """An HTTP proxy on loopback; gives (port, the targets that were asked for)."""
    targets = []

    async def handle(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        targets.append(head.split()[1])
        if credentials and f"proxy-authorization: basic {credentials}" not in head.lower():
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return writer.close()
        host, _, port = targets[-1].rpartition(":")
        there, back = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")

        async def copy(source, target):
            with contextlib.suppress(ConnectionError):
                while piece := await source.read(1 << 16):
                    target.write(piece)
                    await target.drain()
            target.close()

        await asyncio.gather(copy(reader, back), copy(there, writer))

    @contextlib.asynccontextmanager
    async def start():
        async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
            yield server.sockets[0].getsockname()[1]

    with in_thread(start) as port:
        yield port, targets
