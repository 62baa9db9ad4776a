//! The `nicforge` command with application `my_app`.

mod my_app;

use std::process::ExitCode;

fn main() -> ExitCode {
    nicforge::main(nicforge::Registry::shipped().application::<my_app::MyApp>())
}
