"""The server knows who is alive, and is never wrong about it: killed at any moment under a fleet that beats, it takes
from nobody what it said is theirs; and over a long time nobody is called lost who beats.

  ./dev liveness [--rounds N] [--workers N] [--seed N]     STINT_LIVENESS_ROUNDS, _WORKERS, _SEED
  ./dev liveness soak [SECONDS] [WORKERS]                  STINT_SOAK_SECONDS, _WORKERS"""
import asyncio
import os
import random
import sys
import time

from hang import HANG_S
import fleet
import proof

ROUNDS = int(os.environ.get("STINT_LIVENESS_ROUNDS", "5"))
WORKERS = int(os.environ.get("STINT_LIVENESS_WORKERS", "200"))
SEED = int(os.environ.get("STINT_LIVENESS_SEED", str(random.SystemRandom().randrange(1 << 32))))
SOAK_SECONDS = int(os.environ.get("STINT_SOAK_SECONDS", "8"))
SOAK_WORKERS = int(os.environ.get("STINT_SOAK_WORKERS", "200"))
LEASE_MS, BEAT_MS, GRACE_MS, VERIFY_MS = 2000, 400, 600, 1500
RETRY_BASE_MS, RETRY_MAX_MS, CRASHES = 20, 100, 50
DRAIN_SECONDS = HANG_S


def tell_people(text):
    print(text, file=sys.stderr)


class LivenessCase(proof.ProofCase):
    def check_faults(self, crew):
        self.assertEqual(crew.faults[:3], [], "seed %d" % SEED)

    async def wait_for(self, condition, seconds, what):
        until = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), until, what)
            await asyncio.sleep(0.1)


class KilledUnderAFleet(LivenessCase):
    flags = proof.settings(worker_leaseMinMs=100, restart_graceMs=GRACE_MS, retry_baseMs=RETRY_BASE_MS,
                           retry_maxMs=RETRY_MAX_MS, claim_verifyAfterMs=VERIFY_MS, sweep_intervalMs=50,
                           task_crashBudget=CRASHES)
    limits = ("restart_grace_ms=%d" % GRACE_MS, "retry_base_ms=%d" % RETRY_BASE_MS,
              "retry_max_ms=%d" % RETRY_MAX_MS, "verify_after_ms=%d" % VERIFY_MS, "crash_budget=%d" % CRASHES)

    def test_no_task_changes_hands_while_its_holder_lives(self):
        asyncio.run(self.kill_and_judge())

    async def kill_and_judge(self):
        dice = random.Random(SEED)
        crew = fleet.Fleet(self.server, WORKERS, SEED, LEASE_MS, BEAT_MS, VERIFY_MS)
        async with crew.at_work():
            for round_ in range(ROUNDS):
                await asyncio.sleep(dice.uniform(0.1, 1.2) if round_ % 4 else dice.uniform(1, 2.5))
                self.check_faults(crew)
                await asyncio.to_thread(self.die, dice, prove=round_ % 20 == 0)
            crew.closed = True
            await self.wait_for(lambda: crew.faults or self.tasks_left() == 0, DRAIN_SECONDS, "not every task was done")
        self.check_faults(crew)
        tell_people("seed %d: %d workers, %d rounds: %s" % (SEED, WORKERS, ROUNDS, ", ".join(
            "%d %s" % (count, what) for what, count in crew.counts.items())))
        self.assertEqual(self.server.stop(), 0)
        self.prove(crew.told, self.limits)

    def die(self, dice, prove):
        self.server.kill()
        if prove:
            self.prove(limits=self.limits)
        time.sleep(dice.choice([0, 0, 0.1, 0.5]))  # away for a while
        for _ in range(dice.choice([0, 0, 0, 1])):  # and again while it starts
            self.server.launch()
            time.sleep(dice.uniform(0, 0.03))
            self.server.kill()
        self.server.start()


class Soak(LivenessCase):
    """Leases of a minute and beats every 15 s, as workers ask for them; in the short form all of it runs faster."""
    pace = 1 if SOAK_SECONDS >= 60 else 15
    lease_ms, beat_ms, verify_ms = 60000 // pace, 15000 // pace, 120000 // pace
    flags = proof.settings(worker_leaseMinMs=100, restart_graceMs=60000 // pace, claim_verifyAfterMs=verify_ms)
    limits = ("restart_grace_ms=%d" % (60000 // pace), "verify_after_ms=%d" % verify_ms)

    def setUp(self):
        proof.raise_limits()
        super().setUp()

    def test_nobody_is_called_lost_who_beats(self):
        asyncio.run(self.soak())

    async def soak(self):
        crew = fleet.Fleet(self.server, SOAK_WORKERS, SEED, self.lease_ms, self.beat_ms, self.verify_ms, faithful=1,
                           claimants=0.1)
        async with crew.at_work(spread_s=self.beat_ms / 1000):
            await self.wait_for(lambda: crew.faults or crew.alive() == SOAK_WORKERS, 120, "not everyone came")
            began, used, renewals = time.monotonic(), self.server.cpu_seconds(), crew.counts["renewals"]
            bytes_before = self.server.resident_bytes()
            while time.monotonic() < began + SOAK_SECONDS:
                self.check_faults(crew)
                await asyncio.sleep(0.2)
            took, used = time.monotonic() - began, self.server.cpu_seconds() - used
            renewals, bytes_after = crew.counts["renewals"] - renewals, self.server.resident_bytes()
            expired = self.metric('stint_events_total{type="worker.inactive"}')  # while they still beat
            our_fault = await crew.was_late(expired)
            crew.closed = True
        self.check_faults(crew)
        tell_people("%d workers, lease %d s, %d beats in %.0f s (%.0f/s): %.2f %% of a core, %.1f MiB resident, %.1f "
                    "at the end; false expiries: %d" % (
                        SOAK_WORKERS, self.lease_ms // 1000, renewals, took, renewals / took, 100 * used / took,
                        bytes_before / (1 << 20), bytes_after / (1 << 20), expired))
        self.assertTrue(our_fault, "%d workers were called lost and were not" % expired)
        self.assertEqual(self.server.stop(), 0)
        self.prove(crew.told, self.limits)


if __name__ == "__main__":
    proof.main()
