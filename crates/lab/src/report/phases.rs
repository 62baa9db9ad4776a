//! The times at which a run goes on in another way, as its settings have them.

use crate::run::options::{Measurement, TargetTime, Warmup};
use crate::settings::Settings;

/// The phases of one point, in ms since traffic began; nothing is known of a report that was read back.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Phases {
    /// When cores begin to poll.
    pub polling_starts: f64,
    /// When the target of more traffic or work begins, where there is one.
    pub target_begins: Option<f64>,
    /// When the measured window begins.
    pub window_begins: Option<f64>,
}

impl Phases {
    /// Those of a run with `settings`.
    pub fn of(settings: &Settings) -> Phases {
        let made_up = !settings.replays();
        Phases {
            polling_starts: settings.read::<Measurement>().polling_starts_ms,
            target_begins: (made_up && settings.has_target()).then_some(settings.read::<TargetTime>().target_begins_ms),
            window_begins: made_up.then_some(settings.read::<Warmup>().warmup_ms),
        }
    }

    /// Each with a word, where something was before it.
    pub fn named(self) -> impl Iterator<Item = (f64, &'static str)> {
        let all =
            [(Some(self.polling_starts), "polling"), (self.target_begins, "target"), (self.window_begins, "window")];
        let at = all.into_iter().filter_map(|(ms, name)| Some((ms?, name)));
        at.filter(|(ms, _)| *ms > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_are_named_where_something_was_before() {
        let mut settings = Settings {
            polling_starts_ms: 5.0,
            target_share: 0.31,
            target_begins_ms: 40.0,
            warmup_ms: 60.0,
            ..Settings::default()
        };
        let named = |settings: &Settings| Phases::of(settings).named().collect::<Vec<_>>();
        assert_eq!(named(&settings), [(5.0, "polling"), (40.0, "target"), (60.0, "window")]);
        settings.read::<TargetTime>().target_begins_ms = 0.0;
        settings.read::<Measurement>().polling_starts_ms = 0.0;
        assert_eq!(named(&settings), [(60.0, "window")]);
    }
}
