//! What determines a point, as a hash.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use nicforge_options::{Allowed, Value};
use sha2::{Digest, Sha256};

use super::KeptError;
use crate::machine::Machine;
use crate::settings::Settings;
use crate::storm::{MACHINE, MACHINES};

/// Hexadecimal digits of a key: 128 bits.
const KEY_DIGITS: usize = 32;
/// And of the program in the name of a file.
const PROGRAM_DIGITS: usize = 16;

/// The hash of `parts`, in hexadecimal digits. The borders between parts count.
pub fn hash_of<'a>(parts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        add(&mut hash, part);
    }
    hex(hash)
}

/// SHA-256 of `text`, as `sha256sum` says it.
pub fn sha256(text: &str) -> String {
    hex(Sha256::new_with_prefix(text))
}

/// Makes keys of points. A file that several points name is read once.
#[derive(Default)]
pub struct Keys {
    /// Hash of what a file's name stands for.
    files: BTreeMap<String, String>,
}

impl Keys {
    /// The key of a point: machine file, effective settings, contents of the files that they name, and `seed`.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn of_point(&mut self, machine: &Machine, settings: &Settings, seed: u64) -> Result<String, KeptError> {
        let mut hash = Sha256::new();
        add(&mut hash, &machine.name);
        add(&mut hash, &machine.hash);
        add(&mut hash, &seed.to_string());
        for (_, key, value) in settings.effective() {
            let Some(value) = value else {
                continue;
            };
            add(&mut hash, key.name);
            match (key.allowed, &value) {
                (Allowed::File, Value::Text(file)) => add(&mut hash, self.of_files(file)?),
                _ => add(&mut hash, &format!("{value:?}")),
            }
        }
        let mut key = hex(hash);
        key.truncate(KEY_DIGITS);
        Ok(key)
    }

    fn of_files(&mut self, name: &str) -> Result<&str, KeptError> {
        if !self.files.contains_key(name) {
            self.files.insert(name.to_owned(), files_hash(name)?);
        }
        Ok(&self.files[name])
    }
}

static PROGRAM: OnceLock<String> = OnceLock::new();

/// Says that `file` is the program: where a library of it is loaded by another one, such as Python. The first call counts.
///
/// # Errors
/// The file cannot be read.
pub fn program_is(file: &Path) -> Result<(), KeptError> {
    let digits = file_digits(file)?;
    PROGRAM.get_or_init(|| digits);
    Ok(())
}

/// The hash of the running program: another version or build may give other results.
///
/// # Errors
/// The program's file cannot be read.
pub fn program_hash() -> Result<&'static str, KeptError> {
    if let Some(hash) = PROGRAM.get() {
        return Ok(hash);
    }
    // The link leads to the file that runs, also when another one has taken its place since.
    let link = Path::new("/proc/self/exe");
    let path = match link.exists() {
        true => link.to_path_buf(),
        false => std::env::current_exe().map_err(|cause| KeptError::read(Path::new("the program"), cause))?,
    };
    let digits = file_digits(&path)?;
    Ok(PROGRAM.get_or_init(|| digits))
}

fn file_digits(path: &Path) -> Result<String, KeptError> {
    let mut hash = Sha256::new();
    add_bytes(&mut hash, path)?;
    let mut digits = hex(hash);
    digits.truncate(PROGRAM_DIGITS);
    Ok(digits)
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn add(hash: &mut Sha256, part: &str) {
    hash.update((part.len() as u64).to_le_bytes());
    hash.update(part);
}

/// Hash of the file, of one for each machine where the name says so, and of what they include.
fn files_hash(name: &str) -> Result<String, KeptError> {
    let mut hash = Sha256::new();
    let paths: Vec<PathBuf> = match name.contains(MACHINE) {
        true => (1..=MACHINES).map(|number| PathBuf::from(name.replace(MACHINE, &number.to_string()))).collect(),
        false => vec![PathBuf::from(name)],
    };
    let mut seen = BTreeSet::new();
    let mut left: Vec<PathBuf> = paths.into_iter().rev().filter(|path| path.is_file()).collect();
    while let Some(path) = left.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        add_bytes(&mut hash, &path)?;
        left.extend(included(&path).into_iter().rev());
    }
    Ok(hex(hash))
}

fn add_bytes(hash: &mut Sha256, path: &Path) -> Result<(), KeptError> {
    let mut file = std::fs::File::open(path).map_err(|cause| KeptError::read(path, cause))?;
    let mut buffer = vec![0; 1 << 16];
    let mut own = Sha256::new();
    loop {
        match file.read(&mut buffer).map_err(|cause| KeptError::read(path, cause))? {
            0 => break,
            count => own.update(&buffer[..count]),
        }
    }
    add(hash, &hex(own));
    Ok(())
}

/// Files that a P4 program includes by name in quotes.
fn included(path: &Path) -> Vec<PathBuf> {
    let is_program = path.extension().is_some_and(|extension| extension == "p4" || extension == "h");
    let text = if is_program { std::fs::read_to_string(path).unwrap_or_default() } else { String::new() };
    let folder = path.parent().unwrap_or(Path::new(""));
    let names = text.lines().filter_map(|line| {
        let rest = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?;
        rest.trim_start().strip_prefix('"')?.split('"').next()
    });
    names.map(|name| folder.join(name)).filter(|path| path.is_file()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::parse_machine;

    fn machine(text: &str) -> Machine {
        parse_machine(text, Path::new("machines/xeon-4216-cx5.toml")).unwrap()
    }

    fn key(settings: &Settings, seed: u64) -> String {
        let text = include_str!("../../../../machines/xeon-4216-cx5.toml");
        Keys::default().of_point(&machine(text), settings, seed).unwrap()
    }

    #[test]
    fn a_key_follows_settings_seed_and_machine_and_nothing_else() {
        let plain = Settings::default();
        let first = key(&plain, 1);
        assert_eq!(first.len(), KEY_DIGITS);
        assert_eq!(first, key(&plain, 1));
        assert_ne!(first, key(&plain, 2));
        assert_ne!(first, key(&plain.clone().with("rx_entries", 128), 1));
        // What another interface reads does not count.
        assert_eq!(first, key(&plain.clone().with("ax_entries", 64), 1));
        let text = format!("{}# one more line\n", include_str!("../../../../machines/xeon-4216-cx5.toml"));
        assert_ne!(first, Keys::default().of_point(&machine(&text), &plain, 1).unwrap());
    }

    #[test]
    fn files_count_by_content_and_with_what_they_include() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        let hash = || files_hash(folder.path().join("a.p4").to_str().unwrap()).unwrap();
        write("a.p4", "# include \"b.p4\"\n#include <core.p4>\n");
        write("b.p4", "#include \"a.p4\"\nheader h {}\n");
        let first = hash();
        assert_eq!(first, hash());
        write("b.p4", "#include \"a.p4\"\nheader g {}\n");
        assert_ne!(first, hash());
    }

    #[test]
    fn borders_between_parts_count() {
        assert_ne!(hash_of(["ab", "c"]), hash_of(["a", "bc"]));
    }
}
