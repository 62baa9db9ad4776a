//! Options of commands that have a place in a network of their own.

use std::net::IpAddr;

use clap::Args;
use nicforge_sockets::attach::{Algorithm, Attachment, NetworkConfig, Sysctl, address, sysctl};

use crate::error::CliError;

/// A place in a network, with a TCP of its own.
#[derive(Args)]
pub struct NetworkOptions {
    /// The network: a TAP device, whose other end is the kernel's
    #[arg(long, value_name = "NAME", conflicts_with = "interface")]
    pub tap: Option<String>,
    /// The network: an interface without addresses of the kernel's
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,
    /// Own address with its prefix length, such as 10.0.0.2/24; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub address: Vec<String>,
    /// Router; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub gateway: Vec<IpAddr>,
    /// Longest packet in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1500)]
    pub mtu: u16,
    /// Congestion control: cubic (default), reno, dctcp, timely (a rate) or none
    #[arg(long, value_name = "NAME", value_parser = algorithm)]
    pub congestion: Option<Algorithm>,
    /// A setting of TCP by Linux's name below net.ipv4, such as tcp_ecn=1; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub sysctl: Vec<Sysctl>,
    /// Share of frames that the network loses by intent, 0 to 1, in each direction
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = share)]
    pub loss: f64,
}

impl NetworkOptions {
    /// The place, if one is given.
    pub fn config(&self) -> Result<Option<NetworkConfig>, CliError> {
        let attachment = match (&self.tap, &self.interface) {
            (Some(name), _) => Attachment::Tap(name.clone()),
            (_, Some(name)) => Attachment::Interface(name.clone()),
            (None, None) if self.address.is_empty() => return Ok(None),
            (None, None) => return Err(CliError::Usage("an --address needs a --tap or an --interface".into())),
        };
        if self.address.is_empty() {
            return Err(CliError::Usage("a network needs an --address, such as --address 10.0.0.2/24".into()));
        }
        let addresses: Result<Vec<_>, _> = self.address.iter().map(|text| address(text)).collect();
        let addresses = addresses.map_err(|error| CliError::Usage(error.to_string()))?;
        let usual = NetworkConfig::new(attachment, addresses);
        let mut tcp = sysctl::apply(usual.tcp.clone(), &self.sysctl);
        if let Some(algorithm) = self.congestion {
            tcp.algorithm = algorithm;
        }
        Ok(Some(NetworkConfig { gateways: self.gateway.clone(), mtu: self.mtu, tcp, ..usual }))
    }
}

/// A share of 0 to 1.
pub fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a share is a number from 0 to 1, such as 0.02".to_string())
}

/// The congestion control of a name.
fn algorithm(name: &str) -> Result<Algorithm, String> {
    let names = || Algorithm::ALL.map(Algorithm::name).join(", ");
    Algorithm::named(name).ok_or_else(|| format!("one of {}", names()))
}
