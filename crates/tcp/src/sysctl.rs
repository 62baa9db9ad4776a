//! Settings by the names that Linux gives them below `net.ipv4`.

use std::str::FromStr;

use nicforge_units::Time;

use crate::config::{BufferSizes, Config, EcnMode};
use crate::congestion::Algorithm;

/// One setting, written `tcp_ecn=1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sysctl {
    name: &'static str,
    value: String,
}

/// No such setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SysctlError {
    /// No equals sign.
    #[error("`{0}` is not NAME=VALUE, such as tcp_ecn=1")]
    Form(String),
    /// The name.
    #[error("`{0}` is not a setting of this TCP; it knows {names}", names = NAMES.map(|(name, _)| name).join(", "))]
    Name(String),
    /// The value.
    #[error("{name} takes {takes}, not `{value}`")]
    Value {
        /// Of the setting.
        name: &'static str,
        /// What it takes.
        takes: &'static str,
        /// What was given.
        value: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Number,
    /// Least, default, most.
    Sizes,
    Algorithm,
}

impl Kind {
    fn takes(self) -> &'static str {
        match self {
            Kind::Number => "a number",
            Kind::Sizes => "three sizes in bytes: least, default, most",
            Kind::Algorithm => "a congestion control: cubic, reno, dctcp, timely or none",
        }
    }

    fn fits(self, value: &str) -> bool {
        match self {
            Kind::Number => number(value).is_some(),
            Kind::Sizes => sizes(value).is_some(),
            Kind::Algorithm => Algorithm::named(value).is_some(),
        }
    }
}

const NAMES: [(&str, Kind); 25] = [
    ("tcp_timestamps", Kind::Number),
    ("tcp_window_scaling", Kind::Number),
    ("tcp_sack", Kind::Number),
    ("tcp_dsack", Kind::Number),
    ("tcp_ecn", Kind::Number),
    ("tcp_congestion_control", Kind::Algorithm),
    ("tcp_reordering", Kind::Number),
    ("tcp_early_retrans", Kind::Number),
    ("tcp_frto", Kind::Number),
    ("tcp_slow_start_after_idle", Kind::Number),
    ("tcp_syn_retries", Kind::Number),
    ("tcp_synack_retries", Kind::Number),
    ("tcp_retries2", Kind::Number),
    ("tcp_fin_timeout", Kind::Number),
    ("tcp_rmem", Kind::Sizes),
    ("tcp_wmem", Kind::Sizes),
    ("tcp_notsent_lowat", Kind::Number),
    ("tcp_tso_win_divisor", Kind::Number),
    ("tcp_min_tso_segs", Kind::Number),
    ("tcp_pacing_ss_ratio", Kind::Number),
    ("tcp_pacing_ca_ratio", Kind::Number),
    ("tcp_syncookies", Kind::Number),
    ("tcp_fastopen", Kind::Number),
    // Linux has no name for it: there a queueing discipline of the device paces.
    ("pacing", Kind::Number),
    // It goes with the route there.
    ("initcwnd", Kind::Number),
];

fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

fn sizes(text: &str) -> Option<BufferSizes> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok());
    Some(BufferSizes { least: numbers.next()?, default: numbers.next()?, most: numbers.next()? })
}

impl FromStr for Sysctl {
    type Err = SysctlError;

    fn from_str(text: &str) -> Result<Sysctl, SysctlError> {
        let (name, value) = text.split_once('=').ok_or_else(|| SysctlError::Form(text.into()))?;
        let (given, value) = (name.trim(), value.trim());
        let short = given.strip_prefix("net.ipv4.").unwrap_or(given);
        let (name, kind) =
            NAMES.into_iter().find(|known| known.0 == short).ok_or_else(|| SysctlError::Name(given.into()))?;
        if !kind.fits(value) {
            return Err(SysctlError::Value { name, takes: kind.takes(), value: value.into() });
        }
        Ok(Sysctl { name, value: value.into() })
    }
}

impl std::fmt::Display for Sysctl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

/// `base` with settings; the last of a name counts.
pub fn apply(base: Config, settings: &[Sysctl]) -> Config {
    let value = |name: &str| settings.iter().rfind(|set| set.name == name).map(|set| set.value.clone());
    read(base, value)
}

