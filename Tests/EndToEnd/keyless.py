"""A QUIC client that speaks raw public keys (RFC 7250) and shows a key of its own or none, made from aioquic.

aioquic knows X.509 only. Its TLS context is plain Python, so the two extensions that negotiate raw keys are added, and
a SubjectPublicKeyInfo stands where a certificate was expected. Asked for a client certificate without having one, the
client sends an empty list, which is what a server that wants to know its peers must refuse.
"""

import asyncio
import ssl

from aioquic.asyncio import QuicConnectionProtocol
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated, HandshakeCompleted
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import PublicFormat, load_der_public_key

CLIENT_CERTIFICATE_TYPE, SERVER_CERTIFICATE_TYPE = 19, 20
ONLY_RAW_KEYS = b"\x01\x02"  # a list of one: RawPublicKey (RFC 7250 section 3)


class _RawKey:
    """Does what aioquic asks of an X.509 certificate: gives its public key and its DER form."""

    def __init__(self, public_key):
        self._public_key = public_key

    def public_key(self):
        return self._public_key

    def public_bytes(self, encoding):
        return self._public_key.public_bytes(encoding, PublicFormat.SubjectPublicKeyInfo)


class _Connection(QuicConnection):
    key = None

    def _initialize(self, peer_cid):
        super()._initialize(peer_cid)
        context = self.tls
        context.handshake_extensions += [
            (CLIENT_CERTIFICATE_TYPE, ONLY_RAW_KEYS), (SERVER_CERTIFICATE_TYPE, ONLY_RAW_KEYS),
        ]
        if self.key:
            context.certificate, context.certificate_private_key = _RawKey(self.key.public_key()), self.key

        def take_key(certificate):
            context._peer_certificate = _RawKey(load_der_public_key(certificate.certificates[0][0]))
            context._peer_certificate_chain = []

        context._set_peer_certificate = take_key


class _Protocol(QuicConnectionProtocol):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        loop = asyncio.get_running_loop()
        self.completed, self.over = loop.create_future(), loop.create_future()

    def quic_event_received(self, event):
        if isinstance(event, HandshakeCompleted):
            self.completed.set_result(event)
        if isinstance(event, ConnectionTerminated) and not self.over.done():
            self.over.set_result(event)


async def connect(port, alpn, show_key, timeout=15):
    """Connects, then asks for a sign of life. Gives None when the server answers it, and otherwise the event with
    which the connection ended: its error code (0x100 + TLS alert for a refused handshake) and reason."""
    configuration = QuicConfiguration(is_client=True, alpn_protocols=[alpn], verify_mode=ssl.CERT_NONE)
    connection = _Connection(configuration=configuration)
    connection.key = Ed25519PrivateKey.generate() if show_key else None
    transport, protocol = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: _Protocol(connection), local_addr=("127.0.0.1", 0))
    try:
        protocol.connect(("127.0.0.1", port))
        async with asyncio.timeout(timeout):
            await asyncio.wait([protocol.completed, protocol.over], return_when=asyncio.FIRST_COMPLETED)
            if protocol.completed.done():
                # The client completes before the server has seen its (missing) key.
                answer = asyncio.ensure_future(protocol.ping())
                await asyncio.wait([answer, protocol.over], return_when=asyncio.FIRST_COMPLETED)
                answer.cancel()
            return protocol.over.result() if protocol.over.done() else None
    finally:
        protocol.close()
        transport.close()
