"""What a fleet costs: idle ticks of a vault alone and of a tenant, and the memory of many tenants.

    python3 tests/fleet_load.py STEWARD ticks [--matters 200,1000] [--seconds 120]
    python3 tests/fleet_load.py STEWARD tenants [--counts 1,20,100] [--seconds 60]

STEWARD is the binary. Each measurement has its own Temporal server (the development server on an SQLite file), and for
tenants its own Postgres. Matters tick every 60 s in `ticks`, and every 30 min in `tenants`. One JSON line of figures for
each measurement ends on standard output. Debian's Postgres must be installed. Standard library only; nothing outlives it.
"""

import argparse
import contextlib
import glob
import json
import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

TASKS_OF_A_MATTER = 5
CLI = os.environ.get("STEWARD_TEMPORAL_CLI", str(pathlib.Path(__file__).parents[1] / ".tools/temporal/bin/temporal"))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(what, seconds, ask):
    deadline = time.monotonic() + seconds
    while not ask():
        if time.monotonic() > deadline:
            raise SystemExit(f"waited {seconds} s for {what}")
        time.sleep(0.2)


def cpu_of(pid):
    """Seconds of processor time of a process and its children, as Postgres has one for each connection."""
    seconds = 0.0
    for entry in [pid, *(int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]:
        with contextlib.suppress(FileNotFoundError):
            fields = pathlib.Path(f"/proc/{entry}/stat").read_text().rsplit(") ", 1)[1].split()
            seconds += sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")
    return seconds


class Program:
    """A process that is ended with its block."""

    def __init__(self, line, env, log, stop=signal.SIGINT):
        self.stop = stop
        self.process = subprocess.Popen(line, env=env, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(self.stop)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Temporal(Program):
    def __init__(self, folder):
        self.port = free_port()
        self.file = folder / "temporal.db"
        line = [CLI, "server", "start-dev", "--headless", "--db-filename", str(self.file), "--port", str(self.port)]
        line += ["--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=normal", "--log-level", "error"]
        super().__init__(line, os.environ | {"HOME": str(folder)}, open(folder / "temporal.log", "w"))
        health = [CLI, "operator", "cluster", "health", "--address", f"127.0.0.1:{self.port}"]
        until("Temporal", 60, lambda: subprocess.run(health, capture_output=True).returncode == 0)

    def size(self):
        return sum(os.stat(path).st_size for path in glob.glob(f"{self.file}*"))


class Postgres(Program):
    def __init__(self, folder):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        self.port, data = free_port(), folder / "postgres"
        data.mkdir()
        user = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"] if os.geteuid() == 0 else []
        if user:
            subprocess.run(["chown", "nobody", data], check=True)
            for path in [folder, *folder.parents][:2]:
                path.chmod(0o711)
        init = [*user, f"{programs}/initdb", "--auth=trust", "--username=admin", "--pgdata", str(data)]
        subprocess.run(init, check=True, capture_output=True)
        line = [*user, f"{programs}/postgres", "-D", str(data), "-h", "127.0.0.1", "-p", str(self.port), "-k", "", "-c", "max_connections=400"]
        super().__init__(line, os.environ, open(folder / "postgres.log", "w"))
        self.url = f"postgres://admin@127.0.0.1:{self.port}/postgres"
        until("Postgres", 60, lambda: subprocess.run([f"{programs}/pg_isready", "-h", "127.0.0.1", "-p", str(self.port)], capture_output=True).returncode == 0)


def write_vault(vault, matters):
    for folder in ("matter", "task"):
        (vault / folder).mkdir(parents=True)
    for n in range(matters):
        (vault / f"matter/estate-{n}.md").write_text(f"---\ntype: matter\nname: Estate {n}\nstate: open\n---\n")
    for n in range(matters * TASKS_OF_A_MATTER):
        text = f'---\ntype: task\nname: Invoice {n}\nstate: open\nparent_matter: "[[matter/estate-{n % matters}]]"\n---\n'
        (vault / f"task/invoice-{n}.md").write_text(text)


class Steward(Program):
    """`steward up` on a vault of ours."""

    def __init__(self, binary, folder, env, matters, cadence):
        self.binary, self.port = binary, free_port()
        write_vault(folder / "vault", matters)
        self.env = {"PATH": os.environ["PATH"], "HOME": str(folder), "STEWARD_LOG": "warn"} | env
        self.env |= {"STEWARD_VAULT": str(folder / "vault"), "STEWARD_LISTEN": f"127.0.0.1:{self.port}"}
        self.env |= {"STEWARD_CADENCE_MATTER_SECONDS": str(cadence), "STEWARD_CADENCE_MATTER_MAX_SECONDS": str(cadence)}
        self.log = folder / "steward.log"
        super().__init__([str(binary), "up"], self.env, open(self.log, "w"))
        self.token = None

    def wait_until_up(self):
        until("`steward up`", 600, lambda: self.process.poll() is not None or "up; Ctrl-C ends it" in self.log.read_text())
        if self.process.poll() is not None:
            raise SystemExit(f"`steward up` ended: {self.log.read_text()}")
        line = [str(self.binary), "--json", "token", "create", "--scope", "read", "--name", "bench"]
        self.token = json.loads(subprocess.run(line, env=self.env, capture_output=True, check=True).stdout)["token"]

    def metric(self, name):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/metrics", headers={"authorization": f"Bearer {self.token}"})
        text = urllib.request.urlopen(request, timeout=10).read().decode()
        values = re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE)
        return sum(float(value) for value in values)


def join_fleet(binary, folder, temporal, database, tenant):
    """The variables of a tenant's process."""
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "STEWARD_FLEET_DB": database.url}
    env |= {"TEMPORAL_ADDRESS": f"127.0.0.1:{temporal.port}", "TEMPORAL_NAMESPACE": "fleet"}

    def run(*arguments):
        done = subprocess.run([str(binary), "--json", "fleet", *arguments], env=env, capture_output=True, check=True)
        return json.loads(done.stdout)

    run("init")
    added = run("tenant", "add", tenant)
    return {name: env[name] for name in ("TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE")} | {"STEWARD_TENANT": tenant, "STEWARD_FLEET_DB": added["fleet_db"]}


