// FlexStorm's tuples (FlexNIC paper, sections 2.3 and 4.1, figure 7). On the way in the NIC takes the headers off, brings each
// tuple to the queue of its worker, and acknowledges it, but only where the queue has room: a worker that falls behind
// stalls those who send to it, and nothing that was acknowledged is lost. On the way out workers give it bare tuples; it
// prepends the headers, sends them along one connection for each machine, and keeps the windows of these.
//
//     nicforge run scenarios/flexstorm.toml
//     nicforge p4 run examples/p4/flexnic/storm.p4 --entries examples/p4/flexnic/storm-balanced-2.toml --pcap tuples.pcap --trace
#include "frames.p4"

const bit<8> DCCP = 33;
const bit<4> DCCP_DATA = 2;
const bit<4> DCCP_ACK = 3;
// The tag of an acknowledgement.
const bit<8> ACKNOWLEDGES = 1;
// What a worker sends: a tuple behind an Ethernet header that names nobody (the type is for local experiments).
const bit<16> TUPLE = 0x88b5;
// Ethernet, IPv4, DCCP, tuple; and what the checksum unit says of a wrong IPv4 header.
const bit<32> FRAME_BYTES = 406;
const bit<16> IP_BYTES = 392;
const bit<16> SEGMENT_BYTES = 372;
const bit<32> BAD_HEADER = 4;
// The mark of a tuple, which tells workers that headers are off.
const bit<64> BARE = 1;

// Windows, in tuples; times in picoseconds: 130 us, up to about a second.
const bit<32> FIRST_WINDOW = 4;
const bit<64> FIRST_TIMEOUT = 130000000;
const bit<64> LONGEST_TIMEOUT = 1000000000000;

// Of each connection: last sequence number sent and acknowledged, tuples that may be and are in flight (0 of the former is
// FIRST_WINDOW), when the last acknowledgement or the first tuple since went, and what is too long after that.
register<bit<24>>(16) sent;
register<bit<24>>(16) acknowledged;
register<bit<32>>(16) window;
register<bit<32>>(16) pipe;
register<bit<64>>(16) since;
register<bit<64>>(16) timeout;
// The highest sequence number that came by a connection, and which of the 64 up to it did, that one in bit 0.
register<bit<24>>(16) highest;
register<bit<64>>(16) came;

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

struct metadata_t {
    bit<16> sum;
}

parser StormParser(packet_in packet, out headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    state start {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            ETHERTYPE_IPV4: ipv4;
            TUPLE: tuple_;
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
            (DCCP_ACK, 0): ack;
            default: accept;
        }
    }
    state ack {
        packet.extract(hdr.ack);
        transition accept;
    }
    state tuple_ {
        packet.extract(hdr.tuple_);
        transition accept;
    }
}

// The peer has everything up to `upto`: in order the window grows by one, on a gap it halves.
control Acknowledged(in bit<8> connection, in bit<24> upto, in bit<64> now) {
    bit<24> last;
    bit<24> highest;
    bit<32> may;
    bit<32> flying;
    apply {
        bit<32> index = (bit<32>) connection;
        acknowledged.read(last, index);
        sent.read(highest, index);
        bit<24> more = upto - last;
        bit<24> outstanding = highest - last;
        if (more != 0 && more <= outstanding) {
            window.read(may, index);
            pipe.read(flying, index);
            may = may == 0 ? FIRST_WINDOW : may;
            if (more == 1) {
                may = may |+| 1;
            } else {
                may = may >> 1;
                may = may == 0 ? 32w1 : may;
            }
            window.write(index, may);
            pipe.write(index, flying |-| (bit<32>) more);
            acknowledged.write(index, upto);
            since.write(index, now);
            timeout.write(index, 0);
        }
    }
}

// Whether a tuple has not come before, which it has from now on. One that is far behind the others is taken for one that has.
control Fresh(in bit<8> connection, in bit<24> sequence, out bool is_new) {
    bit<24> last;
    bit<64> known;
    apply {
        bit<32> index = (bit<32>) connection;
        highest.read(last, index);
        came.read(known, index);
        bit<24> ahead = sequence - last;
        bit<24> behind = last - sequence;
        is_new = true;
        if (ahead != 0 && ahead < 0x800000) {
            known = known << ahead | 1;
            highest.write(index, sequence);
        } else {
            bit<64> own = 64w1 << behind;
            is_new = own != 0 && known & own == 0;
            known = known | own;
        }
        came.write(index, known);
    }
}

