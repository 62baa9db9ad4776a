#!/usr/bin/env python3
"""Writes the tables of docs/predictions anew, from the reports of runs.

    cargo run --release -- run scenarios/paper/rxb-10.toml          # and so on
    docs/predictions/tables.py out [out/members/a out/members/b ...]

The first folder has a folder for each scenario. The further ones have the same of the members of the machine's
calibrated set. In each page of a scenario that has run, the first table becomes that of the run's points. A
value has the 95 % interval of its run behind ±, and its range over the members in brackets, where they have run.
Further tables whose columns are parameters and variants have each point's Gbit/s written anew, too.

Pages of whole systems have tables with columns of their own. In those with a line for each point the values of known
columns are written anew, with intervals, and the others stay: where values change besides, the script says so. A
table under "All points" has the columns of all other pages.
"""

import json
import re
import statistics
import sys
from pathlib import Path

ROWS_MAX = 64
OWN_TABLES = ("int-", "fx-", "tn-", "off-", "integrated-")
# Columns of whole systems: path in the metrics, and what a value is multiplied by.
OWN_COLUMNS = {
    "M RPCs/s": ("rpc_mps", 1),
    "thousand messages/s": ("rpc_mps", 1000),
    "payload Gbit/s": ("bandwidth_gbps", 1),
    "wire Gbit/s": ("throughput_gbps", 1),
    "p50 µs": ("latency_us.p50", 1),
    "p99 µs": ("latency_us.p99", 1),
    "p99.99 µs": ("latency_us.curve.99.99", 1),
    "p50 of a message µs": ("latency_us.p50", 1),
    "p99 of a message µs": ("latency_us.p99", 1),
    "Jain": ("fairness", 1),
    "M requests/s": ("throughput_mpps", 1),
    "thousand packets/s": ("throughput_mpps", 1000),
    "cycles a request": ("cycles_per_packet.total", 1),
    "cycles a packet": ("cycles_per_packet.total", 1),
    "LLC accesses a packet": ("core_llc_accesses_per_packet", 1),
    "memory GB/s": ("memory_gb_per_s", 1),
    "M tuples/s": ("tuples_mps", 1),
    "counted M/s": ("counted_mps", 1),
    "input µs": ("tuple_us.input", 1),
    "processing µs": ("tuple_us.work", 1),
    "output µs": ("tuple_us.output", 1),
    "Gbit/s": ("bandwidth_gbps", 1),
    "misses/KB": ("misses_per_kb", 1),
    "interrupts kHz": ("interrupts_khz", 1),
    **{f"{part} %": (f"cpu_time.{part}", 100) for part in ("interrupt", "driver", "stack", "copy", "user", "idle")},
}
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
    ("M tuples/s", "tuples_mps", plain(2), True),
    ("counted M/s", "counted_mps", plain(2), True),
    ("input µs", "tuple_us.input", plain(2), True),
    ("work µs", "tuple_us.work", plain(2), True),
    ("output µs", "tuple_us.output", plain(2), True),
]
# Behind this heading stands a table of all points with the columns above.
ALL = "\n## All points\n"


OF_CORES = ("busy", "thousand cycles a message")


def value_at(metrics, path):
    curve, found, percentile = path.partition(".curve.")
    if found:
        return dict((value_at(metrics, curve) or {"curve": []})["curve"]).get(float(percentile))
    for name in path.split("."):
        metrics = metrics.get(name) if isinstance(metrics, dict) else None
    return metrics


def key_of(point):
    return json.dumps([point["variant"], point["params"]], sort_keys=True)


def put_beside(report, members):
    """Each point of a report gets the metrics that it has on the members."""
    by_key = [{key_of(point): point["metrics"] for point in member["points"]} for member in members]
    for point in report["points"]:
        point["members"] = [metrics[key_of(point)] for metrics in by_key if key_of(point) in metrics]
    return report


def cell(point, path, write, beside):
    value = value_at(point["metrics"], path)
    if value is None:
        return ""
    text = write(value)
    interval = point.get("intervals", {}).get(path)
    if beside and interval and float(write(interval["half_width"])) > 0:
        text += f" ± {write(interval['half_width'])}"
    values = [value_at(metrics, path) for metrics in point["members"]]
    values = [value] + [other for other in values if other is not None]
    least, most = write(min(values)), write(max(values))
    if beside and least != most:
        text += f" [{least}–{most}]"
    return text


def rows_of(report):
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
        row = [f"`{point['variant']}`"] if variants else []
        row += [str(point["params"].get(name, "")) for name in varied]
        rows.append(row + [cell(point, *column[1:]) for column in columns])
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


def table(report):
    head, rows = summary_of(report) if len(report["points"]) > ROWS_MAX else rows_of(report)
    lines = [head, ["---"] * len(head)] + rows
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def variants_table(report, text):
    """A table whose columns are some of the parameters, and variants: Gbit/s of each point, anew."""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    titles = [title.strip("`") for title in lines[0]]
    params = report["points"][0]["params"]
    variants = {point["variant"] for point in report["points"]}
    if not all(title in params or title in variants for title in titles) or not variants & set(titles):
        return text
    for cells in lines[2:]:
        given = {title: cell for title, cell in zip(titles, cells) if title in params}
        for column, title in enumerate(titles):
            point = named(report, {**given, "variant": title}) if title in variants else None
            if point:
                cells[column] = cell(point, *COLUMNS[0][1:])
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def report_in(folder, scenario):
    for path in (folder / scenario / "latest" / "report.json", folder / scenario / "report.json"):
        if path.exists():
            return json.loads(path.read_text())
    return None


