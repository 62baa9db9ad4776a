//! Unmodified OpenSSL programs hand their keys over (kernel TLS): records are made and opened by the NIC's engine.
#![allow(unsafe_code, reason = "a namespace for this thread and what it starts")]

mod common;

use std::process::Command;

use common::{Running, Server, built, has, output, text};
use nicforge_sockets::attach::{Attachment, NetworkConfig, address};

/// A namespace for this thread, whose service has 10.9.0.2, and whose kernel has 10.9.0.1.
fn network(loss: f64) -> Option<Running> {
    if !["ip", "python3", "openssl"].iter().all(|program| has(program)) {
        return None;
    }
    // SAFETY: only this thread and what it starts changes its network.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 || !std::path::Path::new("/dev/net/tun").exists() {
        eprintln!("skipped: needs root and /dev/net/tun");
        return None;
    }
    let attachment = Attachment::Tap("nf0".into());
    let addresses = vec![address("10.9.0.2/24").unwrap()];
    let network = NetworkConfig::new(attachment, addresses);
    let service = Running::losing(Some(network), loss);
    for words in ["link set lo up", "addr add 10.9.0.1/24 dev nf0", "link set nf0 up"] {
        text(output(Command::new("ip").args(words.split(' '))));
    }
    let key = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=nicforge";
    text(output(Command::new("openssl").args(key.split(' ')).current_dir(service.folder.path())));
    Some(service)
}

/// Both ends; `OP_ENABLE_KTLS` is bit 3 of OpenSSL's options. Echoes, with a half-close, until the end.
const PROGRAM: &str = "
import select, socket, ssl, sys
role, host, version, cipher = sys.argv[1:5]
c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if role == 'server' else ssl.PROTOCOL_TLS_CLIENT)
c.check_hostname = False
c.verify_mode = ssl.CERT_NONE
c.options |= 8
if version == '1.2': c.maximum_version = ssl.TLSVersion.TLSv1_2; c.set_ciphers(cipher)
else: c.minimum_version = ssl.TLSVersion.TLSv1_3
if role == 'server':
    c.load_cert_chain('cert.pem', 'key.pem')
    l = socket.create_server((host, 7443))
    while True:
        s = c.wrap_socket(l.accept()[0], server_side=True)
        while d := s.recv(50_000): s.sendall(d)
        try: s.unwrap()
        except OSError: pass
        s.close()
else:
    s = c.wrap_socket(socket.create_connection((host, 7443), timeout=20))
    data = bytes(range(256)) * 8000
    # One thread: OpenSSL takes a connection's writes and reads one at a time.
    s.setblocking(False)
    sent, got = 0, b''
    while len(got) < len(data):
        ready = select.select([s], [s] if sent < len(data) else [], [], 20)
        assert any(ready), (sent, len(got))
        try:
            if sent < len(data): sent += s.send(data[sent:sent + 50_000])
        except ssl.SSLWantWriteError: pass
        try:
            some = s.recv(30_000)
            assert some, (sent, len(got))
            got += some
        except ssl.SSLWantReadError: pass
    assert got == data, len(got)
    s.settimeout(20)
    s.unwrap(); s.close()
    print('whole')
";

const CIPHERS: [(&str, &str); 5] = [
    ("1.2", "ECDHE-RSA-AES128-GCM-SHA256"),
    ("1.2", "ECDHE-RSA-AES256-GCM-SHA384"),
    ("1.2", "ECDHE-RSA-CHACHA20-POLY1305"),
    ("1.3", "any"),
    ("1.2", "ECDHE-RSA-AES128-SHA256"),
];

