"""Runs `culvert` as a user would: commands to their end, daemons with their JSON lines, and stops them by process ID."""

import ctypes
import dataclasses
import json
import os
import pathlib
import queue
import re
import resource
import signal
import socket
import subprocess
import threading
import time

BIN = pathlib.Path(os.environ.get("CULVERT_BIN", "."))
SECRET = re.compile(r"dt_[A-Za-z0-9_-]{20,}|pt_[A-Za-z0-9_-]{20,}|[Bb]earer [A-Za-z0-9_-]{20,}|invite=[A-Za-z0-9_-]{40,}")

EXIT_SUCCESS, EXIT_FAILURE, EXIT_USAGE, EXIT_UNREACHABLE, EXIT_REFUSED, EXIT_UNTRUSTED = range(6)


def _in_child():
    """Be killed when the test run dies, so that no daemon outlives it; and have the usual limit of open files, which is
    too low for a thousand connections unless the daemon raises it itself."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))


def wait_for(condition, what, timeout=10.0):
    """Polls until condition() is true and gives its value; fails with `what` after `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {timeout} s: {what}"
        time.sleep(0.02)


class Daemon:
    """A running `culvert host` or `culvert connect` with --json."""

    def __init__(self, arguments, environment=None, before=()):
        self.arguments = list(arguments)
        self._process = subprocess.Popen(
            [*before, BIN / "culvert", *map(str, arguments)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, **(environment or {})}, preexec_fn=_in_child,
        )
        self.pid = self._process.pid
        self.events, self.errors = [], []
        self._queue = queue.Queue()
        self._readers = [
            threading.Thread(target=self._read_events, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read_events(self):
        for line in self._process.stdout:
            self._queue.put(line)
        self._queue.put(None)

    def _read_errors(self):
        for line in self._process.stderr:
            self.errors.append(line.decode(errors="replace"))

    def event(self, name, timeout=20.0, **fields):
        """The next event called `name` with these fields. Fails when the daemon ends first or takes too long."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                line = self._queue.get(timeout=max(0, deadline - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no event {name} {fields} within {timeout} s; {self.story()}") from None
            assert line is not None, f"the daemon ended without event {name}; {self.story()}"
            event = json.loads(line)
            self.events.append(event)
            if event.get("event") == name and fields.items() <= event.items():
                return event

    def exit_code(self, timeout=15.0):
        """Waits for the daemon to end by itself."""
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout} s; {self.story()}") from None
        self._finish()
        return code

    def signal(self, number):
        self._process.send_signal(number)

    def stop(self, timeout=15.0):
        """Asks the daemon to stop and gives its exit code; a daemon that has ended before keeps its code."""
        if self._process.poll() is None:
            self.signal(signal.SIGTERM)
        return self.exit_code(timeout)

    def kill(self):
        """Ends the daemon without a chance to say good-bye."""
        self._process.kill()
        self._process.wait()
        self._finish()

    @property
    def is_running(self):
        return self._process.poll() is None

    @property
    def error_text(self):
        return "".join(self.errors)

    def descriptors(self):
        """How many files and sockets the daemon has open."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def peak_memory(self):
        """The most memory the daemon ever had resident, in bytes."""
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmHWM")

    def story(self):
        return f"arguments {self.arguments[:1]}, code {self._process.poll()}, events {self.events}, stderr {self.errors}"

    def _finish(self):
        for reader in self._readers:
            reader.join(5)
        while not self._queue.empty():
            if line := self._queue.get():
                self.events.append(json.loads(line))
        for stream in (self._process.stdout, self._process.stderr):
            stream.close()
        assert_no_secret(self.error_text)
        assert_no_secret(json.dumps([{k: v for k, v in e.items() if k != "invite"} for e in self.events]))


def assert_no_secret(text):
    found = SECRET.search(text)
    assert not found, f"a secret was printed: {found.group()[:8]}…"


def run(*arguments, stdin=None, timeout=60.0, before=(), environment=None):
    """Runs a command to its end. What goes to stderr must be free of secrets."""
    done = subprocess.run(
        [*before, BIN / "culvert", *map(str, arguments)],
        input=stdin, stdin=None if stdin is not None else subprocess.DEVNULL, capture_output=True, text=True,
        timeout=timeout, env={**os.environ, **(environment or {})}, preexec_fn=_in_child,
    )
    assert_no_secret(done.stderr)
    return done


def assert_clear_failure(done, code, notes=False):
    """Exit code `code`, and one line on stderr that says why; with `notes` also others before it."""
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    lines = done.stderr.strip().splitlines()
    assert lines[-1].startswith("culvert") and (notes or len(lines) == 1), done.stderr


def rows(state, *command):
    """The parsed output of a listing."""
    done = run(*command, "--state-dir", state, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@dataclasses.dataclass
class Host:
    daemon: Daemon
    state: pathlib.Path
    ready: dict

    def invite(self, lifetime="10m"):
        """Another invite from the running host."""
        return rows(self.state, "invite", "--invite-lifetime", lifetime)["invite"]

    def devices(self):
        return rows(self.state, "devices")


@dataclasses.dataclass
class Connection:
    daemon: Daemon
    state: pathlib.Path
    ready: dict

    @property
    def url(self):
        return self.ready["url"]

    @property
    def port(self):
        return int(self.url.rpartition(":")[2])


def start_host(target, state, *options, listen="127.0.0.1:0", lifetime="10m", before=()):
    daemon = Daemon(
        ["host", "--json", "--target", target, "--state-dir", state, "--listen", listen,
         "--invite-lifetime", lifetime, *options],
        before=before,
    )
    return Host(daemon, state, daemon.event("ready"))


def start_connect(what, state, *options, **more):
    daemon = Daemon(["connect", "--json", what, "--state-dir", state, *options], **more)
    return Connection(daemon, state, daemon.event("ready"))


def pair(workshop, host, *options):
    """Pairs a new client and stops it again; gives its state directory."""
    client = workshop.connect(host.ready["invite"], *options)
    assert client.daemon.stop() == EXIT_SUCCESS
    return client.state


def free_udp_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
