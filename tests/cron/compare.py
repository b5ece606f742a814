#!/usr/bin/env python3
"""Cron lines against two others: croner and cron-parser from npm, which share no code with us or each other.

  tests/cron/compare.py [--seed N] [--lines N]

Draws lines, zones and moments, most of them close to a change of the clock, and asks all three for the next time. Where one of the
others says something else, the sentence of the contract decides, as a walk over real time in Python has it (oracle()): "A fixed time
in a gap of the clock fires at its end, in a repeated hour once; * or a step in the hour follows real time; either day field matches."
Every kind of difference is printed with its number and an example. Status 1 if we differ from the walk.
"""
import argparse
import bisect
import collections
import datetime
import os
import random
import subprocess
import sys
import zoneinfo

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NEXT = os.path.join(TOP, "build", "tests", "stint-cron-next")
PLACE = os.path.join(TOP, "build", "cron")  # where npm puts the others
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Santiago", "Africa/Cairo", "Asia/Kathmandu",
         "Pacific/Apia", "Asia/Tehran", "America/Sao_Paulo", "Africa/Casablanca", "Pacific/Chatham", "America/Havana"]
FIRST, LAST = 946684800, 1735689600  # 2000 to 2024: rules of zones that have not changed in anybody's copy since
MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split()
DAYS = "SUN MON TUE WED THU FRI SAT".split()
WALK_DAYS = 41 * 366


# ---- drawing -------------------------------------------------------------------------------------------------------------------

def number(rng, least, most, names):
    value = rng.randint(least, most)
    return names[value - least] if names and rng.random() < 0.4 else str(value)


def part(rng, least, most, names):
    kind = rng.random()
    if kind < 0.5:
        return number(rng, least, most, names)
    low = rng.randint(least, most)
    high = rng.randint(low, most)
    if kind < 0.75:
        return f"{low}-{high}"
    return f"{low}-{high}/{rng.randint(1, 7)}"


def field(rng, least, most, star, step, names=None):
    kind = rng.random()
    if kind < star:
        return "*"
    if kind < star + step:
        return f"*/{rng.randint(2, max(2, (most - least) // 2))}"
    return ",".join(part(rng, least, most, names) for _ in range(1 + (rng.random() < 0.3)))


def draw_line(rng):
    fields = [field(rng, 0, 59, 0.2, 0.3), field(rng, 0, 23, 0.25, 0.25), field(rng, 1, 31, 0.6, 0.1),
              field(rng, 1, 12, 0.8, 0.05, MONTHS), field(rng, 0, 6, 0.7, 0.05, DAYS)]
    if rng.random() < 0.08:
        fields[2] = "L"
    kind = rng.random()
    if kind < 0.06:
        fields[4] = f"{rng.randint(0, 6)}L"
    elif kind < 0.12:
        fields[4] = f"{rng.choice(DAYS)}#{rng.randint(1, 5)}"
    if rng.random() < 0.3:
        fields.insert(0, field(rng, 0, 59, 0.1, 0.2))
    return " ".join(fields)


_shifts = {}


def shifts_of(zone):
    """The moments at which the clock of the zone is set, within the years that are drawn."""
    if zone not in _shifts:
        info, found, at = zoneinfo.ZoneInfo(zone), [], FIRST
        offset = lambda second: datetime.datetime.fromtimestamp(second, info).utcoffset()
        while at < LAST + 400 * 86400:
            low, high = at, at + 7 * 86400
            if offset(low) != offset(high):
                while high - low > 1:
                    middle = (low + high) // 2
                    low, high = (middle, high) if offset(middle) == offset(low) else (low, middle)
                found.append(high)
                at = high
            else:
                at = high
        _shifts[zone] = found
    return _shifts[zone]


def draw_moment(rng, zone):
    near = shifts_of(zone)
    if near and rng.random() < 0.7:
        return rng.choice(near) - rng.randint(-7200, 2 * 86400)
    return rng.randint(FIRST, LAST)


# ---- the walk ------------------------------------------------------------------------------------------------------------------

def values(text, least, most, names=()):
    found = set()
    for piece in text.split(","):
        body, _, step = piece.partition("/")
        low, _, high = body.partition("-")
        if body in ("*", "?"):
            low, high = least, most
        else:
            low = names.index(low) + least if low in names else int(low)
            high = (names.index(high) + least if high in names else int(high)) if high else (most if step else low)
        found.update(range(low, high + 1, int(step or 1)))
    return found


class Line:
    def __init__(self, text):
        fields = text.split(" ")
        second, minute, hour, day, month, weekday = fields if len(fields) == 6 else ["0", *fields]
        self.seconds, self.minutes = sorted(values(second, 0, 59)), sorted(values(minute, 0, 59))
        self.hours, self.months = sorted(values(hour, 0, 23)), values(month, 1, 12, MONTHS)
        self.follows_time = "*" in hour or "/" in hour
        self.day, self.weekday = day, weekday
        self.times = [(h * 60 + m) * 60 + s for h in self.hours for m in self.minutes for s in self.seconds]

    def takes(self, date):
        """Is it a day of the line?"""
        next_day = date + datetime.timedelta(1)
        by_day = date.month != next_day.month if self.day == "L" else date.day in values(self.day if self.day != "*" else "1-31", 1, 31)
        weekday, nth = date.isoweekday() % 7, (date.day - 1) // 7 + 1
        if self.weekday.endswith("L"):
            by_weekday = weekday == int(self.weekday[:-1]) and (date + datetime.timedelta(7)).month != date.month
        elif "#" in self.weekday:
            name, count = self.weekday.split("#")
            by_weekday = weekday == DAYS.index(name) and nth == int(count)
        else:
            by_weekday = weekday in values(self.weekday if self.weekday != "*" else "0-6", 0, 6, DAYS)
        if date.month not in self.months:
            return False
        if self.day == "*":
            return by_weekday
        return by_day if self.weekday == "*" else by_day or by_weekday


