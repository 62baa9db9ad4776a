// The program of interface `flexnic` where a scenario names none: software-defined queues of whole frames.
//
// A queue is a ring of entries of 64 bytes in host memory. Software names an empty buffer for a free entry and moves the tail by a
// register write. The program writes the frame into the buffer at the head and what the NIC knows of it into the entry, whose
// last word says that it is full; software reads it, names another buffer, and the entry is free again.
#include <core.p4>
#include <flexnic.p4>

// NIC memory: where each queue begins and ends, counted without end. The NIC moves the tail when software writes its register.
register<bit<64>>(64) head;
register<bit<64>>(64) tail;

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

struct headers_t {
    entry_t entry;
}

struct metadata_t { }

parser QueueParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    state start {
        transition accept;
    }
}

control QueueIngress(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    apply { }
}

control QueueEgress(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    apply { }
}

control QueueDma(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    bit<64> first;
    bit<64> end;

    action announce(bit<32> length) {
        hdr.entry.setValid();
        hdr.entry.length = length;
        hdr.entry.hash = nic.hash;
        hdr.entry.stamp = nic.stamp;
        hdr.entry.flags = nic.flags;
        hdr.entry.segment = nic.segment;
        hdr.entry.port = (bit<16>) nic.port;
        hdr.entry.mark = nic.mark;
        hdr.entry.full = 1;
        // After the frame: whoever sees the entry finds the frame, too.
        dma_write(nic.entry, 0, 64);
        head.write((bit<32>) nic.queue, first + 1);
    }

    apply {
        head.read(first, (bit<32>) nic.queue);
        tail.read(end, (bit<32>) nic.queue);
        if (first == end) {
            refuse(refusal_t.QUEUE_FULL);
        } else if (nic.state == buffer_t.TOO_SHORT) {
            refuse(refusal_t.TOO_LONG);
        } else if (nic.state == buffer_t.FITS) {
            dma_write(nic.buffer, 64, nic.length);
            announce(nic.length);
        } else {
            // Software learns by an entry without a frame that its buffer was none.
            announce(0);
            refuse(refusal_t.BAD_BUFFER);
        }
    }
}

control QueueDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

FlexNIC(QueueParser(), QueueIngress(), QueueEgress(), QueueDma(), QueueDeparser()) main;