def of_cores(report, point, title):
    """What follows from how busy cores were."""
    busy = [core["busy_fraction"] for core in point["cores"]]
    if title == "busy":
        return f"{100 * statistics.mean(busy):.0f} %"
    hertz = 1e9 * next(p["value"] for p in report["machine_parameters"] if p["key"] == "core.frequency_ghz")
    return f"{sum(busy) * hertz / (point['metrics']['rpc_mps'] * 1e6) / 1e3:.0f}"


def own_cell(report, point, title, before):
    """Written with as many digits as it was; `None` where the column is not known."""
    if title in OF_CORES:
        return of_cores(report, point, title)
    if title not in OWN_COLUMNS:
        return None
    path, times = OWN_COLUMNS[title]
    value = value_at(point["metrics"], path)
    if value is None:
        return before
    value *= times
    written = before.split(" ")[0]
    digits = len(written.partition(".")[2])
    text = f"{value:.{digits}f}"
    interval = point.get("intervals", {}).get(path)
    half = f"{times * interval['half_width']:.{digits}f}" if interval else "0"
    text += f" ± {half}" if float(half) > 0 else ""
    values = [value_at(metrics, path) for metrics in point["members"]]
    values = [value] + [times * other for other in values if other is not None]
    least, most = (f"{end:.{digits}f}" for end in (min(values), max(values)))
    text += f" [{least}–{most}]" if least != most else ""
    return text + (" %" if before.endswith(" %") else "")


def named(report, given):
    """The only point that has these values of variant and parameters, if there is one."""

    def fits(point):
        values = {**point["params"], "variant": point["variant"]}
        return all(str(values.get(name)) == value for name, value in given.items())

    points = [point for point in report["points"] if given and fits(point)]
    return points[0] if len(points) == 1 else None


def by_clock(report, titles, cells):
    """A line of bandwidths by clock, of the place that it begins with."""
    mib = titles[0].split(" ")[0]
    points = [named(report, {"placement": cells[0], "cache_mib": mib, "cpu_ghz": f"{ghz.split(' ')[0]}.0"}) for ghz in titles[1:]]
    return cells[:1] + [own_cell(report, point, "Gbit/s", cell) if point else cell for point, cell in zip(points, cells[1:])]


def own_row(report, given, titles, cells):
    """The cells of a line anew, if it is one point's."""
    if all(re.fullmatch(r"\d+ GHz", title) for title in titles[1:]):
        return by_clock(report, titles, cells)
    params = {**report["points"][0]["params"], "variant": ""}
    named_here = {title: cell.strip("`") for title, cell in zip(titles, cells) if title in params}
    if titles[0] == "place":
        named_here["placement"] = cells[0]
    point = named(report, {**given, **named_here} if named_here else {})
    return point and [own_cell(report, point, title, cell) or cell for title, cell in zip(titles, cells)]


def own_table(page, reports, before, text):
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    titles = lines[0]
    kept = [title for title in titles if title not in (*OWN_COLUMNS, *OF_CORES, "variant", "place")]
    kept = [title for title in kept if title not in reports[0]["points"][0]["params"] and not re.search("GHz|MiB", title)]
    # What the line before the table says of all its lines.
    said = re.search(r"(\d+) GHz, (\d+) MiB:\s*$", before)
    given = {"cpu_ghz": f"{said[1]}.0", "cache_mib": said[2]} if said else {}
    for number, cells in enumerate(lines[2:], 2):
        anew = next(filter(None, (own_row(report, given, titles, cells) for report in reports)), None)
        if anew is None:
            continue
        bare = [[re.split(r" ± | \[", cell)[0].rstrip(" %") for cell in line] for line in (cells, anew)]
        if kept and bare[0] != bare[1]:
            print(f"{page.name}: values of {cells[:3]} moved; look at the columns {', '.join(kept)}, too")
        lines[number] = anew
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def write_own(page, reports):
    text, heading, of_all = page.read_text().partition(ALL)
    of_all = heading and f"\n{table(reports[0])}"
    anew = lambda found: own_table(page, reports, text[: found.start()], found[0])
    page.write_text(re.sub(r"(?:^\|.*\n)+", anew, text, flags=re.M) + heading + of_all)
    print(page)


def main(folders):
    if not folders:
        sys.exit(__doc__)
    out, *others = [Path(folder) for folder in folders]
    for page in sorted(PAGES.glob("*.md")):
        if report_in(out, page.stem) is None:
            continue
        found_in = lambda name: [member for member in (report_in(folder, name) for folder in others) if member]
        with_members = lambda name: put_beside(report_in(out, name), found_in(name))
        report = with_members(page.stem)
        if page.stem.startswith(OWN_TABLES):
            # A page may show a second scenario, whose name begins as its own does.
            names = {path.name for path in out.glob(f"{page.stem}-*") if not (PAGES / f"{path.name}.md").exists()}
            write_own(page, [report, *(with_members(name) for name in sorted(names))])
            continue
        text = page.read_text()
        tables = iter([table(report)])
        anew = lambda found: next(tables, None) or variants_table(report, found[0])
        made, found = re.subn(r"(?:^\|.*\n)+", anew, text, flags=re.M)
        if found:
            page.write_text(made)
            print(page)


main(sys.argv[1:])
