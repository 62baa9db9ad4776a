#!/usr/bin/env python3
"""Writes tunnels.pcap.gz: frames of four machines to eight virtual ones, each in a GRE tunnel. One flow in fifty has an address that
only the switch's daemon knows."""

import gzip
import random
import struct

PACKETS, FLOWS = 800, 400


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ip(protocol, source, destination, payload):
    header = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 1, 0x4000, 64, protocol, 0, bytes(source), bytes(destination))
    return header[:10] + struct.pack("!H", checksum(header)) + header[12:] + payload


def ethernet(last, payload):
    return bytes([2, 0, 0, 0, 9, last, 2, 0, 0, 0, 8, 1, 8, 0]) + payload


draw = random.Random(38)
flows = []
for number in range(FLOWS):
    machine = 200 + number % 40 if number % 50 == 0 else 1 + number % 8
    flows.append((1 + number % 4, machine, draw.randrange(1024, 60000), draw.choice([80, 443, 5001, 11211])))
with gzip.GzipFile("scenarios/captures/tunnels.pcap.gz", "wb", mtime=0) as file:
    file.write(struct.pack("=IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    for number in range(PACKETS):
        source, machine, port, service = flows[draw.randrange(FLOWS)]
        data = bytes(draw.choice([64, 512, 1024, 1400]))
        udp = struct.pack("!HHHH", port, service, 8 + len(data), 0) + data
        inner = ethernet(machine, ip(17, (10, 8, 0, source), (10, 9, 0, machine), udp))
        frame = ethernet(99, ip(47, (10, 1, 0, source), (10, 1, 0, 99), b"\0\0\x65\x58" + inner))
        file.write(struct.pack("=IIII", 0, number, len(frame), len(frame)) + frame)
