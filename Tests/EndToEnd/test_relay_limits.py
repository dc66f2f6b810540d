"""The relay's bounds and rules: hostile and slow clients, access files, settings."""

import asyncio
import contextlib
import re
import socket
import subprocess
import time

import nacl.signing
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

import daemons
import relays
from test_relay import get, iroh_exchange, raw, run


def test_a_client_that_never_reads_loses_datagrams_and_others_do_not(request):
    with relays.relay() as relay:
        async def scenario():
            async with relays.client(relay.url) as one, relays.client(relay.url) as two:
                async with relays.client(relay.url, max_queue=1) as deaf:
                    deaf.transport.pause_reading()
                    for _ in range(20):
                        for _ in range(500):
                            await one.send(deaf.id, b"x" * 1200)
                        await one.synchronize()
                    await one.send(two.id, b"still here")
                    assert (await two.receive())[34:] == b"still here"
                    # 12 MB were sent; what waits is 1 MiB at most, and what the kernel's buffers took.
                    assert memory(relay.pid) < 64 << 20
                    deaf.transport.abort()
        run(scenario())


def memory(pid):
    status = open(f"/proc/{pid}/status").read()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) * 1024


def test_a_fast_sender_is_held_to_its_rate_and_loses_nothing():
    with relays.relay("--rate", 500_000) as relay:
        async def scenario():
            async with relays.client(relay.url) as one, relays.client(relay.url) as two:
                async def send():
                    for number in range(1000):
                        await one.send(two.id, number.to_bytes(4, "big") + b"x" * 1196)

                start = time.monotonic()
                sender = asyncio.ensure_future(send())
                for number in range(1000):
                    assert (await two.receive(10))[34:38] == number.to_bytes(4, "big")
                await sender
                # 1.2 MB, of which a burst of 125 kB is free.
                assert 1.7 < time.monotonic() - start < 5
        run(scenario())


def test_connections_are_bounded_per_address_and_altogether():
    with relays.relay("--max-connections-per-address", 5) as relay:
        with contextlib.ExitStack() as stack:
            for _ in range(5):
                stack.enter_context(socket.create_connection(("127.0.0.1", relay.port)))
            assert raw(relay, b"") == b""
            with pytest.raises((ConnectionError, OSError)):
                get(relay, "/ping")
        daemons.wait_for(lambda: raw(relay, b"GET /ping HTTP/1.1\r\nHost: x\r\n\r\n"), "places are given back")
    with relays.relay("--max-connections", 3) as relay:
        with contextlib.ExitStack() as stack:
            for _ in range(3):
                stack.enter_context(socket.create_connection(("127.0.0.1", relay.port)))
            with pytest.raises((ConnectionError, OSError)):
                get(relay, "/ping")


def test_slow_heads_and_slow_proofs_are_given_up():
    with relays.relay("--handshake-time", 1) as relay:
        start = time.monotonic()
        with socket.create_connection(("127.0.0.1", relay.port), 5) as slow:
            with contextlib.suppress(ConnectionError):
                for byte in b"GET /ping HTTP/1.1\r\nHost: example":
                    slow.send(bytes([byte]))
                    time.sleep(0.05)
            with contextlib.suppress(ConnectionError):
                assert slow.recv(1) == b""
        assert time.monotonic() - start < 3

        async def scenario():
            with pytest.raises((ConnectionClosed, asyncio.TimeoutError)):
                async with relays.client(relay.url, answer=lambda key, challenge: time.sleep(1.5) or b"") as _:
                    pass
        run(scenario())


def test_ten_thousand_half_open_connections_do_not_keep_a_client_out():
    with relays.relay("--max-connections-per-address", 11_000) as relay:
        with contextlib.ExitStack() as stack:
            for _ in range(10_000):
                stack.enter_context(socket.create_connection(("127.0.0.1", relay.port)))

            async def scenario():
                async with relays.client(relay.url) as one:
                    await one.synchronize()
            run(scenario())


def test_accepting_rests_without_descriptors_and_goes_on():
    with relays.relay() as relay:
        subprocess.run(["prlimit", f"--pid={relay.pid}", "--nofile=30:30"], check=True)
        with contextlib.ExitStack() as stack:
            for _ in range(60):
                stack.enter_context(socket.create_connection(("127.0.0.1", relay.port)))
            time.sleep(0.3)
            assert relay.is_running
        assert daemons.wait_for(lambda: get(relay, "/ping")[0] == 200, "the relay accepts again")


# Access


def node_of(key):
    return bytes(key.verify_key).hex()


async def is_admitted(relay, key, **more):
    try:
        async with relays.client(relay.url, key, **more) as one:
            await one.synchronize()
            return True
    except relays.Denied as denied:
        assert str(denied) == "not authorized"
        return False


def test_allow_and_deny_lists_are_read_again(tmp_path):
    keys = [nacl.signing.SigningKey.generate() for _ in range(2)]
    allow, deny = tmp_path / "allow", tmp_path / "deny"
    allow.write_text(f"# ours\n{node_of(keys[0])}  the first\n")
    deny.write_text("")
    with relays.relay("--allow", allow, "--deny", deny) as relay:
        async def scenario():
            assert await is_admitted(relay, keys[0]) and not await is_admitted(relay, keys[1])
            allow.write_text(f"{node_of(keys[0])}\n{node_of(keys[1])}\n")
            assert "read again" in relay.reload()
            async with relays.client(relay.url, keys[1]) as stays, relays.client(relay.url, keys[0]) as goes:
                deny.write_text(node_of(keys[0]))
                relay.reload()
                assert await goes.closed() == 1008
                await stays.synchronize()
            assert not await is_admitted(relay, keys[0])
            allow.write_text("not a node\n")
            assert "allow:1: not a node ID" in relay.reload()
            assert await is_admitted(relay, keys[1]), "the old rules hold"
        run(scenario())


