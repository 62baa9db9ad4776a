//! Capture files by name: the ending says the format, and what was there before is lost only to a whole file.

use std::fs::File;
use std::io::{BufWriter, ErrorKind};
use std::path::{Path, PathBuf};

use super::{CaptureFormat, CaptureWriteError, CaptureWriter};

/// A writer of a capture file.
pub type FileWriter = CaptureWriter<BufWriter<File>>;

impl CaptureFormat {
    /// What a file of this name holds: pcapng where it ends in `.pcapng`, else pcap.
    pub fn of(path: &Path) -> CaptureFormat {
        if path.extension().is_some_and(|ending| ending == "pcapng") {
            CaptureFormat::PcapNg
        } else {
            CaptureFormat::Pcap
        }
    }
}

/// The file beside `path` that is written before it becomes `path`.
pub fn part_of(path: &Path) -> PathBuf {
    let mut part = target(path).into_os_string();
    part.push(".part");
    PathBuf::from(part)
}

/// Makes `path` a capture of what `frames` writes, in the format that its name says. On failure an older file
/// is as it was, and nothing is left beside it. What is no file (a pipe, a device) is written as it is.
pub fn write_file<T>(
    path: &Path,
    frames: impl FnOnce(&mut FileWriter) -> Result<T, CaptureWriteError>,
) -> Result<T, CaptureWriteError> {
    let format = CaptureFormat::of(path);
    let write = |file: File| -> Result<T, CaptureWriteError> {
        let mut writer = CaptureWriter::new(BufWriter::new(file), format)?;
        let written = frames(&mut writer)?;
        writer.finish()?;
        Ok(written)
    };
    let before = std::fs::metadata(path).ok();
    if before.as_ref().is_some_and(|meta| !meta.is_file()) {
        return write(File::options().write(true).open(path)?);
    }
    if before.is_none() && path.is_symlink() {
        // It leads to where no file is yet: moving one there would take the link's place.
        return write(File::create(path)?);
    }
    let part = part_of(path);
    let file = match File::create(&part) {
        Ok(file) => file,
        // A file that may be written in a folder that may not.
        Err(cause) if cause.kind() == ErrorKind::PermissionDenied && before.is_some() => {
            return write(File::create(path)?);
        }
        Err(cause) => return Err(cause.into()),
    };
    let moved = write(file).and_then(|written| {
        if let Some(meta) = before {
            std::fs::set_permissions(&part, meta.permissions())?;
        }
        std::fs::rename(&part, target(path))?;
        Ok(written)
    });
    moved.inspect_err(|_| {
        // It says why it failed; that some of it is left as well would not help.
        let _ = std::fs::remove_file(&part);
    })
}

/// The file that `path` means: a link stays, and what it leads to is written.
fn target(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use nicforge_units::Time;

    use super::*;

    fn one(writer: &mut FileWriter) -> Result<(), CaptureWriteError> {
        writer.write(Time::from_ns(7), &[1; 60])
    }

    #[test]
    fn an_older_capture_is_lost_only_to_a_whole_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.pcap");
        write_file(&path, one).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let broken = write_file(&path, |writer| {
            one(writer)?;
            writer.write(Time::ZERO, &[0; 1 << 20])
        });
        assert!(matches!(broken, Err(CaptureWriteError::FrameTooLong(_))));
        assert_eq!(std::fs::read(&path).unwrap(), whole);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_ending_says_the_format() {
        let folder = tempfile::tempdir().unwrap();
        for (name, magic) in [("a.pcap", 0xa1b2_3c4d), ("a", 0xa1b2_3c4d), ("a.pcapng", 0x0a0d_0d0a)] {
            let path = folder.path().join(name);
            write_file(&path, one).unwrap();
            let bytes = std::fs::read(&path).unwrap();
            assert_eq!(bytes[..4], u32::to_le_bytes(magic), "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_a_device_a_device() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.pcap"), folder.path().join("link.pcap"));
        std::fs::write(&real, "older").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write_file(&link, one).unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        let mut magic = [0; 4];
        File::open(&real).unwrap().read_exact(&mut magic).unwrap();
        assert_eq!(magic, 0xa1b2_3c4du32.to_le_bytes());
        // One that leads nowhere yet makes what it leads to.
        std::fs::remove_file(&real).unwrap();
        write_file(&link, one).unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink() && real.is_file());
        // A pipe of this process has no name to write to, but a descriptor's does.
        let (mut reader, writer) = std::io::pipe().unwrap();
        let name = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&writer));
        write_file(Path::new(&name), one).unwrap();
        drop(writer);
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len(), 24 + 16 + 60);
    }
}
