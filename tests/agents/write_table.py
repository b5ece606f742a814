"""Puts the table of ./dev agents between its marks in the manual: write_table.py TABLE.md MANUAL.md"""
import sys

BEGIN, END = "<!-- seen -->\n", "<!-- end of seen -->\n"
with open(sys.argv[1]) as file:
    head, line, *rows = file.read().splitlines(keepends=True)
with open(sys.argv[2]) as file:
    text = file.read()
before, _, rest = text.partition(BEGIN)
_, _, after = rest.partition(END)
with open(sys.argv[2], "w") as file:
    file.write(before + BEGIN + "\n" + head + line + "".join(sorted(rows)) + "\n" + END + after)
