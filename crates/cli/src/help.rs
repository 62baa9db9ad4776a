//! `nicforge help`: what a command does, or a key means.

use clap::{Args, CommandFactory};

use crate::args::Arguments;
use crate::error::CliError;
use crate::output::print;
use crate::settings;

#[derive(Args)]
pub struct HelpOptions {
    /// A command, or a key of scenarios and live files; all commands when left out
    #[arg(value_name = "COMMAND or KEY")]
    pub words: Vec<String>,
}

/// Prints what is known of a command or a key.
pub fn help(options: &HelpOptions) -> Result<(), CliError> {
    let mut command = Arguments::command();
    command.build();
    for (depth, word) in options.words.iter().enumerate() {
        if let Some(inner) = command.find_subcommand(word) {
            command = inner.clone();
            continue;
        }
        return match settings::about(word).filter(|_| depth == 0) {
            Some(text) => print(&text),
            None => Err(unknown(word, &command)),
        };
    }
    print(&command.render_long_help().to_string())
}

/// `word` is neither a command of `command` nor a key.
fn unknown(word: &str, command: &clap::Command) -> CliError {
    let commands: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    let meant = nicforge_options::nearest(word, &commands).or_else(|| settings::meant(word));
    let remedy = match meant {
        Some(meant) => format!("is `{meant}` meant?"),
        None => "`nicforge help` lists commands, `nicforge list settings` keys".to_owned(),
    };
    CliError::Usage(format!("`{word}` is neither a command nor a key: {remedy}"))
}
