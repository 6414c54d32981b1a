"""Does the work of one operation in plain Python, once, and prints the milliseconds as a JSON object.

    python3 tests/wiki_bench/baselines.py OPERATION VAULT [FILE [NUMBER]]

FILE is the list of queries, or the script of the runs, of which NUMBER is done. The packages are in PYTHONPATH: PyYAML, rank_bm25 and
jsonschema. Fields are parsed with `yaml.safe_load`; the operation `yaml` shows how long that takes, and how long libyaml would.
"""

import collections
import hashlib
import json
import pathlib
import re
import statistics
import sys
import time

import yaml

import pages

KINDS = "entity concept summary comparison timeline connection insight qa archive lint overview".split()
HEADINGS = pages.FOLDERS | {"overview": "overview"}
LINK = re.compile(r"\[\[([^\]|]+)(?:\|[^\]]*)?\]\]")
MARK = re.compile(r"\[\^(c[0-9a-f]{8})\](?!:)")
FOOTNOTE = re.compile(r'^\[\^(c[0-9a-f]{8})\]: (\S+) — "(.*)"$', re.MULTILINE)
TEXT = {"type": "string"}
WORD = {"type": "string", "pattern": "^[a-z][a-z0-9-]*$"}
SLUG = {"type": "string", "pattern": "^[a-z][a-z0-9-]*[a-z0-9]$"}
SOURCE = {"type": "string", "pattern": "^[a-z0-9][a-z0-9-]*$", "minLength": 2, "maxLength": 96}

# The page of the published standard: `knowledge.entry/v1`.
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "additionalProperties": False,
    "required": ["schema", "slug", "kind", "title", "updated_at"],
    "properties": {
        "schema": {"const": "knowledge.entry/v1"},
        "slug": SLUG | {"minLength": 2, "maxLength": 96},
        "kind": WORD | {"minLength": 2, "maxLength": 32},
        "title": TEXT | {"minLength": 1, "maxLength": 200},
        "sources": {"type": "array", "items": SOURCE},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "updated_at": TEXT | {"format": "date-time"},
        "supersedes": {"type": "array", "items": SLUG},
        "contradicts": {"type": "array", "items": SLUG},
        "links": {"type": "array", "items": SLUG},
        "tags": {"type": "array", "items": WORD},
        "metadata": {"type": "object"},
    },
}


def list_files(wiki):
    def is_page(file):
        first = file.relative_to(wiki).parts[0]
        return not first.startswith(("_", ".", "sources")) and first not in ("KNOWLEDGE.md", "AGENTS.md")

    return sorted(filter(is_page, wiki.rglob("*.md")))


def split_page(file):
    _, fields, body = file.read_text().split("---\n", 2)
    return fields, body


def read_pages(wiki):
    """Pairs of a page's fields, with its file, and its body."""
    read = []
    for file in list_files(wiki):
        text, body = split_page(file)
        read.append((yaml.safe_load(text) | {"file": str(file.relative_to(wiki))}, body))
    return read


def read_words(text):
    return re.findall(r"[a-z0-9]+", text.lower())


def list_words(fields, body):
    return read_words(f"{fields['title']} {' '.join(fields['tags'])} {fields['metadata']['steward']['summary']} {body}")


def build_index(wiki):
    """Full text and links of all pages, as a program without an index of its own would make them anew."""
    from rank_bm25 import BM25Okapi

    read = [(fields, body) for fields, body in read_pages(wiki) if fields["kind"] != "overview"]
    links = {fields["slug"]: LINK.findall(body) for fields, body in read}
    return BM25Okapi([list_words(fields, body) for fields, body in read], k1=1.2, b=0.75, epsilon=0), links


def read_words_of_pages(wiki):
    """Slugs and words of all pages. The few fields that count are cut out, without a parser."""
    slugs, texts = [], []
    for file in list_files(wiki):
        fields, body = split_page(file)
        if file.parent != wiki:
            head = [re.search(form, fields).group(1) for form in (r"title: (.*)", r"tags: \[(.*)\]", r'summary: "([^"]*)"')]
            slugs.append(file.stem)
            texts.append(read_words(f"{' '.join(head)} {body}"))
    return slugs, texts


def search(wiki, queries):
    """One search that begins with the files, then all searches in the memory. Returns the ten best pages of each as well."""
    from rank_bm25 import BM25Okapi

    begin = time.perf_counter()
    slugs, texts = read_words_of_pages(wiki)
    index = BM25Okapi(texts, k1=1.2, b=0.75, epsilon=0)
    index.get_scores(read_words(queries[0]))
    whole, times, found = (time.perf_counter() - begin) * 1_000, [], []
    for query in queries:
        tokens = sorted(set(read_words(query)))
        begin = time.perf_counter()
        scores = index.get_scores(tokens)
        times.append((time.perf_counter() - begin) * 1_000)
        best = sorted(((-score, slug) for score, slug in zip(scores.tolist(), slugs) if score > 0))[:10]
        found.append([(slug, -score) for score, slug in best])
    return {"whole_ms": whole, "scores_ms": statistics.median(times), "found": found}


