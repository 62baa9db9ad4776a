//! The `nicforge` command with interface `my_ring`.

mod my_ring;

use std::process::ExitCode;

fn main() -> ExitCode {
    nicforge::main(nicforge::Registry::shipped().interface::<my_ring::MyRing>())
}
