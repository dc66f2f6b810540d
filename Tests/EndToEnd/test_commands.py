"""What a person does with the commands: pair once, come back by name, list, forget, revoke, invite."""

import json
import re
import signal
import subprocess

import pytest

import wire
from clients import connect, curl, read_head, read_to_end, request
from daemons import (
    BIN, EXIT_FAILURE, EXIT_REFUSED, EXIT_SUCCESS, EXIT_UNREACHABLE, EXIT_UNTRUSTED, EXIT_USAGE,
    assert_clear_failure, free_udp_port, pair, rows, run, wait_for,
)

COMMANDS = ["host", "connect", "servers", "forget", "token", "devices", "rename", "revoke", "invite"]
DATE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command(command):
    done = run(command, "--help")
    assert done.returncode == 0 and done.stderr == ""
    assert f"culvert {command}" in done.stdout and "--state-dir" in done.stdout


@pytest.mark.parametrize("arguments", [
    [], ["hosst"], ["host"], ["host", "--target", "ftp://x"], ["host", "--target", "http://127.0.0.1:1", "--listen", "x"],
    ["connect"], ["connect", "culvert://connect?v=4"], ["connect", "a", "b"], ["connect", "--port", "70000", "name"],
    ["connect", "--local-auth", "nobody", "name"], ["connect", "http://127.0.0.1:1/"], ["forget"], ["token"], ["revoke"], ["servers", "--nonsense"],
])
def test_wrong_usage_exits_with_2(arguments, tmp_path):
    done = run(*arguments)
    assert done.returncode == EXIT_USAGE and done.stdout == "" and done.stderr.strip()


def test_ready_events_have_the_documented_fields(tunnel):
    host, client = tunnel.host.ready, tunnel.client.ready
    assert set(host) >= {"event", "nodeId", "ticket", "invite", "target"}
    assert re.fullmatch(r"[0-9a-f]{64}", host["nodeId"]) and re.fullmatch(r"endpoint[a-z2-7]+", host["ticket"])
    assert host["target"] == tunnel.origin.target
    assert set(client) >= {"event", "server", "url"}
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", client["url"])


def test_path_event_follows_ready(workshop):
    tunnel = workshop.tunnel()
    event = tunnel.client.daemon.event("path")
    assert event["kind"] == "direct" and 0 <= event["rttMs"] < 1000


def test_invite_is_signed_as_documented(tunnel):
    _, payload = wire.parse_invite(tunnel.host.ready["invite"])
    metadata = payload["transports"]["iroh"]
    assert payload["v"] == 4 and DATE.match(payload["expiresAt"])
    assert metadata["nodeId"] == tunnel.host.ready["nodeId"]
    assert metadata["ticket"] == tunnel.host.ready["ticket"]
    assert {"culvert/http/1", "culvert/pair/1", "oppi/http/1", "oppi/pair/1"} <= set(metadata["alpns"])


def test_people_see_a_name_a_link_and_a_qr_code(workshop):
    process = subprocess.Popen(
        [BIN / "culvert", "host", "--target", "http://127.0.0.1:9", "--name", "studio", "--listen", "127.0.0.1:0",
         "--qr", "always", "--state-dir", workshop.directory()],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        text = ""
        while "culvert://connect?v=4&invite=" not in text:
            line = process.stdout.readline()
            assert line, f"ended: {process.stderr.read()}"
            text += line
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=15)
    assert "studio" in text and "█" in text or "▀" in text
    assert process.returncode == EXIT_SUCCESS and "error" not in errors.lower()


def test_paired_server_is_reached_by_name_without_an_invite(workshop):
    origin = workshop.origin()
    host = workshop.host(origin.target, "--name", "studio")
    first = workshop.connect(host.ready["invite"])
    assert first.ready["server"] == "studio"
    assert first.daemon.stop() == EXIT_SUCCESS
    again = workshop.connect("studio", state=first.state)
    assert curl(again.url + "/hello").body == b"hello\n"


