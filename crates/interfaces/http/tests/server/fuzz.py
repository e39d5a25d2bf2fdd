#!/usr/bin/env python3
"""fuzz.py URL TOKEN: has Schemathesis ask the server at URL whatever its OpenAPI document allows, and
much that it does not, and fails when an answer is a fault or is not in the document.

Some ids are those of tasks, agents and questions that are there, so that more than "not found" is met.
FUZZ_EXAMPLES is how much is asked of each route (8 when absent), FUZZ_SEED what is asked.

Installs Schemathesis once, into ANTIPHON_CACHE, and runs itself again in there; with `--install` in
place of URL and TOKEN, that is all it does.
"""

import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[5] / "scripts"))
import python_env  # noqa: E402

PACKAGES = ["schemathesis==4.32.5"]

# What a request that fits the schema may still be refused for, the schema does not say: so whether all
# of those are accepted is not asked. There is one token, and it opens everything: no caller can reach what
# belongs to another.
CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "allow_header_conformance",
    "ignored_auth",
]

# Known ids, by the beginning of the path they belong to.
KNOWN = json.loads(os.environ.get("FUZZ_KNOWN", "{}"))


def prepare(url: str, token: str) -> dict:
    """Things that are there: tasks that have ended, that wait and that hang, questions, requests."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def ask(method: str, path: str, body: object = None) -> object:
        data = None if body is None else json.dumps(body).encode()
        head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        request = urllib.request.Request(url + path, data, head, method=method)
        with opener.open(request, timeout=30) as answer:
            return json.load(answer)

    weather = {"name": "weather", "description": "Tells.", "parameters": {"type": "object"}}
    asked = ["hello", "look", "hang", "hang", "act", "act", "act"]
    tasks = [ask("POST", "/v1/tasks", {"message": message})["task_id"] for message in asked]
    external = {"message": "weather", "external_tools": [weather]}
    tasks += [ask("POST", "/v1/tasks", external)["task_id"] for _ in range(2)]
    request = {"request": {"intent": "ask", "params": {"a": 1}}}
    requests = [ask("POST", "/v1/agents/reviewer/inbox", request)["id"] for _ in range(2)]
    deadline = time.monotonic() + 10
    while True:
        approvals = [one["approval_id"] for one in ask("GET", "/v1/approvals")["approvals"]]
        if len(approvals) == asked.count("act"):
            break
        assert time.monotonic() < deadline, "no approval was requested"
        time.sleep(0.05)
    return {
        # No test waits for what does not end.
        "/v1/tasks/{id}/events": tasks[:2],
        "/v1/tasks/{id}/rest": tasks[:2] + tasks[4:],
        "/v1/tasks/": tasks,
        "/v1/requests/": requests,
        "/v1/approvals/": approvals,
        "/v1/agents/": ["reviewer", "mute"],
    }


def main(url: str, token: str) -> None:
    here = pathlib.Path(__file__).resolve()
    with tempfile.TemporaryDirectory() as folder:
        environ = {
            **os.environ,
            "FUZZ_KNOWN": json.dumps(prepare(url, token)),
            "NO_PROXY": "*",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": str(here.parent),
            "SCHEMATHESIS_HOOKS": here.stem,
        }
        command = [
            *(pathlib.Path(sys.prefix) / "bin/schemathesis", "run", f"{url}/openapi.json"),
            *("--header", f"Authorization: Bearer {token}"),
            *("--checks", ",".join(CHECKS)),
            *("--phases", "examples,coverage,fuzzing,stateful"),
            *("--max-examples", os.environ.get("FUZZ_EXAMPLES", "8")),
            *("--seed", os.environ.get("FUZZ_SEED", "7117")),
            *("--generation-database", "none"),
            *("--request-timeout", "10"),
            # It ends with the server.
            *("--exclude-path", "/v1/events"),
            *("--suppress-health-check", "all"),
            *("--warnings", "off"),
            *("--continue-on-failure", "--no-color"),
        ]
        sys.exit(subprocess.run(command, cwd=folder, env=environ).returncode)


if KNOWN:
    import schemathesis

    REQUESTS = itertools.count()

    @schemathesis.hook
    def before_call(context, case, kwargs):
        """Has every second request be about something that is there, and every second body make sense
        where the schema cannot say what does."""
        count, path = next(REQUESTS), case.operation.path
        ids = next((ids for prefix, ids in KNOWN.items() if path.startswith(prefix)), None)
        for name, id in (case.path_parameters or {}).items():
            # Schemathesis has read of others, and tries them too.
            endless = id in KNOWN["/v1/tasks/"] and id not in (ids or [])
            if ids and (count % 2 or endless):
                case.path_parameters[name] = ids[count // 2 % len(ids)]
        if path == "/v1/invocations" and isinstance((case.query or {}).get("wait_s", 30), int):
            case.query = {**(case.query or {}), "wait_s": 1}
        if isinstance(case.body, dict) and count // 2 % 2:
            correct(path, case.body)

    def correct(path: str, body: dict) -> None:
        if path.endswith("/inbox"):
            kinds = [kind for kind in ("content", "request", "message") if body.get(kind) is not None]
            for kind in kinds[1:]:
                del body[kind]
            if not kinds:
                body["message"] = "hello"
            if kinds[:1] != ["request"]:
                body.pop("timeout_s", None)
        elif path.endswith("/tool_results"):
            body["tool_call_id"] = "c1"
        elif path.endswith("/completions") and isinstance(body.get("messages"), list):
            body["model"] = "scripted/test"
            body["messages"] = [{"role": "user", "content": "hello"}]


if __name__ == "__main__":
    main(*python_env.run_inside("schemathesis", PACKAGES, __doc__, arguments=2))
