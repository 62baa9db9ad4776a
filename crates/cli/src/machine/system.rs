//! What the system says about its processors: no measurement.

use std::path::Path;

/// A cache that a core sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// From 1, which is next to the core.
    pub level: u32,
    /// Its capacity.
    pub bytes: usize,
    /// Ways, where the system says them.
    pub ways: Option<usize>,
}

/// The machine as the system describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct System {
    /// The processor's name, if there is one.
    pub processor: Option<String>,
    /// Cores that this program may use.
    pub cores: usize,
    /// Memory nodes.
    pub nodes: usize,
    /// Caches of the first core for data, nearest first; none where the system does not say.
    pub caches: Vec<Cache>,
    /// Memory that can be had, in bytes; 0 where the system does not say.
    pub memory_available: usize,
    /// Programs that wanted a core over the last minute, on average.
    pub load: f64,
}

impl System {
    /// As it stands in `devices` (/sys/devices/system) and `proc` (/proc).
    pub fn of(devices: &Path, proc: &Path) -> System {
        let info = std::fs::read_to_string(proc.join("cpuinfo")).unwrap_or_default();
        let processor = info.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == "model name").then(|| value.trim().to_string())
        });
        let memory = std::fs::read_to_string(proc.join("meminfo")).unwrap_or_default();
        let available = memory.lines().find_map(|line| {
            let kib = line.strip_prefix("MemAvailable:")?.split_whitespace().next()?;
            kib.parse::<usize>().ok()
        });
        System {
            processor,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            nodes: nodes(devices),
            caches: caches(&devices.join("cpu/cpu0/cache")),
            memory_available: available.unwrap_or(0) << 10,
            load: load(proc).unwrap_or(0.0),
        }
    }

    /// The cache of `level`.
    pub fn cache(&self, level: u32) -> Option<Cache> {
        self.caches.iter().copied().find(|cache| cache.level == level)
    }

    /// The one before memory.
    pub fn last_cache(&self) -> Option<Cache> {
        self.caches.last().copied().filter(|cache| cache.level > 2)
    }
}

fn load(proc: &Path) -> Option<f64> {
    let averages = std::fs::read_to_string(proc.join("loadavg")).ok()?;
    averages.split_whitespace().next()?.parse().ok()
}

fn nodes(devices: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(devices.join("node")) else {
        return 1;
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    let is_node = |name: &std::ffi::OsString| {
        let number = name.to_str().and_then(|name| name.strip_prefix("node"));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    names.filter(is_node).count().max(1)
}

fn caches(folder: &Path) -> Vec<Cache> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut caches: Vec<Cache> = entries.filter_map(|entry| cache(&entry.path())).collect();
    caches.sort_by_key(|cache| cache.level);
    caches
}

fn cache(folder: &Path) -> Option<Cache> {
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).ok();
    if read("type")?.trim() == "Instruction" {
        return None;
    }
    let size = read("size")?;
    let kib: usize = size.trim().strip_suffix('K')?.parse().ok()?;
    let ways = read("ways_of_associativity").and_then(|ways| ways.trim().parse().ok());
    Some(Cache { level: read("level")?.trim().parse().ok()?, bytes: kib << 10, ways: ways.filter(|&ways| ways > 0) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lay(folder: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let file = folder.join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
    }

    #[test]
    fn caches_for_data_come_nearest_first() {
        let folder = tempfile::tempdir().unwrap();
        let cache = |index: &str, kind: &str, level: &str, size: &str, ways: &str| {
            let at = format!("sys/cpu/cpu0/cache/{index}");
            lay(
                folder.path(),
                &[
                    (&format!("{at}/type"), kind),
                    (&format!("{at}/level"), level),
                    (&format!("{at}/size"), size),
                    (&format!("{at}/ways_of_associativity"), ways),
                ],
            );
        };
        cache("index3", "Unified\n", "3\n", "22528K\n", "11\n");
        cache("index1", "Instruction\n", "1\n", "32K\n", "8\n");
        cache("index0", "Data\n", "1\n", "48K\n", "0\n");
        lay(
            folder.path(),
            &[
                ("proc/cpuinfo", "processor : 0\nmodel name\t: Some Core\n"),
                ("proc/meminfo", "MemTotal: 9 kB\nMemAvailable:    8 kB\n"),
                ("sys/node/node0/cpulist", "0"),
                ("sys/node/node1/cpulist", "1"),
                ("sys/node/online", "0-1"),
            ],
        );
        let system = System::of(&folder.path().join("sys"), &folder.path().join("proc"));
        let expected = [(1, 48 << 10, None), (3, 22_528 << 10, Some(11))];
        let expected = expected.map(|(level, bytes, ways)| Cache { level, bytes, ways });
        assert_eq!(system.caches, expected);
        assert_eq!(system.processor.as_deref(), Some("Some Core"));
        assert_eq!((system.nodes, system.memory_available), (2, 8 << 10));
        assert_eq!(system.last_cache(), system.cache(3));
    }

    #[test]
    fn a_system_that_says_nothing_is_no_error() {
        let nowhere = Path::new("no-such-folder");
        let system = System::of(nowhere, nowhere);
        assert_eq!((system.nodes, system.caches.len()), (1, 0));
        assert_eq!(system.last_cache(), None);
    }
}
