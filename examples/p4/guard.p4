// Before and behind a NIC's TCP: drops what a table of peers and ports forbids, and counts both.
//
//     nicforge run scenarios/paper/tn-ext.toml
#include <core.p4>
#include <v1model.p4>

const bit<16> ETHERTYPE_IPV4 = 0x0800;
const bit<8> PROTOCOL_TCP = 6;
const bit<9> HOST_PORT = 100;
const bit<9> WIRE_PORT = 0;

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

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
    ports_t    ports;
}

struct metadata_t {
}

parser GuardParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
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
            (5, 0, PROTOCOL_TCP): ports;
            default: accept;
        }
    }
    state ports {
        packet.extract(hdr.ports);
        transition accept;
    }
}

control GuardVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control Guard(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    direct_counter(CounterType.packets_and_bytes) guard_counter;

    action drop() {
        mark_to_drop(standard);
        guard_counter.count();
    }
    action pass() {
        guard_counter.count();
    }

    table guard {
        key = { hdr.ipv4.src: lpm; hdr.ports.dst: exact; }
        actions = { pass; drop; }
        default_action = pass();
        counters = guard_counter;
        size = 1024;
    }

    apply {
        if (standard.ingress_port == HOST_PORT) {
            standard.egress_spec = WIRE_PORT;
        } else {
            standard.egress_spec = HOST_PORT;
            if (hdr.ports.isValid()) {
                guard.apply();
            }
        }
    }
}

control GuardEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}

control GuardCompute(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control GuardDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.ports);
    }
}

V1Switch(GuardParser(), GuardVerify(), Guard(), GuardEgress(), GuardCompute(), GuardDeparser()) main;
