//! rustls, which does the handshake and then hands its keys to the kernel, or to a library in front of it:
//! `secrets server|client ADDRESS:PORT 1.2|1.3 own|kernel`, with `cert.pem` and `key.pem` in the current folder.
//!
//! A server echoes what it gets. A client sends two megabytes, checks the echo, and prints "whole". With `own`, rustls goes
//! on by itself: it is then the peer.
#![allow(unsafe_code, reason = "calls the C library as a C program does")]

use std::error::Error;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, Connection, ConnectionTrafficSecrets, DigitallySignedStruct, ProtocolVersion,
    ServerConfig, ServerConnection, SignatureScheme,
};

type Any<T> = Result<T, Box<dyn Error>>;

const SOL_TLS: i32 = 282;
const ALERT: u8 = 21;
const DATA: u8 = 23;
const CHUNK: usize = 50_000;
const CHUNKS: usize = 40;

fn main() -> Any<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [role, address, version, way] = &words[..] else { return Err("see the first lines of this program".into()) };
    let versions = if version == "1.2" { [&rustls::version::TLS12] } else { [&rustls::version::TLS13] };
    let provider = Arc::new(ring::default_provider());
    if role == "server" {
        let certificate = CertificateDer::from_pem_file("cert.pem")?;
        let key = PrivateKeyDer::from_pem_file("key.pem")?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)?;
        // A ticket would be a record that is no data, in front of the data.
        (config.send_tls13_tickets, config.enable_secret_extraction) = (0, true);
        let (config, listener) = (Arc::new(config), TcpListener::bind(address)?);
        loop {
            let mut stream = Stream::new(listener.accept()?.0, ServerConnection::new(config.clone())?.into(), way)?;
            let mut bytes = vec![0; CHUNK];
            loop {
                let read = stream.read(&mut bytes)?;
                if read == 0 {
                    break;
                }
                stream.write_all(&bytes[..read])?;
            }
            stream.close()?;
        }
    }
    let mut config = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&versions)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone(provider)))
        .with_no_client_auth();
    config.enable_secret_extraction = true;
    let connection = ClientConnection::new(Arc::new(config), ServerName::try_from("nicforge")?)?;
    let mut stream = Stream::new(TcpStream::connect(address)?, connection.into(), way)?;
    for chunk in 0..CHUNKS {
        let sent: Vec<u8> = (0..CHUNK).map(|at| (at * 7 + chunk) as u8).collect();
        stream.write_all(&sent)?;
        let mut got = vec![0; CHUNK];
        stream.read_exact(&mut got)?;
        if got != sent {
            return Err(format!("chunk {chunk} came back changed").into());
        }
    }
    stream.close()?;
    println!("whole");
    Ok(())
}

/// A connection whose records rustls makes, or whoever is below the socket.
enum Stream {
    Own(Box<Connection>, TcpStream),
    Kernel(TcpStream),
}

impl Stream {
    fn new(mut socket: TcpStream, mut connection: Connection, way: &str) -> Any<Stream> {
        socket.set_nodelay(true)?;
        while connection.is_handshaking() || connection.wants_write() {
            if connection.wants_write() {
                connection.write_tls(&mut socket)?;
                continue;
            }
            // One record at a time: a record behind the handshake's last is not rustls's any more.
            let mut record = vec![0; 5];
            socket.read_exact(&mut record)?;
            record.resize(5 + usize::from(u16::from_be_bytes([record[3], record[4]])), 0);
            socket.read_exact(&mut record[5..])?;
            let mut rest = &record[..];
            while !rest.is_empty() {
                connection.read_tls(&mut rest)?;
                connection.process_new_packets()?;
            }
        }
        if way == "own" {
            return Ok(Stream::Own(Box::new(connection), socket));
        }
        let version = connection.protocol_version().ok_or("no version")?;
        let secrets = connection.dangerous_extract_secrets()?;
        option(&socket, libc::IPPROTO_TCP, libc::TCP_ULP, b"tls")?;
        option(&socket, SOL_TLS, 1, &crypto_info(version, &secrets.tx)?)?;
        option(&socket, SOL_TLS, 2, &crypto_info(version, &secrets.rx)?)?;
        Ok(Stream::Kernel(socket))
    }

