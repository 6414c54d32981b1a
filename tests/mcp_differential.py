"""Asks Steward and alexandria-wiki the same questions about the same facts, and compares what they answer.

    python3 tests/mcp_differential.py STEWARD PACKAGES [SEED]

STEWARD is the binary, and PACKAGES the folder with alexandria-wiki and its packages. One wiki is written in both layouts, see
`mcp_bench/layouts.py`. 200 questions are drawn from the seed: which files a glob finds, in which lines a pattern stands, the bytes of
one file, the source to which a footnote leads, the dates and operations of the log, and the commits of a clone. Quotes are checked with `hashlib` instead,
and both servers must refuse each path that leaves the wiki. `KNOWN` lists the differences that are meant, with reasons.

Files are read under the caps of both. Steward gives parts of at most `max_tokens`, here few, the default and the most, and all parts
together must be the file. alexandria gives one file whole, and by a glob its first 120,000 characters, which must be ours.
Only Steward has tools that take a path to write or to delete. For each path that leaves the wiki they must refuse, and change no file.

The exit code is 1 if there is any other. At the end one fact of each kind is damaged in one layout, and each check must notice.
"""

import collections
import fnmatch
import hashlib
import itertools
import json
import pathlib
import random
import re
import shutil
import signal
import sys
import tempfile

from mcp_bench import client, layouts
from wiki_bench import pages

PAGES, ENTRIES = 300, 90
COUNTS = {"list": 48, "grep": 48, "read": 38, "follow": 38, "history": 18, "git_log": 10}
COMMITS = 40
# The clone of a wiki lies where its owner says. In the other layout it lies among the sources.
CLONE, THEIR_CLONE = "infra", "raw/git/infra"
# Sources are small, so that a run takes less than a minute. One is longer than a single answer.
SOURCE_BYTES, LONG_SOURCE = 6_000, 150_000
# Steward's caps of a read in tokens; without one it takes 6,000. No text here has tokens of more bytes on average.
OUR_CAPS, DEFAULT_CAP, MOST_BYTES_OF_TOKEN = (500, None, 20_000), 6_000, 8
# alexandria's cap of a read by a glob, in characters, and what it adds to what it cuts.
THEIR_CAP, THEIR_CUT = 120_000, "\n\n... (truncated)"
LONG_FILE = "raw/long.md"
FENCE = re.compile(r"⟦data ([0-9a-f]{12}) [^\n]*⟧\n(.*)\n⟦end \1⟧", re.DOTALL)
FILE_LINE = re.compile(r"sha256 ([0-9a-f]{64}), (\d+) bytes, live(?:, goes on at offset (\d+))?$", re.MULTILINE)
# Steward's `grep` finds at most so many lines. If there are more, both must say so.
MOST_LINES, MANY = 200, "more lines"
# Why Steward refuses to write at a path.
PATH_CODES = {"path_not_wiki", "raw_is_read_only", "escapes_workspace", "is_a_link", "folder_too_deep", "kind_unknown", "not_found"}
CANARY = "canary-4711-outside-of-the-wiki"
# How the subjects of some entries begin whose type Steward reads as another.
ARCHIVED = "Archived: "
OUTSIDE_PAGE = f"# Outside\n\n{CANARY}.[^1]\n\n[^1]: raw/2026-11-20-letter-1.md — \"{CANARY}\"\n"

# What each question asks, and how the answers of both become comparable.
Question = collections.namedtuple("Question", "kind shown ours theirs")
# One thing that one side says and the other does not.
Difference = collections.namedtuple("Difference", "kind shown side item")
Known = collections.namedtuple("Known", "name reason fits")

THEIR_FILES = {"SKILL.md", "identity.md", "config.toml"}


def is_own_file(side, path):
    if side == "ours":
        return path.removeprefix("wiki/") in layouts.OWN_FILES
    return path in THEIR_FILES or path.startswith(THEIR_CLONE)


