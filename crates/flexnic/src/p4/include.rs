//! Files that ship with the compiler, and where other files are looked for.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file of declarations that ships with the compiler.
struct Shipped {
    name: &'static str,
    text: &'static str,
}

const SHIPPED: [Shipped; 4] = [
    Shipped { name: "core.p4", text: include_str!("../../include/core.p4") },
    Shipped { name: "v1model.p4", text: include_str!("../../include/v1model.p4") },
    Shipped { name: "pna.p4", text: include_str!("../../include/pna.p4") },
    Shipped { name: "flexnic.p4", text: include_str!("../../include/flexnic.p4") },
];

/// An included file.
pub struct Included {
    /// Its name for messages.
    pub name: String,
    /// Its text.
    pub text: Arc<str>,
    /// Folder against which its own includes are resolved; none for a shipped file.
    pub folder: Option<PathBuf>,
}

/// Largest file that is read.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Finds `name`. With quotes the folder of the including file comes first, with angle brackets the shipped files do.
pub fn find(name: &str, quoted: bool, folder: Option<&Path>, search: &[PathBuf]) -> Result<Included, String> {
    let shipped = SHIPPED.iter().find(|file| file.name == name);
    let own = if quoted { folder } else { None };
    if shipped.is_none() || own.is_some_and(|folder| folder.join(name).is_file()) {
        for folder in own.into_iter().chain(search.iter().map(PathBuf::as_path)) {
            let path = folder.join(name);
            if path.is_file() {
                return read(&path);
            }
        }
    }
    let Some(file) = shipped else {
        return Err(format!("there is no file `{name}` in the folders that are searched"));
    };
    Ok(Included { name: format!("<{}>", file.name), text: Arc::from(file.text), folder: None })
}

/// Reads a file from disk.
pub fn read(path: &Path) -> Result<Included, String> {
    let show = path.display();
    let about = std::fs::metadata(path).map_err(|error| format!("cannot read `{show}`: {error}"))?;
    if about.len() > FILE_BYTES_MAX {
        return Err(format!("`{show}` is larger than {FILE_BYTES_MAX} bytes"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read `{show}`: {error}"))?;
    Ok(Included { name: show.to_string(), text: Arc::from(text), folder: path.parent().map(Path::to_owned) })
}
