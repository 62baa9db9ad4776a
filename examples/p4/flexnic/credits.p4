// Cache flow control (FlexNIC paper, section 6.2): the NIC writes frames to the cache while software has fewer than a number of them
// in hand, and to DRAM beyond. Software gives credits back with frames of a local experimental type, which end in the NIC.
#include "frames.p4"

// Frames that the cache has room for.
const bit<64> IN_CACHE = 4;
const bit<2> LAST_LEVEL = 3;
const bit<2> MEMORY = 1;
// IEEE 802, local experimental; the credits stand in the source address.
const bit<16> CREDITS = 0x88b5;

register<bit<64>>(1) in_hand;

struct headers_t {
    entry_t    entry;
    ethernet_t ethernet;
    ipv4_t     ipv4;
    ports_t    ports;
}

struct metadata_t { }

parser CreditParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
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
            (5, 0, 6): ports;
            (5, 0, UDP): ports;
            default: accept;
        }
    }
    state ports {
        packet.extract(hdr.ports);
        transition accept;
    }
}

control CreditIngress(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    apply { }
}

control CreditEgress(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    bit<64> frames;
    apply {
        if (hdr.ethernet.ether_type == CREDITS) {
            in_hand.read(frames, 0);
            in_hand.write(0, frames |-| (bit<64>) hdr.ethernet.src);
            consume();
        }
    }
}

control CreditDma(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    Deliver() deliver;
    bit<64> frames;
    bit<2> cache;
    apply {
        in_hand.read(frames, 0);
        cache = MEMORY;
        if (frames < IN_CACHE) {
            cache = LAST_LEVEL;
            in_hand.write(0, frames + 1);
        }
        deliver.apply(hdr.entry, nic, cache);
    }
}

control CreditDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

FlexNIC(CreditParser(), CreditIngress(), CreditEgress(), CreditDma(), CreditDeparser()) main;
