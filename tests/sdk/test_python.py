"""The Python SDK, packed as a wheel and installed from it."""
import os
import re
import subprocess
import sys
import tempfile
import unittest
import zipfile

from scenarios import TOP, Scenarios, lines_of_code

SDK = os.path.join(TOP, "sdk", "python")
made = tempfile.TemporaryDirectory(prefix="stint-sdk-")


def pack(where):
    """The wheel, built by the backend that pyproject.toml names."""
    sys.path.insert(0, SDK)
    import pack as backend
    here = os.getcwd()
    os.chdir(SDK)
    try:
        return os.path.join(where, backend.build_wheel(where))
    finally:
        os.chdir(here)


def setUpModule():
    # what pip does with a wheel of pure Python is to unpack it
    with zipfile.ZipFile(pack(made.name)) as wheel:
        wheel.extractall(os.path.join(made.name, "installed"))


def tearDownModule():
    made.cleanup()


class Python(Scenarios):
    command = ([sys.executable, os.path.join(TOP, "tests", "sdk", "driver.py")], {"PYTHONPATH": os.path.join(made.name, "installed"), "PYTHONDONTWRITEBYTECODE": "1"})


class Package(unittest.TestCase):
    def test_the_types_are_those_of_the_contract(self):
        checked = subprocess.run([os.path.join(TOP, "tools", "sdk-types"), "--check"], capture_output=True, text=True)
        self.assertEqual(checked.stdout, "")

    def test_pip_installs_the_wheel_without_an_index(self):
        place = os.path.join(made.name, "venv")
        venv = subprocess.run([sys.executable, "-m", "venv", place], capture_output=True, text=True)
        if venv.returncode != 0:
            self.skipTest("this Python cannot make an environment (Debian: python3-venv)")
        python = os.path.join(place, "bin", "python")
        subprocess.run([python, "-m", "pip", "-q", "--disable-pip-version-check", "install", "--no-index", "--no-deps", pack(made.name)], check=True)
        version = subprocess.run([python, "-c", "import stint; print(stint.__version__)"], check=True, capture_output=True, text=True, cwd=place)
        with open(os.path.join(SDK, "pyproject.toml")) as file:
            self.assertEqual(version.stdout.strip(), re.search(r'^version = "(.*)"', file.read(), re.M)[1])

    def test_the_example_can_be_imported(self):
        code = "import runpy; runpy.run_path(%r)" % os.path.join(SDK, "examples", "pages.py")
        subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": os.path.join(made.name, "installed"), "PYTHONDONTWRITEBYTECODE": "1"})

    def test_two_wheels_have_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as other, open(pack(made.name), "rb") as one, open(pack(other), "rb") as two:
            self.assertEqual(one.read(), two.read())

    def test_what_people_wrote_has_fewer_than_700_lines_of_code(self):
        self.assertLess(lines_of_code(os.path.join(SDK, "stint"), "api.py"), 700)


del Scenarios

if __name__ == "__main__":
    unittest.main()
