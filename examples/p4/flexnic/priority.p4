// Requests with priorities (FlexNIC paper, section 6.1, resource isolation): a table gives each service its queue and the room
// that must be left there. A request that finds less is rejected before it takes anything: its client gets it back with
// the mark 255 in the TOS field.
#include "frames.p4"

// The tag of a request that goes back.
const bit<8> REJECTED = 1;

struct headers_t {
    entry_t    entry;
    ethernet_t ethernet;
    ipv4_t     ipv4;
    ports_t    ports;
}

struct metadata_t { }

parser PriorityParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
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

control PriorityIngress(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    Room() room;
    bit<64> free;
    bit<64> least;

    action serve(bit<16> queue, bit<16> room_left) {
        nic.queue = queue;
        set_queue(queue);
        least = (bit<64>) room_left;
    }
    table services {
        key = { hdr.ports.dst: exact; hdr.ipv4.tos: ternary; }
        actions = { serve; NoAction; }
        default_action = NoAction();
        size = 64;
    }
    apply {
        least = 0;
        if (hdr.ports.isValid() && services.apply().hit) {
            room.apply(nic.queue, free);
            if (free < least) {
                copy_to(nic.port, REJECTED);
                discard();
            }
        }
    }
}

control PriorityEgress(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    apply {
        if (nic.tag == REJECTED) {
            bit<48> mac = hdr.ethernet.dst;
            hdr.ethernet.dst = hdr.ethernet.src;
            hdr.ethernet.src = mac;
            bit<32> address = hdr.ipv4.dst;
            hdr.ipv4.dst = hdr.ipv4.src;
            hdr.ipv4.src = address;
            bit<16> port = hdr.ports.dst;
            hdr.ports.dst = hdr.ports.src;
            hdr.ports.src = port;
            hdr.ipv4.tos = 255;
            hdr.ipv4.checksum = 0;
            hash(hdr.ipv4.checksum, HashAlgorithm.csum16, (bit<16>) 0, { hdr.ipv4 }, (bit<32>) 0x10000);
        }
    }
}

control PriorityDma(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    Deliver() deliver;
    apply {
        deliver.apply(hdr.entry, nic, 0);
    }
}

control PriorityDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

FlexNIC(PriorityParser(), PriorityIngress(), PriorityEgress(), PriorityDma(), PriorityDeparser()) main;
