"""Servers and hosts that are down, come back, or run out of disk: nothing is lost and nobody needs a restart."""

import json
import socket
import subprocess

import pytest

from clients import connect, curl, exchange, read_answer, request
from daemons import EXIT_FAILURE, assert_clear_failure, free_udp_port, rows, run, wait_for


def free_tcp_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def test_target_that_is_down_at_start_and_comes_up_later(workshop):
    port = free_tcp_port()
    host = workshop.host(f"http://127.0.0.1:{port}")
    client = workshop.connect(host.ready["invite"])
    answer = curl(client.url + "/hello")
    assert answer.status == 503 and answer.json["code"] == "target_unreachable"
    workshop.origin(port=port)
    assert curl(client.url + "/hello").status == 200


def test_target_that_is_restarted(workshop):
    tunnel = workshop.tunnel()
    port = tunnel.origin.port
    assert curl(tunnel.url + "/hello").status == 200
    tunnel.origin.stop()
    assert curl(tunnel.url + "/hello").status == 503
    workshop.origin(port=port)
    assert curl(tunnel.url + "/hello").status == 200


def test_target_that_accepts_nobody_is_answered_within_the_limit(workshop):
    """A full backlog: the kernel drops the host's SYN."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        fillers = []
        try:
            for _ in range(4):
                filler = socket.socket()
                filler.setblocking(False)
                filler.connect_ex(("127.0.0.1", port))
                fillers.append(filler)
            host = workshop.host(f"http://127.0.0.1:{port}")
            client = workshop.connect(host.ready["invite"])
            answer = curl(client.url + "/hello", timeout=20)
        finally:
            for filler in fillers:
                filler.close()
    assert answer.status == 503 and 2.5 < answer.seconds < 5


def test_host_that_is_restarted_is_found_again_without_help(workshop):
    origin = workshop.origin()
    listen = f"127.0.0.1:{free_udp_port()}"
    host = workshop.host(origin.target, listen=listen)
    client = workshop.connect(host.ready["invite"])
    assert curl(client.url + "/hello").status == 200
    host.daemon.stop()
    client.daemon.event("disconnected")
    workshop.host(origin.target, state=host.state, listen=listen)
    assert curl(client.url + "/hello").status == 200
    client.daemon.event("reconnected")
    assert curl(client.url + "/hello").status == 200


def test_host_that_was_killed_is_found_again_without_help(workshop):
    origin = workshop.origin()
    listen = f"127.0.0.1:{free_udp_port()}"
    host = workshop.host(origin.target, listen=listen)
    client = workshop.connect(host.ready["invite"])
    host.daemon.kill()
    workshop.host(origin.target, state=host.state, listen=listen)
    # The new process resets the connection that it does not know as soon as a packet of it comes.
    wait_for(lambda: curl(client.url + "/hello", timeout=40).status == 200, "an answer from the new host", timeout=60)


def test_requests_while_the_host_is_away_get_a_clear_answer(workshop):
    tunnel = workshop.tunnel()
    tunnel.host.daemon.stop()  # at once: the handshake may not even be confirmed
    answer = curl(tunnel.url + "/hello", timeout=30)
    assert answer.status == 503 and answer.json["code"] == "host_unreachable"
    assert tunnel.client.daemon.is_running


def test_proxy_port_in_use(workshop):
    tunnel = workshop.tunnel()
    state = tunnel.client.state
    tunnel.client.daemon.stop()
    name = rows(state, "servers")[0]["name"]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run("connect", name, "--json", "--port", port, "--state-dir", state)
        assert_clear_failure(done, EXIT_FAILURE)
        assert json.loads(done.stdout.splitlines()[-1])["kind"] == "local-listener"
    client = workshop.connect(name, "--port", port, state=state)
    assert client.url == f"http://127.0.0.1:{port}"


def test_host_port_in_use(workshop):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        done = run("host", "--json", "--target", "http://127.0.0.1:9", "--listen", listen, "--state-dir", workshop.directory())
    assert_clear_failure(done, EXIT_FAILURE)
    assert json.loads(done.stdout.splitlines()[-1])["kind"] == "local-listener"


def test_two_hosts_in_one_state_directory(workshop):
    host = workshop.host("http://127.0.0.1:9")
    done = run("host", "--target", "http://127.0.0.1:9", "--state-dir", host.state)
    assert_clear_failure(done, EXIT_FAILURE)
    assert host.devices() == []


@pytest.fixture
def mount(workshop):
    """Mounts small disks in the tests' own mount namespace: mount("size=200k") gives the directory."""
    mounted = []

    def make(options):
        directory = workshop.directory("disk")
        directory.mkdir(mode=0o700)
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", directory], check=True)
        mounted.append(directory)
        return directory

    yield make
    workshop.close()
    for directory in mounted:
        subprocess.run(["umount", "-l", directory], check=True)


