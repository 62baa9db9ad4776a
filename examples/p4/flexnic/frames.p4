// What the programs of this folder have in common: headers, queues in NIC memory, and a whole frame on its way into one.
#include <core.p4>
#include <flexnic.p4>

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8> UDP = 17;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> total_length;
    bit<16> identification;
    bit<3>  flags;
    bit<13> fragment_offset;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src;
    bit<32> dst;
}

header ports_t {
    bit<16> src;
    bit<16> dst;
}

// A full entry (layout.rs of interface `flexnic`).
header entry_t {
    bit<32> length;
    bit<32> hash;
    bit<64> stamp;
    bit<32> flags;
    bit<16> segment;
    bit<16> port;
    bit<64> mark;
    bit<192> unused;
    bit<64> full;
}

// NIC memory: where each queue begins and ends.
register<bit<64>>(64) head;
register<bit<64>>(64) tail;

// Entries that a queue has room for.
control Room(in bit<16> queue, out bit<64> room) {
    bit<64> first;
    bit<64> end;
    apply {
        head.read(first, (bit<32>) queue);
        tail.read(end, (bit<32>) queue);
        room = end - first;
    }
}

// Puts the packet into its queue; the deparser emits `entry` first.
control Deliver(inout entry_t entry, in flexnic_t nic, in bit<2> cache) {
    Room() room;
    bit<64> free;
    bit<64> first;

    action announce(bit<32> length) {
        entry.setValid();
        entry.length = length;
        entry.hash = nic.hash;
        entry.stamp = nic.stamp;
        entry.flags = nic.flags;
        entry.segment = nic.segment;
        entry.port = (bit<16>) nic.port;
        entry.mark = nic.mark;
        entry.full = 1;
        dma_write(nic.entry, 0, 64);
        head.read(first, (bit<32>) nic.queue);
        head.write((bit<32>) nic.queue, first + 1);
    }

    apply {
        room.apply(nic.queue, free);
        if (free == 0) {
            refuse(refusal_t.QUEUE_FULL);
        } else if (nic.state == buffer_t.TOO_SHORT) {
            refuse(refusal_t.TOO_LONG);
        } else if (nic.state == buffer_t.FITS) {
            dma({ 64, nic.length, dma_direction_t.TO_MEMORY, nic.buffer, cache, (bit<8>) nic.queue, dma_atomic_t.NONE });
            announce(nic.length);
        } else {
            announce(0);
            refuse(refusal_t.BAD_BUFFER);
        }
    }
}
