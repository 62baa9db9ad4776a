// A virtual switch's datapath (FlexNIC paper, section 6.1): packets of a GRE tunnel lose its headers and go to the queue of the virtual
// machine that a rule names: rules of five fields first, then wildcard rules. What no rule knows goes whole to the daemon, on queue
// 0 with mark 1; it decides, and adds a rule for the packets to come.
#include "frames.p4"

const bit<8> GRE = 47;
const bit<16> TRANSPARENT_BRIDGING = 0x6558;

header gre_t {
    bit<16> flags;
    bit<16> protocol;
}

struct headers_t {
    entry_t    entry;
    ethernet_t outer_ethernet;
    ipv4_t     outer_ipv4;
    gre_t      gre;
    ethernet_t ethernet;
    ipv4_t     ipv4;
    ports_t    ports;
}

struct metadata_t { }

parser SwitchParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    state start {
        packet.extract(hdr.outer_ethernet);
        transition select(hdr.outer_ethernet.ether_type) {
            ETHERTYPE_IPV4: outer_ipv4;
            default: accept;
        }
    }
    state outer_ipv4 {
        packet.extract(hdr.outer_ipv4);
        transition select(hdr.outer_ipv4.ihl, hdr.outer_ipv4.fragment_offset, hdr.outer_ipv4.protocol) {
            (5, 0, GRE): gre;
            default: accept;
        }
    }
    state gre {
        packet.extract(hdr.gre);
        // Without keys, checksums and sequence numbers.
        transition select(hdr.gre.flags, hdr.gre.protocol) {
            (0, TRANSPARENT_BRIDGING): ethernet;
            default: accept;
        }
    }
    state ethernet {
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

control SwitchIngress(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    action to_machine(bit<16> queue) {
        set_queue(queue);
        hdr.outer_ethernet.setInvalid();
        hdr.outer_ipv4.setInvalid();
        hdr.gre.setInvalid();
    }
    action to_daemon() {
        set_queue(0);
        set_mark(1);
    }
    action drop() {
        discard();
    }
    table flows {
        key = {
            hdr.ipv4.src: exact;
            hdr.ipv4.dst: exact;
            hdr.ipv4.protocol: exact;
            hdr.ports.src: exact;
            hdr.ports.dst: exact;
        }
        actions = { to_machine; drop; NoAction; }
        default_action = NoAction();
        size = 4096;
    }
    table wildcards {
        key = {
            hdr.ethernet.dst: ternary;
            hdr.ipv4.src: ternary;
            hdr.ipv4.dst: ternary;
            hdr.ipv4.protocol: ternary;
            hdr.ports.dst: ternary;
        }
        actions = { to_machine; drop; to_daemon; }
        default_action = to_daemon();
        size = 256;
    }
    apply {
        if (!hdr.ports.isValid()) {
            to_daemon();
        } else if (!flows.apply().hit) {
            wildcards.apply();
        }
    }
}

control SwitchEgress(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    apply { }
}

control SwitchDma(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    Deliver() deliver;
    apply {
        deliver.apply(hdr.entry, nic, 0);
    }
}

control SwitchDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

FlexNIC(SwitchParser(), SwitchIngress(), SwitchEgress(), SwitchDma(), SwitchDeparser()) main;