/// `base` with what `value` says of each name. A value that is none is as if it were absent.
pub fn read(base: Config, value: impl Fn(&str) -> Option<String>) -> Config {
    let numbered = |name: &str| value(name).and_then(|text| number(&text));
    let flag = |name: &str, default: bool| numbered(name).map_or(default, |value| value != 0);
    let retries = |name: &str, default: u8| numbered(name).map_or(default, |value| value.clamp(0, 255) as u8);
    let count = |name: &str, default: u32| numbered(name).map_or(default, |value| value as u32);
    let sized = |name: &str, default: BufferSizes| value(name).and_then(|text| sizes(&text)).unwrap_or(default);
    let algorithm = value("tcp_congestion_control").and_then(|name| Algorithm::named(&name));
    Config {
        timestamps: flag("tcp_timestamps", base.timestamps),
        window_scaling: flag("tcp_window_scaling", base.window_scaling),
        sack: flag("tcp_sack", base.sack),
        dsack: flag("tcp_dsack", base.dsack),
        ecn: match numbered("tcp_ecn") {
            Some(0) => EcnMode::Off,
            Some(1) => EcnMode::On,
            Some(_) => EcnMode::Passive,
            None => base.ecn,
        },
        algorithm: algorithm.unwrap_or(base.algorithm),
        reordering: numbered("tcp_reordering").map_or(base.reordering, |value| value.clamp(1, 300) as u32),
        tail_loss_probe: flag("tcp_early_retrans", base.tail_loss_probe),
        frto: flag("tcp_frto", base.frto),
        slow_start_after_idle: flag("tcp_slow_start_after_idle", base.slow_start_after_idle),
        syn_retries: retries("tcp_syn_retries", base.syn_retries),
        syn_ack_retries: retries("tcp_synack_retries", base.syn_ack_retries),
        data_retries: retries("tcp_retries2", base.data_retries),
        fin_wait: numbered("tcp_fin_timeout").map_or(base.fin_wait, |s| Time::from_ms(s.max(0) as u64 * 1000)),
        receive: sized("tcp_rmem", base.receive),
        send: sized("tcp_wmem", base.send),
        not_sent_low_water: count("tcp_notsent_lowat", base.not_sent_low_water),
        burst_divisor: count("tcp_tso_win_divisor", base.burst_divisor),
        burst_segments_min: count("tcp_min_tso_segs", base.burst_segments_min),
        pacing_percent: (
            count("tcp_pacing_ss_ratio", base.pacing_percent.0),
            count("tcp_pacing_ca_ratio", base.pacing_percent.1),
        ),
        pacing: flag("pacing", base.pacing),
        initial_window: count("initcwnd", base.initial_window),
        syn_cookies: flag("tcp_syncookies", base.syn_cookies),
        fast_open: count("tcp_fastopen", base.fast_open),
        ..base
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> Sysctl {
        text.parse().unwrap()
    }

    #[test]
    fn settings_change_what_they_name() {
        let settings = [
            set("tcp_ecn=1"),
            set("net.ipv4.tcp_rmem = 4096 540000 15728640"),
            set("tcp_sack=1"),
            set("tcp_sack=0"),
            set("tcp_congestion_control=reno"),
        ];
        let config = apply(Config::default(), &settings);
        assert_eq!(config.ecn, EcnMode::On);
        assert_eq!(config.receive, BufferSizes { least: 4096, default: 540_000, most: 15_728_640 });
        assert!(!config.sack, "the last of a name counts");
        assert_eq!(config.algorithm, Algorithm::Reno);
        assert!(config.timestamps, "others stay");
    }

    #[test]
    fn what_is_none_is_refused() {
        let refused = |text: &str| text.parse::<Sysctl>().unwrap_err();
        assert!(matches!(refused("tcp_ecn"), SysctlError::Form(_)));
        assert!(matches!(refused("tcp_enc=1"), SysctlError::Name(_)));
        for wrong in ["tcp_ecn=on", "tcp_rmem=4096", "tcp_congestion_control=fast", "tcp_sack="] {
            assert!(matches!(refused(wrong), SysctlError::Value { .. }), "{wrong}");
        }
    }
}
