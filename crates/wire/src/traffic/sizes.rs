//! How long frames are, in bytes without FCS.

use rand_pcg::Pcg64;

use super::TrafficError;
use super::alias::AliasTable;

/// Shortest frame without FCS (IEEE 802.3: 64 bytes with it).
pub const FRAME_BYTES_MIN: u32 = 60;
/// Longest frame without FCS: what "9k" jumbo ports take.
pub const FRAME_BYTES_MAX: u32 = 9_216;
/// Largest weight of a size in a file: the sum of as many as a file has lines stays a number.
const WEIGHT_MAX: f64 = 1e100;

/// A distribution of frame sizes.
#[derive(Clone, Debug, PartialEq)]
pub enum SizeModel {
    /// All of this size.
    Fixed(u32),
    /// The customary simple Internet mix: 7 of 60, 4 of 566 and 1 of 1514 bytes (64, 570 and
    /// 1518 with FCS); the mean is 350 bytes.
    Imix,
    /// Two sizes.
    Bimodal {
        /// The small size in bytes.
        small: u32,
        /// The large size in bytes.
        large: u32,
        /// Share of small frames, 0 to 1.
        small_share: f64,
    },
    /// Sizes in bytes, each with its weight.
    Empirical(Vec<(u32, f64)>),
}

impl SizeModel {
    /// An empirical model from lines `bytes weight`; empty lines and `#` comments are skipped.
    ///
    /// # Errors
    /// A line that says something else, or nothing that could be drawn in all of them.
    pub fn from_lines(text: &str) -> Result<SizeModel, TrafficError> {
        let mut table = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("").trim();
            if line.is_empty() {
                continue;
            }
            let row = line
                .split_once(char::is_whitespace)
                .and_then(|(bytes, weight)| Some((bytes.parse().ok()?, weight.trim().parse().ok()?)));
            let wrong = |wrong| TrafficError::SizeLine { line: index + 1, wrong };
            let (bytes, weight) = row.ok_or_else(|| wrong(format!("{line:?} is not `bytes weight`")))?;
            check_size(bytes).map_err(|cause| wrong(cause.to_string()))?;
            if !(0.0..=WEIGHT_MAX).contains(&weight) {
                let range = format!("it is 0 or more, {WEIGHT_MAX:e} at most");
                return Err(wrong(format!("a weight of {weight:?}; {range}")));
            }
            table.push((bytes, weight));
        }
        if table.iter().any(|&(_, weight)| weight > 0.0) {
            Ok(SizeModel::Empirical(table))
        } else {
            Err(TrafficError::SizeWeights)
        }
    }

    /// Sizes and weights, those of weight 0 left out.
    fn table(&self) -> Result<Vec<(u32, f64)>, TrafficError> {
        let table = match self {
            SizeModel::Fixed(bytes) => vec![(*bytes, 1.0)],
            SizeModel::Imix => vec![(60, 7.0), (566, 4.0), (1514, 1.0)],
            SizeModel::Bimodal { small, large, small_share } => {
                if !(0.0..=1.0).contains(small_share) {
                    return Err(TrafficError::Share(*small_share));
                }
                let both = [(*small, *small_share), (*large, 1.0 - small_share)];
                both.into_iter().filter(|&(_, share)| share > 0.0).collect()
            }
            SizeModel::Empirical(table) => {
                let drawn = table.iter().filter(|&&(_, weight)| weight != 0.0);
                drawn.copied().collect()
            }
        };
        for &(bytes, _) in &table {
            check_size(bytes)?;
        }
        Ok(table)
    }
}

pub(super) fn check_size(bytes: u32) -> Result<(), TrafficError> {
    if (FRAME_BYTES_MIN..=FRAME_BYTES_MAX).contains(&bytes) { Ok(()) } else { Err(TrafficError::FrameSize(bytes)) }
}

/// Draws sizes, as indices into a list of them.
#[derive(Clone, Debug)]
pub(super) struct SizePicker {
    sizes: Vec<u32>,
    table: AliasTable,
}

impl SizePicker {
    pub(super) fn new(model: &SizeModel) -> Result<SizePicker, TrafficError> {
        let (sizes, weights): (Vec<u32>, Vec<f64>) = model.table()?.into_iter().unzip();
        let table = AliasTable::new(&weights).ok_or(TrafficError::SizeWeights)?;
        Ok(SizePicker { sizes, table })
    }

    /// All sizes, in bytes.
    pub(super) fn sizes(&self) -> &[u32] {
        &self.sizes
    }

    /// Index of the next frame's size.
    pub(super) fn draw(&self, random: &mut Pcg64) -> usize {
        match self.sizes.len() {
            1 => 0,
            _ => self.table.draw(random),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_file_is_read_or_refused_with_its_line() {
        let model = SizeModel::from_lines("# sizes\n64 0.5\n\n1500\t1.5 # large\n").unwrap();
        assert_eq!(model, SizeModel::Empirical(vec![(64, 0.5), (1500, 1.5)]));
        for (text, wrong) in [
            ("64 1\n1500", "line 2: \"1500\" is not `bytes weight`"),
            ("64 1\n\n12 1", "line 3: a frame of 12 bytes is outside 60 to 9216 (without FCS)"),
            ("64 -1", "line 1: a weight of -1.0; it is 0 or more, 1e100 at most"),
            ("64 inf", "line 1: a weight of inf; it is 0 or more, 1e100 at most"),
            ("64 1\n128 1e308", "line 2: a weight of 1e308; it is 0 or more, 1e100 at most"),
            ("# none", "a size table needs at least one size, with a weight above 0"),
            ("64 0", "a size table needs at least one size, with a weight above 0"),
        ] {
            let error = SizeModel::from_lines(text).unwrap_err();
            assert_eq!(error.to_string(), wrong);
        }
    }

    #[test]
    fn sizes_of_weight_0_are_left_out() {
        let model = SizeModel::from_lines("64 0\n128 1e100\n1500 1e100").unwrap();
        assert_eq!(SizePicker::new(&model).unwrap().sizes(), [128, 1500]);
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert!(SizePicker::new(&SizeModel::Fixed(59)).is_err());
        assert!(SizePicker::new(&SizeModel::Fixed(9217)).is_err());
        assert!(SizePicker::new(&SizeModel::Empirical(vec![])).is_err());
        assert!(SizePicker::new(&SizeModel::Empirical(vec![(60, 0.0)])).is_err());
        let model = SizeModel::Bimodal { small: 64, large: 1500, small_share: 1.5 };
        assert!(SizePicker::new(&model).is_err());
    }
}
