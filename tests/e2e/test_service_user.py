"""A server that runs as a user of its own, and root who does something by hand for it: what root leaves there the server can read."""
import os
import subprocess
import unittest

from hang import HANG_S
import stintd
from tls import STINT

OTHER = 65534


class Owned(stintd.Server):
    """Of another user, as the service of the packages is."""
    sets = ()

    def command(self):
        os.chown(self.home, OTHER, OTHER)
        return ["setpriv", "--reuid=%d" % OTHER, "--regid=%d" % OTHER, "--clear-groups", *super().command(), *self.sets]


@unittest.skipIf(os.geteuid() != 0, "only root does something for another user")
class ServiceUser(unittest.TestCase):
    def setUp(self):
        self.server = Owned()
        self.addCleanup(self.server.end)
        self.client = self.server.client()
        self.addCleanup(self.client.close)

    def run_as_root(self, *words, status=0):
        ran = subprocess.run(words, capture_output=True, text=True, timeout=HANG_S, stdin=subprocess.DEVNULL, env=stintd.environment())
        self.assertEqual(ran.returncode, status, ran)
        return ran

    def stop(self):
        self.client.close()
        self.server.stop()

    def owners(self, *path):
        place = os.path.join(self.server.home, *path)
        return {os.lstat(os.path.join(place, name)).st_uid for name in os.listdir(place) if name != "log"}

    def test_root_restores_a_backup_and_the_server_starts_with_it(self):
        self.assertEqual(self.client.post("/api/tasks", {"id": "kept", "title": "x"}).status, 201)
        backup = os.path.join(self.server.home, self.client.post("/api/backup").json["path"])
        self.client.post("/api/tasks", {"id": "later", "title": "x"})
        self.stop()
        self.run_as_root(stintd.STINTD, "--home", self.server.home, "--restore", backup)
        self.assertEqual(self.owners(), {OTHER})
        self.server.start()
        self.assertEqual([self.client.get("/api/tasks/" + task).status for task in ("kept", "later")], [200, 404])

    def test_root_begins_a_new_store_and_the_service_goes_on_with_it(self):
        self.stop()
        command = subprocess.Popen([stintd.STINTD, "--home", self.server.home, "--listen", "127.0.0.1:0", "--new-store"], stdin=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env=stintd.environment())
        while not os.path.exists(os.path.join(self.server.home, "url")):
            self.assertIsNone(command.poll())
        with open("/proc/%d/status" % command.pid) as file:
            self.assertIn("Uid:\t%d\t%d\t%d\t%d\n" % ((OTHER,) * 4), file.read())
        command.terminate()
        self.assertEqual(command.wait(HANG_S), 0)
        self.assertEqual(self.owners(), {OTHER})
        self.server.start()

    def test_root_makes_a_certificate_that_the_server_can_read_and_keeps_what_signs(self):
        for _ in range(2):  # the second one keeps the authority
            ran = self.run_as_root(STINT, "--home", self.server.home, "tls", "init", "queue.example")
            self.assertIn("put this into /etc/stint/config.json", ran.stderr)
        place = os.path.join(self.server.home, "tls")
        self.assertEqual({name: os.stat(os.path.join(place, name)).st_uid for name in sorted(os.listdir(place))},
                         {"ca.crt": OTHER, "ca.key": 0, "server.crt": OTHER, "server.key": OTHER})
        self.stop()
        self.server.sets = [word for key, name in (("cert", "server.crt"), ("key", "server.key"), ("ca", "ca.crt"))
                            for word in ("--set", "tls.%s=%s" % (key, os.path.join(place, name)))]
        self.server.ca = os.path.join(place, "ca.crt")
        self.server.start()
        self.assertEqual(self.client.get("/api/tasks").status, 200)


if __name__ == "__main__":
    unittest.main()
