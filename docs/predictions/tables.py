#!/usr/bin/env python3
"""Writes the tables of docs/predictions anew, from the reports of runs.

    cargo run --release -- run scenarios/paper/rxb-10.toml          # and so on
    docs/predictions/tables.py out [out/members/a out/members/b ...]

The first folder has a folder for each scenario. The further ones have the same of the members of the machine's
calibrated set. In each page of a scenario that has run, the first table becomes that of the run's points. A
value has the 95 % interval of its run behind ±, and its range over the members in brackets, where they have run.
Pages of whole systems have tables with columns of their own, which stay.
"""

import json
import re
import statistics
import sys
from pathlib import Path

ROWS_MAX = 64
OWN_TABLES = ("int-", "fx-", "tn-", "off-", "integrated-")
PAGES = Path(__file__).parent


def share(value):
    return f"{100 * value:.1f}"


def plain(digits):
    return lambda value: f"{value:.{digits}f}"


# Title, path in the metrics, how it is written, whether interval and range stand beside it.
COLUMNS = [
    ("Gbit/s", "throughput_gbps", plain(1), True),
    ("dropped %", "drop_fraction", share, False),
    ("mean µs", "latency_us.mean", plain(1), True),
    ("p99 µs", "latency_us.p99", plain(0), False),
    ("no-drop Gbit/s", "no_drop_gbps", plain(1), True),
    ("copied GB/s", "copy_gb_per_s", plain(2), True),
    ("rx full %", "rx_occupancy", share, False),
    ("DDIO %", "ddio_hit_rate", share, False),
    ("app hits %", "app_hit_rate", share, False),
    ("state misses %", "flow_state_miss_rate", share, False),
    ("cores' hits %", "core_hit_rate", share, False),
    ("memory GB/s", "memory_gb_per_s", plain(1), True),
    ("PCIe read µs", "pcie_read_us", plain(2), False),
    ("cycles/pkt", "cycles_per_packet.total", plain(0), True),
    ("sync", "cycles_per_packet.sync", plain(0), False),
    ("stall", "cycles_per_packet.stall", plain(0), False),
    ("idle %", "idle_fraction", share, False),
]


def value_at(metrics, path):
    for name in path.split("."):
        metrics = metrics.get(name) if isinstance(metrics, dict) else None
    return metrics


def key_of(point):
    return json.dumps([point["variant"], point["params"]], sort_keys=True)


def cell(point, others, path, write, beside):
    value = value_at(point["metrics"], path)
    if value is None:
        return ""
    text = write(value)
    interval = point.get("intervals", {}).get(path)
    if beside and interval and float(write(interval["half_width"])) > 0:
        text += f" ± {write(interval['half_width'])}"
    values = [value_at(other["metrics"], path) for other in others]
    values = [value] + [other for other in values if other is not None]
    if beside and len(values) > 1:
        text += f" [{write(min(values))}–{write(max(values))}]"
    return text


def rows_of(report, members):
    by_key = [{key_of(point): point for point in member["points"]} for member in members]
    points = report["points"]
    varied = [
        name
        for name in points[0]["params"]
        if name != "interface" and len({json.dumps(point["params"].get(name)) for point in points}) > 1
    ]
    variants = len({point["variant"] for point in points}) > 1
    columns = [c for c in COLUMNS if any(value_at(p["metrics"], c[1]) is not None for p in points)]
    head = (["variant"] if variants else []) + [f"`{name}`" for name in varied] + [c[0] for c in columns]
    rows = []
    for point in points:
        others = [keys[key_of(point)] for keys in by_key if key_of(point) in keys]
        row = [f"`{point['variant']}`"] if variants else []
        row += [str(point["params"].get(name, "")) for name in varied]
        rows.append(row + [cell(point, others, *column[1:]) for column in columns])
    return head, rows


def summary_of(report):
    """Of too many points for a page: the least, the middle and the most of each variant."""
    columns = [c for c in COLUMNS if c[3]]
    columns = [c for c in columns if any(value_at(p["metrics"], c[1]) is not None for p in report["points"])]
    rows = []
    for variant in dict.fromkeys(point["variant"] for point in report["points"]):
        row = [f"`{variant}`"]
        mine = [point["metrics"] for point in report["points"] if point["variant"] == variant]
        row.append(str(len(mine)))
        for _, path, write, _ in columns:
            values = [value for value in (value_at(m, path) for m in mine) if value is not None]
            each = (min(values), statistics.median(values), max(values)) if values else ()
            row.append(" / ".join(write(value) for value in each))
        rows.append(row)
    return ["variant", "points"] + [c[0] + ", least / median / most" for c in columns], rows


def table(report, members):
    head, rows = summary_of(report) if len(report["points"]) > ROWS_MAX else rows_of(report, members)
    lines = [head, ["---"] * len(head)] + rows
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def report_in(folder, scenario):
    for path in (folder / scenario / "latest" / "report.json", folder / scenario / "report.json"):
        if path.exists():
            return json.loads(path.read_text())
    return None


def main(folders):
    if not folders:
        sys.exit(__doc__)
    out, *others = [Path(folder) for folder in folders]
    for page in sorted(PAGES.glob("*.md")):
        if page.stem.startswith(OWN_TABLES):
            continue
        report = report_in(out, page.stem)
        if report is None:
            continue
        members = [member for member in (report_in(folder, page.stem) for folder in others) if member]
        text = page.read_text()
        made, found = re.subn(r"(?:^\|.*\n)+", lambda _: table(report, members), text, count=1, flags=re.M)
        if found:
            page.write_text(made)
            print(page)


main(sys.argv[1:])
