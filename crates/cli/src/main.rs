//! The `nicforge` command.
fn main() {}
