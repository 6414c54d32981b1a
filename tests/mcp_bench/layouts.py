"""One wiki in two layouts: that of Steward, and that of alexandria-wiki. Both hold the same facts.

`pages` of the wiki's bench makes the sources and pages. Steward's layout is written first. The other one is made of its files:

| Steward | alexandria |
|---|---|
| `wiki/bench/concepts/x.md` | `workspaces/bench/wiki/concepts/x.md` |
| `wiki/bench/sources/x.md` | `workspaces/bench/raw/x.md` |
| `wiki/bench/_index.md`, `_log.md`, `overview.md` | `workspaces/bench/wiki/index.md`, `log.md`, `overview.md` |
| `[^c6107d23f]: x — "words"` | `[^1]: raw/x.md — "words"` |
| `## [2026-11-22T09:15:04Z] ingest | a` | `## [2026-11-22] ingest | a` |

Over the protocol both call a page `wiki/concepts/x.md` and a source `raw/x.md`.
"""

import datetime
import hashlib
import json
import os
import pathlib
import random
import re
import sqlite3
import subprocess
import sys

from wiki_bench import pages

WIKI = "bench"
LONGEST_COMMAND = 600
DEFINITION = re.compile(r'^\[\^(c[0-9a-f]{8})\]: (\S+)(?= — ")', re.MULTILINE)
MARK = re.compile(r"\[\^(c[0-9a-f]{8})\]")
HEADER = re.compile(r"^(## \[\d{4}-\d\d-\d\d)T[^\]]*\]", re.MULTILINE)
# Files that neither side has under the same name in the other layout.
OWN_FILES = {"AGENTS.md", "KNOWLEDGE.md", "_graph.md", "_ideas.md", "_manifest.json", "_sources.json"}
RENAMED = {"_index.md": "index.md", "_log.md": "log.md"}
OPERATIONS = ["ingest", "ingest", "ingest", "query", "lint", "manual"]
TEMPORAL = pathlib.Path(__file__).parent.parent.parent / ".tools/temporal/bin/temporal"


class Layouts:
    """The two folders, and what was written into them."""

    def __init__(self, steward, packages, folder):
        self.steward, self.packages, self.folder = os.path.abspath(steward), os.path.abspath(packages), pathlib.Path(folder)
        self.vault, self.home = self.folder / "vault", self.folder / "home"
        self.wiki, self.workspace = self.vault / "wiki" / WIKI, self.home / "workspaces" / WIKI
        shared = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        self.ours = shared | {"STEWARD_VAULT": str(self.vault), "STEWARD_LOG": "error", "STEWARD_TEMPORAL_CLI": str(TEMPORAL)}
        self.ours |= {"STEWARD_TEMPORAL_PORT": "0", "STEWARD_TEMPORAL_UI_PORT": "0"}
        self.theirs = shared | {"ALEXANDRIA_HOME": str(self.home), "PYTHONPATH": self.packages}

    def run_ours(self, *arguments):
        return run([self.steward, *arguments], self.ours)

    def run_theirs(self, *arguments):
        return run([sys.executable, "-m", "alexandria", *arguments], self.theirs)

    def make_stdio_commands(self):
        """For each side the command of a server for this wiki alone, and its environment."""
        ours = [self.steward, "mcp", "serve", "--workspace", WIKI]
        theirs = [sys.executable, "-m", "alexandria", "mcp", "serve", "--workspace", WIKI]
        return {"ours": (ours, self.ours), "theirs": (theirs, self.theirs)}

    def begin_ours(self, count, entries):
        """Writes Steward's layout without its index: sources, pages, and a log with so many entries."""
        self.run_ours("example", str(self.vault))
        self.run_ours("wiki", "init", WIKI)
        self.sources, self.plan, self.words = pages.make_wiki(self.vault, count)
        log = self.wiki / "_log.md"
        title, rest = log.read_text().split("\n", 1)
        log.write_text(f"{title}\n{make_log(self.plan, entries)}{rest}")

    def render_index(self):
        """Has Steward render index and overview from the pages, and fill its search index."""
        self.run_ours("wiki", "lint", WIKI, "--fix")
        self.run_ours("index", "rebuild")

    def write_theirs(self):
        """Writes the other layout, made of the files of the first."""
        self.run_theirs("init", "--path", str(self.home))
        self.run_theirs("project", "create", WIKI, "--slug", WIKI)
        paths = {entry["id"]: entry["path"] for entry in json.loads((self.wiki / "_sources.json").read_text())}
        for file in sorted(self.wiki.rglob("*")):
            path = file.relative_to(self.wiki).as_posix()
            if not file.is_file() or path in OWN_FILES or path.startswith("."):
                continue
            target = self.workspace / make_their_path(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            content = file.read_bytes()
            target.write_bytes(content if path.startswith("sources/") else translate(content.decode(), paths).encode())

    def fill_their_index(self):
        """Puts all files into the table that their search reads: their own import needs a model for each."""
        now = datetime.datetime.now(datetime.UTC).isoformat()
        columns = "id, workspace, layer, path, filename, title, file_type, content, content_hash, size_bytes, created_at, updated_at"
        with sqlite3.connect(self.home / "state.db") as database:
            for file in sorted(self.workspace.glob("*/**/*.md")):
                path, content = file.relative_to(self.workspace).as_posix(), file.read_text()
                title = next((line[2:] for line in content.splitlines() if line.startswith("# ")), file.stem)
                layer = "wiki" if path.startswith("wiki/") else "raw"
                digest = hashlib.sha256(content.encode()).hexdigest()
                row = (path, WIKI, layer, path, file.name, title, "md", content, digest, len(content.encode()), now, now)
                database.execute(f"INSERT INTO documents ({columns}) VALUES ({', '.join('?' * len(row))})", row)
        database.close()


def run(command, environment):
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=LONGEST_COMMAND)
    if done.returncode:
        raise SystemExit(f"{command} ended with {done.returncode}: {done.stderr[-2000:]}{done.stdout[-1000:]}")
    return done.stdout


def make_their_path(path):
    """Where a file of Steward's wiki lies in the other workspace."""
    if path.startswith("sources/"):
        return "raw/" + path.removeprefix("sources/")
    return "wiki/" + RENAMED.get(path, path)


def translate(text, paths):
    """A page, or the log, in the words of the other layout."""
    numbers = {}
    for label, _ in DEFINITION.findall(text):
        numbers.setdefault(label, len(numbers) + 1)
    text = DEFINITION.sub(lambda found: f"[^{found[1]}]: {make_their_path(paths.get(found[2], found[2]))}", text)
    text = MARK.sub(lambda found: f"[^{numbers.get(found[1], found[1])}]", text)
    return HEADER.sub(r"\1]", text)


def make_log(plan, count):
    """So many entries of a log, each some hours after the one before, the newest last."""
    rng = random.Random(78)
    at = datetime.datetime(2026, 11, 27, tzinfo=datetime.UTC) - datetime.timedelta(hours=5 * count)
    parts = []
    for _ in range(count):
        at += datetime.timedelta(seconds=rng.randint(3_600, 32_400))
        touched = rng.sample(plan, rng.randint(1, 6))
        names = ", ".join(f"[[{page.slug}]]" for page in touched)
        operation = rng.choice(OPERATIONS)
        parts.append(f"\n## [{at:%Y-%m-%dT%H:%M:%SZ}] {operation} | {touched[0].title}\n- touched: {names}\n")
    return "".join(parts)
