"""stint bundle: one file about a task, and none of the secrets that were planted in all of it."""
import base64
import json
import os
import shutil
import subprocess
import tempfile
import unittest

from hang import HANG_S
import stintd
from test_examples import STINT, environment

ALNUM = "Zq8Wm3Xc7Vb2Nn5Kk9Jj4Hh6Gg1Ff0Dd"
# One of each kind; each is planted in every place below.
FORMS = {
    "stint": "stint_worker_w1_" + ALNUM + ALNUM, "anthropic": "sk-ant-api03-" + ALNUM, "openai": "sk-proj-" + ALNUM, "github": "ghp_" + ALNUM,
    "github new": "github_pat_" + ALNUM, "gitlab": "glpat-" + ALNUM, "slack": "xoxb-1234-" + ALNUM, "aws": "AKIA" + "QWERTYUIOPASDFGH",
    "google": "AIza" + ALNUM, "webhook": "whsec_" + ALNUM, "npm": "npm_" + ALNUM,
    "jwt": "eyJhbGciOiJIUzI1NiJ9." + base64.b64encode(ALNUM.encode()).decode() + ".abc-_" + ALNUM,
}
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU\nAAAAEbm9uZQAAAAAAAAAB\n-----END OPENSSH PRIVATE KEY-----"
OURS = "correct-horse-battery-staple"  # of no known form: only our own environment says that it is a secret


