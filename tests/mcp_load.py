"""Many assistants at once on the real binary, while clients and the server are killed.

    python3 tests/mcp_load.py STEWARD [--calls 200] [--clients 32] [--pipes 4] [--kills 12] [--server-kills 2] [--seed N] [--longest SECONDS]

STEWARD is the binary. A vault with two small wikis is written into a temporary folder and `steward up` serves it, with a Temporal server
of its own. --clients processes use it over HTTP, each with a token of its own, half of them in sessions, and --pipes more each start
`steward mcp serve`. Each makes --calls calls: reads of all kinds, staged pages, submitted runs, and undos. Runs are approved by the
command of a person. --kills times a client, or the process at its pipe, is killed, and --server-kills times `steward up`. Then:

- each answered call has exactly one line in the log of calls, and only calls in flight at a kill have none;
- each page that was ever seen, by a client or in its folder, is as a record says it was before or after a change, and so are all now;
- the entries of the wikis' logs are the committed runs, and each run that was approved is committed;
- `steward wiki lint`, `steward wiki validate` and `steward audit verify` find nothing wrong.

The full run has 1,000 calls of each client: `make mcp-load CALLS=1000`. It has one run of a wiki for every 50 calls, and the command of
a person takes seconds for each, so two cores need more than half an hour. `make mcp-load` makes 200 calls of each: in seven minutes each
kind of call, kill and undo happens. If --longest is not given, it is 6 seconds for each call of a client.

The seed is printed and repeats the choices; what runs at the same moment is not repeated. The exit code is 1 if a check fails.
Standard library only; nothing outlives it.
"""

import argparse
import collections
import contextlib
import hashlib
import http.client
import json
import os
import pathlib
import queue
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

from mcp_system import WIKIS, System, end_on_term, is_alive, wait_until

OLD, NEW = "2025-11-25", "2026-07-28"
# Seconds for one call, which may wait for Temporal, and for a process to end when its input has ended.
LONGEST_CALL, LONGEST_END = 120, 30
# One run for so many calls of a client: each has a person's approval, which takes about a second.
CALLS_OF_RUN = 50
# The chance that a call goes on with a run, that a run also extends a page that all share, and that a committed run is taken back.
CHANCE_OF_STEP, CHANCE_OF_SHARED, CHANCE_OF_UNDO = 0.2, 0.4, 0.3
# How often an approval is tried: a page may change meanwhile, and the server may be killed.
APPROVALS = 6
# Seconds of the whole load for each call of a client, if nothing else is asked for.
LONGEST_FOR_CALL = 6
# People who approve at once.
APPROVERS = 2
# Seconds between two kills of clients, at least and at most.
BETWEEN_KILLS = (0.3, 3.0)
# Seconds between two looks of the watcher at the pages.
BETWEEN_WATCHES = 0.02
SHARED = {"allotment": "wiki/concepts/stopcock.md", "kitchen": "wiki/concepts/baking-stone.md"}
# What a call may be answered by beside a result: another run was first, took a page back, or the server was just killed.
EXPECTED_CODES = {"ok", "engine_away", "workspace_busy", "stale_base", "run_closed", "refused", "not_found"}
# With so many approved runs at least one must have been taken back.
ENOUGH_RUNS = 30
SHA = re.compile(r"\b[0-9a-f]{64}\b")


class AwayError(Exception):
    """The server went away during a call."""


def report(**line: object) -> None:
    """Says one thing to the parent at once, so that it is known when this process is killed."""
    os.write(1, (json.dumps(line) + "\n").encode())