def test_a_token_by_header_or_query(tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("s3cret\n")
    tokens.chmod(0o600)
    key = nacl.signing.SigningKey.generate()
    with relays.relay("--token-file", tokens) as relay:
        def bearer(token):
            return {"additional_headers": {"Authorization": f"Bearer {token}"}}

        async def status(**more):
            with pytest.raises(InvalidStatus) as refused:
                await is_admitted(relay, key, **more)
            return refused.value.response.status_code

        async def scenario():
            assert await status() == 401 and await status(**bearer("wrong")) == 401
            assert await is_admitted(relay, key, **bearer("s3cret"))
            assert await is_admitted(relay, key, query="?token=s3cret")
            await iroh_exchange(relay.url, b"x" * 1000, token="s3cret")
            async with relays.client(relay.url, **bearer("s3cret")) as old:
                tokens.write_text("new\n")
                relay.reload()
                assert await old.closed() == 1008
            assert await status(**bearer("s3cret")) == 401
            assert await is_admitted(relay, key, **bearer("new"))
        run(scenario())
        assert get(relay, "/ping")[0] == 200, "probes need no token"


# Settings


def refused(*options):
    done = subprocess.run([daemons.BIN / "culvert-relay", *map(str, options)], capture_output=True, text=True, timeout=10)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    return done.stderr


def test_bad_settings_are_refused_in_one_line(tmp_path):
    file = tmp_path / "relay.conf"
    file.write_text("# comment\nlisten = 127.0.0.1:0\nlissen = 1\n")
    assert f"{file}:3: there is no setting 'lissen'" in refused("--config", file)
    assert "there is no such file" in refused("--config", tmp_path / "nothing")
    assert "--rate takes 0 or a number" in refused("--rate", "fast")
    empty = tmp_path / "empty"
    empty.write_text("\n")
    empty.chmod(0o600)
    assert "there is no token in it" in refused("--token-file", empty)
    empty.chmod(0o644)
    assert "open to everyone" in refused("--token-file", empty)


def test_a_taken_port_is_told():
    with relays.relay() as relay:
        done = subprocess.run([daemons.BIN / "culvert-relay", "--listen", f"127.0.0.1:{relay.port}"],
                              capture_output=True, text=True, timeout=10)
        assert done.returncode == 1 and "the port is in use" in done.stderr


def test_a_configuration_file_is_read_again(tmp_path):
    file = tmp_path / "relay.conf"
    file.write_text("max-connections = 1\n")
    with relays.relay("--config", file) as relay:
        with socket.create_connection(("127.0.0.1", relay.port)):
            with pytest.raises((ConnectionError, OSError)):
                get(relay, "/ping")
            file.write_text("max-connections = 5\n")
            relay.reload()
            assert get(relay, "/ping")[0] == 200


def test_clients_that_flood_themselves_and_vanish_hurt_nobody():
    with relays.relay() as relay:
        async def scenario():
            async with relays.client(relay.url) as witness:
                for _ in range(10):
                    async with relays.client(relay.url, max_queue=1, close_timeout=0.1) as one:
                        frames = [b"\x05" + one.id + b"\0\x04\xb0" + b"x" * 12_000] * 400
                        await asyncio.gather(*(one.send_frame(frame) for frame in frames), return_exceptions=True)
                        linger = (1).to_bytes(4, "little") + bytes(4)
                        one.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                        one.transport.abort()
                await witness.synchronize()
        run(scenario())
        assert relay.is_running


def test_silent_and_stalled_clients_are_given_up():
    async def silent(relay):
        async with relays.client(relay.url) as one:
            start = time.monotonic()
            ping = await one.receive(21)
            assert ping[0] == relays.PING and 15.5 < time.monotonic() - start < 20.5
            assert await one.closed(6) == 1006

    async def answering(relay):
        async with relays.client(relay.url) as one:
            ping = await one.receive(21)
            await one.send_frame(bytes([relays.PONG]) + ping[1:])
            assert await one.nothing(10), "the next Ping comes after 16 s, and the connection stays"

    async def stalled(relay):
        async with relays.client(relay.url, max_queue=1) as deaf, relays.client(relay.url) as other:
            start = time.monotonic()
            for _ in range(45):
                for _ in range(500):
                    await other.send(deaf.id, b"x" * 1200)
                await other.synchronize()
                with contextlib.suppress(ConnectionClosed):
                    await deaf.send(bytes(32), b"I am alive")  # so that it is not silent
                await asyncio.sleep(1)
                if not is_connected(deaf):
                    break
            assert 25 < time.monotonic() - start < 40

    def is_connected(client):
        ends = [client.transport.get_extra_info(name)[1] for name in ("sockname", "peername")]
        for line in open("/proc/net/tcp").readlines()[1:]:
            fields = line.split()
            if [int(field.rpartition(":")[2], 16) for field in fields[1:3]] == ends:
                return fields[3] == "01"
        return False

    async def all_at_once(relay):
        await asyncio.gather(silent(relay), answering(relay), stalled(relay))

    with relays.relay() as relay:
        run(all_at_once(relay), 60)
