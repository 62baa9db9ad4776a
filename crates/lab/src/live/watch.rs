//! A file of servers that changes while a run goes on.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use nicforge_apps::AppConfig;
use nicforge_apps::lb::read_servers;
use nicforge_platform::live::LiveError;

use crate::live::LiveRunError;
use crate::run::servers_file;

/// How often it is looked at the file. Whoever writes it replaces it by renaming, or it may be read in part.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Reads the file of servers of `app` again whenever it changes, if there is one, as long as an application uses it. A file
/// that cannot be used changes nothing, and is a gauge.
pub fn follow(app: &AppConfig) -> Result<(), LiveRunError> {
    let Some((file, first, count)) = servers_file(app) else { return Ok(()) };
    let servers = app.servers.clone();
    let watch = move || {
        // The first look reads, too: the file may have changed since the run began.
        let mut before = None;
        while !servers.is_alone() {
            std::thread::sleep(LOOK_EVERY);
            let now = version_of(&file);
            if now == before {
                continue;
            }
            before = now;
            match read_servers(&file, first, count) {
                Ok(states) => servers.set(states),
                Err(_) => servers.set_wrong(),
            }
        }
    };
    let started = std::thread::Builder::new().name("servers".into()).spawn(watch);
    started.map_err(LiveError::of("a thread that watches the servers' file"))?;
    Ok(())
}

/// What changes when somebody writes the file.
fn version_of(file: &Path) -> Option<(u64, i64, i64, u64)> {
    let there = std::fs::metadata(file).ok()?;
    Some((there.ino(), there.mtime(), there.mtime_nsec(), there.len()))
}

#[cfg(test)]
mod tests {
    use nicforge_apps::PortMap;
    use nicforge_platform::live::Clock;
    use nicforge_units::Time;

    use super::*;
    use crate::run::read_servers_of;

    #[test]
    fn a_file_that_changes_is_followed_and_mistakes_change_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("servers");
        let write = |text: &str| {
            let new = folder.path().join("new");
            std::fs::write(&new, text).unwrap();
            std::fs::rename(new, &file).unwrap();
        };
        write("10.200.0.1 5\n");
        let config = AppConfig::new("lb", PortMap::paired(2)).with("servers_file", file.to_str().unwrap());
        let app = config.with("servers", 2);
        read_servers_of(&app).unwrap();
        follow(&app).unwrap();
        let until = |what: &str, holds: &dyn Fn() -> bool| {
            let clock = Clock::start();
            while !holds() {
                assert!(clock.now() < Time::from_ms(30_000), "{what}");
                std::thread::sleep(Duration::from_millis(5));
            }
        };
        let first = || app.servers.states()[0];
        assert_eq!(first().weight, 5);
        write("10.200.0.1 down\n");
        until("the change is seen", &|| first().down);
        write("10.200.0.1 nonsense\n");
        until("the mistake is seen", &|| app.servers.is_wrong());
        assert!(first().down, "what the file said before stands");
        write("10.200.0.1 17\n");
        until("it is right again", &|| first().weight == 17 && !app.servers.is_wrong());
    }
}