def is_deeper(difference):
    """Whether the glob of the question finds the file only if its `*` crosses folders, or by its name alone."""
    glob, path = difference.shown["path"], difference.item
    return "**" not in glob and glob.count("/") < path.count("/") and (fnmatch.fnmatch(path, glob) or fnmatch.fnmatch(path.rsplit("/", 1)[-1], glob))


def is_link_in_list(difference):
    links = ("raw/link.md", "wiki/concepts/link.md")
    if difference.kind == "escape":
        return difference.shown["tool"] == "list" and difference.shown["path"] in links and difference.item == "answers"
    return difference.kind == "list" and difference.item in links


KNOWN = [
    Known(
        "own-files",
        "Each keeps files of its own beside the pages: schema, manifest and registry here, contract, configuration and clones there.",
        lambda d: d.kind in ("list", "grep") and is_own_file(d.side, get_path(d.item)),
    ),
    Known(
        "folders-listed",
        "alexandria lists folders, too. Here `overview` shows them.",
        lambda d: d.kind == "list" and d.side == "theirs" and d.item.endswith("/"),
    ),
    Known(
        "links-listed",
        "alexandria lists symbolic links. Here they are not files of the wiki.",
        lambda d: d.side == "theirs" and is_link_in_list(d),
    ),
    Known(
        "star-in-folder",
        "Here `*` stays in a folder, as in a shell, and only `**` goes deeper. There `*` crosses folders, and a name alone is enough.",
        lambda d: d.kind == "list" and d.side == "theirs" and not d.item.endswith("/") and is_deeper(d),
    ),
    Known(
        "classes",
        "Here a glob has `*`, `**` and `?`. There it also has classes such as `[0-4]`.",
        lambda d: d.kind == "list" and d.side == "theirs" and "[" in d.shown["path"],
    ),
    Known(
        "newlines",
        "alexandria reads CR LF as LF. Here a read is exact.",
        lambda d: d.kind == "read" and d.shown["path"] == "raw/crlf.txt",
    ),
    Known(
        "other-types",
        "alexandria takes any type of entry. Here an archive is an entry of the type query.",
        lambda d: d.kind == "history" and d.item[1] in ("archive", "query") and d.item[2].startswith(ARCHIVED),
    ),
    Known(
        "case-of-commits",
        "Here the words of a message are found in any case, there only as they are written.",
        lambda d: d.kind == "git_log" and d.side == "ours" and "grep" in d.shown and d.shown["grep"] not in d.item[3],
    ),
    Known(
        "page-outside",
        "alexandria follows a footnote of a page outside of the workspace, or shows what such a page has.",
        lambda d: d.kind == "escape" and d.side == "theirs" and d.shown["tool"] == "follow" and d.item == "answers",
    ),
    Known(
        "link-searched",
        "alexandria searches what is behind a symbolic link, and so shows words from outside.",
        lambda d: d.kind == "escape" and d.side == "theirs" and d.shown["tool"] == "grep",
    ),
]


def get_path(item):
    return item[0] if isinstance(item, tuple) else item


