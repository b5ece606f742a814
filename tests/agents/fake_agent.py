"""An agent for tests: it speaks Claude Code's stream-json on its standard streams and does what a script in its first prompt says.

The script is the first line of the prompt that begins with "script ": a JSON list of turns, each a list of steps. What is left of
it lies in the agent's own home, so that a resumed session goes on with its next turn.

    {"say": "text"}                        words of the assistant
    {"tool": "Bash", "input": {…}}         asks for permission, then runs input.command
    {"tool": "Bash", "input": {…}, "breaks": true}     the call fails
    {"tool": "Bash", "input": {…}, "withdraws": "F"}   it takes the question back once the file F exists
    {"wait": "F"}                          nothing more until the file F exists
    {"recount": {…}}, {"pause": S}         the last message is counted again, otherwise; so many seconds
    {"result": "text"}                     the last word of the turn (without one: what was said last)
    {"error": "text", "status": 401}       a last word that is an error
    {"refuse": "text"}                     the model declines
    {"limit": 1770000000}                  the account is used up until then
    {"exit": 3}, {"kill": 9}, {"hang": 1}, {"deaf": 1}, {"raw": "…"}, {"flood": BYTES}, {"fork": 1}, {"usage": {…}}

As the real one does it obeys what others have written, unless its command line forbids that: hooks and servers that the repository names run,
a hook may allow a tool, and so may the settings of its own home.

    FAKE_EARLY=2        its first two processes die before they have said a word
    FAKE_TOTALS=session its totals of money and of its models are those of the session, and not of the process
    FAKE_VERSION=9.9.9  is what it says of itself

Each message costs a cent, and is a line in the file "ledger" of its home, with the tokens that it wrote.
"""
import glob
import json
import os
import signal
import subprocess
import sys
import time

CONFIG = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(os.environ["HOME"], ".claude")


