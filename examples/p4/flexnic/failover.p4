// Fast failover (FlexNIC paper, section 6.1): when the operating system finds that a service has died it adds an entry, and from
// the next packet on a replica on another machine gets the service's packets.
#include "frames.p4"

struct headers_t {
    entry_t    entry;
    ethernet_t ethernet;
    ipv4_t     ipv4;
    ports_t    ports;
}

struct metadata_t { }

parser FailoverParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
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

control FailoverIngress(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    action to_replica(bit<48> mac, bit<32> address, bit<9> port) {
        hdr.ethernet.src = hdr.ethernet.dst;
        hdr.ethernet.dst = mac;
        hdr.ipv4.dst = address;
        hdr.ipv4.checksum = 0;
        hash(hdr.ipv4.checksum, HashAlgorithm.csum16, (bit<16>) 0, { hdr.ipv4 }, (bit<32>) 0x10000);
        send_to(port);
    }
    table failed {
        key = { hdr.ipv4.dst: exact; hdr.ports.dst: exact; }
        actions = { to_replica; NoAction; }
        default_action = NoAction();
        size = 64;
    }
    apply {
        if (hdr.ports.isValid()) {
            failed.apply();
        }
    }
}

control FailoverEgress(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    apply { }
}

control FailoverDma(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    Deliver() deliver;
    apply {
        deliver.apply(hdr.entry, nic, 0);
    }
}

control FailoverDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

FlexNIC(FailoverParser(), FailoverIngress(), FailoverEgress(), FailoverDma(), FailoverDeparser()) main;
