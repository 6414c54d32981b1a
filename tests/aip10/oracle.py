"""Takes the verdicts of the published schema of AIP-10 with python-jsonschema and its format checker.

oracle.py record <specification>            writes the verdicts into cases.json, beside this file
oracle.py compare <specification> <steward> checks them, thousands of altered files and the worked examples against `steward wiki validate`

<specification> is a checkout of github.com/agentproto/agentproto.
"""

import copy
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import jsonschema
import yaml

HERE = pathlib.Path(__file__).parent
DRAFT = "specs/resources/aip-10/draft"
ALTERED = 4_000


class TextLoader(yaml.SafeLoader):
    """YAML whose times are texts, as JSON Schema needs them."""


TextLoader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def load_validator(specification):
    schema = json.loads((specification / DRAFT / "KNOWLEDGE.schema.json").read_text())
    return jsonschema.Draft202012Validator(schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)


def change(fields, pointer, value):
    *parents, name = pointer.strip("/").split("/")
    for parent in parents:
        fields = fields[int(parent) if isinstance(fields, list) else parent]
    if value is None:
        fields.pop(name, None)
    else:
        fields[name] = value


def build_cases(table):
    for case in table["cases"]:
        fields = copy.deepcopy(table["bases"][case["base"]])
        for pointer, value in case["change"].items():
            change(fields, pointer, value)
        yield case, fields


def record(specification):
    validator, path = load_validator(specification), HERE / "cases.json"
    table = json.loads(path.read_text())
    for case, fields in build_cases(table):
        case["valid"] = validator.is_valid(fields)
    lines = ",\n  ".join(json.dumps(case, ensure_ascii=False) for case in table["cases"])
    bases = ",\n  ".join(f"{json.dumps(name)}: {json.dumps(fields)}" for name, fields in table["bases"].items())
    path.write_text(f'{{"bases": {{\n  {bases}\n}}, "cases": [\n  {lines}\n]}}\n')
    valid = sum(case["valid"] for case in table["cases"])
    print(f"cases={len(table['cases'])} valid={valid}")


VALUES = [None, True, 0, 1, 1.5, -1, "", "a", "ab", "a-b", "A", "Ab", "a b", "9a", "*", "forever", "days:3", "1.0.0", "sources/a",
          "sha256:ab", "2026-11-22T09:15:04Z", "../a/KNOWLEDGE.md", "ws://operators/a", [], ["ab"], ["A"], ["ab", "ab"], {}, {"a": 1},
          "x" * 33, "x" * 97, "x" * 201, "é" * 96]


def alter(fields, chance):
    """One to three random changes: a value replaced, a key removed, added or renamed."""
    for _ in range(chance.randint(1, 3)):
        place, key = None, None
        pending = [fields]
        places = []
        while pending:
            found = pending.pop()
            keys = list(found) if isinstance(found, dict) else range(len(found))
            places += [(found, key) for key in keys]
            pending += [found[key] for key in keys if isinstance(found[key], (dict, list))]
        place, key = chance.choice(places)
        act = chance.random()
        if act < 0.6:
            place[key] = copy.deepcopy(chance.choice(VALUES))
        elif act < 0.8 and isinstance(place, dict):
            del place[key]
        elif isinstance(place, dict):
            place[chance.choice(["color", "type", "refs", "tags", "extends", "appliesTo", "lints"])] = copy.deepcopy(chance.choice(VALUES))
        if not fields:
            return fields
    return fields


RICH = {
    "page": {"sources": ["letter", "lease"], "confidence": 0.5, "tags": ["a"], "links": ["ab"], "contradicts": ["ab"], "metadata": {"a": {}}},
    "source": {"authority": "primary", "language": "en-GB", "superseded_by": "b2", "tags": ["a"], "captured_by": "ann"},
    "manifest": {
        "extends": "../a/KNOWLEDGE.md", "appliesTo": ["ws://skills/a"], "curator": "ws://operators/a", "governance": "g",
        "entityTypes": [{"name": "Deal", "fields": ["stage"], "icon": "x", "parent": "Thing"}],
        "lints": [{"id": "a", "kind": "orphan", "appliesTo": "Deal", "severity": "info", "params": {}}],
        "sources": {"retention": "days:3", "signing": "none"}, "curation": {"tone": "plain", "depth": "deep"},
        "queryHints": {"preferRecent": True, "scopeTo": ["Deal"]}, "display": {"homePage": "ab"}, "metadata": {},
    },
}


def list_examples(specification):
    text = (specification / DRAFT / "EXAMPLES.md").read_text()
    for block in re.findall(r"^```md\n(---\n.*?)^```$", text, re.S | re.M):
        yield block


def compare(specification, steward):
    validator, chance = load_validator(specification), random.Random(10)
    table = json.loads((HERE / "cases.json").read_text())
    documents = [("case", fields) for _, fields in build_cases(table)]
    for _ in range(ALTERED):
        base = chance.choice(list(RICH))
        fields = {**copy.deepcopy(table["bases"][base]), **copy.deepcopy(RICH[base])}
        documents.append(("altered", alter(fields, chance)))
    texts = [(kind, "---\n" + json.dumps(fields, ensure_ascii=False, indent=1) + "\n---\nbody\n", fields) for kind, fields in documents]
    examples = list(list_examples(specification))
    refused = [block for block in examples if not validator.is_valid(yaml.load(block.split("---\n")[1], TextLoader))]
    assert (len(examples), len(refused)) == (12, 1), "the standard has other examples"
    for block in examples:
        texts.append(("example", block, yaml.load(block.split("---\n")[1], TextLoader)))
    count, wrong, valid = {}, [], 0
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for number, (kind, text, fields) in enumerate(texts):
            path = pathlib.Path(folder) / f"{number}.md"
            path.write_text(text)
            files.append(str(path))
        said = subprocess.run([steward, "wiki", "validate", "--json", *files], capture_output=True, text=True)
        findings = json.loads(said.stdout)["findings"]
        # That a view's consumers exist is no matter of the schema.
        findings = [finding for finding in findings if finding["code"] != "knowledge_appliesto_unresolvable"]
        refused = {pathlib.Path(finding["file"]).name for finding in findings if finding["severity"] == "error"}
        for number, (kind, text, fields) in enumerate(texts):
            expected = validator.is_valid(fields)
            valid += expected
            count[kind] = count.get(kind, 0) + 1
            if (f"{number}.md" not in refused) != expected:
                wrong.append((kind, expected, text))
    for kind, expected, text in wrong[:5]:
        print(f"--- {kind}: the oracle says {'valid' if expected else 'invalid'}\n{text[:1500]}")
    counts = " ".join(f"{kind}s={number}" for kind, number in sorted(count.items()))
    print(f"{counts} valid={valid} different={len(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    specification = pathlib.Path(sys.argv[2])
    sys.exit(record(specification) if sys.argv[1] == "record" else compare(specification, sys.argv[3]))
