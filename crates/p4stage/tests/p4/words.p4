// Words of host memory for clients: read, write, fetch and add. Frames of a local experimental type say what to do.
#include <core.p4>
#include <flexnic.p4>

register<bit<64>>(4) head;
register<bit<64>>(4) tail;

header ethernet_t {
    bit<48> dst;
    bit<48> src;
    bit<16> ether_type;
}

header request_t {
    bit<64> operation;
    bit<64> address;
    bit<64> value;
}

struct headers_t {
    ethernet_t ethernet;
    request_t  request;
}

struct metadata_t { }

parser WordParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.request);
        transition accept;
    }
}

control WordIngress(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    apply { }
}

control WordEgress(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    apply { }
}

control WordDma(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    apply {
        if (hdr.request.operation == 1) {
            dma_read(hdr.request.address, 30, 8);
            send_to(nic.port);
        } else if (hdr.request.operation == 2) {
            dma_write(hdr.request.address, 30, 8);
            send_to(nic.port);
        } else if (hdr.request.operation == 3) {
            dma({ 30, 8, dma_direction_t.FROM_MEMORY, hdr.request.address, 0, 0, dma_atomic_t.ADD });
            send_to(nic.port);
        } else if (hdr.request.operation == 4) {
            // Two transfers, of which the second may be refused: then the first is not made.
            dma_write(hdr.request.address, 30, 8);
            dma_write(hdr.request.value, 30, 8);
            send_to(nic.port);
        }
    }
}

control WordDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

FlexNIC(WordParser(), WordIngress(), WordEgress(), WordDma(), WordDeparser()) main;
