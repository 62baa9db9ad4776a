//! Settings of the stack from sysctl values and flags.

use std::collections::BTreeMap;
use std::path::Path;

use nicforge_tcp::{Config, sysctl};

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
        Config { pacing: self.paces(), ..sysctl::read(Config::default(), |name| self.text(name)) }
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
