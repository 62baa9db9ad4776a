// FlexKVS with the custom DMA interface (FlexNIC paper, section 3.2): the NIC steers requests by key as key-steering.p4 does,
// takes the headers off GETs and SETs, and appends the pair of a SET to a log in host memory.
//
// A core gets a message for each request, in the buffer of an entry: of a GET client and key, of a SET client and where the
// item lies in the log. Every other packet goes to the buffer whole, for software (slow path): other operations, other
// lengths, IPv6, options, fragments, wrong checksums, an expiry, a SET for which the log has no room.
//
//     nicforge run scenarios/flexkvs.toml
#include <core.p4>
#include "flexnic.p4"

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8>  PROTOCOL_UDP = 17;
const bit<16> MEMCACHED = 11211;
const bit<8>  MAGIC_REQUEST = 0x80;
const bit<8>  GET = 0;
const bit<8>  SET = 1;
const bit<16> KEY_BYTES = 32;

// What the NIC's checksum unit found wrong, and what a message is.
const bit<32> BAD_CHECKSUM = 0x14;
const bit<32> MESSAGE_GET = 0x100;
const bit<32> MESSAGE_SET = 0x200;

// Segments of the log, as FlexKVS has them.
const bit<64> SEGMENT = 0x200000;

// NIC memory, by queue.
register<bit<64>>(64) head;
register<bit<64>>(64) tail;
// Segments that the core registered, as addresses; the lowest 6 bits tell one registration from the next. 0: none.
register<bit<64>>(64) host0;
register<bit<64>>(64) host1;
register<bit<64>>(64) host2;
// Which of them comes next, where the log goes on, and where its segment ends.
register<bit<8>>(64) turn;
register<bit<64>>(64) log_at;
register<bit<64>>(64) log_end;

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

header udp_t {
    bit<16> src;
    bit<16> dst;
    bit<16> length;
    bit<16> checksum;
}

header memcached_t {
    // The frame of UDP.
    bit<16> request;
    bit<16> sequence;
    bit<16> datagrams;
    bit<16> reserved;
    // The request.
    bit<8>  magic;
    bit<8>  opcode;
    bit<16> key_length;
    bit<8>  extras_length;
    bit<8>  data_type;
    bit<16> bucket;
    bit<32> body_length;
    bit<32> opaque;
    bit<64> cas;
}

header extras_t {
    bit<32> flags;
    bit<32> expiry;
}

header key_t {
    bit<256> key;
}

// What software reads: layout.rs of interface `flexnic`.
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

// The client, as FlexKVS reads it (message.rs); behind it stands the key of a GET, or where the item of a SET lies.
header message_t {
    bit<48> peer_mac;
    bit<48> own_mac;
    bit<32> peer;
    bit<32> own;
    bit<16> peer_port;
    bit<16> own_port;
    bit<16> request;
    bit<8>  opcode;
    // 1: the item is the first of its segment, so that the one before is full.
    bit<8>  is_first;
    bit<32> opaque;
}

header place_t {
    bit<64> item;
}

// An item's header, as FlexKVS has it (table.rs): the host's order of bytes.
header item_t {
    bit<32> next;
    bit<32> expires;
    bit<32> hash;
    bit<32> value_length;
    bit<16> references;
    bit<16> key_length;
    bit<32> flags;
}

struct headers_t {
    entry_t     entry;
    message_t   message;
    place_t     place;
    item_t      item;
    ethernet_t  ethernet;
    ipv4_t      ipv4;
    udp_t       udp;
    memcached_t memcached;
    extras_t    extras;
    key_t       key;
}

struct metadata_t {
    bit<32> hash;
}

bit<32> little_endian(in bit<32> value) {
    return value[7:0] ++ value[15:8] ++ value[23:16] ++ value[31:24];
}

parser KeyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (5, 0, PROTOCOL_UDP): udp;
            default: accept;
        }
    }
    state udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst) {
            MEMCACHED: memcached;
            default: accept;
        }
    }
    state memcached {
        packet.extract(hdr.memcached);
        transition select(hdr.memcached.magic, hdr.memcached.key_length, hdr.memcached.extras_length) {
            (MAGIC_REQUEST, KEY_BYTES, 0): key;
            (MAGIC_REQUEST, KEY_BYTES, 8): extras;
            default: accept;
        }
    }
    state extras {
        packet.extract(hdr.extras);
        transition key;
    }
    state key {
        packet.extract(hdr.key);
        transition accept;
    }
}

control KeyIngress(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    action to_core(bit<16> queue) {
        set_queue(queue);
    }
    // Figure 3, line 5: ranges of hashes, and the queues of the cores that serve them.
    table cores {
        key = { meta.hash: range; }
        actions = { to_core; NoAction; }
        default_action = NoAction();
        size = 256;
    }
    // Keys that many read and few write: their GETs keep the queue that RSS gave them, so all cores read them (CREW). All other
    // requests for a key come to one core (EREW). The host moves a key from one way to the other by an entry.
    table read_by_all {
        key = { meta.hash: exact; }
        actions = { NoAction; }
        default_action = NoAction();
        size = 256;
    }
    apply {
        if (hdr.key.isValid()) {
            hash(meta.hash, HashAlgorithm.crc32, (bit<32>) 0, { hdr.key.key }, (bit<64>) 0x100000000);
            set_mark((bit<64>) meta.hash);
            if (hdr.memcached.opcode != GET || !read_by_all.apply().hit) {
                cores.apply();
            }
        }
    }
}