def render_index(title, read):
    groups = collections.defaultdict(list)
    for fields, _ in read:
        groups[fields["kind"]].append(fields)
    lines = [f"# Index: {title}"]
    for kind in sorted(groups, key=lambda kind: (KINDS.index(kind) if kind in KINDS else len(KINDS), kind)):
        lines.append(f"## {HEADINGS.get(kind, kind).capitalize()}")
        for page in sorted(groups[kind], key=lambda page: (page["title"].lower(), page["slug"])):
            summary = page["metadata"]["steward"]["summary"]
            lines.append(f"- [[{page['slug']}|{page['title']}]] `{kind}` — {summary}")
    return "\n".join(lines) + "\n"


def ingest(wiki, run):
    """Writes the pages of a run and renders the index from all pages. Returns whether it is the index that stands there."""
    for file, text in run["pages"].items():
        (wiki / file).write_text(text)
    index = render_index("Bench", read_pages(wiki))
    is_same = (wiki / "_index.md").read_text() == index
    (wiki / "_index.md").write_text(index)
    return is_same


def check_names(read, report):
    slugs, titles = {}, {}
    for fields, _ in read:
        if fields["slug"].lower() in slugs:
            report("duplicate_id", fields["file"])
        slugs[fields["slug"].lower()] = fields["file"]
        for title in [fields["title"], *fields["metadata"]["steward"].get("aliases", [])]:
            if titles.setdefault(title.lower(), fields["file"]) != fields["file"]:
                report("duplicate_title", fields["file"])
            titles[title.lower()] = fields["file"]


def check_links(read, report):
    slugs = {fields["slug"] for fields, _ in read}
    titles = collections.Counter(fields["title"].lower() for fields, _ in read)
    for fields, body in read:
        if any(name not in slugs and titles[name.lower()] != 1 for name in LINK.findall(body)):
            report("broken_ref", fields["file"])


def check_quotes(wiki, read, report):
    texts = {}
    for source in json.loads((wiki / "_sources.json").read_text()):
        content = (wiki / source["path"]).read_bytes()
        if "sha256:" + hashlib.sha256(content).hexdigest() != source["content_hash"]:
            report("source_mutated", source["path"])
        texts[source["id"]] = pages.collapse(content.decode())
    for fields, body in read:
        notes = FOOTNOTE.findall(body)
        for label, source, quote in notes:
            if pages.make_label(source, quote) != label:
                report("quote_edited", fields["file"])
            elif quote not in texts.get(source, ""):
                report("source_drifted", fields["file"])
        if not set(MARK.findall(body)) <= {label for label, _, _ in notes}:
            report("claim_unanchored", fields["file"])
        if not set(fields.get("sources", [])) <= set(texts):
            report("source_missing", fields["file"])


def lint(wiki):
    found, read = set(), read_pages(wiki)

    def report(code, file):
        found.add((code, file))

    check_names(read, report)
    check_links(read, report)
    check_quotes(wiki, read, report)
    if (wiki / "_index.md").read_text() != render_index("Bench", read):
        report("index_stale", "_index.md")
    return sorted(found)


def validate(wiki):
    import jsonschema

    checker = jsonschema.Draft202012Validator.FORMAT_CHECKER
    validator = jsonschema.Draft202012Validator(SCHEMA, format_checker=checker)
    files = ((file, yaml.safe_load(split_page(file)[0])) for file in list_files(wiki))
    return [str(file.relative_to(wiki)) for file, fields in files if any(validator.iter_errors(fields))]


def parse(wiki, loader):
    """Parses the fields of all pages, and nothing else."""
    texts = [split_page(file)[0] for file in list_files(wiki)]
    begin = time.perf_counter()
    for text in texts:
        yaml.load(text, loader)
    return (time.perf_counter() - begin) * 1_000


def main():
    operation, vault, *rest = sys.argv[1:]
    wiki = pathlib.Path(vault) / pages.WIKI
    operations = {
        "search": lambda: search(wiki, json.loads(pathlib.Path(rest[0]).read_text())),
        "index": lambda: {"links": sum(map(len, build_index(wiki)[1].values()))},
        "ingest": lambda: {"is_same": ingest(wiki, json.loads(pathlib.Path(rest[0]).read_text())[int(rest[1])])},
        "lint": lambda: {"found": lint(wiki)},
        "validate": lambda: {"found": validate(wiki)},
        "yaml": lambda: {"yaml_ms": parse(wiki, yaml.SafeLoader), "libyaml_ms": parse(wiki, yaml.CSafeLoader)},
    }
    wall, cpu = time.perf_counter(), time.process_time()
    result = operations[operation]()
    times = {"wall_ms": (time.perf_counter() - wall) * 1_000, "cpu_ms": (time.process_time() - cpu) * 1_000}
    print(json.dumps(times | result))


if __name__ == "__main__":
    main()
