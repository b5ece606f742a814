"""Who is alive: the liveness protocol as dialogues with the real server. Its tables (errors, verification, what a client
does), its own names, and what nobody should say."""
import base64
import time

import proof

HOUR_MS = 3600 * 1000


def token_of(number):
    return base64.b64encode(number.to_bytes(8, "little")).decode()


class LivenessCase(proof.ProofCase):
    """Leases may be short here, and nobody has grace after the start."""
    flags = proof.settings(worker_leaseMinMs=100, restart_graceMs=0)

    def say(self, **fields):
        return self.client.post("/api/workers/heartbeat", fields)

    def accepted(self, worker="w", token=None, **fields):
        reply = self.beat(worker, token=token, **fields)
        self.assertEqual(reply.status, 200, reply.body)
        return reply.json

    def refused(self, reply, status, code):
        self.assertEqual((reply.status, reply.json["code"]), (status, code), reply.body)
        return reply.json

    def worker(self, worker="w"):
        return self.client.get("/api/workers/" + worker).json

    def last_event(self):
        return self.client.get("/api/events?after=0&limit=1000").json["next"]

    def types_of_worker(self, worker="w"):
        return [event["type"] for event in self.events() if event.get("worker") == worker and "task" not in event]

    def task_of(self, worker="w", **fields):
        self.create(**fields)
        claim, = self.claim(worker)
        return claim["task"]["id"]

    def wait_for_state(self, task, state):
        self.wait_until(lambda: self.state(task) == state, what="%s never became %s" % (task, state))


class Errors(LivenessCase):
    """Error types, lost replies, and what the client does then."""

    def test_an_unknown_key_is_registered_by_its_first_beat(self):
        first = self.accepted(leaseMs=HOUR_MS)
        self.assertEqual((first["state"], first["leaseMs"], first["lost"], first["commands"]), ("active", HOUR_MS, [], []))
        self.assertEqual(self.types_of_worker(), ["worker.registered"])

    def test_an_unknown_key_that_has_a_token_is_inactive(self):
        before = self.last_event()
        told = self.refused(self.beat("w", token=token_of(1)), 410, "WORKER_INACTIVE")
        self.assertNotIn("token", told)
        self.assertEqual(self.client.get("/api/workers/w").status, 404)
        self.assertEqual(self.last_event(), before)

    def test_every_accepted_beat_gets_a_new_token(self):
        token, seen = None, set()
        for _ in range(20):
            token = self.accepted(token=token)["token"]
            self.assertEqual(len(base64.b64decode(token, validate=True)), 8)
            seen.add(token)
        self.assertEqual(len(seen), 20)

    def test_a_lost_reply_is_found_out_by_the_token_and_nothing_else_happens(self):
        old = self.accepted(leaseMs=HOUR_MS)["token"]
        task = self.task_of()
        current = self.accepted(token=old, leaseMs=HOUR_MS)["token"]  # and the client never reads that
        before, standing = self.last_event(), self.worker()
        told = self.refused(self.beat("w", token=old, leaseMs=2 * HOUR_MS, boundTasks=[task]), 409, "TOKEN_MISMATCH")
        self.assertEqual(told["token"], current)
        self.assertEqual((self.last_event(), self.state(task)), (before, "claimed"))
        self.assertEqual((self.worker()["lastBeatAt"], self.worker()["leaseGrantedMs"]),
                         (standing["lastBeatAt"], HOUR_MS), "the lease was not extended")
        reply = self.accepted(token=told["token"], boundTasks=[task])  # the deltas were kept until now
        self.assertEqual((reply["lost"], self.state(task)), ([], "running"))

    def test_whatever_is_not_the_last_token_is_a_mismatch(self):
        current = self.accepted()["token"]
        for wrong in ("AQID", base64.b64encode(bytes(3)).decode(), base64.b64encode(bytes(9)).decode(), token_of(0),
                      token_of(2 ** 64 - 1), current[:-1], current + "=", " " + current, "1099511627777", "x" * 5000, None, ""):
            self.assertEqual(self.refused(self.beat("w", token=wrong), 409, "TOKEN_MISMATCH")["token"], current)
        self.accepted(token=current)

    def test_an_inactive_worker_stays_so_and_comes_back_under_a_new_key(self):
        token = self.accepted(leaseMs=100)["token"]
        self.wait_until(lambda: self.worker()["state"] == "inactive")
        before = self.last_event()
        for _ in range(2):
            self.refused(self.beat("w", token=token), 410, "WORKER_INACTIVE")
            self.refused(self.beat("w"), 410, "WORKER_INACTIVE")
            self.refused(self.client.post("/api/workers/register", {"workerId": "w"}), 410, "WORKER_INACTIVE")
        self.assertEqual(self.last_event(), before)
        self.accepted("w-2")
        self.assertEqual(self.worker()["ended"], "expired")

    def test_so_it_is_after_a_restart(self):
        token = self.accepted(leaseMs=HOUR_MS)["token"]
        self.assertEqual(self.client.call("DELETE", "/api/workers/w").status, 200)
        self.restart()
        self.refused(self.beat("w", token=token), 410, "WORKER_INACTIVE")