class Facts:
    """Writes both layouts, with things at the edges: other line ends, no end of line, links to the outside, a long source."""

    def __init__(self, steward, packages, folder):
        pages.SOURCE_BYTES = SOURCE_BYTES
        self.layouts = layouts.Layouts(steward, packages, folder)
        self.layouts.begin_ours(PAGES, ENTRIES)
        self.write_edges(self.layouts.wiki / "sources", self.layouts.words)
        log = self.layouts.wiki / "_log.md"
        log.write_text(log.read_text().replace("] query | ", f"] archive | {ARCHIVED}", 5))
        self.layouts.write_theirs()
        self.outside = pathlib.Path(folder) / "outside.md"
        self.outside.write_text(OUTSIDE_PAGE)
        for root, raw in ((self.layouts.wiki, "sources"), (self.layouts.workspace, "raw")):
            (root / raw / "link.md").symlink_to(self.outside)
            page_root = root if raw == "sources" else root / "wiki"
            (page_root / "concepts/link.md").symlink_to(self.outside)
        self.files = sorted(
            layouts.make_their_path(file.relative_to(self.layouts.wiki).as_posix())
            for file in self.layouts.wiki.rglob("*.*")
            if file.is_file() and not file.is_symlink() and file.name not in layouts.OWN_FILES
        )
        self.footnotes = self.read_footnotes()
        self.write_commits(pathlib.Path(folder) / "infra", random.Random(6))

    def write_edges(self, sources, words):
        sentences = [words.make_sentence() for _ in range(30)]
        (sources / "crlf.txt").write_bytes("\r\n".join(sentences).encode() + b"\r\n")
        (sources / "no-end.txt").write_text("\n".join(sentences[:5]))
        (sources / "ends-in-blank-lines.txt").write_text("\n\n".join(sentences[:5]) + "\n\n\n")
        (sources / "accents.md").write_text(f"# Größe ‘naïve’ 東京 🌱\n\n{sentences[0]} Ünïcode ﬁn.\n")
        (sources / "table.csv").write_text("name,count\n" + "".join(f"{word},{at}\n" for at, word in enumerate(words.take(20))))
        (sources / "fences.md").write_text("# Fences\n\n```\n---\n**x** (1 bytes)\n```\n\n`[[a]]` <b>&amp;</b>\n")
        long = "".join(f"{words.make_sentence()}\n" for _ in range(2_000))
        (sources / "long.md").write_text(long[:LONG_SOURCE] + "\n")

    def write_commits(self, clone, rng):
        """A small history, which is configured here and copied there."""
        words = self.layouts.words
        layouts.run(["git", "init", "--quiet", str(clone)], self.layouts.ours)
        self.subjects = []
        for number in range(COMMITS):
            file = f"{rng.choice(['auth', 'water', 'plots/north'])}.tf"
            (clone / file).parent.mkdir(exist_ok=True)
            with open(clone / file, "a", encoding="utf-8") as opened:
                opened.write(f"{words.make_sentence()}\n")
            self.subjects.append(f"{words.make_sentence()[:60]} #{number}")
            name, at = rng.choice(["Ada", "Grace Ö."]), f"2026-10-{number % 28 + 1:02}T{number % 24:02}:00:00+0{number % 3}:00"
            about = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (("NAME", name), ("EMAIL", "a@b.example"), ("DATE", at))}
            git = ["git", "-C", str(clone), "-c", "commit.gpgsign=false"]
            layouts.run([*git, "add", "."], self.layouts.ours)
            layouts.run([*git, "commit", "--quiet", "--message", f"{self.subjects[-1]}\n\nBecause of {words.take(1)[0]}."], self.layouts.ours | about)
        target = self.layouts.workspace / THEIR_CLONE
        shutil.copytree(clone, target)
        configured = pathlib.Path(self.layouts.folder) / "steward.toml"
        configured.write_text(f"[wiki.{layouts.WIKI}.clones]\n{CLONE} = {json.dumps(str(clone))}\n")
        self.layouts.ours["STEWARD_CONFIG"] = str(configured)

    def read_footnotes(self):
        """For each page: its path, and of each footnote the number, the label, the path of the source and the quote.

        The number is the label there. Here a footnote has the number of its first mark in the text, see `self.marks`."""
        registry = json.loads((self.layouts.wiki / "_sources.json").read_text())
        paths = {entry["id"]: layouts.make_their_path(entry["path"]) for entry in registry}
        found, self.marks = [], {}
        for page in self.layouts.plan:
            text = (self.layouts.wiki / page.file).read_text()
            for label in re.findall(r"\[\^(c[0-9a-f]{8})\](?!:)", text):
                numbers = self.marks.setdefault(f"wiki/{page.file}", {})
                numbers.setdefault(label, str(len(numbers) + 1))
            notes = re.findall(r'^\[\^(c[0-9a-f]{8})\]: (\S+) — "(.*)"$', text, re.MULTILINE)
            for number, (label, source, quote) in enumerate(notes, 1):
                found.append((f"wiki/{page.file}", str(number), label, paths[source], quote))
        return found


