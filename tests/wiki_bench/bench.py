"""Measures a wiki of 10,000 made-up pages beside plain Python, and whether both find the same.

    python3 tests/wiki_bench/bench.py EXAMPLE [PAGES [ROUNDS]]

EXAMPLE is `wiki_at_size` of the vault's crate, built for release; the packages of the baselines are in PYTHONPATH, and RIPGREP names the binary of ripgrep. Each operation runs ROUNDS
times (nine), each time in a new process and beside its baseline. Only the runs of the ingest follow each other in one process, as in the server.
The table shows medians. The bench fails if a result is wrong, never because of a time.
"""

import collections
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import baselines
import pages

HERE = pathlib.Path(__file__).parent
LARGE_SOURCE = 32 * 1024 * 1024
# What the lint of the baseline looks for.
LINTS = {"duplicate_id", "duplicate_title", "broken_ref", "index_stale", "source_mutated", "source_missing"}
LINTS |= {"quote_edited", "source_drifted", "claim_unanchored"}


class Bench:
    def __init__(self, example, vault, rounds):
        self.example, self.vault, self.rounds = example, vault, rounds
        self.rows, self.faults = [], []

    def run(self, operation, *arguments, vault=None):
        command = [self.example, operation, str(vault or self.vault), *map(str, arguments)]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    def run_baseline(self, operation, *arguments):
        command = [sys.executable, "-B", str(HERE / "baselines.py"), operation, str(self.vault), *map(str, arguments)]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    def expect(self, is_right, what):
        if not is_right:
            self.faults.append(what)

    def add_row(self, what, ours, baseline, goal):
        """Adds a row with the medians of both, in milliseconds. Without a baseline there is no ratio."""
        ours = statistics.median(ours)
        baseline = statistics.median(baseline) if baseline else None
        shown, ratio = (f"{baseline:,.1f} ms", f"{baseline / ours:,.1f}") if baseline else ("", "")
        self.rows.append(f"| {what} | {ours:,.1f} ms | {shown} | {ratio} | {goal} |")
        print(self.rows[-1], flush=True)


def measure_search(bench, plan, words):
    rng = random.Random(34)
    holders = collections.Counter(word for text in baselines.read_words_of_pages(bench.vault / pages.WIKI)[1] for word in set(text))
    # Each query has a word on fewer than half of the pages: others weigh nothing in this formula.
    rare = [word for word in words.all if 0 < holders[word] * 2 < len(plan)]
    queries = [" ".join(rng.sample(rare, 1) + rng.sample(words.all, rng.randint(0, 3))) for _ in range(1_000)]
    file, results = bench.vault / "queries.json", bench.vault / "results.json"
    file.write_text(json.dumps(queries))
    ours, theirs, rebuilds = [], [], []
    for _ in range(bench.rounds):
        ours.append(bench.run("search", file, results))
        theirs.append(bench.run_baseline("search", file))
        rebuilds.append(bench.run_baseline("index")["wall_ms"])
    for query, hits, best in zip(queries, json.loads(results.read_text()), theirs[-1]["found"]):
        is_same = [slug for slug, _ in hits] == [slug for slug, _ in best]
        is_near = all(abs(score - other) < 1e-9 for (_, score), (_, other) in zip(hits, best))
        bench.expect(is_same and is_near, f"search: {query}: {hits[:3]}, not {best[:3]}")
    search = [run["search_p50_ms"] for run in ours]
    bench.add_row("search, top 10", search, [run["whole_ms"] for run in theirs], "≤ 10 ms, ≥ 500×")
    bench.add_row("the same, index in memory", search, [run["scores_ms"] for run in theirs], "≥ 1×")
    bench.add_row("full index rebuild", [run["fill_ms"] for run in ours], rebuilds, "≤ 5 s, ≥ 5×")
    bench.add_row("index of an unchanged wiki", [run["unchanged_ms"] for run in ours], None, "")


def measure_ingest(bench, sources, plan, words):
    pages.write_script(bench.vault, sources, plan, words, bench.rounds)
    script = bench.vault / "script.json"
    measured = bench.run("ingest", script)
    bench.expect(all(run["pages"] == pages.PAGES_OF_RUN and run["displaced"] == 0 for run in measured["runs"]), "ingest: other files")
    theirs = [bench.run_baseline("ingest", script, number) for number in range(bench.rounds)]
    bench.expect(all(run["is_same"] for run in theirs), "ingest: another index")
    ours = {name: [run[name] for run in measured["runs"]] for name in ("stage_ms", "wall_ms", "cpu_ms")}
    bench.add_row("ingest of 15 pages", ours["wall_ms"], [run["wall_ms"] for run in theirs], "≤ 300 ms")
    bench.add_row("the same, CPU", ours["cpu_ms"], [run["cpu_ms"] for run in theirs], "≤ 60 ms, ≥ 20×")
    bench.add_row("of these, staging", ours["stage_ms"], None, "")


