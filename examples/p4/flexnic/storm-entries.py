#!/usr/bin/env python3
"""Writes the entries of storm.p4 for both ways to lay FlexStorm's tasks out on three machines."""

LAYOUTS = {
    "balanced": [[1, 5, 9, 10], [2, 3, 6, 7, 11], [4, 8, 12, 13]],
    "grouped": [[1, 2, 9, 10], [5, 6, 7, 8], [3, 4, 11, 12, 13]],
}
HEAD = """# FlexStorm's tasks as machine {1} of three needs to know them, {0}: the queues of its own, and how tuples leave for all others. Tasks 1 to 4
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
    addresses = [f"10.0.0.{number}" for number in range(1, 4)]
    names = [f'mac = "02:00:00:00:00:0{number}", address = "10.0.0.{number}"' for number in range(1, 4)]
    for own, tasks in enumerate(machines):
        text = HEAD.format(name, own + 1)
        for queue, task in enumerate(tasks):
            text += ENTRY.format(table="workers", match=f'"hdr.ipv4.dst" = "{addresses[own]}", "hdr.tuple_.to" = {task}',
                                 action="to_worker", data=f"queue = {queue}")
            text += ENTRY.format(table="senders", match=f'"hdr.tuple_.from" = {task}, "nic.queue" = {queue}',
                                 action="from_here", data=names[own])
        for number, others in enumerate(machines):
            if number == own:
                continue
            text += ENTRY.format(table="peers", match=f'"hdr.ipv4.src" = "{addresses[number]}"', action="on",
                                 data=f"by = {number + 1}")
            for task in others:
                text += ENTRY.format(table="places", match=f'"hdr.tuple_.to" = {task}', action="to_there",
                                     data=f"by = {number + 1}, {names[number]}")
        with open(f"examples/p4/flexnic/storm-{name}-{own + 1}.toml", "w", encoding="ascii") as file:
            file.write(text)
