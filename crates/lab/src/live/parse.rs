//! From the text of a live run's file to a [`LiveConfig`]. Reads no other file.

use std::path::Path;
use std::sync::Arc;

use nicforge_options::{ConfigError, Located, Section, Value, parse_tree, read_text};

use super::config::{LiveConfig, app_owners, check, owners, tcp_owners};
use super::ports::read_ports;
use crate::scenario::{Assignment, find_file};
use crate::settings::Catalogue;

/// Reads and parses a live run's file.
///
/// # Errors
/// The place and the remedy.
pub fn load_live(file: &Path, catalogue: &Arc<Catalogue>) -> Result<LiveConfig, ConfigError> {
    let mut config = parse_live(&read_text(file)?, file, catalogue)?;
    // Files that it names are found beside it.
    for set in config.assignments.clone() {
        if let Some(found) = find_file(&set, file)? {
            config.set_unchecked(found);
        }
    }
    Ok(config)
}

/// Parses a live run's file; `file` is for errors only.
///
/// # Errors
/// The place and the remedy.
pub fn parse_live(text: &str, file: &Path, catalogue: &Arc<Catalogue>) -> Result<LiveConfig, ConfigError> {
    let root = parse_tree(text, file)?;
    let mut config = LiveConfig::of_defaults(catalogue);
    for field in root.table("a live run's file")? {
        let value = &field.value;
        match field.key.as_str() {
            "live" => config.live = Section::of(value, "[live]", &owners())?,
            "settings" => read_settings(&mut config, value, catalogue)?,
            "app" => config.app = Section::of(value, "[app]", &app_owners(catalogue))?,
            "tcp" => {
                config.tcp = Some(Section::of(value, "[tcp]", &tcp_owners())?);
                // Its packets are the stack's: this is the application that needs the least.
                config.settings.set("app", Value::from("l2fwd"));
            }
            "port" => config.ports = read_ports(value)?,
            other => {
                let known = ["live", "settings", "app", "tcp", "port"];
                return Err(ConfigError::unknown(&field.place, "section", other, &known));
            }
        }
    }
    check(&config, &root.place)?;
    Ok(config)
}

fn read_settings(config: &mut LiveConfig, value: &Located, catalogue: &Arc<Catalogue>) -> Result<(), ConfigError> {
    for field in value.table("[settings]")? {
        config.set_unchecked(Assignment::of_field(field, catalogue)?);
    }
    Ok(())
}
