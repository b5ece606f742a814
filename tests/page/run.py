#!/usr/bin/env python3
"""The dashboard in a real browser: run.py [--long] [--screenshots DIR] [--types] [--only WORDS] [--ui-dir DIR] [--bench]

Starts a stintd of its own, fills it, and lets tests/page/page.mjs drive Debian's chromium by playwright-core. Packages come from npm by
the lock file, below build/npm. Where node, npm, chromium or the packages cannot be had, it says so in one line and ends with 0.
"""
import argparse
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "tests/e2e"))
HERE = pathlib.Path(__file__).resolve().parent
NPM_PATIENCE_S = 180
PATIENCE_S = 600
PAST_MS = 45 * 60 * 1000


def skip(why):
    print(f"skipped: page: {why}", flush=True)
    sys.exit(0)


def modules():
    """Where the packages of tests/page are."""
    if not shutil.which("node") or not shutil.which("npm"):
        skip("node and npm are not installed")
    lock = (HERE / "package-lock.json").read_bytes()
    place = TOP / "build/npm" / ("page-" + hashlib.sha256(lock).hexdigest()[:16])
    if (place / "complete").exists():
        return place
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, place / name)
    try:
        done = subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], cwd=place,
                              capture_output=True, text=True, timeout=NPM_PATIENCE_S, check=False)
    except subprocess.TimeoutExpired:
        skip("npm could not fetch the packages of tests/page in time")
    if done.returncode != 0:
        skip("npm could not fetch the packages of tests/page")
    (place / "complete").touch()
    return place


def check_types(place):
    """JSDoc types of src/web, by typescript; the packages of the page are beside."""
    lock = (TOP / "src/web/package-lock.json").read_bytes()
    web = TOP / "build/npm" / ("web-" + hashlib.sha256(lock).hexdigest()[:16]) / "node_modules"
    if not web.exists():
        skip("the packages of the page are not there; ./dev build fetches them")
    config = place / "tsconfig.json"
    config.write_text("""{"compilerOptions": {"allowJs": true, "checkJs": true, "noEmit": true, "strict": true, "target": "es2022",
 "module": "esnext", "moduleResolution": "bundler", "lib": ["es2022", "dom", "dom.iterable"], "skipLibCheck": true, "types": [],
 "paths": {"*": ["%s/*"]}}, "include": ["%s/**/*.js"]}""" % (web, TOP / "src/web"), encoding="utf-8")
    return subprocess.run([str(place / "node_modules/.bin/tsc"), "-p", str(config)], check=False).returncode


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", action="store_true", help="the longer forms too")
    parser.add_argument("--screenshots", metavar="DIR", help="every page in both themes and three widths, and nothing else")
    parser.add_argument("--ui-dir", metavar="DIR", help="serve the page from there, not from the program")
    parser.add_argument("--only", metavar="WORDS", default="", help="only the checks with these words in their name")
    parser.add_argument("--bench", metavar="N,N,N,N", nargs="?", const="100000,1000,200,20", help="figures of a large server: tasks, workers, events a second, seconds")
    parser.add_argument("--types", action="store_true", help="only check the types")
    asked = parser.parse_args()
    place = modules()
    if asked.types:
        sys.exit(check_types(place))
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        skip("chromium is not installed")
    import proof  # after the packages: it needs python3-jsonschema
    import stintd
    if not asked.ui_dir and not has_site(stintd.STINTD):
        skip("stintd was built without the dashboard")
    served = ["--ui-dir", os.path.abspath(asked.ui_dir)] if asked.ui_dir else []
    clocks = None
    if asked.screenshots and os.path.exists(proof.CLOCKS_SO):  # three quarters of an hour to show
        clocks = proof.Clocks()
        clocks.set(wall_ms=-PAST_MS)
    server = proof.Server(*served, "--set", "sweep.intervalMs=10", clocks=clocks) if clocks else stintd.Server(*served)
    try:
        environment = {**os.environ, "STINT_URL": server.url, "STINT_TOKEN": server.token, "CHROMIUM": chromium,
                       "PAGE_LONG": "1" if asked.long else "", "PAGE_SHOTS": os.path.abspath(asked.screenshots) if asked.screenshots else "",
                       "PAGE_CLOCKS": clocks.file.name if clocks else "", "PAGE_ONLY": asked.only, "PAGE_STINTD": " ".join([stintd.STINTD, *served]), "PAGE_MODULES": str(place / "node_modules"), "PAGE_BENCH": asked.bench or ""}
        done = subprocess.run(["node", str(HERE / ("bench.mjs" if asked.bench else "page.mjs"))], env=environment, timeout=PATIENCE_S, check=False)
    finally:
        server.end()
    sys.exit(done.returncode)


def has_site(program):
    """Its table of files names a script."""
    return b"app-" in pathlib.Path(program).read_bytes()


if __name__ == "__main__":
    main()
