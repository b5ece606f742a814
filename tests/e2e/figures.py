"""Figures that a test meets on its way: memory, times, processor. A busy machine changes them, so no test judges them:
./dev bench figures prints each beside its bar."""
import sys

MIB = 1 << 20


def figure(what, value, unit, bar):
    """`bar` is what the value stays below on a quiet machine."""
    print("\nfigure: %s\t%s\t%s\t%s" % (what, round(value, 2 if value < 100 else 0), bar, unit),
          file=sys.stderr, flush=True)
