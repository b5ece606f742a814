"""MCP: the same tools over HTTP and standard input, in both eras of the protocol; the token decides which ones there are."""
import base64
import json
import os
import subprocess
import tempfile
import unittest

from hang import HANG_S
import stintd
import test_worker
from test_worker import STINT

NEW = "2026-07-28"
META = "io.modelcontextprotocol/"

READS = ["get_task", "why_task", "read_log", "list_tasks"]
REPORTS = ["progress", "done", "review", "fail", "block", "release", "ask_approval"]
PROFILES = {
    "viewer": READS,
    "producer": ["enqueue"],
    "worker": READS,
    "operator": READS + ["cancel_task", "retry_task"],
    "approver": READS,
    "metrics": [],
    "claim": READS[:3] + ["enqueue"] + REPORTS,
}
ALL = READS + ["enqueue"] + REPORTS + ["cancel_task", "retry_task"]


def message(method, params=None, era=None, number=1):
    params = dict(params or {})
    if era == NEW:
        params["_meta"] = {META + "protocolVersion": NEW, META + "clientCapabilities": {}}
    return {"jsonrpc": "2.0", "id": number, "method": method, **({"params": params} if params else {})}


class OverHttp:
    def __init__(self, server, token):
        self.client = stintd.Client(server, token)

    def send(self, text, era=None, path="/mcp", **headers):
        if era == NEW:
            name = text.get("params", {}).get("name") or text.get("params", {}).get("uri")
            headers = {"MCP-Protocol-Version": NEW, "Mcp-Method": text["method"], **({"Mcp-Name": name} if name else {}), **headers}
        return self.client.post(path, text, headers={"Accept": "application/json, text/event-stream", **headers})

    def ask(self, method, params=None, era=None):
        return self.send(message(method, params, era), era).json

    def close(self):
        self.client.close()