class Bundle(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stint-bundle-")
        self.addCleanup(shutil.rmtree, self.folder, True)
        self.server = stintd.Server()
        self.addCleanup(self.server.end)
        self.client = self.server.client()
        self.addCleanup(self.client.close)
        self.env = environment(self.folder, STINT_HOME=self.server.home, MY_SERVICE_PASSWORD=OURS)

    def stint(self, *words, status=0, **env):
        ran = subprocess.run([STINT, *words], cwd=self.folder, env={**self.env, **env}, capture_output=True, text=True,
                             timeout=HANG_S, stdin=subprocess.DEVNULL)
        self.assertEqual(ran.returncode, status, ran.stdout + ran.stderr)
        return ran

    def read(self, name="stint-bundle-t-9.json"):
        with open(os.path.join(self.folder, name)) as file:
            text = file.read()
        return text, json.loads(text)

    def work(self, secrets, **task):
        """A task that has been worked on, with the secrets in everything that people and programs can write."""
        words = " and ".join(secrets)
        line = secrets[0].partition("\n")[0]
        self.client.post("/api/workers/register", {"workerId": "w1", "metadata": {"note": words, "apiKey": "plain-but-named-so"}})
        self.client.post("/api/tasks", {"id": "t-9", "title": "t " + line, "instructions": words, "description": words, "labels": [line[:100]],
                                        "payload": {"argv": ["curl", "-H", "Authorization: Bearer " + words], "stdin": "typed " + words},
                                        "env": {"ANY_NAME": "harmless-looking-value"}, "metadata": {"deep": [{"er": words}]}, **task})
        claim = self.client.post("/api/tasks/t-9/claim", {"workerId": "w1"}).json
        by = {"workerId": "w1", "fence": claim["fence"]}
        self.client.post("/api/tasks/t-9/progress", {**by, "note": words, "data": {"at": words}})
        self.client.post("/api/tasks/t-9/log", {**by, "offset": 0, "data": f"began\n{words}\nended\n"})
        self.client.post("/api/tasks/t-9/fail", {**by, "error": {"code": "EXECUTION_ERROR", "message": words, "retry": False}})

    def test_it_has_what_a_report_needs(self):
        self.work(["harmless"])
        told = json.loads(self.stint("bundle", "t-9", "--json").stdout)["bundle"]
        text, bundle = self.read()
        self.assertEqual((told["file"], told["bytes"]), ("stint-bundle-t-9.json", len(text.encode())))
        self.assertEqual(os.stat(os.path.join(self.folder, "stint-bundle-t-9.json")).st_mode & 0o777, 0o600)
        self.assertEqual((bundle["form"], bundle["task"]["id"], bundle["task"]["state"]), ("stint-bundle/1", "t-9", "failed"))
        self.assertEqual([event["type"] for event in bundle["events"]], ["task.created", "task.claimed", "task.progressed", "task.failed"])
        self.assertEqual(bundle["logs"], [{"attempt": 1, "length": 21, "from": 0, "text": "began\nharmless\nended\n"}])
        self.assertEqual((bundle["worker"]["workerId"], bundle["queue"]["name"]), ("w1", "default"))
        self.assertIn(": harmless", bundle["why"]["text"])
        self.assertIn("version", bundle["versions"]["server"])
        self.assertIn("task.crashBudget", [key["key"] for key in bundle["config"]["keys"]])
        self.assertTrue({"group", "name", "verdict", "text"} <= set(bundle["doctor"][0]))
        self.assertEqual(bundle["missing"], [])

    def test_no_planted_secret_is_in_it(self):
        secrets = [*FORMS.values(), KEY, OURS]
        self.work(secrets)
        self.stint("bundle", "t-9")
        text, bundle = self.read()
        for name, secret in {**FORMS, "key": KEY.split("\n")[1], "ours": OURS, "named": "plain-but-named-so", "env": "harmless-looking-value",
                             "stdin": "typed "}.items():
            with self.subTest(secret=name):
                self.assertNotIn(secret, text)
        for tail in (ALNUM, ALNUM[:20], "QWERTYUIOP"):
            self.assertNotIn(tail, text)
        with open(os.path.join(self.server.home, "admin.token")) as file:
            self.assertNotIn(file.read().strip(), text)
        self.assertEqual(bundle["task"]["env"], {"ANY_NAME": "[removed]"})
        self.assertGreater(bundle["removed"], 5 * len(secrets))
        self.assertRegex(bundle["logs"][0]["text"], r"^began\n\S+ and \[removed\] and")
        self.assertTrue(bundle["logs"][0]["text"].endswith("\nended\n"))  # and no more was removed than had to be

    def test_values_that_only_their_name_gives_away(self):
        lines = ["DB_PASSWORD=hunter2hunter2", 'export API_KEY="k-e-y-0-1"', "password: opensesame", '{"client_secret": "shh-shh-shh"}',
                 "postgres://bob:pa55word@db/x", "Authorization: Basic Ym9iOmJvYg==", "X-Auth-Token: tok-tok-tok", "Bearer abcdefghijkl"]
        self.work(["\n".join(lines)])
        self.stint("bundle", "t-9")
        log = self.read()[1]["logs"][0]["text"]
        for secret in ("hunter2", "k-e-y-0-1", "opensesame", "shh-shh", "pa55word", "Ym9iOmJvYg", "tok-tok", "abcdefghijkl"):
            with self.subTest(secret=secret):
                self.assertNotIn(secret, log)
        for kept in ("DB_PASSWORD=", "postgres://bob:", "@db/x", "client_secret"):
            self.assertIn(kept, log)

    def test_the_words_of_work_stay(self):
        lines = [f"inputTokens: 12, tokens=900, task-1, sk-, {self.folder}/work/x.c:12: error: expected ';'", "see https://example.org/a:b@c and stint_worker_count 3"]
        self.work(["\n".join(lines)])
        self.stint("bundle", "t-9")
        self.assertEqual(self.read()[1]["logs"][0]["text"], "began\n" + "\n".join(lines).replace(self.folder, "~") + "\nended\n")

    def test_a_file_that_is_there_is_kept(self):
        self.work(["x"])
        self.stint("bundle", "t-9", "--out", "mine.json")
        before, _ = self.read("mine.json")
        self.assertIn("it is there already", self.stint("bundle", "t-9", "--out", "mine.json", status=4).stderr)
        self.assertEqual(self.read("mine.json")[0], before)
        self.assertEqual(json.loads(self.stint("bundle", "t-9", "--out", "-").stdout)["task"]["id"], "t-9")

    def test_what_the_token_may_not_see_is_missing_and_said(self):
        self.work(["x"])
        token = self.client.post("/api/tokens", {"kind": "worker", "name": "w"}).json["token"]
        self.stint("bundle", "t-9", "--out", "less.json", status=6, STINT_TOKEN=self.client.post(
            "/api/tokens", {"kind": "metrics", "name": "m"}).json["token"])
        self.assertFalse(os.path.exists(os.path.join(self.folder, "less.json")))
        self.client.post("/api/tasks/t-9/retry")
        self.stint("bundle", "t-9", "--out", "less.json", STINT_TOKEN=token)
        self.assertIn("events", self.read("less.json")[1]["missing"])

    def log(self, text):
        self.client.post("/api/tasks", {"id": "t-9", "title": "x"})
        claim = self.client.post("/api/tasks/t-9/claim", {"workerId": "w1"}).json
        for offset in range(0, len(text), 60000):
            self.client.post("/api/tasks/t-9/log", {"workerId": "w1", "fence": claim["fence"], "offset": offset, "data": text[offset:offset + 60000]})
        self.stint("bundle", "t-9")
        said, bundle = self.read()
        log, = bundle["logs"]
        self.assertEqual((log["length"], log["from"]), (len(text), len(text) - (256 << 10)))
        return said, log["text"]

    def test_only_the_end_of_a_long_log(self):
        """The cut goes through a secret."""
        rest = "\nnext\n" + "x" * ((256 << 10) - 21) + "\n"
        said, log = self.log("y" * 30000 + FORMS["github"] + rest)
        self.assertEqual(log, rest[1:])
        self.assertNotIn(ALNUM[-14:], said)

    def test_half_a_key_at_the_beginning_of_a_log(self):
        body = "".join(f"{line:06d}MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n" for line in range(5000))
        said, log = self.log("-----BEGIN PRIVATE KEY-----\n" + body + "-----END PRIVATE KEY-----\nthe end\n")
        self.assertEqual(log, "[removed]\nthe end\n")


if __name__ == "__main__":
    unittest.main()
