"""Just enough of RFC 6455 for a demonstration: whole text and binary messages, ping, close. Standard library only."""

import base64
import hashlib
import os
import struct

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
LARGEST_MESSAGE = 1 << 20


def accept_key(key):
    """The Sec-WebSocket-Accept value that answers a Sec-WebSocket-Key."""
    digest = hashlib.sha1(key.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
    return base64.b64encode(digest).decode()


def write_frame(stream, opcode, payload, masked):
    """Writes one unfragmented frame; clients mask, servers do not."""
    flag = 0x80 if masked else 0
    size = len(payload)
    if size < 126:
        head = struct.pack("!BB", 0x80 | opcode, flag | size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", 0x80 | opcode, flag | 126, size)
    else:
        head = struct.pack("!BBQ", 0x80 | opcode, flag | 127, size)
    if masked:
        mask = os.urandom(4)
        payload = mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
    stream.write(head + payload)
    stream.flush()


def read_frame(stream):
    """Reads one frame: (opcode, payload). Raises EOFError when the stream ends."""
    first, second = _exactly(stream, 2)
    size = second & 0x7F
    if size == 126:
        (size,) = struct.unpack("!H", _exactly(stream, 2))
    elif size == 127:
        (size,) = struct.unpack("!Q", _exactly(stream, 8))
    if size > LARGEST_MESSAGE:
        raise ValueError("message too large for this demonstration")
    mask = _exactly(stream, 4) if second & 0x80 else None
    payload = _exactly(stream, size)
    if mask:
        payload = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
    return first & 0x0F, payload


def _exactly(stream, size):
    data = stream.read(size)
    if len(data) < size:
        raise EOFError("the connection ended inside a frame")
    return data
