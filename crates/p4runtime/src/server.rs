//! Listening on a Unix socket or a loopback port.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread::JoinHandle;

use tokio::sync::oneshot;
use tonic::transport::Server;

use crate::proto::p4::v1::p4_runtime_server::P4RuntimeServer;
use crate::service::{Options, Service};

/// Largest message that a client may send: a large P4Info.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Where controllers connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// A Unix socket.
    Unix(PathBuf),
    /// A port of this machine.
    Tcp(SocketAddr),
}

/// Why nobody can connect.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ListenError {
    #[error("`{0}` is no place to listen: write unix:PATH, or an address like 127.0.0.1:9559")]
    Place(String),
    #[error("`{0}` can be reached from other machines, and P4Runtime here knows no passwords: use a loopback address")]
    NotLoopback(SocketAddr),
    #[error("cannot listen on {place}: {error}")]
    Bind { place: String, error: std::io::Error },
    #[error("cannot start the server's threads: {0}")]
    Threads(std::io::Error),
}

impl std::str::FromStr for Listen {
    type Err = ListenError;

    fn from_str(text: &str) -> Result<Listen, ListenError> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Listen::Unix(PathBuf::from(path.strip_prefix("//").unwrap_or(path))));
        }
        let place = || ListenError::Place(text.to_owned());
        let address = text.to_socket_addrs().map_err(|_| place())?.next().ok_or_else(place)?;
        if !address.ip().is_loopback() {
            return Err(ListenError::NotLoopback(address));
        }
        Ok(Listen::Tcp(address))
    }
}

impl std::fmt::Display for Listen {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Listen::Unix(path) => write!(out, "unix:{}", path.display()),
            Listen::Tcp(address) => write!(out, "{address}"),
        }
    }
}

/// A running server; ends when it is dropped.
pub struct Running {
    /// Where it listens; with the port that the system chose for port 0.
    pub at: Listen,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            // It only ends.
            let _ = thread.join();
        }
        if let Listen::Unix(path) = &self.at {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Starts a server beside the caller.
pub fn serve(listen: &Listen, options: Options) -> Result<Running, ListenError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(ListenError::Threads)?;
    let (end, ended) = oneshot::channel::<()>();
    let (started, start) = mpsc::channel();
    let listen = listen.clone();
    let thread = std::thread::Builder::new().name("p4runtime".to_owned()).spawn(move || {
        runtime.block_on(run(listen, options, ended, started));
        runtime.shutdown_background();
    });
    let thread = thread.map_err(ListenError::Threads)?;
    match start.recv() {
        Ok(Ok(at)) => Ok(Running { at, end: Some(end), thread: Some(thread) }),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(ListenError::Threads(std::io::Error::other("the server ended at once"))),
    }
}

async fn run(
    listen: Listen,
    options: Options,
    ended: oneshot::Receiver<()>,
    started: mpsc::Sender<Result<Listen, ListenError>>,
) {
    let bind = |error| ListenError::Bind { place: listen.to_string(), error };
    let service = Service::new(options);
    tokio::spawn(service.clone().deliver());
    let router =
        Server::builder().add_service(P4RuntimeServer::new(service).max_decoding_message_size(MESSAGE_BYTES_MAX));
    let end = async {
        // The sender is only dropped.
        let _ = ended.await;
    };
    let say = |result| {
        // Whoever started the server waits for this.
        let _ = started.send(result);
    };
    let result = match &listen {
        Listen::Unix(path) => {
            // What an earlier run left behind; anything but a socket stays and makes the bind fail.
            if std::os::unix::net::UnixStream::connect(path).is_err() && is_socket(path) {
                let _ = std::fs::remove_file(path);
            }
            match tokio::net::UnixListener::bind(path) {
                Ok(listener) => {
                    say(Ok(listen.clone()));
                    let incoming = tokio_stream::wrappers::UnixListenerStream::new(listener);
                    tokio::select! { result = router.serve_with_incoming(incoming) => result, () = end => Ok(()) }
                }
                Err(error) => return say(Err(bind(error))),
            }
        }
        Listen::Tcp(address) => match tokio::net::TcpListener::bind(address).await {
            Ok(listener) => {
                say(Ok(Listen::Tcp(listener.local_addr().unwrap_or(*address))));
                let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
                tokio::select! { result = router.serve_with_incoming(incoming) => result, () = end => Ok(()) }
            }
            Err(error) => return say(Err(bind(error))),
        },
    };
    // The listener's own failure ends the thread; packets go on without controllers.
    drop(result);
}

fn is_socket(path: &std::path::Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    std::fs::symlink_metadata(path).is_ok_and(|about| about.file_type().is_socket())
}