def measure_ticks(binary, folder, matters, seconds, is_tenant):
    with contextlib.ExitStack() as stack:
        temporal = stack.enter_context(Temporal(folder))
        database = stack.enter_context(Postgres(folder)) if is_tenant else None
        env = {"TEMPORAL_ADDRESS": f"127.0.0.1:{temporal.port}"}
        if database:
            env = join_fleet(binary, folder, temporal, database, "bench")
        steward = stack.enter_context(Steward(binary, folder, env, matters, 60))
        steward.wait_until_up()
        # The development server is busy with new schedules for some seconds.
        time.sleep(45)
        programs = {"worker": steward, "server": temporal} | ({"postgres": database} if database else {})
        before = {name: cpu_of(program.process.pid) for name, program in programs.items()}
        ticks, size, begun = steward.metric("steward_ticks_total"), temporal.size(), time.monotonic()
        time.sleep(seconds)
        ticks, lasted = steward.metric("steward_ticks_total") - ticks, time.monotonic() - begun
        figures = {"what": "tenant" if is_tenant else "alone", "matters": matters, "ticks": round(ticks), "ticks_per_s": round(ticks / lasted, 2)}
        for name, program in programs.items():
            figures[f"{name}_cpu_ms_per_tick"] = round(1000 * (cpu_of(program.process.pid) - before[name]) / ticks, 2)
        figures["server_disk_bytes_per_tick"] = round((temporal.size() - size) / ticks)
        figures["late"] = round(steward.metric("steward_matters_late"))
        figures["worker_mb"] = round(steward.metric("process_resident_memory_bytes") / 1e6, 1)
        return figures


def measure_tenants(binary, folder, count, seconds):
    with contextlib.ExitStack() as stack:
        temporal, database = stack.enter_context(Temporal(folder)), stack.enter_context(Postgres(folder))
        stewards = []
        for n in range(count):
            home = folder / f"t{n}"
            home.mkdir()
            env = join_fleet(binary, folder, temporal, database, f"t{n}")
            stewards.append(stack.enter_context(Steward(binary, home, env, 10, 1800)))
            stewards[-1].wait_until_up()
        time.sleep(20)
        pids = [steward.process.pid for steward in stewards]
        before, database_before = [cpu_of(pid) for pid in pids], cpu_of(database.process.pid)
        time.sleep(seconds)
        used = [(cpu_of(pid) - earlier) / seconds for pid, earlier in zip(pids, before)]
        memory = [int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) / 1000 for pid in pids]
        shared = [int(re.search(r"RssFile:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) / 1000 for pid in pids]
        return {
            "tenants": count, "mb_median": round(statistics.median(memory), 1), "mb_max": round(max(memory), 1),
            "mb_of_files_median": round(statistics.median(shared), 1), "cpu_percent_median": round(100 * statistics.median(used), 2),
            "postgres_cpu_percent": round(100 * (cpu_of(database.process.pid) - database_before) / seconds, 2),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=pathlib.Path)
    kinds = parser.add_subparsers(dest="kind", required=True)
    ticks = kinds.add_parser("ticks")
    ticks.add_argument("--matters", default="200,1000")
    ticks.add_argument("--seconds", type=int, default=120)
    tenants = kinds.add_parser("tenants")
    tenants.add_argument("--counts", default="1,20,100")
    tenants.add_argument("--seconds", type=int, default=60)
    arguments = parser.parse_args()
    binary = arguments.binary.resolve()
    sizes = [int(size) for size in (arguments.matters if arguments.kind == "ticks" else arguments.counts).split(",")]
    for size in sizes:
        for is_tenant in (False, True) if arguments.kind == "ticks" else (True,):
            with tempfile.TemporaryDirectory(prefix="steward-load-") as folder:
                folder = pathlib.Path(folder)
                figures = (
                    measure_ticks(binary, folder, size, arguments.seconds, is_tenant)
                    if arguments.kind == "ticks"
                    else measure_tenants(binary, folder, size, arguments.seconds)
                )
            print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    sys.exit(main())
