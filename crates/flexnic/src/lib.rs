//! P4-16 on a NIC: one program file, compiled in the process that runs it.
//!
//! [`Program::compile`](p4::Program::compile) reads a program, checks it and lowers it to one typed IR. A
//! [`Pipeline`](p4::Pipeline) is an instance of it: tables, registers, counters, and an engine, either the reference
//! interpreter or code made by Cranelift. Both give the same results.

pub mod p4;
