//! Where the bytes of a capture come from: as they are, or packed with gzip, which shows in their first two.

use std::io::{self, BufReader, Cursor, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use flate2::read::MultiGzDecoder;

const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The bytes of a capture, unpacked.
pub(super) struct Source<'r> {
    bytes: Box<dyn Read + Send + 'r>,
    /// Whether what was packed ends too early.
    is_cut: Arc<AtomicBool>,
}

impl<'r> Source<'r> {
    /// What `source` holds.
    pub(super) fn new(mut source: impl Read + Send + 'r) -> io::Result<Source<'r>> {
        let mut first = Vec::new();
        source.by_ref().take(GZIP.len() as u64).read_to_end(&mut first)?;
        let is_packed = first == GZIP;
        let whole = Cursor::new(first).chain(source);
        let bytes: Box<dyn Read + Send + 'r> =
            if is_packed { Box::new(MultiGzDecoder::new(BufReader::new(whole))) } else { Box::new(whole) };
        Ok(Source { bytes, is_cut: Arc::default() })
    }

    /// Says, once all is read, whether something is missing.
    pub(super) fn is_cut(&self) -> Arc<AtomicBool> {
        self.is_cut.clone()
    }
}

/// Fills as much of the buffer as there is, so that a short first read (of a pipe) does not look like a short
/// file.
impl Read for Source<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.bytes.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(length) => filled += length,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    self.is_cut.store(true, Ordering::Relaxed);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}
