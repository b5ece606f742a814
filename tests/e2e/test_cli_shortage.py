"""`stint` when memory runs out: for every verb that prints a document, each of its allocations fails once. Either the output is
what it is on a good day, or the status says that it is not, standard error says why, and nothing on standard output is half of
a document."""
import json
import os
import re
import shlex
import subprocess

import proof
import test_cli

STARVE_SO = os.path.abspath(os.environ.get("STINT_STARVE_SO", "build/tests/e2e/stint-starve.so"))
ALLOCATIONS_MAX = 2000
# Reading verbs, and a claim that the server repeats: each can be run as often as there are allocations.
VERBS = ("ls", "ls --json=id", "ls -o jsonl", "show full", "why full", "why child", "inbox", "events", "events --task full", "logs full", "queue ls",
         "worker ls", "worker ls --all", "worker show w-1", "slot ls", "session ls", "workflow ls", "skill ls", "skill show stint-task", "skill install --dry-run", "token ls", "config show", "doctor",
         "db query 'SELECT 1'", "claim --queues claimed --worker w-1 --request-id r-1", "version")
# What differs from one good day to the next: then only the form is compared.
CHANGES = ("doctor", "worker", "claim", "token", "config")
AGE = re.compile(r" *\b\d+ ?(s|min|h|d)\b| *\bnow\b")


class Shortage(test_cli.CliCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.count = os.path.join(cls.server.home, "starve-count")
        for task in ({"id": "full", "payload": {"list": ["x" * 300] * 40}, "description": "one\ntwo"},
                     {"id": "first", "queue": "claimed"}, {"id": "child", "blockedBy": ["first"]}):
            cls.client.post("/api/tasks", {"title": task["id"], **task})
        cls.client.post("/api/claims", {"workerId": "w-1", "queues": ["claimed"], "requestId": "r-1"})

    def run_verb(self, words, fails_at):
        return subprocess.run([test_cli.STINT, *shlex.split(words)], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                              env=test_cli.environment(STINT_HOME=self.server.home, LD_PRELOAD=STARVE_SO, STINT_STARVE_AT=str(fails_at),
                                                       STINT_STARVE_COUNT=self.count))

    def allocations(self):
        with open(self.count) as file:
            return int(file.read())

    def documents(self, text, words):
        try:
            return [json.loads(line) for line in text.splitlines()]
        except ValueError:
            self.fail("%s printed what is no JSON: %s" % (words, text[-200:]))

    def judge(self, ran, good, words):
        self.assertGreaterEqual(ran.returncode, 0, "it crashed: %s" % ran.stderr)
        if ran.returncode != good.returncode:
            self.assertRegex(ran.stderr + ran.stdout, r'(?m)stint: .*\w|^fail  \w|"verdict":"fail"|"error":\{"code":"\w+","message":".*\w', "a failure without a sentence")
            return
        if "stint-worker cannot be run" in ran.stdout:
            return  # doctor says what it could not look at
        if words.startswith(CHANGES):
            self.assertEqual(len(ran.stdout.splitlines()), len(good.stdout.splitlines()))
        else:
            self.assertEqual(AGE.sub("", ran.stdout), AGE.sub("", good.stdout))

    def each_allocation(self, words, judge):
        good = self.run_verb(words, 0)
        most = self.allocations()
        self.assertIn(good.returncode, (0, 1) if words.startswith("doctor") else (0,), good.stderr)
        self.assertLess(most, ALLOCATIONS_MAX)
        for number in range(1, most + 1):
            with self.subTest(words=words, allocation=number):
                judge(self.run_verb(words, number), good, words)

    def judge_json(self, ran, good, words):
        self.judge(ran, good, words)
        whole = self.documents(ran.stdout, words)
        if ran.returncode == good.returncode and not words.startswith(CHANGES):
            self.assertEqual(whole, self.documents(good.stdout, words))

    def test_a_document_is_whole_or_the_status_says_that_it_is_not(self):
        for words in VERBS:
            self.each_allocation(words if "-o" in words or "--json" in words else words + " --json", self.judge_json)

    def test_a_table_is_whole_or_the_status_says_that_it_is_not(self):
        for words in VERBS:
            if "json" not in words:
                self.each_allocation(words, self.judge)


if __name__ == "__main__":
    proof.main()