UTC = datetime.timezone.utc


def oracle(text, zone, after):
    """Day by day on the local clock; each time of a day is looked for in real time, with both of its showings."""
    line, info = Line(text), zoneinfo.ZoneInfo(zone)
    date = datetime.datetime.fromtimestamp(after, info).date() - datetime.timedelta(2)
    for _ in range(WALK_DAYS):
        found = None
        if line.takes(date):
            for time in line.times:
                local = datetime.datetime.combine(date, datetime.time(time // 3600, time // 60 % 60, time % 60))
                for second in showings(local, info, line.follows_time):
                    if second > after and (found is None or second < found):
                        found = second
        if found is not None:
            # a gap may carry a time of this day past one of the next
            return min([found, *later(line, info, date, after)])
        date += datetime.timedelta(1)
    return None


def later(line, info, date, after):
    for days in (1, 2):
        next_date = date + datetime.timedelta(days)
        if line.takes(next_date):
            for time in line.times:
                local = datetime.datetime.combine(next_date, datetime.time(time // 3600, time // 60 % 60, time % 60))
                yield from (second for second in showings(local, info, line.follows_time) if second > after)


def showings(local, info, follows_time):
    """The seconds at which the clock shows that time; in a gap, the end of the gap for a fixed time and nothing for one that
    follows real time; of two, the first for a fixed time."""
    found = []
    for fold in (0, 1):
        aware = local.replace(tzinfo=info, fold=fold)
        second = int(aware.timestamp())
        if datetime.datetime.fromtimestamp(second, info).replace(tzinfo=None) == local and second not in found:
            found.append(second)
    if found:
        return found if follows_time else found[:1]
    if follows_time:
        return []
    near = shifts_of(info.key)
    # the clock is set forward past it: the shift between its two readings
    before = int(local.replace(tzinfo=info, fold=1).timestamp()) - 1
    at = bisect.bisect_right(near, before)
    return [near[at]] if at < len(near) else []


# ---- telling -------------------------------------------------------------------------------------------------------------------

def kind_of(text, zone, ours, theirs):
    """What the difference is about."""
    if theirs == "refused":
        return "the other refuses the line"
    line, near = Line(text), shifts_of(zone)
    moments = [int(one) for one in (ours, theirs) if one.lstrip("-").isdigit()]
    close = [at for at in near if any(abs(at - moment) <= 86400 + 3600 for moment in moments)]
    if not close:
        return "no change of the clock is near"
    info = zoneinfo.ZoneInfo(zone)
    offset = lambda second: datetime.datetime.fromtimestamp(second, info).utcoffset()
    forward = offset(close[0]) > offset(close[0] - 1)
    hour = "the hour is * or has a step" if line.follows_time else "a fixed hour"
    return f"{hour}, {'a gap' if forward else 'a repeated hour'} of the clock"


def ask(command, cases, **more):
    done = subprocess.run(command, input="".join("\t".join(map(str, case)) + "\n" for case in cases), capture_output=True, text=True,
                          check=True, **more)
    answers = done.stdout.splitlines()
    assert len(answers) == len(cases), done.stderr
    return answers


def install():
    os.makedirs(PLACE, exist_ok=True)
    if not os.path.exists(os.path.join(PLACE, "node_modules", "cron-parser")):
        done = subprocess.run(["npm", "install", "--no-fund", "--no-audit", "--prefix", PLACE, "croner", "cron-parser"],
                              stdout=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            print("skipped: croner and cron-parser could not be fetched from npm")
            sys.exit(0)
    peers = os.path.join(PLACE, "peers.mjs")
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers.mjs")) as file, open(peers, "w") as copy:
        copy.write(file.read())
    return peers


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 32))
    parser.add_argument("--lines", type=int, default=100000)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    print(f"seed {options.seed}, {options.lines} lines; --seed replays it", flush=True)
    cases = []
    for _ in range(options.lines):
        zone = rng.choice(ZONES)
        cases.append((draw_line(rng), zone, draw_moment(rng, zone)))
    ours = ask([NEXT], cases)
    others = ask(["node", install()], cases)
    kinds, wrong = collections.defaultdict(list), []
    for case, mine, both in zip(cases, ours, others):
        said = dict(zip(("croner", "cron-parser"), both.split("\t")))
        differing = [name for name, answer in said.items() if answer != mine]
        if not differing:
            continue
        if all(said[name] == "refused" for name in differing):
            kinds[differing[0], "the other refuses the line"].append((case, mine, "refused"))
            continue
        found = oracle(*case)
        if (str(found) if found is not None else "never") != mine:
            wrong.append((case, mine, found, said))
        for name in differing:
            kinds[name, kind_of(case[0], case[1], mine, said[name])].append((case, mine, said[name]))
    for (name, kind), found in sorted(kinds.items()):
        (line, zone, after), mine, theirs = found[0]
        print(f"{len(found):6} {name}: {kind}; as \"{line}\" in {zone} after {after}: {mine}, {name} {theirs}")
    for case, mine, found, said in wrong[:20]:
        print(f"WRONG {case}: {mine}, the walk says {found}, the others {said}")
    print(f"{options.lines} lines, {sum(map(len, kinds.values()))} differences, decided by the walk where the other has an answer; we are wrong in {len(wrong)}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
