#!/usr/bin/env python3
"""Throughput, latency, requests a second and memory of a Culvert tunnel, direct and through a relay of its own, next to
`ssh -L` and no tunnel at all.

One nginx worker serves a file in memory. In every round each way takes its turn, so that a busy machine is unfair to
all of them alike; the medians count. Everything stays on loopback and ends with the script.
"""

import argparse
import contextlib
import getpass
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

# How a request may go; the last three are tunnels of Culvert.
NO_TUNNEL, SSH, DIRECT, RELAY, TLS_RELAY = "no tunnel", "ssh -L", "culvert", "by relay", "by TLS relay"
WAYS = (NO_TUNNEL, SSH, DIRECT, RELAY, TLS_RELAY)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_port(port, process, seconds=10):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and process.poll() is None:
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
    sys.exit(f"{process.args[0]} did not begin to listen")


class Programs:
    """Starts programs and ends them in the reverse order, by process ID."""

    def __init__(self, directory):
        self.directory = directory
        self._stack = contextlib.ExitStack()

    def start(self, *arguments, **more):
        with open(self.directory / "programs.log", "ab") as log:
            process = subprocess.Popen(list(map(str, arguments)), stdin=subprocess.DEVNULL, stderr=log,
                                       **{"stdout": log, **more})
        self._stack.callback(self._end, process)
        return process

    @staticmethod
    def _end(process):
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def close(self):
        self._stack.close()


def start_nginx(programs, size):
    """Serves /big and /small; gives the port."""
    directory, port = programs.directory, free_port()
    files = directory / "files"
    files.mkdir()
    with open(files / "big", "wb") as file:
        block = os.urandom(1 << 20)
        for _ in range(size >> 20):
            file.write(block)
    (files / "small").write_bytes(b"x" * 612)
    configuration = directory / "nginx.conf"
    user = "user root;" if os.geteuid() == 0 else ""
    temporary = "".join(
        f"{kind}_temp_path {directory}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    configuration.write_text(f"""
        {user} worker_processes 1; daemon off; pid {directory}/nginx.pid; error_log {directory}/nginx.log;
        events {{ worker_connections 1024; }}
        http {{
            access_log off; sendfile on; keepalive_requests 100000000; {temporary}
            server {{ listen 127.0.0.1:{port}; root {files}; }}
        }}""")
    nginx = shutil.which("nginx") or "/usr/sbin/nginx"
    wait_for_port(port, programs.start(nginx, "-c", configuration, "-e", directory / "nginx.log"))
    return port


def start_ssh(programs, target):
    """An sshd of our own with throw-away keys and a client that forwards; gives (port, [client, server])."""
    directory, server_port, port = programs.directory, free_port(), free_port()
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", directory / name], check=True)
    (directory / "authorized").write_bytes((directory / "user.pub").read_bytes())
    configuration = directory / "sshd_config"
    configuration.write_text(
        f"ListenAddress 127.0.0.1\nPort {server_port}\nHostKey {directory}/host\nPidFile none\nUsePAM no\n"
        f"AuthorizedKeysFile {directory}/authorized\nStrictModes no\nPermitRootLogin prohibit-password\n")
    if os.geteuid() == 0:
        os.makedirs("/run/sshd", exist_ok=True)
    server = programs.start("/usr/sbin/sshd", "-D", "-e", "-f", configuration)
    wait_for_port(server_port, server)
    client = programs.start(
        "ssh", "-F", "none", "-N", "-L", f"127.0.0.1:{port}:127.0.0.1:{target}", "-p", server_port,
        "-c", "aes128-gcm@openssh.com", "-i", directory / "user", "-o", "IdentitiesOnly=yes",
        "-o", "StrictHostKeyChecking=no", "-o", f"UserKnownHostsFile={directory}/known", "-o", "LogLevel=ERROR",
        "-o", "ExitOnForwardFailure=yes", f"{getpass.getuser()}@127.0.0.1")
    wait_for_port(port, client)
    return port, [client.pid, server.pid]


def start_relay(programs, binaries, tls):
    """A relay that bounds nobody's rate; gives (options for host and proxy, options for the host, [relay])."""
    directory, port = programs.directory, free_port()
    settings, trust = [], ["--allow-insecure-relay", "--path", "relay"]
    if tls:
        certificate, key = directory / "relay.pem", directory / "relay.key"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
             "2", "-subj", "/CN=relay", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
            check=True, capture_output=True)
        settings += ["--tls-cert", certificate, "--tls-key", key]
        trust += ["--relay-ca", certificate]
    relay = programs.start(binaries / "culvert-relay", "--listen", f"127.0.0.1:{port}", "--rate", 0, *settings)
    wait_for_port(port, relay)
    return trust, ["--relay", f"http{'s' if tls else ''}://127.0.0.1:{port}"], [relay.pid]


def start_culvert(programs, binaries, target, way):
    """A host, a proxy, and what is between them; gives (port, [host, proxy, relay])."""

    def start(*arguments):
        process = programs.start(binaries / "culvert", *arguments, stdout=subprocess.PIPE)
        return process, json.loads(process.stdout.readline() or sys.exit("culvert did not start"))

    both, host_only, relay = ([], [], []) if way == DIRECT else start_relay(programs, binaries, way == TLS_RELAY)
    state = programs.directory / way
    host, ready = start("host", "--json", "--target", f"http://127.0.0.1:{target}", "--listen", "127.0.0.1:0",
                        "--state-dir", state / "host", *both, *host_only)
    proxy, ready = start("connect", "--json", ready["invite"], "--state-dir", state / "proxy", *both)
    return int(ready["url"].rpartition(":")[2]), [host.pid, proxy.pid, *relay]


