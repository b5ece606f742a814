"""An attempt in few requests: claim and finish in one, bind, log; and what becomes of it when server or worker die between two of
them, a reply is lost, or a report is refused. Server, worker and shims are real; a door between worker and server (between.py)
sees every request, and says when to kill."""
import os
import threading

import between
import proof
import test_worker
from hang import HANG_S
from test_worker import sh

# Each run of a task is a line in a file, so that one that ran twice is seen.
RUN = "echo run >> $DIR/$STINT_TASK_ID; echo wrote; "
UNTIL_GO = "until [ -e $DIR/go ]; do sleep 0.05; done; "
OLD = 10000  # reports after a day away


class Case(test_worker.Case):
    flags = test_worker.Case.flags + ("--set", "claim.verifyAfterMs=2000")

    def setUp(self):
        super().setUp()
        self.door = between.Between(self.server)
        self.addCleanup(self.door.close)

    def begin(self, script=RUN, *flags):
        return self.worker({"x": sh(script + "echo '\"'$STINT_TASK_ID'\"'", env={"DIR": self.folder}, write=[self.folder])},
                           "--url", self.door.url, "--token-file", os.path.join(self.server.home, "admin.token"), *flags)

    def runs(self, task):
        with open(self.path(task)) as file:
            return len(file.readlines())

    def go(self):
        open(self.path("go"), "w").close()

    def is_done_once(self, task, attempt=1):
        found = self.is_in(task, "done")
        self.assertEqual((found["result"], found["attempt"], found["spent"], found["crashes"]), (task, attempt, 0, 0))
        self.assertEqual(self.events(task).count("task.completed"), 1)
        self.assertEqual(self.runs(task), 1)


class Few(Case):
    def test_under_load_an_attempt_ends_and_the_next_begins_in_one_request(self):
        tasks = ["t-%d" % number for number in range(6)]
        for task in tasks:
            self.create(id=task)
        self.begin()
        for task in tasks:
            self.is_done_once(task)
        asked = [(request.method, request.path) for request in self.door.requests]
        self.assertEqual(asked.count(("POST", "/api/tokens")), 1, "for the worker itself, and none for an attempt")
        self.assertEqual([path for method, path in asked if method == "GET" and "/api/tasks/" in path], [])
        self.assertEqual([path for _, path in asked if path.endswith(("/complete", "/fail", "/release"))], [])
        finished = [task for request in self.door.requests for task in request.finishes()]
        self.assertEqual(sorted(finished), tasks)

    def test_a_child_has_a_token_of_its_claim_alone(self):
        self.begin(RUN + test_worker.STINT + " task note 'by its token'; ")
        self.create(id="t")
        self.is_done_once("t")
        self.assertEqual([request.path for request in self.door.requests].count("/api/tokens"), 1, "for the worker itself")


def is_bind(request):
    return bool((request.json or {}).get("boundTasks")) if request.path.endswith("/heartbeat") else False


def is_log(request):
    return request.method == "POST" and request.path.endswith("/log")


MOMENTS = {
    "claim": lambda request: request.is_claim() and not request.finishes(),
    "bind": is_bind,
    "log": is_log,
    "finish": lambda request: request.ends("t"),
}


class Goodbye(Case):
    def test_a_worker_that_is_called_lost_while_it_takes_its_leave_ends(self):
        """Its last heartbeat and its goodbye cross: the server answers the first when it has heard the second."""
        held, leaving, over = threading.Event(), threading.Event(), threading.Event()

        def before(request):
            if is_bind(request):
                held.set()
                leaving.wait(HANG_S)
                return 410, {"code": "WORKER_INACTIVE", "title": "it has left", "status": 410}
            if request.method == "DELETE" and request.path.startswith("/api/workers/"):
                leaving.set()
                over.wait(HANG_S)  # the worker does not wait for this answer for ever
                return False
            return None

        self.door.before = before
        worker = self.begin(RUN + UNTIL_GO)
        self.create(id="t")
        self.until(held.is_set, "the heartbeat is under way")
        self.go()
        self.is_done_once("t")
        status = worker.stop()
        over.set()
        self.assertEqual(status, 0)


