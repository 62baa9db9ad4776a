// Numbered datagrams of UDP port 7000 go to the server with what the program and two tables say. VERSION is the program's
// number; ingress and egress write it each.
#include <core.p4>
#include <v1model.p4>

#define VERSION 0

const bit<9> CONTROLLER = 510;
const bit<9> HOST = 100;

header ethernet_t { bit<48> dst; bit<48> src; bit<16> kind; }
header ipv4_t {
    bit<8> version_ihl; bit<8> tos; bit<16> length; bit<16> id; bit<16> fragment;
    bit<8> ttl; bit<8> protocol; bit<16> checksum; bit<32> src; bit<32> dst;
}
header udp_t { bit<16> src; bit<16> dst; bit<16> length; bit<16> checksum; }
header said_t { bit<32> number; bit<16> one; bit<16> two; bit<8> ingress; bit<8> egress; }
@controller_header("packet_in")  header in_t { bit<16> port; }
@controller_header("packet_out") header out_t { bit<16> port; }
struct headers { in_t to_controller; out_t from_controller; ethernet_t ethernet; ipv4_t ipv4; udp_t udp; said_t said; }
struct metadata { }

parser Parse(packet_in packet, out headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    state start {
        transition select(standard.ingress_port) { CONTROLLER: controller; default: ethernet; }
    }
    state controller { packet.extract(hdr.from_controller); packet.extract(hdr.ethernet); transition accept; }
    state ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.kind) { 0x0800: ipv4; default: accept; }
    }
    state ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.version_ihl, hdr.ipv4.protocol) { (0x45, 17): udp; default: accept; }
    }
    state udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst) { 7000: said; default: accept; }
    }
    state said { packet.extract(hdr.said); transition accept; }
}
control Verify(inout headers hdr, inout metadata meta) { apply { } }
control Forward(inout headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    action set_one(bit<16> value) { hdr.said.one = value; }
    action set_two(bit<16> value) { hdr.said.two = value; }
    table one {
        key = { hdr.ipv4.dst: lpm; }
        actions = { set_one; }
        default_action = set_one(0xffff);
    }
    table two {
        key = { hdr.udp.dst: exact; }
        actions = { set_two; }
        default_action = set_two(0xffff);
    }
    apply {
        if (hdr.from_controller.isValid()) {
            standard.egress_spec = (bit<9>) hdr.from_controller.port;
            hdr.from_controller.setInvalid();
        } else if (hdr.said.isValid()) {
            one.apply();
            two.apply();
            hdr.said.ingress = VERSION;
            hdr.udp.checksum = 0;
            hdr.ethernet.dst = 0x020000010000;
            standard.egress_spec = 1;
        } else if (hdr.udp.isValid() && hdr.udp.dst == 7001) {
            hdr.to_controller.setValid();
            hdr.to_controller.port = (bit<16>) standard.ingress_port;
            standard.egress_spec = CONTROLLER;
        } else {
            standard.egress_spec = HOST;
        }
    }
}
control Leave(inout headers hdr, inout metadata meta, inout standard_metadata_t standard) {
    apply { if (hdr.said.isValid()) { hdr.said.egress = VERSION; } }
}
control Update(inout headers hdr, inout metadata meta) { apply { } }
control Deparse(packet_out packet, in headers hdr) { apply { packet.emit(hdr); } }
V1Switch(Parse(), Verify(), Forward(), Leave(), Update(), Deparse()) main;