def draw_questions(facts, rng):
    questions = []
    for kind, count in COUNTS.items():
        fixed = [make_read(LONG_FILE, LONG_FILE, *caps) for caps in itertools.product(OUR_CAPS, (False, True))] if kind == "read" else []
        questions += fixed + [DRAW[kind](facts, rng) for _ in range(count - len(fixed))]
    return questions


def draw_list(facts, rng):
    letter, folder = rng.choice("lmrst"), rng.choice(["summaries", "entities", "concepts"])
    globs = [f"wiki/{folder}/*", f"wiki/{folder}/{letter}*", f"wiki/{folder}/*{rng.randint(0, 99)}.md", f"wiki/{folder}/*-{letter}*-*.md"]
    globs += ["raw/*", f"raw/*letter-{rng.randint(1, 3)}*", "raw/**", "wiki/**", "**", "*.md", "wiki/*", f"**/{letter}*"]
    globs += [rng.choice(facts.files), "raw/*.txt", "no/such/*", f"wiki/{folder}/{letter}?????-*.md", "raw/2026-11-20-letter-[0-4].md"]
    path = rng.choice(globs)
    return Question("list", {"path": path}, {"path": path}, {"path": path, "limit": 100_000})


def draw_grep(facts, rng):
    words = rng.sample(facts.layouts.words.all[300:], 3)
    patterns = [rf"\b{words[0]}\b", f"{words[0]}|{words[1]}", rf"^{words[0].capitalize()}", rf"{words[0]}\.", rf"{words[0]} \w+"]
    patterns += [rf"^# \w+ {words[0]}", rf"{words[0][:-1]}[0-4]\b", rf"(?:{words[0]}|{words[1]}|{words[2]}) [a-m]", "Größe|naïve", "🌱", "no-such-word"]
    arguments = {"pattern": rng.choice(patterns), "ignore_case": rng.random() < 0.3}
    if rng.random() < 0.5:
        arguments["path"] = rng.choice(["wiki/**", "raw/**", "wiki/concepts/**", "wiki/summaries/**"])
    return Question("grep", arguments, arguments | {"limit": MOST_LINES}, arguments | {"limit": MOST_LINES + 1})


def draw_read(facts, rng):
    edges = [path for path in facts.files if not path.startswith("raw/2026") and path.count("/") == 1]
    path = rng.choice(edges if rng.random() < 0.3 else facts.files)
    return make_read(path, rng.choice(["", "/"]) + path, rng.choice(OUR_CAPS), rng.random() < 0.3)


def make_read(path, asked, tokens, by_glob):
    """One file, under one cap of each side. The glob finds this file alone."""
    shown = {"path": path, "max_tokens": tokens, "by_glob": by_glob}
    theirs = path[:-1] + "?" if by_glob else asked
    return Question("read", shown, {"path": asked} | ({"max_tokens": tokens} if tokens else {}), {"path": theirs})


def draw_follow(facts, rng):
    page, number, label, _, _ = rng.choice(facts.footnotes)
    if rng.random() < 0.1:
        number = label = "99"
    ours = {"from_page": page, "footnote_id": rng.choice([facts.marks[page].get(label, number), label])}
    return Question("follow", {"page": page, "number": number}, ours, {"wiki_page": page, "footnote_id": number})


def draw_history(_, rng):
    arguments = {}
    if rng.random() < 0.7:
        arguments["op"] = rng.choice(["ingest", "query", "lint", "manual"])
    if rng.random() < 0.7:
        arguments["since"] = f"2026-11-{rng.randint(1, 28):02}"
    return Question("history", arguments, arguments | {"limit": 200}, arguments | {"limit": 100_000})