// Whether a tuple may go, and its sequence number. A timeout empties the pipe, and doubles.
control Departure(in bit<8> connection, in bit<64> now, out bool may_go, out bit<24> sequence) {
    bit<32> may;
    bit<32> flying;
    bit<64> began;
    bit<64> limit;
    apply {
        bit<32> index = (bit<32>) connection;
        window.read(may, index);
        pipe.read(flying, index);
        since.read(began, index);
        timeout.read(limit, index);
        may = may == 0 ? FIRST_WINDOW : may;
        limit = limit == 0 ? FIRST_TIMEOUT : limit;
        if (flying != 0 && now |-| began > limit) {
            flying = 0;
            if (limit < LONGEST_TIMEOUT) {
                timeout.write(index, limit << 1);
            }
        }
        if (flying == 0) {
            since.write(index, now);
        }
        may_go = flying < may;
        sent.read(sequence, index);
        if (may_go) {
            sequence = sequence + 1;
            sent.write(index, sequence);
            flying = flying + 1;
        }
        pipe.write(index, flying);
    }
}

control StormIngress(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    Room() room;
    Acknowledged() took;
    Fresh() fresh;
    bit<64> free;
    bool is_new;
    bool is_peer = false;
    bit<8> connection = 0;

    action to_worker(bit<16> queue) {
        nic.queue = queue;
        set_queue(queue);
        set_mark(BARE);
    }
    // Tasks of this machine, and the queues of their workers.
    table workers {
        key = {
            hdr.ipv4.dst: exact;
            hdr.tuple_.to: exact;
        }
        actions = { to_worker; NoAction; }
        default_action = NoAction();
        size = 64;
    }
    action on(bit<8> by) {
        connection = by;
    }
    // The machines that there are, and the connections to them.
    table peers {
        key = { hdr.ipv4.src: exact; }
        actions = { on; NoAction; }
        default_action = NoAction();
        size = 16;
    }

    apply {
        bool is_good = nic.flags & BAD_HEADER == 0;
        if (hdr.dccp.isValid()) {
            is_peer = peers.apply().hit;
        }
        if (hdr.tuple_.isValid() && hdr.dccp.isValid() && nic.length == FRAME_BYTES && hdr.ipv4.total_length == IP_BYTES) {
            update_checksum_with_payload(true,
                { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, SEGMENT_BYTES, hdr.dccp, hdr.tuple_ }, meta.sum,
                HashAlgorithm.csum16);
            if (!is_good || meta.sum != 0 || !is_peer) {
                discard();
            } else if (workers.apply().hit) {
                room.apply(nic.queue, free);
                // A tuple for a full queue ends here, without a word: its sender's window stays closed.
                if (free == 0) {
                    refuse(refusal_t.QUEUE_FULL);
                } else {
                    fresh.apply(connection, hdr.dccp.sequence, is_new);
                    if (is_new) {
                        copy_to(nic.port, ACKNOWLEDGES);
                    } else {
                        refuse(refusal_t.DUPLICATE);
                    }
                }
            }
        } else if (hdr.ack.isValid()) {
            hash(meta.sum, HashAlgorithm.csum16, (bit<16>) 0,
                { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, 16w16, hdr.dccp, hdr.ack }, (bit<32>) 0x10000);
            if (is_good && meta.sum == 0 && is_peer) {
                took.apply(connection, hdr.ack.acknowledged, nic.stamp);
                consume();
            } else {
                discard();
            }
        }
    }
}

