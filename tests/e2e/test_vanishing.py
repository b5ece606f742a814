"""Workers, servers and machines that are away for a while and come back: a worker that is stopped past its lease, a
server that is, leases of an hour over restarts, reboots, clocks that are set, and two processes under one name."""
import asyncio
import glob
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

from hang import HANG_S
import fleet
import proof
import stintd

LEASE_MS = 2000
MINUTE_MS = 60 * 1000
HOUR_MS = 60 * MINUTE_MS
YEAR_S = 365 * 24 * 3600
FAKETIME = next(iter(glob.glob("/usr/lib/*/faketime/libfaketime.so.1")), None)


class VanishingCase(proof.Proved, proof.ProofCase):
    flags = proof.settings(worker_leaseMinMs=100, restart_graceMs=100, sweep_intervalMs=50, retry_baseMs=1000)
    limits = ("restart_grace_ms=100", "retry_base_ms=1000")

    def begin(self, worker="w", lease_ms=LEASE_MS):
        """A worker that beats and holds a task: its claim and its token. The lease begins when it is all there."""
        token = self.beat(worker, leaseMs=max(lease_ms, 60000)).json["token"]
        self.create()
        claim, = self.claim(worker)
        reply = self.beat(worker, token=token, leaseMs=lease_ms, boundTasks=[claim["task"]["id"]])
        self.assertEqual((reply.status, reply.json["lost"]), (200, []), reply.body)
        return claim, reply.json["token"]

    def go_on(self, worker, token, lease_ms):
        """Beat as a worker does that may have missed a reply; it is alive and has lost nothing."""
        reply = self.beat(worker, token=token, leaseMs=lease_ms)
        if reply.status == 409:
            self.assertEqual(reply.json["code"], "TOKEN_MISMATCH")
            reply = self.beat(worker, token=reply.json["token"], leaseMs=lease_ms)
        self.assertEqual((reply.status, reply.json.get("lost")), (200, []), reply.body)
        return reply.json["token"]

    def worker_state(self, worker):
        return self.client.get("/api/workers/" + worker).json["state"]

    def types(self):
        return [event["type"] for event in self.events()]


# ---- stopped ------------------------------------------------------------------------------------------------


def be_a_worker(home, key, lease_ms):
    """A worker as a process of its own. It claims and binds one task and beats; a word on stdin lets it report the
    task as done. What it is told it prints, and an end of its key ends it."""
    server = type("Place", (), {"home": home, "token": open(os.path.join(home, "admin.token")).read().strip()})
    client, token, held = stintd.Client(server, local=True), None, None

    def say(**words):
        print(json.dumps(words), flush=True)

    def beat(**deltas):
        body = {"workerId": key, "leaseMs": lease_ms, **deltas}
        return client.post("/api/workers/heartbeat", body if token is None else {**body, "token": token})

    token = beat(leaseMs=60000).json["token"]
    while not held:
        found = client.post("/api/claims", {"workerId": key, "queues": ["q"], "waitMs": 100}).json
        held = found["claims"][0] if found["claims"] else None
    task = held["task"]["id"]
    token = beat(boundTasks=[task]).json["token"]
    say(holds=task, fence=held["fence"])
    while True:
        time.sleep(lease_ms / 5000)
        if select.select([0], [], [], 0)[0] and os.read(0, 100):
            reply = client.post("/api/tasks/%s/complete" % task, {
                "workerId": key, "fence": held["fence"], "result": "from " + key})
            say(done=reply.status, code=reply.json.get("code"))
        reply = beat()
        say(beat=reply.status, code=reply.json.get("code"))
        if reply.status != 200:
            return
        token = reply.json["token"]


