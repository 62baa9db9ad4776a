"""Carries packets between packetdrill's device, which has no Ethernet, and a link to the card. Segments stay whole."""

import select
import socket
import struct
import sys

DEVICE, LINK = "tun0", sys.argv[1]
ADDRESS = b"\x02\0\0\0\0\x01"
ALL, IPV4, ARP = 3, 0x800, 0x806
SOL_PACKET, PACKET_VNET_HDR = 263, 15
# virtio's header: flags, kind of segments, length of headers, size of segments, checksum from, checksum at.
HEADER = struct.Struct("=BBHHHH")


def moved(header, by):
    """The header of a packet whose headers begin `by` bytes later."""
    flags, kind, length, size, start, offset = HEADER.unpack(header)
    return HEADER.pack(flags, kind, length + by if kind else 0, size, start + by if flags & 1 else 0, offset)


def whole(packet):
    """A segment that is longer than the link, as a sender leaves it to its device: cut and checksum to be done."""
    at = 4 * (packet[0] & 15)
    total = sum(struct.unpack("!4H", packet[12:20])) + packet[9] + len(packet) - at
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    packet = packet[: at + 16] + struct.pack("!H", total) + packet[at + 18 :]
    return HEADER.pack(1, 1, at + 4 * (packet[at + 12] >> 4), 1400, at, 16), packet


ip, link = (socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) for _ in range(2))
for end in ip, link:
    end.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
link.bind((LINK, ALL))
card = b"\xff" * 6
ends = [link]
while True:
    if len(ends) == 1:
        # packetdrill makes its device when it starts.
        try:
            ip.bind((DEVICE, ALL))
            ends.append(ip)
        except OSError:
            pass
    for ready in select.select(ends, [], [], 0.001)[0]:
        try:
            frame, (_, protocol, how, *_) = ready.recvfrom(70000)
        except OSError:
            continue  # The device is not up yet, or no more.
        if how == socket.PACKET_OUTGOING:
            continue
        header, packet = frame[:10], frame[10:]
        if ready is ip:
            if len(packet) > 1500 and header[1] == 0:
                header, packet = whole(packet)
            link.send(moved(header, 14) + card + ADDRESS + struct.pack("!H", protocol) + packet)
        elif protocol == ARP and packet[21] == 1:
            card = packet[6:12]
            answer = packet[14:20] + b"\0\2" + ADDRESS + packet[38:42] + packet[22:32]
            link.send(bytes(10) + card + ADDRESS + struct.pack("!H", ARP) + answer)
        elif protocol == IPV4:
            card = packet[6:12]
            ip.sendto(moved(header, -14) + packet[14:], (DEVICE, IPV4))
