"""Sessions: agents that are spawned by a label. A scripted claimant stands where an agent would run."""
import urllib.parse

import proof
import test_slots

LABEL = "agent:main:worker-slot-1:5f0c"
SPAWN = {"sessionLabel": LABEL, "channel": "internal", "prompt": "You are a worker agent.",
         "model": "anthropic/claude-sonnet-4-5", "thinking": "low", "autoStart": True}
DAY_MS = 24 * 3600 * 1000


class SessionCase(test_slots.SlotCase):
    def spawn(self, expect=201, **fields):
        reply = self.client.post("/api/sessions/spawn", {**SPAWN, **fields})
        self.assertEqual(reply.status, expect, reply.body)
        return reply.json

    def session(self, label=LABEL, expect=200):
        reply = self.client.get("/api/sessions/" + urllib.parse.quote(label, safe=""))
        self.assertEqual(reply.status, expect, reply.body)
        return reply.json

    def stop(self, label=LABEL, expect=200):
        reply = self.client.call("DELETE", "/api/sessions/" + urllib.parse.quote(label, safe=""))
        self.assertEqual(reply.status, expect, reply.body)
        return reply.json

    def sessions(self):
        return self.client.get("/api/sessions").json

    def serve(self, worker="agents", queue="sessions"):
        """What runs agents takes the next one."""
        claim, = self.claim(worker, queues=[queue])
        return claim

    def seen_as(self, label=LABEL):
        """The seed's own way to look at it."""
        for session in self.sessions():
            if session["id"] == label:
                return "complete" if session["completed"] else "failed" if session["error"] else "running"
        return "unknown"

    def types_of_session(self, label=LABEL):
        return [event["type"] for event in self.events() if event.get("session") == label]