class Deltas(LivenessCase):
    def test_deltas_are_idempotent(self):
        token = self.accepted(leaseMs=HOUR_MS)["token"]
        task = self.task_of()
        for _ in range(3):
            reply = self.accepted(token=token, boundTasks=[task, task])
            token = reply["token"]
            self.assertEqual(reply["lost"], [])
        self.assertEqual(self.types_of(task), ["task.created", "task.claimed", "task.confirmed"])
        for _ in range(3):
            token = self.accepted(token=token, unboundTasks=[task])["token"]
        self.assertEqual(self.types_of(task), ["task.created", "task.claimed", "task.confirmed"])

    def test_what_is_not_its_own_is_lost_and_stays_as_it_is(self):
        theirs, free = self.task_of("other"), self.create()
        mine = self.accepted()["token"]
        before = self.last_event()
        reply = self.accepted(token=mine, boundTasks=[theirs, "no-such-task", free], unboundTasks=[theirs, "nor-this", free])
        self.assertEqual(reply["lost"], [theirs, "no-such-task", free])
        self.assertEqual((self.state(theirs), self.state(free), self.last_event()), ("claimed", "ready", before))

    def test_what_was_taken_from_it_meanwhile_is_lost(self):
        token = self.accepted(leaseMs=HOUR_MS)["token"]
        task = self.task_of()
        self.client.post("/api/tasks/%s/cancel" % task)
        self.assertEqual(self.accepted(token=token, boundTasks=[task])["lost"], [task])

    def test_commands_come_with_the_reply(self):
        token = self.accepted(leaseMs=HOUR_MS)["token"]
        task = self.task_of()
        token = self.accepted(token=token, boundTasks=[task])["token"]
        self.assertEqual(self.client.post("/api/tasks/%s/cancel" % task).status, 202)
        reply = self.accepted(token=token)
        self.assertEqual(reply["commands"], [{"type": "cancel", "task": task}])
        self.client.post("/api/workers/w/quiet")
        reply = self.accepted(token=reply["token"])
        self.assertEqual((reply["state"], reply["commands"][-1]), ("quiet", {"type": "quiet"}))
        self.client.post("/api/workers/w/terminate")
        reply = self.accepted(token=reply["token"])
        self.assertEqual((reply["state"], reply["commands"][-1]), ("terminating", {"type": "terminate"}))
        self.assertEqual(self.types_of_worker(), ["worker.registered", "worker.quiet", "worker.terminating"])


