// Steering for intrusion detection (FlexNIC paper, section 5.1): packets whose ports have a rule group of their own go to the
// core that has the group's patterns in its cache; all others are spread by a hash that is the same for both directions of
// a flow, as it orders addresses and ports by value.
#include "frames.p4"

struct headers_t {
    entry_t    entry;
    ethernet_t ethernet;
    ipv4_t     ipv4;
    ports_t    ports;
}

struct metadata_t {
    bit<32> hash;
}

parser GroupParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
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

control GroupIngress(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    action to_core(bit<16> queue) {
        set_queue(queue);
    }
    // Flow groups by the ports that their rules name, and the cores that the greedy partition gave them.
    table groups {
        key = { hdr.ports.src: ternary; hdr.ports.dst: ternary; }
        actions = { to_core; NoAction; }
        default_action = NoAction();
        size = 128;
    }
    table spread {
        key = { meta.hash[1:0]: exact @name("hash"); }
        actions = { to_core; NoAction; }
        default_action = NoAction();
        size = 4;
    }
    apply {
        if (hdr.ports.isValid() && !groups.apply().hit) {
            bool is_low = hdr.ipv4.src < hdr.ipv4.dst;
            bit<32> low = is_low ? hdr.ipv4.src : hdr.ipv4.dst;
            bit<32> high = is_low ? hdr.ipv4.dst : hdr.ipv4.src;
            bool is_first = hdr.ports.src < hdr.ports.dst;
            bit<16> first = is_first ? hdr.ports.src : hdr.ports.dst;
            bit<16> second = is_first ? hdr.ports.dst : hdr.ports.src;
            hash(meta.hash, HashAlgorithm.crc32, (bit<32>) 0, { low, high, first, second, hdr.ipv4.protocol },
                (bit<64>) 0x100000000);
            set_mark((bit<64>) meta.hash);
            spread.apply();
        }
    }
}

control GroupEgress(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    apply { }
}

control GroupDma(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    Deliver() deliver;
    apply {
        deliver.apply(hdr.entry, nic, 0);
    }
}

control GroupDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

FlexNIC(GroupParser(), GroupIngress(), GroupEgress(), GroupDma(), GroupDeparser()) main;
