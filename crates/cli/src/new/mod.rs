//! `nicforge new`: a crate outside this repository, with an interface, application or stage that runs, and its test.
//!
//! Templates are code that compiles: tests of this crate include them as they are. The names in them, `my_ring` and
//! `MyRing`, become the author's.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::args::{NewKind, NewOptions};
use crate::error::CliError;
use crate::output::print;
use crate::registry::catalogue;

/// Where this program was built from. The new crate depends on it, unless the command line names other sources.
const SOURCES: &str = env!("CARGO_MANIFEST_DIR");
/// Longer names make paths that file systems refuse.
const NAME_LETTERS_MAX: usize = 40;

/// A file of the new crate: its path and its text, both with the template's names.
struct Template {
    path: &'static str,
    text: &'static str,
}

macro_rules! templates {
    ($folder:literal: $($path:literal,)*) => {
        &[$(Template { path: $path, text: include_str!(concat!($folder, "/", $path)) },)*]
    };
}

/// What the author gets for a kind of part.
struct Kind {
    /// What it is called in sentences.
    what: &'static str,
    /// The name and the type in its templates.
    name: &'static str,
    type_name: &'static str,
    /// What the key of the template ends in.
    key: &'static str,
    files: &'static [Template],
}

const INTERFACE: Kind = Kind {
    what: "interface",
    name: "my_ring",
    type_name: "MyRing",
    key: "_doorbell",
    files: templates! { "interface":
        "README.md", "src/main.rs", "src/my_ring.rs", "scenarios/my_ring.toml", "scenarios/my_ring_live.toml",
    },
};

const APP: Kind = Kind {
    what: "application",
    name: "my_app",
    type_name: "MyApp",
    key: "_lowest_port",
    files: templates! { "app":
        "README.md", "src/main.rs", "src/my_app.rs", "scenarios/my_app.toml", "scenarios/my_app_live.toml",
    },
};

const STAGE: Kind = Kind {
    what: "stage",
    name: "my_stage",
    type_name: "MyStage",
    key: "_mpps",
    files: templates! { "stage":
        "README.md", "src/main.rs", "src/my_stage.rs", "scenarios/my_stage.toml", "scenarios/my_stage_live.toml",
    },
};

const MANIFEST: &str = include_str!("Cargo.toml.txt");
/// What the scenarios run on and play.
const MACHINE: (&str, &str) = ("machines/xeon-4216-cx5.toml", include_str!("../../../../machines/xeon-4216-cx5.toml"));
const CAPTURE: (&str, &[u8]) = ("captures/sample.pcap", include_bytes!("../../../../scenarios/captures/sample.pcap"));

/// Writes the crate.
pub fn new(options: &NewOptions) -> Result<(), CliError> {
    let kind = match options.kind {
        NewKind::Interface => &INTERFACE,
        NewKind::App => &APP,
        NewKind::Stage => &STAGE,
    };
    let name = &options.name;
    let type_name = type_name(name);
    check_name(kind, name, &type_name)?;
    let sources = Sources::of(options)?;
    let folder = options.path.clone().unwrap_or_else(|| PathBuf::from(name));
    let fill = |text: &str| text.replace(kind.name, name).replace(kind.type_name, &type_name);
    let mut files: Vec<(String, Vec<u8>)> = vec![
        ("Cargo.toml".to_owned(), sources.manifest(name).into_bytes()),
        (MACHINE.0.to_owned(), MACHINE.1.into()),
        (CAPTURE.0.to_owned(), CAPTURE.1.into()),
    ];
    files.extend(sources.lock().map(|lock| ("Cargo.lock".to_owned(), lock)));
    files.extend(kind.files.iter().map(|file| (fill(file.path), fill(file.text).into_bytes())));
    write_all(&folder, &files)?;
    let folder = folder.display();
    print(&format!(
        "wrote {folder}: {} {name}, its scenarios and its test\nnext: cd {folder} && cargo test --release && \
         cargo run --release -- run scenarios/{name}.toml\n",
        kind.what
    ))
}

/// `my_ring` as a type: `MyRing`.
fn type_name(name: &str) -> String {
    let capitalised = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect::<String>()
    };
    name.split('_').map(capitalised).collect()
}

