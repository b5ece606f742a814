"""A hostile child, run by a real worker: python3 stranger.py, with what it knows as JSON on standard input
(`payload` of its task). Prints {"attempt": what came of it}: "done" where it got what it wanted, else the error or status.
None of the attempts does harm where it succeeds."""
import ctypes
import errno
import http.client
import json
import os
import signal
import socket
import sys

RACES = 300
LIBC = ctypes.CDLL(None, use_errno=True)
PTRACE_ATTACH = 16

task = json.load(sys.stdin)
known = task["payload"]
home, sibling = known["home"], known["sibling"]
said = {}
heard = []  # every byte that the server told it
with open(os.environ["STINT_TOKEN_FILE"]) as file:
    own_token = file.read().strip()


def attempt(name):
    def run(function):
        try:
            said[name] = function() or "done"
        except OSError as fault:
            said[name] = errno.errorcode[fault.errno]
        return function
    return run


def read(path):
    with open(path, "rb") as file:
        file.read(1)


def write(path):
    with open(path, "ab") as file:
        file.write(b"x")


# ---- files ----

for name, path in (("admin.token", home + "/admin.token"), ("database", home + "/stint.db"), ("wal", home + "/stint.db-wal"),
                   ("by the root of another", "/proc/%d/root%s/admin.token" % (known["worker"], home)),
                   ("by its own root", "/proc/self/root%s/admin.token" % home),
                   ("token of the sibling", sibling["run"] + "/token"), ("file of the sibling", sibling["file"]),
                   ("cwd of the sibling", "/proc/%d/cwd/secret" % sibling["pid"]),
                   ("environment of the worker", "/proc/%d/environ" % known["worker"]),
                   ("environment of the sibling", "/proc/%d/environ" % sibling["pid"]),
                   ("memory of the worker", "/proc/%d/mem" % known["worker"]),
                   ("configuration of the worker", known["config"])):
    attempt("read: " + name)(lambda: read(path))
for name, path in (("database", home + "/stint.db"), ("config.json of the state directory", home + "/config.json"),
                   ("a report", home + "/workers/forged"), ("file of the sibling", sibling["file"]),
                   ("configuration of the worker", known["config"]), ("configuration of the person", known["person"] + "/config.json"),
                   ("its own token", os.environ["STINT_TOKEN_FILE"]), ("cgroup", "/sys/fs/cgroup/cgroup.procs")):
    if os.path.isdir(os.path.dirname(path)) or name != "cgroup":  # a root without /sys has none
        attempt("write: " + name)(lambda: write(path))
for name, path in (("state directory", home), ("runs", home + "/runs"), ("reports", home + "/workers")):
    attempt("list: " + name)(lambda: len(os.listdir(path)) and None)


@attempt("read: descriptors of the worker")
def _():
    """Their numbers can be seen; where they lead cannot."""
    for number in range(20):
        os.readlink("/proc/%d/fd/%d" % (known["worker"], number))


@attempt("link: symbolic")
def _():
    os.symlink(home + "/admin.token", "soft")
    read("soft")


@attempt("link: hard")
def _():
    os.link(home + "/admin.token", "hard")


@attempt("link: rename")
def _():
    os.rename(home + "/admin.token", "renamed")


@attempt("link: race")
def _():
    """A name that is now a file of ours and now a link to theirs."""
    last = None
    for number in range(RACES):
        open("ours", "w").close()
        os.path.lexists("swap") and os.unlink("swap")
        os.symlink(home + "/admin.token", "swap")
        if number % 2:
            os.rename("ours", "swap")
        try:
            with open("swap", "rb") as file:
                if file.read(1):
                    return None
        except OSError as fault:
            last = fault
    raise last


# ---- processes ----

for name, pid in (("worker", known["worker"]), ("sibling", sibling["pid"]), ("server", known["server"])):
    attempt("signal: " + name)(lambda: os.kill(pid, signal.SIGCONT))
    attempt("trace: " + name)(lambda: LIBC.ptrace(PTRACE_ATTACH, pid, 0, 0) < 0 and errno.errorcode[ctypes.get_errno()])


# ---- the server ----

own_socket = os.environ["STINT_URL"].removeprefix("unix:")


