"""Load on the real binary: how soon a signal leads to an audited decision, and how a flood of events drains.

    python3 tests/load.py STEWARD latency [--signals 300] [--per-second 3] [--settle 30]
    python3 tests/load.py STEWARD flood [--events 10000] [--per-minute 6000]

STEWARD is the binary. A vault of 1,000 matters with 5,000 tasks is written into a temporary folder and
`steward up` serves it: its own Temporal server, the `rules` clerk, shadow mode. One JSON line of figures
ends on standard output; the exit code is 1 when something was lost, came twice, or went over a cap.
Standard library only; nothing outlives it.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

MATTERS, TASKS = 1_000, 5_000
CAPS = {"PER_HOUR": 1_000_000, "PER_DAY": 1_000_000, "PER_TASK_DAY": 1_000, "PER_MATTER_DAY": 10_000}


def code(number):
    """A word that no other record has."""
    return "kx" + "".join(chr(ord("a") + int(digit)) for digit in str(number).rjust(4, "0"))


def write_vault(vault):
    for folder in ("matter", "task", "signal", "stream", "inbox", "event"):
        (vault / folder).mkdir(parents=True)
    for n in range(MATTERS):
        text = f"---\ntype: matter\nname: Estate {n}\nstate: open\n---\n"
        (vault / f"matter/estate-{n}.md").write_text(text)
    for n in range(TASKS):
        head = f'---\ntype: task\nname: Invoice {code(n)}\nstate: open\nparent_matter: "[[matter/estate-{n % MATTERS}]]"\n---\n'
        (vault / f"task/invoice-{n}.md").write_text(head)


def put(path, text):
    """As programs that sync do: whole, under its name, at once."""
    hidden = path.with_name("." + path.name)
    hidden.write_text(text)
    os.replace(hidden, path)


def signal_text(task, number):
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return (
        f"---\ntype: signal\ncreated: {now}\nsource_type: bank\nsource_event_path: stream/bank/{number}.md\n"
        f'raw_quote: "Invoice {code(task)} was paid."\ntarget_kind: task\ntarget_path: task/invoice-{task}.md\n'
        "target_confidence: 0.97\neffect: mutation\nmutation_proposal:\n  class: state_change\n"
        "  set: {state: done}\neffect_confidence: 0.95\nstatus: unrouted\n---\n"
    )


class Up:
    """`steward up` on a vault of ours."""

    def __init__(self, binary, folder, caps):
        self.vault = folder / "vault"
        self.binary = binary
        self.env = {"PATH": os.environ["PATH"], "HOME": str(folder), "STEWARD_VAULT": str(self.vault), "STEWARD_LOG": "warn"}
        for name in ("STEWARD_TEMPORAL_CLI",):
            if name in os.environ:
                self.env[name] = os.environ[name]
        self.env |= {f"STEWARD_CAPS_{name}": str(value) for name, value in caps.items()}
        self.out = open(folder / "out", "w+")
        self.process = subprocess.Popen([binary, "up"], env=self.env, stdout=self.out, stderr=subprocess.STDOUT, cwd=folder)
        until("`steward up` to serve", 600, lambda: self.registered() == MATTERS)

    def registered(self):
        if self.process.poll() is not None:
            raise SystemExit(f"`steward up` ended: {pathlib.Path(self.out.name).read_text()}")
        try:
            rows = self.json("schedules", "list")
        except subprocess.CalledProcessError:
            return 0
        return sum(row["id"].startswith("al-steward-") for row in rows)

    def json(self, *arguments):
        done = subprocess.run([self.binary, "--json", *arguments], env=self.env, cwd=self.vault.parent, capture_output=True, check=True)
        return json.loads(done.stdout)

    def memory(self, word):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith(word)).split()[1]) / 1024

    def cpu(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def until(what, seconds, ask):
    deadline = time.monotonic() + seconds
    while not ask():
        if time.monotonic() > deadline:
            raise SystemExit(f"waited {seconds} s for {what}")
        time.sleep(0.5)


def share(values, part):
    values = sorted(values)
    return round(values[min(len(values) - 1, int(len(values) * part))], 3)


def latency(up, arguments):
    """From the moment a signal has its name to the moment its decision's record has."""
    chosen = random.Random(7).sample(range(TASKS), arguments.signals)
    written, decided, seen = {}, {}, set()
    # A development server that was just given 1,000 schedules is busy with them for about ten seconds.
    time.sleep(arguments.settle)
    before, begun = up.cpu(), time.monotonic()
    while len(decided) < len(chosen):
        now = time.monotonic()
        due = min(len(chosen), int((now - begun) * arguments.per_second) + 1)
        for number in range(len(written), due):
            task = chosen[number]
            put(up.vault / f"signal/s{number}.md", signal_text(task, number))
            written[f"invoice-{task}"] = time.monotonic()
        for entry in os.scandir(up.vault / "event"):
            if entry.name not in seen and entry.name.startswith("steward-action-"):
                seen.add(entry.name)
                task = entry.name.removesuffix(".md").split("Z-", 1)[1]
                decided.setdefault(task, time.monotonic())
        if now - begun > arguments.signals / arguments.per_second + 120:
            break
        time.sleep(0.005)
    laps = [decided[task] - at for task, at in written.items() if task in decided]
    figures = {
        "signals": len(written), "decided": len(laps), "per_second": arguments.per_second,
        "p50_s": share(laps, 0.5), "p95_s": share(laps, 0.95), "p99_s": share(laps, 0.99), "max_s": round(max(laps), 3),
        "cpu_ms_per_signal": round(1000 * (up.cpu() - before) / len(written), 1), "peak_mb": round(up.memory("VmHWM")),
    }
    return figures, len(laps) == len(chosen) == len(seen)


