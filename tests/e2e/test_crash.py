"""kill -9 under load: clients create, claim, report and beat; the server dies at any moment and comes back; whoever
was not answered asks again. Then everything that anyone was told is held against what is on disk.

STINT_CRASH_ROUNDS says how often it dies (./dev crash --rounds 200), STINT_CRASH_SEED repeats the choices of a run."""
import collections
import os
import random
import sys
import threading
import time
import unittest

from hang import HANG_S
import proof

ROUNDS = int(os.environ.get("STINT_CRASH_ROUNDS", "8"))
SEED = int(os.environ.get("STINT_CRASH_SEED", str(random.SystemRandom().randrange(1 << 32))))
QUEUES = ["a", "b", "c"]
LEASE_MS = 1500
RETRY_BASE_MS, RETRY_MAX_MS, GRACE_MS, VERIFY_MS, CRASHES = 20, 200, 300, 1000, 6
DRAIN_SECONDS = HANG_S


class Fault(Exception):
    """A client was told what it must not be told."""


class Actor(threading.Thread):
    """A client that insists: what was not answered is asked again, until it is."""

    def __init__(self, crowd, name):
        super().__init__(name=name, daemon=True)
        self.crowd, self.random = crowd, random.Random("%d/%s" % (SEED, name))
        self.client = crowd.server.client(local=self.random.random() < 0.4)
        self.told, self.asked, self.again, self.fault = [], 0, 0, None

    def run(self):
        try:
            while self.act():
                pass
        except Exception as fault:  # told by the main thread
            self.fault = fault
        finally:
            self.client.close()

    def once(self, path, body, headers=None):
        """The reply, or None when there was none."""
        try:
            self.asked += 1
            reply = self.client.post(path, body, headers)
        except proof.GONE:
            self.client.close()
            return None
        if reply.status == 503 or reply.headers.get("Connection") == "close":
            self.client.close()
        return None if reply.status == 503 else reply

    def insist(self, path, body, headers=None):
        until = time.monotonic() + DRAIN_SECONDS
        while (reply := self.once(path, body, headers)) is None:
            self.again += 1
            if time.monotonic() > until or self.crowd.over.is_set():
                raise Fault("nobody answers " + path)
            time.sleep(0.003)
        return reply

    def expect(self, reply, *statuses):
        if reply.status not in statuses:
            raise Fault("%s: %d %s" % (self.name, reply.status, reply.body))
        return reply.json

    def tell(self, op, worker, task, fence="-"):
        self.told.append("C\t%s\tok\t%s\tt%d\t%s\t-\t0\t0" % (worker, op, proof.task_number(task), fence))


class Producer(Actor):
    def __init__(self, crowd, name):
        super().__init__(crowd, name)
        self.count, self.made = 0, {}

    def body(self):
        self.count += 1
        return {"title": "%s-%d" % (self.name, self.count), "queue": self.random.choice(QUEUES),
                "priority": self.random.randrange(3), "payload": {"by": self.name, "n": self.count}}

    def note(self, key, body, task):
        if self.made.setdefault(key, task) != task:
            raise Fault("%s was made twice: %s and %s" % (key, self.made[key], task))
        self.tell("enqueue", self.name, task)
        self.crowd.titles[task] = body["title"]

    def insist_on_all(self, bodies, key):
        """An item that could not be written (503) is asked for again as a whole request is: under the same key."""
        while True:
            reply = self.expect(self.insist("/api/tasks/batch", {"tasks": bodies}, {"Idempotency-Key": key}), 200)
            if all(item["status"] != 503 for item in reply["results"]) or self.crowd.over.is_set():
                return reply
            self.again += 1
            time.sleep(0.003)

    def act(self):
        if self.crowd.closed.is_set():
            return False
        if self.random.random() < 0.1:
            bodies = [self.body() for _ in range(self.random.randint(2, 6))]
            key = "batch-%s-%d" % (self.name, self.count)
            reply = self.insist_on_all(bodies, key)
            for at, (body, item) in enumerate(zip(bodies, reply["results"], strict=True)):
                if item["status"] != 201:
                    raise Fault(str(item))
                self.note("%s/%d" % (key, at), body, item["task"]["id"])
        else:
            body = self.body()
            reply = self.expect(self.insist("/api/tasks", body, {"Idempotency-Key": body["title"]}), 201)
            self.note(body["title"], body, reply["id"])
        time.sleep(self.random.random() * self.crowd.pace)
        return True


