"""Credentials: who may do what, on every route there is; and that a secret is told once and kept nowhere."""
import base64
import hashlib
import hmac
import http.client
import itertools
import os
import re
import sqlite3
import subprocess
import threading
import time
import unittest

from figures import figure
from hang import HANG_S
import stintd

ROUTES = os.environ.get("STINT_ROUTES", "build/tests/stint-routes")

# What each kind may do: written down a second time, on purpose.
SCOPES = {
    "admin": {"read", "produce", "work", "claim", "operate", "approve", "gate", "emit", "admin", "metrics"},
    "operator": {"read", "operate", "approve", "emit"},
    "producer": {"produce"},
    "worker": {"work"},
    "viewer": {"read"},
    "metrics": {"metrics"},
    "approver": {"read", "approve"},
    "gate:merge": {"read", "gate"},
    "emit": {"emit"},
    "instance": {"work"},
    "claim": {"claim"},
    "open": {"read", "produce", "work", "operate", "emit", "metrics"},
}
MINTED = [kind for kind in SCOPES if kind not in ("instance", "claim", "open")]

# What a route is asked with so that it gets as far as it can; the others are asked with {}.
REPORT = {"workerId": "w-other", "fence": "1000000000001"}
BODIES = {
    "complete": REPORT, "progress": REPORT, "review": REPORT, "release": REPORT, "wait": REPORT,
    "fail": {**REPORT, "error": {"message": "x"}}, "block": {**REPORT, "error": {"message": "x"}},
    "ask": {**REPORT, "question": "?"}, "answer": {"text": "x"}, "claim": {"workerId": "w-other"},
    "claims": {"workerId": "w-other"}, "register": {"workerId": "w-other"}, "heartbeat": {"workerId": "w-other"},
    "tokens": {"kind": "claim", "task": "other", "fence": "1000000000001"},
    "log": {**REPORT, "offset": 0, "data": "x"}, "events": {"type": "ci.finished"},
    ":gate": {"verdict": "pass"},
}


def patterns():
    """(verb, pattern, scopes) of every route."""
    text = subprocess.run([ROUTES], check=True, capture_output=True, text=True).stdout
    for line in text.splitlines():
        verb, pattern, scopes, _ = line.split()
        yield verb, pattern, set(scopes.split("|"))


def all_routes():
    """(verb, path, scopes) of every route, with something in place of its parameters."""
    for verb, pattern, scopes in patterns():
        path = re.sub(r":\w+", "nothing-of-that-name", pattern)
        yield verb, path, scopes
        if verb == "GET":
            yield "HEAD", path, scopes


class TokenCase(unittest.TestCase):
    def setUp(self):
        self.server = stintd.Server("--set", "limits.authFailuresPerS=1000")
        self.admin = self.server.client()
        self.clients = [self.admin]

    def tearDown(self):
        for client in self.clients:
            client.close()
        self.server.end()

    def mint(self, kind, name="x", **fields):
        reply = self.admin.post("/api/tokens", {"kind": kind, "name": name, **fields})
        self.assertEqual(reply.status, 201, reply.body)
        return reply.json

    def client(self, token):
        client = self.server.client(token=token)
        self.clients.append(client)
        return client

    def holder(self, kind, name="x", **fields):
        return self.client(self.mint(kind, name, **fields)["token"])

    def revoke(self, token_id):
        return self.admin.call("DELETE", "/api/tokens/" + token_id)

    def ask(self, client, verb, path):
        return client.call(verb, path, None if verb in ("GET", "HEAD") else {})

    def last_event(self):
        events, after = [], "0"
        while page := self.admin.get(f"/api/events?after={after}&limit=100").json:
            events += page["events"]
            if page["next"] == after or not page["events"]:
                return events[-1]["seq"]
            after = page["next"]


class Producers(TokenCase):
    def test_who_may_not_read_learns_no_more_than_id_and_state_by_guessing_a_key(self):
        self.admin.post("/api/tasks", {"id": "t", "title": "secret", "uniqueKey": "k", "payload": "secret"})
        item = {"queue": "q", "title": "secret", "instructions": "secret", "dedupeKey": "k"}
        made = self.admin.post("/api/workqueue/enqueue", item).json["item"]
        producer, admin = self.holder("producer"), self.admin
        found = {"id": "t", "state": "ready", "deduplicated": True}
        self.assertEqual(producer.post("/api/tasks", {"title": "x", "uniqueKey": "k"}).json, found)
        self.assertEqual(producer.post("/api/tasks/batch", {"tasks": [{"title": "x", "uniqueKey": "k"}]}).json["results"][0]["task"], found)
        self.assertEqual(producer.post("/api/workqueue/enqueue", {**item, "title": "x", "instructions": "x"}).json["item"],
                         {"id": made["id"], "status": "ready", "_deduped": True})
        self.assertEqual(admin.post("/api/tasks", {"title": "x", "uniqueKey": "k"}).json["payload"], "secret")
        self.assertEqual(admin.post("/api/workqueue/enqueue", item).json["item"]["instructions"], "secret")