class Verification(LivenessCase):
    """What the timer of a claim finds: its table, row by row."""
    flags = proof.settings(worker_leaseMinMs=100, restart_graceMs=0, claim_verifyAfterMs=1000)

    def test_active_and_bound_is_left_to_the_lease(self):
        token = self.accepted(leaseMs=HOUR_MS)["token"]
        bound = self.task_of()
        self.accepted(token=token, boundTasks=[bound])
        later = self.create()
        claim, = self.claim(leaseMs=HOUR_MS)
        self.wait_for_state(later, "ready")  # so the timer of the other one was there before
        self.assertEqual((claim["task"]["id"], self.state(bound)), (later, "running"))

    def test_active_and_not_bound_is_taken_back_and_costs_nothing(self):
        token = self.accepted(leaseMs=HOUR_MS)["token"]
        task = self.create()
        claim, = self.claim(leaseMs=HOUR_MS)
        self.accepted(token=token)
        self.wait_for_state(task, "ready")
        self.assertEqual(self.types_of(task)[-1], "claim.unconfirmed")
        found = self.client.get("/api/tasks/" + task).json
        self.assertEqual((found["spent"], found["crashes"]), (0, 0))
        self.refused(self.report("complete", claim), 409, "stale_claim")

    def test_inactive_is_taken_back(self):
        self.accepted(leaseMs=300)
        task = self.create()
        self.claim(leaseMs=HOUR_MS)
        self.wait_for_state(task, "ready")
        self.assertEqual(self.worker()["state"], "inactive")

    def test_finished_is_left_alone(self):
        self.accepted(leaseMs=HOUR_MS)
        task = self.create()
        claim, = self.claim(leaseMs=HOUR_MS)
        self.assertEqual(self.report("complete", claim).status, 200)
        other = self.create()
        self.claim(leaseMs=HOUR_MS)
        self.wait_for_state(other, "ready")
        self.assertEqual(self.types_of(task)[-1], "task.completed")

    def test_progress_confirms_as_well(self):
        self.accepted(leaseMs=HOUR_MS)
        task = self.create()
        claim, = self.claim(leaseMs=HOUR_MS)
        self.assertEqual(self.report("progress", claim).status, 200)
        other = self.create()
        self.claim(leaseMs=HOUR_MS)
        self.wait_for_state(other, "ready")
        self.assertEqual(self.state(task), "running")

    def test_whoever_does_not_beat_is_not_asked_to(self):
        task = self.task_of("plain")
        self.accepted("beats", leaseMs=HOUR_MS)
        other = self.create()
        self.claim("beats", leaseMs=HOUR_MS)
        self.wait_for_state(other, "ready")
        self.assertEqual(self.state(task), "claimed")


class Expiry(LivenessCase):
    def hold(self, count):
        """A worker that holds so many, and is never heard again."""
        token = self.accepted(leaseMs=HOUR_MS)["token"]
        tasks = [self.task_of() for _ in range(count)]
        self.accepted(token=token, boundTasks=tasks, leaseMs=700)
        return tasks

    def test_each_task_is_set_free_on_its_own_and_none_too_early(self):
        tasks = self.hold(5)
        for task in tasks:
            self.wait_for_state(task, "ready")
            self.assertEqual(self.types_of(task)[-2:], ["task.confirmed", "task.expired"])
        beat, = [event for event in self.events() if event["type"] == "task.confirmed" and event["task"] == tasks[0]]
        gone, = [event for event in self.events() if event["type"] == "worker.inactive"]
        self.assertGreaterEqual(gone["time"] - beat["time"], 700 - 2, "two clocks, each cut off at milliseconds")
        self.assertEqual(gone["data"]["ended"], "expired")
        metrics = self.metrics()
        self.assertEqual((metrics["stint_workers_created_total"], metrics["stint_worker_tasks_rescheduled_total"]), (1, 5))
        self.prove(limits=("restart_grace_ms=0",))

    def test_a_cancelled_one_ends_with_its_worker_and_is_not_rescheduled(self):
        tasks = self.hold(2)
        self.client.post("/api/tasks/%s/cancel" % tasks[0])
        self.wait_for_state(tasks[1], "ready")
        self.assertEqual(self.state(tasks[0]), "cancelled")
        metrics = self.metrics()
        self.assertEqual((metrics["stint_worker_tasks_rescheduled_total"],
                          metrics['stint_worker_reschedule_errors_total{type="skipped"}']), (1, 1))


