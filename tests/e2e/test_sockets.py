"""Listening sockets that outlive the server: those of a socket unit, and those that systemd or `stint up` keeps for the next process."""
import array
import errno
import os
import signal
import socket
import subprocess
import tempfile
import unittest

from hang import HANG_S
import stintd
from test_up import UpCase


class Given(unittest.TestCase):
    """What systemd does, by hand: descriptors from 3 on, and variables that say so."""

    def setUp(self):
        self.homes = tempfile.TemporaryDirectory(prefix="stint-sockets-")
        self.addCleanup(self.homes.cleanup)
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.socket.close)
        self.port = self.socket.getsockname()[1]

    def start(self, listen, *flags, names="stintd.socket", pid="$$"):
        home = os.path.join(self.homes.name, "home")
        script = "exec 3<&%d; LISTEN_PID=%s LISTEN_FDS=1 LISTEN_FDNAMES=%s exec \"$0\" \"$@\"" % (self.socket.fileno(), pid, names)
        process = subprocess.Popen(["bash", "-c", script, stintd.STINTD, "--home", home, "--listen", listen, *flags], stderr=subprocess.PIPE, text=True,
                                   stdin=subprocess.DEVNULL, pass_fds=[self.socket.fileno()], env=stintd.environment(NOTIFY_SOCKET=self.manager()))

        def end():
            if process.poll() is None:
                process.kill()
            process.wait(HANG_S)
            process.stderr.close()

        self.addCleanup(end)
        return process

    def manager(self):
        """Hears what a service tells its manager."""
        self.hears = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.hears.close)
        self.hears.settimeout(HANG_S)
        path = os.path.join(self.homes.name, "notify")
        if os.path.exists(path):
            os.unlink(path)
        self.hears.bind(path)
        return path

    def told(self, until="READY=1"):
        """Until then: [(text, sockets)]."""
        messages = []
        while not messages or messages[-1][0] != until:
            text, along, _, _ = self.hears.recvmsg(4096, socket.CMSG_SPACE(32))
            fds = array.array("i")
            for _, _, data in along:
                fds.frombytes(data)
            sockets = [socket.socket(fileno=fd) for fd in fds]
            for each in sockets:
                self.addCleanup(each.close)
            messages.append((text.decode(), sockets))
        return messages

    def livez(self, port):
        with socket.create_connection(("127.0.0.1", port), HANG_S) as peer:
            peer.sendall(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n" % port)
            return peer.recv(64).split(b"\r\n")[0]

    def test_the_server_serves_on_the_socket_of_its_unit(self):
        with socket.create_connection(("127.0.0.1", self.port), HANG_S) as early:  # before there is any server
            self.start("127.0.0.1:%d" % self.port)
            self.told()
            early.settimeout(HANG_S)
            early.sendall(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % self.port)
            self.assertEqual(early.recv(64).split(b"\r\n")[0], b"HTTP/1.1 200 OK")

    def test_a_unit_of_another_address_than_the_configuration_s_is_refused(self):
        process = self.start("127.0.0.1:%d" % (self.port ^ 1))
        self.assertEqual(process.wait(HANG_S), 78)
        self.assertIn("make them the same", process.stderr.read())

    def test_a_kept_socket_is_not_in_the_way_of_all_addresses_on_its_port_and_the_manager_is_told_to_let_go(self):
        self.start("0.0.0.0:%d" % self.port, "--behind-proxy", names="stint-kept")
        self.assertIn("FDSTOREREMOVE=1\nFDNAME=stint-kept", [text for text, _ in self.told()])
        self.assertEqual(self.livez(self.port), b"HTTP/1.1 200 OK")
        with self.assertRaises(OSError):
            self.socket.accept()  # it listens no more, whoever has it

    def test_a_kept_socket_of_an_address_of_before_is_let_go(self):
        free = socket.create_server(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        self.start("127.0.0.1:%d" % port, names="stint-kept")
        self.told()
        self.assertEqual(self.livez(port), b"HTTP/1.1 200 OK")

    def test_sockets_of_another_process_are_none_of_ours(self):
        process = self.start("127.0.0.1:%d" % self.port, pid="1")
        self.assertEqual(process.wait(HANG_S), 1)
        self.assertIn("cannot listen", process.stderr.read())

    def test_what_it_opened_itself_it_asks_to_be_kept(self):
        self.start("127.0.0.1:0", pid="1")
        kept = [sockets for text, sockets in self.told() if text == "FDSTORE=1\nFDNAME=stint-kept"]
        self.assertIn(len(kept), (1, 2))  # [::1] beside it, where there is one
        with open(os.path.join(self.homes.name, "home", "url")) as file:
            self.assertEqual(kept[0][0].getsockname(), ("127.0.0.1", int(file.read().strip().rsplit(":", 1)[1])))

    def test_what_it_was_given_is_kept_already(self):
        self.start("127.0.0.1:%d" % self.port, names="stint-kept")
        self.assertNotIn(("127.0.0.1", self.port), [sockets[0].getsockname() for text, sockets in self.told() if sockets])


class Up(UpCase):
    def test_no_other_program_takes_the_port_of_a_server_that_was_killed_and_who_connects_meanwhile_is_answered(self):
        process = self.up()
        port = int(self.url().rsplit(":", 1)[1])
        for _ in range(2):  # the second server leaves it to the third
            first = self.server_pid()
            os.kill(first, signal.SIGKILL)
            self.assertIn("another one is started", process.stderr.readline())
            with self.assertRaises(OSError) as refused:
                socket.create_server(("127.0.0.1", port)).close()
            self.assertEqual(refused.exception.errno, errno.EADDRINUSE)
            with socket.create_connection(("127.0.0.1", port), HANG_S) as early:
                early.sendall(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port)
                self.assertEqual(early.recv(64).split(b"\r\n")[0], b"HTTP/1.1 200 OK")
            self.until(lambda: self.server_pid() not in (0, first))

    def test_what_the_programs_beside_it_have_open_holds_no_socket_of_the_server(self):
        process = self.up()
        with open("/proc/net/tcp") as file:
            rows = [line.split() for line in file][1:]
        port = int(self.url().rsplit(":", 1)[1])
        inode, = {row[9] for row in rows if row[1] == "0100007F:%04X" % port and row[3] == "0A"}
        children = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(process.pid)], capture_output=True, text=True).stdout.split("\n")
        holders = set()
        for pid, name in (line.split() for line in children if line.strip()):
            links = {os.readlink("/proc/%s/fd/%s" % (pid, fd)) for fd in os.listdir("/proc/%s/fd" % pid)}
            if "socket:[%s]" % inode in links:
                holders.add(name)
        self.assertEqual(holders, {"stintd"})

    def test_nobody_else_s_sockets_are_kept(self):
        process = self.up()
        mine = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(mine.close)
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.connect(os.path.join(self.home, "up.sock"))
            for _ in range(8):
                socket.send_fds(other, [b"FDSTORE=1\nFDNAME=stint-kept"], [mine.fileno()])
        first = self.server_pid()
        os.kill(first, signal.SIGKILL)
        self.until(lambda: self.server_pid() not in (0, first))
        inode = "socket:[%d]" % os.fstat(mine.fileno()).st_ino
        for pid in (process.pid, self.server_pid()):
            self.assertNotIn(inode, [os.readlink("/proc/%d/fd/%s" % (pid, fd)) for fd in os.listdir("/proc/%d/fd" % pid)])
        self.assertEqual(self.stint("down", "--now").returncode, 0)
        self.assertEqual(process.wait(HANG_S), 0)
        self.assertFalse(os.path.exists(os.path.join(self.home, "up.sock")))


del UpCase

if __name__ == "__main__":
    unittest.main()