class StoppedWorker(VanishingCase):
    def start_worker(self, key):
        process = subprocess.Popen([sys.executable, __file__, "--worker", self.server.home, key, str(LEASE_MS)],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=os.environ)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stdin.close)
        return process

    def hear(self, process, word):
        while word not in (said := json.loads(process.stdout.readline())):
            pass
        return said

    def test_its_work_goes_on_elsewhere_and_its_late_result_is_an_orphan(self):
        task = self.create()
        process = self.start_worker("hangs")
        said = self.hear(process, "holds")
        self.assertEqual(said["holds"], task)
        for _ in range(3):  # longer than nothing: it lives by its beats
            self.assertEqual(self.hear(process, "beat")["beat"], 200)
        process.send_signal(signal.SIGSTOP)
        claim, = self.claim("other", waitMs=20000, leaseMs=60000)
        self.assertEqual((claim["task"]["id"], claim["attempt"]), (task, 2))
        self.assertGreater(int(claim["fence"]), int(said["fence"]))
        process.stdin.write("finish\n")
        process.stdin.flush()
        process.send_signal(signal.SIGCONT)
        late = self.hear(process, "done")
        self.assertIn((late["done"], late["code"]), ((409, "stale_claim"), (410, "WORKER_INACTIVE")))
        end = [said for said in map(json.loads, process.stdout) if "beat" in said][-1]
        self.assertEqual((end["beat"], end["code"]), (410, "WORKER_INACTIVE"))
        self.assertEqual(process.wait(HANG_S), 0)
        self.assertEqual(self.report("complete", claim, "other", result="from other").status, 200)
        self.assertEqual(self.client.get("/api/tasks/" + task).json["result"], "from other")
        self.assertEqual(self.types_of(task), ["task.created", "task.claimed", "task.confirmed", "task.expired",
                                               "task.claimed", "task.orphan_result", "task.completed"])

    def test_stopped_for_less_than_its_lease_it_has_missed_nothing(self):
        task = self.create()
        process = self.start_worker("dozes")
        self.hear(process, "holds")
        for _ in range(3):
            self.assertEqual(self.hear(process, "beat")["beat"], 200)
            process.send_signal(signal.SIGSTOP)
            time.sleep(LEASE_MS / 4000)  # what is waited for is that nothing happens
            process.send_signal(signal.SIGCONT)
        process.stdin.write("finish\n")
        process.stdin.flush()
        if self.hear(process, "done")["done"] != 200:  # only if this machine was busy for longer than that
            self.assertIn("task.expired", self.types_of(task))
        process.kill()


class StoppedServer(VanishingCase):
    def test_nobody_of_a_fleet_is_lost_for_what_the_server_slept_through(self):
        asyncio.run(self.stop_and_go_on())

    async def stop_and_go_on(self):
        lease_ms = 4000  # more than what counts as a stall: on a busy machine the server may be late by itself
        crew = fleet.Fleet(self.server, 50, 1, lease_ms, 400, 120000, faithful=1, claimants=0.5)
        async with crew.at_work():
            while crew.alive() < 50:
                await asyncio.sleep(0.02)
            self.server.process.send_signal(signal.SIGSTOP)
            await asyncio.sleep(lease_ms / 1000 + 1)
            crew.server_woke_ms = fleet.lease_clock_ms()
            self.server.process.send_signal(signal.SIGCONT)
            await asyncio.sleep(1.5 * lease_ms / 1000)
            expired = self.metric('stint_events_total{type="worker.inactive"}')  # while they still beat
            self.assertTrue(await crew.was_late(expired), expired)
            crew.closed = True
        self.assertEqual(crew.faults, [])
        self.prove_told(crew)

    def prove_told(self, crew):
        self.assertEqual(self.server.stop(), 0)
        self.prove(crew.told, (*self.limits, "verify_after_ms=120000"))


# ---- time ---------------------------------------------------------------------------------------------------