def test_invite_can_be_given_on_standard_input(workshop):
    host = workshop.host(workshop.origin().target)
    process = subprocess.Popen(
        [BIN / "culvert", "connect", "-", "--json", "--state-dir", workshop.directory()],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdin.write(host.ready["invite"] + "\n")
    process.stdin.flush()
    ready = json.loads(process.stdout.readline())
    try:
        assert curl(ready["url"] + "/hello").status == 200
    finally:
        process.terminate()
        process.communicate(timeout=15)
    assert process.returncode == EXIT_SUCCESS


def test_servers_and_forget(workshop):
    origin = workshop.origin()
    host = workshop.host(origin.target, "--name", "studio")
    state = pair(workshop, host)
    (server,) = rows(state, "servers")
    assert (server["name"], server["nodeId"]) == ("studio", host.ready["nodeId"]) and DATE.match(server["addedAt"])
    assert "studio" in run("servers", "--state-dir", state).stdout
    assert run("forget", "studio", "--state-dir", state).returncode == 0
    assert rows(state, "servers") == []
    assert_clear_failure(run("forget", "studio", "--state-dir", state), EXIT_FAILURE)
    assert_clear_failure(run("connect", "studio", "--state-dir", state), EXIT_FAILURE)


def test_listings_are_empty_lists_at_first(workshop):
    assert rows(workshop.directory(), "servers") == []
    host = workshop.host("http://127.0.0.1:9")
    assert host.devices() == []


def test_devices(workshop):
    host = workshop.host(workshop.origin().target)
    client = workshop.connect(host.ready["invite"], "--device-name", "Ann's laptop")
    curl(client.url + "/hello")
    (device,) = host.devices()
    assert (device["name"], device["connected"], device["revoked"]) == ("Ann's laptop", True, False)
    assert DATE.match(device["createdAt"]) and DATE.match(device["lastSeenAt"])
    assert "Ann's laptop" in run("devices", "--state-dir", host.state).stdout
    client.daemon.stop()
    wait_for(lambda: not host.devices()[0]["connected"], "the device to be away")


@pytest.mark.parametrize("command", [["devices"], ["invite"], ["revoke", "someone"]])
def test_commands_for_a_host_that_does_not_run_say_so(workshop, command):
    done = run(*command, "--state-dir", workshop.directory())
    assert done.returncode in (EXIT_FAILURE, EXIT_UNREACHABLE)
    assert len(done.stderr.strip().splitlines()) == 1 and "host" in done.stderr


def test_revoke_cuts_live_connections_and_the_client_exits_with_4(workshop):
    tunnel = workshop.tunnel()
    other = workshop.connect(tunnel.host.invite(), "--device-name", "other")
    with connect(tunnel.port) as live:
        live.sendall(request("/half/revoked"))
        assert read_head(live)[0] == 200
        (device,) = [d for d in tunnel.host.devices() if d["name"] != "other"]
        assert run("revoke", device["id"], "--state-dir", tunnel.host.state).returncode == 0
        assert tunnel.client.daemon.exit_code() == EXIT_REFUSED
        with pytest.raises(ConnectionResetError):
            read_to_end(live)
    error = [event for event in tunnel.client.daemon.events if event["event"] == "error"]
    assert error and error[-1]["kind"] == "revoked"
    done = run("connect", tunnel.client.ready["server"], "--state-dir", tunnel.client.state)
    # The handshake with the host succeeds; it is the host that then says no.
    assert_clear_failure(done, EXIT_REFUSED, notes=True)
    assert [d["revoked"] for d in tunnel.host.devices() if d["id"] == device["id"]] == [True]
    assert curl(other.url + "/hello").status == 200


def test_revoke_reaches_a_client_that_was_away(workshop):
    host = workshop.host(workshop.origin().target)
    state = pair(workshop, host)
    (device,) = host.devices()
    assert run("revoke", device["id"], "--state-dir", host.state).returncode == 0
    done = run("connect", rows(state, "servers")[0]["name"], "--state-dir", state)
    assert_clear_failure(done, EXIT_REFUSED, notes=True)


def test_second_invite_from_the_running_host(workshop):
    host = workshop.host(workshop.origin().target)
    first = workshop.connect(host.ready["invite"])
    made = rows(host.state, "invite")
    assert set(made) == {"invite", "expiresAt"} and DATE.match(made["expiresAt"])
    second = workshop.connect(made["invite"])
    assert curl(first.url + "/hello").status == curl(second.url + "/hello").status == 200
    assert len(host.devices()) == 2


def test_invite_works_once(workshop):
    host = workshop.host(workshop.origin().target)
    pair(workshop, host)
    done = run("connect", host.ready["invite"], "--state-dir", workshop.directory())
    assert_clear_failure(done, EXIT_REFUSED)
    assert len(host.devices()) == 1


def test_one_invite_used_by_many_at_once_pairs_one(workshop):
    host = workshop.host(workshop.origin().target)
    daemons = [workshop.daemon("connect", "--json", host.ready["invite"], "--state-dir", workshop.directory()) for _ in range(4)]
    wait_for(lambda: sum(daemon.is_running for daemon in daemons) == 1, "three refusals", timeout=30)
    assert sorted(daemon.exit_code() for daemon in daemons if not daemon.is_running) == [EXIT_REFUSED] * 3
    assert len(host.devices()) == 1


def test_expired_invite_is_refused_by_the_host(workshop):
    host = workshop.host(workshop.origin().target)
    invite = host.invite(lifetime="1s")
    _, payload = wire.parse_invite(invite)
    # The client tolerates a minute of clock difference, so it asks; the host knows its own clock.
    wait_for(lambda: wire.date(0) > payload["expiresAt"], "the invite to expire")
    done = run("connect", invite, "--state-dir", workshop.directory())
    assert_clear_failure(done, EXIT_REFUSED)
    assert host.devices() == []


def test_unreachable_host_exits_with_3(workshop):
    host = workshop.host(workshop.origin().target)
    state = pair(workshop, host)
    unused = host.invite()
    host.daemon.stop()
    done = run("connect", rows(state, "servers")[0]["name"], "--state-dir", state)
    assert_clear_failure(done, EXIT_UNREACHABLE)
    assert_clear_failure(run("connect", unused, "--state-dir", workshop.directory()), EXIT_UNREACHABLE)


def test_invite_is_not_used_up_by_a_host_that_could_not_be_reached(workshop):
    origin = workshop.origin()
    port = free_udp_port()
    host = workshop.host(origin.target, listen=f"127.0.0.1:{port}")
    host.daemon.stop()
    state = workshop.directory()
    assert_clear_failure(run("connect", host.ready["invite"], "--state-dir", state), EXIT_UNREACHABLE)
    workshop.host(origin.target, state=host.state, listen=f"127.0.0.1:{port}")
    client = workshop.connect(host.ready["invite"], state=state)
    assert curl(client.url + "/hello").status == 200


def test_host_with_another_key_exits_with_5(workshop):
    origin = workshop.origin()
    port = free_udp_port()
    host = workshop.host(origin.target, listen=f"127.0.0.1:{port}")
    state = pair(workshop, host)
    host.daemon.stop()
    workshop.host(origin.target, listen=f"127.0.0.1:{port}")
    done = run("connect", rows(state, "servers")[0]["name"], "--state-dir", state)
    assert_clear_failure(done, EXIT_UNTRUSTED)


def test_identity_and_devices_survive_a_restart(workshop):
    origin = workshop.origin()
    host = workshop.host(origin.target)
    pair(workshop, host)
    assert host.daemon.stop() == EXIT_SUCCESS
    again = workshop.host(origin.target, state=host.state)
    assert again.ready["nodeId"] == host.ready["nodeId"]
    assert len(again.devices()) == 1


def test_sixth_bad_invite_is_refused_too(workshop):
    host = workshop.host(workshop.origin().target, "--name", "studio")
    pair(workshop, host)
    state = workshop.directory()
    for _ in range(6):
        done = run("connect", host.ready["invite"], "--state-dir", state)
        assert_clear_failure(done, EXIT_REFUSED)
    assert "studio: too many pairings failed" in done.stderr


def test_taken_port_is_named(workshop):
    tunnel = workshop.tunnel()
    done = run("connect", tunnel.client.ready["server"], "--port", tunnel.port, "--state-dir", tunnel.client.state)
    assert_clear_failure(done, EXIT_FAILURE)
    assert f"--port {tunnel.port}: the port is in use" in done.stderr


def test_unusable_state_directory_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    state = tmp_path / "file" / "x"
    for command in (["host", "--target", "http://127.0.0.1:9"], ["connect", "studio"]):
        done = run(*command, "--state-dir", state)
        assert_clear_failure(done, EXIT_FAILURE)
        assert f"culvert: {state}: " in done.stderr


def test_damaged_server_file_is_told_and_hides_no_other(workshop):
    host = workshop.host(workshop.origin().target, "--name", "studio")
    state = pair(workshop, host)
    damaged = state / "servers" / ("0" * 64 + ".json")
    damaged.write_text("{")
    damaged.chmod(0o600)
    done = run("servers", "--state-dir", state)
    assert done.returncode == 0 and "studio" in done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"culvert: {damaged}: ")
    assert [server["name"] for server in rows(state, "servers")] == ["studio"]