class BetweenSweeps(LivenessCase):
    """The upkeep comes once in a minute: what runs out meanwhile is seen all the same."""
    flags = proof.settings(worker_leaseMinMs=100, restart_graceMs=0, sweep_intervalMs=60000)

    def test_a_lease_that_runs_out_does_not_wait_for_the_next_sweep(self):
        token = self.accepted(leaseMs=HOUR_MS)["token"]
        task = self.task_of()
        self.accepted(token=token, boundTasks=[task], leaseMs=700)
        self.wait_for_state(task, "ready")

    def test_nor_does_a_time_that_comes(self):
        task = self.create(notBefore=int(time.time() * 1000) + 500)
        self.wait_for_state(task, "ready")


class OnlyMarked(LivenessCase):
    flags = proof.settings(worker_leaseMinMs=100, restart_graceMs=0, worker_rescheduleOnExpiry="false")

    def test_a_lost_worker_keeps_its_work_until_somebody_acts(self):
        token = self.accepted(leaseMs=HOUR_MS)["token"]
        task = self.task_of()
        self.accepted(token=token, boundTasks=[task], leaseMs=100)
        self.wait_until(lambda: self.worker()["state"] == "inactive")
        self.assertEqual((self.state(task), self.worker()["tasks"]), ("running", [task]))
        self.assertEqual(self.metric('stint_worker_reschedule_errors_total{type="skipped"}'), 1)
        self.assertEqual(self.client.post("/api/tasks/%s/cancel" % task).status, 200)
        self.assertEqual(self.state(task), "cancelled")


class OwnNames(LivenessCase):
    """As a client of the liveness protocol says it."""

    def test_a_conversation(self):
        first = self.say(workerInstanceKey="key-1", leaseDuration="60s")
        self.assertEqual((first.status, first.json["leaseMs"]), (200, 60000))
        task = self.task_of("key-1")
        second = self.say(workerInstanceKey="key-1", token=first.json["token"], leaseDuration=90000, boundActivities=[task],
                          unboundActivities=[])
        self.assertEqual((second.status, second.json["leaseMs"], self.state(task)), (200, 90000, "running"))
        self.refused(self.say(workerInstanceKey="key-1", token=first.json["token"]), 409, "TOKEN_MISMATCH")
        third = self.say(workerInstanceKey="key-1", token=second.json["token"], unboundActivities=[task])
        self.assertEqual(third.status, 200)
        self.assertEqual(self.worker("key-1")["leaseGrantedMs"], 90000, "what is not asked for anew stays")

    def test_its_names_in_every_spelling(self):
        for key, lease, bound, unbound in (
                ("worker_instance_key", "lease_duration", "bound_activities", "unbound_activities"),
                ("WorkerInstanceKey", "LeaseDuration", "BoundActivities", "UnboundActivities")):
            first = self.say(**{key: key, lease: "999999999s"})
            self.assertEqual((first.status, first.json["leaseMs"]), (200, 24 * HOUR_MS))
            task = self.task_of(key)
            second = self.say(**{key: key, "token": first.json["token"], lease: 90000, bound: [task]})
            self.assertEqual((second.status, second.json["leaseMs"], self.state(task)), (200, 90000, "running"))
            third = self.say(**{key: key, "token": second.json["token"], unbound: [task]})
            self.assertEqual(third.status, 200)


