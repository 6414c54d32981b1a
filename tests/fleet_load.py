"""What a fleet costs: idle ticks of a vault alone and of a tenant, and the memory of many tenants.

    python3 tests/fleet_load.py STEWARD ticks [--matters 200,1000] [--seconds 120]
    python3 tests/fleet_load.py STEWARD tenants [--counts 1,20,100] [--seconds 60]
    python3 tests/fleet_load.py STEWARD soak [--tenants 5] [--matters 100] [--minutes 30]
    python3 tests/fleet_load.py STEWARD recovery [--matters 1000] [--kills 5]
    python3 tests/fleet_load.py EXAMPLE reservations

STEWARD is the binary, EXAMPLE that of `cargo build --release -p steward-fleet --example reservations_per_second`. Each
measurement has its own Temporal server (the development server on an SQLite file), and for tenants its own Postgres. Matters tick
every 60 s in `ticks` and `recovery`, every 30 min in `tenants`, and every 37 s in `soak`, so that a day of 30-minute intervals
passes in half an hour; there each tenant also gets a signal every 10 s. One JSON line of figures for
each measurement ends on standard output; a soak that misses a target ends with exit 1. Debian's Postgres must be installed.
Standard library only; nothing outlives it.
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
# A soak: how much faster than a day of 30-minute intervals, and its targets.
SPEED = 48
MB_AN_HOUR, LAG_P99_S = 1.0, 5.0
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
        self.token = None
        super().__init__([str(binary), "up"], self.env, open(self.log, "w"))

    def restart(self):
        """Starts the next process of the same vault."""
        super().__init__([str(self.binary), "up"], self.env, open(self.log, "w"))

    def wait_until_up(self):
        until("`steward up`", 600, lambda: self.process.poll() is not None or "up; Ctrl-C ends it" in self.log.read_text())
        if self.process.poll() is not None:
            raise SystemExit(f"`steward up` ended: {self.log.read_text()}")
        line = [str(self.binary), "--json", "token", "create", "--scope", "read", "--name", "bench"]
        self.token = self.token or json.loads(subprocess.run(line, env=self.env, capture_output=True, check=True).stdout)["token"]

    def scrape(self):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/metrics", headers={"authorization": f"Bearer {self.token}"})
        return urllib.request.urlopen(request, timeout=10).read().decode()

    def metric(self, name):
        text = self.scrape()
        values = re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE)
        if not values and not name.endswith("_total"):
            raise SystemExit(f"there is no metric {name}")
        return sum(float(value) for value in values)

    def lags(self):
        """How many workflow tasks waited at most so many milliseconds for this process, by that number."""
        name = "temporal_workflow_task_schedule_to_start_latency_milliseconds_bucket"
        counts = {}
        for labels, value in re.findall(rf"^{name}{{([^}}]*)}} (\S+)$", self.scrape(), re.MULTILINE):
            limit = float(re.search(r'le="([^"]+)"', labels)[1])
            counts[limit] = counts.get(limit, 0) + float(value)
        return counts

    def megabytes(self):
        return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{self.process.pid}/status").read_text())[1]) / 1000


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


def start_tenants(stack, binary, folder, temporal, database, count, matters, cadence):
    """The processes of tenants `t0`, `t1` and so on, each with its vault below the folder of that name."""
    stewards = []
    for n in range(count):
        home = folder / f"t{n}"
        home.mkdir()
        env = join_fleet(binary, folder, temporal, database, f"t{n}")
        stewards.append(stack.enter_context(Steward(binary, home, env, matters, cadence)))
        stewards[-1].wait_until_up()
    return stewards


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
        stewards = start_tenants(stack, binary, folder, temporal, database, count, matters=10, cadence=1800)
        time.sleep(20)
        pids = [steward.process.pid for steward in stewards]
        before, database_before = [cpu_of(pid) for pid in pids], cpu_of(database.process.pid)
        time.sleep(seconds)
        used = [(cpu_of(pid) - earlier) / seconds for pid, earlier in zip(pids, before)]
        memory = [steward.megabytes() for steward in stewards]
        shared = [int(re.search(r"RssFile:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1]) / 1000 for pid in pids]
        return {
            "tenants": count, "mb_median": round(statistics.median(memory), 1), "mb_max": round(max(memory), 1),
            "mb_of_files_median": round(statistics.median(shared), 1), "cpu_percent_median": round(100 * statistics.median(used), 2),
            "postgres_cpu_percent": round(100 * (cpu_of(database.process.pid) - database_before) / seconds, 2),
        }


def add_signal(vault, number):
    """A signal that says that a task is done, from a source that nobody knows."""
    folder, now = vault / "signal", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    folder.mkdir(exist_ok=True)
    text = f"""---
type: signal
created: {now}
source_event_path: stream/mail/{number}.md
origin_at: {now}
source_type: mail
raw_quote: "It is paid, with thanks."
target_kind: task
target_path: task/invoice-{number}.md
target_confidence: 0.98
target_candidates: []
effect: mutation
mutation_proposal:
  class: state_change
  set:
    state: done