class EveryRoute(TokenCase):
    def refused_everywhere(self, token):
        client = self.client(token)
        before = self.last_event()
        # under the paths of a door it has the shape that its clients know
        doors = ("/api/workqueue/", "/api/v1/worker/orchestrator/")
        bodies = {place: set() for place in (None, *doors)}
        for verb, path, scope in all_routes():
            with self.subTest(verb=verb, path=path):
                reply = self.ask(client, verb, path)
                if scope == {"public"}:
                    # a login comes from the server's own page, which this is not
                    self.assertEqual(reply.status, {"/api/login": 403, "/api/enroll": 422}.get(path, 200))  # an empty enrolment
                    continue
                self.assertEqual(reply.status, 401)
                self.assertEqual(reply.headers["WWW-Authenticate"], "Bearer")
                if verb != "HEAD":
                    bodies[next((door for door in doors if path.startswith(door)), None)].add(reply.body)
        for door in doors:
            bodies[door].add(client.get(door + "no-such-path").body)
        bodies[None].add(client.get("/api/no-such-path").body)
        bodies[None].add(client.call("DELETE", "/api/tasks").body)
        self.assertEqual([len(each) for each in bodies.values()], [1, 1, 1], "what is refused looks the same everywhere")
        self.assertEqual(self.last_event(), before)

    def test_the_table_is_complete(self):
        found = list(all_routes())
        self.assertGreater(len(found), 40)
        self.assertLessEqual(set().union(*(scopes for _, _, scopes in found)) - {"public", "any"}, SCOPES["admin"])
        self.assertEqual({frozenset(scopes) for verb, path, scopes in found if "/tokens" in path},
                         {frozenset({"admin"}), frozenset({"admin", "read", "work"})})
        self.assertLessEqual({path for _, path, scopes in found if "public" in scopes}, {"/livez", "/healthz", "/readyz", "/health/leader", "/api/login", "/api/enroll"})

    def test_without_a_token_nothing_is_done_or_told(self):
        self.refused_everywhere("")

    def test_a_wrong_token_is_as_good_as_none(self):
        real = self.mint("admin")
        head, secret = real["token"].rsplit("_", 1) if "_" not in real["token"][-43:] \
            else (real["token"][:-44], real["token"][-43:])
        other = ("B" if secret[0] == "A" else "A") + secret[1:]
        for wrong in (head + "_" + other, head + "_", head, real["id"], "stint_admin_0000_" + secret,
                      real["token"].replace("stint_admin", "stint_viewer"), real["token"] + "x", "_", "___"):
            with self.subTest(wrong=wrong.replace(secret, "…")):
                self.assertEqual(self.client(wrong).get("/api/tasks").status, 401)
        self.refused_everywhere(head + "_" + other)

    def test_an_expired_token_is_as_good_as_none(self):
        token = self.mint("admin", expiresInMs=1)["token"]
        client, until = self.client(token), time.monotonic() + HANG_S
        while client.get("/api/tasks").status != 401:
            self.assertLess(time.monotonic(), until)
        self.refused_everywhere(token)

    def test_a_revoked_token_is_as_good_as_none(self):
        minted = self.mint("admin")
        self.assertEqual(self.client(minted["token"]).get("/api/tasks").status, 200)
        self.assertEqual(self.revoke(minted["id"]).status, 200)
        self.refused_everywhere(minted["token"])

    def test_a_connection_that_showed_a_good_token_gains_nothing_by_it_later(self):
        """What is remembered of a secret that was right is no right: on the same connection its end counts at once."""
        minted, other = self.mint("worker"), self.mint("worker")
        client = self.client(minted["token"])
        for _ in range(3):
            self.assertEqual(client.post("/api/claims", {"workerId": "w", "queues": ["q"]}).status, 200)
        socket = client.connection.sock
        self.revoke(other["id"])
        self.assertEqual(client.post("/api/claims", {"workerId": "w", "queues": ["q"]}).status, 200)
        self.revoke(minted["id"])
        for _ in range(2):
            reply = client.post("/api/claims", {"workerId": "w", "queues": ["q"]})
            self.assertEqual((reply.status, reply.json["code"]), (401, "unauthorized"))
        self.assertIs(client.connection.sock, socket)

    def test_a_claim_that_waits_ends_with_its_token(self):
        minted, got = self.mint("worker"), []
        client = self.client(minted["token"])
        poll = threading.Thread(target=lambda: got.append(
            client.post("/api/claims", {"workerId": "w", "queues": ["q"], "waitMs": 30000})))
        poll.start()
        until = time.monotonic() + HANG_S
        while b"\nstint_waiting_claims 1\n" not in self.admin.get("/metrics").body:
            self.assertLess(time.monotonic(), until)
        self.revoke(minted["id"])
        poll.join(HANG_S)
        self.assertEqual([(reply.status, reply.json["code"]) for reply in got], [(401, "unauthorized")])
        self.assertEqual(got[0].headers["WWW-Authenticate"], "Bearer")

    def credential(self, kind):
        """A client with a good credential of that kind, whatever it takes to get one."""
        if kind in MINTED:
            return self.holder(kind)
        worker = self.holder("worker")
        if kind == "instance":
            return self.client(worker.post("/api/workers/register", {"workerId": "w-own"}).json["credential"])
        self.admin.post("/api/tasks", {"id": "own", "title": "x", "queue": "own"})
        claim, = worker.post("/api/claims", {"workerId": "w-child", "queues": ["own"]}).json["claims"]
        body = {"kind": "claim", "task": "own", "fence": claim["fence"]}
        return self.client(worker.post("/api/tokens", body).json["token"])

    def check_kind(self, client, kind):
        for verb, path, scopes in all_routes():
            with self.subTest(kind=kind, verb=verb, path=path):
                status = self.ask(client, verb, path).status
                self.assertLess(status, 500)
                if path == "/api/login":
                    self.assertEqual(status, 403)  # it comes from no page
                elif path == "/mcp" and kind == "admin":
                    self.assertEqual(status, 403)  # not by accident: test_mcp
                elif path == "/api/tokens" and verb == "POST" and kind != "admin":
                    self.assertEqual(status, 403)
                elif path == "/api/renew" and kind in ("instance", "claim", "open"):
                    self.assertEqual(status, 403)  # their secrets follow from others, or there is none
                elif scopes & (SCOPES[kind] | {"public", "any"}):
                    self.assertNotIn(status, (401, 403))
                else:
                    self.assertEqual(status, 403)

    def test_each_kind_may_do_exactly_what_its_scopes_say(self):
        for kind in SCOPES:
            if kind != "open":
                self.check_kind(self.credential(kind), kind)

    def test_what_is_forbidden_makes_no_event(self):
        for kind in SCOPES:
            if kind in ("admin", "open"):
                continue
            client = self.credential(kind)
            before = self.last_event()
            for verb, path, scopes in all_routes():
                if not scopes & (SCOPES[kind] | {"public", "any"}):
                    self.assertEqual(self.ask(client, verb, path).status, 403)
            self.assertEqual(self.last_event(), before)

    def tries(self, client, task, worker, said, headers):
        """(verb, pattern, reply) of every route that names something, asked for these, as worker `said`."""
        for verb, pattern, _ in patterns():
            if pattern.startswith(("/api/tasks/:id", "/api/workers/:id")) or pattern == "/api/tokens":
                path = pattern.replace("/api/tasks/:id", "/api/tasks/" + task).replace(
                    "/api/workers/:id", "/api/workers/" + worker)
                body = dict(BODIES.get(path.rsplit("/", 1)[1], {}))
                if "task" in body:
                    body["task"] = task
                if "workerId" in body:
                    body["workerId"] = said
                yield verb, pattern, client.call(verb, path, None if verb == "GET" else body, headers)

    def test_what_is_refused_does_not_tell_whether_it_exists(self):
        other = self.holder("worker", queues=["shared", "theirs"])
        for task, queue in (("t-shared", "shared"), ("t-theirs", "theirs")):
            self.admin.post("/api/tasks", {"id": task, "title": "x", "queue": queue})
            claims = other.post("/api/claims", {"workerId": "w-other", "queues": [queue]}).json["claims"]
            self.assertEqual(len(claims), 1)
        self.admin.post("/api/tasks", {"id": "t-done", "title": "x", "queue": "shared"})
        claim, = other.post("/api/claims", {"workerId": "w-other"}).json["claims"]
        other.post("/api/tasks/t-done/complete", {"workerId": "w-other", "fence": claim["fence"]})
        other.post("/api/workers/register", {"workerId": "w-other"})
        strangers = {
            "worker": self.holder("worker", queues=["shared"]), "viewer": self.holder("viewer", queues=["shared"]),
            "instance": self.credential("instance"), "claim": self.credential("claim"),
            "producer": self.holder("producer"), "emit": self.holder("emit", queues=["mine"]),
            "metrics": self.holder("metrics"), "approver": self.holder("approver", queues=["mine"]),
            "gate": self.holder("gate:merge", queues=["mine"]),
        }
        before = self.last_event()
        for kind, client in strangers.items():
            for task, said, headers in itertools.product(
                    ("t-shared", "t-theirs", "t-done"), ("w-other", "w-mine"), (None, {"If-Match": '"1"'})):
                there = self.tries(client, task, "w-other", said, headers)
                absent = self.tries(client, "t-absent", "w-absent", said, headers)
                for (verb, pattern, reply), (_, _, expected) in zip(there, absent):
                    with self.subTest(kind=kind, task=task, said=said, verb=verb, pattern=pattern):
                        if pattern == "/api/tasks/:id/claim" and kind in ("worker", "instance"):
                            # whoever serves the queue is told that somebody else has it; the worker id is not its own
                            self.assertIn(reply.status, (403, 404, 409, 412 if headers else 409))
                        elif kind == "viewer" and task != "t-theirs" and verb == "GET" and "/tasks/" in pattern:
                            self.assertEqual(reply.status, 200)
                        else:
                            self.assertIn(reply.status, (403, 404))
                            self.assertEqual((reply.status, reply.body), (expected.status, expected.body))
        self.assertEqual(self.last_event(), before)


