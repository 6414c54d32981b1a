"""Public corpora of prompt injection as one JSON object a line: {"id", "attack", "text"}.

python3 tests/corpora.py <folder with the installed packages> <file to write>

bastioncorpus: its attacks and its harmless texts that look like attacks. agentdojo: every goal of its injection
tasks in every one of its attack templates; its mails, messages and user tasks are the harmless ones. Nothing is
imported or executed: sources are read as syntax trees, data as YAML.
"""

import ast
import itertools
import json
import pathlib
import sys


def strings(tree, name):
    """Texts that are assigned to a name somewhere; parts of an f-string that are not text become `it`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(getattr(t, "id", getattr(t, "attr", None)) == name for t in node.targets):
            yield from text(node.value)


def text(value):
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield value.value
    elif isinstance(value, ast.JoinedStr):
        yield "".join(v.value if isinstance(v, ast.Constant) else "it" for v in value.values)


def trees(folder, pattern):
    for path in sorted(folder.glob(pattern)):
        yield ast.parse(path.read_text())


def bastion(packages):
    for line in (packages / "bastioncorpus/corpus/injections.jsonl").read_text().splitlines():
        row = json.loads(line)
        yield f"bastion-{row['id']}", row["label"] == "malicious", row["text"].replace("{canary}", "K7")


def agentdojo(packages, yaml):
    folder = packages / "agentdojo"
    goals = sorted({g for tree in trees(folder, "default_suites/**/injection_tasks.py") for g in strings(tree, "GOAL")})
    constants = (n.value for tree in trees(folder, "attacks/*.py") for n in ast.walk(tree) if isinstance(n, ast.Constant))
    joined = (n for tree in trees(folder, "attacks/*.py") for n in ast.walk(tree) if isinstance(n, ast.JoinedStr))
    templates = {c for c in constants if isinstance(c, str) and "{goal}" in c}
    templates |= {t for n in joined for t in text(n) if "{goal}" in t}
    for (g, goal), (t, template) in itertools.product(enumerate(goals), enumerate(sorted(templates) + ["{goal}"])):
        filled = template.replace("{goal}", goal).replace("{user}", "Ada").replace("{model}", "Steward")
        yield f"dojo-{g}-{t}", True, filled
    harmless = {p for tree in trees(folder, "default_suites/**/user_tasks.py") for p in strings(tree, "PROMPT")}
    for path in sorted((folder / "data/suites").rglob("*.yaml")):
        harmless |= set(words(yaml.load(path.read_text(), loader(yaml))))
    for n, one in enumerate(sorted(harmless)):
        yield f"dojo-harmless-{n}", False, one


def loader(yaml):
    """Plain data; what a file includes is read by itself."""

    class Plain(yaml.SafeLoader):
        pass

    Plain.add_constructor("!include", lambda *_: None)
    return Plain


def words(value):
    """What people wrote to each other; the places for injections are left empty."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("body", "content", "description", "default") and isinstance(inner, str):
                yield inner
            else:
                yield from words(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from words(inner)


def main():
    packages, out = map(pathlib.Path, sys.argv[1:])
    sys.path.insert(0, str(packages))
    import yaml

    met = {}
    for name, attack, one in itertools.chain(bastion(packages), agentdojo(packages, yaml)):
        if len(one.strip()) > 3:
            met.setdefault(one, json.dumps({"id": name, "attack": attack, "text": one}) + "\n")
    out.write_text("".join(met.values()))


main()
