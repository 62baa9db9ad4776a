//! The `nicforge` command with what is shipped.

use std::process::ExitCode;

fn main() -> ExitCode {
    nicforge::main(nicforge::Registry::shipped())
}