def test_revoked_devices_are_listed_on_demand(workshop):
    host = workshop.host(workshop.origin().target)
    first = workshop.connect(host.ready["invite"], "--device-name", "first")
    second = workshop.connect(host.invite(), "--device-name", "second")
    assert run("revoke", "first", "--state-dir", host.state).returncode == 0
    assert first.daemon.exit_code() == EXIT_REFUSED
    few, all_of_them = run("devices", "--state-dir", host.state), run("devices", "--all", "--state-dir", host.state)
    assert "first" not in few.stdout and "1 revoked, not shown" in few.stderr
    assert "first" in all_of_them.stdout and "revoked" in all_of_them.stdout and all_of_them.stderr == ""
    (line,) = [line for line in few.stdout.splitlines() if "second" in line]
    assert "connected" in line and line.endswith("now")
    assert {device["name"]: device["revoked"] for device in host.devices()} == {"first": True, "second": False}
    second.daemon.stop()


def test_token_opens_a_proxy_in_token_mode(workshop):
    tunnel = workshop.tunnel("--local-auth", "token")
    name = tunnel.client.ready["server"]
    done = run("token", name, "--state-dir", tunnel.client.state)
    assert done.returncode == 0 and re.fullmatch(r"dt_[A-Za-z0-9_-]+\n", done.stdout) and "secret" in done.stderr
    header = f"Authorization: Bearer {done.stdout.strip()}"
    assert curl(tunnel.url + "/hello", "-H", header).status == 200
    assert curl(tunnel.url + "/hello").status == 401
    assert_clear_failure(run("token", "nobody", "--state-dir", tunnel.client.state), EXIT_FAILURE)


def test_demonstration(tmp_path):
    from conftest import ROOT

    done = subprocess.run([ROOT / "demo", "--once"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert done.stdout.count("✓") == 5 and "✗" not in done.stdout and "it works" in done.stdout
