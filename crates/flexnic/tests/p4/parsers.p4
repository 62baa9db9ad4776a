// Select, masks, ranges, lookahead, advance, varbit, value sets, stacks, unions, sub-parsers, verify, conditions.
#include <core.p4>
#include <v1model.p4>

header kind_t { bit<8> kind; }
header item_t { bit<7> value; bit<1> last; }
header short_t { bit<8> s; }
header long_t { bit<16> l; }
header_union either_t { short_t s; long_t l; }
header options_t { bit<8> length; varbit<64> data; }
struct H { kind_t k; item_t[3] items; either_t u; options_t o; kind_t note; }
struct M { bit<8> seen; }

error { Refused }

parser Items(packet_in p, out item_t[3] items, inout M m)(bit<8> increment) {
    state start {
        p.extract(items.next);
        m.seen = m.seen + increment;
        transition select(items.last.last) { 1: accept; default: start; }
    }
}

parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    Items(2) items;
    value_set<bit<8>>(4) odd;
    state start {
        bit<8> ahead = p.lookahead<bit<8>>();
        p.extract(h.k);
        if (ahead == 0xee) { verify(false, error.Refused); }
        transition select(h.k.kind, ahead[7:4]) {
            (1, _): take_items;
            (0x20 &&& 0xf0, 2): shorts;
            (0x30 .. 0x37, _): longs;
            (4, 0): options;
            (5, 0): skip;
            default: more;
        }
    }
    state take_items { items.apply(p, h.items, m); transition accept; }
    state shorts { p.extract(h.u.s); transition accept; }
    state longs { p.extract(h.u.l); transition accept; }
    state options {
        bit<8> n = p.lookahead<bit<8>>();
        p.extract(h.o, (bit<32>) n * 8);
        transition accept;
    }
    state skip { p.advance(16); p.extract(h.note); transition accept; }
    state more { transition select(h.k.kind) { odd: shorts; 0x60: nothing; default: accept; } }
    state nothing { transition select(h.k.kind) { 1: accept; } }
}
control V(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        if (s.parser_error == error.Refused) { s.egress_spec = 2; }
        if (s.parser_error == error.PacketTooShort) { s.egress_spec = 3; }
        if (s.parser_error == error.StackOutOfBounds) { s.egress_spec = 4; }
        if (s.parser_error == error.NoMatch) { s.egress_spec = 5; }
        if (s.parser_error == error.HeaderTooShort) { s.egress_spec = 6; }
        h.note.setValid();
        h.note.kind = m.seen;
        if (h.u.isValid()) { h.note.kind = h.u.s.isValid() ? 8w0x51 : 8w0x52; }
        if (h.items[0].isValid() && h.items[1].isValid()) { h.items.pop_front(1); }
    }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control C(inout H h, inout M m) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
