// Memory that may be absent (FlexNIC paper, section 6.1, resource virtualisation). A datagram to port 4000 writes its 8 bytes of data to
// the address in front of them. The operating system's table says which pages are there; a write to one that is not goes to
// the slow path, a queue whose software brings the page in and writes itself. Its sender sees no difference.
#include "frames.p4"

const bit<16> WRITES = 4000;

header udp_t {
    bit<16> length;
    bit<16> checksum;
}

header write_t {
    bit<64> address;
    bit<64> data;
}

struct headers_t {
    entry_t    entry;
    ethernet_t ethernet;
    ipv4_t     ipv4;
    ports_t    ports;
    udp_t      udp;
    write_t    write;
}

struct metadata_t { }

parser PagingParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
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
            (5, 0, UDP): udp;
            default: accept;
        }
    }
    state udp {
        packet.extract(hdr.ports);
        packet.extract(hdr.udp);
        transition select(hdr.ports.dst, hdr.udp.length) {
            (WRITES, 24): write;
            default: accept;
        }
    }
    state write {
        packet.extract(hdr.write);
        transition accept;
    }
}

control PagingIngress(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    apply { }
}

control PagingEgress(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    apply { }
}

control PagingDma(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    Deliver() deliver;

    action write() {
        // The data: behind Ethernet, IPv4 and UDP and the address.
        dma_write(hdr.write.address, 50, 8);
        // The sender gets its datagram back as an acknowledgement.
        send_to(nic.port);
    }
    action fault() { }
    table pages {
        key = { hdr.write.address[63:12]: exact @name("page"); }
        actions = { write; fault; }
        default_action = fault();
        size = 1024;
    }

    apply {
        if (!hdr.write.isValid() || !pages.apply().hit) {
            deliver.apply(hdr.entry, nic, 0);
        }
    }
}

control PagingDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

FlexNIC(PagingParser(), PagingIngress(), PagingEgress(), PagingDma(), PagingDeparser()) main;