def fill(directory):
    """Takes all space that is left on a disk."""
    filler = directory / "filler"
    with open(filler, "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 512)
        except OSError:
            return filler


@pytest.mark.parametrize("command", [["host", "--target", "http://127.0.0.1:9"], ["connect"]])
def test_read_only_state_directory(workshop, mount, command):
    host = workshop.host("http://127.0.0.1:9")
    disk = mount("ro,size=100k")
    words = command + [host.invite()] if command == ["connect"] else command
    for state in (disk, disk / "new"):
        assert_clear_failure(run(*words, "--state-dir", state), EXIT_FAILURE)
    assert host.devices() == []


@pytest.mark.parametrize("command", [["host", "--target", "http://127.0.0.1:9"], ["connect"]])
def test_full_disk_at_first_start_leaves_no_partial_state(workshop, mount, command):
    host = workshop.host(workshop.origin().target)
    disk = mount("size=100k")
    state = disk / "state"
    state.mkdir(mode=0o700)
    filler = fill(disk)
    words = command + [host.ready["invite"]] if command == ["connect"] else command
    assert_clear_failure(run(*words, "--state-dir", state), EXIT_FAILURE)
    assert [path.name for path in state.rglob("*") if path.is_file() and path.stat().st_size > 0] == []
    assert not (state / "identity.key").exists()
    filler.unlink()
    if command == ["connect"]:
        client = workshop.connect(host.ready["invite"], state=state)  # the invite was not used up
        assert curl(client.url + "/hello").status == 200


def test_full_disk_while_pairing_keeps_what_was_there_and_the_invite(workshop, mount):
    origin = workshop.origin()
    first, second = workshop.host(origin.target, "--name", "first"), workshop.host(origin.target, "--name", "second")
    disk = mount("size=200k")
    state = disk / "state"
    workshop.connect(first.ready["invite"], state=state).daemon.stop()
    before = {path: path.read_bytes() for path in state.rglob("*") if path.is_file()}
    filler = fill(disk)
    assert_clear_failure(run("connect", second.ready["invite"], "--state-dir", state), EXIT_FAILURE)
    assert {path: path.read_bytes() for path in state.rglob("*") if path.is_file()} == before
    assert [server["name"] for server in rows(state, "servers")] == ["first"]
    assert second.devices() == []
    filler.unlink()
    client = workshop.connect(second.ready["invite"], state=state)
    assert curl(client.url + "/hello").status == 200
    assert [server["name"] for server in rows(state, "servers")] == ["first", "second"]


def test_full_disk_of_the_host_refuses_pairing_and_keeps_serving(workshop, mount):
    origin = workshop.origin()
    disk = mount("size=600k")
    host = workshop.host(origin.target, state=disk / "state")
    paired = workshop.connect(host.ready["invite"])
    invite = host.invite()
    filler = fill(disk)
    done = run("connect", invite, "--state-dir", workshop.directory())
    assert done.returncode != 0 and len(done.stderr.strip().splitlines()) == 1
    assert curl(paired.url + "/hello").status == 200
    filler.unlink()
    client = workshop.connect(invite)
    assert curl(client.url + "/hello").status == 200
    assert len(host.devices()) == 2


def test_answer_that_comes_long_after_the_request(workshop):
    tunnel = workshop.tunnel()
    with connect(tunnel.port) as connection:
        connection.sendall(request("/hang/late"))
        wait_for(lambda: tunnel.origin.is_waiting("late"), "the request")
        assert exchange(tunnel.port, request("/hello"))[0] == 200
        tunnel.origin.open_gate("late")
        assert read_answer(connection) == (200, b"at last\n")
