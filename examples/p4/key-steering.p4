// Key steering for memcached's binary protocol over UDP (FlexNIC paper, section 3.2): the NIC hashes the key of a request, and
// the hash says the core. All requests for a key come to one core, whose cache has its item and the locks on its way.
//
//     nicforge run scenarios/flexkvs.toml
#include <core.p4>
#include "flexnic.p4"

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8>  PROTOCOL_UDP = 17;
const bit<16> MEMCACHED = 11211;
const bit<8>  MAGIC_REQUEST = 0x80;
const bit<8>  GET = 0;
// How the NIC numbers its wire and its host.
const bit<9> WIRE = 0;
const bit<9> HOST = 100;
// Requests that the program understands have keys of 32 bytes, as the paper's have; others keep the queue that RSS gave them.
const bit<16> KEY_BYTES = 32;

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

// Flags and expiry of a SET.
header extras_t {
    bit<64> flags_and_expiry;
}

header key_t {
    bit<256> key;
}

struct headers_t {
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

parser KeyParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
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

control KeyVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control KeyIngress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    action to_core(bit<16> queue) {
        set_queue(queue);
    }
    // Figure 3, line 5: ranges of hashes, and the queues of the cores that serve them. The host repartitions keys by changing
    // entries, and clients need not know.
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
        if (standard.ingress_port == HOST) {
            standard.egress_spec = WIRE;
        } else {
            standard.egress_spec = HOST;
            if (hdr.key.isValid()) {
                hash(meta.hash, HashAlgorithm.crc32, (bit<32>) 0, { hdr.key.key }, (bit<32>) 0xffffffff);
                if (hdr.memcached.opcode != GET || !read_by_all.apply().hit) {
                    cores.apply();
                }
            }
        }
    }
}

control KeyEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}

control KeyCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control KeyDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

V1Switch(KeyParser(), KeyVerify(), KeyIngress(), KeyEgress(), KeyCompute(), KeyDeparser()) main;
