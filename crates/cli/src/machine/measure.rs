//! What is measured, and how: a row for each number of the machine file that can be.

use std::io;

use nicforge_lab::machine::{CORES_MAX, nearest_cache_kib};

use super::Effort;
use super::bandwidth::{self, TRIAD_TRAFFIC};
use super::chase::Ring;
use super::clock;
use super::file::stand_in;
use super::system::{Cache, System};

/// Most ways of a cache that the model knows.
const MOST_WAYS: usize = 16;

/// A number that was measured or that the system says.
pub struct Measured {
    /// Section and key of the machine file.
    pub at: (&'static str, &'static str),
    /// In the unit of its key.
    pub value: f64,
    /// How.
    pub how: String,
}

/// All of them.
#[derive(Default)]
pub struct Found {
    /// For the file's keys.
    pub rows: Vec<Measured>,
    /// What the file has no key for.
    pub notes: Vec<String>,
}

impl Found {
    fn add(&mut self, section: &'static str, key: &'static str, value: f64, how: String) {
        let at = (section, key);
        self.rows.push(Measured { at, value, how });
    }

    /// What was measured for a key.
    pub fn value(&self, section: &str, key: &str) -> Option<f64> {
        self.row(section, key).map(|row| row.value)
    }

    /// The same, with how.
    pub fn row(&self, section: &str, key: &str) -> Option<&Measured> {
        self.rows.iter().find(|row| row.at == (section, key))
    }
}

/// What a machine file takes for a latency, in nanoseconds.
const NS: (f64, f64) = (0.001, 1e9);

/// To so many digits as a measurement is worth, within what a machine file takes.
fn rounded(value: f64, (least, most): (f64, f64)) -> f64 {
    let digits = |value: f64| format!("{value:.3e}").parse().unwrap_or(value);
    digits(value).clamp(least, most)
}

/// Sizes to walk through: where the caches end, or where they end on most machines.
struct Sizes {
    first: usize,
    second: usize,
    /// Within the last cache, far beyond the one before.
    last: usize,
    /// Far beyond all caches.
    memory: usize,
}

impl Sizes {
    fn of(system: &System, effort: Effort) -> Sizes {
        let bytes = |level, usual| system.cache(level).map_or(usual, |cache| cache.bytes);
        let (first, second) = (bytes(1, 32 << 10), bytes(2, 512 << 10));
        let llc = system.last_cache().map_or(16 << 20, |cache| cache.bytes);
        // A quarter of what can be had, so that nobody is driven out.
        let most = match system.memory_available {
            0 => effort.largest,
            available => effort.largest.min(available / 4),
        };
        Sizes {
            first: first / 2,
            second: second / 2,
            last: (4 * second).min(llc / 2).max(second).min(most),
            memory: (8 * llc).clamp(64 << 20, 1 << 30).min(most),
        }
    }
}

/// Measures all; tells `say` what comes next.
pub fn all(system: &System, effort: Effort, say: &dyn Fn(&str)) -> io::Result<Found> {
    let mut found = Found::default();
    let sizes = Sizes::of(system, effort);
    said_by_the_system(system, &mut found);
    say("the clock");
    let hertz = clock::frequency(effort);
    let ghz = rounded(hertz / 1e9, (0.1, 20.0));
    let how = "measured: a chain of dependent additions and exclusive ors, one cycle each";
    found.add("core", "frequency_ghz", ghz, how.into());
    say("latencies");
    let first = Ring::new(sizes.first)?.seconds_per_load::<1>(effort);
    let cycles = (clock::atomic(effort) - first).max(0.0) * hertz;
    let how = "measured: atomic addition in the nearest cache, less a load there";
    found.add("core", "atomic_cycles", cycles.round().min(1e6), how.into());
    let memory = latencies(system, &sizes, effort, &mut found)?;
    say("memory bandwidth");
    bandwidths(system, &sizes, effort, &mut found);
    say("copies");
    streams(&sizes, effort, memory, &mut found)?;
    let ns = first * 1e9;
    found
        .notes
        .push(format!("load in the nearest cache: {ns:.2} ns (a walk of pointers through {})", size(sizes.first)));
    Ok(found)
}

fn said_by_the_system(system: &System, found: &mut Found) {
    let cores = system.cores.clamp(1, CORES_MAX) as f64;
    let how = "the system: cores that this program may use";
    found.add("machine", "cores", cores, how.into());
    let last = system.last_cache();
    for (section, cache) in [("l2", system.cache(2)), ("llc", last)] {
        let Some(Cache { bytes, ways, .. }) = cache else {
            continue;
        };
        // The model knows caches of up to 16 ways.
        let modelled = ways.unwrap_or(MOST_WAYS).min(MOST_WAYS);
        let how = match ways {
            None => format!("the system does not say; taken for {MOST_WAYS}"),
            Some(ways) if ways == modelled => "the system: ways_of_associativity".to_string(),
            Some(ways) => format!("the system says {ways} ways; the model's most are {MOST_WAYS}"),
        };
        found.add(section, "ways", modelled as f64, how);
        let said = bytes / 1024;
        let kib = nearest_cache_kib(said as u64, modelled as u64);
        let how = "the system: size of the cache that the first core sees".to_string();
        let how =
            if kib == said as u64 { how } else { format!("{how}, {said} KiB; the nearest that the model can hold") };
        found.add(section, "size_kib", kib as f64, how);
    }
    if system.nodes == 1 {
        let how = "the system: one memory node, so no other socket";
        found.add("other_socket", "cores", 0.0, how.into());
    }
}

