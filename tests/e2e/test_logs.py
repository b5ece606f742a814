"""docs/logs.md has every field that a program writes into its log, and no other."""
import os
import re
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIELD = re.compile(r"log_(?:cstr|span|int)\(([^,;]*),")  # its name, or a choice of two
PROGRAMS = {"server": ("server",), "worker": ("worker", "pool", "attempt", "agent", "exec", "worktree"), "notify": ("notify",)}


def fields_of(room):
    found = set()
    for folder, _, names in os.walk(os.path.join(TOP, "src", room)):
        for name in names:
            if name.endswith(".c"):
                with open(os.path.join(folder, name)) as file:
                    found |= {name for choice in FIELD.findall(file.read()) for name in re.findall(r'"(\w+)"', choice)}
    return found


class Logs(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(TOP, "docs", "logs.md")) as file:
            self.rows = dict(re.findall(r"^\| `(\w+)` \| .* \| ([\w, ]+) \|$", file.read(), re.M))
        self.said = {program: set().union(*map(fields_of, rooms)) for program, rooms in PROGRAMS.items()}
        self.said["all"] = fields_of("base")

    def test_every_field_has_a_row_and_every_row_a_field(self):
        every = set().union(*self.said.values())
        self.assertGreater(len(every), 40)  # the search finds them
        self.assertEqual(sorted(every - set(self.rows)), [], "these fields have no row")
        self.assertEqual(sorted(set(self.rows) - every), [], "these rows have no field")

    def test_each_program_says_what_the_page_says_of_it(self):
        for field, programs in self.rows.items():
            told = set(PROGRAMS) if programs == "all" else set(programs.split(", "))
            for program in PROGRAMS:
                if field in self.said[program]:
                    self.assertIn(program, told, field)
            if programs != "all":
                for program in told:
                    self.assertIn(field, self.said[program], (field, program))

    def test_the_rows_are_in_order(self):
        self.assertEqual(list(self.rows), sorted(self.rows))


if __name__ == "__main__":
    unittest.main()
