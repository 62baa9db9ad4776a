//! Settings of the stack from sysctl values and flags.

use std::collections::BTreeMap;
use std::path::Path;

use nicforge_tcp::Config;
use nicforge_tcp::config::{BufferSizes, EcnMode};
use nicforge_tcp::congestion::Algorithm;
use nicforge_units::Time;

/// What packetdrill gives its own device.
const MTU: u16 = 1500;

/// Values by name; flags win over the namespace's sysctls.
pub struct Settings {
    flags: BTreeMap<String, String>,
}

impl Settings {
    /// From `name=value,…`.
    pub fn new(flags: &str) -> Settings {
        let pair = |flag: &str| flag.split_once('=').map(|(name, value)| (name.trim().into(), value.trim().into()));
        Settings { flags: flags.split(',').filter_map(pair).collect() }
    }

    fn text(&self, name: &str) -> Option<String> {
        if let Some(value) = self.flags.get(name) {
            return Some(value.clone());
        }
        let path = Path::new("/proc/sys/net/ipv4").join(name);
        std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
    }

    fn number(&self, name: &str) -> Option<i64> {
        let text = self.text(name)?;
        match text.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(hex, 16).ok(),
            None => text.parse().ok(),
        }
    }

    fn flag(&self, name: &str, default: bool) -> bool {
        self.number(name).map_or(default, |value| value != 0)
    }

    fn sizes(&self, name: &str, default: BufferSizes) -> BufferSizes {
        let text = self.text(name).unwrap_or_default();
        let mut numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok());
        match (numbers.next(), numbers.next(), numbers.next()) {
            (Some(least), Some(default), Some(most)) => BufferSizes { least, default, most },
            _ => default,
        }
    }

    /// MTU of the link: a flag, or what packetdrill or the script says for packetdrill's own device.
    pub fn mtu(&self) -> u16 {
        let option = |text: &str| text.strip_prefix("--mtu=").map(|value| value.trim().to_owned());
        let flag = self.flags.get("mtu").cloned();
        let argument = || arguments().iter().find_map(|argument| option(argument));
        let in_script = || script().and_then(|text| text.lines().find_map(option));
        flag.or_else(in_script).or_else(argument).and_then(|text| text.parse().ok()).unwrap_or(MTU)
    }

    /// Whether the device of the test paces its flows: the scripts install `fq` for that.
    fn paces(&self) -> bool {
        if let Some(value) = self.flags.get("pacing") {
            return value != "0";
        }
        let shown = std::process::Command::new("tc").args(["qdisc", "show", "dev", "tun0", "root"]).output();
        let installed = shown.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).starts_with("qdisc fq "));
        installed || script_asks_for_pacing()
    }

    /// Everything that the values say.
    pub fn config(&self) -> Config {
        let base = Config::default();
        let retries = |name: &str, default: u8| self.number(name).map_or(default, |value| value.clamp(0, 255) as u8);
        let algorithm = self.text("tcp_congestion_control").and_then(|name| Algorithm::named(&name));
        Config {
            timestamps: self.flag("tcp_timestamps", base.timestamps),
            window_scaling: self.flag("tcp_window_scaling", base.window_scaling),
            sack: self.flag("tcp_sack", base.sack),
            dsack: self.flag("tcp_dsack", base.dsack),
            ecn: match self.number("tcp_ecn") {
                Some(0) => EcnMode::Off,
                Some(1) => EcnMode::On,
                _ => EcnMode::Passive,
            },
            algorithm: algorithm.unwrap_or(base.algorithm),
            reordering: self.number("tcp_reordering").map_or(base.reordering, |value| value.clamp(1, 300) as u32),
            tail_loss_probe: self.flag("tcp_early_retrans", base.tail_loss_probe),
            frto: self.flag("tcp_frto", base.frto),
            slow_start_after_idle: self.flag("tcp_slow_start_after_idle", base.slow_start_after_idle),
            syn_retries: retries("tcp_syn_retries", base.syn_retries),
            syn_ack_retries: retries("tcp_synack_retries", base.syn_ack_retries),
            data_retries: retries("tcp_retries2", base.data_retries),
            fin_wait: self.number("tcp_fin_timeout").map_or(base.fin_wait, |s| Time::from_ms(s.max(0) as u64 * 1000)),
            receive: self.sizes("tcp_rmem", base.receive),
            send: self.sizes("tcp_wmem", base.send),
            not_sent_low_water: self.number("tcp_notsent_lowat").map_or(u32::MAX, |value| value as u32),
            burst_divisor: self.number("tcp_tso_win_divisor").map_or(base.burst_divisor, |value| value as u32),
            burst_segments_min: self.number("tcp_min_tso_segs").map_or(base.burst_segments_min, |value| value as u32),
            pacing_percent: (
                self.number("tcp_pacing_ss_ratio").map_or(200, |value| value as u32),
                self.number("tcp_pacing_ca_ratio").map_or(120, |value| value as u32),
            ),
            pacing: self.paces(),
            syn_cookies: self.flag("tcp_syncookies", base.syn_cookies),
            fast_open: self.number("tcp_fastopen").map_or(base.fast_open, |value| value as u32),
            ..base
        }
    }
}

/// The command line of packetdrill.
fn arguments() -> Vec<String> {
    let bytes = std::fs::read("/proc/self/cmdline").unwrap_or_default();
    bytes.split(|byte| *byte == 0).map(|argument| String::from_utf8_lossy(argument).into_owned()).collect()
}

/// The text of the script that runs.
fn script() -> Option<String> {
    let path = arguments().into_iter().rfind(|argument| argument.ends_with(".pkt"))?;
    std::fs::read_to_string(path).ok()
}

/// Where the kernel lacks `fq`, the script's preamble still says that it wants it.
fn script_asks_for_pacing() -> bool {
    let asks = |line: &str| line.starts_with("tc qdisc") && line.trim_end_matches('`').trim_end().ends_with("root fq");
    script().is_some_and(|text| text.lines().any(asks))
}
