//! What the fuzz targets `p4_*` do with their input; `tests/fuzzed.rs` runs the same functions for some seconds.

use std::cell::RefCell;

use nicforge_flexnic::p4::{Engine, Options, Pipeline, Program, Shared, stf};
use nicforge_p4runtime::proto::p4::v1 as p4;
use nicforge_p4runtime::{Direct, Loaded, Service};
use prost::Message;

pub const PROGRAMS: [&str; 5] = [
    include_str!("../p4/everything.p4"),
    include_str!("../../../flexnic/tests/p4/parsers.p4"),
    include_str!("../../../flexnic/tests/p4/expressions.p4"),
    include_str!("../../../flexnic/tests/p4/externs.p4"),
    include_str!("../../../flexnic/tests/p4/copies.p4"),
];

fn program(text: &str) -> Program {
    Program::compile_text("seed.p4", text, &Options::default()).unwrap_or_else(|errors| panic!("{errors}"))
}

/// A text as a program: diagnostics or a program, no panic and no hang.
pub fn front_end(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Program::compile_text("fuzz.p4", &text, &Options::default()) {
        Ok(program) => drop(program.pipeline(Engine::Interpreter, 1)),
        Err(errors) => assert!(errors.errors() > 0 && !errors.render(false).is_empty()),
    }
}

/// A text as packet test of a program.
pub fn packet_test(data: &[u8]) {
    thread_local! { static PROGRAM: Program = program(PROGRAMS[0]); }
    let text = String::from_utf8_lossy(data);
    PROGRAM.with(|program| drop(stf::run_text(program, &text, Engine::Interpreter)));
}

/// A packet through a compiled program: the interpreter finds the same.
pub fn packets(data: &[u8]) {
    thread_local! {
        static PIPELINES: RefCell<Vec<[Pipeline; 2]>> = RefCell::new(PROGRAMS.iter().map(|text| {
            let program = program(text);
            [Engine::Interpreter, Engine::Compiled].map(|engine| program.pipeline(engine, 1).expect("the engine is there"))
        }).collect());
    }
    let Some((which, packet)) = data.split_first() else { return };
    PIPELINES.with_borrow_mut(|pipelines| {
        let [reference, compiled] = &mut pipelines[*which as usize % PROGRAMS.len()];
        assert_eq!(reference.process(packet, 1), compiled.process(packet, 1));
        assert_eq!(reference.counters(), compiled.counters());
    });
}

/// Messages of a controller, the primary one: an answer to each, and packets still run.
pub fn messages(data: &[u8]) {
    thread_local! { static PROGRAM: Program = program(PROGRAMS[0]); }
    let shared = PROGRAM.with(|program| Shared::new(program.pipeline(Engine::Interpreter, 1).unwrap(), Some(510)));
    let inject = shared.clone();
    let service = Service::new(nicforge_p4runtime::Options {
        device_id: 1,
        shared: shared.clone(),
        loaded: Some(PROGRAM.with(|program| Loaded::new(program.clone(), b""))),
        engine: Engine::Interpreter,
        seed: 1,
        target: None,
        inject: Box::new(move |packet| _ = inject.process(&packet, 510, false, 0, &mut |_| {})),
    });
    let mut client = Direct::new(&service);
    let election_id = Some(p4::Uint128 { high: 0, low: 1 });
    let first = p4::MasterArbitrationUpdate { device_id: 1, election_id, ..Default::default() };
    let first = p4::StreamMessageRequest { update: Some(p4::stream_message_request::Update::Arbitration(first)) };
    client.send(first).expect("the first client is primary");
    let mut rest = data;
    while let Some((kind, after)) = rest.split_first() {
        // Length of the message, then the message.
        let length = after.first().map_or(0, |byte| *byte as usize * 4).min(after.len().saturating_sub(1));
        let bytes = after.get(1..1 + length).unwrap_or(&[]);
        rest = after.get(1 + length..).unwrap_or(&[]);
        match kind % 4 {
            0 => {
                if let Ok(update) = p4::Update::decode(bytes) {
                    let updates = vec![update.clone(), update];
                    let atomicity = i32::from(kind / 4 % 3);
                    let request =
                        p4::WriteRequest { device_id: 1, election_id, updates, atomicity, ..Default::default() };
                    drop(client.write(&request));
                }
            }
            1 => {
                if let Ok(entity) = p4::Entity::decode(bytes) {
                    let request = p4::ReadRequest { device_id: 1, entities: vec![entity], ..Default::default() };
                    drop(client.read(&request));
                }
            }
            2 => {
                if let Ok(message) = p4::StreamMessageRequest::decode(bytes) {
                    drop(client.send(message));
                }
            }
            _ => {
                if let Ok(config) = p4::ForwardingPipelineConfig::decode(bytes) {
                    let request = p4::SetForwardingPipelineConfigRequest {
                        device_id: 1,
                        election_id,
                        action: i32::from(kind / 4 % 6),
                        config: Some(config),
                        ..Default::default()
                    };
                    drop(client.set_config(&request));
                }
            }
        }
    }
    shared.process(&[0x55; 64], 1, false, 0, &mut |_| {});
    client.deliver();
    while client.receive().is_some() {}
}
