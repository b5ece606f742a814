"""News: a word from outside reaches a worker at once, and not with its next beat. Where a worker of ours must not be able to
learn it from a beat that comes by itself, the next one is hours away: by its lease, or by a clock that was set back."""
import concurrent.futures
import json
import shutil
import subprocess
import tempfile
import unittest

from hang import HANG_S
import proof
import stintd
import test_heartbeat
import test_worker
from test_worker import STINT, sh

HOUR_MS = 3600 * 1000
SILENT = "echo $$ > $DIR/pid; exec sleep 1000"


class Case(stintd.Case):
    def setUp(self):
        super().setUp()
        self.threads = concurrent.futures.ThreadPoolExecutor(8)
        self.addCleanup(self.threads.shutdown)
        self.tokens = {}

    def register(self, worker="w", client=None):
        reply = (client or self.client).post("/api/workers/register", {"workerId": worker, "leaseMs": HOUR_MS})
        self.assertEqual(reply.status, 200, reply.body)
        self.tokens[worker] = reply.json["token"]
        return reply.json

    def hold(self, task, worker="w", client=None, **fields):
        """It is claimed and bound. The fence."""
        client = client or self.client
        self.create(id=task, **fields)
        claim = client.post("/api/tasks/%s/claim" % task, {"workerId": worker})
        self.assertEqual(claim.status, 200, claim.body)
        beat = client.post("/api/workers/heartbeat",
                           {"workerId": worker, "token": self.tokens[worker], "leaseMs": HOUR_MS, "boundTasks": [task]})
        self.assertEqual((beat.status, beat.json["lost"]), (200, []), beat.body)
        self.tokens[worker] = beat.json["token"]
        return claim.json["fence"]

    def metric(self, name):
        for line in self.client.get("/metrics").body.decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        raise AssertionError(name)

    def news(self, query="", worker="w", client=None):
        return (client or self.client).get("/api/workers/%s/news%s" % (worker, query))

    def seq(self, worker="w"):
        return self.news(worker=worker).json["seq"]

    def wait(self, worker="w", token=None, after=None):
        """A request that waits for news, and does so by now."""
        after = self.seq(worker) if after is None else after
        client, waiting = self.server.client(token=token), self.metric("stint_waiting_news")
        self.addCleanup(client.close)
        reply = self.threads.submit(self.news, "?after=%d&waitMs=60000" % after, worker, client)
        self.until(lambda: reply.done() or self.metric("stint_waiting_news") > waiting, "it waits")
        return reply

    def told(self, waits):
        """They are told that there are news. When: the number of the last event of then."""
        reply = waits.result(self.patience_s)
        self.assertEqual(reply.status, 200, reply.body)
        self.assertEqual((reply.json["workerId"], reply.json["news"]), ("w", True))
        return reply.json["seq"]