class Life(SessionCase):
    def test_a_session_from_spawn_to_complete(self):
        self.assertEqual(self.seen_as(), "unknown")
        session = self.spawn()
        self.assertEqual((session["id"], session["status"], session["prompt"]), (LABEL, "queued", SPAWN["prompt"]))
        self.assertEqual(self.seen_as(), "running")
        claim = self.serve()
        self.assertEqual((claim["task"]["instructions"], claim["task"]["model"], claim["task"]["thinking"]),
                         (SPAWN["prompt"], SPAWN["model"], "low"))
        self.report("progress", claim, "agents", session="0d2f6a")
        session = self.session()
        self.assertEqual((session["status"], session["agentSessionId"], session["workerId"]),
                         ("running", "0d2f6a", "agents"))
        self.report("complete", claim, "agents", result={"summary": "fine"})
        session = self.session()
        self.assertEqual((session["completed"], session["error"], session["result"]), (True, None, {"summary": "fine"}))
        self.assertEqual(self.seen_as(), "complete")
        self.assertEqual(self.types_of_session(), ["session.started", "session.ended"])

    def test_a_failure_is_an_error_in_words(self):
        self.spawn()
        self.report("fail", self.serve(), "agents", error={"code": "EXECUTION_ERROR", "message": "no such model"})
        self.assertEqual((self.session()["error"], self.seen_as()), ("no such model", "failed"))

    def test_a_worker_that_is_lost_is_gone_and_another_runs_it(self):
        self.spawn()
        self.client.post("/api/workers/register", {"workerId": "agents"})
        self.serve()
        self.client.call("DELETE", "/api/workers/agents?how=terminated")
        self.assertEqual(self.session()["status"], "queued")
        self.serve("others")
        self.assertEqual(self.types_of_session(), ["session.started", "session.ended", "session.started"])

    def test_the_same_label_is_the_same_session(self):
        self.spawn()
        self.assertEqual(self.spawn(expect=200)["id"], LABEL)
        self.assertEqual(len(self.sessions()), 1)
        self.report("complete", self.serve(), "agents")
        self.assertEqual(self.spawn(expect=409)["code"], "task_exists")

    def test_without_a_label_it_is_called_like_its_task(self):
        session = self.spawn(sessionLabel=None)
        self.assertEqual(session["id"], session["taskId"])
        self.assertEqual(self.session(session["id"])["taskId"], session["taskId"])

    def test_a_label_may_be_what_no_id_can_be(self):
        session = self.spawn(sessionLabel="über / alles?")
        self.assertNotEqual(session["id"], session["taskId"])
        self.assertEqual(self.session("über / alles?")["taskId"], session["taskId"])

    def test_one_that_shall_not_start_waits(self):
        session = self.spawn(autoStart=False)
        self.assertEqual(session["status"], "pending")
        self.assertEqual(self.claim("agents", queues=["sessions"]), [])
        self.client.post("/api/tasks/%s/unpark" % session["taskId"])
        self.serve()

    def ends(self):
        return [(event["type"], event["data"].get("channel")) for event in self.events()
                if event.get("session") == LABEL and event["type"] in ("session.ended", "session.gone")]

    def test_a_channel_other_than_internal_is_told_at_the_end(self):
        self.spawn(channel="telegram")
        self.report("release", self.serve(), "agents")
        self.assertEqual(self.ends(), [("session.ended", None)], "another attempt follows")
        self.report("complete", self.serve(), "agents")
        self.assertEqual(self.ends()[1:], [("session.ended", "telegram")])

    def test_the_internal_channel_is_no_news(self):
        self.spawn()
        self.report("complete", self.serve(), "agents")
        self.assertEqual(self.ends(), [("session.ended", None)])

    def append(self, claim, offset, data, worker="agents"):
        reply = self.client.post("/api/tasks/%s/log" % claim["task"]["id"], {
            "workerId": worker, "fence": claim["fence"], "offset": offset, "data": data})
        self.assertEqual(reply.status, 200, reply.body)
        return reply

    def told(self):
        return [(event["data"]["offset"], event["data"]["text"]) for event in self.events()
                if event["type"] == "session.output" and event["session"] == LABEL]

    def test_what_it_prints_is_told_as_it_comes(self):
        self.spawn()
        claim = self.serve()
        first = self.append(claim, 0, "hello\n")
        self.append(claim, 0, "hello\n")  # said again: it is known
        self.append(claim, 6, "h\u00e9llo \"again\"\n")
        self.assertEqual(self.told(), [(0, "hello\n"), (6, "h\u00e9llo \"again\"\n")])
        event = [event for event in self.events() if event["type"] == "session.output"][0]
        self.assertEqual((event["task"], event["worker"], event["data"]["from"]), (LABEL, "agents", "claimed"))
        self.assertEqual(first.headers["Stint-Seq"], str(event["seq"]))
        self.report("complete", claim, "agents")
        self.assertEqual(self.types_of_session(), ["session.started", "session.output", "session.output", "session.ended"])

    def test_of_much_output_the_end_is_told_and_of_very_much_not_all(self):
        self.spawn()
        claim = self.serve()
        text, offset, kib = "\u00e9" * 5000, 0, 1024
        for _ in range(20):
            self.append(claim, offset, text)
            offset += 2 * len(text)
        told = self.told()
        self.assertEqual(told[0], (2 * 5000 - 4 * kib, "\u00e9" * (2 * kib)))
        self.assertGreaterEqual(len(told), 16)
        self.assertEqual(self.client.get("/api/sessions/%s/log" % LABEL).json["length"], offset)

    def test_what_is_no_session_tells_nothing(self):
        task = self.create()
        claim, = self.claim("w")
        self.append(claim, 0, "hello\n", "w")
        self.assertEqual(self.types_of(task), ["task.created", "task.claimed"])

    def test_its_log_is_its_tasks(self):
        self.spawn()
        claim = self.serve()
        self.client.post("/api/tasks/%s/log" % LABEL, {"workerId": "agents", "fence": claim["fence"], "offset": 0,
                                                       "data": "hello\n"})
        self.assertEqual(self.client.get("/api/sessions/%s/log" % LABEL).json["data"], "hello\n")

    def test_they_are_there_after_a_kill(self):
        self.spawn()
        task = self.create()
        self.spawn(sessionLabel="onto", taskId=task)
        done = self.spawn(sessionLabel="done")["taskId"]
        self.client.post("/api/tasks/%s/cancel" % done)
        before = self.sessions()
        self.restart()
        self.assertEqual(self.sessions(), before)
        self.assertEqual([session["id"] for session in before], [LABEL, "onto", "done"])
        self.assertEqual(self.serve()["task"]["id"], LABEL)
        self.assertEqual(self.types_of_session(), ["session.started"])
        self.server.stop()
        self.prove()