def draw_git_log(facts, rng):
    ours, theirs = {"limit": rng.choice([5, 200])}, {}
    theirs["max_count"] = ours["limit"]
    if rng.random() < 0.5:
        ours["grep"] = theirs["grep"] = rng.choice(facts.subjects).split()[1].rstrip(".")
    elif rng.random() < 0.7:
        ours["path"] = theirs["path_filter"] = rng.choice(["auth.tf", "water.tf", "plots", "no-such-file"])
    return Question("git_log", ours, ours, theirs)


DRAW = {"list": draw_list, "grep": draw_grep, "read": draw_read, "follow": draw_follow, "history": draw_history, "git_log": draw_git_log}


def take_from_ours(kind, server, question, layout):
    """What Steward answers, as a set or as bytes. Lists and long files are read to their end."""
    if kind == "read":
        content = take_bytes(server, question.ours, layout)
        return {content.decode()[:THEIR_CAP].encode() if question.shown["by_glob"] else content}
    answer = server.call(kind, **question.ours)
    if kind == "follow":
        return set_if("no_footnote" in answer.text, "no footnote") if answer.is_error else {answer.structured["path"]}
    if answer.is_error:
        raise client.Failure(f"{kind} {question.ours}: {answer.text[:300]}")
    if kind == "grep":
        return {MANY} if answer.structured["truncated"] else {(hit["path"], hit["line"]) for hit in answer.structured["hits"]}
    if kind == "git_log":
        commits = take_rows(kind, server, question, answer, "commits")
        return {(commit["sha"][:8], commit["at"][:10], commit["author"], commit["subject"]) for commit in commits}
    if kind == "history":
        entries = take_rows(kind, server, question, answer, "entries")
        return collections.Counter((entry["at"][:10], entry["op"], entry["title"]) for entry in entries)
    found = {entry["path"] for entry in take_rows(kind, server, question, answer, "entries")}
    if len(found) != answer.structured["total"]:
        raise client.Failure(f"{question.ours}: {len(found)} of {answer.structured['total']} files")
    return found


def take_rows(kind, server, question, answer, name):
    """The rows of a list to its end. A `limit` counts for all answers together."""
    rows, most = answer.structured[name], question.ours.get("limit", 100_000)
    while (cursor := answer.structured.get("cursor")) and len(rows) < most:
        answer = server.call(kind, **question.ours, cursor=cursor)
        rows = rows + answer.structured[name]
    return rows[:most]


def set_if(condition, item):
    return {item} if condition else set()


def take_bytes(server, arguments, layout):
    """Reads a file to its end, in parts. Its hash must be that of the bytes."""
    parts, offset = [], 0
    while offset is not None:
        answer = server.call("read", **arguments, offset=offset)
        line, fence = FILE_LINE.search(answer.text), FENCE.search(answer.text)
        if answer.is_error or not line:
            raise client.Failure(f"read {arguments}: {answer.text[:300]}")
        size, following = int(line[2]), line[3] and int(line[3])
        if (following or size) - offset > arguments.get("max_tokens", DEFAULT_CAP) * MOST_BYTES_OF_TOKEN:
            raise client.Failure(f"read {arguments}: a part of {(following or size) - offset} bytes is longer than its cap")
        # A line end stands before the closing mark, whether the text has one or not.
        body = (fence[2] + "\n").encode() if fence else b""
        parts.append(body[: (following or size) - offset])
        offset = following
    content = b"".join(parts)
    if hashlib.sha256(content).hexdigest() != line[1]:
        raise client.Failure(f"read {arguments}: the bytes do not have the hash that is shown")
    path = arguments["path"].lstrip("/")
    if path.startswith("wiki/"):
        content = layouts.translate(content.decode(), layout.source_paths).encode()
    return content