#[test]
fn records_of_programs_are_made_and_opened_by_the_nic() {
    let Some(service) = network(0.0) else { return };
    for (version, cipher) in CIPHERS {
        let counted = |name: &str| {
            let host = service.seen().host.unwrap_or_default();
            host.counters.get(name).copied().unwrap_or_default()
        };
        let before = [counted("tx_tls_encrypted_bytes"), counted("tls_records_offloaded")];
        let mut ours = service.start("python3", &["-c", PROGRAM, "server", "10.9.0.2", version, cipher]);
        service.listening(7443);
        let client = ["-c", PROGRAM, "client", "10.9.0.2", version, cipher];
        assert_eq!(text(output(Command::new("python3").args(client))), "whole\n", "{version} {cipher}");
        ours.kill();
        service.settled(0);
        let after = [counted("tx_tls_encrypted_bytes"), counted("tls_records_offloaded")];
        let moved = [after[0] - before[0], after[1] - before[1]];
        // OpenSSL 3.0 offloads no CBC, and receives by kernel TLS in version 1.2 only.
        let offloads = !cipher.ends_with("-SHA256") || cipher.contains("GCM");
        assert_eq!(moved[0] > 2_000_000, offloads, "{version} {cipher} {moved:?}");
        assert_eq!(moved[1] > 50, offloads && version == "1.2", "{version} {cipher} {moved:?}");
    }
}

/// A client that damages a record behind the handshake, or sends something else, and prints the alert that it gets.
const LIAR: &str = "
import socket, ssl, sys
c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
c.check_hostname = False
c.verify_mode = ssl.CERT_NONE
c.maximum_version = ssl.TLSVersion.TLSv1_2
c.set_ciphers('ECDHE-RSA-AES128-GCM-SHA256')
come, leave = ssl.MemoryBIO(), ssl.MemoryBIO()
t = c.wrap_bio(come, leave)
s = socket.create_connection(('10.9.0.2', 7443), timeout=20)
what = sys.argv[1]
flights = 0
while True:
    try: t.do_handshake(); break
    except ssl.SSLWantReadError:
        flight = leave.read()
        if flight:
            s.sendall(flight); flights += 1
            # The client's Finished is its last record, and the end of its stream comes with it. The server's answer
            # may come in parts, and the server may have closed by the second one.
            if what == 'ended' and flights == 2: s.shutdown(socket.SHUT_WR)
        d = s.recv(70_000)
        come.write(d) if d else come.write_eof()
if what == 'ended': print('shaken'); sys.exit()
s.sendall(leave.read())
t.write(b'a' * 3000)
r = bytearray(leave.read())
if what == 'damaged': r[-1] ^= 1
if what == 'long': r[3:5] = b'\\x40\\x19'
if what == 'short': r[3:5] = b'\\x00\\x17'
if what == 'old': r[2] = 1
s.sendall(r + bytes(20_000 if what == 'long' else 0))
try:
    while True:
        try: t.read(10_000); break
        except ssl.SSLWantReadError:
            d = s.recv(70_000)
            come.write(d) if d else come.write_eof()
    print('data')
except ssl.SSLError as e: print(e.reason)
";

#[test]
fn a_peer_that_lies_gets_an_alert_and_one_that_ends_early_its_handshake() {
    let Some(service) = network(0.0) else { return };
    let alerts = [
        ("damaged", "SSLV3_ALERT_BAD_RECORD_MAC"),
        ("short", "SSLV3_ALERT_BAD_RECORD_MAC"),
        ("long", "TLSV1_ALERT_RECORD_OVERFLOW"),
        ("old", "TLSV1_ALERT_PROTOCOL_VERSION"),
        ("ended", "shaken"),
        ("ended", "shaken"),
    ];
    for (what, alert) in alerts {
        let words = ["-c", PROGRAM, "server", "10.9.0.2", "1.2", "ECDHE-RSA-AES128-GCM-SHA256"];
        let mut ours = service.start("python3", &words);
        service.listening(7443);
        assert_eq!(text(output(Command::new("python3").args(["-c", LIAR, what]))).trim(), alert, "{what}");
        ours.kill();
        service.settled(0);
    }
}

