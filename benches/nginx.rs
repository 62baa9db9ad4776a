//! nginx with one file, for the benchmarks that load a web server.

use std::path::Path;

/// Writes into `folder` an `nginx.conf` of one worker on port 7000, and `small`, the file of 1 KiB that it serves.
pub fn write(folder: &Path) {
    let at = folder.display();
    let config = format!(
        "worker_processes 1; daemon off; user root; pid {at}/pid; error_log /dev/null crit;\n\
         events {{ worker_connections 1024; }}\n\
         http {{ access_log off; sendfile on; keepalive_requests 1000000; client_body_temp_path {at}/b;\n\
         proxy_temp_path {at}/p; fastcgi_temp_path {at}/f; uwsgi_temp_path {at}/u; scgi_temp_path {at}/s;\n\
         server {{ listen 7000; root {at}; }} }}"
    );
    std::fs::write(folder.join("nginx.conf"), config).expect("a folder");
    std::fs::write(folder.join("small"), [b'x'; 1024]).expect("a folder");
}
