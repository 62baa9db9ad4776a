// Arithmetic of all kinds, slices, casts, concatenation, generics, tuples, records, enumerations, loops, functions.
#include <core.p4>
#include <v1model.p4>

#define TWICE(x) ((x) + (x))
#if defined(TWICE) && !defined(MISSING)
const bit<8> FOUR = TWICE(2);
#else
#error this branch is not taken
#endif

enum bit<8> Op { add = 0, sub = 1, sat = 2, subsat = 3, shift = 4, signed_ = 5, slices = 6, wide = 7, loops = 8, structs = 9,
                 stacks = 10, div = 11 }
enum Colour { red, green, blue }
type bit<8> Id_t;
header in_t { Op op; bit<8> a; bit<8> b; bit<16> r; }
header cell_t { bit<8> x; }
struct pair<T> { T first; T second; }
struct H { in_t i; cell_t[4] cells; }
struct M { }

bit<16> maximum(in bit<16> a, in bit<16> b) {
    if (a > b) { return a; }
    return b;
}
T pick<T>(in bool first, in T a, in T b) { return first ? a : b; }
void swap(inout bit<8> a, inout bit<8> b) { bit<8> t = a; a = b; b = t; }
bit<8> count(inout bit<8> n) { n = n + 1; return n; }

parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { p.extract(h.i); transition accept; }
}
control V(inout H h, inout M m) { apply { } }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    apply {
        s.egress_spec = 1;
        bit<8> a = h.i.a;
        bit<8> b = h.i.b;
        if (h.i.op == Op.add) { h.i.r = (bit<16>) (a + b); }
        else if (h.i.op == Op.sub) { h.i.r = (bit<16>) a - (bit<16>) b; }
        else if (h.i.op == Op.sat) { h.i.r = (bit<16>) (a |+| b); }
        else if (h.i.op == Op.subsat) { h.i.r = (bit<16>) (a |-| b); }
        else if (h.i.op == Op.shift) { h.i.r = (bit<16>) (a << b) | (bit<16>) (a >> b) << 8; }
        else if (h.i.op == Op.signed_) {
            int<8> x = (int<8>) a;
            int<8> y = (int<8>) b;
            h.i.r = (bit<16>) (int<16>) (x >> 1);
            if (x < y) { h.i.r[0:0] = 1; }
            h.i.b = (bit<8>) (x |+| y);
        } else if (h.i.op == Op.slices) {
            h.i.r = a[3:0] ++ b ++ 4w0xf;
            h.i.r[11:8] = 5;
            h.i.a[7:4] = a[3:0];
        } else if (h.i.op == Op.wide) {
            bit<128> w = (bit<128>) a << 100 | (bit<128>) b;
            w = w * 3 - 1;
            h.i.r = w[107:100] ++ w[7:0];
            if (w > 128w1 << 101) { h.i.b = 1; } else { h.i.b = 0; }
        } else if (h.i.op == Op.loops) {
            bit<16> sum = 0;
            for (bit<8> n = 0; n < a; n = n + 1) {
                if (n == 3) { continue; }
                if (n == 7) { break; }
                sum = sum + (bit<16>) n;
            }
            for (bit<16> n in 1 .. 3) { sum = sum + n; }
            for (bit<16> n in (list<bit<16>>) {10, 20}) { sum += n; }
            h.i.r = sum;
        } else if (h.i.op == Op.structs) {
            pair<bit<8>> p = { first = b, second = a };
            pair<bit<8>> q = { a, b };
            p = { p.second, p.first };
            tuple<bit<8>, bit<8>> t = { a, FOUR };
            Id_t id = (Id_t) t[1];
            Colour colour = Colour.green;
            h.i.r = 0;
            if (p == q) { h.i.r = h.i.r + 1; }
            if (p == { first = a, second = b }) { h.i.r = h.i.r + 2; }
            if (id == (Id_t) 4 && colour != Colour.red) { h.i.r = h.i.r + 4; }
            h.i.r = maximum(pick<bit<16>>(true, h.i.r, 0), 3) | (bit<16>) count(h.i.a) << 8;
            swap(h.i.a, h.i.b);
        } else if (h.i.op == Op.stacks) {
            h.cells[0].setValid();
            h.cells[0].x = a;
            h.cells[1] = { b };
            h.cells.push_front(1);
            h.cells[a & 3].x = 0x42;
            h.cells[3].setValid();
            h.cells[3].x = h.cells[(bit<2>) b].x;
            h.i.r = (bit<16>) (bit<8>) h.cells.size;
        } else if (h.i.op == Op.div) {
            h.i.r = (bit<16>) (a / 3) << 8 | (bit<16>) (a % 3);
        }
    }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply { } }
control C(inout H h, inout M m) { apply { } }
control D(packet_out p, in H h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