control StormEgress(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    Departure() leaves;
    bool may_go = false;
    bit<8> connection = 0;

    action from_here(bit<48> mac, bit<32> address) {
        hdr.ethernet.src = mac;
        hdr.ipv4.setValid();
        hdr.ipv4.src = address;
    }
    // Tasks of this machine, each with its worker's queue: nobody signs for another.
    table senders {
        key = {
            hdr.tuple_.from: exact;
            nic.queue: exact;
        }
        actions = { from_here; NoAction; }
        default_action = NoAction();
        size = 64;
    }
    action to_there(bit<8> by, bit<48> mac, bit<32> address) {
        hdr.ethernet.dst = mac;
        hdr.ipv4.dst = address;
        connection = by;
    }
    // All tasks, and the connections to their machines.
    table places {
        key = { hdr.tuple_.to: exact; }
        actions = { to_there; NoAction; }
        default_action = NoAction();
        size = 64;
    }

    action ip(bit<16> length) {
        hdr.ipv4.total_length = length;
        hdr.ipv4.ttl = 64;
        hdr.ipv4.checksum = 0;
        hash(hdr.ipv4.checksum, HashAlgorithm.csum16, (bit<16>) 0, { hdr.ipv4 }, (bit<32>) 0x10000);
    }

    action acknowledge() {
        bit<48> mac = hdr.ethernet.dst;
        hdr.ethernet.dst = hdr.ethernet.src;
        hdr.ethernet.src = mac;
        bit<32> address = hdr.ipv4.dst;
        hdr.ipv4.dst = hdr.ipv4.src;
        hdr.ipv4.src = address;
        ip(36);
        bit<16> port = hdr.dccp.dst;
        hdr.dccp.dst = hdr.dccp.src;
        hdr.dccp.src = port;
        hdr.dccp.type = DCCP_ACK;
        hdr.dccp.offset = 4;
        hdr.dccp.ccval = 0;
        hdr.dccp.coverage = 0;
        hdr.dccp.checksum = 0;
        hdr.ack.setValid();
        hdr.ack.reserved = 0;
        hdr.ack.acknowledged = hdr.dccp.sequence;
        hdr.tuple_.setInvalid();
        // Nothing of the tuple goes back.
        truncate(50);
        // With the pseudo header of RFC 4340, section 9.1.
        hash(hdr.dccp.checksum, HashAlgorithm.csum16, (bit<16>) 0,
            { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, 16w16, hdr.dccp, hdr.ack }, (bit<32>) 0x10000);
    }

    action prepend(bit<24> sequence) {
        hdr.ethernet.ether_type = ETHERTYPE_IPV4;
        hdr.ipv4.version = 4;
        hdr.ipv4.ihl = 5;
        hdr.ipv4.tos = 0;
        hdr.ipv4.identification = 0;
        hdr.ipv4.flags = 2;
        hdr.ipv4.fragment_offset = 0;
        hdr.ipv4.protocol = DCCP;
        ip(IP_BYTES);
        hdr.dccp.setValid();
        hdr.dccp.src = (bit<16>) hdr.tuple_.from;
        hdr.dccp.dst = (bit<16>) hdr.tuple_.to;
        hdr.dccp.offset = 3;
        hdr.dccp.ccval = 0;
        hdr.dccp.coverage = 0;
        hdr.dccp.checksum = 0;
        hdr.dccp.reserved = 0;
        hdr.dccp.type = DCCP_DATA;
        hdr.dccp.extended = 0;
        hdr.dccp.sequence = sequence;
    }

    apply {
        if (nic.tag == ACKNOWLEDGES) {
            acknowledge();
        } else if (hdr.tuple_.isValid() && !hdr.dccp.isValid()) {
            bit<24> sequence = 0;
            bool is_known = nic.length == FRAME_BYTES - 32 && senders.apply().hit && places.apply().hit;
            if (is_known) {
                leaves.apply(connection, nic.stamp, may_go, sequence);
            }
            // What does not fit the window is dropped: tuples are delivered at most once.
            if (may_go) {
                prepend(sequence);
                update_checksum_with_payload(true,
                    { hdr.ipv4.src, hdr.ipv4.dst, 8w0, hdr.ipv4.protocol, SEGMENT_BYTES, hdr.dccp, hdr.tuple_ },
                    hdr.dccp.checksum, HashAlgorithm.csum16);
            } else if (is_known) {
                refuse(refusal_t.NO_WINDOW);
            } else {
                discard();
            }
        }
    }
}

control StormDma(inout headers_t hdr, inout metadata_t meta, inout flexnic_t nic) {
    Deliver() deliver;
    apply {
        if (nic.mark == BARE) {
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