class Waiting(Case):
    def test_a_cancel_ends_the_waiting_and_the_beat_says_what_it_was(self):
        self.register()
        self.hold("t")
        waits = self.wait()
        self.assertEqual(self.client.post("/api/tasks/t/cancel").status, 202)
        seq = self.told(waits)
        beat = self.client.post("/api/workers/heartbeat", {"workerId": "w", "token": self.tokens["w"]}).json
        self.assertEqual(beat["commands"], [{"type": "cancel", "task": "t"}])
        self.assertEqual(self.news("?after=%d&waitMs=1" % seq).json, {"workerId": "w", "news": False, "seq": seq},
                         "it is told once, though the task has not stopped yet")

    def test_an_operators_word_to_the_worker_ends_it(self):
        self.register()
        for order in ("quiet", "terminate"):
            waits = self.wait()
            self.client.post("/api/workers/w/" + order)
            self.told(waits)
        waits = self.wait()
        self.client.call("DELETE", "/api/workers/w?how=terminated")
        self.told(waits)
        self.assertEqual(self.news("?waitMs=60000").status, 410)

    def test_the_end_of_a_session_and_an_answer_end_it(self):
        self.register()
        task = self.client.post("/api/sessions/spawn", {"sessionLabel": "s", "prompt": "x"}).json["taskId"]
        claim = self.client.post("/api/tasks/%s/claim" % task, {"workerId": "w"}).json
        self.client.post("/api/tasks/%s/ask" % task, {"workerId": "w", "fence": claim["fence"], "question": "well?"})
        waits = self.wait()
        self.client.post("/api/tasks/%s/answer" % task, {"text": "yes"})
        self.told(waits)
        waits = self.wait()
        self.assertIn(self.client.call("DELETE", "/api/sessions/s").status, (200, 202))
        self.told(waits)

    def test_a_claim_that_is_taken_away_ends_it_for_a_claimant_that_never_registered_too(self):
        self.create(id="t")
        self.client.post("/api/tasks/t/claim", {"workerId": "w", "leaseMs": HOUR_MS})
        waits = self.wait(after=0)
        self.assertEqual(self.client.post("/api/tasks/t/cancel").json["state"], "cancelled")
        self.told(waits)
        self.assertEqual(self.news().status, 404)

    def test_it_ends_with_the_time(self):
        self.register()
        seq = self.seq()
        self.assertEqual(self.news("?waitMs=1").json, {"workerId": "w", "news": False, "seq": seq})

    def test_what_it_does_itself_and_what_happens_to_others_is_no_news(self):
        self.register()
        self.register("v")
        fence = self.hold("own")
        self.hold("last")
        self.hold("other", "v")
        waits = self.wait()
        self.client.post("/api/tasks/own/progress", {"workerId": "w", "fence": fence, "note": "half"})
        self.client.post("/api/tasks/own/complete", {"workerId": "w", "fence": fence})
        self.client.post("/api/tasks/other/cancel")
        self.client.call("PATCH", "/api/tasks/last", {"title": "another"})
        self.client.post("/api/workers/v/terminate")
        self.create(id="new")
        self.assertFalse(waits.done())
        last = self.client.post("/api/tasks/last/cancel")
        self.assertEqual(self.told(waits), int(last.headers["Stint-Seq"]), "answered by the last of all these")

    def test_what_came_before_it_waited_is_told_at_once(self):
        self.register()
        self.hold("t")
        seq = self.seq()
        self.client.post("/api/tasks/t/cancel")
        self.assertEqual(self.news("?waitMs=60000&after=%d" % seq).json["news"], True)
        self.assertEqual(self.news("?after=%d" % self.seq()).json["news"], False)

    def test_what_came_before_a_restart_is_told_after_it(self):
        self.register()
        self.hold("t")
        seq = self.seq()
        self.client.post("/api/tasks/t/cancel")
        last = self.seq()
        self.server.kill()
        self.server.start()
        self.client.close()
        self.assertEqual(self.news("?waitMs=60000&after=%d" % seq).json["news"], True)
        self.assertEqual(self.news("?after=%d" % last).json["news"], False, "who knows all is not sent for nothing")

    def test_whoever_hangs_up_waits_no_longer(self):
        self.register()
        client = self.server.client()
        client.connection = client.open()
        client.connection.request("GET", "/api/workers/w/news?waitMs=60000", headers={"Authorization": "Bearer " + self.server.token})
        self.until(lambda: self.metric("stint_waiting_news") == 1, "it waits")
        client.close()
        self.until(lambda: self.metric("stint_waiting_news") == 0, "it is forgotten")

    def test_a_server_that_stops_lets_them_go(self):
        self.register()
        waits = [self.wait() for _ in range(3)]
        self.assertEqual(self.server.stop(), 0)
        self.assertEqual([reply.result(HANG_S).json["news"] for reply in waits], [False] * 3)

    def test_a_claim_that_waits_is_answered_when_its_worker_may_claim_no_more(self):
        self.register()
        self.register("v")
        claims = []
        for worker in ("w", "v"):
            client = self.server.client()
            self.addCleanup(client.close)
            claims.append(self.threads.submit(client.post, "/api/claims", {"workerId": worker, "waitMs": 60000}))
        self.until(lambda: self.metric("stint_waiting_claims") == 2, "they wait")
        self.client.post("/api/workers/w/quiet")
        self.assertEqual(claims[0].result(self.patience_s).json["claims"], [])
        self.assertFalse(claims[1].done())
        self.create(id="t")
        self.assertEqual([claim["task"]["id"] for claim in claims[1].result(self.patience_s).json["claims"]], ["t"])

    def test_bad_parameters_are_told(self):
        self.register()
        for query, field in (("?waitMs=60001", "waitMs"), ("?waitMs=x", "waitMs"), ("?after=-1", "after"), ("?before=1", "before")):
            reply = self.news(query)
            self.assertIn(reply.status, (400, 422), query)
            self.assertIn(field, reply.body.decode())
        self.assertEqual(self.news(worker="nobody").status, 404)


