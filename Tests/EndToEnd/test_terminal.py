"""What only a terminal or a shell shows: completion, quoting, the QR code, Ctrl-C."""

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

from clients import connect, read_head, request
from daemons import BIN, EXIT_FAILURE, EXIT_SUCCESS


@pytest.fixture
def named_tunnel(workshop):
    """Names that a shell would take apart, in the usual state directory: (environment, host, server, device)."""
    home = workshop.directory("home")
    home.mkdir()
    server, device = "my $(touch x) studio", "Ann's laptop"
    host = workshop.host(workshop.origin().target, "--name", server, state=home / "culvert")
    process = subprocess.Popen(
        [BIN / "culvert", "connect", host.ready["invite"], "--device-name", device, "--state-dir", home / "culvert"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline().startswith("http://")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=15)
    assert process.returncode == EXIT_SUCCESS
    environment = {**os.environ, "XDG_STATE_HOME": str(home), "PATH": f"{BIN}:{os.environ['PATH']}"}
    return environment, errors, server, device


def complete(environment, *words, cwd):
    """What bash completes the last word to, as it would be inserted."""
    script = """
        source <(culvert completions bash)
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _culvert
        printf '%s\\n' "${COMPREPLY[@]}" """
    done = subprocess.run(["bash", "-c", script, "bash", *words], env=environment, cwd=cwd, capture_output=True,
                          text=True, timeout=20, check=True)
    assert done.stderr == ""
    return done.stdout.split("\n")[:-1]


def test_names_are_quoted_for_the_shell(named_tunnel, tmp_path):
    environment, errors, server, device = named_tunnel
    assert f"from now on, culvert connect '{server}'" in errors
    for command, typed, name in (
            ("connect", "my", server), ("forget", "", server), ("token", r"my\ \$", server),
            ("revoke", "Ann", device), ("rename", "", device)):
        (word,) = complete(environment, "culvert", command, typed, cwd=tmp_path)
        back = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, text=True, cwd=tmp_path)
        assert back.stdout == name
    # After an open quote bash adds nothing but the closing one.
    assert complete(environment, "culvert", "connect", "'my ", cwd=tmp_path) == [server]
    assert complete(environment, "culvert", "revoke", '"Ann\'s', cwd=tmp_path) == [device]
    assert complete(environment, "culvert", "revoke", "'Ann", cwd=tmp_path) == [""]
    assert complete(environment, "culvert", "connect", '"my', cwd=tmp_path) == [""]
    assert complete(environment, "culvert", "connect", "other", cwd=tmp_path) == [""]
    assert complete(environment, "culvert", "help", "dev", cwd=tmp_path) == ["devices"]
    assert list(tmp_path.iterdir()) == []


def test_control_c_leaves_the_terminal_clean(workshop):
    tunnel = workshop.tunnel()
    tunnel.client.daemon.stop()
    pid, controller = pty.fork()
    if pid == 0:
        os.execv(BIN / "culvert", [
            "culvert", "connect", tunnel.client.ready["server"], "--state-dir", str(tunnel.client.state)])
    text = read_until(controller, b"direct path")
    port = int(re.search(rb"http://127\.0\.0\.1:(\d+)", text).group(1))
    with connect(port) as stuck:
        stuck.sendall(request("/half/never"))
        assert read_head(stuck)[0] == 200
        os.write(controller, b"\x03")
        text = read_until(controller, b"s left, Ctrl-C cuts them")
        assert b"^C\r\x1b[K" in text
        os.write(controller, b"\x03")
        text = read_until(controller, b"\n")
    assert text.endswith(b"\r\x1b[Kculvert: stopped at once; open requests were cut\r\n")
    _, status = os.waitpid(pid, 0)
    os.close(controller)
    assert os.waitstatus_to_exitcode(status) == EXIT_FAILURE


def read_until(descriptor, end, timeout=10):
    """What comes up to `end` or after it."""
    text, deadline = b"", time.monotonic() + timeout
    while end not in text:
        assert select.select([descriptor], [], [], max(0, deadline - time.monotonic()))[0], text
        text += os.read(descriptor, 65536)
    return text


def in_terminal(workshop, columns, lines):
    """What a host writes on a terminal of this size until it waits."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    process = subprocess.Popen(
        [BIN / "culvert", "host", "--target", "http://127.0.0.1:9", "--listen", "127.0.0.1:0", "--state-dir",
         workshop.directory()], stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal)
    os.close(terminal)
    text = b""
    try:
        text = read_until(controller, b"Stop with Ctrl-C")
    finally:
        process.terminate()
        with contextlib.suppress(OSError):
            while data := os.read(controller, 65536):
                text += data
        process.wait(15)
        os.close(controller)
    assert process.returncode == EXIT_SUCCESS
    return text.decode()


def test_qr_code_is_drawn_where_all_of_it_fits(workshop):
    assert "█" in in_terminal(workshop, 150, 120)
    for columns, lines in ((150, 60), (80, 120)):
        text = in_terminal(workshop, columns, lines)
        assert "█" not in text
        # What is said about it does not scroll away above the invite.
        assert text.index("invite=") < text.index(f"this one has {columns} and {lines}")
