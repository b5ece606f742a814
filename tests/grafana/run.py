#!/usr/bin/env python3
"""The board and the alerts for Prometheus, against a real server: run.py

promtool looks at the alerts and plays their stories. Then Debian's prometheus scrapes a stintd that has something to tell, every query of
every panel and alert is evaluated, and what the panels say is compared with GET /api/stats and GET /api/queues. Where prometheus
is not installed it says so in one line and ends with 0.
"""
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/e2e"))
import stintd  # noqa: E402

BOARD = TOP / "packaging/grafana/stint.json"
RULES = TOP / "packaging/prometheus"
PATIENCE_S = 120
# What a fresh server cannot have: nothing has been refused or lost, and it speaks no TLS.
MAY_BE_EMPTY = {"Refused requests"}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Prometheus:
    def __init__(self, server):
        self.home = tempfile.mkdtemp(prefix="stint-prometheus-")
        self.url = "http://127.0.0.1:%d" % free_port()
        token = server.client().post("/api/tokens", {"kind": "metrics", "name": "prometheus"}).json["token"]
        pathlib.Path(self.home, "token").write_text(token)
        config = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [str(RULES / "stint.rules.yml")],
                  "scrape_configs": [{"job_name": "stint", "authorization": {"credentials_file": self.home + "/token"},
                                      "static_configs": [{"targets": ["127.0.0.1:%d" % server.port]}]}]}
        pathlib.Path(self.home, "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
        self.process = subprocess.Popen(
            ["prometheus", "--config.file", self.home + "/prometheus.yml", "--storage.tsdb.path", self.home + "/data",
             "--web.listen-address", self.url.removeprefix("http://")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)

    def get(self, path, **query):
        with urllib.request.urlopen(self.url + path + "?" + urllib.parse.urlencode(query), timeout=30) as reply:
            return json.load(reply)["data"]

    def ask(self, expression):
        """[(labels, number)] of an instant query."""
        try:
            data = self.get("/api/v1/query", query=expression)
        except urllib.error.HTTPError as fault:
            raise SystemExit("grafana: %s: %s" % (expression, fault.read().decode())) from fault
        return [(row["metric"], float(row["value"][1])) for row in data["result"]]

    def one(self, expression):
        found = self.ask(expression)
        return found[0][1] if found else None

    def until(self, holds, what):
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                if holds():
                    return
            except (OSError, urllib.error.URLError):
                pass
            assert time.monotonic() < deadline, what
            time.sleep(0.2)


def live(client):
    """Something of everything: tasks in several states, ends of each kind, workers, a quarantine."""
    def call(path, **body):
        reply = client.post(path, body)
        assert reply.status < 300, (path, reply.status, reply.body)
        return reply.json

    for i in range(12):
        call("/api/tasks", id="g-%d" % i, title="one of twelve", queue="a" if i % 2 else "b", maxAttempts=1)
    for i in range(9):
        fence = call("/api/tasks/g-%d/claim" % i, workerId="w-1", leaseMs=600000)["fence"]
        if i < 5:
            call("/api/tasks/g-%d/complete" % i, workerId="w-1", fence=fence)
        elif i < 7:
            call("/api/tasks/g-%d/fail" % i, workerId="w-1", fence=fence, error={"code": "EXECUTION_ERROR", "message": "no", "retry": False})
        elif i == 7:
            call("/api/tasks/g-7/ask", workerId="w-1", fence=fence, question="go on?")
    call("/api/tasks/g-11/cancel")
    call("/api/workers/register", workerId="w-1", leaseMs=600000)
    client.post("/api/claims", {"workerId": "w-1", "queues": ["none"]})
    for _ in range(3):
        call("/api/slots/s-1/crash")


def filled(expression):
    """A query of a panel as Grafana sends it."""
    for name, value in (("$__rate_interval", "1m"), ("$job", ".*"), ("$queue", ".*")):
        expression = expression.replace(name, value)
    assert "$" not in expression, expression
    return expression


def panels():
    board = json.loads(BOARD.read_text(encoding="utf-8"))
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids)), "each panel has a number of its own"
    return {panel["title"]: [filled(target["expr"]) for target in panel["targets"]] for panel in board["panels"] if panel["type"] != "row"}


