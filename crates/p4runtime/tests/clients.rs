//! Controllers that others wrote: finsy and p4runtime-shell from PyPI, each in an environment of its own, since they
//! want different versions of protobuf. `NICFORGE_FINSY_PYTHON` and `NICFORGE_P4SHELL_PYTHON` name interpreters that
//! have them; without, the tests skip.

use std::path::Path;
use std::process::Command;

use nicforge_flexnic::p4::{Engine, Program, Shared};
use nicforge_p4runtime::{Info, Listen, Loaded, Options, serve, to_text};

const CPU: u32 = 510;

fn run(variable: &str, script: &str) {
    let Some(python) = std::env::var_os(variable) else {
        eprintln!("skipped: {variable} names no Python");
        return;
    };
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let path = here.join("p4/everything.p4");
    let program = Program::compile(&path, &Default::default()).unwrap_or_else(|errors| panic!("{errors}"));
    let folder = tempfile::tempdir().unwrap();
    let info = folder.path().join("everything.p4info.txtpb");
    std::fs::write(&info, to_text(&Info::new(&program).message).unwrap()).unwrap();
    let shared = Shared::new(program.pipeline(Engine::Compiled, 1).unwrap(), Some(CPU));
    let inject = shared.clone();
    let options = Options {
        device_id: 1,
        shared,
        // The clients bring the program.
        loaded: None::<Loaded>,
        engine: Engine::Compiled,
        seed: 1,
        target: None,
        inject: Box::new(move |packet| _ = inject.process(&packet, CPU, false, 0, &mut |_| {})),
    };
    let server = serve(&Listen::Tcp("127.0.0.1:0".parse().unwrap()), options).unwrap_or_else(|error| panic!("{error}"));
    let output = Command::new(python)
        .arg(here.join("clients").join(script))
        .args([server.at.to_string().as_str(), info.to_str().unwrap(), path.to_str().unwrap()])
        .env("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "python")
        .output()
        .expect("the interpreter runs");
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}");
    assert!(text.contains("is content"), "{text}");
    println!("{text}");
}

#[test]
fn finsy_manages_the_program() {
    run("NICFORGE_FINSY_PYTHON", "finsy_client.py");
}

#[test]
fn p4runtime_shell_manages_the_program() {
    run("NICFORGE_P4SHELL_PYTHON", "shell_client.py");
}