effect_confidence: 0.97
reasoning: It says so.
status: unrouted
---
"""
    (folder / f"s{number}.tmp").write_text(text)
    (folder / f"s{number}.tmp").rename(folder / f"s{number}.md")


def find_slope(times, values):
    """The slope of the line through points, by least squares."""
    mean_time, mean_value = statistics.mean(times), statistics.mean(values)
    over = sum((time - mean_time) * (value - mean_value) for time, value in zip(times, values))
    return over / sum((time - mean_time) ** 2 for time in times)


def find_p99_ms(before, after):
    """The smallest bucket that 99 of 100 of the new observations fit into."""
    counts = {limit: count - before.get(limit, 0) for limit, count in after.items()}
    total = max(counts.values())
    return min(limit for limit, count in counts.items() if count >= 0.99 * total)


def measure_soak(binary, folder, tenants, matters, minutes):
    with contextlib.ExitStack() as stack:
        temporal, database = stack.enter_context(Temporal(folder)), stack.enter_context(Postgres(folder))
        stewards = start_tenants(stack, binary, folder, temporal, database, tenants, matters, cadence=1800 // SPEED)
        time.sleep(60)
        begun, signals = time.monotonic(), 0
        ticks = sum(steward.metric("steward_ticks_total") for steward in stewards)
        decided = sum(steward.metric("steward_decisions_total") for steward in stewards)
        lags = [steward.lags() for steward in stewards]
        times, memory, late = [], [[] for _ in stewards], 0
        while time.monotonic() - begun < minutes * 60:
            time.sleep(10)
            for n, steward in enumerate(stewards):
                if steward.process.poll() is not None:
                    raise SystemExit(f"tenant t{n} ended: {steward.log.read_text()[-2000:]}")
                add_signal(folder / f"t{n}" / "vault", signals)
                memory[n].append(steward.megabytes())
            signals += 1
            times.append(time.monotonic() - begun)
            late = max(late, sum(steward.metric("steward_matters_late") for steward in stewards))
        third = len(times) // 3
        growth = [3600 * find_slope(times[third:], values[third:]) / SPEED for values in memory]
        p99 = max(find_p99_ms(before, steward.lags()) for before, steward in zip(lags, stewards)) / 1000
        figures = {
            "tenants": tenants, "matters": tenants * matters, "minutes": minutes,
            "ticks": round(sum(steward.metric("steward_ticks_total") for steward in stewards) - ticks),
            "decisions": round(sum(steward.metric("steward_decisions_total") for steward in stewards) - decided),
            "signals": signals * tenants, "late_matters": round(late), "lag_p99_s_at_most": p99,
            "mb_first_third": round(statistics.mean(value for values in memory for value in values[:third]), 1),
            "mb_at_end": round(statistics.mean(values[-1] for values in memory), 1),
            "mb_an_hour_of_a_day": round(max(growth), 3), "mb_an_hour_as_run": round(max(growth) * SPEED, 1),
        }
        missed = [
            f"{name} {figures[name]}, target {target}"
            for name, target in [("late_matters", 0), ("lag_p99_s_at_most", LAG_P99_S), ("mb_an_hour_of_a_day", MB_AN_HOUR)]
            if figures[name] > target
        ]
        least = round(tenants * matters * minutes * 60 / (1800 // SPEED) * 0.95)
        missed += [f"ticks {figures['ticks']}, target at least {least}"] if figures["ticks"] < least else []
        missed += ["no decision was made"] if figures["decisions"] == 0 else []
        return figures, missed


def measure_recovery(binary, folder, matters, kills):
    """`kill -9` of a tenant's process: until the next one serves, and how long the checks that were due then had waited."""
    with contextlib.ExitStack() as stack:
        temporal, database = stack.enter_context(Temporal(folder)), stack.enter_context(Postgres(folder))
        steward = Steward(binary, folder, join_fleet(binary, folder, temporal, database, "bench"), matters, 60)
        steward = stack.enter_context(steward)
        steward.wait_until_up()
        time.sleep(45)
        served, waits = [], []
        for _ in range(kills):
            steward.process.kill()
            steward.process.wait()
            begun = time.monotonic()
            steward.restart()
            steward.wait_until_up()
            served.append(round(time.monotonic() - begun, 2))
            time.sleep(30)
            waits.append(find_p99_ms({}, steward.lags()) / 1000)
        return {"records": matters * (1 + TASKS_OF_A_MATTER), "kills": kills, "served_again_s": served, "wait_p99_s_at_most": waits}


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
    soak = kinds.add_parser("soak")
    soak.add_argument("--tenants", type=int, default=5)
    soak.add_argument("--matters", type=int, default=100, help="of each tenant")
    soak.add_argument("--minutes", type=float, default=30)
    recovery = kinds.add_parser("recovery")
    recovery.add_argument("--matters", type=int, default=1000)
    recovery.add_argument("--kills", type=int, default=5)
    kinds.add_parser("reservations")
    arguments = parser.parse_args()
    binary = arguments.binary.resolve()
    with tempfile.TemporaryDirectory(prefix="steward-load-") as folder:
        folder = pathlib.Path(folder)
        if arguments.kind == "reservations":
            with Postgres(folder) as database:
                return subprocess.run([str(binary), database.url], check=True).returncode
        if arguments.kind == "recovery":
            print(json.dumps(measure_recovery(binary, folder, arguments.matters, arguments.kills)), flush=True)
            return None
        if arguments.kind == "soak":
            figures, missed = measure_soak(binary, folder, arguments.tenants, arguments.matters, arguments.minutes)
            print(json.dumps(figures), flush=True)
            return "; ".join(missed) or None
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
    return None


if __name__ == "__main__":
    sys.exit(main())