class Credentials(Case):
    def mint(self, kind, **more):
        return self.client.post("/api/tokens", {"kind": kind, "name": kind, **more}).json

    def worker_token(self):
        minted = self.mint("worker")
        client = self.server.client(token=minted["token"])
        self.addCleanup(client.close)
        return minted, client

    def test_only_the_worker_itself_may_wait(self):
        _, owner = self.worker_token()
        own = self.register(client=owner)["credential"]
        other = self.register("v", client=owner)["credential"]
        _, stranger = self.worker_token()
        fence = self.hold("t", client=owner)
        claim = owner.post("/api/tokens", {"kind": "claim", "task": "t", "fence": fence}).json["token"]
        self.hold("u", "v", client=owner)
        self.assertEqual(self.news(client=owner).status, 200)
        self.assertEqual(self.news(client=stranger).status, 404)
        self.assertEqual(self.news().status, 404, "not even an admin, whose worker it is not")
        for token, status in ((own, 200), (other, 404), (claim, 200), (self.mint("operator")["token"], 403)):
            client = self.server.client(token=token)
            self.assertEqual(self.news(client=client).status, status)
            client.close()
        client = self.server.client(token=claim)
        self.assertEqual(self.news(worker="v", client=client).status, 404)
        client.close()

    def test_a_credential_that_ends_while_it_waits_ends_the_waiting(self):
        minted, owner = self.worker_token()
        own = self.register(client=owner)["credential"]
        waits = [self.wait(token=token, after=0) for token in (minted["token"], own)]
        self.client.call("DELETE", "/api/tokens/" + minted["id"])
        self.assertEqual([reply.result(self.patience_s).status for reply in waits], [401, 401])

    def test_the_token_of_an_instance_ends_with_it_at_once(self):
        _, owner = self.worker_token()
        waits = self.wait(token=self.register(client=owner)["credential"], after=0)
        self.client.call("DELETE", "/api/workers/w?how=terminated")
        self.assertEqual(waits.result(self.patience_s).status, 401)


class Open(Case):
    flags = ("--set", "auth=open")

    def test_who_has_no_token_waits_for_its_own(self):
        nobody = self.server.client(token="")
        self.addCleanup(nobody.close)
        self.register(client=nobody)
        self.hold("t", client=nobody)
        seq = self.news(client=nobody).json["seq"]
        waits = self.wait(token="", after=seq)
        self.assertEqual(self.client.post("/api/tasks/t/cancel").status, 202)
        self.told(waits)


class Beats(test_heartbeat.Case):
    """Our own heartbeat, whose next one would come in a quarter of an hour."""
    def held(self, **options):
        heartbeat = self.heartbeat(lease_ms=HOUR_MS, **options)
        self.claim("t")
        heartbeat.say("bind t")
        self.until(lambda: self.state("t") == "running", "bound")
        return heartbeat

    def test_what_is_told_from_outside_is_heard_at_once(self):
        heartbeat = self.held()
        self.client.post("/api/tasks/t/cancel")
        heartbeat.hears("cancel t")
        self.client.post("/api/workers/w/quiet")
        heartbeat.hears("standing 1")
        self.client.post("/api/workers/w/terminate")
        heartbeat.hears("standing 2")
        self.client.call("DELETE", "/api/workers/w")
        heartbeat.hears("over")

    def test_after_a_restart_of_the_server_too(self):
        heartbeat = self.held(where="far", local=True)
        self.server.kill()
        self.server.start()
        self.client.close()
        self.client.post("/api/tasks/t/cancel")
        heartbeat.hears("cancel t")


