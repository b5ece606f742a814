"""A hostile child, run by a real worker: python3 neighbour.py, with what it knows as JSON on standard input (`payload` of its task).
It wants everything for itself, in many ways at once, until there is a file `stop` in its work dir: connections that say nothing,
connections with its own token, wrong tokens, changes without end, replies that nobody reads, polls and streams. Each way writes a
file when it has begun. What it prints is how often it got something."""
import json
import os
import resource
import signal
import socket
import sys
import time

CROWDS = 5
known = json.load(sys.stdin)["payload"]
with open(os.environ["STINT_TOKEN_FILE"]) as file:
    token = file.read().strip()
task = os.environ["STINT_TASK_ID"]
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)


def connect():
    line = socket.socket(socket.AF_UNIX)
    line.settimeout(5)
    line.connect(known["socket"])
    return line


def request(method, path, secret=token, body=None):
    data = b"" if body is None else json.dumps(body).encode()
    return (b"%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (method.encode(), path.encode(), secret.encode(), len(data), data))


def crowd():
    """As many connections as it may have; every other one says who it is."""
    lines = []
    while True:
        try:
            lines.append(connect())
            if len(lines) % 2:
                lines[-1].sendall(request("GET", "/api/tasks/" + task))
        except OSError:  # no descriptor is left, or the server closed it
            for line in lines[:len(lines) // 2]:
                line.close()
            del lines[:len(lines) // 2]
            time.sleep(0.01)
        yield


def say(line, words):
    """On that connection, or on a new one."""
    try:
        line = line or connect()
        line.sendall(words)
        return line if line.recv(65536) else None
    except OSError:
        return None


def liar():
    lines, number = [None] * 8, 0
    while True:
        for i, line in enumerate(lines):
            number += 1
            lines[i] = say(line, request("GET", "/api/tasks", "stint_worker_%016x_%s" % (number, 43 * "A")))
        yield


def patcher():
    lines, number = [None] * 8, 0
    while True:
        for i, line in enumerate(lines):
            number += 1
            lines[i] = say(line, request("PATCH", "/api/tasks/" + task, body={"metadata": {"n": number, "x": 1000 * "x"}}))
        yield


def deaf():
    """Asks and never reads."""
    lines = []
    while True:
        try:
            line = connect()
            line.settimeout(0)
            for _ in range(1000):
                line.send(request("GET", "/api/tasks/" + task))
        except OSError:
            pass
        lines = lines[-200:] + [line]
        time.sleep(0.01)
        yield


def poller():
    lines = []
    while True:
        try:
            for path in ("/api/workers/%s/news?waitMs=60000" % os.environ["STINT_WORKER_ID"], "/api/events?after=0"):
                lines.append(connect())
                lines[-1].sendall(request("GET", path))
        except OSError:
            lines = []
        lines = lines[-200:]
        time.sleep(0.01)
        yield


def run(way, name):
    pid = os.fork()
    if pid:
        return pid
    for number, _ in enumerate(way()):
        if number == 100:
            open("begun-" + name, "w").close()
        if os.path.exists("stop"):
            os._exit(0)
    os._exit(1)


signal.signal(signal.SIGPIPE, signal.SIG_IGN)
ways = [(crowd, "crowd-%d" % number) for number in range(CROWDS)] + [(liar, "liar"), (patcher, "patcher"), (deaf, "deaf"), (poller, "poller")]
for pid in [run(way, name) for way, name in ways]:
    os.waitpid(pid, 0)
print("it has stopped")
