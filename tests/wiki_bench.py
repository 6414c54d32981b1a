"""A wiki of 10,000 made-up pages: how long its index and its searches take, and whether another program ranks the same pages.

    python3 tests/wiki_bench.py PACKAGES BENCH [PAGES]

PACKAGES is the folder into which `pip install --target` put rank_bm25 and numpy, BENCH the example `wiki_at_size` of the vault's
crate, built for release. The baselines run in the same sitting: reading all pages, building rank_bm25.BM25Okapi and scoring, as one
query, and get_scores of an index that is kept in memory. Fails if a page or its place differs, or a score by more than 1e-9.
"""

import collections
import json
import pathlib
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time


def words_of(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def make_wiki(vault: pathlib.Path, count: int) -> list[str]:
    random.seed(12)
    vocabulary = [f"{a}{b}{c}" for a in ("la", "re", "mo", "ti", "su") for b in ("ba", "ne", "ko", "li", "du", "ra") for c in range(400)]
    weights = [1 / (rank + 1) for rank in range(len(vocabulary))]
    folder = vault / "wiki/bench/concepts"
    folder.mkdir(parents=True)
    (vault / "wiki/bench/KNOWLEDGE.md").write_text("---\nschema: knowledge.workspace/v1\n---\n")
    slugs = []
    for number in range(count):
        slug = f"page-{number:05}"
        text = " ".join(random.choices(vocabulary, weights, k=random.randint(300, 900)))
        fields = f"schema: knowledge.entry/v1\nslug: {slug}\nkind: concept\ntitle: Page {number}\ntags: [bench]\n"
        fields += 'updated_at: "2026-11-22T09:15:04Z"\nmetadata: {steward: {summary: "About it."}}\n'
        (folder / f"{slug}.md").write_text(f"---\n{fields}---\n# Page {number}\n\n{text}\n")
        slugs.append(slug)
    return vocabulary


def read_pages(vault: pathlib.Path) -> tuple[list[str], list[list[str]]]:
    slugs, texts = [], []
    for file in sorted((vault / "wiki/bench/concepts").glob("*.md")):
        title = f"Page {int(file.stem.split('-')[1])}"
        body = file.read_text().split("---\n", 2)[2]
        slugs.append(file.stem)
        texts.append(words_of(f"{title} bench About it. {body}"))
    return slugs, texts


def main() -> int:
    packages, bench, count = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 10_000
    sys.path.insert(0, packages)
    from rank_bm25 import BM25Okapi

    with tempfile.TemporaryDirectory() as folder:
        vault = pathlib.Path(folder)
        vocabulary = make_wiki(vault, count)
        random.seed(34)
        _, known = read_pages(vault)
        holders = collections.Counter(word for text in known for word in set(text))
        # Each query has a word on fewer than half of the pages: others weigh nothing in this formula.
        rare = [word for word in vocabulary if 0 < holders[word] * 2 < count]
        queries = [" ".join(random.sample(rare, 1) + random.sample(vocabulary, random.randint(0, 3))) for _ in range(1_000)]
        (vault / "queries.json").write_text(json.dumps(queries))
        command = [bench, str(vault), "bench", str(vault / "queries.json"), str(vault / "results.json")]
        figures = [json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(9)]
        found = json.loads((vault / "results.json").read_text())

        begin = time.perf_counter()
        slugs, texts = read_pages(vault)
        index = BM25Okapi(texts, k1=1.2, b=0.75, epsilon=0)
        index.get_scores(words_of(queries[0]))
        whole = (time.perf_counter() - begin) * 1_000
        times, differences = [], 0
        for query, hits in zip(queries, found):
            tokens = sorted(set(words_of(query)))
            begin = time.perf_counter()
            scores = index.get_scores(tokens)
            times.append((time.perf_counter() - begin) * 1_000)
            best = sorted(((score, slug) for score, slug in zip(scores, slugs) if score > 0), key=lambda it: (-it[0], it[1]))[:10]
            same = [slug for _, slug in best] == [slug for slug, _ in hits]
            near = all(abs(score - other) < 1e-9 for (score, _), (_, other) in zip(best, hits))
            if not (same and near):
                differences += 1
                if differences <= 3:
                    print(f"differs: {query}: {best[:3]} {hits[:3]}")
        median = {name: round(statistics.median(run[name] for run in figures), 2) for name in figures[0]}
        print(f"{count} pages, 1,000 queries, median of nine: {median}")
        print(f"read all, build and score once: {whole:.0f} ms; get_scores p50: {statistics.median(times):.2f} ms")
        print(f"queries that differ from rank_bm25: {differences}")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
