"""What an operator sees of a relay: metrics, STUN, and the deployment files."""

import http.client
import json
import os
import pathlib
import re
import socket
import struct
import subprocess
import zlib

import pytest

import daemons
import relays
from relays import GOT
from test_relay import get, raw, run

COOKIE = b"\x21\x12\xa4\x42"


@pytest.fixture
def relay():
    with relays.relay("--metrics", "127.0.0.1:0", "--stun", "[::]:0") as running:
        yield running


def test_metrics_tell_what_happened(relay):
    async def scenario():
        async with relays.client(relay.url) as one, relays.client(relay.url) as two:
            await one.send(two.id, b"x" * 100)
            assert (await two.receive())[0] == GOT
            await one.send(os.urandom(32), b"nobody")
            await one.synchronize()
            return relay.metrics()

    before = relay.metrics()
    get(relay, "/ping")
    during = run(scenario())
    raw(relay, b"nonsense\r\n\r\n")
    after = relay.metrics()
    assert before["culvert_relay_nodes"] == 0 and during["culvert_relay_nodes"] == 2
    assert during["culvert_relay_forwarded_bytes_total"] == 100
    assert during["culvert_relay_forwarded_datagrams_total"] == 1
    assert during['culvert_relay_dropped_datagrams_total{reason="no_such_node"}'] == 1
    assert during["culvert_relay_clients_admitted_total"] == 2
    assert during["culvert_relay_http_requests_total"] == 1
    assert after['culvert_relay_refused_total{reason="malformed"}'] == 1
    assert after["culvert_relay_nodes"] == 0


def test_metrics_are_on_their_own_listener_only(relay):
    assert get(relay, "/metrics")[0] == 404
    connection = http.client.HTTPConnection("127.0.0.1", relay.port_of("metrics"), timeout=5)
    connection.request("GET", "/relay")
    assert connection.getresponse().status == 404


@pytest.mark.parametrize("host, family", [("127.0.0.1", 1), ("::1", 2)])
def test_stun_tells_the_address(relay, host, family):
    request = struct.pack("!HH", 1, 0) + COOKIE + os.urandom(12)
    kind = socket.AF_INET if family == 1 else socket.AF_INET6
    with socket.socket(kind, socket.SOCK_DGRAM) as client:
        client.settimeout(5)
        client.connect((host, relay.port_of("stun")))
        client.send(b"nonsense")
        client.send(request)
        answer = client.recv(1500)
        port, address = client.getsockname()[1], socket.inet_pton(kind, host)
    assert answer[:2] == b"\x01\x01" and answer[4:20] == request[4:20]
    size, mask = (8, COOKIE) if family == 1 else (20, request[4:20])
    assert answer[20:28] == struct.pack("!HHBBH", 0x20, size, 0, family, port ^ 0x2112)
    assert bytes(a ^ b for a, b in zip(answer[28:], mask)) == address
    assert answer[-8:] == struct.pack("!HHI", 0x8028, 4, zlib.crc32(answer[:-8]) ^ 0x5354554E)
    counted = relay.metrics()
    assert counted['culvert_relay_stun_requests_total{result="answered"}'] == 1
    assert counted['culvert_relay_stun_requests_total{result="ignored"}'] == 1


# Deployment files

DEPLOY = pathlib.Path(__file__).parents[2] / "relay/deploy"


def test_the_sample_configuration_works_and_shows_the_defaults(tmp_path):
    text = (DEPLOY / "relay.conf").read_text()
    _, chain, key = relays.certificate(tmp_path)
    for sample, here in [("/etc/culvert-relay/tls/fullchain.pem", str(chain)), ("/etc/culvert-relay/tls/privkey.pem", str(key)),
                         ("[::]:443", "127.0.0.1:0"), ("[::]:3478", "127.0.0.1:0"), ("127.0.0.1:9443", "127.0.0.1:0")]:
        assert sample in text
        text = text.replace(sample, here)
    file = tmp_path / "relay.conf"
    # With the bounds that are written as comments too.
    file.write_text(re.sub(r"(?m)^# (?=max-|rate =|handshake-time =)", "", text))
    with relays.relay("--config", file, listen=None) as relay:
        assert relay.metrics()["culvert_relay_connections_limit"] == 20_000
    help_text = subprocess.run([daemons.BIN / "culvert-relay", "--help"], capture_output=True, text=True).stdout
    for name, value in re.findall(r"(?m)^# (max-[a-z-]+|rate|handshake-time) = (\d+)", text):
        assert re.search(rf"--{name} .*\(default: {value}\)", help_text), name


def test_alerts_and_dashboard_use_only_metrics_that_exist(relay):
    tls = {"culvert_relay_certificate_end_seconds"}
    known = {name.partition("{")[0] for name in relay.metrics()} | tls
    for file in ("culvert-relay.rules.yml", "grafana.json"):
        used = set(re.findall(r"\b(?:culvert_relay_[a-z_]+|process_start_time_seconds)\b", (DEPLOY / file).read_text()))
        assert used and used <= known, used - known
    reasons = {match for name in relay.metrics() for match in re.findall(r'refused_total{reason="([a-z_]+)"}', name)}
    readme = (DEPLOY.parent / "README.md").read_text()
    assert set(re.findall(r'refused\{reason="([a-z_]+)"\}', readme)) <= reasons
    json.loads((DEPLOY / "grafana.json").read_text())
