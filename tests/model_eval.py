"""Measures a real small model by labelled cases, with the real binary: `steward clerk eval`.

    python3 tests/model_eval.py STEWARD [PER_GROUP]

STEWARD is the binary. It needs STEWARD_MODEL_URL and STEWARD_MODEL_NAME, which tests/model_server.py sets. The first PER_GROUP cases of
each shipped group are asked (default 1; 0 asks all 300, which takes hours). A small model answers badly: what counts is that each case
is measured, that an answer outside the form counts as none, and that the report can be read. The report goes to standard output.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).parent.parent
CASES = ROOT / "domain/src/steward/eval/cases"
# How often a measurement is begun or continued.
MOST_TRIES = 10
TEMPORAL = ROOT / ".tools/temporal/bin/temporal"


def take_cases(folder: pathlib.Path, per_group: int) -> int:
    """Writes the first cases of each group, and returns how many."""
    count = 0
    for file in sorted(CASES.glob("*.yaml")):
        parts = re.split(r"^(?=- id: )", file.read_text(), flags=re.MULTILINE)[1:]
        chosen = parts[:per_group] if per_group else parts
        (folder / file.name).write_text("".join(chosen))
        count += len(chosen)
    return count


def main() -> int:
    steward, per_group = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        vault, cases = folder / "vault", folder / "cases"
        cases.mkdir()
        count = take_cases(cases, per_group)
        environment = {
            "PATH": os.environ["PATH"], "HOME": temporary, "STEWARD_VAULT": str(vault), "STEWARD_LOG": "error",
            "STEWARD_TEMPORAL_CLI": str(TEMPORAL), "STEWARD_TEMPORAL_PORT": "0", "STEWARD_TEMPORAL_UI_PORT": "0",
            "STEWARD_CLERK": "openai", "STEWARD_CLERK_BASE_URL": os.environ["STEWARD_MODEL_URL"] + "/v1",
            "STEWARD_CLERK_MODEL": os.environ["STEWARD_MODEL_NAME"], "STEWARD_CLERK_TIMEOUT_SECONDS": "80",
        }
        subprocess.run([steward, "example", str(vault)], env=environment, check=True, capture_output=True)
        command = [steward, "clerk", "eval", "--cases", str(cases)]
        # A server that is busy for a moment ends a measurement. The same command goes on.
        for _ in range(MOST_TRIES):
            measured = subprocess.run([*command, "--json"], env=environment, check=False, stdout=subprocess.PIPE)
            report = json.loads(measured.stdout)
            answered = report["answered"]
            if answered == count:
                break
            print(f"{answered} of {count} cases, then it ended: {report.get('ended')}", flush=True)
        print(subprocess.run(command, env=environment, check=False, capture_output=True, text=True).stdout, flush=True)
    print(f"{answered} of {count} cases were measured")
    return 0 if answered == count else 1


if __name__ == "__main__":
    sys.exit(main())
