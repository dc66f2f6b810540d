"""Who may use the loopback proxy, and what the state on disk gives away."""

import json
import os
import pathlib
import stat

import pytest

from clients import curl, exchange, request
from daemons import EXIT_FAILURE, EXIT_UNTRUSTED, assert_clear_failure, assert_no_secret, rows, run

NOBODY = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

needs_other_users = pytest.mark.skipif(
    os.geteuid() != 0 or int(pathlib.Path("/proc/self/uid_map").read_text().split()[2]) <= 65534,
    reason="only root can be another user",
)


def code_of(body):
    answer = json.loads(body)
    assert set(answer) == {"error", "code"}
    return answer["code"]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "192.168.1.1", "localhost.evil.example"])
def test_request_for_a_foreign_host_is_refused(tunnel, host):
    before = len(tunnel.origin.requests)
    status, body = exchange(tunnel.port, request("/hello", host=host))
    assert (status, code_of(body)) == (403, "host_not_loopback")
    assert len(tunnel.origin.requests) == before


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:1234", "[::1]", "127.0.0.1:80"])
def test_request_for_a_loopback_host_passes(tunnel, host):
    assert exchange(tunnel.port, request("/hello", host=host))[0] == 200


@needs_other_users
def test_same_user_is_the_default_and_refuses_others(tunnel):
    answer = curl(tunnel.url + "/hello", before=NOBODY)
    assert answer.status == 403 and code_of(answer.body) == "other_user"
    assert curl(tunnel.url + "/hello").status == 200


@needs_other_users
def test_open_serves_everyone_but_not_foreign_hosts(workshop):
    tunnel = workshop.tunnel("--local-auth", "open")
    assert curl(tunnel.url + "/hello", before=NOBODY).status == 200
    assert curl("-H", "Host: evil.example", tunnel.url + "/hello").status == 403


def test_token_mode_wants_exactly_the_device_token(workshop):
    tunnel = workshop.tunnel("--local-auth", "token")
    (file,) = (tunnel.client.state / "servers").glob("*.json")
    token = json.loads(file.read_text())["deviceToken"]
    good = f"Authorization: Bearer {token}"
    url = tunnel.url + "/hello"
    assert curl("-H", good, url).status == 200
    for bad in ([], ["-H", good[:-1] + ("A" if good[-1] != "A" else "B")], ["-H", good, "-H", good],
                ["-H", f"Authorization: {token}"], ["-H", good + "x"]):
        answer = curl(*bad, url)
        assert answer.status == 401 and code_of(answer.body) == "local_token", bad
    assert curl("-H", good, "-H", "Host: evil.example", url).status == 403


def test_state_is_for_its_owner_only(tunnel):
    for directory in (tunnel.host.state, tunnel.client.state):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        for path in directory.rglob("*"):
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


def test_tokens_are_stored_as_hashes_on_the_host(tunnel):
    (file,) = (tunnel.client.state / "servers").glob("*.json")
    token = json.loads(file.read_text())["deviceToken"].encode()
    for path in tunnel.host.state.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert token not in data and b"dt_" not in data and b"pt_" not in data, path


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_key_file_that_others_can_read_is_refused(workshop, mode):
    host = workshop.host("http://127.0.0.1:9")
    host.daemon.stop()
    key = host.state / "identity.key"
    key.chmod(mode)
    done = run("host", "--target", "http://127.0.0.1:9", "--state-dir", host.state)
    assert_clear_failure(done, EXIT_FAILURE)
    assert "identity.key" in done.stderr or "key" in done.stderr
    assert stat.S_IMODE(key.stat().st_mode) == mode, "a refused file is left as it is"


def test_token_of_another_device_is_refused_and_names_no_reason_to_guess(workshop):
    tunnel = workshop.tunnel()
    other = workshop.connect(tunnel.host.invite())
    other.daemon.stop()
    tunnel.client.daemon.stop()
    (mine,) = (tunnel.client.state / "servers").glob("*.json")
    (theirs,) = (other.state / "servers").glob("*.json")
    stolen = json.loads(theirs.read_text()) | {"deviceToken": json.loads(mine.read_text())["deviceToken"]}
    theirs.write_text(json.dumps(stolen))
    name = rows(other.state, "servers")[0]["name"]
    thief = workshop.connect(name, state=other.state)
    answer = curl(thief.url + "/hello")
    assert answer.status == 403 and code_of(answer.body) == "binding_mismatch"


def test_forged_invite_exits_with_5(workshop):
    import wire

    host = workshop.host("http://127.0.0.1:9")
    envelope, payload = wire.parse_invite(host.ready["invite"])
    payload["name"] = "another name"
    envelope["signedPayload"] = wire.encode(json.dumps(payload).encode())
    done = run("connect", wire.link(envelope), "--state-dir", workshop.directory())
    assert_clear_failure(done, EXIT_UNTRUSTED)


def test_no_secret_in_what_the_daemons_printed(workshop):
    """Every daemon of every test is checked when it stops; here the secrets are known and looked for one by one."""
    import wire

    tunnel = workshop.tunnel()
    bearer = "Authorization: Bearer application-secret-0123456789"
    assert curl("-H", bearer, tunnel.url + "/hello").status == 200
    assert curl("-H", bearer, "-H", "Host: evil.example", tunnel.url + "/hello").status == 403
    tunnel.origin.stop()
    assert curl("-H", bearer, tunnel.url + "/hello").status == 503
    (file,) = (tunnel.client.state / "servers").glob("*.json")
    secrets = [
        json.loads(file.read_text())["deviceToken"],
        wire.parse_invite(tunnel.host.ready["invite"])[1]["pairingToken"],
        (tunnel.host.state / "identity.key").read_text().strip(),
        (tunnel.client.state / "identity.key").read_text().strip(),
        "application-secret",
    ]
    tunnel.client.daemon.stop()
    tunnel.host.daemon.stop()
    for daemon in (tunnel.host.daemon, tunnel.client.daemon):
        printed = daemon.error_text + json.dumps([e for e in daemon.events if e["event"] != "ready"])
        assert_no_secret(printed)
        for secret in secrets:
            assert secret not in printed