class BadInput(LivenessCase):
    def test_leases_are_kept_within_bounds_and_the_effective_one_is_told(self):
        token = None
        for asked, granted in ((365 * 24 * HOUR_MS, 24 * HOUR_MS), (2 ** 62, 24 * HOUR_MS), (1, 100), (0, 100), (90000, 90000), (None, 90000)):
            reply = self.accepted(token=token, leaseMs=asked)
            self.assertEqual(reply["leaseMs"], granted, "asked for %s" % asked)
            token = reply["token"]
        self.assertEqual(self.accepted("v", leaseMs=0)["leaseMs"], 60000, "the default")

    def test_what_cannot_be_meant_is_refused_with_its_place_and_changes_nothing(self):
        token = self.accepted()["token"]
        before, standing = self.last_event(), self.worker()["lastBeatAt"]
        for field, fields in (("leaseMs", {"leaseMs": 2 ** 63}), ("leaseMs", {"leaseMs": -1}),
                              ("leaseMs", {"leaseMs": "60s"}), ("leaseDuration", {"leaseDuration": "forever"}),
                              ("leaseDuration", {"leaseMs": 5000, "leaseDuration": 5000}),
                              ("token", {"token": 7}), ("token", {"token": [token]}),
                              ("workerInstanceKey", {"workerInstanceKey": "w"}),
                              ("boundTasks", {"boundTasks": "t-1"}), ("boundTasks", {"boundTasks": [1]}),
                              ("boundTasks", {"boundTasks": ["t-1\n"]}), ("boundTasks", {"boundTasks": ["t"] * 101}),
                              ("boundActivities", {"boundTasks": ["a"], "boundActivities": ["b"]}),
                              ("BoundActivities", {"bound_activities": ["a"], "BoundActivities": ["b"]}),
                              ("lease_duration", {"lease_duration": "soon"}),
                              ("LeaseDuration", {"lease_duration": "60s", "LeaseDuration": "60s"}),
                              ("version", {"version": "1.0\u0000"}), ("beats", {"beats": []})):
            reply = self.client.post("/api/workers/heartbeat", {"workerId": "w", "token": token, **fields})
            told = self.refused(reply, 422, "invalid")
            self.assertEqual([error["field"] for error in told["errors"]], [field], fields)
        self.assertEqual((self.last_event(), self.worker()["lastBeatAt"]), (before, standing))
        self.accepted(token=token)

    def test_a_quiet_worker_that_claims_by_id_is_told_why_not(self):
        token = self.accepted()["token"]
        self.client.post("/api/tasks", {"id": "by-id", "title": "x"})
        for order in ("quiet", "terminate"):
            self.client.post(f"/api/workers/w/{order}")
            told = self.refused(self.client.post("/api/tasks/by-id/claim", {"workerId": "w"}), 403, "forbidden")
            self.assertIn("takes nothing new", told["detail"])
        self.accepted(token=token)

    def test_an_id_with_control_characters_is_none(self):
        before = self.last_event()
        for name in ("w\u0000", "w\n", "\u001b[2J", "w\u007f", "\u009b2J", "w\u0085", "", "w" * 129):
            for path in ("/api/workers/register", "/api/workers/heartbeat"):
                self.refused(self.client.post(path, {"workerId": name}), 422, "invalid")
        self.assertEqual(self.last_event(), before)

    def test_two_beats_in_one_body_are_none(self):
        before = self.last_event()
        one = b'{"workerId":"w"}'
        for body, status in ((b"[" + one + b"," + one + b"]", 422), (one + one, 400), (one + b"\n" + one, 400),
                             (b'{"workerId":"w","workerId":"v"}', 400), (b"", 422), (b"null", 422)):
            reply = self.client.call("POST", "/api/workers/heartbeat", body)
            self.assertEqual(reply.status, status, (body, reply.body))
        self.assertEqual(self.last_event(), before)