/// Of the caches and of memory; returns memory's, in seconds.
fn latencies(system: &System, sizes: &Sizes, effort: Effort, found: &mut Found) -> io::Result<f64> {
    let ns = |seconds: f64| rounded(seconds * 1e9, NS);
    let how = |bytes| format!("measured: a walk of pointers through {}", size(bytes));
    let second = Ring::new(sizes.second)?.seconds_per_load::<1>(effort);
    found.add("l2", "hit_ns", ns(second), how(sizes.second));
    if system.last_cache().is_some() {
        let last = Ring::new(sizes.last)?.seconds_per_load::<1>(effort);
        found.add("llc", "hit_ns", ns(last), how(sizes.last));
    }
    let mut ring = Ring::new(sizes.memory)?;
    let memory = ring.seconds_per_load::<1>(effort);
    memory_latency(found, memory, &how(sizes.memory));
    let at_once = [
        (2, ring.seconds_per_load::<2>(effort)),
        (4, ring.seconds_per_load::<4>(effort)),
        (8, ring.seconds_per_load::<8>(effort)),
        (16, ring.seconds_per_load::<16>(effort)),
        (32, ring.seconds_per_load::<32>(effort)),
    ];
    let (walks, least) = at_once.into_iter().fold((1, memory), |best, one| if one.1 < best.1 { one } else { best });
    let how = format!("measured: {walks} walks at once against one, loads of memory a second");
    let overlap = rounded(memory / least, (1.0, 64.0));
    found.add("core", "mlp_independent", overlap, how);
    Ok(memory)
}

/// What a walk through memory took, in seconds per load, as the file has it: a miss looks in the last
/// cache first, and the model adds the two.
pub(super) fn memory_latency(found: &mut Found, walked: f64, how: &str) {
    let looking = found.value("llc", "hit_ns").unwrap_or_else(|| {
        let rows = stand_in().rows;
        let hit = rows.iter().find(|row| (&*row.section, row.key) == ("llc", "hit_ns"));
        hit.map_or(0.0, |row| row.value)
    });
    let walked_ns = rounded(walked * 1e9, NS);
    let how = format!(
        "{how}, in large pages where the system gives them: {walked_ns} ns, less llc.hit_ns, which a miss takes too"
    );
    let beyond = rounded(walked_ns - looking, NS);
    found.add("dram", "idle_latency_ns", beyond, how);
}

fn bandwidths(system: &System, sizes: &Sizes, effort: Effort, found: &mut Found) {
    let bytes = 3 * (sizes.memory / 2);
    let all = bandwidth::triad(effort, system.cores, bytes) / 1e9;
    let one = bandwidth::triad(effort, 1, bytes) / 1e9;
    let how = format!(
        "measured: STREAM's triad on {} core(s), arrays of {} together; the line read for each line \
         written counts, so it is 4/3 of what STREAM would say",
        system.cores,
        size(bytes)
    );
    // Others may have had a core meanwhile; then one thread alone does better than all of them.
    let value = rounded(all.max(one), (0.1, 10_000.0));
    found.add("dram", "peak_gb_per_s", value, how);
    let as_stream = one * 3.0 * 8.0 / TRIAD_TRAFFIC as f64;
    found
        .notes
        .push(format!("triad of one core: {one:.2} GB/s of memory traffic, {as_stream:.2} GB/s as STREAM counts"));
}

fn streams(sizes: &Sizes, effort: Effort, memory: f64, found: &mut Found) -> io::Result<()> {
    let reads = bandwidth::reads(effort, sizes.memory)?;
    let overlap = rounded(reads * memory / 64.0, (1.0, 64.0));
    let how = format!(
        "measured: one core reads {:.2} GB/s in order from memory; by Little's law so many lines are \
         under way at the measured latency",
        reads / 1e9
    );
    found.add("core", "mlp_streaming", overlap, how);
    let places = [
        ("the nearest cache", sizes.first),
        ("the second cache", sizes.second),
        ("the last cache", sizes.last),
        ("memory", sizes.memory),
    ];
    for (place, bytes) in places {
        let rate = bandwidth::copies(effort, bytes)? / 1e9;
        found.notes.push(format!(
            "copies within {place}: {rate:.2} GB/s of bytes copied ({} to and fro, one core)",
            size(bytes)
        ));
    }
    Ok(())
}

/// Bytes as a person writes them.
fn size(bytes: usize) -> String {
    match bytes >> 20 {
        0 => format!("{} KiB", bytes >> 10),
        mebibytes => format!("{mebibytes} MiB"),
    }
}