class LongLeases(VanishingCase):
    """With the grace that the server has by itself: a minute."""
    flags, limits = proof.settings(sweep_intervalMs=10), ()

    def setUp(self):
        self.clocks = proof.Clocks()
        self.addCleanup(self.clocks.file.close)
        super().setUp()

    def pass_time(self, ms):
        self.clocks.set(wall_ms=self.clocks.wall_ms + ms, boot_ms=self.clocks.boot_ms + ms)
        self.claim("somebody", queues=["other"])  # a turn sees it

    def test_an_hour_with_beats_every_20_minutes_outlives_any_restart(self):
        claim, token = self.begin(lease_ms=HOUR_MS)
        task = claim["task"]["id"]
        for number in range(9):
            when = number % 3
            if when == 0:  # after the beat that was answered last
                self.restart(kill=True)
            self.pass_time(20 * MINUTE_MS)
            if when == 1:  # before the next
                self.restart(kill=number % 2 == 0)
            token = self.go_on("w", token, HOUR_MS)
            if when == 2:  # and twice after it
                self.restart(kill=True)
                self.restart(kill=True)
            self.assertEqual((self.state(task), self.worker_state("w")), ("running", "active"))
        self.assertEqual(self.report("complete", claim).status, 200)
        self.assertEqual(self.types_of(task), ["task.created", "task.claimed", "task.confirmed", "task.completed"])

    def test_and_ends_an_hour_after_the_last_one(self):
        claim, token = self.begin(lease_ms=HOUR_MS)
        self.pass_time(20 * MINUTE_MS)
        self.go_on("w", token, HOUR_MS)
        since_ms = self.clocks.boot_ms
        self.pass_time(59 * MINUTE_MS)
        while self.state(claim["task"]["id"]) == "running":  # a long step would be taken for a sleep of the machine
            self.pass_time(1500)
            time.sleep(0.02)
            self.assertLess(self.clocks.boot_ms - since_ms, 70 * MINUTE_MS)
        self.assertGreaterEqual(self.clocks.boot_ms - since_ms, HOUR_MS - 20000)
        self.assertEqual((self.worker_state("w"), self.state(claim["task"]["id"])), ("inactive", "ready"))

    def test_away_for_most_of_the_lease_the_server_gives_it_anew(self):
        claim, token = self.begin(lease_ms=HOUR_MS)
        self.server.kill()
        self.client.close()
        self.clocks.set(boot_ms=55 * MINUTE_MS)
        self.server.start()
        self.pass_time(50 * MINUTE_MS)
        self.assertEqual(self.state(claim["task"]["id"]), "running")
        self.go_on("w", token, HOUR_MS)
        self.assertEqual(self.report("complete", claim).status, 200)


class FaketimeServer(proof.Server):
    """The wall clock as libfaketime has it; what counts from boot is left alone."""

    def __init__(self, *flags, clocks=None):
        self.offset = tempfile.NamedTemporaryFile(mode="w", prefix="stint-faketime-")
        self.set(0)
        super().__init__(*flags, clocks=clocks)

    def set(self, seconds):
        self.offset.seek(0)
        self.offset.truncate()
        self.offset.write("%+d\n" % seconds)
        self.offset.flush()

    def command(self):
        return ["env", "LD_PRELOAD=" + FAKETIME, "FAKETIME_TIMESTAMP_FILE=" + self.offset.name, "FAKETIME_NO_CACHE=1",
                "FAKETIME_DONT_FAKE_MONOTONIC=1", *super().command()]

    def end(self):
        super().end()
        self.offset.close()