def most_in_a_minute(ledger):
    """The fullest minute of all calls that were reserved."""
    with sqlite3.connect(f"file:{ledger}?mode=ro", uri=True) as database:
        instants = [at for (at,) in database.execute("SELECT reserved_us FROM call ORDER BY reserved_us")]
    most, first = 0, 0
    for last, at in enumerate(instants):
        while instants[first] <= at - 60_000_000:
            first += 1
        most = max(most, last - first + 1)
    return most, len(instants)


def flood(up, arguments):
    """10,000 mails at once, each of them about one invoice."""
    chosen = [random.Random(n).randrange(TASKS) for n in range(arguments.events)]
    lines = [
        json.dumps({"id": str(n), "from": f"sender{n % 97}@bank.example", "text": f"Invoice {code(task)} was paid, entry {n}."})
        for n, task in enumerate(chosen)
    ]
    put(up.vault / "inbox/flood.jsonl", "\n".join(lines) + "\n")
    begun, stored, drained, shown = time.monotonic(), None, None, []
    while drained is None and time.monotonic() - begun < arguments.patience:
        rows = [row for row in up.json("streams", "list") if row["source"] == "inbox"]
        new, extracted = (rows[0]["new"], rows[0]["extracted"]) if rows else (0, 0)
        now = round(time.monotonic() - begun, 1)
        shown.append((now, new, extracted))
        print(f"# {now} s: {new} wait, {extracted} read, {up.memory('VmRSS'):.0f} MB", file=sys.stderr, flush=True)
        stored = stored or (now if new + extracted == arguments.events else None)
        drained = now if extracted == arguments.events else None
        time.sleep(2 if drained is None else 0)
    events = list((up.vault / "stream/inbox").glob("*.md"))
    sources = collections.Counter()
    for path in (up.vault / "signal").glob("*.md"):
        line = next(line for line in path.read_text().splitlines() if line.startswith("source_event_path:"))
        sources[line.split(": ", 1)[1]] += 1
    most, calls = most_in_a_minute(up.vault / ".steward/ledger.db")
    figures = {
        "events": len(events), "signals": sum(sources.values()), "events_with_one_signal": sum(n == 1 for n in sources.values()),
        "stored_s": stored, "drained_s": drained, "calls": calls, "most_calls_in_60_s": most, "cap": arguments.per_minute,
        "peak_mb": round(up.memory("VmHWM")), "cpu_s": round(up.cpu(), 1),
    }
    whole = drained is not None and len(events) == len(sources) == sum(sources.values()) == arguments.events
    return figures, whole and most <= arguments.per_minute


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=pathlib.Path)
    kinds = parser.add_subparsers(dest="kind", required=True)
    one = kinds.add_parser("latency")
    one.add_argument("--signals", type=int, default=300)
    one.add_argument("--per-second", type=float, default=3)
    one.add_argument("--settle", type=float, default=30, help="seconds before the first signal")
    one.add_argument("--per-minute", type=int, default=6_000)
    many = kinds.add_parser("flood")
    many.add_argument("--events", type=int, default=10_000)
    many.add_argument("--per-minute", type=int, default=6_000)
    many.add_argument("--patience", type=float, default=1_800, help="seconds")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="steward-load-") as folder:
        folder = pathlib.Path(folder)
        write_vault(folder / "vault")
        up = Up(arguments.binary.resolve(), folder, CAPS | {"PER_MINUTE": arguments.per_minute})
        try:
            figures, good = (latency if arguments.kind == "latency" else flood)(up, arguments)
        finally:
            up.end()
    print(json.dumps(figures))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
