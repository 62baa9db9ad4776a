//! Unmodified programs over the library, as servers and as clients.

mod common;

use common::{Running, has, text};

/// Bytes that compress badly, the same every time.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 1u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

fn fetch(service: &Running, url: &str) -> Vec<u8> {
    let output = service.run("curl", &["-sS", "--fail", "--max-time", "25", url]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{url}: {said} {:?}", service.seen().sockets);
    output.stdout
}

#[test]
fn redis_saves_in_a_child_while_it_serves() {
    if !has("redis-server") || !has("redis-cli") || !has("redis-benchmark") {
        return;
    }
    let service = Running::new();
    let mut server = service.start("redis-server", &["--port", "6379", "--save", "", "--protected-mode", "no"]);
    service.listening(6379);
    let cli = |arguments: &[&str]| text(service.run("redis-cli", arguments)).trim().to_string();
    assert_eq!(cli(&["set", "key", "value"]), "OK");
    assert_eq!(cli(&["bgsave"]), "Background saving started");
    let bench = text(service.run("redis-benchmark", &["-q", "-n", "5000", "-c", "20", "-t", "set,get,lrange_100"]));
    assert!(["SET", "GET", "LRANGE_100"].iter().all(|name| bench.contains(name)), "{bench}");
    let piped = text(service.run("redis-benchmark", &["-q", "-n", "20000", "-P", "16", "-t", "set"]));
    assert!(piped.contains("requests per second"));
    assert_eq!(cli(&["get", "key"]), "value");
    assert!(cli(&["info", "persistence"]).contains("rdb_last_bgsave_status:ok"));
    assert!(service.path("dump.rdb").exists());
    assert!(server.end());
    service.settled(0);
}

#[test]
fn memcached_answers_with_several_threads() {
    if !has("memcached") || !has("python3") {
        return;
    }
    let service = Running::new();
    let mut server = service.start("memcached", &["-u", "root", "-p", "11211", "-t", "3", "-U", "0"]);
    service.listening(11211);
    let script = "
import socket, threading
def client(n):
    c = socket.create_connection(('127.0.0.1', 11211)); f = b''
    for i in range(100):
        v = b'%d-%d' % (n, i)
        c.sendall(b'set k%d 0 0 %d\\r\\n%s\\r\\nget k%d\\r\\n' % (n, len(v), v, n))
        want = b'STORED\\r\\nVALUE k%d 0 %d\\r\\n%s\\r\\nEND\\r\\n' % (n, len(v), v)
        got = b''
        while len(got) < len(want): got += c.recv(4096)
        assert got == want, got
    done.append(n)
done = []
t = [threading.Thread(target=client, args=(n,)) for n in range(8)]
for x in t: x.start()
for x in t: x.join()
assert len(done) == 8
";
    text(service.run("python3", &["-c", script]));
    server.end();
    service.settled(0);
}

#[test]
fn nginx_reloads_and_survives_a_killed_worker() {
    if !has("nginx") || !has("curl") {
        return;
    }
    let service = Running::new();
    let folder = service.folder.path().display().to_string();
    let large = noise(3_000_000);
    std::fs::write(service.path("large"), &large).unwrap();
    std::fs::write(service.path("small"), &large[..1024]).unwrap();
    let config = format!(
        "worker_processes 3; daemon off; user root; pid {folder}/pid; error_log {folder}/error.log;\n\
         events {{ worker_connections 256; }}\n\
         http {{ access_log off; sendfile on; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;\n\
         fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n\
         server {{ listen 8080; listen [::]:8080; root {folder}; }}\n\
         server {{ listen 8081 reuseport; location / {{ proxy_pass http://127.0.0.1:8080; }} }} }}"
    );
    std::fs::write(service.path("nginx.conf"), config).unwrap();
    let conf = format!("{folder}/nginx.conf");
    let mut server = service.start("nginx", &["-p", &folder, "-c", &conf]);
    service.listening(8080);
    service.listening(8081);
    for url in ["http://127.0.0.1:8080/large", "http://[::1]:8080/large", "http://127.0.0.1:8081/large"] {
        assert!(fetch(&service, url) == large, "{url}");
    }
    if has("wrk") {
        let load = text(service.run("wrk", &["-t1", "-c16", "-d1s", "http://127.0.0.1:8080/small"]));
        assert!(!load.contains("Socket errors") && !load.contains("Non-2xx"), "{load}");
    }
    text(service.run("nginx", &["-p", &folder, "-c", &conf, "-s", "reload"]));
    let master = std::fs::read_to_string(service.path("pid")).unwrap().trim().to_string();
    let workers = std::fs::read_to_string(format!("/proc/{master}/task/{master}/children")).unwrap();
    let first: i32 = workers.split_whitespace().next().unwrap().parse().unwrap();
    let pid = rustix::process::Pid::from_raw(first).unwrap();
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    for _ in 0..10 {
        assert!(fetch(&service, "http://127.0.0.1:8080/small") == large[..1024]);
    }
    assert!(server.end());
    service.settled(0);
}

#[test]
fn haproxy_forwards_to_a_python_server() {
    if !has("haproxy") || !has("curl") || !has("python3") {
        return;
    }
    let service = Running::new();
    let large = noise(2_000_000);
    std::fs::write(service.path("large"), &large).unwrap();
    let config = "defaults\n mode http\n timeout connect 9s\n timeout client 9s\n timeout server 9s\n\
                  frontend f\n bind 127.0.0.1:8080\n default_backend b\nbackend b\n server s 127.0.0.1:8090\n";
    std::fs::write(service.path("haproxy.cfg"), config).unwrap();
    let _python = service.start("python3", &["-m", "http.server", "8090", "--bind", "127.0.0.1"]);
    service.listening(8090);
    let conf = service.path("haproxy.cfg").display().to_string();
    let mut proxy = service.start("haproxy", &["-f", &conf]);
    service.listening(8080);
    for _ in 0..3 {
        assert!(fetch(&service, "http://127.0.0.1:8080/large") == large);
    }
    proxy.end();
}

#[test]
fn asyncio_serves_many_clients() {
    if !has("python3") {
        return;
    }
    let script = "
import asyncio
async def handle(r, w):
    while d := await r.read(5000):
        w.write(d); await w.drain()
    w.close()
async def client(port, n):
    r, w = await asyncio.open_connection('127.0.0.1', port)
    data = bytes([n]) * 100_000
    w.write(data); w.write_eof()
    assert await r.read() == data
    w.close()
async def main():
    s = await asyncio.start_server(handle, '127.0.0.1', 0)
    port = s.sockets[0].getsockname()[1]
    await asyncio.gather(*(client(port, n) for n in range(50)))
    s.close()
asyncio.run(main())
";
    let service = Running::new();
    text(service.run("python3", &["-c", script]));
    service.settled(0);
}

#[test]
fn iperf3_measures_both_directions() {
    if !has("iperf3") {
        return;
    }
    let service = Running::new();
    let _server = service.start("iperf3", &["-s", "-p", "5201"]);
    service.listening(5201);
    for direction in [&[][..], &["-R"], &["-P", "3"]] {
        let mut arguments = vec!["-c", "127.0.0.1", "-p", "5201", "-n", "20M", "-J"];
        arguments.extend(direction);
        let report = text(service.run("iperf3", &arguments));
        assert!(report.contains("\"sum_received\"") && !report.contains("\"error\""), "{report}");
    }
}

#[test]
fn socat_forks_for_each_connection() {
    if !has("socat") {
        return;
    }
    let service = Running::new();
    let listen = "TCP-LISTEN:7000,bind=127.0.0.1,reuseaddr,fork";
    let _server = service.start("socat", &[listen, "EXEC:cat"]);
    service.listening(7000);
    let sent = noise(200_000);
    std::fs::write(service.path("sent"), &sent).unwrap();
    for _ in 0..3 {
        let arguments = ["-t", "20", "OPEN:sent,rdonly!!STDOUT", "TCP:127.0.0.1:7000"];
        let output = service.run("socat", &arguments);
        assert!(output.stdout == sent, "{} bytes: {}", output.stdout.len(), String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn postgres_serves_from_a_process_per_connection() {
    if !common::wants_programs() {
        return;
    }
    let folder = std::path::Path::new("/usr/lib/postgresql");
    let versions = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let Some(programs) = versions.map(|version| version.path().join("bin")).find(|bin| bin.join("initdb").exists())
    else {
        eprintln!("skipped: postgres is not installed");
        return;
    };
    let root = rustix::process::getuid().is_root();
    if root && !has("setpriv") {
        return;
    }
    let service = Running::new();
    let program = |name: &str| programs.join(name).display().to_string();
    let data = service.path("data").display().to_string();
    // Postgres does not run as root.
    let as_user = |arguments: &[&str]| -> Vec<String> {
        let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
        let user = user.iter().filter(|_| root).chain(arguments);
        user.map(|word| word.to_string()).collect()
    };
    std::fs::create_dir(service.path("data")).unwrap();
    if root {
        let all = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(service.folder.path(), all).unwrap();
        std::os::unix::fs::chown(service.path("data"), Some(65534), Some(65534)).unwrap();
    }
    let initdb = as_user(&[&program("initdb"), "-D", &data, "-A", "trust", "-U", "someone", "-N"]);
    text(common::output(std::process::Command::new(&initdb[0]).args(&initdb[1..]).current_dir("/")));
    let words = [&program("postgres"), "-D", &data, "-p", "5432", "-k", &data, "-h", "127.0.0.1", "-F"];
    let words = as_user(&words);
    let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
    let mut server = service.start(&words[0], &arguments);
    service.listening(5432);
    let query = "select sum(x) from generate_series(1, 100000) x";
    let place = ["-h", "127.0.0.1", "-p", "5432", "-U", "someone", "postgres"];
    let answer = text(service.run(program("psql"), &[&place[..], &["-t", "-c", query]].concat()));
    assert_eq!(answer.trim(), "5000050000");
    text(service.run(program("pgbench"), &[&["-i", "-q"], &place[..]].concat()));
    let bench = text(service.run(program("pgbench"), &[&["-c", "4", "-t", "20"], &place[..]].concat()));
    assert!(bench.contains("number of failed transactions: 0"), "{bench}");
    assert!(server.end());
    service.settled(0);
}

#[test]
fn sshd_authenticates_in_its_sandbox_and_runs_a_command() {
    if !has("sshd") || !has("ssh") || !has("ssh-keygen") || !rustix::process::getuid().is_root() {
        eprintln!("skipped: needs sshd, ssh and root");
        return;
    }
    let service = Running::new();
    let path = |name: &str| service.path(name).display().to_string();
    for key in ["host", "user"] {
        let arguments = ["-q", "-t", "ed25519", "-N", "", "-f", &path(key)];
        text(common::output(std::process::Command::new("ssh-keygen").args(arguments)));
    }
    let _ = std::fs::create_dir("/run/sshd");
    let config = format!(
        "Port 2222\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
         PidFile none\nPermitRootLogin yes\n",
        path("host"),
        path("user.pub")
    );
    std::fs::write(service.path("config"), config).unwrap();
    let _server = service.start("/usr/sbin/sshd", &["-D", "-e", "-f", &path("config")]);
    service.listening(2222);
    let quiet = ["-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR"];
    let identity = path("user");
    let command = ["-i", &identity, "-p", "2222", "root@127.0.0.1", "head -c 300000 /dev/zero | wc -c"];
    let arguments: Vec<&str> = quiet.into_iter().chain(command).collect();
    assert_eq!(text(service.run("ssh", &arguments)).trim(), "300000");
}