# Measuring


def family(pids):
    """The processes and all their descendants: sshd works in children."""
    parents = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            parents[int(path.parent.name)] = int(fields[1])
    members = set(pids)
    while more := {pid for pid, parent in parents.items() if parent in members} - members:
        members |= more
    return members


def peak_memory(pids):
    """The sum of the processes' peaks, in MB."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            total += int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text()).group(1))
    return total * 1024 / 1e6


def processor_seconds(pids):
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def throughput(port):
    """MB/s of one download."""
    done = subprocess.run(
        ["curl", "-sS", "--fail", "--noproxy", "*", "--max-time", "120", "-o", "/dev/null", "-w", "%{speed_download}",
         f"http://127.0.0.1:{port}/big"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"the download failed: {done.stderr}")
    return float(done.stdout) / 1e6


def latency(port, count=300):
    """Milliseconds that a small request takes on a connection that is there: the median of `count`, one at a time."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    times = []
    for _ in range(count):
        start = time.perf_counter()
        connection.request("GET", "/small")
        connection.getresponse().read()
        times.append(time.perf_counter() - start)
    connection.close()
    return statistics.median(times) * 1e3


def request_rate(port, seconds):
    """(requests/s, failed requests) of wrk with 16 connections."""
    done = subprocess.run(["wrk", "-t1", "-c16", f"-d{seconds}s", f"http://127.0.0.1:{port}/small"],
                          capture_output=True, text=True, check=True)
    failed = re.search(r"Non-2xx or 3xx responses: (\d+)", done.stdout)
    broken = re.search(r"Socket errors: (.*)", done.stdout)
    if broken:
        print(f"    wrk reports {broken.group(0)}", flush=True)
    return float(re.search(r"Requests/sec:\s+([\d.]+)", done.stdout).group(1)), int(failed.group(1)) if failed else 0


def measure(ways, rounds, size, seconds):
    samples = {way: {"MB/s": [], "CPU s/GB": [], "ms": [], "requests/s": []} for way in ways}
    for number in range(rounds):
        for way, (port, pids) in ways.items():
            members = family(pids) if pids else set()
            before = processor_seconds(members)
            speed = throughput(port)
            samples[way]["MB/s"].append(speed)
            samples[way]["CPU s/GB"].append((processor_seconds(members) - before) / (size / 1e9))
            samples[way]["ms"].append(latency(port))
            rate, failed = request_rate(port, seconds)
            samples[way]["requests/s"].append(rate)
            if failed:
                sys.exit(f"{failed} requests failed through {way}")
            print(f"    round {number + 1}  {way:<12} {speed:8,.0f} MB/s {rate:10,.0f} requests/s", flush=True)
    return samples


def summarize(ways, samples):
    results = {}
    for way, (_, pids) in ways.items():
        result = {name: statistics.median(values) for name, values in samples[way].items()}
        result["samples"] = samples[way]
        if pids:
            result["peak memory, MB"] = {"all": peak_memory(family(pids))}
            if way not in (NO_TUNNEL, SSH):
                names = ("host", "proxy", "relay")
                result["peak memory, MB"] |= {name: peak_memory([pid]) for name, pid in zip(names, pids)}
        else:
            del result["CPU s/GB"]
        results[way] = result
    return results


def print_table(results):
    base = results[SSH]
    print(f"\n{'':<13}{'MB/s':>8}{'of ssh -L':>11}{'ms':>8}{'requests/s':>12}{'of ssh -L':>11}{'CPU s/GB':>10}{'peak RSS, MB':>14}")
    for way, result in results.items():
        memory = result.get("peak memory, MB", {}).get("all")
        print(f"{way:<13}{result['MB/s']:>8,.0f}{result['MB/s'] / base['MB/s']:>11.2f}{result['ms']:>8.3f}"
              f"{result['requests/s']:>12,.0f}{result['requests/s'] / base['requests/s']:>11.2f}"
              + (f"{result['CPU s/GB']:>10.1f}{memory:>14,.0f}" if memory else f"{'–':>10}{'–':>14}"))
    print()
    for way, result in results.items():
        memory = result.get("peak memory, MB", {})
        if len(memory) > 1:
            print(f"peak memory, {way}: " + ", ".join(f"{name} {memory[name]:.0f} MB" for name in list(memory)[1:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", type=pathlib.Path, required=True, help="directory with the built culvert")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--mib", type=int, default=1024, help="size of the download")
    parser.add_argument("--seconds", type=int, default=4, help="length of each wrk run")
    parser.add_argument("--json", type=pathlib.Path, default=pathlib.Path(".build/benchmark.json"), help="where the results go")
    options = parser.parse_args()
    size = options.mib << 20
    # On a tmpfs, so that no disk is measured.
    directory = pathlib.Path(tempfile.mkdtemp(prefix="culvert-benchmark-", dir="/dev/shm"))
    directory.chmod(0o755)
    programs = Programs(directory)
    try:
        origin = start_nginx(programs, size)
        ways = {NO_TUNNEL: (origin, []), SSH: start_ssh(programs, origin)}
        ways |= {way: start_culvert(programs, options.bin, origin, way) for way in WAYS[2:]}
        print(f"{options.mib} MiB by curl, 300 requests one by one, then wrk -t1 -c16 for {options.seconds} s; "
              f"{options.rounds} rounds, interleaved")
        results = summarize(ways, measure(ways, options.rounds, size, options.seconds))
    finally:
        programs.close()
        shutil.rmtree(directory, ignore_errors=True)
    print_table(results)
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps({"bytes": size, "rounds": options.rounds, "results": results}, indent=2) + "\n")
    print(f"all samples: {options.json}")


if __name__ == "__main__":
    main()