/// Whether the name can be a module and a crate of Rust's, and is neither taken nor used in the template.
fn check_name(kind: &Kind, name: &str, type_name: &str) -> Result<(), CliError> {
    let refuse = |wrong: String, right: String| Err(CliError::Usage(format!("{wrong}: {right}")));
    let begins = name.starts_with(|first: char| first.is_ascii_lowercase());
    let goes_on = name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    if !begins || !goes_on || name.len() > NAME_LETTERS_MAX {
        return refuse(
            format!("`{}` cannot be the name of an {}", nicforge_options::shorten(name), kind.what),
            format!(
                "use a small letter, then small letters, digits and _, at most {NAME_LETTERS_MAX}, such as {}",
                kind.name
            ),
        );
    }
    let another = || format!("choose another, such as my_{name}");
    if RESERVED.contains(&name) {
        return refuse(format!("Rust gives `{name}` a meaning of its own"), another());
    }
    let catalogue = catalogue();
    let vocabulary = catalogue.vocabulary();
    for kind in ["interface", "application", "stage"] {
        if vocabulary.names(kind).contains(&name) {
            return refuse(format!("`{name}` is the name of an existing {kind}"), another());
        }
    }
    if vocabulary.key(&format!("{name}{}", kind.key)).is_some() {
        return refuse(format!("there is a setting `{name}{}` already", kind.key), another());
    }
    let used =
        |file: &Template| file.text.split(|letter: char| !letter.is_alphanumeric()).any(|word| word == type_name);
    if type_name != kind.type_name && kind.files.iter().any(used) {
        return refuse(format!("`{name}` becomes the type `{type_name}`, which the crate uses"), another());
    }
    Ok(())
}

/// Words that are no names of modules or crates.
const RESERVED: &[&str] = &[
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "core",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "main",
    "match",
    "mod",
    "move",
    "mut",
    "nicforge",
    "proc_macro",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "union",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
];

/// Where the new crate finds Nicforge.
enum Sources {
    /// A checkout.
    Checkout(PathBuf),
    /// A repository's address.
    Repository(String),
}

impl Sources {
    fn of(options: &NewOptions) -> Result<Sources, CliError> {
        if let Some(url) = &options.git {
            return Ok(Sources::Repository(url.clone()));
        }
        let built_from = Path::new(SOURCES).ancestors().nth(2).unwrap_or(Path::new(SOURCES));
        let checkout = options.nicforge.as_deref().unwrap_or(built_from);
        let found = fs::canonicalize(checkout).ok().filter(|root| root.join("crates/cli/Cargo.toml").is_file());
        let found = found.ok_or_else(|| {
            CliError::Usage(format!(
                "{} has no sources of Nicforge: name a checkout with --nicforge DIR, or a repository with --git URL",
                checkout.display()
            ))
        })?;
        Ok(Sources::Checkout(found))
    }

    fn manifest(&self, name: &str) -> String {
        let place = match self {
            Sources::Checkout(root) => format!("path = {:?}", root.join("crates/cli").display().to_string()),
            Sources::Repository(url) => format!("git = {url:?}"),
        };
        let dependency = |more: &str| format!("{{ package = \"nicforge-cli\", {place}{more} }}");
        MANIFEST
            .replace("my_name", name)
            .replace("{{nicforge_with_suite}}", &dependency(", features = [\"suite\"]"))
            .replace("{{nicforge}}", &dependency(""))
    }

    /// The checkout's own choice of versions, which is tested.
    fn lock(&self) -> Option<Vec<u8>> {
        match self {
            Sources::Checkout(root) => fs::read(root.join("Cargo.lock")).ok(),
            Sources::Repository(_) => None,
        }
    }
}

/// Writes the files into a new folder. After an error the folder is gone.
fn write_all(folder: &Path, files: &[(String, Vec<u8>)]) -> Result<(), CliError> {
    let refused = |cause: io::Error| {
        let place = folder.display();
        CliError::Usage(match cause.kind() {
            io::ErrorKind::AlreadyExists => {
                format!("{place} is there already: name another folder with --path, or remove it")
            }
            _ => format!("cannot write {place}: {cause}; name a folder that you may write to with --path"),
        })
    };
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent).map_err(refused)?;
    }
    fs::create_dir(folder).map_err(refused)?;
    let write = |(path, bytes): &(String, Vec<u8>)| {
        let path = folder.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, bytes)
    };
    files.iter().try_for_each(write).map_err(|cause| {
        // What was written is of no use.
        let _ = fs::remove_dir_all(folder);
        refused(cause)
    })
}

#[cfg(test)]
mod tests;
