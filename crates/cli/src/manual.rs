//! `nicforge completions` and `nicforge manual`: what shells and `man` know of the command.

use clap::CommandFactory;

use crate::args::{Arguments, CompletionsOptions, ManualOptions};
use crate::error::CliError;
use crate::output::print;

/// Prints the completions of a shell.
pub fn completions(options: &CompletionsOptions) -> Result<(), CliError> {
    let mut text = Vec::new();
    clap_complete::generate(options.shell, &mut Arguments::command(), "nicforge", &mut text);
    print(&String::from_utf8_lossy(&text))
}

/// Writes manual pages into a folder.
pub fn manual(options: &ManualOptions) -> Result<(), CliError> {
    let folder = &options.folder;
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Arguments::command(), folder))
        .map_err(|cause| CliError::Usage(format!("{}: {cause}; name a folder that can be written", folder.display())))
}
