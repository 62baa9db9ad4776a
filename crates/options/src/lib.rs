//! Options that modules own.
//!
//! A module declares its keys once, beside the code that reads them, as a struct: [`options!`]. Scenario files, `--set`,
//! checks, listings and docs/settings.md come from that declaration. A [`Vocabulary`] knows all owners; [`Values`] are
//! what one point says, and each owner reads its own struct from them.
//!
//! ```text
//! options! { struct … } ──► Owner ──► Vocabulary ──► parse and check ──► Values ──► read::<…>() by its owner
//! ```
//!
//! What files share is here too: TOML in which everything knows its place, and errors that print as
//! `file:line:column: what is wrong; what would be right`.

mod error;
mod key;
mod near;
mod network;
mod options;
mod place;
mod section;
#[cfg(test)]
mod tests;
mod tree;
mod typed;
mod unit;
mod value;
mod values;
mod vocabulary;

pub use error::{ConfigError, Finding, LARGEST_FILE_BYTES, SECONDS_MAX, ensure, read_text, shorten};
pub use key::{Allowed, Form, Key, Refusal};
pub use near::{nearest, powers_next_to};
pub use network::{IP, IPV4, IPV6, NAME, PATH};
pub use options::Options;
pub use place::{Place, Places};
pub use section::Section;
pub use tree::{Field, Located, Node, parse_tree, parse_value};
pub use typed::{Misfit, TypedError, parse_typed};
pub use unit::{convert, number_and_unit};
pub use value::{OptionType, Value};
pub use values::Values;
pub use vocabulary::{Owner, Vocabulary};