class HttpChannel:
    """Requests over HTTP, in a session or without one."""

    def __init__(self, wish: dict) -> None:
        self.wish, self.connection, self.session = wish, None, None

    def open(self) -> None:
        self.close()
        self.connection = http.client.HTTPConnection("127.0.0.1", self.wish["port"], timeout=LONGEST_CALL)
        if self.wish["era"] == OLD:
            params = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": self.wish["name"], "version": "1"}}
            self.post({"jsonrpc": "2.0", "id": "begin", "method": "initialize", "params": params})
            self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def post(self, message: dict) -> dict:
        """The answer to a message; of a refusal by HTTP its status."""
        headers = {
            "Authorization": f"Bearer {self.wish['token']}", "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream", "MCP-Protocol-Version": self.wish["era"],
        }
        if self.wish["era"] == NEW:
            headers |= {"Mcp-Method": message["method"], "Mcp-Name": message["params"]["name"]}
        elif self.session:
            headers["Mcp-Session-Id"] = self.session
        elif message["method"] == "initialize":
            del headers["MCP-Protocol-Version"]
        try:
            self.connection.request("POST", "/mcp", json.dumps(message), headers)
            response = self.connection.getresponse()
            self.session = response.headers.get("mcp-session-id", self.session)
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise AwayError from error
        if response.status not in (200, 202):
            return {"status": response.status}
        if "id" not in message:
            return {}
        for line in body.decode().splitlines():
            text = line.removeprefix("data:").strip()
            if text.startswith("{") and (answer := json.loads(text)).get("id") == message["id"]:
                return answer
        # A stream without the answer was cut off.
        raise AwayError

    def close(self) -> None:
        if self.connection:
            self.connection.close()
        self.session = None


