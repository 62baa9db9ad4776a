// Congestion control without trust in applications (FlexNIC paper, section 2.3). Ingress takes the ECN bits out before a packet
// reaches its application and counts them by sender, where the operating system reads them. Egress holds each application to the
// rate that the operating system set, by a meter; the mark of a packet that leaves is its application's number.
#include "frames.p4"

const bit<2> CONGESTION_EXPERIENCED = 3;

struct headers_t {
    entry_t    entry;
    ethernet_t ethernet;
    ipv4_t     ipv4;
}

struct metadata_t { }

// Packets, and those that a switch marked, by the low byte of the sender's address.
register<bit<64>>(256) seen;
register<bit<64>>(256) marked;

parser LimitParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            default: accept;
        }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control LimitIngress(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    bit<64> count;
    apply {
        if (hdr.ipv4.isValid()) {
            bit<32> sender = (bit<32>) hdr.ipv4.src[7:0];
            seen.read(count, sender);
            seen.write(sender, count + 1);
            if (hdr.ipv4.tos[1:0] == CONGESTION_EXPERIENCED) {
                marked.read(count, sender);
                marked.write(sender, count + 1);
            }
            if (hdr.ipv4.tos[1:0] != 0 && hdr.ipv4.ihl == 5) {
                hdr.ipv4.tos[1:0] = 0;
                hdr.ipv4.checksum = 0;
                hash(hdr.ipv4.checksum, HashAlgorithm.csum16, (bit<16>) 0, { hdr.ipv4 }, (bit<32>) 0x10000);
            }
        }
    }
}

control LimitEgress(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    meter(256, MeterType.bytes) rates;
    bit<2> color;
    apply {
        rates.execute_meter((bit<32>) nic.mark[7:0], color);
        // Red.
        if (color == 2) {
            discard();
        }
    }
}

control LimitDma(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    Deliver() deliver;
    apply {
        deliver.apply(hdr.entry, nic, 0);
    }
}

control LimitDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

FlexNIC(LimitParser(), LimitIngress(), LimitEgress(), LimitDma(), LimitDeparser()) main;