def take_from_theirs(kind, server, question):
    text = server.call(kind, **question.theirs).text
    if kind == "list":
        found = re.findall(r"^  (.+?)(?:  \(\d+ bytes, ~\d+ tokens\))?$", text, re.MULTILINE)
        return set(found) if not text.startswith("No files") else set()
    if kind == "grep":
        found = {(path, int(line)) for path, line in re.findall(r"^\*\*(.+?):(\d+)\*\* — ", text, re.MULTILINE)}
        return {MANY} if len(found) > MOST_LINES else found
    if kind == "read" and question.shown["by_glob"]:
        head, _, body = text.partition(f"\n\n---\n\n### {question.shown['path']}\n\n")
        if not head.startswith("**1 file(s)**"):
            raise client.Failure(f"read {question.theirs}: {text[:300]}")
        return {body.removesuffix(THEIR_CUT).encode()}
    if kind == "read":
        head, _, body = text.partition("\n---\n\n")
        if not head.startswith(f"**{question.theirs['path']}**"):
            raise client.Failure(f"read {question.theirs}: {text[:300]}")
        return {body.encode()}
    if kind == "follow":
        return set(re.findall(r"^\*\*Resolved to\*\*: `(.+)`$", text, re.MULTILINE)) | set_if("not found in" in text, "no footnote")
    if kind == "git_log":
        return set(re.findall(r"^  ([0-9a-f]{8}) (\d{4}-\d\d-\d\d) (.+)\n    (.+)$", text, re.MULTILINE))
    found = re.findall(r"^- \*\*\[(\d{4}-\d\d-\d\d)[^\]]*\]\*\* `(\w+)` \| +(.*)$", text, re.MULTILINE)
    return collections.Counter(found)


def compare_answers(question, ours, theirs):
    """Each thing that only one side has. Bytes are compared as a whole."""
    if question.kind == "read" and ours != theirs:
        mine, other = next(iter(ours)), next(iter(theirs))
        at = next((at for at, (a, b) in enumerate(zip(mine, other)) if a != b), min(len(mine), len(other)))
        item = f"{len(mine)} and {len(other)} bytes; at {at} {mine[at : at + 30]} and {other[at : at + 30]}"
        return [Difference("read", question.shown, "both", item)]
    found = [Difference(question.kind, question.shown, "ours", item) for item in sorted(ours - theirs)]
    return found + [Difference(question.kind, question.shown, "theirs", item) for item in sorted(theirs - ours)]