class SetClock(VanishingCase):
    """Retention goes by this clock, so it keeps everything for ten years."""
    make_server = FaketimeServer
    flags = (*VanishingCase.flags, *proof.settings(retention_eventMs=10 * YEAR_S * 1000,
                                                   retention_finalMs=10 * YEAR_S * 1000))

    def setUp(self):
        if FAKETIME is None:
            self.skipTest("needs the package faketime")
        super().setUp()

    def test_whatever_it_is_set_to_no_lease_moves(self):
        claim, token = self.begin(lease_ms=60000)
        self.create()
        plain, = self.claim("plain", leaseMs=60000)
        began = time.monotonic()
        for seconds in (1, -1, 3600, -3600, YEAR_S, -YEAR_S, 9 * YEAR_S, -10 * YEAR_S, 0):
            self.server.set(seconds)
            self.create(queue="other")  # a turn
            shown = self.client.get("/api/tasks/" + self.create(queue="other")).json["createdAt"] / 1000 - time.time()
            self.assertAlmostEqual(shown, seconds, delta=60)
            token = self.go_on("w", token, 60000)
            remaining_ms = self.client.get("/api/tasks/" + plain["task"]["id"]).json["leaseMs"]
            passed_ms = 1000 * (time.monotonic() - began)
            self.assertTrue(60000 - passed_ms - 100 <= remaining_ms <= 60000, (remaining_ms, passed_ms))
            self.assertEqual(self.worker_state("w"), "active")
        self.assertEqual(self.report("complete", claim).status, 200)
        self.assertEqual(self.report("complete", plain, "plain").status, 200)
        self.assertEqual([kind for kind in self.types() if kind in ("task.expired", "worker.inactive")], [])

    def test_nor_over_a_restart_years_away(self):
        claim, token = self.begin(lease_ms=60000)
        for seconds in (9 * YEAR_S, -10 * YEAR_S):
            self.server.set(seconds)
            self.restart()
            token = self.go_on("w", token, 60000)
            self.assertEqual(self.state(claim["task"]["id"]), "running")
        self.assertEqual(self.report("complete", claim).status, 200)

    def test_and_one_that_is_over_ends_although_it_was_set_back(self):
        claim, _ = self.begin()
        self.server.set(-10 * YEAR_S)
        self.wait_until(lambda: self.state(claim["task"]["id"]) == "ready")


# ---- reboots ------------------------------------------------------------------------------------------------


def why_no_reboot():
    """None, or why this machine cannot pretend that it was restarted."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return "needs root and unshare"
    tried = subprocess.run(["unshare", "--mount", "--time", "--boottime", "5", "--monotonic", "5", "--fork", "true"],
                           capture_output=True, text=True)
    return None if tried.returncode == 0 else "no time namespace: " + tried.stderr.strip()


class MachineServer(proof.Server):
    """Runs in a machine that can be restarted: a time namespace, and a boot id bound over the kernel's."""

    def __init__(self, *flags, clocks=None):
        self.boot = tempfile.NamedTemporaryFile(mode="w", prefix="stint-boot-")
        self.reboot()
        super().__init__(*flags, clocks=clocks)

    def reboot(self):
        """The next start is in a machine that came up a minute ago."""
        self.offset_s = 60 - int(time.clock_gettime(time.CLOCK_BOOTTIME))
        self.boot.seek(0)
        self.boot.write(str(uuid.uuid4()) + "\n")
        self.boot.flush()

    def command(self):
        inner = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"'
        return ["unshare", "--mount", "--time", "--boottime", str(self.offset_s), "--monotonic", str(self.offset_s),
                "--fork", "--kill-child", "sh", "-c", inner, self.boot.name, *super().command()]

    def inside(self):
        """The pid of the server itself: what was started waits for it."""
        with open("/proc/%d/task/%d/children" % (self.process.pid, self.process.pid)) as file:
            return int(file.read().split()[0])

    def kill(self):
        os.kill(self.inside(), signal.SIGKILL)
        self.process.wait(HANG_S)

    def stop(self):
        os.kill(self.inside(), signal.SIGTERM)
        return self.process.wait(HANG_S)

    def end(self):
        super().end()
        self.boot.close()


