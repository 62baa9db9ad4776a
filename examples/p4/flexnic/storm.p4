// FlexStorm's tuples (FlexNIC paper, section 4.1, figure 7): the NIC takes the headers off, brings each tuple to the queue of its
// worker, and acknowledges it. It acknowledges only what the queue has room for (section 2.3): a worker that falls behind
// stalls those who send to it, and nothing that was acknowledged is lost.
#include "frames.p4"

const bit<8> DCCP = 33;
const bit<4> DCCP_DATA = 2;
const bit<4> DCCP_ACK = 3;
// The tag of an acknowledgement.
const bit<8> ACKNOWLEDGES = 1;

// With short sequence numbers (RFC 4340, section 5.1).
header dccp_t {
    bit<16> src;
    bit<16> dst;
    bit<8>  offset;
    bit<4>  ccval;
    bit<4>  coverage;
    bit<16> checksum;
    bit<3>  reserved;
    bit<4>  type;
    bit<1>  extended;
    bit<24> sequence;
}

header ack_t {
    bit<8>  reserved;
    bit<24> acknowledged;
}

// The destination's task is the first word: 0 is no task, so software sees by it that a buffer holds a tuple.
header tuple_t {
    bit<32> to;
    bit<32> from;
}

struct headers_t {
    entry_t    entry;
    ethernet_t ethernet;
    ipv4_t     ipv4;
    dccp_t     dccp;
    ack_t      ack;
    tuple_t    tuple_;
}

struct metadata_t { }

parser StormParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
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
            (5, 0, DCCP): dccp;
            default: accept;
        }
    }
    state dccp {
        packet.extract(hdr.dccp);
        transition select(hdr.dccp.type, hdr.dccp.extended) {
            (DCCP_DATA, 0): tuple_;
            default: accept;
        }
    }
    state tuple_ {
        packet.extract(hdr.tuple_);
        transition accept;
    }
}

control StormIngress(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    Room() room;
    bit<64> free;

    action to_worker(bit<16> queue) {
        nic.queue = queue;
        set_queue(queue);
    }
    // Tasks of this machine, and the queues of their workers.
    table workers {
        key = { hdr.tuple_.to: exact; }
        actions = { to_worker; NoAction; }
        default_action = NoAction();
        size = 64;
    }

    apply {
        if (hdr.tuple_.isValid() && workers.apply().hit) {
            room.apply(nic.queue, free);
            // A tuple for a full queue ends here, without a word: its sender's window stays closed.
            if (free == 0) {
                discard();
            } else {
                copy_to(nic.port, ACKNOWLEDGES);
            }
        }
    }
}

control StormEgress(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    apply {
        if (nic.tag == ACKNOWLEDGES) {
            bit<48> mac = hdr.ethernet.dst;
            hdr.ethernet.dst = hdr.ethernet.src;
            hdr.ethernet.src = mac;
            bit<32> address = hdr.ipv4.dst;
            hdr.ipv4.dst = hdr.ipv4.src;
            hdr.ipv4.src = address;
            hdr.ipv4.total_length = 36;
            hdr.ipv4.ttl = 64;
            hdr.ipv4.checksum = 0;
            bit<16> port = hdr.dccp.dst;
            hdr.dccp.dst = hdr.dccp.src;
            hdr.dccp.src = port;
            hdr.dccp.type = DCCP_ACK;
            hdr.dccp.offset = 4;
            hdr.dccp.ccval = 0;
            hdr.dccp.coverage = 0;
            hdr.dccp.checksum = 0;
            hdr.ack.setValid();
            hdr.ack.acknowledged = hdr.dccp.sequence;
            hdr.tuple_.setInvalid();
            // Nothing of the tuple goes back.
            truncate(50);
            hash(hdr.ipv4.checksum, HashAlgorithm.csum16, (bit<16>) 0, { hdr.ipv4 }, (bit<32>) 0x10000);
            // With the pseudo header of RFC 4340, section 9.1.
            hash(hdr.dccp.checksum, HashAlgorithm.csum16, (bit<16>) 0,
                { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, 16w16, hdr.dccp, hdr.ack }, (bit<32>) 0x10000);
        }
    }
}

control StormDma(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    Deliver() deliver;
    apply {
        if (hdr.tuple_.isValid()) {
            nic.length = nic.length - 46;
            hdr.ethernet.setInvalid();
            hdr.ipv4.setInvalid();
            hdr.dccp.setInvalid();
        }
        deliver.apply(hdr.entry, nic, 0);
    }
}

control StormDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr);
    }
}

FlexNIC(StormParser(), StormIngress(), StormEgress(), StormDma(), StormDeparser()) main;
