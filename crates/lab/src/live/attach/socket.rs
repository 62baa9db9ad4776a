//! The socket that workers call at: its path, and who may call.

use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use nicforge_options::{ConfigError, Form, Place, Section};
use nicforge_platform::live::LiveError;

use super::AttachOptions;
use crate::live::LiveRunError;

/// Where the system's groups are.
const GROUPS: &str = "/etc/group";
/// Of the socket's mode, where nobody says more.
const OWNER: u32 = 0o600;
const OWNER_AND_GROUP: u32 = 0o660;

/// How a mode is written.
pub(super) static MODE: Form =
    Form { says: "octal digits of a mode, such as \"0660\"", parse: |text| mode(text).map(|_| text.to_owned()) };

fn mode(text: &str) -> Option<u32> {
    u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777)
}

/// The socket of a run; it goes with the value.
pub struct Socket {
    /// Where workers call.
    pub listener: UnixListener,
    path: PathBuf,
    /// The socket at the path, to tell it from one that another run put there later.
    inode: Option<u64>,
}

impl Socket {
    /// Listens where `live` says.
    ///
    /// # Errors
    /// Somebody listens there already, something else is there, there is no such group, or the system does not let us.
    pub fn open(live: &Section) -> Result<Socket, LiveRunError> {
        let options: AttachOptions = live.read();
        let path = options.attach.unwrap_or_default();
        let failed = || LiveError::of(format!("socket {}", path.display()));
        let group =
            options.attach_group.as_deref().map(|name| group(name, live.place_of("attach_group"))).transpose()?;
        let listener = listen(&path, live.place_of("attach"))?;
        let usual = if group.is_some() { OWNER_AND_GROUP } else { OWNER };
        let mode = options.attach_mode.as_deref().and_then(mode).unwrap_or(usual);
        // The group comes first: before that its members are others.
        if group.is_some() {
            std::os::unix::fs::chown(&path, None, group).map_err(failed())?;
        }
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).map_err(failed())?;
        listener.set_nonblocking(true).map_err(failed())?;
        Ok(Socket { inode: inode(&path), listener, path })
    }
}

/// The number of the group that is called `name`, or has that number.
fn group(name: &str, place: &Place) -> Result<u32, ConfigError> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let known = std::fs::read_to_string(GROUPS).unwrap_or_default();
    let number = known.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok()).flatten()
    });
    number.ok_or_else(|| {
        let wrong = format!("no group is called `{name}`");
        ConfigError::new(place, wrong, format!("name one of {GROUPS}, or write its number"))
    })
}

/// Listens at `path`, where there is nothing or what an earlier run left.
fn listen(path: &Path, place: &Place) -> Result<UnixListener, ConfigError> {
    let wrong = |wrong: String, right: &str| {
        let wrong = format!("socket {}: {wrong}", path.display());
        Err(ConfigError::new(place, wrong, right))
    };
    if let Ok(there) = std::fs::symlink_metadata(path) {
        if !there.file_type().is_socket() {
            let right = "name a path where nothing is; the socket is made there";
            return wrong("there is something else".into(), right);
        }
        if UnixStream::connect(path).is_ok() {
            let right = "name another, or end the run that does";
            return wrong("somebody listens there already".into(), right);
        }
        // Whether it can be removed, binding says.
        let _ = std::fs::remove_file(path);
    }
    UnixListener::bind(path).or_else(|cause| {
        let right = "name a path in a folder that is there and that you may write to";
        wrong(cause.to_string(), right)
    })
}

fn inode(path: &Path) -> Option<u64> {
    std::fs::symlink_metadata(path).ok().map(|there| there.ino())
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Somebody may have tidied up already, or listen there.
        if self.inode.is_some() && self.inode == inode(&self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
