#!/usr/bin/env python3
"""A small HTTP and WebSocket server to put behind a tunnel. Standard library only.

usage: server.py [PORT]        prints its URL; PORT 0 (the default) lets the system choose

    GET  /                a page that tries fetch and WebSocket in the browser
    GET  /hello           a greeting
    POST /upload          answers with the size and the SHA-256 of what it got
    GET  /download/SIZE   SIZE bytes, with their SHA-256 in a header
    GET  /socket          WebSocket that echoes
"""

import hashlib
import http.server
import json
import pathlib
import sys

import websocket

PAGE = pathlib.Path(__file__).with_name("page.html").read_bytes()
LARGEST_DOWNLOAD = 1 << 30


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "hello-server"
    disable_nagle_algorithm = True  # head and body are written separately

    def do_GET(self):
        if self.path == "/":
            self.answer(PAGE, "text/html; charset=utf-8")
        elif self.path == "/hello":
            self.answer(b"Hello from a server without a name, a certificate or an open port.\n")
        elif self.path.startswith("/download/"):
            self.download()
        elif self.path == "/socket":
            self.echo_messages()
        else:
            self.answer(b"not here\n", status=404)

    def do_POST(self):
        digest, size = hashlib.sha256(), 0
        for chunk in self.body():
            digest.update(chunk)
            size += len(chunk)
        self.answer(json.dumps({"size": size, "sha256": digest.hexdigest()}).encode() + b"\n", "application/json")

    def answer(self, body, kind="text/plain; charset=utf-8", status=200):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def body(self):
        """The request's body in pieces; Content-Length only, which is what curl --data-binary sends."""
        left = int(self.headers.get("Content-Length", 0))
        while left > 0:
            chunk = self.rfile.read(min(left, 1 << 16))
            if not chunk:
                raise ConnectionError("the upload ended early")
            left -= len(chunk)
            yield chunk

    def download(self):
        size_text = self.path.removeprefix("/download/")
        if not size_text.isdecimal() or int(size_text) > LARGEST_DOWNLOAD:
            return self.answer(b"a size in bytes, please\n", status=400)
        size, block = int(size_text), bytes(range(256)) * 256
        digest = hashlib.sha256(block * (size // len(block)) + block[: size % len(block)])
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(size))
        self.send_header("X-SHA-256", digest.hexdigest())
        self.end_headers()
        while size > 0:
            self.wfile.write(block[:size])
            size -= len(block)

    def echo_messages(self):
        key = self.headers.get("Sec-WebSocket-Key")
        if self.headers.get("Upgrade", "").lower() != "websocket" or not key:
            return self.answer(b"this is a WebSocket\n", status=426)
        self.send_response(101)
        self.send_header("Upgrade", "websocket")
        self.send_header("Connection", "Upgrade")
        self.send_header("Sec-WebSocket-Accept", websocket.accept_key(key))
        self.end_headers()
        self.close_connection = True
        try:
            while True:
                opcode, payload = websocket.read_frame(self.rfile)
                if opcode == websocket.PING:
                    websocket.write_frame(self.wfile, websocket.PONG, payload, masked=False)
                elif opcode == websocket.CLOSE:
                    return websocket.write_frame(self.wfile, websocket.CLOSE, payload, masked=False)
                elif opcode in (websocket.TEXT, websocket.BINARY):
                    websocket.write_frame(self.wfile, opcode, payload, masked=False)
        except (EOFError, ValueError, OSError):
            pass  # the client went away

    def log_message(self, format, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


if __name__ == "__main__":
    server = Server(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0), Handler)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