class Worker(Actor):
    def __init__(self, crowd, name):
        super().__init__(crowd, name)
        self.worker, self.requests, self.finish = name, 0, []

    def act(self):
        if self.crowd.drained.is_set():
            return False
        for claim in self.claim():
            self.work(claim)
        return True

    def wants(self):
        self.requests += 1
        return {"workerId": self.worker, "queues": self.random.sample(QUEUES, self.random.randint(1, 3)),
                "max": self.random.randint(1, 4), "waitMs": self.random.choice([0, 50, 200]), "leaseMs": LEASE_MS}

    def claim(self):
        body = self.wants()
        if self.finish:
            body["finish"] = self.finish
        if self.random.random() < 0.5:  # with a name for it, it may be asked again; without, what is lost is lost
            body["requestId"] = "r%d" % self.requests
            reply = self.insist("/api/claims", body)
        else:
            reply = self.once("/api/claims", body)
            if reply is None:  # its finish may have happened: it stays in the list and is said again
                time.sleep(0.003)
                return []
        found = self.expect(reply, 200)
        for sent, became in zip(self.finish, found.get("finished", []), strict=True):
            self.ended(sent["id"], sent["fence"], sent["outcome"], became["ok"], became.get("code"))
        self.finish = []
        for claim in found["claims"]:
            self.got(claim)
        return found["claims"]

    def got(self, claim):
        task, fence = claim["task"]["id"], claim["fence"]
        holder = self.crowd.holders.setdefault((task, fence), self.worker)
        if holder != self.worker:
            raise Fault("%s was given to %s and %s under fence %s" % (task, holder, self.worker, fence))
        highest = self.crowd.fences.get(task, 0)
        self.crowd.fences[task] = max(highest, int(fence))
        self.tell("claim", self.worker, task, fence)

    def ended(self, task, fence, how, ok, code):
        if ok:
            self.tell(how, self.worker, task, fence)
            if how == "complete":
                self.crowd.completed[task] = {"by": self.worker, "fence": fence}
        elif code not in ("stale_claim", "not_claimed"):
            raise Fault("%s of %s under %s: %s" % (how, task, fence, code))

    def report(self, how, claim, **fields):
        """False: the claim is no longer ours."""
        task, fence = claim["task"]["id"], claim["fence"]
        body = {"workerId": self.worker, "fence": fence, **fields}
        reply = self.insist("/api/tasks/%s/%s" % (task, how), body)
        found = self.expect(reply, 200, 409)
        if how != "progress":
            self.ended(task, fence, how, reply.status == 200, found.get("code"))
        elif reply.status == 200:
            self.tell(how, self.worker, task, fence)
        return reply.status == 200

    def work(self, claim):
        result = {"by": self.worker, "fence": claim["fence"]}
        if self.random.random() < 0.4 and not self.report("progress", claim, percent=50, data={"at": claim["attempt"]}):
            return
        chance = self.random.random()
        if chance < 0.45:
            self.report("complete", claim, result=result)
        elif chance < 0.75:
            self.finish.append({"id": claim["task"]["id"], "fence": claim["fence"], "outcome": "complete",
                                "result": result})
        elif chance < 0.87:
            self.report("fail", claim, error={"code": "EXECUTION_ERROR", "message": "by dice"})
        elif chance < 0.97:
            self.report("release", claim, reason="by dice")
        else:
            self.forget(claim)

    def forget(self, claim):
        """Its lease will end."""


class Beater(Worker):
    """A worker that beats and binds what it holds."""

    def __init__(self, crowd, name):
        super().__init__(crowd, name)
        self.lives, self.token = 0, None
        self.reborn()

    def reborn(self):
        self.lives += 1
        self.worker, self.token, self.finish = "%s.%d" % (self.name, self.lives), None, []

    def beat(self, **deltas):
        body = {"workerId": self.worker, "leaseMs": LEASE_MS, **deltas}
        while True:
            reply = self.insist("/api/workers/heartbeat", body if self.token is None else {**body, "token": self.token})
            found = self.expect(reply, 200, 409, 410)
            if reply.status == 410:
                self.reborn()
                return None
            self.token = found["token"]
            if reply.status == 200:
                return found

    def act(self):
        if self.crowd.drained.is_set():
            return False
        if self.beat() is None:
            return True
        claims = self.claim()
        if not claims:
            return True
        beat = self.beat(boundTasks=[claim["task"]["id"] for claim in claims])
        for claim in claims if beat else []:
            if claim["task"]["id"] not in beat["lost"]:
                self.work(claim)
        return True

    def forget(self, claim):
        if self.random.random() < 0.5:
            self.beat(unboundTasks=[claim["task"]["id"]])
        else:
            self.reborn()  # the old one is not heard of again, and what it held comes free

    def expect(self, reply, *statuses):
        if reply.status == 410 and reply.json["code"] == "WORKER_INACTIVE" and 410 not in statuses:
            self.reborn()  # it was lost while it asked
            return {"claims": [], "finished": [], "code": "stale_claim"}
        return super().expect(reply, *statuses)


