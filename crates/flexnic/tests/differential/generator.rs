// Random P4 programs that type-check.

use std::fmt::Write;

use rand_core::{RngCore, SeedableRng};
use rand_pcg::Pcg64;

const WIDTHS: [u32; 12] = [1, 4, 7, 8, 9, 16, 31, 32, 48, 63, 64, 100];

/// A variable that expressions read and statements write.
#[derive(Clone)]
struct Variable {
    name: String,
    width: u32,
    signed: bool,
}

struct Generator {
    random: Pcg64,
    variables: Vec<Variable>,
    loops: usize,
}

/// The program of a seed.
pub fn program(seed: u64) -> String {
    let random = Pcg64::seed_from_u64(seed);
    let mut generator = Generator { random, variables: Vec::new(), loops: 0 };
    generator.program()
}

impl Generator {
    fn below(&mut self, limit: u32) -> u32 {
        self.random.next_u32() % limit.max(1)
    }

    fn width(&mut self) -> u32 {
        WIDTHS[self.below(WIDTHS.len() as u32) as usize]
    }

    fn ty(width: u32, signed: bool) -> String {
        format!("{}<{width}>", if signed { "int" } else { "bit" })
    }

    fn program(&mut self) -> String {
        let mut fields = String::new();
        let mut bits = 0;
        for number in 0..2 + self.below(6) {
            let width = self.width();
            let signed = self.below(4) == 0 && width > 1;
            let _ = writeln!(fields, "    {} f{number};", Self::ty(width, signed));
            self.variables.push(Variable { name: format!("h.h.f{number}"), width, signed });
            bits += width;
        }
        let fill = (8 - bits % 8) % 8;
        if fill > 0 {
            let _ = writeln!(fields, "    bit<{fill}> fill;");
            self.variables.push(Variable { name: "h.h.fill".into(), width: fill, signed: false });
        }
        for (name, width, signed) in [("m.a", 16, false), ("m.b", 8, true), ("m.c", 70, false), ("h.s[0].v", 8, false), ("h.s[1].v", 8, false)] {
            self.variables.push(Variable { name: name.into(), width, signed });
        }
        let mut ingress = String::new();
        let (key, entries) = self.table();
        for _ in 0..3 + self.below(6) {
            self.statement(&mut ingress, 2, 2);
        }
        let egress_value = self.expression(16, false, 3);
        let probe = self.below(250);
        format!(
            "#include <v1model.p4>
header h_t {{
{fields}}}
header s_t {{ bit<8> v; }}
struct H {{ h_t h; s_t[3] s; }}
struct M {{ bit<16> a; int<8> b; bit<70> c; }}
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {{
    state start {{ p.extract(h.h); transition select(p.lookahead<bit<8>>()) {{ 0 .. 1: one; {probe} &&& 0xf3: two; default: accept; }} }}
    state one {{ p.extract(h.s.next); m.a = m.a + 1; transition select(h.s.last.v) {{ 0: one; 1: two; default: accept; }} }}
    state two {{ p.extract(h.s.next); p.advance(8); transition accept; }}
}}
control V(inout H h, inout M m) {{ apply {{ }} }}
control I(inout H h, inout M m, inout standard_metadata_t s) {{
    action set(bit<16> x) {{ m.a = x; }}
    action twist(inout bit<8> y, bit<8> x) {{ y = y ^ x; if (x == 1) {{ return; }} m.a = m.a - 1; }}
    action leave() {{ m.a = 7; exit; }}
    table t {{
        key = {{ {key} }}
        actions = {{ set; twist(h.s[0].v); leave; }}
        default_action = set(3);
        const entries = {{ {entries} }}
    }}
    apply {{
        s.egress_spec = 2;
{ingress}        t.apply();
        h.s[2].setValid();
        h.s[2].v = m.a[7:0];
    }}
}}
control E(inout H h, inout M m, inout standard_metadata_t s) {{
    apply {{ m.a = {egress_value}; h.s.push_front(1); h.s[0].setValid(); h.s[0].v = m.a[15:8]; h.s[m.a & 3].v = (bit<8>) m.b; }}
}}
control C(inout H h, inout M m) {{ apply {{ }} }}
control D(packet_out p, in H h) {{ apply {{ p.emit(h); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"
        )
    }

    fn table(&mut self) -> (String, String) {
        let (key, kind) = match self.below(3) {
            0 => ("m.a: exact; h.s[0].isValid(): exact;", 0),
            1 => ("m.a: ternary; m.b: ternary;", 1),
            _ => ("m.a: lpm; h.s[1].isValid(): exact;", 2),
        };
        let mut entries = String::new();
        let mut used = Vec::new();
        for _ in 0..self.below(6) {
            let value = self.below(5);
            let flag = self.below(2) == 0;
            if used.contains(&(value, flag)) {
                continue;
            }
            used.push((value, flag));
            let keys = match kind {
                0 => format!("({value}, {flag})"),
                1 => format!("({value} &&& {}, _)", 1 + self.below(15)),
                _ => format!("({value}, {flag})"),
            };
            let call = ["set(9)", "twist(1)", "twist(5)", "leave()"][self.below(4) as usize];
            let _ = write!(entries, "{keys}: {call}; ");
        }
        (key.to_owned(), entries)
    }

    fn literal(&mut self, width: u32, signed: bool) -> String {
        let value = match self.below(4) {
            0 => 0,
            1 => 1,
            2 => u64::from(self.random.next_u32()),
            _ => u64::MAX,
        };
        let value = if width < 64 { value & ((1 << width) - 1) } else { value };
        format!("({}) {width}w{value}", Self::ty(width, signed))
    }

    fn condition(&mut self, depth: u32) -> String {
        match self.below(6) {
            0 if depth > 0 => format!("!({})", self.condition(depth - 1)),
            1 if depth > 0 => format!("({} && {})", self.condition(depth - 1), self.condition(depth - 1)),
            2 if depth > 0 => format!("({} || {})", self.condition(depth - 1), self.condition(depth - 1)),
            3 => format!("h.s[{}].isValid()", self.below(3)),
            _ => {
                let width = self.width();
                let signed = self.below(3) == 0 && width > 1;
                let operator = ["==", "!=", "<", "<=", ">", ">="][self.below(6) as usize];
                let depth = depth.saturating_sub(1);
                format!("({} {operator} {})", self.expression(width, signed, depth), self.expression(width, signed, depth))
            }
        }
    }

    /// An expression of this type.
    fn expression(&mut self, width: u32, signed: bool, depth: u32) -> String {
        if depth == 0 {
            return self.leaf(width, signed);
        }
        let inner = depth - 1;
        match self.below(11) {
            0..=3 => {
                let operators = ["+", "-", "*", "&", "|", "^", "|+|", "|-|"];
                let operator = operators[self.below(operators.len() as u32) as usize];
                let (left, right) = (self.expression(width, signed, inner), self.expression(width, signed, inner));
                format!("({left} {operator} {right})")
            }
            4 => {
                let operator = ["<<", ">>"][self.below(2) as usize];
                let by = [3, 8, 16][self.below(3) as usize];
                format!("({} {operator} {})", self.expression(width, signed, inner), self.expression(by, false, inner))
            }
            5 => format!("(~{})", self.expression(width, signed, inner)),
            6 => format!("(-{})", self.expression(width, signed, inner)),
            7 => {
                let condition = self.condition(inner.min(1));
                format!("({condition} ? {} : {})", self.expression(width, signed, inner), self.expression(width, signed, inner))
            }
            8 if !signed && width > 1 => {
                let low = 1 + self.below(width - 1);
                format!("({} ++ {})", self.expression(width - low, false, inner), self.expression(low, false, inner))
            }
            9 if !signed => {
                let whole = width + self.below(40);
                let low = self.below(whole - width + 1);
                format!("({})[{}:{low}]", self.expression(whole, false, inner), low + width - 1)
            }
            10 if !signed && width > 1 => format!("({} / 3)", self.expression(width, false, inner)),
            _ => self.leaf(width, signed),
        }
    }

    fn leaf(&mut self, width: u32, signed: bool) -> String {
        if self.below(4) == 0 {
            return format!("({})", self.literal(width, signed));
        }
        let at = self.below(self.variables.len() as u32) as usize;
        let variable = self.variables[at].clone();
        let mut text = variable.name;
        // int<A> to int<W> and bit<A> to bit<W>, then between signs of one width.
        if variable.width != width {
            text = format!("({}) {text}", Self::ty(width, variable.signed));
        }
        if variable.signed != signed {
            text = format!("({}) ({text})", Self::ty(width, signed));
        }
        format!("({text})")
    }

    fn statement(&mut self, into: &mut String, depth: u32, indent: usize) {
        let pad = "    ".repeat(indent);
        match self.below(8) {
            0 if depth > 0 => {
                let _ = writeln!(into, "{pad}if ({}) {{", self.condition(2));
                self.statement(into, depth - 1, indent + 1);
                let _ = writeln!(into, "{pad}}} else {{");
                self.statement(into, depth - 1, indent + 1);
                let _ = writeln!(into, "{pad}}}");
            }
            1 if depth > 0 && self.loops < 2 => {
                self.loops += 1;
                let name = format!("n{}", self.loops);
                let _ = writeln!(into, "{pad}for (bit<8> {name} in 0 .. {}) {{", self.below(5));
                if self.below(3) == 0 {
                    let _ = writeln!(into, "{pad}    if ({name} == 2) {{ break; }}");
                }
                self.variables.push(Variable { name: name.clone(), width: 8, signed: false });
                let count = self.variables.len();
                self.statement(into, 0, indent + 1);
                self.variables.truncate(count);
                self.variables.retain(|variable| variable.name != name);
                let _ = writeln!(into, "{pad}}}");
            }
            2 => {
                let at = self.below(self.variables.len() as u32) as usize;
                let variable = self.variables[at].clone();
                if variable.width < 3 {
                    return;
                }
                let low = self.below(variable.width - 1);
                let value = self.expression(variable.width - low, false, 2);
                let _ = writeln!(into, "{pad}{}[{}:{low}] = {value};", variable.name, variable.width - 1);
            }
            3 => {
                let _ = writeln!(into, "{pad}h.s[m.a[7:0] + {}].v = {};", self.expression(8, false, 1), self.expression(8, false, 2));
            }
            4 => {
                let call = ["setValid", "setInvalid"][self.below(2) as usize];
                let _ = writeln!(into, "{pad}h.s[{}].{call}();", self.below(3));
            }
            _ => {
                let at = self.below(self.variables.len() as u32) as usize;
                let variable = self.variables[at].clone();
                let value = self.expression(variable.width, variable.signed, 3);
                let _ = writeln!(into, "{pad}{} = {value};", variable.name);
            }
        }
    }
}
