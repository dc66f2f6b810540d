"""Two machines that cannot reach each other: network namespaces with one link each, to the tests' own namespace, which
forwards nothing. Only what runs here, such as a relay, is reached from both."""

import contextlib
import dataclasses
import pathlib
import subprocess

RELAY_ADDRESS = "198.51.100.100"  # RFC 5737; relay URLs must not be private addresses


@dataclasses.dataclass
class Machine:
    """A namespace; `before` goes before a command line to run it there."""

    pid: int
    address: str

    @property
    def before(self):
        return ("nsenter", f"--net=/proc/{self.pid}/ns/net")


def ip(*words, machine=None):
    subprocess.run([*(machine.before if machine else ()), "ip", *words], check=True, capture_output=True)


@contextlib.contextmanager
def machine(name, subnet):
    gateway, address = f"198.51.100.{subnet + 1}", f"198.51.100.{subnet + 2}"
    holder = subprocess.Popen(["unshare", "--net", "sleep", "600"])
    try:
        own = pathlib.Path("/proc/self/ns/net").readlink()
        while pathlib.Path(f"/proc/{holder.pid}/ns/net").readlink() == own:
            assert holder.poll() is None, "no namespace"
        there = Machine(holder.pid, address)
        ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid))
        ip("address", "add", f"{gateway}/30", "dev", name)
        ip("link", "set", name, "up")
        ip("link", "set", "lo", "up", machine=there)
        ip("address", "add", f"{address}/30", "dev", "eth0", machine=there)
        ip("link", "set", "eth0", "up", machine=there)
        ip("route", "add", "default", "via", gateway, machine=there)
        yield there
    finally:
        holder.kill()
        holder.wait()
        subprocess.run(["ip", "link", "delete", name], capture_output=True)


@contextlib.contextmanager
def two_machines():
    """The host's and the client's."""
    forwarding = pathlib.Path("/proc/sys/net/ipv4/ip_forward")
    assert forwarding.read_text().strip() == "0", "a namespace that forwards would be a direct path"
    ip("address", "add", f"{RELAY_ADDRESS}/32", "dev", "lo")
    try:
        with machine("left", 0) as left, machine("right", 4) as right:
            yield left, right
    finally:
        ip("address", "delete", f"{RELAY_ADDRESS}/32", "dev", "lo")