class Ended(TokenCase):
    """Whatever a credential was good for: once it has ended it is as good as none, everywhere."""

    def worker_with_claim(self):
        minted = self.mint("worker")
        worker = self.client(minted["token"])
        instance = worker.post("/api/workers/register", {"workerId": "w"}).json["credential"]
        self.admin.post("/api/tasks", {"id": "t", "title": "x", "queue": "q"})
        claim, = worker.post("/api/claims", {"workerId": "w"}).json["claims"]
        child = worker.post("/api/tokens", {"kind": "claim", "task": "t", "fence": claim["fence"]}).json["token"]
        self.assertEqual(self.client(instance).get("/api/tasks").status, 200)
        self.assertEqual(self.client(child).get("/api/tasks/t").status, 200)
        return minted, worker, instance, child, claim["fence"]

    def refused_everywhere(self, token):
        EveryRoute.refused_everywhere(self, token)

    def test_with_their_parent_revoked_instance_and_child_are_nobody(self):
        minted, _, instance, child, _ = self.worker_with_claim()
        self.revoke(minted["id"])
        self.refused_everywhere(instance)
        self.refused_everywhere(child)

    def test_a_childs_token_ends_with_its_claim(self):
        _, worker, _, child, fence = self.worker_with_claim()
        self.assertEqual(self.client(child).post("/api/tasks/t/progress", {"note": "half"}).status, 200)
        worker.post("/api/tasks/t/release", {"workerId": "w", "fence": fence})
        self.refused_everywhere(child)
        claim, = worker.post("/api/claims", {"workerId": "w"}).json["claims"]
        self.assertNotEqual(claim["fence"], fence)
        self.refused_everywhere(child)

    def test_an_instances_token_ends_with_its_worker(self):
        _, worker, instance, child, _ = self.worker_with_claim()
        self.assertEqual(worker.call("DELETE", "/api/workers/w").status, 200)
        self.refused_everywhere(instance)
        self.refused_everywhere(child)

    def test_registering_again_ends_the_former_token(self):
        _, worker, instance, child, _ = self.worker_with_claim()
        fresh = self.client(instance).post("/api/workers/register", {"workerId": "w"}).json["credential"]
        self.refused_everywhere(instance)
        self.assertEqual(self.client(fresh).get("/api/workers/w").status, 200)
        self.assertEqual(self.client(child).get("/api/tasks/t").status, 200, "the claim goes on")
        again = worker.post("/api/workers/register", {"workerId": "w"}).json["credential"]
        self.refused_everywhere(fresh)
        self.assertEqual(self.client(again).get("/api/workers/w").status, 200)

    def assert_alive(self, instance, child):
        self.assertEqual(self.client(instance).get("/api/workers/w").status, 200)
        self.assertEqual(self.client(child).get("/api/tasks/t").status, 200)

    def test_they_outlive_a_restart_and_another_admin_token(self):
        _, _, instance, child, _ = self.worker_with_claim()
        self.server.kill()
        self.server.start()
        self.assert_alive(instance, child)
        self.server.stop()
        former = self.server.token
        os.unlink(os.path.join(self.server.home, "admin.token"))
        self.server.start()
        self.admin = self.client(self.server.token)
        self.assertNotEqual(self.server.token, former)
        self.refused_everywhere(former)
        self.assert_alive(instance, child)
        self.assertIn("token.admin_replaced", [event["type"] for event in self.admin.get("/api/events").json["events"]])
        done = self.client(child).post("/api/tasks/t/complete", {"result": {"a": 1}})
        self.assertEqual(done.status, 200, done.json)

    def rotate(self):
        done = subprocess.run([os.environ["STINT"], "--home", self.server.home, "token", "rotate", "--key"],
                              capture_output=True, text=True, timeout=HANG_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def test_they_outlive_one_new_key_and_end_with_the_second(self):
        _, worker, instance, child, _ = self.worker_with_claim()
        first = instance.split(".")[3].split("_")[0]
        second = self.rotate()
        self.assert_alive(instance, child)
        self.assertEqual([key["id"] for key in self.admin.get("/api/signing-keys").json["keys"]], [second, first])
        fresh = worker.post("/api/workers/register", {"workerId": "w"}).json["credential"]
        self.assertIn(f".{second}_", fresh)
        self.rotate()
        self.refused_everywhere(instance)
        self.refused_everywhere(child)
        self.assertEqual(self.client(fresh).get("/api/workers/w").status, 200)
        self.server.kill()
        self.server.start()
        self.admin = self.client(self.server.token)
        self.refused_everywhere(child)
        self.assertEqual(self.client(fresh).get("/api/workers/w").status, 200)

    def test_another_key_in_the_text_is_a_forgery(self):
        _, _, instance, child, _ = self.worker_with_claim()
        second = self.rotate()
        first = instance.split(".")[3].split("_")[0]
        for token in (instance, child):
            for other in (second, "0", "1-00000000", ""):
                self.assertEqual(self.client(token.replace(f".{first}_", f".{other}_")).get("/api/tasks/t").status, 401)
            self.assertEqual(self.client(token.replace(f".{first}_", "_")).get("/api/tasks/t").status, 401)

    def test_those_of_a_release_before_keys_in_the_store_stay_valid(self):
        _, _, instance, child, _ = self.worker_with_claim()
        self.server.stop()
        key = hashlib.sha256(b"stint: the key of derived tokens, 1\0" + self.server.token.encode()).digest()

        def as_before(token):
            text = token[:-44].rsplit(".", 1)[0]
            mac = hmac.new(key, text.encode(), hashlib.sha256).digest()
            return f"{text}_{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"
        former = [as_before(token) for token in (instance, child)]
        db = sqlite3.connect(os.path.join(self.server.home, "stint.db"))
        db.create_function("seal", -1, stintd.seal)
        db.execute("DELETE FROM secret")
        db.execute("REPLACE INTO meta (key, value, crc) VALUES (15, 1, seal(15, 1))")
        db.commit()
        db.close()
        self.server.start()
        self.admin = self.client(self.server.token)
        self.assert_alive(*former)
        self.refused_everywhere(instance)
        self.rotate()
        for token in former:
            self.refused_everywhere(token)

    def test_a_restore_ends_them_and_revives_no_token(self):
        minted, _, instance, child, _ = self.worker_with_claim()
        backup = self.admin.post("/api/backup", {"file": "b.db"}).json["path"]
        with open(backup, "rb") as file:
            self.assertNotIn(instance.split(".")[3].split("_")[0].encode(), file.read())
        self.revoke(minted["id"])
        since = self.mint("viewer", "since")
        self.server.stop()
        done = subprocess.run([stintd.STINTD, "--home", self.server.home, "--restore", backup], capture_output=True,
                              text=True, timeout=HANG_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"these tokens are gone (the backup does not have them; their holders need new ones): {since['id']} (since)",
                      done.stdout)
        self.server.start()
        self.admin = self.client(self.server.token)
        for token in (minted["token"], since["token"], instance, child):
            self.refused_everywhere(token)
        restored, = [event for event in self.admin.get("/api/events").json["events"] if event["type"] == "server.restored"]
        self.assertEqual(restored["data"], {"generation": 2, "tokens": {"went": [since["id"]]}})
        self.assertTrue(self.admin.get("/api/signing-keys").json["keys"][0]["id"].startswith("2-"))

    def test_a_forged_one_is_nobody(self):
        _, _, instance, child, fence = self.worker_with_claim()
        for token in (instance, child):
            for at in (len(token) - 1, len(token) - 43, token.index(".") - 1, token.index(".") + 1, 8):
                forged = token[:at] + ("b" if token[at] == "a" else "a") + token[at + 1:]
                self.assertEqual(self.client(forged).get("/api/tasks/t").status, 401, forged)
        raised = child.replace("." , ".1", 1)
        self.assertEqual(self.client(raised).get("/api/tasks/t").status, 401)


class Life(TokenCase):
    def test_a_token_is_made_seen_and_revoked(self):
        minted = self.mint("worker", "builder", queues=["b", "a"])
        self.assertRegex(minted["token"], r"^stint_worker_%s_[A-Za-z0-9_-]{43}$" % minted["id"])
        month = 30 * 24 * 3600 * 1000
        self.assertEqual(minted["expiresAt"] - minted["createdAt"], month)
        listed, = self.admin.get("/api/tokens").json
        self.assertEqual((listed["id"], listed["name"], listed["queues"], listed["createdBy"]),
                         (minted["id"], "builder", ["a", "b"], "admin"))
        self.assertNotIn("token", listed)
        revoked = self.revoke(minted["id"]).json
        self.assertEqual(revoked["revokedBy"], "admin")
        self.assertEqual(self.revoke(minted["id"]).json, revoked)
        self.assertEqual(self.revoke("0123456789abcdef").status, 404)

    def test_kinds_that_there_are_not_are_refused(self):
        for kind in ("gate", "gate:", "gate:" + 256 * "g", "instance", "root"):
            reply = self.admin.post("/api/tokens", {"kind": kind, "name": "x"})
            self.assertEqual((reply.status, reply.json["errors"][0]["field"]), (422, "kind"))

    def test_an_approver_of_one_gate_is_listed_with_it(self):
        self.revoke(self.mint("gate:" + 255 * "g")["id"])
        minted = self.mint("gate:merge", "bot", queues=["q"])
        self.assertRegex(minted["token"], r"^stint_gate_")
        kinds = {listed["kind"]: listed.get("queues") for listed in self.admin.get("/api/tokens").json}
        self.assertEqual(kinds, {"gate:" + 255 * "g": None, "gate:merge": ["q"]})

    def test_the_token_of_the_file_cannot_be_revoked(self):
        reply = self.revoke(self.server.token.split("_")[2])
        self.assertEqual((reply.status, reply.json["code"]), (403, "forbidden"))
        self.assertIn("admin.token", reply.json["detail"])
        self.assertEqual(self.admin.get("/api/tokens").json, [])

    def test_an_admin_may_revoke_the_token_it_uses(self):
        minted = self.mint("admin", "short")
        client = self.client(minted["token"])
        self.assertEqual(client.call("DELETE", "/api/tokens/" + minted["id"]).json["revokedBy"], "admin:short")
        self.assertEqual(client.get("/api/tokens").status, 401)

    def test_tokens_outlive_the_server_and_revoked_ones_stay_revoked(self):
        good, bad = self.mint("viewer"), self.mint("viewer")
        self.revoke(bad["id"])
        self.server.kill()
        self.server.start()
        self.assertEqual(self.client(good["token"]).get("/api/tasks").status, 200)
        self.assertEqual(self.client(bad["token"]).get("/api/tasks").status, 401)

    def test_what_an_admin_does_leaves_a_trace(self):
        second = self.mint("admin", "second")
        minted = self.client(second["token"]).call(
            "POST", "/api/tokens", {"kind": "viewer", "name": "ann"}, {"X-Request-Id": "req-7"}).json
        self.revoke(minted["id"])
        created, revoked = self.admin.get("/api/events?after=0&limit=100").json["events"][-2:]
        self.assertEqual((created["type"], created["actor"], created["data"]), ("token.created", "admin:second", {
            "principal": second["id"], "route": "POST /api/tokens", "object": minted["id"], "kind": "viewer",
            "name": "ann", "requestId": "req-7"}))
        self.assertEqual((revoked["type"], revoked["actor"], revoked["data"]), ("token.revoked", "admin", {
            "principal": "admin", "route": "DELETE /api/tokens/:id", "object": minted["id"], "kind": "viewer",
            "name": "ann"}))

    def test_events_say_which_token_acted(self):
        self.holder("producer", "ci").post("/api/tasks", {"title": "x", "queue": "q"})
        event = self.admin.get("/api/events?after=0&limit=100").json["events"][-1]
        self.assertEqual((event["type"], event["actor"]), ("task.created", "producer:ci"))


class Queues(TokenCase):
    def create(self, task, queue):
        self.assertEqual(self.admin.post("/api/tasks", {"id": task, "title": "x", "queue": queue}).status, 201)

    def test_a_worker_gets_work_of_its_queues_alone(self):
        self.create("other", "q")
        worker = self.holder("worker", queues=["a", "b"])
        self.assertEqual(worker.post("/api/claims", {"workerId": "w"}).json["claims"], [])
        self.create("mine", "b")
        claim, = worker.post("/api/claims", {"workerId": "w", "max": 10}).json["claims"]
        self.assertEqual(claim["task"]["id"], "mine")
        for queues in (["q"], ["a", "q"]):
            reply = worker.post("/api/claims", {"workerId": "w", "queues": queues})
            self.assertEqual((reply.status, reply.json["code"]), (403, "forbidden"))
        done = worker.post("/api/tasks/mine/complete", {"workerId": "w", "fence": claim["fence"]})
        self.assertEqual(done.status, 200)

    def test_tasks_of_other_queues_look_absent_to_a_worker(self):
        self.create("other", "q")
        worker = self.holder("worker", queues=["a"])
        absent = worker.post("/api/tasks/absent/claim", {"workerId": "w"})
        other = worker.post("/api/tasks/other/claim", {"workerId": "w"})
        self.assertEqual((other.status, other.body), (404, absent.body))
        claim, = self.admin.post("/api/claims", {"workerId": "w", "queues": ["q"]}).json["claims"]
        body = {"workerId": "w", "fence": claim["fence"]}
        for verb in ("complete", "progress", "release", "review"):
            self.assertEqual(worker.post("/api/tasks/other/" + verb, body).status, 404, verb)
        finish = {"workerId": "w", "finish": [{"id": "other", "fence": claim["fence"], "outcome": "complete"}]}
        finished, = worker.post("/api/claims", finish).json["finished"]
        self.assertEqual(finished["code"], "not_found")
        self.assertEqual(self.admin.get("/api/tasks/other").json["state"], "claimed")

    def test_a_worker_neither_lists_nor_reads_what_is_for_the_slot_of_another(self):
        mine, other = self.holder("worker"), self.holder("worker")
        self.assertEqual(other.post("/api/workers/register", {"workerId": "w", "slot": "theirs"}).status, 200)
        for task, owner in (("a", "theirs"), ("b", "free"), ("c", None)):
            self.admin.post("/api/tasks", {"id": task, "title": "x", "owner": owner})
        self.assertEqual([task["id"] for task in mine.get("/api/tasks").json], ["b", "c"])
        self.assertEqual([task["id"] for task in other.get("/api/tasks").json], ["a", "b", "c"])
        self.assertEqual([mine.get(f"/api/tasks/{task}").status for task in "abc"], [404, 200, 200])
        self.assertEqual((mine.get("/api/tasks/a/why").status, other.get("/api/tasks/a").status), (404, 200))
        self.assertEqual(other.call("DELETE", "/api/workers/w").status, 200)
        self.assertEqual((mine.get("/api/tasks/a").status, other.get("/api/tasks/a").status), (404, 200), "it is still theirs")
        taken = mine.post("/api/workers/register", {"workerId": "v", "slot": "theirs"})
        self.assertEqual((taken.status, taken.json["code"]), (403, "forbidden"))
        self.assertIn("That slot belongs to another credential", taken.json["detail"])

    def test_a_producer_creates_in_its_queues_alone(self):
        producer = self.holder("producer", queues=["a"])
        self.assertEqual(producer.post("/api/tasks", {"title": "x", "queue": "a"}).status, 201)
        self.assertEqual(producer.post("/api/tasks", {"title": "x", "queue": "q"}).status, 403)
        self.assertEqual(producer.post("/api/tasks", {"title": "x"}).status, 403)
        batch = producer.post("/api/tasks/batch", [{"title": "x", "queue": queue} for queue in "qaq"])
        self.assertEqual([item["status"] for item in batch.json["results"]], [403, 201, 403])
        self.assertEqual({task["queue"] for task in self.admin.get("/api/tasks").json}, {"a"})

    def test_a_producer_is_not_shown_a_task_of_another_queue(self):
        self.admin.post("/api/tasks", {"id": "other", "title": "secret", "queue": "q", "uniqueKey": "k"})
        producer = self.holder("producer", queues=["a"])
        for fields in ({"uniqueKey": "k"}, {"id": "other"}):
            reply = producer.post("/api/tasks", {"title": "x", "queue": "a", **fields})
            self.assertEqual((reply.status, reply.json["code"]), (409, "task_exists"))
            self.assertNotIn(b"secret", reply.body)
            self.assertNotIn(b"ready", reply.body)


class Revocation(TokenCase):
    def test_a_claim_that_waits_gets_nothing_once_its_token_is_revoked(self):
        minted, replies = self.mint("worker"), []
        client = self.client(minted["token"])
        waiting = threading.Thread(target=lambda: replies.append(
            client.post("/api/claims", {"workerId": "w", "waitMs": 20000})))
        waiting.start()
        until = time.monotonic() + HANG_S
        while b"\nstint_waiting_claims 1\n" not in self.admin.get("/metrics").body:
            self.assertLess(time.monotonic(), until)
        self.revoke(minted["id"])
        self.admin.post("/api/tasks", {"id": "t", "title": "x", "queue": "q"})
        waiting.join(HANG_S)
        self.assertEqual([reply.status for reply in replies], [401])
        self.assertEqual(self.admin.get("/api/tasks/t").json["state"], "ready")

    def test_an_open_stream_ends_when_its_token_is_revoked(self):
        minted = self.mint("viewer")
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=HANG_S)
        connection.request("GET", "/api/events?after=0", headers={
            "Authorization": "Bearer " + minted["token"], "Accept": "text/event-stream"})
        stream = connection.getresponse()
        self.assertEqual(stream.status, 200)
        self.assertIn(b"server.started", stream.fp.readline() + stream.fp.readline() + stream.fp.readline()
                      + stream.fp.readline() + stream.fp.readline())
        self.revoke(minted["id"])
        since = time.monotonic()
        stream.read()
        figure("end of a stream whose token is revoked", time.monotonic() - since, "s", 3)
        connection.close()