class Servers:
    """Both servers, for as long as the questions last."""

    def __init__(self, facts):
        self.facts = facts
        self.clients = {side: client.StdioClient(*start) for side, start in facts.layouts.make_stdio_commands().items()}
        for one in self.clients.values():
            one.begin_session()

    def close(self):
        for one in self.clients.values():
            one.__exit__()

    def check_all(self, questions):
        return self.ask(questions) + self.check_quotes(questions) + self.check_escapes() + self.check_writes()

    def ask(self, questions):
        found = []
        for question in questions:
            try:
                ours = take_from_ours(question.kind, self.clients["ours"], question, self.facts.layouts)
                theirs = take_from_theirs(question.kind, self.clients["theirs"], question)
            except client.Failure as failure:
                found.append(Difference(question.kind, question.shown, "both", str(failure)))
                continue
            found += compare_answers(question, ours, theirs)
        return found

    def check_quotes(self, questions):
        """Steward's quotes against the sources, with `hashlib`. alexandria checks no quote when it follows a footnote."""
        facts, found = {(note[0], note[1]): note for note in self.facts.footnotes}, []
        for question in questions:
            note = facts.get((question.shown["page"], question.shown["number"])) if question.kind == "follow" else None
            if note is None:
                continue
            answer = self.clients["ours"].call("follow", **question.ours)
            if answer.is_error:
                found.append(Difference("quote", question.shown, "ours", answer.text))
                continue
            # A quote is the source's own words, whatever blanks and line ends stand between them.
            text = (self.facts.layouts.workspace / note[3]).read_bytes()
            place = re.search(rb"\s+".join(map(re.escape, note[4].encode().split())), text)
            expected = {"quote": note[4], "verified": "ok", "offset": place.start()}
            expected["quote_sha256"] = hashlib.sha256(place[0]).hexdigest()
            shown = answer.structured
            for name, value in expected.items():
                if shown.get(name) != value:
                    found.append(Difference("quote", question.shown, "ours", f"{name} is {shown.get(name)}, not {value}"))
        return found

    def make_paths_outside(self):
        outside = str(self.facts.outside)
        paths = [outside, "../" * 3 + "outside.md", "wiki/../../../../outside.md", "raw/../../../../outside.md", "wiki/concepts/../../../../../outside.md"]
        paths += ["raw/link.md", "wiki/concepts/link.md", "/etc/hostname", "....//....//outside.md", "raw/%2e%2e/%2e%2e/%2e%2e/outside.md"]
        paths += ["wiki\\..\\..\\outside.md", "raw/./../../../outside.md", "wiki/\u2025/outside.md", f"file://{outside}", "~/outside.md"]
        return paths

    def check_escapes(self):
        """Each path that leaves the wiki is refused, and nothing from outside is shown."""
        found = []
        for path in self.make_paths_outside():
            for tool, arguments in self.make_escapes(path):
                for side, answer in self.ask_both(tool, *arguments):
                    shown = {"tool": tool, "path": path}
                    if CANARY in answer.text.replace(path, ""):
                        found.append(Difference("escape", shown, side, "shows words from outside"))
                    elif not is_refused(tool, side, answer):
                        found.append(Difference("escape", shown, side, "answers"))
        return found

    def check_writes(self):
        """No path that leaves the wiki can be written or deleted: the call is refused because of its path, and no file changes."""
        found, before = [], self.hash_files()
        theirs = {tool["name"] for tool in self.clients["theirs"].request("tools/list")["tools"]} & {"write", "delete"}
        if theirs:
            found.append(Difference("write", {"tools": sorted(theirs)}, "theirs", "has a tool of this name, which is not compared"))
        for path in self.make_paths_outside():
            for tool, arguments in self.make_writes(path):
                answer, shown = self.clients["ours"].call(tool, path=path, **arguments), {"tool": tool, "path": path}
                code = answer.meta.get("io.steward/error", {}).get("code")
                if CANARY in answer.text.replace(path, ""):
                    found.append(Difference("write", shown, "ours", "shows words from outside"))
                elif not answer.is_error or code not in PATH_CODES:
                    found.append(Difference("write", shown, "ours", f"is answered by {code or 'a result'}: {answer.text[:200]}"))
        changed = sorted(str(path) for path, _ in before ^ self.hash_files())
        return found + [Difference("write", {"path": path}, "ours", "changed") for path in changed]

    def make_writes(self, path):
        _, _, _, source, quote = self.facts.footnotes[0]
        text = f"{quote}[^1]\n\n[^1]: {source} — \"{quote}\"\n"
        yield "write", {"op": "create", "content": f"---\ntitle: Outside\nkind: concept\n---\n{text}"}
        yield "write", {"op": "append", "content": f"\n{text}"}
        yield "write", {"op": "str_replace", "old_text": "# Outside", "new_text": "# Inside"}
        yield "delete", {"reason": "a test"}

    def hash_files(self):
        """Each file of the wiki, of the staged runs and of the folder outside, with its hash. A link is what it leads to."""
        runs = self.facts.layouts.vault / ".steward/runs"
        files = [self.facts.outside, *(file for folder in (self.facts.layouts.wiki, runs) for file in folder.rglob("*") if file.is_file())]
        return {(file, hashlib.sha256(file.read_bytes()).hexdigest()) for file in files}

    def make_escapes(self, path):
        glob = path.rsplit("/", 1)[0] + "/*"
        yield "read", ({"path": path}, {"path": path})
        yield "list", ({"path": path}, {"path": path})
        yield "grep", ({"pattern": "canary", "path": glob}, {"pattern": "canary", "path": glob})
        yield "follow", ({"from_page": path, "footnote_id": "1"}, {"wiki_page": path, "footnote_id": "1"})

    def ask_both(self, tool, ours, theirs):
        yield "ours", self.clients["ours"].call(tool, **ours)
        yield "theirs", self.clients["theirs"].call(tool, **theirs)