control KeyEgress(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    apply { }
}

control KeyDma(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    bit<32> queue;
    bit<64> first;
    bit<64> end;
    bit<32> value_length;
    bit<64> size;
    bit<64> at;
    bit<64> stop;
    bit<64> next;
    bit<8>  which;
    bit<8>  is_first;
    bool    is_whole;

    action announce(bit<32> length, bit<32> flags) {
        hdr.entry.setValid();
        hdr.entry.length = length;
        hdr.entry.hash = nic.hash;
        hdr.entry.stamp = nic.stamp;
        hdr.entry.flags = flags;
        hdr.entry.segment = nic.segment;
        hdr.entry.port = (bit<16>) nic.port;
        hdr.entry.mark = nic.mark;
        hdr.entry.full = 1;
        // After everything else: whoever sees the entry finds all that it is about.
        dma_write(nic.entry, 0, 64);
        head.write(queue, first + 1);
    }

    // The slow path.
    action whole_frame() {
        dma_write(nic.buffer, 64, nic.length);
        announce(nic.length, nic.flags);
    }

    // Takes the headers off.
    action client() {
        hdr.message.setValid();
        hdr.message.peer_mac = hdr.ethernet.src;
        hdr.message.own_mac = hdr.ethernet.dst;
        hdr.message.peer = hdr.ipv4.src;
        hdr.message.own = hdr.ipv4.dst;
        hdr.message.peer_port = hdr.udp.src;
        hdr.message.own_port = hdr.udp.dst;
        hdr.message.request = hdr.memcached.request;
        hdr.message.opcode = hdr.memcached.opcode;
        hdr.message.opaque = hdr.memcached.opaque;
        hdr.ethernet.setInvalid();
        hdr.ipv4.setInvalid();
        hdr.udp.setInvalid();
        hdr.memcached.setInvalid();
    }

    action get() {
        client();
        hdr.message.is_first = 0;
        dma_write(nic.buffer, 64, 64);
        announce(64, nic.flags | MESSAGE_GET);
    }

    action set() {
        client();
        hdr.message.is_first = is_first;
        hdr.place.setValid();
        hdr.place.item = at;
        hdr.item.setValid();
        hdr.item.next = 0;
        hdr.item.expires = 0;
        hdr.item.hash = little_endian(nic.mark[31:0]);
        hdr.item.value_length = little_endian(value_length);
        // That of the table.
        hdr.item.references = 0x0100;
        hdr.item.key_length = KEY_BYTES[7:0] ++ KEY_BYTES[15:8];
        hdr.item.flags = hdr.extras.flags;
        hdr.extras.setInvalid();
        log_at.write(queue, at + size);
        dma_write(at, 104, 56 + value_length);
        dma_write(nic.buffer, 64, 40);
        announce(40, nic.flags | MESSAGE_SET);
    }

    // The next segment that the core registered, where the present one has no room.
    action next_segment() {
        turn.read(which, queue);
        if (which == 0) {
            host0.read(next, queue);
            host0.write(queue, 0);
        } else if (which == 1) {
            host1.read(next, queue);
            host1.write(queue, 0);
        } else {
            host2.read(next, queue);
            host2.write(queue, 0);
        }
        if (next != 0) {
            turn.write(queue, which == 2 ? 8w0 : which + 1);
            at = next & 0xffffffffffffffc0;
            stop = at + SEGMENT;
            log_at.write(queue, at);
            log_end.write(queue, stop);
            is_first = 1;
        }
    }

    apply {
        queue = (bit<32>) nic.queue;
        head.read(first, queue);
        tail.read(end, queue);
        if (first == end) {
            refuse(refusal_t.QUEUE_FULL);
        } else if (nic.state == buffer_t.TOO_SHORT) {
            refuse(refusal_t.TOO_LONG);
        } else if (nic.state != buffer_t.FITS) {
            announce(0, nic.flags);
            refuse(refusal_t.BAD_BUFFER);
        } else {
            // One datagram, one packet, and all of it: lengths agree.
            is_whole = hdr.key.isValid() && (nic.flags & BAD_CHECKSUM) == 0
                && hdr.ipv4.version == 4 && hdr.ipv4.flags[0:0] == 0
                && hdr.memcached.sequence == 0 && hdr.memcached.datagrams == 1
                && (bit<32>) hdr.ipv4.total_length + 14 <= nic.length
                && hdr.ipv4.total_length == hdr.udp.length + 20
                && (bit<32>) hdr.udp.length == hdr.memcached.body_length + 40;
            if (is_whole && hdr.memcached.opcode == GET && hdr.memcached.body_length == 32) {
                get();
            } else if (is_whole && hdr.memcached.opcode == SET && hdr.extras.isValid() && hdr.extras.expiry == 0
                && hdr.memcached.cas == 0 && hdr.memcached.body_length >= 40) {
                value_length = hdr.memcached.body_length - 40;
                size = ((bit<64>) value_length + 63) & 0xfffffffffffffff8;
                is_first = 0;
                log_at.read(at, queue);
                log_end.read(stop, queue);
                if (at + size > stop) {
                    next_segment();
                }
                if (at + size <= stop) {
                    set();
                } else {
                    whole_frame();
                }
            } else {
                whole_frame();
            }
        }
    }
}

control KeyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

FlexNIC(KeyParser(), KeyIngress(), KeyEgress(), KeyDma(), KeyDeparser()) main;