class PipeChannel:
    """Requests to a `steward mcp serve` of its own."""

    def __init__(self, wish: dict) -> None:
        self.wish, self.process = wish, None

    def open(self) -> None:
        self.close()
        command = [self.wish["steward"], "mcp", "serve", "--allow", "act"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=self.wish["environment"], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        report(pid=self.process.pid)
        params = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": {"name": self.wish["name"], "version": "1"}}
        self.post({"jsonrpc": "2.0", "id": "begin", "method": "initialize", "params": params})
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def post(self, message: dict) -> dict:
        try:
            self.process.stdin.write((json.dumps(message) + "\n").encode())
            self.process.stdin.flush()
        except OSError as error:
            raise AwayError from error
        while "id" in message:
            line = self.process.stdout.readline()
            if not line.endswith(b"\n"):
                raise AwayError
            answer = json.loads(line)
            if answer.get("id") == message["id"]:
                return answer
        return {}

    def close(self) -> None:
        if self.process:
            self.process.stdin.close()
            self.process.wait(LONGEST_END)
            self.process.stdout.close()


class Client:
    """One assistant, in a process of its own: it makes calls and reports each before and after."""

    def __init__(self, wish: dict) -> None:
        self.wish, self.random = wish, random.Random(wish["seed"])
        self.channel = HttpChannel(wish) if wish["transport"] == "http" else PipeChannel(wish)
        self.sent, self.sources = 0, list(wish["sources"])
        # The run under way, the steps that it still needs, and runs that were submitted.
        self.run, self.steps, self.submitted = None, [], []
        self.opened = False

    def call(self, tool: str, **arguments: object) -> dict | None:
        """The result of one call; nothing if the server went away or refused the request."""
        self.sent += 1
        id_ = f"{self.wish['name']}-{self.sent}"
        params = {"name": tool, "arguments": arguments}
        if self.wish["era"] == NEW:
            named = {"name": self.wish["name"], "version": "1"}
            key = "io.modelcontextprotocol/"
            params["_meta"] = {key + "protocolVersion": NEW, key + "clientInfo": named, key + "clientCapabilities": {}}
        try:
            if not self.opened:
                self.channel.open()
                self.opened = True
            report(sent=id_, tool=tool)
            answer = self.channel.post({"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params})
        except AwayError:
            self.opened = False
            report(away=id_)
            # Over HTTP the parent says when the server is there again.
            if self.wish["transport"] == "http" and not sys.stdin.readline():
                sys.exit(0)
            return None
        if "result" not in answer:
            self.opened = False
            report(refused=id_, answer=answer)
            return None
        result = answer["result"]
        error = result.get("_meta", {}).get("io.steward/error", {"code": "ok"})
        report(answered=id_, tool=tool, code=error["code"], error=error)
        return None if result.get("isError") else result

    def read(self) -> None:
        """One call that changes nothing."""
        wiki = self.random.choice(WIKIS)
        page = SHARED[wiki]
        tool, arguments = self.random.choice([
            ("guide", {}), ("overview", {}), ("list", {"path": "wiki/**"}), ("grep", {"pattern": "valve|slab"}),
            ("search", {"query": "valve oven"}), ("search", {"query": "", "kind": "log"}), ("read", {"path": page}),
            ("read", {"path": "wiki/overview.md"}), ("read", {"path": page}), ("follow", {"from_page": page, "footnote_id": "1"}),
            ("history", {}), ("why", {"query": "water"}), ("sources", {}),
        ])
        result = self.call(tool, workspace=wiki, **arguments)
        if result and tool == "read" and (sha := SHA.search(result["content"][0]["text"].splitlines()[0])):
            report(read=f"wiki/{wiki}/{arguments['path'].removeprefix('wiki/')}", sha=sha.group())

    def write(self) -> None:
        """The next call of a run: its pages, then the entry of the log, and later a look at it."""
        if self.run is None:
            if self.sources:
                self.begin_run(self.sources.pop())
            else:
                self.check_submitted()
            return
        wiki, source = self.run["wiki"], self.run["source"]
        step = self.steps.pop(0)
        if step == "share":
            text = f"\nThe bucket {source} is blue.[^1]\n\n[^1]: raw/{source}.md — \"The bucket {source} is blue.\"\n"
            if self.call("write", workspace=wiki, op="append", path=SHARED[wiki], run_id=self.run["id"], content=text):
                self.run["touched"].append(SHARED[wiki].removeprefix("wiki/"))
            return
        unchanged = [page for page in self.run["related"] if page["page"].removeprefix("wiki/") not in self.run["touched"]]
        entry = f"## [2026-11-24] ingest | {source} | touched: {', '.join(self.run['touched'])}"
        done = self.call(
            "write", workspace=wiki, op="append", path="wiki/log.md", run_id=self.run["id"], content=entry, no_change=unchanged
        )
        if done and done["structuredContent"]["state"] == "pending":
            report(run=done["structuredContent"]["run_id"])
            self.submitted.append(self.run)
        self.run = None

    def begin_run(self, chosen: list) -> None:
        wiki, source = chosen
        path = f"summaries/summary-{source}.md"
        head, words = f"---\ntitle: {source}\nkind: summary\n---\n", f"The bucket {source} is blue."
        text = f"{head}{words}[^1]\n\n[^1]: raw/{source}.md — \"{words}\"\n"
        made = self.call("write", workspace=wiki, op="create", path=f"wiki/{path}", source=f"raw/{source}.md", content=text)
        if made:
            related = made["structuredContent"]["should_touch"]
            pages = [{"page": one, "reason": "it says nothing of it"} for one in related]
            self.run = {"id": made["structuredContent"]["run"], "wiki": wiki, "source": source, "touched": [path], "related": pages}
            self.steps = (["share"] if self.random.random() < CHANCE_OF_SHARED else []) + ["submit"]

    def check_submitted(self) -> None:
        if not self.submitted:
            self.read()
            return
        run = self.submitted[0]
        shown = self.call("history", workspace=run["wiki"], run_id=run["id"])
        value = shown["structuredContent"] if shown else {"entries": []}
        if value["entries"] and value["entries"][0]["status"] == "committed":
            self.submitted.pop(0)
            if self.random.random() < CHANCE_OF_UNDO and self.sent < self.wish["calls"]:
                self.call("steward_undo", action=value["run"]["action"], reason="a test")

    def work(self) -> None:
        while self.sent < self.wish["calls"]:
            if self.random.random() < CHANCE_OF_STEP:
                self.write()
            else:
                self.read()
        self.channel.close()
        report(done=self.sent)


class Worker:
    """A client's process as its parent sees it, again and again started until all its calls are made."""

    def __init__(self, load: "Load", number: int, transport: str, calls: int) -> None:
        self.load, self.number, self.transport, self.left = load, number, transport, calls
        self.name, self.generation, self.pipe_pid = f"{transport}{number:02}", 0, 0
        self.token = load.system.create_token(self.name) if transport == "http" else ""
        self.runs_left = [(WIKIS[(number + n) % len(WIKIS)], f"2026-11-22-{self.name}-{n}") for n in range(max(1, calls // CALLS_OF_RUN))]
        for wiki, source in self.runs_left:
            load.system.add_document(wiki, f"{source}.md", f"# Bucket {source}\n\nThe bucket {source} is blue.\n")
        self.ended = threading.Event()
        self.start()

    def start(self) -> None:
        self.generation += 1
        name = f"{self.name}.{self.generation}"
        wish = {
            "name": name, "transport": self.transport, "era": NEW if self.transport == "http" and self.number % 2 else OLD,
            "port": self.load.system.port, "token": self.token, "calls": self.left, "seed": f"{self.load.seed}/{name}",
            "sources": self.runs_left, "steward": self.load.system.steward, "environment": self.load.system.environment,
        }
        command = [sys.executable, "-B", __file__, "--client", json.dumps(wish)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self.read_reports, args=(self.process,), daemon=True).start()

    def read_reports(self, process: subprocess.Popen) -> None:
        load, finished = self.load, False
        for line in process.stdout:
            said = json.loads(line)
            with load.lock:
                if "sent" in said:
                    load.sent[said["sent"]] = said["tool"]
                    self.left -= 1
                elif "answered" in said:
                    load.answered[said["answered"]] = (said["tool"], said["code"])
                    if said["code"] not in EXPECTED_CODES:
                        load.failures.append(f"{said['tool']} was answered by {said['error']}")
                elif "refused" in said:
                    load.refused.append(said)
                elif "read" in said:
                    load.seen[said["read"]].add(said["sha"])
                elif "run" in said:
                    load.submitted.append(said["run"])
                    load.to_approve.put(said["run"])
                elif "pid" in said:
                    self.pipe_pid = said["pid"]
                    load.pipe_pids.add(said["pid"])
                finished = finished or "done" in said
            if "away" in said and self.transport == "http":
                load.served.wait()
                try:
                    process.stdin.write("go on\n")
                    process.stdin.flush()
                except OSError:
                    # It was killed meanwhile.
                    pass
        code = process.wait()
        with contextlib.suppress(OSError):
            # It may have been killed before it read all.
            process.stdin.close()
        with load.lock:
            if not finished and code != -signal.SIGKILL:
                load.failures.append(f"client {self.name} ended with {code}")
                finished = True
        with load.lock:
            if finished or self.left <= 0 or load.ending:
                self.ended.set()
            else:
                # The sources of the killed one may be in a run already: its successor begins none twice.
                self.runs_left = self.runs_left[:-1]
                self.start()


class Load:
    """All clients, and what they and the watcher saw."""

    def __init__(self, system: System, seed: str) -> None:
        self.system, self.seed, self.random = system, seed, random.Random(seed)
        self.lock, self.served, self.ending, self.given_up = threading.Lock(), threading.Event(), False, False
        self.sent: dict[str, str] = {}
        self.answered: dict[str, tuple] = {}
        self.refused: list[dict] = []
        self.seen: dict[str, set] = collections.defaultdict(set)
        self.submitted: list[str] = []
        self.to_approve: queue.Queue = queue.Queue()
        self.approved: list[str] = []
        self.pipe_pids: set[int] = set()
        self.failures: list[str] = []
        # Each is held during an approval. Without a server the command holds the vault itself, so none is started meanwhile.
        self.approving = [threading.Lock() for _ in range(APPROVERS)]
        self.kills = collections.Counter()

    def approve_runs(self, approving: threading.Lock) -> None:
        """A person at a terminal, until the queue says that there is nothing more."""
        while (run := self.to_approve.get()) is not None and not self.given_up:
            for _ in range(APPROVALS):
                self.served.wait()
                with approving:
                    code, printed = self.system.approve(run)
                # An earlier try may have been cut off after the commit, which a client may even have taken back since.
                if code == 0 or re.search("does not wait: it is (committed|taken back)", printed):
                    self.approved.append(run)
                    break
            else:
                self.failures.append(f"run {run} could not be approved: {printed[-600:]}")

    def watch_pages(self, stop: threading.Event) -> None:
        """Looks at each page whenever its file is another one."""
        known: dict[pathlib.Path, tuple] = {}
        while not stop.wait(BETWEEN_WATCHES):
            for file in list_pages(self.system):
                try:
                    facts = file.stat()
                    mark = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
                    if known.get(file) != mark:
                        known[file] = mark
                        self.seen[str(file.relative_to(self.system.vault))].add(hash_bytes(file.read_bytes()))
                except FileNotFoundError:
                    known.pop(file, None)

    def kill_server(self) -> None:
        self.served.clear()
        self.system.kill_up()
        self.kills["server"] += 1
        with contextlib.ExitStack() as stack:
            for approving in self.approving:
                stack.enter_context(approving)
            self.system.start_up()
        self.served.set()

    def kill_client(self, workers: list[Worker]) -> None:
        """Kills a client, or the server at its pipe."""
        worker = self.random.choice(workers)
        if worker.ended.is_set():
            return
        if worker.pipe_pid and self.random.random() < 0.5:
            if is_alive(worker.pipe_pid):
                os.kill(worker.pipe_pid, signal.SIGKILL)
                self.kills["pipe"] += 1
        else:
            worker.process.kill()
            self.kills["client"] += 1


def hash_bytes(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def list_pages(system: System) -> list[pathlib.Path]:
    """The pages of all wikis and their overviews, but no file whose name begins with `_` or a dot."""
    folders = [system.vault / "wiki" / wiki for wiki in WIKIS]
    found = [file for folder in folders for file in (*folder.glob("*.md"), *folder.glob("[a-z]*/*.md"))]
    return [file for file in found if not file.name.startswith(("_", ".")) and file.parent.name != "sources"]


def read_records(system: System) -> list[tuple[int, str, str, list[dict]]]:
    """The audit records of changes of wikis in their order: number, folder, run, and the files with their hashes."""
    records = []
    for file in (system.vault / "event").glob("steward-wiki-*.md"):
        text = file.read_text()
        head, _, body = text.partition("\n---\n")
        fields = dict(re.findall(r"^ *(seq|folder|run): (\S+)$", head, re.M))
        if block := re.search(r"^```jsonl\n(.*?)^```$", body, re.M | re.S):
            files = [json.loads(line) for line in block[1].splitlines()]
            records.append((int(fields["seq"]), fields["folder"], fields["run"], files))
    return sorted(records, key=lambda record: record[0])


def check_pages(load: Load) -> None:
    """Each page that was seen is as a record has it, and each page now is as the last record of it says."""
    legal, last = collections.defaultdict(set), {}
    for _, folder, _, files in read_records(load.system):
        for one in files:
            path = f"{folder}/{one['file']}"
            legal[path] |= {one.get("before"), one.get("after")}
            last[path] = one.get("after")
    for path, hashes in load.seen.items():
        if torn := hashes - legal[path]:
            load.failures.append(f"{path} was seen with bytes that no record has: {sorted(torn)}")
    now = {str(file.relative_to(load.system.vault)): hash_bytes(file.read_bytes()) for file in list_pages(load.system)}
    for path in sorted(set(now) | {path for path in last if is_page(path)}):
        if now.get(path) != last.get(path) and path in last:
            load.failures.append(f"{path} is {now.get(path)}, and its last record says {last.get(path)}")
        elif path not in last and path.split("/")[-1] not in ("AGENTS.md", "KNOWLEDGE.md"):
            load.failures.append(f"{path} has no record")
    print(f"pages: {len(now)} now, {sum(map(len, load.seen.values()))} states seen of {len(load.seen)}", flush=True)


def is_page(path: str) -> bool:
    return path.endswith(".md") and not path.split("/")[-1].startswith("_") and "/sources/" not in path and "/." not in path


def check_runs(load: Load) -> None:
    """Each record of a change has one entry in its wiki's log, each entry has a record, and what was approved is committed."""
    runs = [run for run in load.system.list_runs() if run["state"] in ("committed", "reverted", "taken_back")]
    recorded = collections.Counter((folder, run) for _, folder, run, _ in read_records(load.system))
    logged: collections.Counter = collections.Counter()
    for wiki in WIKIS:
        text = (load.system.vault / "wiki" / wiki / "_log.md").read_text()
        logged.update((f"wiki/{wiki}", run) for run in re.findall(r"^- run: (r-[0-9A-Za-z-]+)", text, re.M))
    if recorded != logged:
        load.failures.append(f"records without an entry: {recorded - logged}; entries without a record: {logged - recorded}")
    committed = {(f"wiki/{run['wiki']}", run["run"]) for run in runs}
    if committed - set(recorded):
        load.failures.append(f"committed without a record: {committed - set(recorded)}")
    if missing := set(load.approved) - {run for _, run in committed}:
        load.failures.append(f"approved and not committed: {missing}")
    types = collections.Counter(run["run_type"] for run in runs)
    if not load.approved or (len(load.approved) >= ENOUGH_RUNS and not types["rollback"]):
        load.failures.append("nothing was committed, or nothing taken back")
    print(f"runs: {len(load.submitted)} submitted, {len(load.approved)} approved, {dict(types)} committed", flush=True)


def check_call_log(load: Load) -> None:
    """Each answered call has one line, and no call has two."""
    lines, broken = load.system.read_call_log()
    logged = collections.Counter(line["id"] for line in lines if line["id"] in load.sent)
    without = [id_ for id_ in load.answered if logged[id_] == 0]
    twice = [id_ for id_, count in logged.items() if count > 1]
    unanswered = set(load.sent) - set(load.answered) - {one["refused"] for one in load.refused}
    silent = [id_ for id_ in unanswered if logged[id_] == 0]
    http_clients = len({id_.split(".")[0] for id_ in load.sent if id_.startswith("http")})
    most = load.kills["client"] + load.kills["pipe"] + load.kills["server"] * http_clients
    for passed, what in (
        (not without, f"answered calls without a line: {without[:5]} of {len(without)}"),
        (not twice, f"calls with several lines: {twice[:5]} of {len(twice)}"),
        (len(unanswered) <= most, f"{len(unanswered)} calls have no answer, and at most {most} were in flight at a kill"),
        (broken <= load.kills["server"] + load.kills["pipe"], f"{broken} lines of the log are not whole"),
        (all(one["answer"].get("status") == 404 for one in load.refused), f"requests were refused: {load.refused[:3]}"),
    ):
        if not passed:
            load.failures.append(what)
    for line in lines:
        if line["id"] in load.answered:
            tool, code = load.answered[line["id"]]
            result = line["result"] if line["result"] == "ok" else line["result"].split(":", 1)[-1]
            if (line["tool"], result) != (tool, code):
                load.failures.append(f"the log says {line['tool']} {line['result']} of a call that was {tool} {code}")
    codes = dict(collections.Counter(code for _, code in load.answered.values()).most_common())
    print(f"calls: {len(load.sent)} sent, {len(load.answered)} answered", flush=True)
    print(f"in flight at a kill: {len(unanswered)}, of them without a line: {len(silent)}", flush=True)
    print(f"answers: {codes}", flush=True)


def check_vault(load: Load) -> None:
    """What the commands find."""
    for wiki in WIKIS:
        commands = [["wiki", "lint", wiki], ["wiki", "validate", str(load.system.vault / "wiki" / wiki)]]
        for command in commands:
            try:
                load.system.run(*command)
            except AssertionError as error:
                load.failures.append(str(error))
    try:
        load.system.run("audit", "verify")
    except AssertionError as error:
        load.failures.append(str(error))


def drive(load: Load, asked: argparse.Namespace) -> None:
    """Starts all clients, kills at random moments, and waits until all calls are made and all runs are approved."""
    end = time.monotonic() + asked.longest
    approvers = [threading.Thread(target=load.approve_runs, args=(approving,), daemon=True) for approving in load.approving]
    stop = threading.Event()
    watcher = threading.Thread(target=load.watch_pages, args=(stop,), daemon=True)
    for thread in (*approvers, watcher):
        thread.start()
    workers = [Worker(load, n, "http", asked.calls) for n in range(asked.clients)]
    workers += [Worker(load, n, "pipe", asked.calls) for n in range(asked.pipes)]
    all_calls = asked.calls * len(workers)
    # The server is killed when a random share of all calls was sent.
    moments = sorted(load.random.uniform(0.1, 0.8) for _ in range(asked.server_kills))
    killed = 0
    try:
        while not all(worker.ended.is_set() for worker in workers):
            if time.monotonic() > end:
                load.failures.append(f"not all calls were made within {asked.longest} s")
                break
            if moments and len(load.sent) >= moments[0] * all_calls:
                moments.pop(0)
                load.kill_server()
            elif killed < asked.kills:
                load.kill_client(workers)
                killed += 1
            going = next((worker for worker in workers if not worker.ended.is_set()), None)
            if going:
                going.ended.wait(load.random.uniform(*BETWEEN_KILLS))
    except BaseException:
        # The script shall end: what waits for approval waits no longer.
        load.given_up, end = True, time.monotonic() + LONGEST_END
        raise
    finally:
        with load.lock:
            load.ending = True
        # An approval must not wait for a server that did not start again.
        load.served.set()
        for worker in workers:
            if worker.process.poll() is None:
                worker.process.kill()
        for _ in approvers:
            load.to_approve.put(None)
        for thread in approvers:
            thread.join(max(1.0, end - time.monotonic()))
            if thread.is_alive():
                load.failures.append(f"not all runs were approved within {asked.longest} s")
        stop.set()
        watcher.join()


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("steward")
    for name, number in (("calls", 200), ("clients", 32), ("pipes", 4), ("kills", 12), ("server-kills", 2), ("longest", 0)):
        parser.add_argument(f"--{name}", type=int, default=number)
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(10**6)))
    asked = parser.parse_args()
    asked.longest = asked.longest or asked.calls * LONGEST_FOR_CALL
    print(f"seed {asked.seed}", flush=True)
    end_on_term()
    with tempfile.TemporaryDirectory() as folder:
        system = System(asked.steward, folder)
        load = Load(system, asked.seed)
        try:
            system.make_wikis()
            system.start_up()
            system.ingest_documents()
            load.served.set()
            began = time.monotonic()
            drive(load, asked)
            print(f"{time.monotonic() - began:.0f} s, killed: {dict(load.kills)}", flush=True)
            wait_until("the processes at the pipes end", LONGEST_END, lambda: not any(map(is_alive, load.pipe_pids)))
            for check in (check_call_log, check_runs, check_pages, check_vault):
                check(load)
        finally:
            for pid in load.pipe_pids:
                if is_alive(pid):
                    os.kill(pid, signal.SIGKILL)
            system.end()
    for failure in load.failures:
        print(f"FAILED {failure[:1500]}", flush=True)
    print("failed" if load.failures else "passed")
    return 1 if load.failures else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--client"]:
        Client(json.loads(sys.argv[2])).work()
    else:
        sys.exit(main())
