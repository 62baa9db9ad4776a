"""Sets a program with finsy, adds, reads, changes and deletes a route, exchanges packets: ADDRESS P4INFO PROGRAM."""

import asyncio
import sys
from pathlib import Path

import finsy as fy


async def main(address: str, p4info: str, program: str) -> None:
    options = fy.SwitchOptions(p4info=Path(p4info), p4blob=Path(program), p4force=True)
    async with fy.Switch("nic", address, options) as switch:
        print("version", switch.p4runtime_version)
        match = fy.Match(dst="10.0.0.0/8")
        forward = fy.Action("forward", port=3, dst="02:00:00:00:00:03")
        await switch.write([+fy.P4TableEntry("route", match=match, action=forward)])
        found = [entry async for entry in switch.read(fy.P4TableEntry("route"))]
        assert len(found) == 1, found
        await switch.write([~fy.P4TableEntry("route", match=match, action=fy.Action("to_controller"))])
        try:
            await switch.write([+fy.P4TableEntry("route", match=match, action=forward)])
        except fy.P4ClientError as error:
            assert "ALREADY_EXISTS" in str(error) or "AlreadyExists" in str(error), error
        else:
            raise AssertionError("the entry exists already")
        counters = [entry async for entry in switch.read(fy.P4CounterEntry("ports"))]
        assert len(counters) == 16, counters
        # A packet that the program sends back: port 510 is the controllers'.
        ethernet = bytes(6) + bytes.fromhex("020000000009") + bytes.fromhex("0800")
        ipv4 = bytes.fromhex("4500003200000000401100000a0101010a010203")
        packet = ethernet + ipv4 + bytes(30)
        # The iterator listens from its first step on.
        first = asyncio.ensure_future(anext(aiter(switch.read_packets())))
        await asyncio.sleep(0.5)
        await switch.write([fy.P4PacketOut(packet, egress_port=510)])
        arrived = await asyncio.wait_for(first, 20)
        assert arrived.payload.endswith(packet[2:]), arrived
        await switch.write([-fy.P4TableEntry("route", match=match)])
        assert not [entry async for entry in switch.read(fy.P4TableEntry("route"))]
    print("finsy is content")


asyncio.run(main(*sys.argv[1:4]))