class Crowd:
    def __init__(self, server, pace):
        self.server, self.pace = server, pace
        self.closed, self.drained, self.over = threading.Event(), threading.Event(), threading.Event()
        self.titles, self.holders, self.fences, self.completed = {}, {}, {}, {}
        self.producers = [Producer(self, "p%d" % i) for i in range(3)]
        self.workers = [Worker(self, "w%d" % i) for i in range(6)] + [Beater(self, "b%d" % i) for i in range(3)]
        self.actors = self.producers + self.workers
        for actor in self.actors:
            actor.start()

    def end(self, over=True):
        """Everyone goes home: after an answer, or at once."""
        self.closed.set()
        self.drained.set()
        if over:
            self.over.set()
        for actor in self.actors:
            actor.join(DRAIN_SECONDS)

    def faults(self):
        return [repr(actor.fault) for actor in self.actors if actor.fault]


class Crash(proof.ProofCase):
    flags = proof.settings(worker_leaseMinMs=100, restart_graceMs=GRACE_MS, retry_baseMs=RETRY_BASE_MS,
                           retry_maxMs=RETRY_MAX_MS, claim_verifyAfterMs=VERIFY_MS, sweep_intervalMs=50,
                           task_crashBudget=CRASHES)
    limits = ("restart_grace_ms=%d" % GRACE_MS, "retry_base_ms=%d" % RETRY_BASE_MS,
              "retry_max_ms=%d" % RETRY_MAX_MS, "verify_after_ms=%d" % VERIFY_MS, "crash_budget=%d" % CRASHES)

    def test_nothing_that_anyone_was_told_is_lost_or_happens_twice(self):
        dice, away = random.Random(SEED), []
        crowd = Crowd(self.server, 0.01 if ROUNDS < 50 else 0.05)
        self.addCleanup(crowd.end)
        for round_ in range(ROUNDS):
            time.sleep(dice.uniform(0.05, 0.7))
            self.assertEqual(crowd.faults(), [])
            self.die(dice, away, prove=round_ < 20 or round_ % 10 == 0)
        crowd.closed.set()
        self.wait_until(lambda: self.is_drained(crowd), DRAIN_SECONDS, "not every task came to an end")
        crowd.end(over=False)
        self.tell_people(crowd, away)
        self.assertEqual(crowd.faults(), [])
        self.hold_against_the_server(crowd)
        self.assertEqual(self.server.stop(), 0)
        self.prove([line for actor in crowd.actors for line in actor.told], self.limits)

    def die(self, dice, away, prove):
        began = time.monotonic()
        self.server.kill()
        self.client.close()
        if prove:
            self.prove(limits=self.limits)
        for _ in range(dice.choice([0, 0, 1, 2])):  # and again while it starts
            self.server.launch()
            time.sleep(dice.uniform(0, 0.03))
            self.server.kill()
        began = time.monotonic()
        self.server.start()
        self.assertEqual(self.client.get("/readyz").status, 200)
        away.append(time.monotonic() - began)

    def is_drained(self, crowd):
        self.assertEqual(crowd.faults(), [])
        return self.tasks_left() == 0 and not any(actor.is_alive() for actor in crowd.producers)

    def tell_people(self, crowd, away):
        asked, again = sum(actor.asked for actor in crowd.actors), sum(actor.again for actor in crowd.actors)
        print("seed %d: %d rounds, %d requests (%d of them again), %d tasks, %d claims; serving again after %.0f ms, "
              "at most %.0f ms" % (SEED, ROUNDS, asked, again, len(crowd.titles), len(crowd.holders),
                                   1000 * sum(away) / len(away), 1000 * max(away)), file=sys.stderr)

    def hold_against_the_server(self, crowd):
        events = self.events()
        self.assertEqual([event["seq"] for event in events], list(range(1, len(events) + 1)))
        by_type = collections.Counter((event["type"], event.get("task")) for event in events)
        made = [task for producer in crowd.producers for task in producer.made.values()]
        self.assertEqual(len(made), len(set(made)), "two keys, one task")
        self.assertEqual({task for type_, task in by_type if type_ == "task.created"}, set(made))
        for task, title in crowd.titles.items():
            found = self.client.get("/api/tasks/" + task).json
            self.assertEqual((found["title"], by_type["task.created", task]), (title, 1))
            self.assertIn(found["state"], ("done", "failed", "blocked"))
            self.assertEqual(by_type["task.completed", task], int(found["state"] == "done"))
            self.assertEqual(found["attempt"], by_type["task.claimed", task])
            self.assertGreaterEqual(1000000000000 + found["attempt"], crowd.fences.get(task, 0))
            if task in crowd.completed:
                self.assertEqual((found["state"], found["result"]), ("done", crowd.completed[task]), task)
            elif found["state"] == "done":  # by somebody who was not told
                self.assertEqual(crowd.holders.get((task, found["result"]["fence"])), found["result"]["by"])


if __name__ == "__main__":
    unittest.main()
