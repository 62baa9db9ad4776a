//! Examples below the help of commands.

/// Below the help of `nicforge`.
pub const TOP_EXAMPLES: &str = "\
Examples:
  nicforge list                               what there is
  nicforge run scenarios/nat-200g.toml        the main job: NAT at 200 Gbit/s
  nicforge check scenarios/nat-200g.toml      what that would run

Exit codes: 0 fine, 1 failed, 2 wrong usage or input (then nothing is written).";

/// Below the help of `run`.
pub const RUN_EXAMPLES: &str = "\
Examples:
  nicforge run scenarios/nat-200g.toml
  nicforge run scenarios/nat-200g.toml --set app=lb --set cores=8
  nicforge run scenarios/paper/rxb-02.toml --jobs 4 --out out/rings
  nicforge run scenarios/nat-capture.toml --pcap FILE --pcap-out out/nat.pcap
  nicforge run scenarios/nat-200g.toml --precision 1% --max-window 50
  nicforge run scenarios/nat-200g.toml --seeds 5 --jobs 2
  nicforge run scenarios/paper/nm-05.toml --ray auto
  nicforge run scenarios/nat-200g.toml --trace 100    # where do the microseconds of a packet go?
  nicforge run scenarios/nat-200g.toml --json --quiet > report.json

`--set` on a key that the scenario varies or sweeps replaces all of its values.
Points are kept as they finish: after Ctrl-C, a kill or a full disk the same command continues.";

/// Below the help of `search`.
pub const SEARCH_EXAMPLES: &str = "\
Examples:
  nicforge search scenarios/nat-200g.toml --key offered_gbps --from 50 --to 200 --while 'drop_fraction <= 0.001'
  nicforge search scenarios/nat-200g.toml --key rx_entries --from 64 --to 4096 --while 'throughput_gbps >= 190' --jobs 2

Each point halves the range until values next to each other differ, so the bound is taken to be crossed once. The report
has every point that ran.";

/// Below the help of `diff`.
pub const DIFF_EXAMPLES: &str = "\
Examples:
  nicforge diff out/nat-200g/3fa9c1d2 out/nat-200g/latest
  nicforge diff out/rings out/rings-at-half-rate --out out/both

Points are matched by variant and by what varies within a run. The test is Welch's, of the means of batches or seeds.";

/// Below the help of `reproduce`.
pub const REPRODUCE_EXAMPLES: &str = "\
Examples:
  nicforge reproduce --list
  nicforge reproduce rx-bisect --jobs 2
  nicforge reproduce all --members --jobs 2 --markdown > docs/predictions/open.md
  nicforge reproduce nicmem --only nm-12
  nicforge reproduce flexnic --blind --jobs 4
  nicforge reproduce shring --machine machines/mine.toml --out out/mine

Points are kept as they finish, where `nicforge run` keeps them: a second call is quick.
Verdicts: within its interval, within its range, keeps the bound, within 10 %, within 25 %, misses; ordering right or
wrong.";

/// Below the help of `calibrate`.
pub const CALIBRATE_EXAMPLES: &str = "\
Examples:
  nicforge calibrate machines/xeon-4216-cx5.toml docs/calibration/xeon-4216-cx5.toml --jobs 2
  nicforge calibrate machines/mine.toml points.toml --samples 100 --rounds 6

The seed of the file of points decides all draws. Points are kept as they finish: the same command continues.";

/// Below the help of `list`.
pub const LIST_EXAMPLES: &str = "\
Examples:
  nicforge list
  nicforge list settings
  nicforge list machines --verbose
  nicforge list registers sinic";

/// Below the help of `help`.
pub const HELP_EXAMPLES: &str = "\
Examples:
  nicforge help rx_entries
  nicforge help reproduce
  nicforge help machine measure";

/// Below the help of `live`.
pub const LIVE_EXAMPLES: &str = "\
Examples:
  nicforge live examples/nat-netns.toml --duration 60
  nicforge live examples/capture.toml --set interface=rx_bisect
  nicforge live examples/nat-netns.toml --metrics 127.0.0.1:9477
  nicforge live examples/nat-netns.toml --dashboard 127.0.0.1:8080   # open http://127.0.0.1:8080
  nicforge live examples/capture.toml --trace 100

Packet sockets and TAP devices need root, or CAP_NET_ADMIN and CAP_NET_RAW.";

/// Below the help of `attach`.
pub const ATTACH_EXAMPLES: &str = "\
Examples:
  nicforge live examples/nat-netns.toml --attach /run/nicforge.sock
  nicforge attach /run/nicforge.sock
  nicforge attach /run/nicforge.sock --worker 1";

/// Below the help of `sim-vs-live`.
pub const SIM_VS_LIVE_EXAMPLES: &str = "\
Examples:
  nicforge sim-vs-live scenarios/sim-against-live.toml
  nicforge sim-vs-live scenarios/sim-against-live.toml --machine machines/this-machine.toml --seconds 10
  nicforge sim-vs-live scenarios/nat-capture.toml --set nics=1 --set cores=1

Live, frames come over a cable in memory: no PCIe and no wire. docs/live.md says what may be compared.";

/// Below the help of `measure`.
pub const MEASURE_EXAMPLES: &str = "\
Examples:
  nicforge machine measure
  nicforge check scenarios/nat-200g.toml --machine machines/this-machine.toml --set cores=2
  nicforge run scenarios/nat-200g.toml --machine machines/this-machine.toml --set cores=2

Let nothing else run meanwhile. What cannot be measured without a NIC (PCIe, the NIC itself, the work
of its driver) stands in from xeon-4216-cx5; the file gives the reason beside each number.";

/// Below the help of `check`.
pub const CHECK_EXAMPLES: &str = "\
Examples:
  nicforge check scenarios/paper/rxb-03.toml
  nicforge check scenarios/nat-200g.toml --set rx_entries=256";

/// Below the help of `new`.
pub const NEW_EXAMPLES: &str = "\
Examples:
  nicforge new interface my_ring
  nicforge new app my_app --path ~/my-app
  nicforge new stage my_stage
  nicforge new interface my_ring --path ~/my-ring --nicforge ~/nicforge";

/// Below the help of `rss`.
pub const RSS_EXAMPLES: &str = "\
Examples:
  nicforge rss scenarios/captures/sample.pcap --queues 4
  nicforge rss scenarios/captures/sample.pcap --key symmetric";

/// Below the help of `completions`.
pub const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  nicforge completions bash > ~/.local/share/bash-completion/completions/nicforge
  nicforge completions zsh > ~/.zfunc/_nicforge";

/// Below the help of `manual`.
pub const MANUAL_EXAMPLES: &str = "\
Examples:
  nicforge manual ~/.local/share/man/man1
  man nicforge-run";

/// Below the help of `capture`.
pub const CAPTURE_EXAMPLES: &str = "\
Examples:
  nicforge capture --out sample.pcap --packets 500
  nicforge capture --out web.pcap --set packet_sizes=imix --set flows=64 --seed 7

The settings are those of a scenario that describe traffic (`nicforge list settings`).";