class Local(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost")
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(self.path)


def ask(method, path, token=None, body=None, local=own_socket):
    line = Local(local) if local else http.client.HTTPConnection("127.0.0.1", known["port"], timeout=20)
    headers = {"Authorization": "Bearer " + token} if token else {}
    if body is not None:
        headers["Content-Type"] = "application/json"
    line.request(method, path, json.dumps(body) if body is not None else None, headers)
    answer = line.getresponse()
    text = answer.read().decode("utf-8", "replace")
    heard.append(text)
    line.close()
    return answer.status


for name, local in (("its socket", own_socket), ("the server's socket", known["socket"]), ("TCP", None)):
    attempt("without a token: " + name)(lambda: str(ask("GET", "/api/tasks", local=local)))
    attempt("without a token, a change: " + name)(lambda: str(ask("POST", "/api/tasks", body={"title": "x"}, local=local)))
prefix, number, secret = own_token.rsplit("_", 2)
guesses = {"of an admin": "stint_admin_0000000000000000_" + 43 * "A", "its own, a bit off": own_token[:-1] + ("A" if own_token[-1] != "A" else "B"),
           "its own as an admin's": "stint_admin_%s_%s" % (number, secret), "empty": "stint_", "long": 400 * "x"}
for name, guess in guesses.items():
    attempt("guessed: " + name)(lambda: str(ask("GET", "/api/tasks", guess)))
theirs = "/api/tasks/" + sibling["task"]
report = {"workerId": known["workerId"], "fence": os.environ["STINT_FENCE"]}
for name, method, path, body in (
        ("the sibling's task", "GET", theirs, None), ("the sibling's log", "GET", theirs + "/log", None),
        ("the sibling's history", "GET", theirs + "/events", None), ("all tasks", "GET", "/api/tasks", None),
        ("all events", "GET", "/api/events", None), ("all workers", "GET", "/api/workers", None),
        ("to end the sibling", "POST", theirs + "/complete", report), ("to cancel the sibling", "POST", theirs + "/cancel", {}),
        ("to write its log", "POST", theirs + "/log", {**report, "offset": 0, "data": "x"}),
        ("to answer for it", "POST", theirs + "/answer", {"text": "x"}), ("a schedule", "POST", "/api/schedules", {"id": "x", "every": "1h", "task": {"title": "x"}}),
        ("a claim", "POST", "/api/claims", {"workerId": known["workerId"], "queues": ["q"]}),
        ("to beat for its worker", "POST", "/api/workers/heartbeat", {"workerId": known["workerId"]}),
        ("to send its worker away", "POST", "/api/workers/%s/terminate" % known["workerId"], {}),
        ("a token of its own", "POST", "/api/tokens", {"kind": "admin", "name": "mine"}),
        ("a token of the sibling's claim", "POST", "/api/tokens", {"kind": "claim", "task": sibling["task"], "fence": os.environ["STINT_FENCE"]}),
        ("a backup", "POST", "/api/admin/backup", {}), ("the metrics", "GET", "/metrics", None)):
    attempt("with its own token: " + name)(lambda: str(ask(method, path, own_token, body)))


@attempt("mine the fence")
def _():
    """Guess, and look into what is said of it."""
    generation = int(os.environ["STINT_FENCE"]) // 10**12 * 10**12
    for guess in range(generation, generation + 20):
        for where in (theirs, "/api/tasks/" + task["id"]):
            if str(guess) != os.environ["STINT_FENCE"] or where == theirs:
                if ask("POST", where + "/progress", own_token, {"workerId": known["workerId"], "fence": str(guess), "message": "x"}) < 400:
                    return None
    return "fence" if any(sibling["fence"] in text for text in heard) else "refused"


attempt("mine the fence of itself")(lambda: "refused" if ask("POST", "/api/tasks/%s/progress" % task["id"], own_token, {
    "workerId": known["workerId"], "fence": "1", "message": "x"}) >= 400 and os.environ["STINT_FENCE"] not in heard[-1] else None)

# ---- what it leaves for a person ----

for path in (".stint/config.json", ".config/stint/config.json", "config.json"):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "w") as file:
        json.dump({"listen": "127.0.0.1:6666", "executors": {"evil": {"kind": "command", "argv": ["touch", known["person"] + "/evil"]}},
                   "queues": {"q": {"executor": "evil"}}, "roots": ["/"], "landlock": "optional", "auth": "none"}, file)
print(json.dumps(said))
