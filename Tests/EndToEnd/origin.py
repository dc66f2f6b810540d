"""A scriptable HTTP/1.1 and WebSocket server for the tests, on asyncio in a thread of its own.

It is written on bare streams because the tests are about what servers seldom do: half-closing, resetting, stopping in
the middle, answering before the request is complete. Each path below is one behaviour; `Origin` keeps what it saw.
"""

import asyncio
import contextlib
import dataclasses
import hashlib
import json
import socket
import struct
import threading

from websockets.frames import Opcode
from websockets.server import ServerProtocol

BLOCK = bytes(range(251)) * 1044  # 262,044 bytes; a prime period, so that a shifted or lost piece shows


def pattern(size, start=0):
    """`size` bytes of the body that /bytes/ serves, from offset `start`."""
    shift = start % len(BLOCK)
    return (BLOCK * ((shift + size) // len(BLOCK) + 1))[shift : shift + size]


def pattern_digest(size):
    digest = hashlib.sha256(BLOCK * (size // len(BLOCK)) if size < 1 << 24 else b"")
    if size >= 1 << 24:
        for _ in range(size // len(BLOCK)):
            digest.update(BLOCK)
    digest.update(BLOCK[: size % len(BLOCK)])
    return digest.hexdigest()


@dataclasses.dataclass
class Request:
    method: str
    path: str
    headers: list  # of (name, value) as sent
    raw_head: bytes

    def header(self, name, default=None):
        return next((value for key, value in self.headers if key.lower() == name.lower()), default)


class Origin:
    """Starts on 127.0.0.1 (or a Unix socket) and serves until stop()."""

    def __init__(self, port=0, unix_path=None):
        self._unix_path = unix_path
        self.requests = []
        self.ends = {}  # path -> how the client's direction ended: "eof" or "reset"
        self.sent = {}  # path -> bytes of body that the socket took
        self.gates = {}  # name -> asyncio.Event that a test opens
        self.waiting = set()  # names of gates that a request waits at
        self._tasks = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, args=(port,), daemon=True)
        self._started = threading.Event()
        self._thread.start()
        assert self._started.wait(5)

    # What tests call

    @property
    def target(self):
        return f"unix:{self._unix_path}" if self._unix_path else f"http://127.0.0.1:{self.port}"

    def open_gate(self, name):
        self._call(lambda: self._gate(name).set())

    def is_waiting(self, name):
        return name in self.waiting

    def stop(self):
        """Closes the listener and resets every connection, as when the process is killed."""
        if self._loop.is_closed():
            return
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    # The thread

    def _call(self, function):
        self._loop.call_soon_threadsafe(function)

    def _gate(self, name):
        return self.gates.setdefault(name, asyncio.Event())

    def _run(self, port):
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._start(port))
        self._started.set()
        self._loop.run_forever()

    async def _start(self, port):
        if self._unix_path:
            self._server = await asyncio.start_unix_server(self._accept, self._unix_path, backlog=2048)
        else:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", port, backlog=2048)
            self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self):
        self._server.close()
        for task, writer in list(self._tasks):
            reset(writer)
            task.cancel()
        await asyncio.gather(*(task for task, _ in self._tasks), return_exceptions=True)

    async def _accept(self, reader, writer):
        entry = (asyncio.current_task(), writer)
        self._tasks.add(entry)
        try:
            while await self._serve_one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(entry)
            with contextlib.suppress(ConnectionError):
                writer.close()

    async def _serve_one(self, reader, writer):
        """Serves one request; true when the connection may carry another."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return False
        lines = head.decode("latin-1").split("\r\n")
        method, path, _ = lines[0].split(" ", 2)
        headers = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:] if line]
        request = Request(method, path, headers, head)
        self.requests.append(request)
        name, _, argument = path.lstrip("/").partition("/")
        argument, _, _ = argument.partition("?")
        handler = getattr(self, f"on_{name.partition('?')[0].replace('-', '_')}", self.on_missing)
        return await handler(Exchange(self, request, reader, writer), argument)

    # Behaviours, one a path

    async def on_missing(self, exchange, _):
        await exchange.answer(b"not here\n", status="404 Not Found")
        return True

    async def on_hello(self, exchange, _):
        await exchange.answer(b"hello\n")
        return True

    async def on_page(self, exchange, name):
        """A page that the test put into `pages`."""
        await exchange.answer(self.pages[name], kind="text/html; charset=utf-8")
        return True

    pages = {}

    async def on_echo(self, exchange, _):
        """What arrived, as JSON: method, header fields, and the body's framing, size and digest."""
        if exchange.request.header("Expect", "").lower() == "100-continue":
            await exchange.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        digest, size = hashlib.sha256(), 0
        async for piece in exchange.body():
            digest.update(piece)
            size += len(piece)
        await exchange.answer_json(
            method=exchange.request.method, headers=exchange.request.headers, size=size, sha256=digest.hexdigest(),
            trailers=exchange.trailers,
        )
        return True

    async def on_bytes(self, exchange, argument):
        """/bytes/SIZE: a body with a known digest; honours one byte range."""
        size, start, status, extra = int(argument), 0, "200 OK", []
        if asked := exchange.request.header("Range"):
            first, _, last = asked.removeprefix("bytes=").partition("-")
            start, end = int(first), min(int(last or size - 1), size - 1)
            extra = [f"Content-Range: bytes {start}-{end}/{size}"]
            size, status = end - start + 1, "206 Partial Content"
        await exchange.head(status, f"Content-Length: {size}", "Accept-Ranges: bytes", *extra)
        if exchange.request.method != "HEAD":
            await exchange.pattern(size, start)
        return True

    async def on_half(self, exchange, argument):
        """/half/NAME: half of a 64 KiB body; the rest when the test opens the gate NAME."""
        await exchange.head("200 OK", "Content-Length: 65536")
        await exchange.send(pattern(32768))
        await exchange.wait(argument)
        await exchange.send(pattern(32768, 32768))
        return True

    async def on_never_ending(self, exchange, argument):
        """/never-ending/FRAMING: a body that goes on until the connection dies, in that framing."""
        framing = {"length": "Content-Length: 1000000000", "chunked": "Transfer-Encoding: chunked", "close": "X-Framing: close"}
        await exchange.head("200 OK", framing[argument], "Connection: close")
        while True:
            await exchange.send(b"400\r\n" + pattern(1024) + b"\r\n" if argument == "chunked" else pattern(1024))
            await asyncio.sleep(0.01)

    async def on_stopped(self, exchange, argument):
        """/stopped/HOW: announces 64 KiB, sends half, then ends the connection: HOW is "close" or "reset"."""
        await exchange.head("200 OK", "Content-Length: 65536")
        await exchange.send(pattern(32768))
        if argument == "reset":
            reset(exchange.writer)
        return False

    async def on_reset(self, exchange, _):
        """Resets the connection instead of answering."""
        reset(exchange.writer)
        return False

    async def on_hang(self, exchange, argument):
        """/hang/NAME: never answers unless the test opens the gate; notes how the client went."""
        watcher = asyncio.ensure_future(exchange.watch_end())
        gate = asyncio.ensure_future(exchange.wait(argument))
        await asyncio.wait([watcher, gate], return_when=asyncio.FIRST_COMPLETED)
        watcher.cancel(), gate.cancel()
        if self._gate(argument).is_set():
            await exchange.answer(b"at last\n")
        return False

    async def on_open(self, exchange, argument):
        """/open/NAME: opens the gate, for pages that do it themselves."""
        self._gate(argument).set()
        await exchange.answer(b"open\n")
        return True

    async def on_chunked(self, exchange, _):
        """Three chunks and a trailer field."""
        await exchange.head("200 OK", "Transfer-Encoding: chunked", "Trailer: X-Checksum")
        for text in (b"one ", b"two ", b"three\n"):
            await exchange.send(b"%x\r\n%s\r\n" % (len(text), text))
        await exchange.send(b"0\r\nX-Checksum: 42\r\n\r\n")
        return True

    async def on_until_close(self, exchange, argument):
        """/until-close/SIZE: a body that ends with the connection."""
        await exchange.head("200 OK", "Connection: close")
        await exchange.pattern(int(argument))
        return False

    async def on_events(self, exchange, argument):
        """/events/NAME: a server-sent event at once, a second when the gate opens."""
        await exchange.head("200 OK", "Content-Type: text/event-stream", "Cache-Control: no-cache")
        await exchange.send(b"data: first\n\n")
        await exchange.wait(argument)
        await exchange.send(b"data: second\n\n")
        return False

    async def on_early(self, exchange, _):
        """Refuses an upload without reading it, says so at once, and takes what still comes."""
        await exchange.answer(b"too large\n", "413 Content Too Large", "Connection: close")
        exchange.writer.write_eof()
        await exchange.watch_end()
        return False

    async def on_after_end(self, exchange, _):
        """Answers only after the client has ended its direction, and not at once."""
        size = 0
        while piece := await exchange.reader.read(65536):
            size += len(piece)
        await asyncio.sleep(0.3)
        await exchange.answer_json(size=size)
        return False

    async def on_end_first(self, exchange, argument):
        """/end-first/SIZE: answers, ends its direction first, and takes whatever the client still sends."""
        size = int(argument)
        await exchange.head("200 OK", f"Content-Length: {size}", "Connection: close")
        await exchange.pattern(size)
        exchange.writer.write_eof()
        await exchange.watch_end()
        return False

    async def on_stream(self, exchange, argument):
        """/stream/SIZE: a body, counting in `sent` what the socket took, to see backpressure."""
        size = int(argument)
        await exchange.head("200 OK", f"Content-Length: {size}")
        while size > 0:
            piece = BLOCK[: min(size, 65536)]
            await exchange.send(piece)
            size -= len(piece)
            self.sent[exchange.request.path] = self.sent.get(exchange.request.path, 0) + len(piece)
        return True

    async def on_socket(self, exchange, _):
        """A WebSocket that echoes messages; "close 4321 reason" makes the server close."""
        protocol = ServerProtocol(max_size=1 << 24)
        protocol.receive_data(exchange.request.raw_head)
        opened = False
        while True:
            for event in protocol.events_received():
                if not opened:
                    opened = True
                    protocol.send_response(protocol.accept(event))
                elif event.opcode is Opcode.TEXT and event.data.startswith(b"close "):
                    _, code, reason = event.data.decode().split(" ", 2)
                    protocol.send_close(int(code), reason)
                elif event.opcode is Opcode.TEXT:
                    protocol.send_text(event.data)
                elif event.opcode is Opcode.BINARY:
                    protocol.send_binary(event.data)
            for data in protocol.data_to_send():
                if data:
                    await exchange.send(data)
                else:
                    exchange.writer.write_eof()
            if protocol.close_rcvd:
                self.ends[exchange.request.path] = (protocol.close_rcvd.code, protocol.close_rcvd.reason)
            data = await exchange.reader.read(65536)
            if not data:
                return False
            protocol.receive_data(data)


class Exchange:
    """One request and the connection it came on."""

    def __init__(self, origin, request, reader, writer):
        self.origin, self.request, self.reader, self.writer = origin, request, reader, writer
        self.trailers = []

    async def send(self, data):
        self.writer.write(data)
        await self.writer.drain()

    async def head(self, status, *fields):
        await self.send("\r\n".join([f"HTTP/1.1 {status}", *fields, "", ""]).encode())

    async def answer(self, body, status="200 OK", *fields, kind="text/plain"):
        head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *fields, "", ""])
        await self.send(head.encode() + (b"" if self.request.method == "HEAD" else body))

    async def answer_json(self, **values):
        await self.answer(json.dumps(values).encode(), kind="application/json")

    async def pattern(self, size, start=0):
        while size > 0:
            piece = pattern(min(size, len(BLOCK)), start)
            await self.send(piece)
            start += len(piece)
            size -= len(piece)

    async def body(self):
        """The request's body in pieces, by Content-Length or chunked."""
        if "chunked" in (self.request.header("Transfer-Encoding") or ""):
            while size := int((await self.reader.readline()).split(b";")[0], 16):
                yield await self.reader.readexactly(size)
                await self.reader.readexactly(2)
            while (line := await self.reader.readline()) not in (b"\r\n", b""):
                self.trailers.append(line.decode().strip())
            return
        left = int(self.request.header("Content-Length") or 0)
        while left:
            piece = await self.reader.read(min(left, 1 << 18))
            if not piece:
                self.origin.ends[self.request.path] = "eof"
                raise ConnectionError("the body is incomplete")
            left -= len(piece)
            yield piece

    async def wait(self, gate):
        self.origin.waiting.add(gate)
        await self.origin._gate(gate).wait()

    async def watch_end(self):
        """Reads and drops until the client's direction ends, and notes how."""
        try:
            while await self.reader.read(1 << 18):
                pass
            self.origin.ends[self.request.path] = "eof"
        except ConnectionError:
            self.origin.ends[self.request.path] = "reset"


def reset(writer):
    """Ends a TCP connection with RST."""
    connection = writer.get_extra_info("socket")
    if connection is not None and connection.fileno() >= 0 and connection.family != socket.AF_UNIX:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
