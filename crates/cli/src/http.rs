//! HTTP for the pages of a live run. The server gives each client a thread, so that a slow client delays no other.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::CliError;

/// How long a client may take to ask, and to read.
const PATIENCE: Duration = Duration::from_secs(10);
/// Clients that are served at once. The next one takes the place of the first: whoever is slow keeps nobody out.
const CLIENTS_MAX: usize = 16;
/// No request is longer.
const REQUEST_MAX: usize = 8 << 10;

/// What a client asks.
pub struct Request<'a> {
    /// Such as GET.
    pub method: &'a str,
    /// Without what follows a question mark.
    pub path: &'a str,
    /// The name that the client knows this machine by; empty where it says none.
    pub host: &'a str,
    /// The kinds of content that the client takes; empty where it says none.
    pub accept: &'a str,
}

/// Answers with `answer` on `address`, which the option `name` gave, as long as the program runs.
pub fn serve(
    address: SocketAddr,
    name: &str,
    answer: impl Fn(&Request, &mut TcpStream) -> std::io::Result<()> + Send + Sync + 'static,
) -> Result<(), CliError> {
    let listener =
        TcpListener::bind(address).map_err(|cause| CliError::Write { what: format!("{name} {address}"), cause })?;
    let answer = Arc::new(answer);
    let clients = Arc::new(Clients::default());
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(place) = clients.take_place(&client) else { continue };
            let (answer, clients) = (answer.clone(), clients.clone());
            std::thread::spawn(move || {
                // A client that goes away has seen enough.
                let _ = asked(client, &*answer);
                clients.leave(place);
            });
        }
    });
    Ok(())
}

/// Who is served, oldest first, each with a number that no other has.
#[derive(Default)]
struct Clients {
    served: Mutex<VecDeque<(u64, TcpStream)>>,
    count: AtomicU64,
}

impl Clients {
    fn served(&self) -> MutexGuard<'_, VecDeque<(u64, TcpStream)>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for `client`; where there is none the oldest client loses its own.
    fn take_place(&self, client: &TcpStream) -> std::io::Result<u64> {
        let place = self.count.fetch_add(1, Ordering::Relaxed);
        let mut served = self.served();
        if served.len() == CLIENTS_MAX
            && let Some((_, oldest)) = served.pop_front()
        {
            // It may be gone already.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        served.push_back((place, client.try_clone()?));
        Ok(place)
    }

    fn leave(&self, place: u64) {
        self.served().retain(|(other, _)| *other != place);
    }
}

fn asked(
    mut client: TcpStream,
    answer: &dyn Fn(&Request, &mut TcpStream) -> std::io::Result<()>,
) -> std::io::Result<()> {
    client.set_write_timeout(Some(PATIENCE))?;
    let text = read_request(&mut client)?;
    let mut lines = text.lines();
    let mut words = lines.next().unwrap_or("").split(' ');
    let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let path = target.split('?').next().unwrap_or("");
    let fields: Vec<_> = lines.filter_map(|line| line.split_once(':')).collect();
    let field = |wanted: &str| {
        let found = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        found.map_or("", |(_, value)| value.trim())
    };
    answer(&Request { method, path, host: field("host"), accept: field("accept") }, &mut client)
}

/// What `client` asks, up to the empty line; less if it sends nothing more in time.
fn read_request(client: &mut TcpStream) -> std::io::Result<String> {
    let until = Instant::now() + PATIENCE;
    let (mut request, mut bytes) = (Vec::new(), [0; 1024]);
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < REQUEST_MAX {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        client.set_read_timeout(Some(left))?;
        match client.read(&mut bytes)? {
            0 => break,
            count => request.extend_from_slice(&bytes[..count]),
        }
    }
    Ok(String::from_utf8_lossy(&request).into_owned())
}

/// An answer that is whole; `more` are further header lines.
pub fn reply(client: &mut TcpStream, status: &str, more: &str, text: &str) -> std::io::Result<()> {
    let length = text.len();
    write!(client, "HTTP/1.1 {status}\r\n{more}Connection: close\r\nContent-Length: {length}\r\n\r\n{text}")
}
