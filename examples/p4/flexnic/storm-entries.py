#!/usr/bin/env python3
"""Writes the entries of storm.p4 for both ways to lay FlexStorm's tasks out on three machines."""

LAYOUTS = {
    "balanced": [[1, 5, 9, 10], [2, 3, 6, 7, 11], [4, 8, 12, 13]],
    "grouped": [[1, 2, 9, 10], [5, 6, 7, 8], [3, 4, 11, 12, 13]],
}
HEAD = """# FlexStorm's tasks on three machines, {0}: the queue of each where it runs, and how its tuples leave and arrive. Tasks 1 to 4
# are spouts, 5 to 8 counters, 9 to 12 rankers, 13 the aggregator. Written by storm-entries.py.
"""
ENTRY = """
[[entry]]
table = "{table}"
match = {{ {match} }}
action = "{action}"
data = {{ {data} }}
"""

for name, machines in LAYOUTS.items():
    text = HEAD.format(name)
    for number, tasks in enumerate(machines, 1):
        address = f"10.0.0.{number}"
        here = f'mac = "02:00:00:00:00:0{number}", address = "{address}"'
        text += ENTRY.format(table="peers", match=f'"hdr.ipv4.src" = "{address}"', action="on",
                             data=f"by = {number}")
        for queue, task in enumerate(tasks):
            text += ENTRY.format(table="workers", match=f'"hdr.ipv4.dst" = "{address}", "hdr.tuple_.to" = {task}',
                                 action="to_worker", data=f"queue = {queue}")
            text += ENTRY.format(table="senders", match=f'"hdr.tuple_.from" = {task}', action="from_here", data=here)
            text += ENTRY.format(table="places", match=f'"hdr.tuple_.to" = {task}', action="to_there",
                                 data=f"by = {number}, {here}")
    with open(f"examples/p4/flexnic/storm-{name}.toml", "w", encoding="ascii") as file:
        file.write(text)