class Deaths(Case):
    """At each of the moments, before the server has heard the request and after it has answered it: the other side never hears."""

    def strike(self, moment, after, blow):
        """The next request of that kind is cut off while `blow` falls. An event that says that it has."""
        fallen, lock = threading.Event(), threading.Lock()

        def look(request, answer=None):
            if not MOMENTS[moment](request) or (moment == "claim" and answer is not None and b'"fence"' not in answer):
                return None
            with lock:
                if fallen.is_set():
                    return None
                blow()
                fallen.set()
            return False

        if after:
            self.door.after = look
        else:
            self.door.before = look
        return fallen

    def restart(self):
        self.server.kill()
        self.server.start()

    def run_through(self, moment, after, blow, again=None):
        fallen, self.begun = self.strike(moment, after, blow), threading.Event()
        self.create(id="t")
        self.killed = self.begin(RUN + (UNTIL_GO if moment == "bind" else ""))
        self.begun.set()
        self.until(fallen.is_set, "the blow fell")
        self.client.close()
        self.go()
        if again:
            again()

    def test_the_server_dies_between_each_pair(self):
        for moment in MOMENTS:
            for after in (False, True):
                with self.subTest(moment=moment, after=after):
                    self.renew()
                    self.run_through(moment, after, self.restart)
                    self.is_done_once("t")

    def kill_worker(self):
        self.begun.wait(HANG_S)
        self.killed.process.kill()
        self.killed.process.wait(HANG_S)

    def test_the_worker_dies_when_its_report_is_on_its_way(self):
        for after in (False, True):  # the report is on disk by then: nothing is done again
            with self.subTest(after=after):
                self.renew()
                self.run_through("finish", after, self.kill_worker, self.begin)
                self.is_done_once("t")

    def test_the_worker_dies_before(self):
        for moment in ("claim", "bind", "log"):  # if it had not ended its successor says so, and it is done again
            with self.subTest(moment=moment):
                self.renew()
                self.run_through(moment, True, self.kill_worker, self.begin)
                task = self.is_in("t", "done")
                self.assertEqual(self.events("t").count("task.completed"), 1)
                self.assertLessEqual(self.runs("t"), task["attempt"])
                self.assertLessEqual(task["attempt"], 2)

    def renew(self):
        """A fresh server for each round."""
        self.tearDown()
        self.doCleanups()
        self.setUp()


class LostReplies(Case):
    def test_a_lost_reply_of_finish_and_next_is_repeated_and_nothing_runs_twice(self):
        lost = []

        def lose(request, answer):
            if request.finishes() == ["t-1"] and b'"t-2"' in answer and not lost:
                lost.append(request.json["requestId"])
                return False
            return None

        self.door.after = lose
        self.create(id="t-1")
        self.create(id="t-2")
        self.begin()
        self.is_done_once("t-1")
        self.is_done_once("t-2")
        again = [request.json for request in self.door.requests if request.is_claim() and request.json["requestId"] == lost[0]]
        self.assertGreaterEqual(len(again), 2, "the same claim was asked for again")

    def test_a_report_that_was_refused_with_a_claim_is_sent_alone(self):
        self.door.before = lambda request: (422, {"code": "invalid"}) if request.finishes() else None
        self.create(id="t-1")
        self.create(id="t-2")
        self.begin()
        self.is_done_once("t-1")
        self.is_done_once("t-2")
        self.assertIn("/api/tasks/t-1/complete", [request.path for request in self.door.requests])

    def test_a_report_that_the_server_refuses_leaves_neither_a_claim_nor_a_place(self):
        refused = []

        def refuse(request):
            if request.finishes():
                return (422, {"code": "invalid"})
            if request.ends("t-1") and not refused:
                refused.append(request)
                return (422, {"code": "invalid"})
            return None

        self.door.before = refuse
        worker = self.begin(RUN + UNTIL_GO)
        self.create(id="t-1")
        self.is_in("t-1", "running")
        self.create(id="t-2")
        self.go()
        self.is_done_once("t-2")
        self.until(lambda: self.task("t-1")["state"] == "done", "its claim was given up, and it was done again")
        self.assertEqual(self.runs("t-1"), 2)
        self.assertIn("did not accept how an attempt ended", worker.said())


