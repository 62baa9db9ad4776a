"""Sets a program with p4runtime-shell, adds, reads and deletes entries: ADDRESS P4INFO PROGRAM."""

import sys

import p4runtime_sh.shell as sh
from p4runtime_sh.p4runtime import P4RuntimeWriteException


def main(address: str, p4info: str, program: str) -> None:
    config = sh.FwdPipeConfig(p4info, program)
    sh.setup(device_id=1, grpc_addr=address, election_id=(0, 20), config=config, verbose=False)
    try:
        route = sh.TableEntry("route")(action="forward")
        route.match["dst"] = "10.0.0.0/8"
        route.action["port"] = "3"
        route.action["dst"] = "02:00:00:00:00:03"
        route.insert()
        found = list(sh.TableEntry("route").read())
        assert len(found) == 1, found
        acl = sh.TableEntry("acl")(action="drop")
        acl.match["hdr.ipv4.src"] = "192.168.0.0&&&255.255.0.0"
        acl.priority = 10
        acl.insert()
        counter = sh.CounterEntry("ports")
        counter.index = 3
        assert len(list(counter.read())) == 1
        route.delete()
        try:
            route.delete()
        except P4RuntimeWriteException as error:
            assert "NOT_FOUND" in str(error), error
        else:
            raise AssertionError("there was nothing to delete")
    finally:
        sh.teardown()
    print("p4runtime-shell is content")


main(*sys.argv[1:4])
