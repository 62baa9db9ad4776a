//! Which of several rings a frame leaves by, where another program takes them: all of a flow by one.

use nicforge_wire::parse_frame;
use nicforge_wire::rss::Toeplitz;

/// Spreads flows over rings.
#[derive(Debug, Default)]
pub struct Spread(Toeplitz);

impl Spread {
    /// The ring of `count`, at least one, that `frame` goes by.
    pub fn ring(&self, frame: &[u8], count: usize) -> usize {
        match count {
            1 => 0,
            _ => parse_frame(frame).map_or(0, |summary| self.0.hash(&summary) as usize % count),
        }
    }
}