class OverStdio:
    def __init__(self, server, token, *flags):
        made, path = tempfile.mkstemp(dir=server.home)
        with open(made, "w") as file:
            file.write(token)
        self.process = subprocess.Popen([STINT, "mcp", "--url", "http://127.0.0.1:%d" % server.port, "--token-file", path, *flags],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=stintd.environment())

    def line(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def ask(self, method, params=None, era=None):
        self.line(json.dumps(message(method, params, era)))
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait(HANG_S)
        self.process.stdout.close()


class Mcp(test_worker.Case):
    def token(self, kind, **more):
        return self.client.post("/api/tokens", {"kind": kind, "name": "an " + kind, **more}).json["token"]

    def claim(self, task="mine", **more):
        self.create(id=task, **more)
        self.client.post("/api/workers/register", {"workerId": "w", "leaseMs": 3600000})
        claim = self.client.post("/api/tasks/%s/claim" % task, {"workerId": "w"}).json
        self.fence = claim["fence"]
        return self.client.post("/api/tokens", {"kind": "claim", "task": task, "fence": claim["fence"]}).json["token"]

    def leave_it_to_the_report(self, task="mine"):
        """What a supervisor says when the process has ended well: the report of the work counts."""
        reply = self.client.post("/api/tasks/%s/complete" % task, {"workerId": "w", "fence": self.fence, "byReport": True})
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json

    def over(self, kind, token, *more):
        transport = kind(self.server, token, *more)
        self.addCleanup(transport.close)
        return transport

    def call(self, transport, name, era=None, **arguments):
        reply = transport.ask("tools/call", {"name": name, "arguments": arguments}, era)
        self.assertIn("result", reply, reply)
        return reply["result"]

    def names(self, transport, era=None):
        return [tool["name"] for tool in transport.ask("tools/list", era=era)["result"]["tools"]]

    def test_tasks_are_created_shown_and_listed_over_both_transports_in_both_eras(self):
        producer, viewer = self.token("producer"), self.token("viewer")
        for kind in OverHttp, OverStdio:
            transport, creator = self.over(kind, viewer), self.over(OverHttp, producer)
            if kind is OverStdio:
                creator = self.over(kind, producer)
            for era in None, NEW:
                made = self.call(creator, "enqueue", era, title="hello", queue="q")
                self.assertFalse(made["isError"], made)
                task = made["structuredContent"]["id"]
                self.assertEqual(json.loads(made["content"][0]["text"])["id"], task)
                self.assertEqual(self.client.get("/api/tasks/" + task).json["title"], "hello")
                self.assertEqual(self.call(transport, "get_task", era, id=task)["structuredContent"]["state"], "ready")
                listed = self.call(transport, "list_tasks", era, queue="q", limit=100)
                self.assertIn(task, listed["content"][0]["text"])
                self.assertEqual(made.get("resultType"), "complete" if era else None)

    def test_an_old_client_shakes_hands_and_a_new_one_discovers(self):
        for kind in OverHttp, OverStdio:
            transport = self.over(kind, self.token("viewer"))
            for version, answer in ("2025-06-18", "2025-06-18"), ("2025-11-25", "2025-11-25"), ("1999-01-01", "2025-11-25"):
                hello = transport.ask("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}})
                self.assertEqual((hello["id"], hello["result"]["protocolVersion"]), (1, answer))
                self.assertEqual(hello["result"]["serverInfo"]["name"], "stint")
            self.assertEqual(transport.ask("ping")["result"], {})
            found = transport.ask("server/discover", era=NEW)["result"]
            self.assertEqual((found["supportedVersions"][0], found["resultType"], found["cacheScope"]), (NEW, "complete", "private"))
            self.assertEqual(transport.ask("initialize", era=NEW)["error"]["code"], -32601)

    def test_the_token_decides_which_tools_there_are_and_no_other_can_be_called(self):
        tokens = {kind: self.token(kind) for kind in PROFILES if kind != "claim"}
        tokens["claim"] = self.claim()
        for kind, expected in PROFILES.items():
            transport = self.over(OverHttp, tokens[kind])
            self.assertEqual(self.names(transport), [name for name in ALL if name in expected], kind)
            self.assertEqual(self.names(transport, NEW), self.names(transport))
            for name in set(ALL) - set(expected):
                refused = transport.ask("tools/call", {"name": name, "arguments": {"id": "mine"}})
                self.assertEqual(refused["error"]["code"], -32602, (kind, name))
        self.assertEqual(self.client.get("/api/tasks/mine").json["state"], "claimed")

    def test_the_token_of_an_admin_is_refused_unless_it_is_meant(self):
        http = self.over(OverHttp, self.server.token)
        refused = http.send(message("tools/list"))
        self.assertEqual((refused.status, refused.json["code"], refused.json["needs"]), (403, "forbidden", "operator"))
        self.assertIn("enqueue", http.send(message("tools/list"), path="/mcp?admin=true").body.decode())
        stdio = self.over(OverStdio, self.server.token)
        self.assertIn("--admin", stdio.ask("tools/list")["error"]["message"])
        self.assertEqual(self.names(self.over(OverStdio, self.server.token, "--admin")), [name for name in ALL if name not in REPORTS])
        self.assertEqual(self.over(OverHttp, "").send(message("tools/list")).status, 401)
        self.assertIn("error", self.over(OverStdio, "stint_viewer_x_y").ask("tools/list"))

    def test_a_worker_sees_and_reports_on_its_own_task_only(self):
        token = self.claim()
        self.create(id="other", title="a secret")
        for kind in OverHttp, OverStdio:
            worker = self.over(kind, token)
            self.assertEqual(self.call(worker, "get_task")["structuredContent"]["id"], "mine")
            for name in "get_task", "why_task", "read_log":
                other = self.call(worker, name, id="other")
                self.assertTrue(other["isError"])
                self.assertNotIn("secret", json.dumps(other))
            self.assertEqual([one["uri"] for one in worker.ask("resources/list")["result"]["resources"]], ["stint://task/mine"])
            self.assertEqual(worker.ask("resources/read", {"uri": "stint://task/other"})["error"]["code"], -32002)
            for uri in "stint://task/mine", "stint://task/mine/log":
                self.assertEqual(worker.ask("resources/read", {"uri": uri}, NEW)["result"]["contents"][0]["uri"], uri)
            note = self.call(worker, "progress", note="half", percent=50)
            self.assertFalse(note["isError"], note)
        self.assertEqual(self.client.get("/api/tasks/mine").json["percent"], 50)
        self.assertIn("\"id\"", self.call(worker, "progress", id="other", note="x")["content"][0]["text"])
        self.call(worker, "done", result={"tests": 42})
        task = self.leave_it_to_the_report()
        self.assertEqual((task["state"], task["result"]), ("done", {"tests": 42}))

    def test_the_ends_of_an_attempt_are_those_of_the_api(self):
        for name, arguments, state in (("fail", {"message": "no", "retryable": False}, "failed"), ("block", {"message": "no key"}, "blocked"),
                                       ("release", {"reason": "later"}, "ready"), ("review", {"result": "see it"}, "review")):
            worker = self.over(OverHttp, self.claim("t-" + name))
            ended = self.call(worker, name, **arguments)
            self.assertFalse(ended["isError"], ended)
            self.assertEqual(ended["structuredContent"]["report"]["outcome"], name)
            self.assertEqual(self.leave_it_to_the_report("t-" + name)["state"], state, name)

    def test_a_question_is_pending_until_a_person_has_answered(self):
        worker = self.over(OverHttp, self.claim())
        asked = self.call(worker, "ask_approval", question="which branch?", options=["main", "release"])
        self.assertRegex(asked["content"][0]["text"], "^pending: .*End your turn now")
        self.assertEqual(asked["structuredContent"]["state"], "asking")
        question = self.client.get("/api/approvals").json[0]["question"]
        self.client.post("/api/tasks/mine/answer", {"text": "main", "question": question["id"]})
        self.assertEqual(self.call(worker, "get_task")["structuredContent"]["answer"]["text"], "main")

    def test_a_key_makes_one_task_of_two_calls(self):
        transport = self.over(OverHttp, self.token("producer"))
        made = [self.call(transport, "enqueue", title="once", queue="q", idempotency_key="k")["structuredContent"]["id"] for _ in "ab"]
        self.assertEqual(made[0], made[1])
        self.assertTrue(self.call(transport, "enqueue", title="another", queue="q", idempotency_key="k")["isError"])

    def test_wrong_arguments_are_named(self):
        transport = self.over(OverHttp, self.token("producer"))
        for arguments, words in (({}, 'needs the argument "title"'), ({"title": "x", "gates": ["me"]}, 'no argument "gates"'),
                                 ({"title": 5}, "title must be"), ({"title": "x", "priority": []}, "priority")):
            refused = self.call(transport, "enqueue", **arguments)
            self.assertTrue(refused["isError"])
            self.assertIn(words, refused["content"][0]["text"].replace('\\"', '"').replace('"field":"title","message":"', "title "))
        transport = self.over(OverHttp, self.token("viewer"))
        self.assertIn('"id"', self.call(transport, "get_task")["content"][0]["text"])
        self.assertIn("must be", self.call(transport, "list_tasks", queue=["a"])["content"][0]["text"])
        self.assertEqual(transport.ask("tools/call", {"name": "enqueue", "arguments": []})["error"]["code"], -32602)

    def test_what_is_no_message_is_refused_with_a_code(self):
        http = self.over(OverHttp, self.token("viewer"))
        for body, code in ((b"{", -32700), (b"[]", -32600), (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
                           (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600), (b'{"jsonrpc":"2.0","id":1}', -32600),
                           (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600)):
            refused = http.send(body)
            self.assertEqual((refused.status, refused.json["error"]["code"], refused.json["id"]), (400, code, None), body)
        for body in {"jsonrpc": "2.0", "method": "notifications/initialized"}, {"jsonrpc": "2.0", "id": 1, "result": {}}:
            quiet = http.send(body)
            self.assertEqual((quiet.status, quiet.body), (202, b""))
        self.assertEqual(http.ask("prompts/list")["error"]["code"], -32601)
        self.assertEqual(http.client.get("/mcp").status, 405)

    def test_headers_of_the_new_era_say_what_the_message_says(self):
        http = self.over(OverHttp, self.token("viewer"))
        call = message("tools/call", {"name": "list_tasks", "arguments": {}}, NEW)
        encoded = "=?base64?%s?=" % base64.b64encode(b"list_tasks").decode()
        self.assertEqual(http.send(call, NEW, **{"Mcp-Name": encoded}).status, 200)
        for header, value in (("Mcp-Name", "get_task"), ("Mcp-Method", "tools/list"), ("MCP-Protocol-Version", "2025-11-25"),
                              ("Mcp-Name", "=?base64?!?=")):
            refused = http.send(call, NEW, **{header: value})
            self.assertEqual((refused.status, refused.json["error"]["code"]), (400, -32020), header)
        self.assertEqual(http.send(call).json["error"]["code"], -32020)
        unknown = http.send(message("ping"), **{"MCP-Protocol-Version": "2031-01-01"})
        self.assertEqual((unknown.status, unknown.json["error"]["code"]), (400, -32022))
        self.assertEqual(unknown.json["error"]["data"]["supported"][0], NEW)
        missing = http.send(message("prompts/list", era=NEW), NEW)
        self.assertEqual((missing.status, missing.json["error"]["code"]), (404, -32601))

    def test_standard_input_carries_on_after_a_bad_line_and_ends_with_its_input(self):
        stdio = self.over(OverStdio, self.token("viewer"))
        stdio.line("{")
        self.assertEqual(json.loads(stdio.process.stdout.readline())["error"]["code"], -32700)
        stdio.line(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        self.assertEqual(stdio.ask("ping")["result"], {})
        self.server.kill()
        self.assertEqual(stdio.ask("ping")["error"]["code"], -32000)
        self.server.start()
        stdio.process.stdin.close()
        self.assertEqual(stdio.process.wait(HANG_S), 0)


if __name__ == "__main__":
    unittest.main()
