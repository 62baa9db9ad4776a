// Multicast, clones of both kinds, resubmit and recirculate with lists of fields.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> op; bit<8> type; bit<8> rid; bit<8> kept; }
struct H { h_t h; }
struct M {
    @field_list(1)
    bit<8> kept;
    bit<8> lost;
}

parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { p.extract(h.h); transition accept; }
}
control V(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        if (s.instance_type == 0) {
            m.kept = 0x5a;
            m.lost = 0xa5;
            if (h.h.op == 1) { s.mcast_grp = 1; }
            if (h.h.op == 2) { clone_preserving_field_list(CloneType.I2E, 7, 1); h.h.kept = 0x99; }
            if (h.h.op == 3) { resubmit_preserving_field_list(1); }
        }
    }
}
control E(inout H h, inout M m, inout standard_metadata_t s) {
    apply {
        h.h.type = (bit<8>) s.instance_type;
        h.h.rid = (bit<8>) s.egress_rid;
        if (s.instance_type != 0) { h.h.kept = m.kept + m.lost; }
        if (h.h.op == 4 && s.instance_type == 0) { clone_preserving_field_list(CloneType.E2E, 7, 1); }
        if (h.h.op == 5 && s.instance_type == 0) { recirculate_preserving_field_list(1); }
    }
}
control C(inout H h, inout M m) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
