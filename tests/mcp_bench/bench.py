"""Measures Steward's server of the Model Context Protocol beside alexandria-wiki, on one wiki of 10,000 made-up pages in both layouts.

    PYTHONPATH=tests python3 -B -m mcp_bench.bench STEWARD PACKAGES [PAGES [ROUNDS]]

STEWARD is the binary, built for release, and PACKAGES the folder with alexandria-wiki and its packages. Both servers are measured by
turns, over standard input and output, and then with 32 clients at once over HTTP: Steward by `/mcp`, alexandria by its HTTP with SSE.
The table shows medians, or the 99th percentile where it says so. The bench fails if an answer is wrong, never because of a time.
"""

import collections
import concurrent.futures
import contextlib
import functools
import itertools
import json
import os
import pathlib
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from mcp_bench import client, layouts

SIDES = ("ours", "theirs")
ENTRIES = 400
CLIENTS = 32
# Calls of one client in one round over HTTP.
CALLS = 8
HTTP_ROUNDS = 3
# A caller has at most eight sessions.
SESSIONS = 8
# A run takes 15 pages, and a caller stages 120 times a minute.
RUNS, PAGES_OF_RUN, WRITERS = 7, 15, 3
# Seconds to wait for a server that starts, and for one that is busy after its start.
LONGEST_START, LONGEST_REST = 300, 300


class Bench:
    def __init__(self, made, rounds):
        self.layouts, self.rounds = made, rounds
        self.faults, self.missed = [], []
        counted = collections.Counter(page.kind for page in made.plan)
        self.concepts = counted["concept"]

    def expect(self, is_right, what):
        if not is_right:
            self.faults.append(what)

    def add_row(self, what, ours, theirs, target, limit=None, factor=None, unit="ms", digits=1):
        """Prints a row. The limit is that of our own figure, and the factor how much of theirs ours may be."""
        shown = "" if theirs is None else f"{theirs:,.{digits}f} {unit}"
        ratio = "" if theirs is None else f"{theirs / ours:,.1f}"
        within = (limit is None or ours <= limit) and (factor is None or theirs is None or ours <= theirs * factor)
        verdict = "" if not target else ("yes" if within else "NO")
        if not within:
            self.missed.append(what)
        print(f"| {what} | {ours:,.{digits}f} {unit} | {shown} | {ratio} | {target} | {verdict} |", flush=True)


