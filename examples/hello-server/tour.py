#!/usr/bin/env python3
"""Walks through a hello-server behind URL and prints one line for each request. Standard library only.

usage: tour.py URL             exits with 1 when an answer was wrong
"""

import base64
import hashlib
import http.client
import json
import os
import socket
import sys
import time
import urllib.parse

import websocket

DOWNLOAD_SIZE = 256 << 20
UPLOAD_SIZE = 64 << 20
WEBSOCKET_MESSAGES = 200


class Tour:
    def __init__(self, url):
        parts = urllib.parse.urlsplit(url)
        self.host, self.port = parts.hostname, parts.port
        self.colors = sys.stdout.isatty()

    def connection(self):
        return http.client.HTTPConnection(self.host, self.port, timeout=60)

    def get(self):
        connection = self.connection()
        connection.request("GET", "/hello")
        answer = connection.getresponse()
        text = answer.read().decode().strip()
        connection.close()
        return answer.status == 200, text

    def reuse(self):
        connection = self.connection()
        times = []
        for _ in range(100):
            start = time.perf_counter()
            connection.request("GET", "/hello")
            connection.getresponse().read()
            times.append(time.perf_counter() - start)
        connection.close()
        return True, f"median {sorted(times)[50] * 1e3:.2f} ms a request"

    def post(self):
        body = os.urandom(UPLOAD_SIZE)
        connection = self.connection()
        start = time.perf_counter()
        connection.request("POST", "/upload", body)
        answer = json.loads(connection.getresponse().read())
        seconds = time.perf_counter() - start
        connection.close()
        same = answer["sha256"] == hashlib.sha256(body).hexdigest()
        return same, f"{speed(UPLOAD_SIZE, seconds)}, {checksum(same)}"

    def download(self):
        connection = self.connection()
        start = time.perf_counter()
        connection.request("GET", f"/download/{DOWNLOAD_SIZE}")
        answer = connection.getresponse()
        digest, size = hashlib.sha256(), 0
        while chunk := answer.read(1 << 18):
            digest.update(chunk)
            size += len(chunk)
        seconds = time.perf_counter() - start
        connection.close()
        same = size == DOWNLOAD_SIZE and digest.hexdigest() == answer.headers["X-SHA-256"]
        return same, f"{speed(size, seconds)}, {checksum(same)}"

    def echo(self):
        with socket.create_connection((self.host, self.port), timeout=60) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            stream = connection.makefile("rwb")
            key = base64.b64encode(os.urandom(16)).decode()
            stream.write(
                f"GET /socket HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nUpgrade: websocket\r\n"
                f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
            )
            stream.flush()
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += stream.readline() or b"\r\n\r\n"
            same = websocket.accept_key(key).encode() in head
            start = time.perf_counter()
            for number in range(WEBSOCKET_MESSAGES):
                message = f"message {number}".encode()
                websocket.write_frame(stream, websocket.TEXT, message, masked=True)
                same &= websocket.read_frame(stream) == (websocket.TEXT, message)
            each = (time.perf_counter() - start) / WEBSOCKET_MESSAGES
            websocket.write_frame(stream, websocket.CLOSE, b"\x03\xe8", masked=True)
            same &= websocket.read_frame(stream)[0] == websocket.CLOSE
        return same, f"{WEBSOCKET_MESSAGES} messages there and back, {each * 1e3:.2f} ms each, closed by both sides"

    def run(self):
        steps = [
            ("GET /hello", self.get),
            ("GET /hello, 100 times", self.reuse),
            (f"POST /upload, {UPLOAD_SIZE >> 20} MiB", self.post),
            (f"GET /download, {DOWNLOAD_SIZE >> 20} MiB", self.download),
            ("WebSocket /socket", self.echo),
        ]
        good = True
        for name, step in steps:
            start = time.perf_counter()
            try:
                ok, text = step()
            except (OSError, EOFError, ValueError, http.client.HTTPException) as error:
                ok, text = False, f"{type(error).__name__}: {error}"
            self.line(ok, name, text, time.perf_counter() - start)
            good &= ok
        return good

    def line(self, ok, name, text, seconds):
        sign, color = ("✓", "32") if ok else ("✗", "31")
        if self.colors:
            sign = f"\x1b[{color}m{sign}\x1b[0m"
        print(f"    {sign} {name:<26} {seconds * 1e3:8.1f} ms   {text}", flush=True)


def speed(size, seconds):
    return f"{size / seconds / 1e6:,.0f} MB/s"


def checksum(same):
    return "SHA-256 equal" if same else "SHA-256 DIFFERS"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(0 if Tour(sys.argv[1]).run() else 1)
