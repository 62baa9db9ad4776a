//! A live run whose only worker is the TCP stack: programs reach it through its service.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nicforge_lab::live::{LiveConfig, Port, PortKind, Software, TcpConfig};
use nicforge_sockets::attach::{Attachment, NetworkConfig};
use nicforge_sockets::service::{Config, Service};

/// How often the service is asked to stop, if the run ends.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The service's socket.
pub fn path(tcp: &TcpConfig) -> PathBuf {
    crate::sockets::Place::at(tcp.service.clone()).path()
}

/// The stack and its service as a run's worker.
pub fn software<'a>(config: &'a LiveConfig, tcp: &'a TcpConfig) -> Software<'a> {
    Box::new(move |port, stop| serve(config, tcp, port, stop))
}

fn serve(config: &LiveConfig, tcp: &TcpConfig, port: Box<dyn Port>, stop: &AtomicBool) -> Result<(), String> {
    let kernels = config.ports.iter().any(|port| matches!(&port.kind, PortKind::Tap(_)) && port.mac.is_none());
    // A TAP device's address is the kernel's end; ours is another one.
    let attachment = if kernels { Attachment::Tap(String::new()) } else { Attachment::Given };
    let usual = NetworkConfig::new(attachment, tcp.addresses.clone());
    let congestion = tcp.congestion.unwrap_or(usual.congestion);
    let network = NetworkConfig { gateways: tcp.gateways.clone(), mtu: u16::MAX, congestion, ..usual };
    let network = network.over(port).map_err(|error| error.to_string())?;
    let mut service =
        Service::new(Config::at(path(tcp)), Some(Box::new(network))).map_err(|error| error.to_string())?;
    let stopper = service.stopper();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Acquire) && !over.load(Ordering::Acquire) {
                std::thread::sleep(LOOK_EVERY);
            }
            stopper.stop();
        });
        let served = service.run().map_err(|error| error.to_string());
        over.store(true, Ordering::Release);
        served
    })
}