class Away(Case):
    def leave(self, number, text):
        with open(os.path.join(self.server.home, "workers/gone/outbox/r-%d" % number), "w") as file:
            file.write(text)

    def test_an_outbox_of_ten_thousand_is_sent_after_a_day_away(self):
        live = ["live-%d" % number for number in range(20)]
        for task in live:
            self.create(id=task)
        token = self.client.post("/api/tokens", {"kind": "worker", "name": "w"}).json["token"]
        gone = self.server.client(token=token)
        self.addCleanup(gone.close)
        claims = gone.post("/api/claims", {"workerId": "gone", "max": 20, "leaseMs": 600000}).json["claims"]
        os.makedirs(os.path.join(self.server.home, "workers/gone/outbox"))
        for number in range(OLD - len(live)):  # others have had these meanwhile, and they are gone
            self.leave(number, '/api/tasks/old-%d/complete\n{"workerId":"gone","fence":"%d","byReport":true}' % (number, number + 1))
        for number, claim in enumerate(claims):
            self.leave(OLD + number, '/api/tasks/%s/complete\n{"workerId":"gone","fence":"%s","byReport":true,"result":%d}' % (
                claim["task"]["id"], claim["fence"], number))
        self.worker({"x": sh("echo '\"fresh\"'")}, STINT_TOKEN=token)
        for task in live:
            self.assertIsInstance(self.is_in(task, "done")["result"], int)
            self.assertEqual(self.events(task).count("task.completed"), 1)
        self.create(id="fresh")
        self.assertEqual(self.is_in("fresh", "done")["result"], "fresh")
        self.assertFalse(os.path.exists(os.path.join(self.server.home, "workers/gone")))


class OldWorker(Case):
    def test_the_requests_of_an_older_worker_are_still_taken(self):
        """Registration, claim, token, bind, the child's report, log, look, report: as they were sent before."""
        post = self.client.post
        joined = post("/api/workers/heartbeat", {"workerId": "old", "leaseMs": 60000})
        self.assertEqual(joined.status, 200, joined.body)
        self.create(id="t")
        claim = post("/api/claims", {"workerId": "old", "queues": ["q"], "max": 1, "waitMs": 0, "requestId": "old-1"}).json["claims"][0]
        self.assertNotIn("token", claim)
        proof_ = {"workerId": "old", "fence": claim["fence"]}
        token = post("/api/tokens", {"kind": "claim", "task": "t", "fence": claim["fence"]}).json["token"]
        bound = post("/api/workers/heartbeat", {"workerId": "old", "token": joined.json["token"], "leaseMs": 60000, "boundTasks": ["t"]})
        self.assertEqual(bound.status, 200, bound.body)
        child = self.server.client(token=token)
        self.addCleanup(child.close)
        said = child.post("/api/tasks/t/complete", {"result": "said"})
        self.assertEqual((said.status, said.json["state"]), (200, "running"), "it counts when its worker says that it has ended")
        self.assertEqual(post("/api/tasks/t/log", {**proof_, "offset": 0, "data": "wrote\n"}).status, 200)
        self.assertEqual(self.task("t")["report"]["outcome"], "complete")
        done = post("/api/tasks/t/complete", {**proof_, "result": "said"}, {"Idempotency-Key": "old-1"})
        self.assertEqual((done.status, done.json["state"], done.json["result"]), (200, "done", "said"))


if __name__ == "__main__":
    proof.main()
