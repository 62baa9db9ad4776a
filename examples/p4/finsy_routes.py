"""Adds the routes of examples/p4-netns.toml with finsy, a controller from PyPI: ADDRESS ADDRESS, of port 0 and 1."""

import asyncio
import sys

import finsy as fy

# Prefix, port and hardware address behind it, for the NIC whose controller's address is the same argument.
ROUTES = [
    ("10.99.2.0/24", 1, "02:00:00:01:00:00"),
    ("10.99.1.0/24", 0, "02:00:0a:63:01:02"),
]


async def main(*addresses: str) -> None:
    for number, (address, (prefix, port, mac)) in enumerate(zip(addresses, ROUTES)):
        async with fy.Switch(f"nic{number}", address, fy.SwitchOptions(device_id=number + 1)) as switch:
            hop = fy.Action("send", src="02:00:00:00:00:01", dst=mac, port=port)
            await switch.write(
                [
                    +fy.P4TableEntry("next_hops", match=fy.Match(next_hop=1), action=hop),
                    +fy.P4TableEntry(
                        "routes", match=fy.Match({"hdr.ipv4.dst": prefix}), action=fy.Action("set_next_hop", next_hop=1)
                    ),
                ]
            )
    print("finsy is content")


asyncio.run(main(*sys.argv[1:]))
