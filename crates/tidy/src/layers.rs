//! Who may depend on whom, and who may see which contract and which ground.

use crate::Finding;
use crate::scan::{item_end, line_of, words};
use crate::tree::File;

/// The crates, each of which may depend only on those before it.
pub const LAYERS: [&str; 22] = [
    "record",
    "report",
    "units",
    "options",
    "wire",
    "l5p",
    "tcp",
    "packetdrill",
    "platform",
    "sockets",
    "storage",
    "preload",
    "nic",
    "stages",
    "interfaces",
    "apps",
    "flexnic",
    "p4runtime",
    "p4stage",
    "lab",
    "python",
    "cli",
];
/// Crates that stand apart: nobody depends on them and they depend on none of the layers.
pub const APART: [&str; 1] = ["tidy"];

/// Dependencies that point up or sideways, and crates without a layer.
pub fn directions(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with("/Cargo.toml")) {
        let Some(name) = file.crate_name() else {
            continue;
        };
        let layer = LAYERS.iter().position(|layer| *layer == name);
        if layer.is_none() && !APART.contains(&name) {
            let message = format!("crate `{name}` has no layer: add it to LAYERS in crates/tidy/src/layers.rs");
            findings.push(Finding { file: file.path.clone(), line: 1, message });
            continue;
        }
        for dependency in own_dependencies(&file.text) {
            let below = LAYERS.iter().position(|layer| *layer == dependency);
            if below.is_some() && below < layer {
                continue;
            }
            let key = format!("nicforge-{dependency}");
            let line = file.text.find(&key).map_or(1, |at| line_of(&file.text, at));
            let message = format!(
                "`{name}` must not depend on `{dependency}`: the order is {}; move what both need down",
                LAYERS.join(" <- ")
            );
            findings.push(Finding { file: file.path.clone(), line, message });
        }
    }
    findings
}

/// The workspace's own crates that a manifest builds on; what only its tests use is free.
fn own_dependencies(manifest: &str) -> Vec<String> {
    // A manifest that does not parse does not build, so cargo has said it already.
    let Ok(manifest) = manifest.parse::<toml::Table>() else {
        return Vec::new();
    };
    let tables = ["dependencies", "build-dependencies"].into_iter();
    tables
        .filter_map(|table| manifest.get(table)?.as_table())
        .flat_map(|table| table.keys())
        .filter_map(|key| key.strip_prefix("nicforge-").map(String::from))
        .collect()
}

/// Uses of a ground outside the crate that assembles runs.
pub fn grounds(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let outside = |file: &&File| {
        file.is_rust() && !matches!(file.crate_name(), None | Some("lab" | "platform" | "sockets" | "storage"))
    };
    for file in files.iter().filter(outside) {
        for at in words(&file.code, "nicforge_platform") {
            let rest = file.code[at + "nicforge_platform".len()..].trim_start();
            let Some(path) = rest.strip_prefix("::") else {
                continue;
            };
            let path = match path.trim_start() {
                group if group.starts_with('{') => &group[..item_end(group, 0)],
                single => single.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(""),
            };
            let Some(ground) = ["sim", "live"].into_iter().find(|ground| words(path, ground).next().is_some()) else {
                continue;
            };
            if !file.in_test(at) {
                let message = format!(
                    "only `lab` and tests may use `platform::{ground}`: take a `Cpu` or `Dma` type parameter instead"
                );
                findings.push(Finding { file: file.path.clone(), line: line_of(&file.code, at), message });
            }
        }
    }
    findings
}

/// NIC halves that see `Cpu`, and driver halves that see `Dma`.
pub fn halves(files: &[File]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.is_rust() && file.crate_name() == Some("interfaces")) {
        let part = |name: &str| file.path.split('/').any(|part| part.trim_end_matches(".rs") == name);
        let (half, own, other) = match (part("nic"), part("driver")) {
            (true, _) => ("NIC", "Dma", "Cpu"),
            (_, true) => ("driver", "Cpu", "Dma"),
            _ => continue,
        };
        for at in words(&file.code, other).filter(|at| !file.in_test(*at)) {
            let message = format!(
                "the {half} half sees only `{own}`, not `{other}`: pass what it needs through memory or registers"
            );
            findings.push(Finding { file: file.path.clone(), line: line_of(&file.code, at), message });
        }
    }
    findings
}