class Onto(SessionCase):
    """Sessions for a task that is there."""

    def test_it_is_that_task_and_no_other_is_made(self):
        task = self.create(title="build")
        self.assertEqual(self.spawn(taskId=task)["taskId"], task)
        self.assertEqual(len(self.client.get("/api/tasks").json), 1)
        claim, = self.claim()
        self.assertEqual(self.session()["status"], "running")
        self.report("complete", claim)
        self.assertEqual(self.types_of_session(), ["session.started", "session.ended"])

    def test_one_that_was_parked_goes_on(self):
        task = self.create(state="pending")
        self.assertEqual(self.spawn(taskId=task, autoStart=False)["status"], "pending")
        self.assertEqual(self.spawn(taskId=task, sessionLabel="now")["status"], "queued")

    def test_one_that_runs_is_a_session_from_then_on(self):
        task = self.create()
        self.claim()
        self.assertEqual(self.spawn(taskId=task)["status"], "running")
        self.assertEqual(self.types_of_session(), ["session.started"])

    def test_a_new_label_takes_the_place_of_the_old_one(self):
        task = self.create()
        self.spawn(taskId=task)
        self.spawn(taskId=task, sessionLabel="second")
        self.session(expect=404)
        self.assertEqual([session["id"] for session in self.sessions()], ["second"])

    def test_what_cannot_be_is_refused(self):
        self.assertEqual(self.spawn(taskId="t-99", expect=404)["code"], "not_found")
        task = self.create()
        self.client.post("/api/tasks/%s/cancel" % task)
        self.assertEqual(self.spawn(taskId=task, expect=409)["code"], "already_terminal")
        self.spawn()
        self.assertEqual(self.spawn(taskId=self.create(), expect=409)["code"], "task_exists")


class Stopping(SessionCase):
    def test_its_own_task_is_cancelled(self):
        self.spawn()
        self.serve()
        session = self.stop()
        self.assertEqual((session["status"], session["completed"]), ("stopped", False))
        self.assertEqual(self.task(LABEL)["status"], "cancelled")
        self.assertEqual(self.stop(), session, "once more changes nothing")
        self.assertEqual(self.seen_as(), "failed")

    def test_under_a_beating_worker_it_takes_its_time(self):
        self.spawn()
        token = self.client.post("/api/workers/register", {"workerId": "agents"}).json["token"]
        claim = self.serve()
        token = self.beat("agents", token=token, boundTasks=[LABEL]).json["token"]
        self.assertEqual(self.stop(expect=202)["status"], "stopping")
        told = self.beat("agents", token=token).json
        self.assertEqual(told["commands"], [{"type": "cancel", "task": LABEL}])
        self.report("release", claim, "agents")
        self.assertEqual(self.session()["status"], "stopped")

    def test_another_task_is_blocked(self):
        task = self.create()
        self.spawn(taskId=task)
        token = self.beat("w").json["token"]
        claim, = self.claim()
        token = self.beat("w", token=token, boundTasks=[task]).json["token"]
        self.assertEqual(self.stop(expect=202)["status"], "stopping")
        self.assertEqual(self.beat("w", token=token).json["commands"], [{"type": "cancel", "task": task}])
        self.assertEqual(self.task(task)["status"], "in-progress", "until its worker has stopped")
        self.report("release", claim)
        found = self.task(task)
        self.assertEqual((found["status"], found["error"]["code"]), ("blocked", "STOPPED"))
        self.assertEqual(self.session()["error"], "its session was stopped")
        self.assertEqual(self.report("complete", claim).status, 409)
        self.client.post("/api/tasks/%s/retry" % task)
        self.assertEqual(self.session()["status"], "queued")

    def test_wherever_it_stands_nothing_of_it_runs_afterwards(self):
        for label, fields in (("parked", {"state": "pending"}), ("later", {"notBefore": 4000000000000}),
                              ("behind", {"blockedBy": ["parked"]})):
            self.create(id=label, **fields)
            self.spawn(taskId=label, sessionLabel="s-" + label, autoStart=False)
        for label in ("parked", "later", "behind"):
            self.assertEqual(self.stop("s-" + label)["status"], "stopped")
            self.assertEqual(self.task(label)["status"], "blocked")

    def test_what_is_not_there_cannot_be_stopped(self):
        self.stop("nobody", expect=404)
        self.session("nobody", expect=404)
        self.assertEqual(self.client.get("/api/sessions/nobody/log").status, 404)