def put(**line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def flag(name):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else None


def load(path):
    if not path or not os.path.exists(path):
        return {}
    with open(path) as file:
        return json.load(file)


class Settings:
    """What the repository, and its own home, want of it."""

    def __init__(self):
        ours, theirs = load(flag("--settings")), load(".claude/settings.json")
        self.hooks = {} if ours.get("disableAllHooks") else theirs.get("hooks", {})
        self.servers = {} if "--strict-mcp-config" in sys.argv else load(".mcp.json").get("mcpServers", {})
        allowed = load(os.path.join(CONFIG, "settings.json")).get("permissions", {}).get("allow", [])
        self.allowed = set(allowed) - set(ours.get("permissions", {}).get("ask", []))

    def begin(self):
        for server in self.servers.values():
            subprocess.run([server["command"], *server["args"]])
        self.run("SessionStart")

    def run(self, event):
        found = [hook for group in self.hooks.get(event, []) for hook in group["hooks"]]
        said = [subprocess.run(["sh", "-c", hook["command"]], capture_output=True, text=True).stdout for hook in found]
        return any('"permissionDecision": "allow"' in text for text in said)

    def allow(self, tool):
        return self.run("PreToolUse") or tool in self.allowed


class Agent:
    def __init__(self):
        self.settings = Settings()
        self.resumes = flag("--resume")
        self.session = self.resumes or flag("--session-id")
        self.path = os.path.join(CONFIG, "projects", "here", self.session + ".jsonl")
        self.number = self.calls = 0
        self.cost = 0.0
        self.tokens = 0
        self.turns = None
        if self.resumes:
            if not glob.glob(os.path.join(CONFIG, "projects", "*", self.session + ".jsonl")):
                sys.stderr.write("No conversation found with session ID: %s\n" % self.session)
                sys.exit(1)
            with open(self.path) as file:
                self.turns = json.load(file)

    def save(self):
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path + ".new", "w") as file:
            json.dump(self.turns, file)
        os.rename(self.path + ".new", self.path)

    def hear(self):
        """The next line of standard input; None at its end."""
        line = sys.stdin.readline()
        return json.loads(line) if line else None

    def say(self, text, usage=None, stop=None):
        self.number += 1
        used = {"input_tokens": 10, "output_tokens": 5, **(usage or {})}
        self.last = used["output_tokens"]
        self.tokens += self.last
        self.cost += 0.01
        with open(os.path.join(CONFIG, "ledger"), "a") as file:
            file.write("0.01 %d\n" % self.last)
        put(type="assistant", session_id=self.session,
            message={"id": "m%d-%d" % (os.getpid(), self.number), "role": "assistant", "usage": used, "stop_reason": stop,
                     "content": [{"type": "text", "text": text}]})
        self.words = text

    def recount(self, usage):
        self.tokens += usage["output_tokens"] - self.last
        put(type="assistant", session_id=self.session,
            message={"id": "m%d-%d" % (os.getpid(), self.number), "role": "assistant", "usage": {"input_tokens": 10, **usage}, "content": []})

    def tool(self, step):
        self.calls += 1
        call = "call-%d-%d" % (os.getpid(), self.calls)
        put(type="assistant", message={"id": "t%s" % call, "role": "assistant",
                                       "content": [{"type": "tool_use", "id": call, "name": step["tool"], "input": step["input"]}]})
        if self.settings.allow(step["tool"]):
            self.perform(step, call)
            return
        put(type="control_request", request_id="ask-" + call,
            request={"subtype": "can_use_tool", "tool_name": step["tool"], "input": step["input"]})
        if "withdraws" in step:
            self.wait(step["withdraws"])
            put(type="control_cancel_request", request_id="ask-" + call)
            put(type="user", message={"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": call, "is_error": True, "content": "permission was not waited for"}]})
            return
        answer = self.hear()
        if answer is None:
            sys.exit(0)
        said = answer["response"]["response"]
        assert answer["response"]["request_id"] == "ask-" + call, answer
        self.perform(step, call, None if said["behavior"] == "allow" else said["message"])

    def perform(self, step, call, denied=None):
        if denied is not None:
            text, bad = "denied: " + denied, True
        elif step.get("breaks"):
            text, bad = "EROFS: read-only file system", True
        else:
            ran = subprocess.run(["sh", "-c", step["input"].get("command", "true")], capture_output=True, text=True)
            text, bad = ran.stdout + ran.stderr, ran.returncode != 0
        put(type="user", message={"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": call, "is_error": bad, "content": text}]})
        self.words = text.strip()

    def wait(self, path):
        while not os.path.exists(path):
            time.sleep(0.05)

    def totals(self):
        """What it has cost so far, and the tokens of its model, as this version counts."""
        if os.environ.get("FAKE_TOTALS") != "session":
            return self.cost, self.tokens
        with open(os.path.join(CONFIG, "total-%s-%d" % (self.session, os.getpid())), "w") as file:
            json.dump([self.cost, self.tokens], file)
        known = []
        for path in glob.glob(os.path.join(CONFIG, "total-%s-*" % self.session)):
            with open(path) as file:
                known.append(json.load(file))
        return tuple(map(sum, zip(*known)))

    def end(self, text, **more):
        self.ended = True
        cost, tokens = self.totals()
        put(type="result", **{"subtype": "success", "is_error": False, "num_turns": 1, "session_id": self.session, "result": text,
                              "total_cost_usd": round(cost, 6),
                              "usage": {"input_tokens": 10 * self.number, "output_tokens": self.tokens},
                              "modelUsage": {"fake-model": {"outputTokens": tokens, "costUSD": cost}}, **more})

    def step(self, step):
        if "say" in step:
            self.say(step["say"], step.get("usage"))
        elif "tool" in step:
            self.tool(step)
        elif "result" in step:
            self.end(step["result"])
        elif "error" in step:
            self.end(step["error"], is_error=True, api_error_status=step.get("status"))
        elif "refuse" in step:
            self.say(step["refuse"], stop="refusal")
        elif "limit" in step:
            put(type="rate_limit_event", rate_limit_info={"status": "rejected", "resetsAt": step["limit"]})
        elif "exit" in step:
            sys.exit(step["exit"])
        elif "kill" in step:
            os.kill(os.getpid(), step["kill"])
        elif "hang" in step:
            while True:
                time.sleep(1000)
        elif "wait" in step:
            self.wait(step["wait"])
        elif "recount" in step:
            self.recount(step["recount"])
        elif "pause" in step:
            time.sleep(step["pause"])
        elif "deaf" in step:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        elif "fork" in step:
            subprocess.Popen(["sleep", "1000"], start_new_session=True)
        elif "flood" in step:
            put(type="text", text="x" * step["flood"])
        elif "raw" in step:
            sys.stdout.write(step["raw"])
            sys.stdout.flush()

    def turn(self, prompt):
        if self.turns is None:
            found = [line for line in prompt.splitlines() if line.startswith("script ")]
            self.turns = json.loads(found[0][7:]) if found else [[{"say": "nothing to do"}]]
        with open(os.path.join(CONFIG, "prompt-%d" % len(glob.glob(os.path.join(CONFIG, "prompt-*")))), "w") as file:
            file.write(prompt)
        put(type="system", subtype="init", session_id=self.session, model="fake-model", claude_code_version="2.1.197",
            tools=["Bash"], cwd=os.getcwd())
        steps = self.turns.pop(0) if self.turns else []
        self.save()
        self.ended, self.words = False, ""
        for step in steps:
            self.step(step)
        if not self.ended:
            self.end(self.words)

    def run(self):
        os.makedirs(CONFIG, exist_ok=True)
        self.settings.begin()
        while (line := self.hear()) is not None:
            if line.get("type") == "user":
                self.turn("".join(part["text"] for part in line["message"]["content"]))


def die_early():
    path = os.path.join(CONFIG, "early")
    os.makedirs(CONFIG, exist_ok=True)
    with open(path, "a") as file:
        file.write("x")
    if os.path.getsize(path) <= int(os.environ.get("FAKE_EARLY", "0")):
        os.kill(os.getpid(), signal.SIGKILL)


if "--version" in sys.argv:
    print("%s (Claude Code)" % os.environ.get("FAKE_VERSION", "2.1.197"))
else:
    die_early()
    Agent().run()
