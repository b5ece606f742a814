#!/usr/bin/env python3
"""A PostgreSQL of its own in a temporary directory, on a Unix socket alone, as an ordinary user.

    tests/postgres/server.py COMMAND ARGS...   run it with STINT_TEST_POSTGRES=postgres://… and stop the server behind it

In tests: `with Server() as server: server.url`. PostgreSQL refuses to run as root, so root starts it as the user that Debian's
package made, or as nobody.
"""
import glob
import os
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SETTINGS = {
    "listen_addresses": "",
    "fsync": "on",
    "full_page_writes": "on",
    "shared_buffers": "64MB",
    "max_connections": "50",
    "autovacuum_naptime": "5min",
    "log_min_messages": "warning",
    "wal_level": "replica",
    "max_wal_size": "512MB",
}


def programs():
    """The directory of the newest PostgreSQL that is installed; None: there is none."""
    found = glob.glob("/usr/lib/postgresql/*/bin/initdb")
    found.sort(key=lambda path: int(re.search(r"/(\d+)/bin/", path).group(1)))
    if found:
        return os.path.dirname(found[-1])
    initdb = shutil.which("initdb")
    return os.path.dirname(os.path.realpath(initdb)) if initdb else None


def ordinary_user():
    """(uid, gid) to run as; None: we are an ordinary user."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
            return user.pw_uid, user.pw_gid
        except KeyError:
            pass
    sys.exit("server.py: PostgreSQL does not run as root, and there is no user postgres or nobody")


def quick_place():
    """Where a sync costs nothing, if there is such a place with room: servers and processes are killed here, machines are not."""
    try:
        room = os.statvfs("/dev/shm")
    except OSError:
        return os.environ.get("TMPDIR", "/tmp")
    roomy = room.f_bavail * room.f_frsize > 1 << 30 and os.access("/dev/shm", os.W_OK)
    return "/dev/shm" if roomy else os.environ.get("TMPDIR", "/tmp")


class Server:
    def __init__(self, settings=None, parent=None):
        self.bin = programs()
        if not self.bin:
            raise FileNotFoundError("PostgreSQL is not installed (package postgresql)")
        self.user = ordinary_user()
        self.directory = tempfile.mkdtemp(prefix="stint-pg-", dir=parent or quick_place())
        os.chmod(self.directory, 0o755)
        self.data = os.path.join(self.directory, "data")
        self.settings = {**SETTINGS, **(settings or {}), "unix_socket_directories": self.directory}
        self.process = None
        self.log = os.path.join(self.directory, "log")
        if self.user:
            os.chown(self.directory, *self.user)
        self.command("initdb", "-D", self.data, "-U", "stint", "-A", "trust", "-N", "--no-instructions", "-E", "UTF8",
                     "--locale=C")

    def as_user(self):
        if self.user:
            uid, gid = self.user
            os.setgroups([])
            os.setgid(gid)
            os.setuid(uid)

    def command(self, program, *args):
        done = subprocess.run([os.path.join(self.bin, program), *args], preexec_fn=self.as_user, cwd=self.directory,
                              capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stdout}{done.stderr}")
        return done.stdout

    @property
    def url(self):
        return f"postgres://stint@/postgres?host={self.directory}"

    def start(self):
        args = [os.path.join(self.bin, "postgres"), "-D", self.data]
        for name, value in self.settings.items():
            args += ["-c", f"{name}={value}"]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(args, preexec_fn=self.as_user, cwd=self.directory, stdout=log, stderr=log)
        while True:
            try:
                if self.sql("SELECT 1") == "1":
                    return self
            except RuntimeError:
                if self.process.poll() is not None:
                    raise RuntimeError("PostgreSQL did not start: " + self.said()) from None
                time.sleep(0.02)

    def said(self):
        with open(self.log) as log:
            return log.read()

    def sql(self, text, url=None):
        """The answer as lines of columns with '|' between them."""
        done = subprocess.run([os.path.join(self.bin, "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-c", text, url or self.url],
                              capture_output=True, text=True, env={**os.environ, "PGOPTIONS": "-c default_transaction_read_only=off"})
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout.strip()

    def stop(self, how=signal.SIGINT):
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait()
        self.process = None

    def kill(self):
        """All at once, as when the power goes: children too."""
        pids = [self.process.pid]
        for entry in glob.glob("/proc/[0-9]*/stat"):
            try:
                with open(entry) as file:
                    fields = file.read().rsplit(")", 1)[1].split()
                if int(fields[1]) == self.process.pid:
                    pids.append(int(entry.split("/")[2]))
            except (FileNotFoundError, ProcessLookupError):
                pass
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        self.process = None

    def remove(self):
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.remove()
            raise

    def __exit__(self, *_):
        self.remove()


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with Server() as server:
        sys.exit(subprocess.call(sys.argv[1:], env={**os.environ, "STINT_TEST_POSTGRES": server.url}))


if __name__ == "__main__":
    main()
