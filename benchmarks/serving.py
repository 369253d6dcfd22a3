"""``shortlist serve`` under load: the time of an answer beside a bare model behind the same FastAPI and uvicorn, by two
processes that ask at once; whether every request is answered, and whether memory grows.

python -m benchmarks.serving [--requests 10000] [--quick]
"""

import argparse
import http.client
import json
import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

CLIENTS = 2  # processes, which import this file: what is heavy is imported below
_SERVER = """
import sys, torch, uvicorn, shortlist as sl
from pydantic import BaseModel
from shortlist.serving.app import make_app

class Rows(BaseModel):
    rows: list[list[float]]

predictor = sl.load_run(sys.argv[1])
app = make_app(predictor, "benchmark")
network = predictor.model

@app.post("/bare")
async def bare(request: Rows) -> dict[str, list[list[float]]]:
    with torch.no_grad():
        return {"scores": network.scores(torch.tensor(request.rows)).tolist()}

config = uvicorn.Config(app, port=int(sys.argv[2]), log_level="warning", access_log=False)
uvicorn.Server(config).run()
"""


def _run(folder: Path) -> str:
    """A small MLP on 128 features with 100 labels, and its rules."""
    import shortlist as sl

    source = {"reader": "ambiguous-numbers", "size": 2000}
    config = {"data": {"train": source}, "backbone": {"name": "mlp", "hidden": [512, 512]}, "epochs": 1}
    run: str = sl.runs.train(config, folder / "run")["run"]
    sl.runs.calibrate(run, rules=["average-k:k=5"])
    return run


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def _ask(port: int, path: str, requests: int, seed: int) -> tuple[list[float], int]:
    """Seconds of every request by one client, and how many were not answered well."""
    rows = np.random.default_rng(seed).normal(size=(16, 128)).round(3)
    bodies = [json.dumps({"rows": [row.tolist()]}) for row in rows]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    seconds, lost = [], 0
    for number in range(requests):
        began = time.perf_counter()
        connection.request("POST", path, bodies[number % len(bodies)], {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content = json.loads(answer.read())
        seconds.append(time.perf_counter() - began)
        lost += answer.status != 200 or len(content.get("sets", content.get("scores", []))) != 1
    return seconds, lost


def _memory(pid: int) -> float:
    """MB that a process holds."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _load(port: int, path: str, requests: int) -> tuple[list[float], int]:
    with multiprocessing.get_context("spawn").Pool(CLIENTS) as pool:
        found = pool.starmap(_ask, [(port, path, requests // CLIENTS, seed) for seed in range(CLIENTS)])
    return [one for seconds, _ in found for one in seconds], sum(lost for _, lost in found)


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    while True:
        if process.poll() is not None:
            raise SystemExit("the server did not start")
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            return
        except OSError:
            time.sleep(0.2)


def main() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__)
    options.add_argument("--requests", type=int, default=10_000, help="of both clients together, to each address")
    options.add_argument("--quick", action="store_true", help="few requests, to see that everything runs")
    given = options.parse_args()
    from shortlist.timing import describe_machine

    requests = 200 if given.quick else given.requests
    with tempfile.TemporaryDirectory() as folder:
        run, port = _run(Path(folder)), _free_port()
        process = subprocess.Popen([sys.executable, "-c", _SERVER, run, str(port)])
        try:
            _wait(port, process)
            for path in ("/bare", "/predict"):  # the first requests load code and fill caches
                _load(port, path, max(100, requests // 10))
            for key, value in describe_machine(2, ("fastapi", "uvicorn")).items():
                print(f"{key}: {value}")
            for path in ("/bare", "/predict"):
                before = _memory(process.pid)
                seconds, lost = _load(port, path, requests)
                p50, p99 = (1e3 * float(np.quantile(seconds, share)) for share in (0.5, 0.99))
                grown = _memory(process.pid) - before
                print(
                    f"{path:9} {len(seconds)} requests by {CLIENTS} clients: p50 {p50:.2f} ms, p99 {p99:.2f} ms, "
                    f"{lost} lost, memory {before:.0f} MB and {grown:+.1f} MB"
                )
        finally:
            process.terminate()
            process.wait(60)


if __name__ == "__main__":
    main()
