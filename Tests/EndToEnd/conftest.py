"""Fixtures: the shared tunnel that most tests use, and makers of private ones for tests that break things."""

import contextlib
import dataclasses
import os
import pathlib
import resource
import shutil
import tempfile

import pytest

import daemons
import relays
from origin import Origin

ROOT = pathlib.Path(__file__).parents[2]


def pytest_configure(config):
    # A thousand connections in one test, each with two ends here.
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65536), hard))


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.get_closest_marker("last") is not None)


def pytest_sessionstart(session):
    if not (daemons.BIN / "culvert").exists():
        raise pytest.UsageError("CULVERT_BIN does not hold the built products; run ./test e2e")
    if "CULVERT_TEST_NAMESPACE" not in os.environ:
        raise pytest.UsageError("these tests run in a network namespace of their own; run ./test e2e")


@dataclasses.dataclass
class Tunnel:
    """A host, a paired proxy in front of it, and the origin behind it."""

    origin: Origin
    host: daemons.Host
    client: daemons.Connection

    @property
    def url(self):
        return self.client.url

    @property
    def port(self):
        return self.client.port


class Workshop:
    """Makes state directories, origins, hosts and connections, and ends all of them in the reverse order."""

    def __init__(self, directory):
        self._directory = pathlib.Path(directory)
        self._count = 0
        self._stack = contextlib.ExitStack()

    def directory(self, name="state"):
        """The path of a directory that does not exist yet."""
        self._count += 1
        return self._directory / f"{name}-{self._count}"

    def origin(self, **options):
        origin = Origin(**options)
        self._stack.callback(origin.stop)
        return origin

    def host(self, target, *options, state=None, **more):
        host = daemons.start_host(target, state or self.directory("host"), *options, **more)
        self._stack.callback(self._end, host.daemon)
        return host

    def connect(self, what, *options, state=None, **more):
        client = daemons.start_connect(what, state or self.directory("client"), *options, **more)
        self._stack.callback(self._end, client.daemon)
        return client

    def daemon(self, *arguments, **more):
        """A daemon that need not become ready."""
        daemon = daemons.Daemon(arguments, **more)
        self._stack.callback(self._end, daemon)
        return daemon

    def enter(self, context):
        """Enters a context that ends with the workshop."""
        return self._stack.enter_context(context)

    def tunnel(self, *connect_options, origin=None, host_options=(), **connect_more):
        origin = origin or self.origin()
        host = self.host(origin.target, *host_options)
        client = self.connect(host.ready["invite"], *connect_options, **connect_more)
        return Tunnel(origin, host, client)

    @staticmethod
    def _end(daemon):
        if daemon.is_running:
            daemon.stop()

    def close(self):
        self._stack.close()


@contextlib.contextmanager
def _workshop():
    # Short paths: a Unix socket's path must fit in 107 bytes.
    directory = tempfile.mkdtemp(prefix="culvert-", dir="/tmp")
    os.chmod(directory, 0o755)
    workshop = Workshop(directory)
    try:
        yield workshop
    finally:
        try:
            workshop.close()
        finally:
            shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture
def workshop():
    """For this test alone."""
    with _workshop() as workshop:
        yield workshop


@pytest.fixture(scope="session")
def shared_workshop():
    with _workshop() as workshop:
        yield workshop


@pytest.fixture(scope="session")
def tunnel(shared_workshop):
    """One tunnel for all tests that leave it as it was."""
    return shared_workshop.tunnel()


@pytest.fixture(scope="session")
def big_file(shared_workshop):
    """1 GiB with a known digest: (path, size, SHA-256)."""
    from origin import BLOCK, pattern_digest

    size = 1 << 30
    path = shared_workshop.directory("big")
    with open(path, "wb") as file:
        for _ in range(size // len(BLOCK)):
            file.write(BLOCK)
        file.write(BLOCK[: size % len(BLOCK)])
    return path, size, pattern_digest(size)


@pytest.fixture
def relay():
    """A relay of ours for this test alone, without TLS, that tells its metrics."""
    with relays.relay("--metrics", "127.0.0.1:0") as running:
        yield running
