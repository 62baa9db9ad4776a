//! The same calls over the kernel and over the library give the same answers.

mod common;

use std::process::Command;

use common::{Running, built, output, text};

/// Compares one sequence; with longer pauses where the machine was too busy for the short ones.
fn compare(seed: u64, calls: u32) {
    let program = built().join("examples/calls");
    let service = Running::new();
    let mut differences = Vec::new();
    for settle_ms in [4, 30, 150] {
        let arguments = [seed.to_string(), calls.to_string(), settle_ms.to_string()];
        let kernel = text(output(Command::new(&program).args(&arguments)));
        let ours = text(output(service.command(&program).args(&arguments)));
        let different = kernel.lines().zip(ours.lines()).find(|(kernel, ours)| kernel != ours);
        match different {
            None if kernel.lines().count() == ours.lines().count() => return,
            None => differences.push("one is longer".to_string()),
            Some((expected, got)) => differences.push(format!("kernel: {expected}\nours:   {got}")),
        }
        if settle_ms == 150 {
            let before = |text: &str| {
                text.lines()
                    .take_while(|line| !differences[2].contains(*line))
                    .map(String::from)
                    .collect::<Vec<_>>()
                    .join("\n")
            };
            panic!("seed {seed}:\n{}\n{}", before(&kernel), differences.join("\n"));
        }
    }
}

#[test]
fn random_calls_answer_as_over_the_kernel() {
    for seed in 0..12 {
        compare(seed, 70);
    }
}
