"""Rows of the acceptance table: what was measured, what was wanted, and whether it holds."""
import dataclasses
import json
import sys


@dataclasses.dataclass
class Row:
    item: str
    measured: str
    wanted: str
    ok: bool


class Table:
    """Collects rows and shows each as it comes, so that a run that is cut short has told something."""

    def __init__(self):
        self.rows = []

    def add(self, item, measured, wanted, ok):
        row = Row(item, str(measured), str(wanted), bool(ok))
        self.rows.append(row)
        print(f"{'ok  ' if row.ok else 'FAIL'}  {row.item}: {row.measured}  (wanted: {row.wanted})", flush=True)

    def at_most(self, item, value, limit, unit="", digits=3):
        text = "nothing" if value is None else f"{value:.{digits}f}{unit}"
        self.add(item, text, f"<= {limit}{unit}", value is not None and value <= limit)

    def at_least(self, item, value, limit, unit="", digits=3):
        text = "nothing" if value is None else f"{value:.{digits}f}{unit}"
        self.add(item, text, f">= {limit}{unit}", value is not None and value >= limit)

    def equal(self, item, value, wanted):
        self.add(item, value, wanted, value == wanted)

    def fail(self, item, why):
        self.add(item, why, "to run", False)

    def failures(self):
        return [row for row in self.rows if not row.ok]

    def print(self, out=sys.stdout):
        widths = [max(len(getattr(row, name)) for row in self.rows) if self.rows else 0
                  for name in ("item", "measured", "wanted")]
        print(f"\n{'item':{widths[0]}}  {'measured':{widths[1]}}  {'wanted':{widths[2]}}", file=out)
        for row in self.rows:
            print(f"{row.item:{widths[0]}}  {row.measured:{widths[1]}}  {row.wanted:{widths[2]}}  "
                  f"{'ok' if row.ok else 'FAIL'}", file=out)
        print(f"{len(self.rows) - len(self.failures())} ok, {len(self.failures())} failed", file=out, flush=True)

    def write_json(self, path):
        with open(path, "w", encoding="utf-8") as file:
            json.dump([dataclasses.asdict(row) for row in self.rows], file, indent=1)
