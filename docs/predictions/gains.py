#!/usr/bin/env python3
"""Writes the tables of nm-05.md anew, from the report of its run.

    cargo run --release -- run scenarios/paper/nm-05.toml
    docs/predictions/gains.py out/nm-05/latest/report.json [out/members/c/nm-05/report.json ...]

The first table has the gain of `nm_nfv` over `host` by entries and I/O ways, the second by array and reads, the third those of `nm_nfv_minus`
by entries and I/O ways, the fourth some of the functions themselves. For this report, and for those of members of the machine's calibrated set, it prints what the page's text counts.
"""

import json
import re
import statistics
import sys
from pathlib import Path

PAGE = Path(__file__).parent / "nm-05.md"
SWEPT = ("rx_entries", "array_mib", "reads", "io_ways")
SHOWN = [(256, 1, 10, 11), (256, 4, 2, 0), (1024, 16, 10, 11), (2048, 32, 10, 0)]
WRITE = {
    "Gbit/s": lambda m: f"{m['throughput_gbps']:.1f}",
    "cycles/pkt": lambda m: f"{m['cycles_per_packet']['total']:.0f}",
    "stall": lambda m: f"{m['cycles_per_packet']['stall']:.0f}",
    "DDIO %": lambda m: f"{100 * m['ddio_hit_rate']:.0f}",
    "app hits %": lambda m: f"{100 * m['app_hit_rate']:.0f}",
    "memory GB/s": lambda m: f"{m['memory_gb_per_s']:.1f}",
}


def points_of(path):
    points = json.loads(Path(path).read_text())["points"]
    return {(point["variant"], *(point["params"][name] for name in SWEPT)): point["metrics"] for point in points}


def gains_of(points, variant):
    """The gain in throughput of each function over `host`, %."""
    rate = {key: metrics["throughput_gbps"] for key, metrics in points.items()}
    functions = [key[1:] for key in rate if key[0] == "host"]
    return {f: 100 * (rate[variant, *f] / rate["host", *f] - 1) for f in functions}


def lines(head, rows):
    return "".join("| " + " | ".join(map(str, row)) + " |\n" for row in [head, ["---"] * len(head), *rows])


def by(gains, down, across):
    at = [SWEPT.index(down), SWEPT.index(across)]
    values = [sorted({f[i] for f in gains}) for i in at]

    def cell(*wanted):
        some = [gain for f, gain in gains.items() if (f[at[0]], f[at[1]]) == wanted]
        return f"{statistics.mean(some):+.1f} ({min(some):+.1f} to {max(some):+.1f})"

    rows = [[value, *(cell(value, other) for other in values[1])] for value in values[0]]
    return lines([f"{down} \\ {across}", *values[1]], rows)


def shown(points):
    keys = [(variant, *f) for f in SHOWN for variant in ("host", "nm_nfv_minus", "nm_nfv")]
    rows = [[*key[1:], f"`{key[0]}`", *(write(points[key]) for write in WRITE.values())] for key in keys]
    return lines([*SWEPT, "variant", *WRITE], rows)


def counts(gains):
    values = sorted(gains.values())
    gain = ", ".join(f"{sum(value >= least for value in values)} by {least} % or more" for least in (0.1, 5, 10))
    loss = ", ".join(f"{sum(value <= -least for value in values)} by {least} % or more" for least in (0.1, 1))
    return f"{len(values)} functions gain {gain}; lose {loss}; {values[0]:+.1f} to {values[-1]:+.1f} %, median {statistics.median(values):+.1f}"


def main(paths):
    if not paths:
        sys.exit(__doc__)
    points = points_of(paths[0])
    full, minus = gains_of(points, "nm_nfv"), gains_of(points, "nm_nfv_minus")
    tables = [by(full, "rx_entries", "io_ways"), by(full, "array_mib", "reads"), by(minus, "rx_entries", "io_ways"), shown(points)]
    made = iter(tables)
    text = PAGE.read_text()
    PAGE.write_text(re.sub(r"(?:^\|.*\n)+", lambda _: next(made), text, count=len(tables), flags=re.M))
    for path in paths:
        for variant in ("nm_nfv", "nm_nfv_minus"):
            print(path, variant, counts(gains_of(points_of(path), variant)))


main(sys.argv[1:])