def compare(prometheus, client, queries):
    """What the panels say is what the server says."""
    stats = client.get("/api/stats?span=24h").json["total"]
    states = {}
    for queue in client.get("/api/queues").json:
        for state, number in queue["tasks"].items():
            states[state] = states.get(state, 0) + number
    ended = {labels["to"]: number for labels, number in prometheus.ask('sum by (to) (stint_task_transitions_total{to=~"done|failed|cancelled"})')}
    for name in ("done", "failed", "cancelled"):
        assert ended[name] == stats[name], (name, ended, stats)
    assert prometheus.one("sum(stint_task_wait_seconds_count)") == stats["claims"], stats
    for title, wanted in (("Running", ("running", "claimed")), ("Waiting", ("ready", "waiting", "scheduled", "pending")), ("Needs you", ("asking", "review", "blocked"))):
        said = prometheus.one(queries[title][0])
        assert said == sum(states[state] for state in wanted), (title, said, states)
    by_state = {labels["state"]: number for labels, number in prometheus.ask(queries["Tasks by state"][0])}
    assert by_state == states, (by_state, states)
    assert prometheus.one(queries["Workers alive"][0]) == len([w for w in client.get("/api/workers").json if w["state"] != "inactive"])
    half, most = (prometheus.one(query) for query in queries["Wait before a claim"])
    assert 0 <= half <= most, (half, most)


def main():
    if not shutil.which("prometheus") or not shutil.which("promtool"):
        print("skipped: grafana: prometheus is not installed", flush=True)
        return
    for command in (["promtool", "check", "rules", "stint.rules.yml"], ["promtool", "test", "rules", "stint.rules.test.yml"]):
        subprocess.run(command, cwd=RULES, check=True, stdout=subprocess.DEVNULL)
    queries = panels()
    server = stintd.Server()
    client = server.client()
    prometheus = Prometheus(server)
    try:
        # A rate needs two scrapes: one before there is anything, and one after.
        client.post("/api/tasks", {"id": "g-first", "title": "the first", "queue": "a"})
        client.post("/api/tasks", {"id": "g-second", "title": "the second", "queue": "b"})
        prometheus.until(lambda: prometheus.one('sum(stint_tasks{state="ready"})') == 2, "prometheus reads the server")
        live(client)
        seq = client.get("/api/stats?span=24h").json["total"]
        prometheus.until(lambda: prometheus.one('sum(stint_task_transitions_total{to="done"})') == seq["done"] and prometheus.one("stint_slots_quarantined") == 1 and
                         prometheus.one("count_over_time(stint_event_seq[1m])") >= 3, "prometheus has read what happened")
        prometheus.until(lambda: all(prometheus.ask(query) for query in queries["Wait before a claim"]), "there is a rate")
        for title, expressions in queries.items():
            for expression in expressions:
                found = prometheus.ask(expression)
                assert found or title in MAY_BE_EMPTY, "%s: nothing answers %s" % (title, expression)
        compare(prometheus, client, queries)
        groups = prometheus.get("/api/v1/rules")["groups"]
        rules = [rule for group in groups for rule in group["rules"]]
        prometheus.until(lambda: all(rule["health"] == "ok" for group in prometheus.get("/api/v1/rules")["groups"] for rule in group["rules"]), "every alert is evaluated")
        firing = {rule["name"] for rule in rules if rule["state"] != "inactive"}
        prometheus.until(lambda: any(rule["name"] == "StintSlotQuarantined" and rule["state"] != "inactive" for group in prometheus.get("/api/v1/rules")["groups"] for rule in group["rules"]), "a quarantine raises its alert")
        assert "StintStoreDegraded" not in firing and "StintDown" not in firing, firing
    finally:
        prometheus.end()
        client.close()
        server.end()
    print("grafana: %d panels, %d queries and %d alerts answer what the server says" % (len(queries), sum(map(len, queries.values())), len(rules)), flush=True)


if __name__ == "__main__":
    main()