/// Waits until somebody listens at a port of the kernel's, in this thread's namespace.
fn kernel_listens(port: u16) {
    let line = format!(":{port:04X} 00000000:0000 0A");
    for _ in 0..600 {
        if std::fs::read_to_string("/proc/thread-self/net/tcp").unwrap().contains(&line) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("nobody listens at {port} of the kernel's");
}

/// rustls does the handshake and extracts its secrets; OpenSSL, or a rustls that goes on by itself, is the peer.
#[test]
fn rustls_hands_its_keys_over() {
    let Some(service) = network(0.0) else { return };
    let program = built().join("examples/secrets");
    let program = program.to_str().unwrap();
    let counted = |name: &str| {
        let host = service.seen().host.unwrap_or_default();
        host.counters.get(name).copied().unwrap_or_default()
    };
    for version in ["1.2", "1.3"] {
        for is_server in [true, false] {
            let before = [counted("tx_tls_encrypted_bytes"), counted("tls_records_offloaded")];
            if is_server {
                let mut ours = service.start(program, &["server", "10.9.0.2:7443", version, "kernel"]);
                service.listening(7443);
                let client = ["-c", PROGRAM, "client", "10.9.0.2", version, "ECDHE-RSA-AES128-GCM-SHA256"];
                assert_eq!(text(output(Command::new("python3").args(client))), "whole\n", "{version}");
                ours.kill();
                service.settled(0);
            } else {
                let words = ["server", "10.9.0.1:7444", version, "own"];
                let peer = Command::new(program).args(words).current_dir(service.folder.path()).spawn();
                let mut peer = Server(peer.unwrap());
                kernel_listens(7444);
                let done = service.run(program, &["client", "10.9.0.1:7444", version, "kernel"]);
                assert_eq!(text(done), "whole\n", "{version}");
                peer.kill();
            }
            let after = [counted("tx_tls_encrypted_bytes"), counted("tls_records_offloaded")];
            let moved = [after[0] - before[0], after[1] - before[1]];
            assert!(moved[0] >= 2_000_000 && moved[1] > 50, "{version}, server {is_server}: {moved:?}");
        }
    }
}

/// redis is asked for kernel TLS by OpenSSL's configuration; the kernel's `redis-cli` is the client.
#[test]
fn redis_speaks_tls_through_the_nic() {
    if !has("redis-server") || !has("redis-cli") || !has("redis-benchmark") {
        return;
    }
    let Some(service) = network(0.0) else { return };
    let asks = "openssl_conf = a\n[a]\nssl_conf = b\n[b]\nsystem_default = c\n[c]\nOptions = KTLS\n";
    std::fs::write(service.path("openssl.cnf"), asks).unwrap();
    let words = "--port 0 --tls-port 6380 --tls-cert-file cert.pem --tls-key-file key.pem --tls-ca-cert-file cert.pem \
                 --tls-auth-clients no --protected-mode no --bind 10.9.0.2 --save";
    let mut server = service.command("redis-server");
    server.args(words.split_whitespace()).arg("").env("OPENSSL_CONF", service.path("openssl.cnf"));
    let log = std::fs::File::create(service.path("redis.log")).unwrap();
    let mut server = Server(server.stdout(log).spawn().unwrap());
    service.listening(6380);
    let client = |program: &str, words: &[&str]| {
        let mut client = Command::new(program);
        client.args(["-h", "10.9.0.2", "-p", "6380", "--tls", "--insecure"]).args(words);
        text(output(&mut client)).trim().to_string()
    };
    let large = "0123456789abcdef".repeat(6000);
    assert_eq!(client("redis-cli", &["set", "key", &large]), "OK");
    assert_eq!(client("redis-cli", &["get", "key"]), large);
    let measured = client("redis-benchmark", &["-q", "-n", "5000", "-c", "10", "-t", "set,get"]);
    println!("{measured}");
    assert!(server.end());
    let counters = service.seen().host.unwrap_or_default().counters;
    assert!(counters["tx_tls_encrypted_bytes"] > 100_000 && counters["tx_tls_refused"] == 0, "{counters:?}");
}

/// nginx over the library, with kernel TLS and `sendfile`; the kernel's curl fetches, and says what it got.
fn nginx(loss: f64) -> Option<std::collections::BTreeMap<String, u64>> {
    if !has("nginx") || !has("curl") {
        return None;
    }
    let service = network(loss)?;
    let folder = service.folder.path().display().to_string();
    let mebibytes = std::env::var("NICFORGE_TRANSFER_MIB").ok().and_then(|text| text.parse().ok()).unwrap_or(16);
    let mut file = std::io::BufWriter::new(std::fs::File::create(service.path("large")).unwrap());
    for word in 0..mebibytes * (1u64 << 17) {
        std::io::Write::write_all(&mut file, &word.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()).unwrap();
    }
    drop(file);
    let config = format!(
        "worker_processes 1; daemon off; user root; pid {folder}/pid; error_log {folder}/error.log;\n\
         events {{ worker_connections 256; }}\n\
         http {{ access_log off; sendfile on; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;\n\
         fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n\
         ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem;\n\
         ssl_protocols TLSv1.2 TLSv1.3; ssl_conf_command Options KTLS; client_max_body_size 0;\n\
         server {{ listen 10.9.0.2:8443 ssl; root {folder};\n\
         location /up/ {{ dav_methods PUT; create_full_put_path on; }} }} }}"
    );
    std::fs::write(service.path("nginx.conf"), config).unwrap();
    let conf = format!("{folder}/nginx.conf");
    let mut server = service.start("nginx", &["-p", &folder, "-c", &conf]);
    service.listening(8443);
    let hash = |path: &str| {
        let printed = text(output(Command::new("sha256sum").arg(path)));
        printed.split(' ').next().unwrap_or_default().to_string()
    };
    let wanted = hash(&format!("{folder}/large"));
    for version in ["--tls-max 1.2", "--tlsv1.3"] {
        let got = format!("{folder}/got");
        let words = ["-sSk", "--max-time", "1500", "-o", &got, "https://10.9.0.2:8443/large"];
        text(waited(Command::new("curl").args(version.split(' ')).args(words)));
        assert_eq!(hash(&got), wanted, "down, {version}");
        let words = ["-sSk", "--max-time", "1500", "-T", &got, "https://10.9.0.2:8443/up/back"];
        text(waited(Command::new("curl").args(version.split(' ')).args(words)));
        assert_eq!(hash(&format!("{folder}/up/back")), wanted, "up, {version}");
    }
    let counters = service.seen().host.unwrap_or_default().counters;
    println!("sha256 {wanted} of {mebibytes} MiB, down and up, with TLS 1.2 and 1.3, at a loss of {loss}:");
    counters.iter().filter(|(name, count)| name.contains("tls") && **count > 0).for_each(|(name, count)| {
        println!("  {name} {count}");
    });
    assert!(server.end());
    Some(counters)
}

/// Output of a command that may take its time.
fn waited(command: &mut Command) -> std::process::Output {
    command.output().unwrap()
}

#[test]
fn nginx_serves_the_same_file_with_and_without_loss() {
    let Some(clean) = nginx(0.0) else { return };
    assert_eq!((clean["tx_tls_refused"], clean["tls_records_not_offloaded"]), (0, 0));
    assert!(clean["tx_tls_encrypted_packets"] > 1000 && clean["tls_records_offloaded"] > 100);
    // A large file goes at two rates of loss, a small one at a rate between them.
    let losses: &[f64] = if std::env::var_os("NICFORGE_TRANSFER_MIB").is_some() { &[0.01, 0.05] } else { &[0.02] };
    for loss in losses {
        let Some(lossy) = nginx(*loss) else { return };
        assert!(lossy["tx_tls_ooo"] > 10 && lossy["tx_tls_refused"] == 0, "{lossy:?}");
        assert!(lossy["tls_records_offloaded"] > 100, "{lossy:?}");
    }
}
