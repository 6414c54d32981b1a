"""Makes the wiki of the bench: sources, pages of about 4 KB that quote them and link each other, scripted runs, and faults.

The words are made up, and their frequencies fall as in a language. The same number of pages always gives the same wiki.
"""

import collections
import hashlib
import itertools
import json
import pathlib
import random

WIKI = "wiki/bench"
AT = "2026-11-22T09:15:04Z"
QUOTES = 5
SOURCE_BYTES = 32_000
PAGES_OF_RUN = 15
FOLDERS = {"summary": "summaries", "entity": "entities", "concept": "concepts"}

Source = collections.namedtuple("Source", "id title path sentences text")
Page = collections.namedtuple("Page", "file slug kind title sources")


class Words:
    """A made-up language."""

    def __init__(self, rng):
        self.rng = rng
        self.all = [f"{a}{b}{c}" for a in ("la", "re", "mo", "ti", "su") for b in ("ba", "ne", "ko", "li", "du", "ra") for c in range(400)]
        self.weights = list(itertools.accumulate(1 / (rank + 1) for rank in range(len(self.all))))

    def take(self, count):
        return self.rng.choices(self.all, cum_weights=self.weights, k=count)

    def make_sentence(self):
        return " ".join(self.take(self.rng.randint(8, 18))).capitalize() + "."


def collapse(text):
    return " ".join(text.split())


def make_label(source, quote):
    return "c" + hashlib.sha256(f"{source}\0{quote}".encode()).hexdigest()[:8]


def make_footnote(source, quote):
    return f'[^{make_label(source, quote)}]: {source} — "{quote}"\n'


def wrap(text):
    words = text.split(" ")
    return "\n".join(" ".join(words[at : at + 12]) for at in range(0, len(words), 12))


def make_source(number, words):
    title = f"Letter {number} of {words.rng.choice(words.all)}"
    sentences, size = [], 0
    while size < SOURCE_BYTES:
        sentences.append(words.make_sentence())
        size += len(sentences[-1]) + 1
    parts = [f"# {title}\n"] + [wrap(" ".join(sentences[at : at + 6])) + "\n" for at in range(0, len(sentences), 6)]
    name = f"2026-11-20-letter-{number}"
    return Source(name, title, f"sources/{name}.md", sentences, "\n".join(parts))


