"""Real iroh endpoints (PyPI iroh) as hosts, clients and echo servers. Only for use inside the tests' network namespace.

iroh's Python binding copies outgoing bytes one by one (some MB/s), so amounts are moderate.
"""

import asyncio
import contextlib
import json
import os
import pathlib

import iroh

import wire

CHUNK = 1 << 16


def require_namespace():
    """Refuses to run where a packet could leave: iroh looks for port mappers at the default gateway."""
    routes = pathlib.Path("/proc/self/net/route").read_text().splitlines()[1:]
    assert os.environ.get("CULVERT_TEST_NAMESPACE") and not routes, "real iroh runs only in a namespace without routes"


@contextlib.asynccontextmanager
async def endpoint(*alpns, seed=None):
    """An iroh endpoint on loopback, without relays."""
    require_namespace()
    options = iroh.EndpointOptions(
        preset=iroh.preset_minimal(), bind_addr="127.0.0.1:0", secret_key=seed or os.urandom(32),
        alpns=[alpn.encode() for alpn in alpns], relay_mode=iroh.RelayMode.disabled(),
    )
    node = await iroh.Endpoint.bind(options)
    try:
        yield node
    finally:
        await node.close()


def port_of(node):
    return next(int(a.rpartition(":")[2]) for a in node.bound_sockets() if a.startswith("127.0.0.1:"))


def ticket_of(node):
    """A ticket with only the loopback address."""
    return ticket_for(node.id(), port_of(node))


def ticket_for(node_id, port):
    if isinstance(node_id, str):
        node_id = iroh.EndpointId.from_string(node_id)
    return str(iroh.EndpointTicket.from_addr(iroh.EndpointAddr(node_id, None, [f"127.0.0.1:{port}"])))


async def dial(node, ticket, alpn, timeout=20):
    address = iroh.EndpointTicket.from_string(ticket).endpoint_addr()
    return await asyncio.wait_for(node.connect(address, alpn.encode()), timeout)


async def exchange(connection, data, timeout=60, limit=1 << 26):
    """Writes `data` and the end on a new stream while reading the answer to its end."""
    stream = await connection.open_bi()

    async def write():
        with contextlib.suppress(iroh.IrohError):  # a refusal may stop us; the answer says why
            await stream.send().write_all(data)
            await stream.send().finish()

    writer = asyncio.ensure_future(write())
    try:
        return await asyncio.wait_for(stream.recv().read_to_end(limit), timeout)
    finally:
        writer.cancel()


@contextlib.asynccontextmanager
async def serving(node, *handlers):
    """Accepts connections; each stream goes to the handler of its connection's ALPN: (alpn, coroutine function)."""
    table = {alpn.encode(): handler for alpn, handler in handlers}
    tasks = set()

    def start(coroutine):
        task = asyncio.ensure_future(coroutine)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def on_connection(incoming):
        with contextlib.suppress(iroh.IrohError):
            accepting = await incoming.accept()
            connection = await accepting.connect()
            while True:
                stream = await connection.accept_bi()
                start(on_stream(table[bytes(connection.alpn())], connection, stream))

    async def on_stream(handler, connection, stream):
        with contextlib.suppress(iroh.IrohError, asyncio.IncompleteReadError, ConnectionError):
            await handler(connection, stream.recv(), stream.send())

    async def accept():
        while (incoming := await node.accept_next()) is not None:
            start(on_connection(incoming))

    start(accept())
    try:
        yield
    finally:
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def echo(_, receive, send):
    """Sends back what comes, piece by piece."""
    while piece := bytes(await receive.read(CHUNK)):
        await send.write_all(piece)
    await send.finish()


class HostScript:
    """What a deployed host of ALPN oppi/http/1 does, in a few lines: pairs one device, then serves HTTP from `target`."""

    def __init__(self, pairing_token, target):
        self.pairing_token = pairing_token
        self.target = target  # (host, port)
        self.device_token = "dt_" + wire.encode(os.urandom(32))
        self.device = None
        self.prefaces = []

    async def pair(self, connection, receive, send):
        header, _ = wire.parse_frame(bytes(await receive.read_to_end(1 << 16)))
        good = header["kind"] == "pairRequest" and header["pairingToken"] == self.pairing_token and self.device is None
        answer = {"v": 1, "kind": "pairResponse", "ok": good}
        if good:
            self.device = str(connection.remote_id())
            answer |= {"deviceToken": self.device_token, "credentialTransports": ["iroh"]}
        else:
            answer |= {"status": 401, "error": "this invite was used"}
        await send.write_all(wire.frame(answer))
        await send.finish()

    async def tunnel(self, connection, receive, send):
        size = int.from_bytes(bytes(await receive.read_exact(4)), "big")
        header = json.loads(bytes(await receive.read_exact(size)))
        self.prefaces.append(header)
        if header.get("authorization") != f"Bearer {self.device_token}":
            await send.write_all(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n")
            return await send.finish()
        reader, writer = await asyncio.open_connection(*self.target)

        async def upstream():
            while piece := bytes(await receive.read(CHUNK)):
                writer.write(piece)
                await writer.drain()
            writer.write_eof()

        upload = asyncio.ensure_future(upstream())
        try:
            while piece := await reader.read(CHUNK):
                await send.write_all(piece)
            await send.finish()
        finally:
            upload.cancel()
            writer.close()
