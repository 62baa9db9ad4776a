// A program with one of everything that controllers see.
#include <core.p4>
#include <v1model.p4>

type bit<9> port_id_t;

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    @padding bit<7> unused;
}
@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    @padding bit<7> unused;
}
header ethernet_t { bit<48> dst; bit<48> src; bit<16> kind; }
header ipv4_t {
    bit<4> version; bit<4> ihl; bit<8> tos; bit<16> len; bit<16> id; bit<16> frag; bit<8> ttl; bit<8> protocol;
    bit<16> checksum; bit<32> src; bit<32> dst;
}
struct headers { packet_in_t packet_in; packet_out_t packet_out; ethernet_t ethernet; ipv4_t ipv4; }
struct metadata { bit<2> color; }
struct learned_t { bit<48> mac; bit<9> port; }

const bit<9> CPU = 510;

parser Parse(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    value_set<bit<16>>(4) special;
    state start {
        transition select(sm.ingress_port) { CPU: from_controller; default: ethernet; }
    }
    state from_controller { packet.extract(hdr.packet_out); transition ethernet; }
    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.kind) { 0x800: ipv4; special: ipv4; default: accept; }
    }
    state ipv4 { packet.extract(hdr.ipv4); transition accept; }
}
control Verify(inout headers hdr, inout metadata meta) { apply { } }
control In(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) {
    counter(16, CounterType.packets_and_bytes) ports;
    meter(8, MeterType.packets) rate;
    register<bit<32>>(8) last;
    direct_counter(CounterType.packets) route_hits;
    direct_meter<bit<2>>(MeterType.packets) acl_rate;
    action_selector(HashAlgorithm.crc16, 32, 16) ways;

    action drop() { mark_to_drop(sm); }
    action forward(@id(7) bit<9> port, bit<48> dst) { sm.egress_spec = port; hdr.ethernet.dst = dst; }
    action to_controller() {
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = sm.ingress_port;
        sm.egress_spec = CPU;
    }
    action learn() { digest<learned_t>(1, { hdr.ethernet.src, sm.ingress_port }); }
    action replicate(bit<16> group) { sm.mcast_grp = group; }
    action mirror(bit<32> session) { clone(CloneType.I2E, session); }

    @brief("Where packets go")
    table route {
        key = { hdr.ipv4.dst: lpm @name("dst"); }
        actions = { forward; drop; to_controller; replicate; @defaultonly NoAction; }
        default_action = drop();
        counters = route_hits;
        size = 64;
    }
    @id(0x02000123)
    table acl {
        key = { hdr.ipv4.src: ternary; hdr.ipv4.protocol: optional; hdr.ipv4.ttl: range; }
        actions = { drop; mirror; @defaultonly NoAction; }
        meters = acl_rate;
    }
    table known {
        key = { hdr.ethernet.src: exact; }
        actions = { NoAction; learn; }
        const default_action = learn();
    }
    table spread {
        key = { hdr.ipv4.tos: exact; hdr.ipv4.src: selector; }
        actions = { forward; @defaultonly NoAction; }
        implementation = ways;
    }
    apply {
        ports.count((bit<32>) sm.ingress_port);
        if (hdr.packet_out.isValid()) {
            sm.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            rate.execute_meter(0, meta.color);
            last.write(1, (bit<32>) hdr.ethernet.kind);
            known.apply();
            if (hdr.ipv4.isValid()) {
                route.apply();
                spread.apply();
                acl.apply();
            }
        }
    }
}
control Out(inout headers hdr, inout metadata meta, inout standard_metadata_t sm) { apply { } }
control Compute(inout headers hdr, inout metadata meta) { apply { } }
control Deparse(packet_out packet, in headers hdr) {
    apply { packet.emit(hdr.packet_in); packet.emit(hdr.ethernet); packet.emit(hdr.ipv4); }
}
V1Switch(Parse(), Verify(), In(), Out(), Compute(), Deparse()) main;
