"""What is installed around the programs: units of systemd, and a configuration of PM2."""
import glob
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
SERVER = os.path.join(BUILD, "packaging/stintd.service")
SOCKET = os.path.join(BUILD, "packaging/stintd.socket")
WORKERS = [os.path.join(BUILD, "packaging", name) for name in ("stint-worker.service", "stint-worker@.service")]
NOTIFY = os.path.join(BUILD, "packaging/stint-notify.service")
USER = os.path.join(BUILD, "packaging/stint.service")
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
            for unit in (SERVER, NOTIFY, USER, *WORKERS):
                copies.append(os.path.join(folder, os.path.basename(unit).replace("@.", "@slot-1.")))
                with open(unit) as text, open(copies[-1], "w") as copy:
                    # the programs are not installed where the unit looks for them
                    copy.write(re.sub(r"(?m)^ExecStart=\S+/(\S+)", "ExecStart=" + os.path.join(BUILD, r"\1"), text.read()))
            copies.append(shutil.copy(SOCKET, folder))
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


def dev(*args, **options):
    return subprocess.run([os.path.join(TOP, "dev"), *args], capture_output=True, text=True, timeout=HANG_S, **options)


class Installing(unittest.TestCase):
    """The files themselves: what ./dev install does after the build. The prefix is that of the build, beneath a directory of ours."""

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="stint-install-")
        self.addCleanup(shutil.rmtree, self.folder, True)

    def test_units_name_the_programs_where_they_are_installed(self):
        ran = subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", self.folder],
                             capture_output=True, text=True, timeout=HANG_S)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        units = glob.glob(self.folder + "/**/systemd/**/*.service", recursive=True)
        self.assertEqual(len(units), 5, units)
        self.assertEqual(len(glob.glob(self.folder + "/**/systemd/**/*.socket", recursive=True)), 1)
        for unit in units:
            with open(unit) as file:
                program, = re.findall(r"(?m)^ExecStart=(\S+)", file.read())
            self.assertTrue(os.access(self.folder + program, os.X_OK), f"{unit}: {program}")

    def test_a_prefix_that_is_no_path_is_refused(self):
        for verb in ("install", "uninstall"):
            ran = dev(verb, "--prefix", "here")
            self.assertEqual((ran.returncode, ran.stderr), (1, f"dev: {verb}: the prefix must be an absolute path, not 'here'\n"))

    def test_uninstall_removes_what_is_listed_and_nothing_else(self):
        ran = dev("uninstall", "--prefix", self.folder)
        self.assertIn("nothing is installed in " + self.folder, ran.stderr)
        ours, other, listed = (os.path.join(self.folder, name) for name in ("bin/stint", "bin/other", "share/stint/installed"))
        for path in (ours, other, listed):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write("".join(f"{name}\n" for name in (os.path.dirname(ours), ours, os.path.dirname(listed), listed)))
        self.assertEqual(dev("uninstall", "--prefix", self.folder).returncode, 0)
        self.assertEqual([os.path.exists(path) for path in (ours, other, os.path.dirname(listed))], [False, True, False])

    def test_a_list_that_names_what_is_elsewhere_removes_nothing(self):
        listed, ours = (os.path.join(self.folder, name) for name in ("share/stint/installed", "stint"))
        os.makedirs(os.path.dirname(listed))
        for path, text in ((listed, f"{ours}\n{self.folder}/../x\n"), (ours, "")):
            with open(path, "w") as file:
                file.write(text)
        self.assertEqual(dev("uninstall", "--prefix", self.folder).returncode, 1)
        self.assertTrue(os.path.exists(ours))


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
