"""Racers: however many reach for one task, and by whichever door, one gets it."""
import threading
import unittest

from hang import HANG_S
import proof


def setUpModule():
    proof.raise_limits()


class Racers(proof.Proved, proof.ProofCase):
    def setUp(self):
        self.clocks = proof.Clocks()
        self.addCleanup(self.clocks.file.close)
        super().setUp()

    def race(self, racers, run):
        """What each racer said when all ran at once. `run` gets a client of its own and a number."""
        clients = [self.connect(local=number % 2 == 1) for number in range(racers)]
        start, said, faults = threading.Barrier(racers), [None] * racers, []

        def go(number):
            try:
                clients[number].get("/livez")  # the connection stands before the race
                start.wait(HANG_S)
                said[number] = run(clients[number], number)
            except Exception as fault:
                faults.append(fault)

        threads = [threading.Thread(target=go, args=(number,)) for number in range(racers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANG_S)
        for client in clients:
            client.close()
        self.assertEqual(faults, [])
        return said

    def claim_by_id(self, client, task, worker):
        reply = client.post("/api/tasks/%s/claim" % task, {"workerId": worker})
        self.assertIn(reply.status, (200, 409), reply.body)
        if reply.status == 409:
            self.assertEqual(reply.json["code"], "claimed_by_other")
            return []
        return [reply.json]

    def test_racers_on_both_sockets_by_id_and_by_queue(self):
        for racers in (16, 100):
            with self.subTest(racers=racers):
                task = self.create()
                by_id = lambda client, number: self.claim_by_id(client, task, "w%d" % number)
                by_queue = lambda client, number: self.claim("w%d" % number, client, max=10)
                said = self.race(racers, lambda client, number: (by_id if number % 3 else by_queue)(client, number))
                won, = [claim for claims in said for claim in claims]
                self.assertEqual((won["task"]["id"], won["attempt"]), (task, 1))
                self.assertEqual(self.types_of(task), ["task.created", "task.claimed"])

    def test_racers_for_many_tasks_get_each_once(self):
        made = {self.create(priority=number % 3) for number in range(150)}
        said = self.race(50, lambda client, number: self.claim("w%d" % number, client, max=1 + number % 7))
        got = [claim["task"]["id"] for claims in said for claim in claims]
        self.assertEqual(len(got), len(set(got)))
        self.assertEqual(set(got) | {claim["task"]["id"] for claim in self.claim("last", max=100)}, made)

    def test_one_task_that_comes_wakes_one_of_many_who_wait(self):
        def wait_for_work(client, number):
            if number == 0:
                self.wait_until(lambda: self.metric("stint_waiting_claims") == 59)
                task = self.create()
                self.assertEqual(self.metric("stint_waiting_claims"), 58)
                self.clocks.set(boot_ms=60000)  # the others have waited long enough
                return [task]
            return self.claim("w%d" % number, client, waitMs=60000)

        said = self.race(60, wait_for_work)
        won, = [claim for claims in said[1:] for claim in claims]
        self.assertEqual(won["task"]["id"], said[0][0])

    def test_of_racers_who_report_one_outcome_is_recorded(self):
        outcomes = ["complete", "fail", "release"]
        for _ in range(5):
            task = self.create(maxAttempts=1)
            claim, = self.claim("w")
            fields = {"complete": {"result": 1}, "fail": {"error": {"code": "EXECUTION_ERROR"}}, "release": {}}

            def end(client, number):
                how = outcomes[number % 3]
                return how, self.report(how, claim, "w", client, **fields[how]).status

            said = self.race(30, end)
            won = {how for how, status in said if status == 200}
            self.assertEqual(len(won), 1, said)
            self.assertEqual({status for how, status in said if how not in won}, {409})
            self.assertEqual({status for how, status in said if how in won}, {200})
            ends = [type_ for type_ in self.types_of(task) if type_ in
                    ("task.completed", "task.failed", "task.released")]
            self.assertEqual(len(ends), 1)
            if self.state(task) == "ready":
                self.client.post("/api/tasks/%s/cancel" % task)

    def test_of_racers_who_make_the_same_thing_one_makes_it(self):
        body = {"title": "once", "queue": "q"}
        said = self.race(40, lambda client, number: client.post("/api/tasks", body, {"Idempotency-Key": "k"}))
        self.assertEqual({reply.status for reply in said}, {201})
        self.assertEqual(len({reply.json["id"] for reply in said}), 1)
        said = self.race(40, lambda client, number: client.post("/api/tasks", {**body, "uniqueKey": "u"}))
        self.assertEqual(sorted(reply.status for reply in said), [200] * 39 + [201])
        self.assertEqual(len({reply.json["id"] for reply in said}), 1)
        said = self.race(40, lambda client, number: client.post("/api/tasks", {**body, "id": "mine"}))
        self.assertEqual(sorted(reply.status for reply in said), [201] + [409] * 39)

    def test_racers_for_one_slot_leave_one_in_it(self):
        said = self.race(30, lambda client, number: client.post(
            "/api/workers/register", {"workerId": "w%d" % number, "slot": "slot-1"}))
        self.assertEqual(sorted(reply.status for reply in said), [200] + [409] * 29)
        self.assertEqual({reply.json["code"] for reply in said if reply.status == 409}, {"slot_taken"})

    def test_a_claim_and_a_cancel_at_once_end_in_one_of_two_ways(self):
        for _ in range(10):
            task = self.create()
            said = self.race(2, lambda client, number: self.claim("w", client) if number
                             else client.post("/api/tasks/%s/cancel" % task).status)
            self.assertEqual(said[0], 200)  # it has no worker that beats: it takes effect at once
            self.assertEqual(self.state(task), "cancelled")
            for claim in said[1]:
                self.assertEqual(self.report("complete", claim).status, 409)


if __name__ == "__main__":
    unittest.main()
