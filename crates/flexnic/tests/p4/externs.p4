// Registers, counters, meters, hashes, checksums with payload, random, digest, truncate, log, drop.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> op; bit<8> index; bit<16> value; }
header sum_t { bit<16> checksum; }
struct H { h_t h; sum_t sum; }
struct M { }

parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start {
        p.extract(h.h);
        transition select(h.h.op) { 6: checked; default: accept; }
    }
    state checked { p.extract(h.sum); transition accept; }
}
control V(inout H h, inout M m) {
    apply { verify_checksum_with_payload(h.sum.isValid(), { h.h.value }, h.sum.checksum, HashAlgorithm.csum16); }
}
control I(inout H h, inout M m, inout standard_metadata_t s) {
    register<bit<16>>(8) store;
    counter(4, CounterType.packets_and_bytes) hits;
    meter(2, MeterType.packets) limit;
    direct_counter(CounterType.packets) seen;
    action note() { seen.count(); }
    table counted { key = { h.h.index: exact; } actions = { note; NoAction; } counters = seen; }
    apply {
        s.egress_spec = 1;
        if (h.h.op == 1) {
            store.write((bit<32>) h.h.index, h.h.value);
        } else if (h.h.op == 2) {
            store.read(h.h.value, (bit<32>) h.h.index);
        } else if (h.h.op == 3) {
            hits.count((bit<32>) h.h.index);
        } else if (h.h.op == 4) {
            bit<2> colour;
            limit.execute_meter((bit<32>) h.h.index, colour);
            h.h.value = (bit<16>) colour;
        } else if (h.h.op == 5) {
            hash(h.h.value, HashAlgorithm.crc16, 16w0, { h.h.op, h.h.index }, 32w65536);
        } else if (h.h.op == 6) {
            h.h.index = (bit<8>) s.checksum_error;
        } else if (h.h.op == 7) {
            bit<16> x;
            random(x, 16w5, 16w5);
            h.h.value = x;
            digest(1, { h.h.value });
            log_msg("value {}", { h.h.value });
            truncate(3);
        } else if (h.h.op == 8) {
            mark_to_drop(s);
        } else {
            counted.apply();
        }
    }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control C(inout H h, inout M m) {
    apply { update_checksum_with_payload(h.sum.isValid(), { h.h.value }, h.sum.checksum, HashAlgorithm.csum16); }
}
control D(packet_out p, in H h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
