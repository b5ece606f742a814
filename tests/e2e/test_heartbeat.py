"""The heartbeat of our own worker against the real server."""
import os
import signal
import subprocess
import threading
import unittest

from hang import HANG_S
import stintd

HEARTBEAT = os.environ.get("STINT_HEARTBEAT", "build/tests/e2e/stint-heartbeat")
PATIENCE_S = HANG_S


class Heartbeat:
    """stint-heartbeat, what it was told and what it said."""

    def __init__(self, server, worker="w", lease_ms=60000, where="near", local=False, url=None):
        url = url or ("unix:" + os.path.join(server.home, "stint.sock") if local else server.url)
        self.process = subprocess.Popen(
            [HEARTBEAT, url, os.path.join(server.home, "admin.token"), worker, str(lease_ms), where],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.news, self.fresh = [], threading.Condition()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            with self.fresh:
                self.news.append(line.strip())
                self.fresh.notify_all()

    def say(self, line):
        self.process.stdin.write(line + "\n")

    def hears(self, *expected):
        """Waits until all of these were told since the last time; what was told before is forgotten."""
        with self.fresh:
            good = self.fresh.wait_for(lambda: all(line in self.news for line in expected), PATIENCE_S)
            told, self.news = self.news, []
        if not good:
            raise AssertionError("expected %s, got %s" % (expected, told))
        return told

    def end(self):
        self.process.stdin.close()
        try:
            return self.process.wait(HANG_S)
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait(HANG_S)
            self.reader.join(HANG_S)
            self.process.stdout.close()


class Case(stintd.Case):
    flags = ("--set", "worker.leaseMinMs=1000", "--set", "restart.graceMs=2000")

    def heartbeat(self, **options):
        heartbeat = Heartbeat(self.server, **options)
        self.addCleanup(lambda: heartbeat.process.poll() is None and heartbeat.end())
        heartbeat.hears("registered")
        return heartbeat

    def worker(self, worker="w"):
        return self.client.get("/api/workers/" + worker).json

    def claim(self, task, worker="w"):
        self.create(id=task)
        reply = self.client.post("/api/tasks/%s/claim" % task, {"workerId": worker})
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json["fence"]

    def state(self, task):
        return self.client.get("/api/tasks/" + task).json["state"]


class Beats(Case):
    def test_it_registers_beats_and_says_goodbye_cleanly(self):
        for local in (False, True):
            heartbeat = self.heartbeat(worker="w-%d" % local, lease_ms=3000, local=local)
            first = self.worker("w-%d" % local)
            self.assertEqual(first["executors"], ["none"])
            self.until(lambda: self.worker("w-%d" % local)["lastBeatAt"] > first["lastBeatAt"], "it beats")
            self.assertEqual(heartbeat.end(), 0)

    def test_what_it_holds_is_bound_and_unbound(self):
        heartbeat = self.heartbeat()
        fence = self.claim("t")
        heartbeat.say("bind t")
        self.until(lambda: self.state("t") == "running", "bound")
        self.assertEqual(self.worker()["tasks"], ["t"])
        heartbeat.say("bind nobodys")
        heartbeat.hears("lost nobodys")
        self.client.post("/api/tasks/t/complete", {"workerId": "w", "fence": fence})
        heartbeat.say("unbind t")
        self.assertEqual(heartbeat.end(), 0)

    def test_commands_reach_it(self):
        heartbeat = self.heartbeat(lease_ms=4000)
        self.claim("t")
        heartbeat.say("bind t")
        self.until(lambda: self.state("t") == "running", "bound")
        self.assertEqual(self.client.post("/api/tasks/t/cancel").status, 202)
        heartbeat.hears("cancel t")
        self.client.post("/api/workers/w/quiet")
        heartbeat.hears("standing 1")
        self.client.post("/api/workers/w/terminate")
        heartbeat.hears("standing 2")

    def test_a_worker_that_was_sent_away_comes_back_under_another_key(self):
        heartbeat = self.heartbeat(lease_ms=3000)
        self.assertEqual(self.client.call("DELETE", "/api/workers/w").status, 200)
        heartbeat.hears("over")
        heartbeat.say("renew w2")
        heartbeat.hears("registered")
        self.assertEqual(self.worker("w2")["state"], "active")

    def test_a_refusal_is_told(self):
        token = self.client.post("/api/tokens", {"kind": "viewer", "name": "v"}).json["token"]
        with open(os.path.join(self.server.home, "admin.token"), "w") as file:
            file.write(token)
        heartbeat = Heartbeat(self.server)
        self.addCleanup(heartbeat.end)
        heartbeat.hears("refused 403 forbidden")


class Restarts(Case):
    def test_the_same_key_and_its_work_survive_a_server_that_is_killed(self):
        heartbeat = self.heartbeat(lease_ms=4000, local=True)
        self.claim("t")
        heartbeat.say("bind t")
        self.until(lambda: self.state("t") == "running", "bound")
        self.server.kill()
        heartbeat.hears("away")
        self.server.start()
        self.client.close()
        heartbeat.hears("back")
        beat = self.worker()["lastBeatAt"]
        self.until(lambda: self.worker()["lastBeatAt"] > beat, "it beats again")
        self.assertEqual(self.state("t"), "running")
        self.assertEqual(self.worker()["state"], "active")
        self.assertEqual(self.client.get("/api/tasks/t").json["attempt"], 1)

    def test_a_worker_waits_for_a_server_that_is_not_there_yet(self):
        self.server.kill()
        heartbeat = Heartbeat(self.server, local=True)
        self.addCleanup(heartbeat.end)
        heartbeat.hears("away")
        self.server.start()
        self.client.close()
        heartbeat.hears("back", "registered")

    def test_a_remote_worker_that_hears_nothing_stops_in_time(self):
        heartbeat = self.heartbeat(lease_ms=3000, where="far")
        self.claim("t")
        heartbeat.say("bind t")
        self.until(lambda: self.state("t") == "running", "bound")
        os.kill(self.server.process.pid, signal.SIGSTOP)
        try:
            heartbeat.hears("lapsed")
        finally:
            os.kill(self.server.process.pid, signal.SIGCONT)

    def test_one_that_was_stopped_past_its_lease_is_over(self):
        heartbeat = self.heartbeat(lease_ms=1000)
        self.claim("t")
        heartbeat.say("bind t")
        self.until(lambda: self.state("t") == "running", "bound")
        os.kill(heartbeat.process.pid, signal.SIGSTOP)
        try:
            self.until(lambda: self.worker()["state"] == "inactive", "expired")
        finally:
            os.kill(heartbeat.process.pid, signal.SIGCONT)
        heartbeat.hears("over")
        self.assertEqual(self.state("t"), "ready")


if __name__ == "__main__":
    unittest.main()
