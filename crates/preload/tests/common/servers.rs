//! The servers of the tests, each with a small set-up of its own. A program that is not installed is left out.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Running, Server, has, output, text};

/// A folder whose servers run over the library or over the kernel.
pub struct Site<'a> {
    pub folder: PathBuf,
    /// The service; none over the kernel.
    pub service: Option<&'a Running>,
}

impl Site<'_> {
    pub fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    pub fn command(&self, program: &str) -> Command {
        let mut command = self.service.map_or_else(|| Command::new(program), |service| service.command(program));
        command.current_dir(&self.folder).stdin(Stdio::null());
        command
    }

    /// Starts a server that says nothing.
    fn start(&self, program: &str, arguments: &[&str]) -> Server {
        let mut command = self.command(program);
        Server(command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    pub fn redis(&self) -> Option<Server> {
        let arguments =
            "--port 6379 --bind 0.0.0.0 --protected-mode no --loglevel warning --stop-writes-on-bgsave-error no";
        let arguments: Vec<&str> = arguments.split(' ').chain(["--save", ""]).collect();
        has("redis-server").then(|| self.start("redis-server", &arguments))
    }

    pub fn memcached(&self) -> Option<Server> {
        has("memcached").then(|| self.start("memcached", &["-u", "root", "-p", "11211", "-t", "3", "-U", "0"]))
    }

    /// Three workers at 8080, whose files are the folder's.
    pub fn nginx(&self) -> Option<Server> {
        let folder = self.folder.display();
        let config = format!(
            "worker_processes 3; daemon off; user root; pid {folder}/pid; error_log /dev/null crit;\n\
             events {{ worker_connections 256; }}\n\
             http {{ access_log off; sendfile on; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;\n\
             fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;\n\
             server {{ listen 8080; root {folder}; }} }}"
        );
        std::fs::write(self.path("nginx.conf"), config).unwrap();
        has("nginx").then(|| self.start("nginx", &["-p", &self.path(""), "-c", &self.path("nginx.conf")]))
    }

    pub fn nginx_reload(&self) {
        let arguments = ["-p", &self.path(""), "-c", &self.path("nginx.conf"), "-s", "reload"];
        text(output(self.command("nginx").args(arguments)));
    }

    /// A master and a worker at 8081, in front of nginx.
    pub fn haproxy(&self) -> Option<Server> {
        let config = "defaults\n mode http\n retries 3\n timeout connect 9s\n timeout client 20s\n timeout server 20s\n\
                      frontend f\n bind 0.0.0.0:8081\n default_backend b\nbackend b\n server s 127.0.0.1:8080\n";
        std::fs::write(self.path("haproxy.cfg"), config).unwrap();
        has("haproxy").then(|| self.start("haproxy", &["-W", "-f", &self.path("haproxy.cfg")]))
    }

    pub fn http_server(&self) -> Option<Server> {
        has("python3").then(|| self.start("python3", &["-m", "http.server", "8090", "--bind", "0.0.0.0"]))
    }

    pub fn iperf3(&self, port: &str) -> Option<Server> {
        has("iperf3").then(|| self.start("iperf3", &["-s", "-p", port]))
    }

    /// Echoes at 7000, with a process for each connection.
    pub fn socat(&self) -> Option<Server> {
        has("socat").then(|| self.start("socat", &["-t20", "TCP-LISTEN:7000,reuseaddr,fork", "EXEC:cat"]))
    }

    /// At 5432, for anybody, as a user of its own where the test is root. Returns its programs' folder, too.
    pub fn postgres(&self) -> Option<(Server, PathBuf)> {
        let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let programs = versions.map(|version| version.path().join("bin")).find(|bin| bin.join("initdb").exists())?;
        let root = rustix::process::getuid().is_root();
        if root && !has("setpriv") {
            return None;
        }
        let program = |name: &str| programs.join(name).display().to_string();
        let data = self.path("data");
        let user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
        let as_user = |words: &[&str]| -> Vec<String> {
            user.iter().filter(|_| root).chain(words).map(|word| word.to_string()).collect()
        };
        std::fs::create_dir(&data).unwrap();
        if root {
            std::fs::set_permissions(&self.folder, PermissionsExt::from_mode(0o755)).unwrap();
            std::os::unix::fs::chown(&data, Some(65534), Some(65534)).unwrap();
        }
        let initdb = as_user(&[&program("initdb"), "-D", &data, "-A", "trust", "-U", "someone", "-N"]);
        text(output(Command::new(&initdb[0]).args(&initdb[1..]).current_dir("/")));
        let remote = "host all all all trust\n";
        let access = std::fs::read_to_string(Path::new(&data).join("pg_hba.conf")).unwrap() + remote;
        std::fs::write(Path::new(&data).join("pg_hba.conf"), access).unwrap();
        let quiet = ["-c", "log_min_messages=fatal", "-c", "max_wal_size=32MB", "-c", "min_wal_size=32MB"];
        let place = ["-D", &data, "-p", "5432", "-k", &data, "-h", "*", "-F"];
        let words = as_user(&[&[&program("postgres")[..]], &place[..], &quiet[..]].concat());
        let arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        let server = self.start(&words[0], &arguments);
        // Over its Unix socket, which is the kernel's either way.
        let filled = || {
            let mut fill = self.command(&program("pgbench"));
            fill.args(["-i", "-q", "-h", &data, "-U", "someone", "postgres"]);
            fill.output().is_ok_and(|output| output.status.success())
        };
        for _ in 0..100 {
            if filled() {
                return Some((server, programs));
            }
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
        panic!("postgres does not start");
    }

    /// At 2222, for root with the folder's key `user`.
    pub fn sshd(&self) -> Option<Server> {
        if !has("sshd") || !has("ssh") || !has("ssh-keygen") || !rustix::process::getuid().is_root() {
            return None;
        }
        for key in ["host", "user"].iter().filter(|key| !self.folder.join(key).exists()) {
            let arguments = ["-q", "-t", "ed25519", "-N", "", "-f", &self.path(key)];
            text(output(Command::new("ssh-keygen").args(arguments)));
        }
        let _ = std::fs::create_dir("/run/sshd");
        let config = format!(
            "Port 2222\nListenAddress 0.0.0.0\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
             PidFile none\nPermitRootLogin yes\nLogLevel QUIET\nMaxStartups 100\n",
            self.path("host"),
            self.path("user.pub")
        );
        std::fs::write(self.path("config"), config).unwrap();
        Some(self.start("/usr/sbin/sshd", &["-D", "-f", &self.path("config")]))
    }
}