def plan_pages(count, sources, words):
    """The pages without their texts: one summary for each source, and entities and concepts. The overview is a page, too."""
    plan = []
    for source in sources:
        plan.append(Page(f"summaries/summary-{source.id}.md", f"summary-{source.id}", "summary", source.title, [source]))
    for number in range(count - 1 - len(sources)):
        kind = "entity" if number % 5 < 2 else "concept"
        title = f"{words.rng.choice(words.all)} {words.rng.choice(words.all)} {number}".capitalize()
        slug = title.lower().replace(" ", "-")
        # The first sources are those of the scripted runs, and no other page cites them before.
        cited = words.rng.sample(sources[len(sources) // 4 :], words.rng.randint(1, 3))
        plan.append(Page(f"{FOLDERS[kind]}/{slug}.md", slug, kind, title, cited))
    return plan


def render_page(page, others, words):
    drawn = [iter(words.rng.sample(source.sentences, QUOTES)) for source in page.sources]
    quotes = [(page.sources[n % len(drawn)].id, next(drawn[n % len(drawn)])) for n in range(QUOTES)]
    sources = [origin.id for origin in page.sources]
    summary = words.make_sentence()[:140].strip()
    # In the form in which Steward writes pages.
    fields = f"schema: knowledge.entry/v1\nslug: {page.slug}\nkind: {page.kind}\ntitle: {page.title}\nsources:\n"
    fields += "".join(f'  - "{source}"\n' for source in sources)
    fields += f'confidence: 0.{words.rng.randint(5, 9)}\nupdated_at: "{AT}"\ntags:\n  - {words.rng.choice(words.all[:40])}\n  - bench\n'
    fields += f"metadata:\n  steward:\n    summary: {summary}\n    aliases:\n      - {page.title} (old)\n"
    marks = [f"[^{make_label(source, quote)}]" for source, quote in quotes]
    links = [f"[[{other.slug}|{other.title}]]" for other in words.rng.sample(others, 4)]
    parts = [f"# {page.title}\n"]
    for number, (_, quote) in enumerate(quotes):
        parts.append(f"{quote} {words.make_sentence()}{marks[number]}\n")
        parts.append(f"## About {' '.join(words.take(2))}\n")
        parts.append("".join(f"- {words.make_sentence()}{words.rng.choice(marks)}\n" for _ in range(3)))
    parts.append(f"{words.make_sentence()} {links[0]}{marks[0]}\n")
    parts.append(f"See also: {', '.join(links[1:])}\n")
    parts.append("".join(make_footnote(source, quote) for source, quote in quotes))
    return f"---\n{fields}---\n" + "\n".join(parts)


def make_wiki(vault, count):
    """Adds sources and pages to a new wiki. Returns them, and the words."""
    words = Words(random.Random(12))
    wiki = vault / WIKI
    sources = [make_source(number, words) for number in range(max(count // 20, 40))]
    plan = plan_pages(count, sources, words)
    for folder in FOLDERS.values():
        (wiki / folder).mkdir()
    for page in plan:
        (wiki / page.file).write_text(render_page(page, plan, words))
    registry = []
    for source in sources:
        (wiki / source.path).write_text(source.text)
        content = "sha256:" + hashlib.sha256(source.text.encode()).hexdigest()
        fields = {"id": source.id, "path": source.path, "title": source.title, "captured_at": AT, "content_hash": content}
        registry.append({"schema": "knowledge.source/v1"} | fields)
    (wiki / "_sources.json").write_text(json.dumps(registry, indent=2) + "\n")
    ingested = {}
    for entry in registry:
        ingested[entry["path"]] = {"contentHash": entry["content_hash"][7:], "slugs": [f"summary-{entry['id']}"]}
    (wiki / "_manifest.json").write_text(json.dumps({"version": 1, "hashAlgo": "sha256", "sources": ingested}) + "\n")
    return sources, plan, words


def extend_page(text, source, quote, words):
    """The page with a further section, a statement in it, and the quote on which it rests."""
    at = text.index("\n[^c") + 1
    section = f"## From {source.title}\n\n{quote} {words.make_sentence()}[^{make_label(source.id, quote)}]\n\n"
    text = text[:at] + section + text[at:] + make_footnote(source.id, quote)
    fields, rest = text.split("\nconfidence: ", 1)
    return text if f'"{source.id}"' in fields else f'{fields}\n  - "{source.id}"\nconfidence: {rest}'


def write_script(vault, sources, plan, words, rounds):
    """Writes the scripted runs. Each ingests one of the first sources into its summary and 14 other pages."""
    registry = json.loads((vault / WIKI / "_sources.json").read_text())
    others = words.rng.sample(plan[len(sources) :], rounds * (PAGES_OF_RUN - 1))
    script = []
    for number in range(rounds):
        source, entry = sources[number], registry[number]
        pages = [plan[number]] + others[number :: rounds]
        changed = {}
        for page in pages:
            text = (vault / WIKI / page.file).read_text()
            quote = next(quote for quote in source.sentences if quote not in text and words.rng.random() < 0.1)
            changed[page.file] = extend_page(text, source, quote, words)
        run = {name: entry[name] for name in ("id", "path", "content_hash")}
        script.append({"source": run, "pages": changed})
    (vault / "script.json").write_text(json.dumps(script))


def swap_line(start, new):
    """Replaces the first line that begins so; without new words, it goes."""

    def change(text, other):
        at = text.index(f"\n{start}") + 1
        return text[:at] + new.format(slug=other.slug, title=other.title) + text[text.index("\n", at) + bool(not new) :]

    return change


def break_quote(text, _):
    """Changes a quote and its label, so that the label fits and the source does not."""
    line = next(line for line in text.splitlines() if line.startswith("[^c"))
    label, source, quote = line[2:11], line[13:].split(" — ", 1)[0], line.split(' — "', 1)[1][:-1]
    changed = quote.replace(" ", " never ", 1)
    return text.replace(quote + '"', changed + '"').replace(label, make_label(source, changed))


FAULTS = [
    (20, lambda text, _: text.replace("[[", "[[no-such-page-", 1)),
    (10, lambda text, _: text.replace(' — "', ' — "Never ', 1)),
    (10, break_quote),
    (10, swap_line("[^c", "")),
    (5, swap_line("title:", "title: {title}")),
    (5, swap_line("slug:", "slug: {slug}")),
    (5, swap_line("confidence:", "confidence: 1.5")),
    (5, swap_line("updated_at:", "updated_at: yesterday")),
    (5, swap_line("updated_at:", "")),
    (5, swap_line("tags:", "tags: [Not a tag]")),
    (5, swap_line("kind:", "kind: Concept\ncolour: red")),
    (5, swap_line("slug:", "slug: 12-{slug}")),
]


def plant_faults(wiki: pathlib.Path, plan, rng):
    """Damages pages, each in one way."""
    victims = iter(rng.sample(plan, 2 * sum(count for count, _ in FAULTS)))
    for count, damage in FAULTS:
        for _ in range(count):
            file, other = wiki / next(victims).file, next(victims)
            file.write_text(damage(file.read_text(), other))