class BadInput(SessionCase):
    def test_what_is_wrong_is_said_and_nothing_changes(self):
        for fields, field in (({"prompt": None}, "prompt"), ({"prompt": 7}, "prompt"), ({"sessionLabel": ""}, "sessionLabel"),
                              ({"sessionLabel": "x" * 129}, "sessionLabel"), ({"autoStart": "yes"}, "autoStart"),
                              ({"model": []}, "model"), ({"taskId": {}}, "taskId")):
            self.assertEqual(self.spawn(expect=422, **fields)["errors"][0]["field"], field)
        self.assertEqual(self.client.post("/api/sessions/spawn", b"prompt").status, 400)
        self.assertEqual(self.sessions(), [])

    def test_what_it_does_not_know_is_left_out(self):
        self.spawn(worktree=True)

    def test_who_may_what(self):
        admin = self.connect(token=self.server.token)
        task = self.create()
        made = {kind: admin.post("/api/tokens", {"kind": kind, "name": kind, **fields}).json["token"]
                for kind, fields in (("producer", {"queues": ["q"]}), ("viewer", {}), ("operator", {}))}
        spawner = admin.post("/api/tokens", {"kind": "producer", "name": "spawner"}).json["token"]
        self.client = self.connect(token=made["viewer"])
        self.spawn(expect=403)
        self.assertEqual(self.sessions(), [])
        self.client = self.connect(token=made["producer"])
        self.assertEqual(self.spawn(expect=403)["code"], "forbidden")
        self.assertEqual(self.spawn(expect=403, taskId=task)["code"], "forbidden")
        self.client = self.connect(token=spawner)
        self.assertEqual(self.spawn()["status"], "queued", "it hears of what it made")
        self.assertEqual(self.client.get("/api/sessions").status, 403)
        self.client = self.connect(token=made["operator"])
        self.assertEqual(self.spawn(expect=403, sessionLabel="new")["code"], "forbidden")
        self.spawn(taskId=task, sessionLabel="onto")
        self.stop("onto")


class Listing(SessionCase):
    def setUp(self):
        self.clocks = proof.Clocks()
        super().setUp()

    def test_ended_ones_are_listed_for_a_day(self):
        self.spawn()
        self.spawn(sessionLabel="stays")
        self.stop()
        self.clocks.set(wall_ms=DAY_MS - 60000)
        self.wait_until(lambda: self.client.get("/livez").status == 200)
        self.assertEqual([session["id"] for session in self.sessions()], [LABEL, "stays"])
        self.clocks.set(wall_ms=DAY_MS + 60000)
        self.wait_until(lambda: [session["id"] for session in self.sessions()] == ["stays"])
        self.assertEqual(self.session()["status"], "stopped", "by its label it is found as long as its task is kept")

    def test_many_come_in_slices(self):
        labels = ["s-%d" % i for i in range(90)]
        for label in labels:
            self.spawn(sessionLabel=label, prompt="x" * 2000)
        self.assertEqual([session["id"] for session in self.sessions()], labels)


class Retention(SessionCase):
    flags = test_slots.OPEN + proof.settings(retention_finalMax=1)

    def test_with_its_task_the_label_goes(self):
        self.spawn()
        self.stop()
        self.client.post("/api/tasks/%s/cancel" % self.create())
        self.wait_until(lambda: self.client.get("/api/sessions/" + LABEL).status == 404)
        self.assertEqual(self.sessions(), [])
        self.spawn()


if __name__ == "__main__":
    proof.main()
