//! A live run with the TCP stack in place of its workers: programs reach it through its service.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nicforge_lab::live::{FastPath, LiveConfig, Port, PortKind, Software, TcpOptions, WorkerEnd, go_to};
use nicforge_sockets::attach::{AttachError, Attachment, NetworkConfig, sysctl};
use nicforge_sockets::service::{Config, Service};
use nicforge_sockets::transport::Transport;

/// How often the service is asked to stop, if the run ends.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The service's socket.
pub fn path(tcp: &TcpOptions) -> PathBuf {
    crate::sockets::Place::at(tcp.service.clone()).path()
}

/// The stack and its service in place of a run's workers.
pub fn software(config: &LiveConfig, tcp: TcpOptions) -> Software<'_> {
    Box::new(move |ends, stop| serve(config, &tcp, ends, stop))
}

fn serve(config: &LiveConfig, tcp: &TcpOptions, ends: Vec<WorkerEnd>, stop: &AtomicBool) -> Result<(), String> {
    let kernels =
        config.ports.iter().any(|port| matches!(&port.kind, PortKind::Tap(_)) && port.options().mac.is_none());
    // A TAP device's address is the kernel's end; ours is another one.
    let attachment = if kernels { Attachment::Tap(String::new()) } else { Attachment::Given };
    let addresses = tcp.address.iter().map(|own| (own.address, own.length)).collect();
    let usual = NetworkConfig::new(attachment, addresses);
    let mut connections = sysctl::apply(usual.tcp.clone(), &tcp.sysctl);
    if let Some(control) = tcp.congestion {
        connections.algorithm = control.algorithm();
    }
    let network = NetworkConfig { gateways: tcp.gateway.clone(), mtu: u16::MAX, tcp: connections, ..usual };
    let network = over(&network, ends, tcp.fast_path).map_err(|error| error.to_string())?;
    let mut service = Service::new(Config::at(path(tcp)), Some(network)).map_err(|error| error.to_string())?;
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

/// A stack behind one worker's place, one that is split among several, or one on the device's thread.
fn over(network: &NetworkConfig, ends: Vec<WorkerEnd>, fast_path: FastPath) -> Result<Box<dyn Transport>, AttachError> {
    let (mut ports, mut cores): (Vec<Box<dyn Port>>, Vec<_>) = ends.into_iter().map(|end| (end.port, end.core)).unzip();
    if fast_path == FastPath::Card {
        let (port, core) = (ports.pop().ok_or(AttachError::NoPort)?, cores.pop().flatten());
        return Ok(Box::new(network.on_device(port, Arc::new(move || go_to(core)))?));
    }
    if ports.len() > 1 {
        return Ok(Box::new(network.over_all(ports, Arc::new(move |thread| go_to(cores[thread])))?));
    }
    go_to(cores.pop().flatten());
    Ok(Box::new(network.over(ports.pop().ok_or(AttachError::NoPort)?)?))
}