class Work(test_worker.Case):
    """Silent processes under a worker whose clock is set back by an hour once they run: no beat comes by itself."""

    def silent(self, *flags, script=SILENT, **options):
        clocks = proof.Clocks()
        self.addCleanup(clocks.file.close)
        executor = sh(script, env={"DIR": self.folder}, write=[self.folder], graceMs=200)
        worker = self.worker({"x": executor}, "--lease-ms", str(2 * HOUR_MS), *flags, before=clocks.command(), **options)
        return worker, clocks

    def runs(self, task, clocks):
        """The number of its process."""
        self.is_in(task, "running", "asking")
        pid = self.read("pid")
        clocks.set(boot_ms=-HOUR_MS)
        return pid

    def ends(self, pid):
        self.until(lambda: self.is_gone(pid), "its process has ended")

    def test_a_silent_process_ends_as_soon_as_it_is_cancelled(self):
        _, clocks = self.silent()
        self.create(id="t")
        pid = self.runs("t", clocks)
        self.assertEqual(self.client.post("/api/tasks/t/cancel").status, 202)
        self.assertEqual(self.is_in("t", "cancelled")["spent"], 0)
        self.ends(pid)

    def test_so_it_does_under_a_worker_of_another_machine(self):
        home = tempfile.mkdtemp(prefix="stint-news-")
        self.addCleanup(shutil.rmtree, home, True)
        _, clocks = self.silent("--remote", home=home)
        self.create(id="t")
        pid = self.runs("t", clocks)
        self.client.post("/api/tasks/t/cancel")
        self.is_in("t", "cancelled")
        self.ends(pid)

    def test_so_it_does_when_its_session_is_stopped(self):
        _, clocks = self.silent(queues={"sessions": {}})
        task = self.client.post("/api/sessions/spawn", {"sessionLabel": "s", "prompt": "x"}).json["taskId"]
        pid = self.runs(task, clocks)
        self.client.call("DELETE", "/api/sessions/s")
        self.is_in(task, "cancelled")
        self.ends(pid)

    def test_so_it_does_while_it_waits_for_an_answer(self):
        _, clocks = self.silent(script="echo $$ > $DIR/pid; exec " + STINT + " task ask 'well?' --wait")
        self.create(id="t")
        self.is_in("t", "asking")
        pid = self.runs("t", clocks)
        self.client.post("/api/tasks/t/cancel")
        self.is_in("t", "cancelled")
        self.ends(pid)

    def test_an_answer_reaches_who_waits_for_it_and_nobody_polls(self):
        self.silent(script="echo $$ > $DIR/pid; " + STINT + " task ask 'well?' --wait")
        self.create(id="t")
        self.is_in("t", "asking")
        self.until(lambda: b"\nstint_waiting_news 2\n" in self.client.get("/metrics").body, "the worker waits, and the process")
        self.client.post("/api/tasks/t/answer", {"text": "yes"})
        self.assertEqual(self.is_in("t", "done")["result"], "yes")

    def test_a_worker_that_works_is_sent_away_at_once(self):
        worker, clocks = self.silent("--drain-ms", "100")
        self.create(id="t")
        pid = self.runs("t", clocks)
        ident, = [one["workerId"] for one in self.client.get("/api/workers").json]
        self.client.post("/api/workers/%s/terminate" % ident)
        self.assertEqual(worker.process.wait(self.patience_s), 0)
        self.assertTrue(self.is_gone(pid))
        self.assertEqual(self.task("t")["state"], "ready")

    def test_one_that_says_goodbye_waits_for_nothing_any_more(self):
        worker, clocks = self.silent("--drain-ms", "100")
        self.create(id="t")
        self.runs("t", clocks)
        self.until(lambda: b"\nstint_waiting_news 1\n" in self.client.get("/metrics").body, "it waits for news")
        self.assertEqual(worker.stop(), 0)
        self.assertNotIn("credential refused", self.server.said())

    def test_so_is_an_idle_one(self):
        worker, clocks = self.silent()
        self.until(lambda: b"\nstint_waiting_claims 1\n" in self.client.get("/metrics").body, "it waits for work")
        clocks.set(boot_ms=-HOUR_MS)
        ident, = [one["workerId"] for one in self.client.get("/api/workers").json]
        self.client.post("/api/workers/%s/terminate" % ident)
        self.assertEqual(worker.process.wait(self.patience_s), 0)

    def test_a_pass_of_run_once_is_stopped(self):
        config = self.path("config.json")
        with open(config, "w") as file:
            json.dump({"executors": {"x": sh(SILENT, env={"DIR": self.folder}, write=[self.folder], graceMs=200)},
                       "queues": {"q": {"executor": "x"}}}, file)
        self.create(id="t")
        once = subprocess.Popen([STINT, "worker", "run-once", "--home", self.server.home, "--config", config, "--agent-id", "a"],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, env=stintd.environment())
        self.addCleanup(once.stdout.close)
        self.addCleanup(once.wait, HANG_S)
        self.addCleanup(once.kill)
        pid = self.read("pid")
        self.until(lambda: b"\nstint_waiting_news 1\n" in self.client.get("/metrics").body, "it waits for news")
        self.client.post("/api/tasks/t/cancel")
        self.assertIn("cancelled", once.communicate(timeout=self.patience_s)[0])
        self.ends(pid)


if __name__ == "__main__":
    unittest.main()
