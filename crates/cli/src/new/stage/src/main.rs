//! The `nicforge` command with stage `my_stage`.

mod my_stage;

use std::process::ExitCode;

fn main() -> ExitCode {
    nicforge::main(nicforge::Registry::shipped().stage::<my_stage::MyStage>())
}
