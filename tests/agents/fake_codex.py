"""An agent for tests that speaks as `codex exec --json` does: the prompt on standard input, one turn, then it ends. It counts its whole thread.

The script is the line of the first prompt that begins with "script ": a JSON list of turns, each a list of steps:

    {"say": "text"}, {"run": "shell command"}, {"fail": "text"}, {"exit": 3}, {"forget": 1} (its transcript is gone, and it ends; once)
"""
import glob
import json
import os
import subprocess
import sys
import uuid

HOME = os.environ["CODEX_HOME"]


def put(**line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


class Thread:
    def __init__(self):
        words = sys.argv[sys.argv.index("exec") + 1:]
        self.prompt = sys.stdin.read()
        self.id = words[1] if words[0] == "resume" else str(uuid.uuid4())
        self.path = os.path.join(HOME, "sessions", "2026", "01", "01", "rollout-1-%s.jsonl" % self.id)
        if words[0] != "resume":
            found = [line for line in self.prompt.splitlines() if line.startswith("script ")]
            self.state = {"turns": json.loads(found[0][7:]), "tokens": 0, "prompts": 0, "items": 0}
        elif not os.path.exists(self.path) or os.path.getsize(self.path) == 0:
            sys.stderr.write("Error: no rollout found for thread id %s\n" % self.id)
            sys.exit(1)
        else:
            with open(self.path) as file:
                self.state = json.load(file)

    def save(self):
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path, "w") as file:
            json.dump(self.state, file)

    def item(self, **item):
        self.state["items"] += 1
        put(type="item.completed", item={"id": "item_%d" % self.state["items"], **item})

    def step(self, step):
        if "say" in step:
            self.item(type="agent_message", text=step["say"])
        elif "run" in step:
            ran = subprocess.run(["sh", "-c", step["run"]], capture_output=True, text=True)
            self.item(type="command_execution", command=step["run"], aggregated_output=ran.stdout, exit_code=ran.returncode,
                      status="completed" if ran.returncode == 0 else "failed")
        elif "fail" in step:
            put(type="turn.failed", error={"message": step["fail"]})
            sys.exit(1)
        elif "forget" in step:
            if not os.path.exists(os.path.join(HOME, "forgot")):
                open(os.path.join(HOME, "forgot"), "w").close()
                open(self.path, "w").close()
                sys.exit(1)
        elif "exit" in step:
            sys.exit(step["exit"])

    def run(self):
        put(type="thread.started", thread_id=self.id)
        put(type="turn.started")
        with open(os.path.join(HOME, "prompt-%d" % len(glob.glob(os.path.join(HOME, "prompt-*")))), "w") as file:
            file.write(self.prompt)
        turn = self.state["turns"].pop(0) if self.state["turns"] else []
        self.state["tokens"] += 10
        self.save()
        for step in turn:
            self.step(step)
        self.save()
        put(type="turn.completed", usage={"input_tokens": 2 * self.state["tokens"], "cached_input_tokens": 0,
                                          "output_tokens": self.state["tokens"]})


if "--version" in sys.argv:
    print("codex-cli 0.166.0")
else:
    Thread().run()
