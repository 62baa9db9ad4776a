// Exact, lpm, ternary, range, optional; default actions, hit and miss, action_run, bound arguments, const entries.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> table_id; bit<16> a; bit<8> b; bit<8> out_; }
struct H { h_t h; }
struct M { }

parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { p.extract(h.h); transition accept; }
}
control V(inout H h, inout M m) { apply { } }
control Inner(inout h_t h)(bit<8> add) {
    action put(bit<8> x) { h.out_ = x + add; }
    table t { key = { h.b: exact; } actions = { put; NoAction; } }
    apply { if (t.apply().miss) { h.out_ = 0xee; } }
}
control I(inout H h, inout M m, inout standard_metadata_t s) {
    Inner(1) first;
    Inner(16) second;
    action put(bit<8> x) { h.h.out_ = x; }
    action add(inout bit<8> target, bit<8> x) { target = target + x; }
    action stop() { mark_to_drop(s); exit; }
    table exact_ { key = { h.h.a: exact; h.h.b: exact; } actions = { put; stop; } default_action = put(0xff); }
    table lpm_ { key = { h.h.a: lpm; } actions = { put; } default_action = put(0xff); }
    table ternary_ { key = { h.h.a: ternary; h.h.b: ternary; } actions = { put; } default_action = put(0xff); }
    table range_ { key = { h.h.a: range; } actions = { put; } default_action = put(0xff); }
    table optional_ { key = { h.h.a: optional; h.h.b: exact; } actions = { put; } default_action = put(0xff); }
    table bound { key = { h.h.b: exact; } actions = { add(h.h.out_); NoAction; } }
    table fixed {
        key = { h.h.a: ternary; }
        actions = { put; }
        const entries = {
            0x0100 &&& 0xff00: put(1);
            0x0101: put(2);
            _: put(3);
        }
    }
    table none { actions = { put; } default_action = put(0x77); }
    apply {
        s.egress_spec = 1;
        switch (h.h.table_id) {
            0: { exact_.apply(); }
            1: { lpm_.apply(); }
            2: { ternary_.apply(); }
            3: { range_.apply(); }
            4: { optional_.apply(); }
            5: { switch (bound.apply().action_run) { add: { h.h.b = 0xaa; } NoAction: { h.h.b = 0xbb; } } }
            6: { fixed.apply(); }
            7: { first.apply(h.h); }
            8: { second.apply(h.h); }
            default: { none.apply(); }
        }
    }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control C(inout H h, inout M m) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