class Reboot(VanishingCase):
    make_server = MachineServer
    flags = proof.settings(worker_leaseMinMs=100, restart_graceMs=100, sweep_intervalMs=50)
    limits = ("restart_grace_ms=100",)

    def setUp(self):
        if reason := why_no_reboot():
            self.skipTest(reason)
        super().setUp()

    def reboot(self):
        self.server.kill()
        self.client.close()
        self.server.reboot()
        self.server.start()

    def rebased(self, task):
        return self.types_of(task).count("claim.rebased")

    def test_every_lease_is_granted_once_more(self):
        bound, token = self.begin(lease_ms=60000)
        self.create()
        plain, = self.claim("plain", leaseMs=60000)
        tasks = [claim["task"]["id"] for claim in (bound, plain)]
        for boots in (1, 2):
            self.reboot()
            for _ in range(2):  # a restart within that boot is no reboot
                self.assertEqual([self.rebased(task) for task in tasks], [boots, boots])
                self.assertEqual([self.state(task) for task in tasks], ["running", "claimed"])
                remaining_ms = self.client.get("/api/tasks/" + tasks[1]).json["leaseMs"]
                self.assertTrue(30000 < remaining_ms <= 60000, remaining_ms)
                token = self.go_on("w", token, 60000)
                self.restart()
        self.assertEqual(self.report("complete", bound).status, 200)
        self.assertEqual(self.report("complete", plain, "plain").status, 200)
        self.assertNotIn("worker.inactive", self.types())

    def test_and_ends_in_time_if_nobody_comes_back(self):
        """By the clock of the new boot, of which the old deadline may lie hours ahead."""
        bound, token = self.begin(lease_ms=3000)
        self.create()
        plain, = self.claim("plain", leaseMs=3000)
        began = time.monotonic()
        self.reboot()
        for claim in (bound, plain):
            self.wait_until(lambda: self.state(claim["task"]["id"]) == "ready")
        self.assertGreaterEqual(time.monotonic() - began, 3)
        self.assertEqual(self.beat("w", token=token).json["code"], "WORKER_INACTIVE")
        self.assertEqual(self.report("complete", plain, "plain").json["code"], "stale_claim")


# ---- processes that die as soon as they start ----------------------------------------------------------------


def process_of(pid):
    with open("/proc/%d/stat" % pid) as file:
        return {"pid": pid, "startTime": int(file.read().rsplit(")", 1)[1].split()[19])}


class CrashLoop(VanishingCase):
    flags = (*VanishingCase.flags, *proof.settings(limits_slotRegistrationsPerMinute=6))

    def setUp(self):
        super().setUp()
        with open("/proc/sys/kernel/random/boot_id") as file:
            self.here = {"host": os.uname().nodename, "bootId": file.read().strip()}

    def live_and_die(self, number, before):
        """A process comes into the slot, shows that the last one is dead, takes work, and is killed."""
        process = subprocess.Popen(["sleep", "60"])
        try:
            who = process_of(process.pid)
            body = {"workerId": "loop-%d" % number, "slot": "s", "leaseMs": 60000, **self.here, **who}
            if before:
                body["replaces"] = {"workerId": "loop-%d" % (number - 1), **before}
            reply = self.client.post("/api/workers/register", body)
            if reply.status == 200:
                self.claim("loop-%d" % number)
            return reply, who
        finally:
            process.kill()
            process.wait()

    def test_it_is_slowed_down_and_the_others_notice_nothing(self):
        claim, token = self.begin("steady", lease_ms=60000)
        task, who = self.create(), None
        for number in range(6):
            reply, who = self.live_and_die(number, who)
            self.assertEqual(reply.status, 200, reply.body)
            token = self.go_on("steady", token, 60000)
        registered = self.types().count("worker.registered")
        for _ in range(20):
            reply, _ = self.live_and_die(6, who)
            self.assertEqual((reply.status, reply.json["code"]), (429, "rate_limited"))
            self.assertGreater(int(reply.headers["Retry-After"]), 0)
        self.assertEqual(self.types().count("worker.registered"), registered)
        self.go_on("steady", token, 60000)
        self.assertEqual(self.report("complete", claim, "steady").status, 200)
        self.assertEqual(self.types_of(task)[:3], ["task.created", "task.claimed", "task.expired"])


# ---- two under one name -------------------------------------------------------------------------------------