    /// Tells the peer that nothing follows.
    fn close(mut self) -> io::Result<()> {
        match &mut self {
            Stream::Own(connection, socket) => {
                connection.send_close_notify();
                while connection.wants_write() {
                    connection.write_tls(socket)?;
                }
                Ok(())
            }
            // A warning, number 0: close_notify.
            Stream::Kernel(socket) => send_record(socket, ALERT, &[1, 0]),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Own(connection, socket) => loop {
                match connection.reader().read(bytes) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    done => return done,
                }
                connection.read_tls(socket)?;
                connection.process_new_packets().map_err(io::Error::other)?;
            },
            Stream::Kernel(socket) => receive_record(socket, bytes),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Own(connection, socket) => {
                let taken = connection.writer().write(bytes)?;
                while connection.wants_write() {
                    connection.write_tls(socket)?;
                }
                Ok(taken)
            }
            Stream::Kernel(socket) => socket.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// `struct tls12_crypto_info_…` of linux/tls.h: version, cipher, nonce, key, salt, number of the next record.
fn crypto_info(version: ProtocolVersion, (number, secrets): &(u64, ConnectionTrafficSecrets)) -> Any<Vec<u8>> {
    let (cipher, key, iv, salt_bytes) = match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv } => (51u16, key, iv, 4),
        ConnectionTrafficSecrets::Aes256Gcm { key, iv } => (52, key, iv, 4),
        ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (54, key, iv, 0),
        _ => return Err("a cipher that kernel TLS does not have".into()),
    };
    let version = if version == ProtocolVersion::TLSv1_2 { 0x303u16 } else { 0x304 };
    let (salt, iv) = iv.as_ref().split_at(salt_bytes);
    Ok([&version.to_ne_bytes()[..], &cipher.to_ne_bytes(), iv, key.as_ref(), salt, &number.to_be_bytes()].concat())
}

fn option(socket: &TcpStream, level: i32, name: i32, value: &[u8]) -> io::Result<()> {
    // SAFETY: `value` is readable for its length.
    let done = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, value.as_ptr().cast(), value.len() as libc::socklen_t)
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Room for a control message with a byte, aligned as `cmsghdr` is.
#[repr(align(8))]
struct Control([u8; 64]);

fn message(part: &mut libc::iovec, control: &mut Control) -> libc::msghdr {
    // SAFETY: zeros are a valid `msghdr`.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    (message.msg_iov, message.msg_iovlen) = (part, 1);
    // SAFETY: a computation only.
    message.msg_controllen = unsafe { libc::CMSG_SPACE(1) } as usize;
    message.msg_control = control.0.as_mut_ptr().cast();
    message
}

fn send_record(socket: &TcpStream, kind: u8, bytes: &[u8]) -> io::Result<()> {
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    let mut control = Control([0; 64]);
    let message = message(&mut part, &mut control);
    // SAFETY: `message` points at `part` and `control`, which has room for a control message with a byte.
    let sent = unsafe {
        let header = libc::CMSG_FIRSTHDR(&message);
        ((*header).cmsg_level, (*header).cmsg_type) = (SOL_TLS, 1);
        (*header).cmsg_len = libc::CMSG_LEN(1) as usize;
        *libc::CMSG_DATA(header) = kind;
        libc::sendmsg(socket.as_raw_fd(), &message, 0)
    };
    if sent == bytes.len() as isize { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads data; 0 at the end, which a peer says by an alert.
fn receive_record(socket: &TcpStream, bytes: &mut [u8]) -> io::Result<usize> {
    let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut control = Control([0; 64]);
    let mut message = message(&mut part, &mut control);
    // SAFETY: `message` points at `part`, which is `bytes`, and `control`.
    let (read, kind) = unsafe {
        let read = libc::recvmsg(socket.as_raw_fd(), &mut message, 0);
        let header = libc::CMSG_FIRSTHDR(&message);
        (read, (read > 0 && !header.is_null()).then(|| *libc::CMSG_DATA(header)))
    };
    match kind {
        _ if read < 0 => Err(io::Error::last_os_error()),
        None | Some(DATA) => Ok(read as usize),
        Some(ALERT) if read == 2 && bytes[1] == 0 => Ok(0),
        Some(kind) => Err(io::Error::other(format!("a record of type {kind}: {:?}", &bytes[..read as usize]))),
    }
}

/// Trusts every certificate: the test is about records.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
