"""Two PostgreSQL with streaming replication: a primary, and a standby that can be promoted. Of the one that is left behind a new standby
is made. And what stands between a client and a server: a proxy that cuts, delays and stops.

    with Pair(synchronous=True) as pair: pair.url, pair.promote(), pair.rejoin()
"""
import os
import select
import shutil
import signal
import socket
import tempfile
import threading
import time

import server as postgres

QUICK = {"wal_retrieve_retry_interval": "200ms", "wal_receiver_timeout": "5s", "wal_sender_timeout": "5s", "max_wal_senders": "5",
         "hot_standby": "on"}


class Member(postgres.Server):
    """One of the two. Its data may come from the other one."""

    def __init__(self, parent, settings, name):
        self.name = name
        super().__init__({**QUICK, **settings, "cluster_name": name}, parent=parent)
        with open(os.path.join(self.data, "pg_hba.conf"), "a") as file:
            file.write("local replication all trust\n")

    def follow(self, primary):
        """A copy of what the primary has, as its standby."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.data, ignore_errors=True)
        self.command("pg_basebackup", "-D", self.data, "-R", "-X", "stream", "-c", "fast", "-d",
                     "host=%s user=stint application_name=%s" % (primary.directory, self.name))
        self.start()

    def is_primary(self):
        return self.sql("SELECT pg_is_in_recovery()") == "f"

    def freeze(self, stops):
        """All its processes stop, as those of a machine that hangs; or go on."""
        for pid in self.pids():
            try:
                os.kill(pid, signal.SIGSTOP if stops else signal.SIGCONT)
            except ProcessLookupError:
                pass

    def pids(self):
        own = self.process.pid
        found = [own]
        for entry in os.listdir("/proc"):
            try:
                with open("/proc/%s/stat" % entry) as file:
                    if int(file.read().rsplit(")", 1)[1].split()[1]) == own:
                        found.append(int(entry))
            except (OSError, ValueError, IndexError):
                pass
        return found


class Pair:
    def __init__(self, synchronous=True):
        self.directory = tempfile.mkdtemp(prefix="stint-pair-", dir=postgres.quick_place())
        os.chmod(self.directory, 0o755)
        self.members = [Member(self.directory, {}, name) for name in ("one", "two")]
        self.primary, self.standby = self.members
        self.synchronous = synchronous
        self.primary.start()
        self.standby.follow(self.primary)
        self.wait_for_commits()

    @property
    def url(self):
        return "postgres://stint@/postgres?host=%s" % ",".join(member.directory for member in self.members)

    def sql(self, text):
        return self.primary.sql(text)

    def wait_for_standby(self):
        state = "state = 'streaming'" + (" AND sync_state IN ('sync', 'quorum')" if self.synchronous else "")
        while self.primary.sql("SELECT count(*) FROM pg_stat_replication WHERE " + state) == "0":
            time.sleep(0.02)

    def promote(self, kill=True):
        """The standby takes over. `kill`: the primary is gone with its machine; else nobody has told it."""
        if kill:
            self.primary.kill()
        self.standby.command("pg_ctl", "promote", "-D", self.standby.data, "-W")
        while not self.standby.is_primary():
            time.sleep(0.01)
        self.primary, self.standby = self.standby, self.primary
        self.set_names("")  # alone it must not wait

    def rejoin(self):
        """Of the one that was left behind a standby of the other is made."""
        if self.standby.process and self.standby.process.poll() is None:
            self.standby.kill()
        self.standby.follow(self.primary)
        self.wait_for_commits()

    def set_names(self, names):
        self.primary.sql("ALTER SYSTEM SET synchronous_standby_names = '%s'" % names)
        self.primary.sql("SELECT pg_reload_conf()")

    def wait_for_commits(self):
        """Until commits wait for the standby, if they shall."""
        if self.synchronous:
            self.set_names("*")
        self.wait_for_standby()

    def remove(self):
        for member in self.members:
            if member.process and member.process.poll() is None:
                member.freeze(False)
            member.remove()
        shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


class Proxy:
    """Passes connections on to `target`, a (host, port) or the path of a socket, and does harm when told:
    cut(): every connection ends. half(): of what is sent next only a part arrives, and then nothing. hold(): nothing passes until let_go()."""

    def __init__(self, target, path=None):
        self.target, self.path = target, path
        self.listener = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
        self.listener.bind(path or ("127.0.0.1", 0))
        if path:
            os.chmod(path, 0o777)
        self.listener.listen(64)
        self.port = None if path else self.listener.getsockname()[1]
        self.pairs, self.lock = [], threading.Lock()
        self.flows, self.halves, self.over = threading.Event(), 0, False
        self.flows.set()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while not self.over:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX if isinstance(self.target, str) else socket.AF_INET)
            try:
                server.connect(self.target)
            except OSError:
                client.close()
                server.close()
                continue
            with self.lock:
                self.pairs.append((client, server))
            threading.Thread(target=self.pump, args=(client, server), daemon=True).start()

    def pump(self, client, server):
        try:
            while True:
                for source in select.select([client, server], [], [])[0]:
                    data = source.recv(1 << 16)
                    if not data:
                        return
                    self.flows.wait()
                    if source is client and self.halves > 0 and len(data) > 1:
                        self.halves -= 1
                        server.sendall(data[:len(data) // 2])
                        time.sleep(0.05)
                        return
                    (server if source is client else client).sendall(data)
        except (OSError, ValueError):
            pass
        finally:
            self.close_pair(client, server)

    def close_pair(self, client, server):
        with self.lock:
            if (client, server) in self.pairs:
                self.pairs.remove((client, server))
        for one in client, server:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            one.close()

    def cut(self):
        for client, server in list(self.pairs):
            for one in client, server:
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

    def half(self):
        self.halves = 1

    def hold(self):
        self.flows.clear()

    def let_go(self):
        self.flows.set()

    def close(self):
        self.over = True
        self.let_go()
        self.cut()
        self.listener.close()
        if self.path:
            try:
                os.unlink(self.path)
            except FileNotFoundError:
                pass
