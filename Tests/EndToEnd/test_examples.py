"""The example of embedding builds, works, and is what the README shows."""

import os
import subprocess

import pytest

from conftest import ROOT
from daemons import _in_child

EMBEDDING = ROOT / "examples/embedding"


@pytest.fixture(scope="module")
def programs():
    """The directory of the built programs. They are built where ./test finds them the next time."""
    command = ["swift", "build", "--package-path", EMBEDDING, "--scratch-path", ROOT / ".build/embedding"]
    built = subprocess.run(command, capture_output=True, text=True, timeout=900)
    assert built.returncode == 0, built.stdout + built.stderr
    assert "warning:" not in built.stdout + built.stderr, built.stdout + built.stderr
    return ROOT / ".build/embedding/debug"


@pytest.mark.parametrize("program", ["client", "host"])
def test_readme_shows_the_embedding_example(program):
    source = (EMBEDDING / "Sources" / program / "main.swift").read_text()
    assert f"```swift\n{source}```" in (ROOT / "README.md").read_text()


@pytest.mark.timeout(1000)  # a cold build takes minutes
def test_embedding_example_pairs_and_comes_back_by_name(programs, workshop):
    origin = workshop.origin()

    def environment(side):
        return {**os.environ, "XDG_STATE_HOME": str(states[side])}

    states = {side: workshop.directory(side) for side in ("host", "client")}
    for directory in states.values():
        directory.mkdir()
    # Line by line, although standard output is a pipe.
    host = subprocess.Popen(
        ["stdbuf", "-oL", programs / "host", origin.target], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True, env=environment("host"), preexec_fn=_in_child)
    try:
        invite = host.stdout.readline().strip()
        assert invite.startswith("culvert://connect?")
        for argument in (invite, os.uname().nodename.partition(".")[0]):
            client = subprocess.run(
                [programs / "client", argument], capture_output=True, text=True, timeout=60,
                env=environment("client"), preexec_fn=_in_child)
            assert client.returncode == 0, client.stderr
            assert "hello" in client.stdout, client.stdout
        rest, _ = host.communicate("\n", timeout=30)
        assert host.returncode == 0
        assert "paired(" in rest and rest.count("deviceConnected(") == 2, rest
    finally:
        host.kill()
        host.wait()
