"""What is installed around the programs: units of systemd, and a configuration of PM2."""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from hang import HANG_S

STINTD = os.path.abspath(os.environ.get("STINTD", "build/stintd"))
BUILD = os.path.dirname(STINTD)
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SERVER = os.path.join(TOP, "packaging/systemd/stintd.service")
WORKERS = [os.path.join(BUILD, "packaging", name) for name in ("stint-worker.service", "stint-worker@.service")]
NOTIFY = os.path.join(TOP, "packaging/systemd/stint-notify.service")
ANALYZE = shutil.which("systemd-analyze")


def analyze(*args):
    return subprocess.run([ANALYZE, *args], capture_output=True, text=True, timeout=HANG_S)


@unittest.skipUnless(ANALYZE, "there is no systemd-analyze here (package systemd)")
class Units(unittest.TestCase):
    def exposure(self, unit):
        ran = analyze("security", "--offline=true", unit)
        found = re.search(r"exposure level for \S+: ([0-9.]+)", ran.stdout)
        self.assertTrue(found, ran.stdout + ran.stderr)
        return float(found.group(1))

    def test_the_server_is_hardened(self):
        self.assertLessEqual(self.exposure(SERVER), 1.5)

    def test_what_speaks_to_the_world_is_hardened_but_for_that(self):
        self.assertLessEqual(self.exposure(NOTIFY), 1.5)

    def test_workers_are_as_hardened_as_what_they_run_allows(self):
        for unit in WORKERS:
            self.assertLessEqual(self.exposure(unit), 3.0)

    def test_systemd_finds_nothing_wrong_with_them(self):
        with tempfile.TemporaryDirectory() as folder:
            copies = []
            for unit in (SERVER, NOTIFY, *WORKERS):
                copies.append(os.path.join(folder, os.path.basename(unit).replace("@.", "@slot-1.")))
                with open(unit) as text, open(copies[-1], "w") as copy:
                    # the programs are not installed where the unit looks for them
                    copy.write(re.sub(r"/usr/bin/(\S+)", os.path.join(BUILD, r"\1"), text.read()))
            ran = analyze("verify", "--man=no", *copies)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))

    def test_a_worker_outlasts_the_lease_of_the_one_that_vanished(self):
        for unit in WORKERS:
            with open(unit) as file:
                self.assertIn("\nStartLimitIntervalSec=0\n", file.read())

    def test_both_workers_have_their_own_place(self):
        plain, slot = (open(unit).read() for unit in WORKERS)
        self.assertNotIn("--slot", plain)
        self.assertRegex(slot, r"ExecStart=.* --slot %i\n")
        self.assertIn("StateDirectory=stint-worker/%i\n", slot)
        self.assertNotIn("@STATE@", plain + slot)


@unittest.skipUnless(shutil.which("node"), "there is no node here (package nodejs)")
class Pm2(unittest.TestCase):
    def test_one_process_per_slot_that_is_restarted(self):
        path = os.path.join(TOP, "packaging/pm2/ecosystem.config.js")
        ran = subprocess.run(["node", "-e", "console.log(JSON.stringify(require(process.argv[1]).apps))", path],
                             capture_output=True, text=True, timeout=HANG_S, check=True)
        apps = json.loads(ran.stdout)
        self.assertEqual([app["env"]["SLOT_ID"] for app in apps], ["slot-1", "slot-2"])
        for app in apps:
            self.assertEqual((app["script"], app["autorestart"]), ("stint-worker", True))
            self.assertEqual(app["args"], "--slot " + app["env"]["SLOT_ID"])
            self.assertGreater(app["max_restarts"] * app["restart_delay"], 90000, "the lease of a slot")


if __name__ == "__main__":
    unittest.main()
