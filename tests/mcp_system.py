"""A vault with two small wikis, and `steward up` on it, for the scripts that test the interface of assistants.

It is no script of its own: tests/mcp_clients.py and tests/mcp_load.py use it. All files lie in one temporary folder of the caller. It
starts processes and ends them by their ids. Standard library only.
"""

import contextlib
import json
import os
import pathlib
import pty
import select
import signal
import socket
import subprocess
import sys
import threading
import time

TEMPORAL = pathlib.Path(__file__).resolve().parent.parent / ".tools/temporal/bin/temporal"
# Seconds for a command, for `steward up` to be ready, and for it to end.
LONGEST_COMMAND, LONGEST_START, LONGEST_END = 180, 180, 60
# Seconds between two looks at something that reports no event, such as a file.
BETWEEN_LOOKS = 0.05
READY = "up; Ctrl-C ends it"
WIKIS = ("allotment", "kitchen")
LEASE = """# The lease

The lease of plot 12 ends on 31 March 2027. The rent is 40 pounds a year.

## Water

A stopcock is a valve that shuts off the water. It must be closed in winter.
"""
OVEN = "# The oven\n\nA baking stone is a slab that keeps the heat of an oven. The oven of the kitchen is gas.\n"


def wait_until(what: str, longest: float, check):
    """Returns the first true answer of `check`."""
    end = time.monotonic() + longest
    while time.monotonic() < end:
        if answer := check():
            return answer
        time.sleep(BETWEEN_LOOKS)
    raise AssertionError(f"it took more than {longest} s: {what}")


def end_on_term() -> None:
    """Ends by an exception when this process is told to end, so that all its processes end, too."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))


def find_port() -> int:
    """A port that is free now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def is_alive(pid: int) -> bool:
    """Whether a process runs, also one that is no child of this one."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class System:
    """A vault, the commands on it, and its `steward up`."""

    def __init__(self, steward: str, folder: str, config: str = "") -> None:
        self.steward, self.folder = str(pathlib.Path(steward).resolve()), pathlib.Path(folder)
        self.vault = self.folder / "vault"
        (self.folder / "steward.toml").write_text(config)
        self.port = find_port()
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self.environment = {
            "PATH": os.environ["PATH"], "HOME": folder, "STEWARD_VAULT": str(self.vault), "STEWARD_LOG": "error,rmcp=error",
            "STEWARD_CONFIG": str(self.folder / "steward.toml"), "STEWARD_TEMPORAL_CLI": str(TEMPORAL),
            "STEWARD_TEMPORAL_PORT": "0", "STEWARD_TEMPORAL_UI_PORT": "0", "STEWARD_LISTEN": f"127.0.0.1:{self.port}",
        }
        self.up: subprocess.Popen | None = None
        self.temporal_pids: set[int] = set()

    def run(self, *arguments: str) -> str:
        """Runs a command that must succeed, and returns what it printed."""
        command = [self.steward, *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False, timeout=LONGEST_COMMAND)
        assert done.returncode == 0, f"steward {' '.join(arguments)}: exit {done.returncode}: {done.stdout[-800:]}{done.stderr[-800:]}"
        return done.stdout

    def run_in_terminal(self, arguments: list[str], typed: str) -> tuple[int, str]:
        """Runs a command at a terminal where a person types. Returns its exit code and all that it printed."""
        ours, theirs = pty.openpty()
        command = [self.steward, *arguments]
        child = subprocess.Popen(command, env=self.environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
        os.close(theirs)
        os.write(ours, typed.encode())
        printed, end = b"", time.monotonic() + LONGEST_COMMAND
        try:
            while time.monotonic() < end and select.select([ours], [], [], max(0.0, end - time.monotonic()))[0]:
                part = os.read(ours, 65536)
                if not part:
                    break
                printed += part
        except OSError:
            # The other end was closed.
            pass
        finally:
            os.close(ours)
        try:
            code = child.wait(max(1.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.kill()
            code = child.wait()
        return code, printed.decode(errors="replace")

    def approve(self, run: str) -> tuple[int, str]:
        """A person reads what a run changes and agrees."""
        return self.run_in_terminal(["wiki", "runs", "approve", run], "y\n")

    def make_wikis(self) -> None:
        """Writes the vault. It must not be served yet."""
        self.run("example", str(self.vault))
        for wiki in WIKIS:
            self.run("wiki", "init", wiki)

    def ingest_documents(self) -> None:
        """Makes pages of one document for each wiki, by fixed rules."""
        for wiki, name, text in (("allotment", "2026-11-20-lease.md", LEASE), ("kitchen", "2026-11-21-oven.md", OVEN)):
            (self.folder / name).write_text(text)
            self.run("wiki", "ingest", wiki, str(self.folder / name))

    def add_document(self, wiki: str, name: str, text: str) -> None:
        """Puts a document into the folder of sources, as a person does."""
        (self.vault / f"wiki/{wiki}/sources").mkdir(exist_ok=True)
        (self.vault / f"wiki/{wiki}/sources/{name}").write_text(text)

    def create_token(self, name: str, scope: str = "act") -> str:
        return json.loads(self.run("--json", "token", "create", "--scope", scope, "--name", name))["token"]

    def list_runs(self) -> list[dict]:
        return json.loads(self.run("wiki", "runs", "list", "--json"))

    def start_up(self) -> None:
        """Starts `steward up` and waits until it says that it is ready."""
        with open(self.folder / "up.err", "ab") as errors:
            self.up = subprocess.Popen([self.steward, "up"], env=self.environment, stdout=subprocess.PIPE, stderr=errors, text=True)
        ready = threading.Event()

        def read_lines(output) -> None:
            for line in output:
                if line.startswith(READY):
                    ready.set()
            ready.set()

        threading.Thread(target=read_lines, args=(self.up.stdout,), daemon=True).start()
        assert ready.wait(LONGEST_START) and self.up.poll() is None, f"`steward up` did not start: {self.read_errors()}"
        with contextlib.suppress(OSError, ValueError):
            self.temporal_pids.add(int((self.vault / ".steward/temporal.lock").read_text().split()[0]))

    def read_errors(self) -> str:
        return (self.folder / "up.err").read_text(errors="replace")[-2000:]

    def stop_up(self) -> None:
        """Ends `steward up` as Ctrl-C does."""
        if self.up and self.up.poll() is None:
            self.up.send_signal(signal.SIGINT)
            try:
                self.up.wait(LONGEST_END)
            except subprocess.TimeoutExpired:
                self.up.kill()
                self.up.wait()
                raise

    def kill_up(self) -> None:
        """Kills `steward up` alone. Its Temporal server goes on, and the next `steward up` finds it."""
        self.up.kill()
        self.up.wait()

    def end(self) -> None:
        """Ends all that is left."""
        try:
            self.stop_up()
        finally:
            for pid in self.temporal_pids:
                if is_alive(pid) and TEMPORAL.name in pathlib.Path(f"/proc/{pid}/cmdline").read_text():
                    os.kill(pid, signal.SIGKILL)

    def read_call_log(self) -> tuple[list[dict], int]:
        """All lines of the log of calls, and how many are not whole."""
        lines, broken = [], 0
        for file in sorted((self.vault / ".steward/logs").glob("mcp-*.jsonl")):
            for line in file.read_text(errors="replace").splitlines():
                try:
                    lines.append(json.loads(line))
                except ValueError:
                    broken += bool(line.strip())
        return lines, broken
