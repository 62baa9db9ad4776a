// An IPv4 router with an Ethernet bridge behind it: longest prefix match, TTL, checksum, MAC rewrite.
//
//     nicforge p4 run examples/p4/router.p4 --entries examples/p4/routes.toml --pcap in.pcap --pcap-out out.pcap --trace
#include <core.p4>
#include <v1model.p4>

const bit<16> ETHERTYPE_IPV4 = 0x0800;

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

struct headers_t {
    ethernet_t ethernet;
    ipv4_t     ipv4;
}

struct metadata_t {
    bit<16> next_hop;
}

error {
    BadVersion
}

parser RouterParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        verify(hdr.ipv4.version == 4 && hdr.ipv4.ihl >= 5, error.BadVersion);
        transition accept;
    }
}

control RouterVerify(inout headers_t hdr, inout metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length, hdr.ipv4.identification,
              hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control Router(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    direct_counter(CounterType.packets_and_bytes) route_counter;

    action drop() {
        mark_to_drop(standard);
    }
    action set_next_hop(bit<16> next_hop) {
        meta.next_hop = next_hop;
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        route_counter.count();
    }
    action send(bit<48> src, bit<48> dst, bit<9> port) {
        hdr.ethernet.src = src;
        hdr.ethernet.dst = dst;
        standard.egress_spec = port;
    }
    action bridge(bit<9> port) {
        standard.egress_spec = port;
    }

    table routes {
        key = { hdr.ipv4.dst: lpm; }
        actions = { set_next_hop; drop; }
        default_action = drop();
        counters = route_counter;
        size = 131072;
    }
    table next_hops {
        key = { meta.next_hop: exact; }
        actions = { send; drop; }
        default_action = drop();
        size = 4096;
    }
    table stations {
        key = { hdr.ethernet.dst: exact; }
        actions = { bridge; drop; }
        default_action = drop();
        size = 4096;
    }

    apply {
        bool bad = standard.parser_error != error.NoError || standard.checksum_error == 1;
#ifdef HOST_PORT
        if (standard.ingress_port == HOST_PORT) {
            standard.egress_spec = WIRE_PORT;
        } else
#endif
        if (bad) {
            drop();
        } else if (hdr.ipv4.isValid() && hdr.ipv4.ttl > 1) {
            if (routes.apply().hit) {
                next_hops.apply();
            }
        } else if (!hdr.ipv4.isValid()) {
            stations.apply();
        } else {
            drop();
        }
    }
}

control RouterEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply { }
}

control RouterUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply {
        update_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5,
            { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.tos, hdr.ipv4.total_length, hdr.ipv4.identification,
              hdr.ipv4.flags, hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src, hdr.ipv4.dst },
            hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control RouterDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(RouterParser(), RouterVerify(), Router(), RouterEgress(), RouterUpdate(), RouterDeparser()) main;
