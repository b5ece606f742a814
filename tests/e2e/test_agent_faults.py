"""Agents that break every rule, drawn from a seed: silence, half lines, lines of 9 MiB, lies about success, processes left behind, TERM ignored,
exit 0 without a word, usage that falls. What each must end as is drawn with it; nothing may be left of any of them.

STINT_FAULT_RUNS says how many (40), STINT_SEED draws the same again."""
import json
import os
import random
import unittest

import test_agents
from test_agents import agent, run

RUNS = int(os.environ.get("STINT_FAULT_RUNS", "40"))
SEED = int(os.environ.get("STINT_SEED") or random.SystemRandom().randrange(1 << 32))
AT_ONCE = 12
LIMIT_MS = 8000  # of silence, and of a tool call: a clock that the drawn agents run into

GARBAGE = ("not json\n", "{\"type\":\n", "[]\n", "\n\n", "{\"type\":7}\n", "{\"type\":\"assistant\"}\n", "{\"type\":\"result\"\n", "\x00\x01\x02\n",
           "{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"nobody\"}]}}\n",
           "{\"type\":\"assistant\",\"message\":{\"content\":\"no list\",\"usage\":[]}}\n",
           "{\"type\":\"control_cancel_request\",\"request_id\":\"nobody\"}\n")


class Drawn:
    """One agent: its turns, and what must become of them."""

    def __init__(self, rng):
        self.rng = rng
        self.calls = self.failed = 0
        self.wrote = False
        self.tokens = 0           # of output, by the last count of each message
        self.most = 0             # … and the most that they ever came to
        self.turns = [self.turn()]

    def count(self, tokens, instead_of=0):
        self.tokens += tokens - instead_of
        self.most = max(self.most, self.tokens)
        return {"output_tokens": tokens}

    def some(self):
        """A step on the way, or several."""
        kind = self.rng.choice(("say", "say", "recount", "garbage", "garbage", "write", "break", "fork", "deaf", "pause"))
        if self.rng.random() < 0.02:
            kind = "flood"
        if kind == "say":
            return [{"say": "words", "usage": self.count(self.rng.randrange(1, 50))}]
        if kind == "recount":
            first, then = self.rng.randrange(1, 50), self.rng.randrange(1, 50)
            steps = [{"say": "words", "usage": self.count(first)}]
            return steps + [{"recount": self.count(then, first)}]
        if kind in ("write", "break"):
            self.calls += 1
            self.failed += kind == "break"
            self.wrote |= kind == "write"
            return [run("echo x >> file", **({"breaks": True} if kind == "break" else {}))]
        return {"garbage": [{"raw": self.rng.choice(GARBAGE)}], "fork": [{"fork": 1}], "deaf": [{"deaf": 1}],
                "pause": [{"pause": self.rng.random() / 10}], "flood": [{"flood": 9 << 20}]}[kind]

    def turn(self):
        steps = [step for _ in range(self.rng.randrange(5)) for step in self.some()]
        ends = {"good": 40, "error": 12, "refuse": 5, "exit": 15, "kill": 10, "half": 8, "hang": 4, "slow": 2, "linger": 2 * self.wrote, "twice": 5 * self.wrote}
        self.end = self.rng.choices(list(ends), list(ends.values()))[0]
        if self.end == "refuse":
            self.count(5)  # of the words of the fake agent that have no usage of their own
        return steps + {"good": [{"result": "I did all of it!"}], "error": [{"error": "it broke"}], "refuse": [{"refuse": "I will not."}],
                        "exit": [{"exit": self.rng.choice((0, 0, 1, 3))}], "kill": [{"kill": 9}],
                        "half": [{"raw": "{\"type\":\"result\",\"is_err"}, {"exit": 0}], "hang": [{"hang": 1}],
                        "slow": [run("sleep 1000")], "linger": [{"result": "I did all of it!"}, {"hang": 1}],
                        "twice": [{"result": "I did all of it!"}, {"result": "Again!"}]}[self.end]

    def expect(self):
        """Its state, and the code of its failure. A turn that came to nothing is followed by another one, once."""
        if self.end == "good" and not self.wrote:
            self.turns.append(self.turn())
        if self.end in ("hang", "slow"):
            return "failed", "STALLED"
        if self.end == "error":
            return "failed", "EXECUTION_ERROR"
        if self.end == "refuse":
            return "failed", "REFUSED"
        if self.end in ("exit", "kill", "half"):
            return "failed", "WORKER_CRASHED"
        if self.calls > 0 and self.failed == self.calls:
            return "failed", "EXECUTION_ERROR"
        return ("done" if self.wrote else "review"), None


class Faults(test_agents.Case):
    flags = test_agents.Case.flags + ("--set", "task.crashBudget=1")

    def test_whatever_an_agent_does_its_attempt_ends_as_it_must_and_nothing_is_left(self):
        print("\n%d drawn agents, STINT_SEED=%d" % (RUNS, SEED), flush=True)
        worker = self.worker({"x": agent(stallMs=LIMIT_MS, toolMs=LIMIT_MS, policy={"default": "allow"})}, "--concurrency", str(AT_ONCE))
        drawn = {}
        for at in range(RUNS):
            one = drawn["t%d" % at] = Drawn(random.Random(SEED * 1000003 + at))
            one.must = one.expect()
            self.add(*one.turns, task="t%d" % at, maxAttempts=1)
        for task, one in drawn.items():
            self.judge(task, one)
        self.assertEqual(worker.stop(), 0)
        self.assertEqual(self.left(), [])
        self.assertEqual(self.client.get("/api/tasks?status=in-progress").json, [])

    def judge(self, task, one):
        found = self.is_in(task, "done", "failed", "review", "blocked")
        said = "STINT_SEED=%d %s: %s" % (SEED, task, json.dumps(one.turns)[:2000])
        code = (found["error"] or {}).get("code") if found["state"] == "failed" else None
        self.assertEqual((found["state"], code, found["attempt"]), (*one.must, 1), "%s\n%s\n%s" % (said, found, self.log(task)["data"]))
        events = self.events(task)
        self.assertEqual(events.count("task.claimed"), 1, said)
        self.assertEqual(sum(events.count("task." + end) for end in ("completed", "failed", "reviewed", "released", "expired")), 1, said)
        told = (found.get("usage") or {"outputTokens": 0})["outputTokens"]
        self.assertLessEqual(told, one.most, said)
        if one.must[1] is None:
            self.assertGreaterEqual(told, one.tokens, said)

    def left(self):
        """Processes that have the state directory of this server in their environment."""
        marks, found = os.path.join(self.server.home, "agents").encode(), []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/environ" % pid, "rb") as file:
                    if marks in file.read():
                        found.append(pid)
            except OSError:
                pass
        return found


if __name__ == "__main__":
    unittest.main()