def is_refused(tool, side, answer):
    """Whether an answer is an error or holds nothing. alexandria says both in words."""
    if answer.is_error:
        return True
    if side == "ours":
        return tool in ("list", "grep") and not answer.structured.get("entries") and not answer.structured.get("hits")
    return answer.text.startswith(("File not found", "error", "Error", "No files", "No matches", "Wiki page not found"))


def report(differences):
    """Counts what is known, and prints the rest."""
    used, unknown = collections.Counter(), []
    for difference in differences:
        name = next((known.name for known in KNOWN if known.fits(difference)), None)
        used[name] += name is not None
        if name is None:
            unknown.append(difference)
    return used, unknown


def damage(facts, rng, questions):
    """Changes one fact of each kind in one layout alone. Each is one that a question asks for."""
    ours, theirs = facts.layouts.wiki, facts.layouts.workspace
    (theirs / "wiki/concepts/added.md").write_text("# Added\n")
    git = ["git", "-C", str(theirs / THEIR_CLONE), "-c", "user.name=a", "-c", "user.email=a@b.example"]
    layouts.run([*git, "commit", "--quiet", "--amend", "--message", "Another subject"], facts.layouts.ours)
    log = theirs / "wiki/log.md"
    log.write_text(log.read_text().replace("] ingest |", "] manual |", 3))
    for file in rng.sample(sorted((theirs / "wiki/summaries").iterdir()), 20):
        file.write_text("A line more.\n" + file.read_text())
    read = next(question.shown["path"] for question in questions if question.kind == "read" and question.shown["path"].startswith("raw/2026"))
    (theirs / read).write_text((theirs / read).read_text().replace("a", "b", 1))
    notes = [question.shown for question in questions if question.kind == "follow" and question.shown["number"] != "99"]
    page, number = theirs / notes[0]["page"], notes[0]["number"]
    page.write_text(re.sub(rf"^\[\^{number}\]: \S+", f"[^{number}]: raw/accents.md", page.read_text(), flags=re.MULTILINE))
    note = next(note for note in facts.footnotes if (note[0], note[1]) == (notes[-1]["page"], notes[-1]["number"]))
    source = ours / note[3].replace("raw/", "sources/", 1)
    source.write_text(source.read_text().replace(note[4].split()[0], "Never", 1_000))
    (ours / "sources/link.md").unlink()
    (ours / "sources/link.md").write_text(OUTSIDE_PAGE)
    (ours / "concepts/link.md").unlink()
    shutil.copy(ours / "concepts" / sorted(file.name for file in (ours / "concepts").iterdir())[0], ours / "concepts/link.md")


def main():
    # A run that is ended takes its servers with it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 56
    with tempfile.TemporaryDirectory() as folder:
        facts, rng = Facts(sys.argv[1], sys.argv[2], folder), random.Random(seed)
        registry = json.loads((facts.layouts.wiki / "_sources.json").read_text())
        facts.layouts.source_paths = {entry["id"]: entry["path"] for entry in registry}
        questions, servers = draw_questions(facts, rng), Servers(facts)
        try:
            used, unknown = report(servers.check_all(questions))
            damage(facts, rng, questions)
            _, noticed = report(servers.check_all(questions))
        finally:
            servers.close()
    print(f"{len(questions)} questions with the seed {seed}: {len(unknown)} differences that are not known")
    for known in KNOWN:
        print(f"known: {known.name}, {used[known.name] or 'not one'} found: {known.reason}")
    for difference in unknown[:40]:
        print(f"DIFFERENCE {difference.kind} {difference.shown}: {difference.side}: {str(difference.item)[:400]}")
    new = {difference.kind for difference in noticed if difference not in unknown}
    blind = {*COUNTS, "quote", "escape", "write"} - new
    print(f"after the damage, noticed by: {', '.join(sorted(new))}" + (f"; BLIND: {', '.join(sorted(blind))}" if blind else ""))
    return 1 if unknown or blind else 0


if __name__ == "__main__":
    sys.exit(main())