class TwoProcesses(VanishingCase):
    flags = (*VanishingCase.flags, *proof.settings(claim_verifyAfterMs=5000))

    def test_under_one_key_one_beat_is_accepted_and_the_other_is_told_where_it_stands(self):
        claim, token = self.begin(lease_ms=60000)
        mine = other = token
        self.assertEqual(self.beat("w").json["code"], "TOKEN_MISMATCH")  # it begins, and knows no token
        for _ in range(5):
            reply = self.beat("w", token=mine, leaseMs=60000)
            self.assertEqual(reply.status, 200, reply.body)
            mine, stale = reply.json["token"], other
            reply = self.beat("w", token=stale, leaseMs=100, unboundTasks=[claim["task"]["id"]])
            self.assertEqual((reply.status, reply.json["code"], reply.json["token"]), (409, "TOKEN_MISMATCH", mine))
            other = mine = reply.json["token"]
        self.assertEqual(self.client.get("/api/workers/w").json["leaseGrantedMs"], 60000, "100 ms was extended by nobody")
        self.assertEqual(self.state(claim["task"]["id"]), "running")
        self.assertEqual(self.report("complete", claim).status, 200)
        self.assertEqual(self.types().count("worker.registered"), 1)

    def test_a_process_that_was_started_again_under_its_key_has_to_say_what_it_runs(self):
        """The id is in its configuration, and what the one before ran is nobody's now."""
        said = {"workerId": "w", "host": "h", "bootId": "0" * 31 + "1", "startTime": 5, "leaseMs": 60000}
        token = self.client.post("/api/workers/register", {**said, "pid": 10}).json["token"]
        task = self.create()
        claim, = self.claim("w")
        token = self.beat("w", token=token, boundTasks=[task]).json["token"]
        token = self.client.post("/api/workers/register", {**said, "pid": 10}).json["token"]  # the same once more
        self.assertGreater(self.client.get("/api/tasks/" + task).json["leaseMs"], 6000)
        token = self.client.post("/api/workers/register", {**said, "pid": 11}).json["token"]
        self.assertEqual(self.state(task), "running")
        self.until_state(task, "ready", token)
        self.assertEqual(self.report("complete", claim).json["code"], "stale_claim")

    def until_state(self, task, state, token):
        """It beats all the while."""
        deadline = time.monotonic() + HANG_S
        while self.state(task) != state:
            self.assertLess(time.monotonic(), deadline, self.state(task))
            token = self.beat("w", token=token).json["token"]
            time.sleep(0.1)

    def test_under_one_slot_the_second_waits_until_the_first_is_dead(self):
        sleeper = subprocess.Popen(["sleep", "60"])
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        with open("/proc/sys/kernel/random/boot_id") as file:
            here = {"host": os.uname().nodename, "bootId": file.read().strip()}
        who = process_of(sleeper.pid)
        first = {"workerId": "first", "slot": "s", "leaseMs": 60000, **here, **who}
        second = {"workerId": "second", "slot": "s", "leaseMs": 60000, **here, "replaces": {"workerId": "first", **who}}
        token = self.client.post("/api/workers/register", first).json["token"]
        task = self.create()
        claim, = self.claim("first")
        self.beat("first", token=token, leaseMs=60000, boundTasks=[task])
        for _ in range(20):
            reply = self.client.post("/api/workers/register", second)
            self.assertEqual((reply.status, reply.json["code"]), (409, "slot_taken"))
        self.assertEqual(self.state(task), "running")
        sleeper.kill()
        sleeper.wait()
        self.assertEqual(self.client.post("/api/workers/register", second).status, 200)
        self.assertEqual((self.worker_state("first"), self.state(task)), ("inactive", "ready"))
        self.assertEqual(self.report("complete", claim, "first").status in (409, 410), True)

    def test_a_claimant_that_asks_again_by_another_connection_keeps_what_it_is_told(self):
        self.create()
        body = b'{"workerId":"w","queues":["q"],"requestId":"r","leaseMs":60000}'
        first, second = self.wire(local=True), self.wire(local=True)
        self.client.get("/livez")
        self.server.process.send_signal(signal.SIGSTOP)  # so that both are heard at once
        first.sendall(self.request_bytes("POST", "/api/claims", body))
        first.close()
        second.sendall(self.request_bytes("POST", "/api/claims", body))
        self.server.process.send_signal(signal.SIGCONT)
        claim, = json.loads(second.recv(8192).split(b"\r\n\r\n", 1)[1])["claims"]
        self.assertEqual(self.claim("x"), [])  # one more turn
        self.assertEqual(self.report("complete", claim).status, 200)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        be_a_worker(sys.argv[2], sys.argv[3], int(sys.argv[4]))
    else:
        proof.main()