def take_p99(values):
    return sorted(values)[min(len(values) - 1, len(values) * 99 // 100)]


def describe_load():
    return "load " + " ".join(f"{value:.1f}" for value in os.getloadavg())


def open_both(made):
    return {side: client.StdioClient(*start) for side, start in made.make_stdio_commands().items()}


def measure_start(bench):
    times = {side: [] for side in SIDES}
    for _ in range(bench.rounds):
        for side, start in bench.layouts.make_stdio_commands().items():
            begin = time.perf_counter()
            with client.StdioClient(*start) as server:
                answer = server.begin_session()
                times[side].append((time.perf_counter() - begin) * 1_000)
            bench.expect(answer["serverInfo"]["name"] == {"ours": "steward", "theirs": "alexandria"}[side], f"start: {answer}")
    medians = {side: statistics.median(times[side]) for side in SIDES}
    bench.add_row("start until `initialize` is answered", medians["ours"], medians["theirs"], "≤ 1/20", factor=1 / 20)


def measure_by_turns(bench, servers, count, ask):
    """Asks both servers by turns. `ask` gets the side and the server, and returns the seconds."""
    times = {side: [] for side in SIDES}
    for _ in range(count):
        for side in SIDES:
            times[side].append(ask(side, servers[side]) * 1_000)
    return times


def ask_tools(bench):
    def ask(side, server):
        listed = {tool["name"] for tool in server.request("tools/list")["tools"]}
        bench.expect({"guide", "overview", "list", "grep", "search", "read", "follow"} <= listed, f"tools/list of {side}: {listed}")
        return server.seconds

    return ask


def ask_grep(bench):
    """A line that stands once in all files."""
    page = bench.layouts.plan[len(bench.layouts.plan) * 2 // 3]
    lines = (bench.layouts.wiki / page.file).read_text().splitlines()
    number, line = next((number, line) for number, line in enumerate(lines, 1) if line.startswith("- "))
    pattern, path = line[2:60], f"wiki/{page.file}"

    def ask(side, server):
        answer = server.call("grep", pattern=pattern)
        if side == "ours":
            found = [(hit["path"], hit["line"]) for hit in answer.structured["hits"]]
            bench.expect(found == [(path, number)], f"grep of ours: {found}")
        else:
            bench.expect(f"**{path}:{number}**" in answer.text and answer.text.startswith("**1 match"), f"grep of theirs: {answer.text[:200]}")
        return answer.seconds

    return ask


def find_best(bench, side, answer):
    """The file of the first hit, if there is one."""
    if side == "ours":
        hits = (answer.structured or {}).get("hits")
        return bench.layouts.wiki / hits[0]["path"].removeprefix("wiki/") if hits else None
    first = re.search(r"^\*\*((?:wiki|raw)/.+?)\*\* — ", answer.text, re.MULTILINE)
    return bench.layouts.workspace / first[1] if first else None


def ask_search(bench):
    words = bench.layouts.words.all
    rng = random.Random(34)
    drawn = [" ".join(rng.sample(words[20:600], rng.randint(1, 3))) for _ in range(1_000)]
    queries = {side: iter(drawn) for side in SIDES}

    def ask(side, server):
        query = next(queries[side])
        answer = server.call("search", query=query)
        best = find_best(bench, side, answer)
        found = set(re.findall(r"\w+", best.read_text().lower())) if best else set()
        bench.expect(found & set(query.split()), f"search of {side}: {query}: {answer.text[:200]}")
        return answer.seconds

    return ask


def ask_list(bench):
    def ask(side, server):
        answer = server.call("list", path="wiki/concepts/*")
        if side == "ours":
            total, shown = answer.structured["total"], len(answer.structured["entries"])
            bench.expect(total == bench.concepts and 0 < shown <= 100, f"list of ours: {total}, {shown}, not {bench.concepts}")
        else:
            bench.expect(answer.text.count("\n  wiki/concepts/") == min(bench.concepts, 100), f"list of theirs: {answer.text[:200]}")
        return answer.seconds

    return ask


def ask_overview(bench):
    def ask(side, server):
        answer = server.call("overview")
        if side == "ours":
            tree = {row["path"]: row["pages"] for row in answer.structured["tree"]}
            bench.expect(tree.get("wiki/concepts") == bench.concepts, f"overview of ours: {tree}")
            bench.expect(len(answer.structured["recent"]) == 20, "overview of ours: recent pages")
        else:
            bench.expect(f"Raw sources: {len(bench.layouts.sources)}" in answer.text, f"overview of theirs: {answer.text[-200:]}")
        return answer.seconds

    return ask


def ask_guide(bench):
    def ask(side, server):
        answer = server.call("guide")
        number = len(bench.layouts.plan)
        held = (f"pages: {number}",) if side == "ours" else (f"Raw sources: {len(bench.layouts.sources)}",)
        bench.expect(all(part in answer.text for part in (*held, "bench")), f"guide of {side}: {answer.text[:200]}")
        return answer.seconds

    return ask


def measure_stdio(bench):
    many, some = bench.rounds * 10, bench.rounds
    with contextlib.ExitStack() as stack:
        servers = {side: stack.enter_context(server) for side, server in open_both(bench.layouts).items()}
        for server in servers.values():
            server.begin_session()
        memory = {"after the start": take_memory(servers)}
        rows = [
            ("`tools/list`", ask_tools, many, "≤ 1/4", None, 1 / 4),
            ("`grep` with one hit", ask_grep, some, "≤ 1/8", None, 1 / 8),
            ("`search`, warm, filled index", ask_search, many, "≤ 1/3, ≤ 5 ms", 5, 1 / 3),
            ("`list` of a folder", ask_list, some, "≤ 1/10", None, 1 / 10),
            ("`guide`", ask_guide, some, "≤ 1/20", None, 1 / 20),
            ("`overview`", ask_overview, some, "≤ 1/20", None, 1 / 20),
        ]
        first = {}
        for what, make, count, target, limit, factor in rows:
            ask = make(bench)
            first[what] = {side: ask(side, servers[side]) * 1_000 for side in SIDES}
            times = measure_by_turns(bench, servers, count, ask)
            memory[what] = take_memory(servers)
            medians = {side: statistics.median(times[side]) for side in SIDES}
            bench.add_row(f"{what}, p50", medians["ours"], medians["theirs"], target, limit, factor, digits=2)
            longer = first[what]["ours"] - medians["ours"]
            if what == "`list` of a folder":
                # Its result is the first that is so large that it is counted.
                bench.add_row("how much longer the first one takes, which loads the token counter", longer, None, "≤ 150 ms", 150)
            if what == "`guide`":
                bench.add_row("how much longer the first one takes, which reads all pages", longer, None, "")
        before, after = memory["`search`, warm, filled index"], memory["`overview`"]
        bench.add_row("memory before the token counter is loaded", before["ours"], after["theirs"], "≤ 1/2", factor=1 / 2, unit="MiB")
        bench.add_row("memory after all that", after["ours"], after["theirs"], "≤ 1.5 ×", factor=1.5, unit="MiB")
    print("First calls, in ms: " + "; ".join(f"{what} {times['ours']:,.1f}, {times['theirs']:,.1f}" for what, times in first.items()))
    print("Memory, in MiB: " + "; ".join(f"{when} {taken['ours']:.1f}, {taken['theirs']:.1f}" for when, taken in memory.items()))


def take_memory(servers):
    return {side: server.read_memory() for side, server in servers.items()}


def find_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def make_mix(bench, rng):
    """The reads of one client in one round: each tool once, in an order of its own. `grep` and `guide` are among them."""
    plan = bench.layouts.plan
    page, other = rng.choice(plan), rng.choice(plan)
    words = " ".join(rng.sample(bench.layouts.words.all[20:600], 2))
    mix = [("read", {"path": f"wiki/{page.file}"}, page.title), ("read", {"path": f"raw/{page.sources[0].id}.md"}, page.sources[0].title)]
    mix += [("search", {"query": words}, ""), ("list", {"path": "wiki/summaries/*"}, "wiki/summaries/summary-"), ("overview", {}, "wiki")]
    mix += [("history", {"limit": 20}, "ingest"), ("grep", {"pattern": f"^# {other.title}$"}, other.file), ("guide", {}, "bench")]
    rng.shuffle(mix)
    return mix[:CALLS]


def play_mix(bench, side, server, mix):
    times = []
    for tool, arguments, held in mix:
        begin, answer = time.perf_counter(), server.call(tool, **arguments)
        # On a busy machine a search of all files has parts.
        while side == "ours" and tool == "grep" and held not in answer.text and (answer.structured or {}).get("cursor"):
            answer = server.call(tool, cursor=answer.structured["cursor"], **arguments)
            answer = answer._replace(seconds=time.perf_counter() - begin)
        bench.expect(not answer.is_error and held in answer.text, f"{tool} {arguments} of {side} over HTTP: {answer.text[:200]}")
        times.append((tool, answer.seconds * 1_000))
    return times


@contextlib.contextmanager
def serve(command, environment):
    """A server in a process of its own."""
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def connect_when_served(make):
    end = time.monotonic() + LONGEST_START
    while True:
        try:
            server = make()
            server.begin_session()
            return server
        except (OSError, client.Failure) as problem:
            if time.monotonic() > end:
                raise SystemExit(f"the server does not answer: {problem}") from problem
            time.sleep(0.5)


def read_ticks(process):
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return int(fields[11]) + int(fields[12])


def wait_until_it_rests(process):
    """After its start Steward checks the wiki. Waits until it used less than a tenth of a core for three seconds."""
    end, last = time.monotonic() + LONGEST_REST, read_ticks(process)
    while time.monotonic() < end:
        time.sleep(3)
        now = read_ticks(process)
        if now - last < 30:
            return
        last = now


def read_resident(process):
    for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise SystemExit("the server has ended")


def measure_http(bench):
    made = bench.layouts
    ports = {side: find_port() for side in SIDES}
    create = ["--json", "token", "create", "--scope", "read", "--workspace", layouts.WIKI, "--name"]
    tokens = [json.loads(made.run_ours(*create, f"bench-{number}"))["token"] for number in range(CLIENTS)]
    ours = ([made.steward, "up"], made.ours | {"STEWARD_LISTEN": f"127.0.0.1:{ports['ours']}"})
    theirs = [sys.executable, "-m", "alexandria", "mcp", "serve-http", "--workspace", layouts.WIKI, "--port", str(ports["theirs"])]
    with serve(*ours) as up, serve(theirs, made.theirs):
        makers = {"ours": lambda number: client.HttpClient(ports["ours"], tokens[number], f"/mcp/{layouts.WIKI}")}
        makers["theirs"] = lambda _: client.SseClient(ports["theirs"])
        clients = {side: [connect_when_served(lambda side=side, n=n: makers[side](n)) for n in range(CLIENTS)] for side in SIDES}
        wait_until_it_rests(up)
        print(f"\n{CLIENTS} clients at once over HTTP; {describe_load()}")
        rng, times = random.Random(90), {side: [] for side in SIDES}
        with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
            for side in SIDES:
                play_mix(bench, side, clients[side][0], make_mix(bench, rng))
            for _ in range(HTTP_ROUNDS):
                mixes = [make_mix(bench, rng) for _ in range(CLIENTS)]
                for side in SIDES:
                    played = pool.map(functools.partial(play_mix, bench, side), clients[side], mixes)
                    times[side] += [one for played_mix in played for one in played_mix]
        for name, take in (("p50", statistics.median), ("p99", take_p99)):
            figures = {side: take([ms for _, ms in times[side]]) for side in SIDES}
            target = {"target": "≤ 1/10", "factor": 1 / 10} if name == "p99" else {"target": ""}
            bench.add_row(f"mixed reads of {CLIENTS} clients over HTTP, {name}", figures["ours"], figures["theirs"], **target)
        slowest = {tool: take_p99([ms for one, ms in times["ours"] if one == tool]) for tool in sorted({tool for tool, _ in times["ours"]})}
        before = read_resident(up)
        more = [connect_when_served(lambda n=n: makers["ours"](n)) for n in range(CLIENTS) for _ in range(SESSIONS - 1)]
        grown = (read_resident(up) - before) / len(more)
        bench.add_row(f"memory of one of {len(more)} sessions more", grown, None, "≤ 100 KiB", 100, unit="KiB")
    print("p99 of ours by tool, in ms: " + ", ".join(f"{tool} {ms:,.0f}" for tool, ms in slowest.items()))


def make_statement(source, rng):
    first, second = rng.sample(source.sentences, 2)
    text = f"{first}[^1]\n\n- {second}[^2]\n\n"
    return text + "".join(f'[^{number}]: raw/{source.id}.md — "{quote}"\n' for number, quote in ((1, first), (2, second)))


def measure_writes(bench):
    """Each write adds statements to a page, and is kept on the disk before it is answered. A new process may stage 120 times again."""
    rng, times = random.Random(12), []
    command, environment = bench.layouts.make_stdio_commands()["ours"]
    runs, sources = bench.layouts.vault / ".steward/runs", bench.layouts.sources
    # The summaries of sources are left alone: a wiki may have no more pages than these 10,000, so none is new.
    plan = bench.layouts.plan[len(sources) :]
    drawn = iter(rng.sample(plan, min(len(plan), WRITERS * RUNS * PAGES_OF_RUN)))
    for _ in range(WRITERS):
        with client.StdioClient(command, environment) as server:
            server.begin_session()
            for _ in range(RUNS):
                more = {}
                for page in itertools.islice(drawn, PAGES_OF_RUN):
                    content = make_statement(rng.choice(sources[len(sources) // 4 :]), rng)
                    answer = server.call("write", op="append", path=f"wiki/{page.file}", content=content, **more)
                    if answer.is_error:
                        bench.expect(False, f"write to {page.file}: {answer.text[:300]}")
                        continue
                    more = {"run_id": answer.structured["run_id"]}
                    changes = (runs / more["run_id"] / "changes.jsonl").read_text().splitlines()
                    bench.expect(len(answer.structured["quotes"]) >= 2, f"write to {page.file}: {answer.structured['quotes']}")
                    bench.expect(page.slug in changes[-1], f"write to {page.file}: it is not kept")
                    times.append(answer.seconds * 1_000)
    if not times:
        return
    bench.add_row(f"a staged, durable `write`, p50 of {len(times)}", statistics.median(times), None, "", digits=2)
    bench.add_row("the same, p99", take_p99(times), None, "≤ 15 ms", 15, digits=2)
    bench.add_row("the slowest, the first of a process", max(times), None, "")


def main():
    # A bench that is ended takes its servers with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    steward, packages = sys.argv[1], sys.argv[2]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 10_000
    rounds = int(sys.argv[4]) if len(sys.argv) > 4 else 9
    with tempfile.TemporaryDirectory() as folder:
        made = layouts.Layouts(steward, packages, folder)
        made.begin_ours(count, ENTRIES)
        made.render_index()
        made.write_theirs()
        made.fill_their_index()
        bench = Bench(made, rounds)
        print(f"{count:,} pages, {len(made.sources)} sources, {ENTRIES} entries of the log; {describe_load()}\n")
        print("| what | ours | alexandria | ratio | target | met |\n|---|---|---|---|---|---|")
        measure_start(bench)
        measure_stdio(bench)
        measure_http(bench)
        measure_writes(bench)
        size = os.path.getsize(steward) / 1_000_000
        bench.add_row("size of the binary", size, None, "", unit="MB")
        print(f"\nat the end: {describe_load()}")
    print(f"{len(bench.faults)} wrong answers" + "".join(f"\nWRONG {fault}" for fault in bench.faults[:20]))
    print(f"missed targets: {', '.join(bench.missed) or 'none'}")
    return 1 if bench.faults else 0


if __name__ == "__main__":
    sys.exit(main())
