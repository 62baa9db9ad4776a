// What becomes of a frame follows from its UDP source port.
#include <flexnic.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> kind; }
header ipv4_t { bit<72> front; bit<8> protocol; bit<16> checksum; bit<32> src; bit<32> dst; }
header udp_t { bit<16> src; bit<16> dst; bit<16> length; bit<16> checksum; }
struct headers { ethernet_t ethernet; ipv4_t ipv4; udp_t udp; }
struct metadata { }

const bit<9> OWN = 1;
const bit<9> OTHER = 0;
const bit<9> HOST = 100;

parser Parse(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    state start { packet.extract(hdr.ethernet); packet.extract(hdr.ipv4); packet.extract(hdr.udp); transition accept; }
}
control Verify(inout headers hdr, inout metadata meta) { apply { } }
control MyIngress(inout headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    action straight() { standard.egress_spec = standard.ingress_port == HOST ? OWN : HOST; }
    action refuse() { mark_to_drop(standard); }
    action say(bit<64> mark, bit<24> flags, bit<16> queue) {
        straight();
        set_mark(mark);
        set_flags(flags);
        set_queue(queue);
    }
    action leave(bit<9> port) { standard.egress_spec = port; }
    action both() {
        straight();
        clone(CloneType.I2E, 1);
    }
    table by_port {
        key = { hdr.udp.src: exact; }
        actions = { straight; refuse; say; leave; both; }
        const entries = {
            2: say(0xfedcba9876543210, 0xabcdef, 1);
            3: refuse();
            4: leave(OWN);
            5: leave(OTHER);
            6: both();
            8: leave(HOST);
        }
        default_action = straight();
    }
    apply {
        if (standard.parser_error == error.NoError) { by_port.apply(); } else { refuse(); }
    }
}
control MyEgress(inout headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    apply {
        // Behind the destination's bytes, so that checksums stay right.
        if (standard.egress_port == OWN) { hdr.ethernet.src = 0x0a0000000001; }
    }
}
control Update(inout headers hdr, inout metadata meta) { apply { } }
control Deparse(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr); }
}
V1Switch(Parse(), Verify(), MyIngress(), MyEgress(), Update(), Deparse()) main;