def measure_checks(bench):
    results, ours, theirs, quotes = bench.vault / "results.json", collections.defaultdict(list), collections.defaultdict(list), []
    for _ in range(bench.rounds):
        quotes.append(bench.run("quotes"))
        for operation in ("lint", "validate"):
            ours[operation].append(bench.run(operation, results) | {"found": json.loads(results.read_text())})
            theirs[operation].append(bench.run_baseline(operation))
    found = {(code, file) for code, file in ours["lint"][0]["found"] if code in LINTS}
    other = set(map(tuple, theirs["lint"][0]["found"]))
    bench.expect(len(found) > 50 and found == other, f"lint: {sorted(found ^ other)[:5]}")
    found, other = ({file for _, file in ours["validate"][0]["found"]}, set(theirs["validate"][0]["found"]))
    bench.expect(len(found) > 25 and found == other, f"validate: {sorted(found ^ other)[:5]}")
    for operation, goal in (("lint", "≤ 3 s, ≥ 10×"), ("validate", "≤ 3 s, ≥ 20×")):
        times = [[run["wall_ms"] for run in side[operation]] for side in (ours, theirs)]
        bench.add_row(operation, *times, goal)
    bench.add_row(f"{quotes[0]['quotes']:,} quotes against their sources", [run["wall_ms"] for run in quotes], None, "≤ 2 s")
    parsed = bench.run_baseline("yaml")
    peak = ours["lint"][0]["peak_mib"]
    print(f"Of the baselines, yaml.safe_load takes {parsed['yaml_ms']:,.0f} ms, and libyaml would take {parsed['libyaml_ms']:,.0f} ms.")
    print(f"The lint held at most {peak:.0f} MiB.")


def measure_grep(bench, words):
    """A word that stands in fewer lines than are shown, beside ripgrep."""
    ripgrep = os.environ.get("RIPGREP", "rg")
    wiki = bench.vault / pages.WIKI
    for word in reversed(words.all):
        command = [ripgrep, "--no-ignore", "--line-number", "--no-heading", "--with-filename", word, "."]
        found = subprocess.run(command, cwd=wiki, capture_output=True, text=True, check=False).stdout.splitlines()
        if 20 <= len(found) < 200:
            break
    ours, theirs = [], []
    for _ in range(bench.rounds):
        ours.append(bench.run("grep", word))
        begin = time.perf_counter()
        subprocess.run(command, cwd=wiki, capture_output=True, check=False)
        theirs.append((time.perf_counter() - begin) * 1_000)
    lines = {(path, line) for path, line in ours[-1]["lines"]}
    expected = {(one.split(":")[0].removeprefix("./"), int(one.split(":")[1])) for one in found}
    bench.expect(lines == expected and not ours[-1]["is_cut"], f"grep {word}: {sorted(lines ^ expected)[:5]}")
    bench.add_row("grep of a word, beside ripgrep with its start", [run["wall_ms"] for run in ours], theirs, "≤ 2× ripgrep")


def measure_memory(bench, words):
    file, vault = bench.vault / "large.md", bench.vault / "other"
    text = "".join(f"{words.make_sentence()}\n" for _ in range(20_000)).encode()
    file.write_bytes((text * (LARGE_SOURCE // len(text) + 1))[:LARGE_SOURCE])
    bench.run("init", vault=vault)
    figures = bench.run("add-source", file, vault=vault)
    bench.expect(figures["is_right"], "memory: another hash")
    bench.rows.append(f"| a source of 32 MiB: memory | {figures['peak_mib']:.0f} MiB | | | ≤ 150 MiB |")
    print(bench.rows[-1])


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 9
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(os.path.abspath(sys.argv[1]), pathlib.Path(folder) / "vault", rounds)
        bench.run("init")
        sources, plan, words = pages.make_wiki(bench.vault, count)
        size = statistics.mean((bench.vault / pages.WIKI / page.file).stat().st_size for page in plan)
        print(f"{count:,} pages of {size:,.0f} bytes, {len(sources)} sources; medians of {rounds}\n")
        print("| what | ours | baseline | ratio | goal |\n|---|---|---|---|---|")
        measure_search(bench, plan, words)
        measure_ingest(bench, sources, plan, words)
        measure_grep(bench, words)
        measure_memory(bench, words)
        pages.plant_faults(bench.vault / pages.WIKI, plan, random.Random(56))
        measure_checks(bench)
    print("\n".join(bench.faults[:10]) or "Both found the same everywhere.")
    return 1 if bench.faults else 0


if __name__ == "__main__":
    sys.exit(main())