class Who(LivenessCase):
    SAID = {"host": "build-7", "bootId": "01234567-89ab-cdef-0123-456789abcdef", "pid": 4711, "startTime": 99,
            "version": "2.1.0", "capabilities": ["gpu"], "executors": ["tests"], "maxConcurrent": 3, "slot": "slot-1",
            "metadata": {"rack": 7}}

    def test_a_worker_is_shown_as_it_said_it_is(self):
        reply = self.client.post("/api/workers/register", {"workerId": "w", "leaseMs": 60000, **self.SAID})
        self.assertEqual(reply.status, 200, reply.body)
        for worker in (self.worker(), self.client.get("/api/workers").json[0]):
            self.assertEqual({key: worker[key] for key in self.SAID}, self.SAID)
            self.assertEqual((worker["state"], worker["instance"], worker["restarts"]), ("active", 1, 0))
            self.assertLessEqual(worker["heartbeatAgeMs"] + worker["leaseMs"], worker["leaseGrantedMs"] + 1)
        self.restart()
        self.assertEqual({key: self.worker()[key] for key in self.SAID}, self.SAID)

    def test_crashes_of_its_slot_are_told_with_it(self):
        self.client.post("/api/workers/register", {"workerId": "w", "slot": "slot-1"})
        self.client.post("/api/slots/slot-1/crash")
        self.assertEqual(self.worker()["restarts"], 1)

    def test_every_change_leaves_an_event(self):
        token = self.client.post("/api/workers/register", {"workerId": "w", **self.SAID}).json["token"]
        token = self.accepted(token=token, **self.SAID)["token"]
        self.assertEqual(self.types_of_worker(), ["worker.registered"], "it said the same")
        said = {**self.SAID, "maxConcurrent": 9}
        token = self.accepted(token=token, **said)["token"]
        changed = self.events()[-1]
        self.assertEqual((changed["type"], changed["data"]["maxConcurrent"]), ("worker.updated", 9))
        self.client.post("/api/workers/register", {"workerId": "w", **said})
        self.client.post("/api/workers/w/quiet")
        self.client.call("DELETE", "/api/workers/w")
        self.assertEqual(self.types_of_worker(), ["worker.registered", "worker.updated", "worker.updated", "worker.quiet",
                                                  "worker.inactive"])
        self.assertEqual((self.worker()["state"], self.worker()["ended"]), ("inactive", "shutdown"))


class Loops(LivenessCase):
    """Whoever dies as soon as it starts comes back too often."""
    flags = proof.settings(worker_leaseMinMs=100, restart_graceMs=0, limits_slotRegistrationsPerMinute=3)

    def register(self, worker, **fields):
        return self.client.post("/api/workers/register", {"workerId": worker, **fields})

    def test_an_id_that_registers_too_often_is_told_when_to_come_back(self):
        for _ in range(3):
            last = self.register("w")
            self.assertEqual(last.status, 200, last.body)
        before = self.last_event()
        reply = self.register("w")
        self.refused(reply, 429, "rate_limited")
        self.assertIn(int(reply.headers["Retry-After"]), range(1, 21))
        self.assertEqual((self.last_event(), self.metric("stint_worker_registrations_refused_total")), (before, 1))
        self.accepted(token=last.json["token"])  # beats are not counted
        self.assertEqual(self.register("other").status, 200)

    def test_so_is_a_slot_and_by_beats_too(self):
        said = {"slot": "s", "host": "h", "bootId": "0" * 31 + "1", "startTime": 5}
        self.assertEqual(self.beat("w0", pid=1, **said).status, 200)
        for number in range(1, 4):
            replaces = {"workerId": "w%d" % (number - 1), "pid": number, "startTime": 5}
            reply = self.beat("w%d" % number, pid=number + 1, replaces=replaces, **said)
            if number < 3:
                self.assertEqual(reply.status, 200, reply.body)
        self.refused(reply, 429, "rate_limited")
        self.assertEqual((self.worker("w2")["state"], self.client.get("/api/workers/w3").status), ("active", 404))

    def test_whoever_says_goodbye_may_come_again(self):
        for number in range(10):
            self.assertEqual(self.register("w%d" % number, slot="s").status, 200)
            self.assertEqual(self.client.call("DELETE", "/api/workers/w%d" % number).status, 200)


class Fleet(LivenessCase):
    flags = proof.settings(limits_registrationsPerMinute=5)

    def test_one_principal_may_register_so_many(self):
        for number in range(5):
            self.accepted("w%d" % number)
        reply = self.beat("w5")
        self.refused(reply, 429, "rate_limited")
        self.assertIn("credential", reply.json["detail"])
        self.accepted("w0", token=self.refused(self.beat("w0"), 409, "TOKEN_MISMATCH")["token"])


if __name__ == "__main__":
    proof.main()