class Secrets(TokenCase):
    def test_a_secret_is_kept_nowhere(self):
        minted = [self.mint(kind, queues=["q"]) if kind in ("worker", "producer") else self.mint(kind)
                  for kind in MINTED]
        for token in minted:
            client = self.client(token["token"])
            client.post("/api/tasks", {"title": "x", "queue": "q"})
            client.post("/api/claims", {"workerId": "w"})
            client.post("/api/tokens", {"kind": token["token"], "name": "x"})
            client.get("/api/tasks")
        self.revoke(minted[0]["id"])
        told = b"".join(self.admin.get(path).body for path in
                        ("/api/tokens", "/api/events?after=0&limit=1000", "/api/tasks", "/metrics", "/api/workers"))
        self.assertIn(minted[0]["id"].encode(), told)
        kept = told + self.everything_at_home()
        self.server.stop()
        kept += self.everything_at_home()
        for token in minted:
            secret = token["token"][-43:]
            raw = base64.urlsafe_b64decode(secret + "=")
            for form in (secret.encode(), raw, raw.hex().encode()):
                self.assertNotIn(form, kept)
            digest = hashlib.sha256(token["token"].encode())
            self.assertIn(digest.digest(), kept, "the hash is what is kept")
            self.assertNotIn(digest.digest(), told)
            self.assertNotIn(digest.hexdigest().encode(), told)

    def test_a_token_that_work_prints_or_reports_is_shown_to_nobody(self):
        worker = self.holder("worker")
        self.admin.post("/api/tasks", {"id": "t", "title": "x"})
        claim, = worker.post("/api/claims", {"workerId": "w", "tokens": True}).json["claims"]
        token, body = claim["token"], {"workerId": "w", "fence": claim["fence"]}
        line = f"stint_worker_count 1 {token} end\n"
        for path, more in (("progress", {"note": line, "data": {"seen": token}}), ("log", {"offset": 0, "data": line}),
                           ("complete", {"result": {"said": line}, "evidence": {"links": [token]}})):
            self.assertEqual(worker.post(f"/api/tasks/t/{path}", {**body, **more}).status, 200, path)
        told = b"".join(self.admin.get(path).body for path in
                        ("/api/tasks/t", "/api/tasks/t/log", "/api/tasks/t/events", "/api/events?after=0&limit=1000"))
        self.assertNotIn(token[-43:].encode(), told + self.everything_at_home())
        self.assertEqual(self.admin.get("/api/tasks/t/log").json["data"], line.replace(token[-43:], "*" * 43))

    def test_the_secret_of_the_file_is_in_the_file_alone(self):
        self.mint("viewer")
        secret = self.server.token[-43:].encode()
        self.server.stop()
        self.assertNotIn(secret, self.everything_at_home())

    def everything_at_home(self):
        content = b""
        for name in os.listdir(self.server.home):
            path = os.path.join(self.server.home, name)
            if os.path.isfile(path) and name != "admin.token":
                with open(path, "rb") as file:
                    content += file.read()
        return content


if __name__ == "__main__":
    unittest.main()
