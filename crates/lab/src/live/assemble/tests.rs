//! What a run chooses where the file leaves it open.

use std::path::Path;

use super::*;
use crate::live::parse_live;
use crate::settings::Catalogue;

/// A port of which only its kind matters.
struct OfKind {
    takes_segments: bool,
    counters: PortCounters,
}

impl Port for OfKind {
    fn receive(&mut self, _budget: usize, _each: &mut dyn FnMut(&[u8])) -> Result<usize, LiveError> {
        Ok(0)
    }

    fn takes_segments(&self) -> bool {
        self.takes_segments
    }

    fn send(&mut self, _frame: &[u8], _now: Time) -> Result<(), LiveError> {
        Ok(())
    }

    fn counters(&self) -> &PortCounters {
        &self.counters
    }

    fn counters_mut(&mut self) -> &mut PortCounters {
        &mut self.counters
    }
}

/// A NAT between two ports, with `live` and `settings` added.
fn nat(live: &str, settings: &str) -> LiveConfig {
    let text = format!(
        "[live]\nname = \"x\"\n{live}\n[settings]\ninterface = \"priv_ring\"\napp = \"nat\"\n{settings}\n\
         [app]\nexternal_address = \"192.0.2.1\"\n[[port]]\nread = \"a\"\n[[port]]\nread = \"b\"\n"
    );
    parse_live(&text, Path::new("x.toml"), &Catalogue::shipped()).unwrap()
}

/// What becomes of segments between ports of these kinds, and the bytes of a buffer.
fn chosen(config: &LiveConfig, kinds: [bool; 2]) -> (Segments, usize) {
    let of_kind = |takes_segments| Box::new(OfKind { takes_segments, counters: PortCounters::default() }) as _;
    let fitted = fit_buffers(config, &kinds.map(of_kind));
    (fitted.live.read::<SegmentOptions>().segments, fitted.settings.read::<PoolOptions>().buffer_bytes)
}

#[test]
fn segments_pass_whole_where_both_sides_can() {
    let open = nat("", "");
    let usual = open.settings.read::<PoolOptions>().buffer_bytes;
    let long = DATA_BYTES_MAX as usize;
    assert_eq!(chosen(&open, [true, true]), (Segments::Whole, long));
    for kinds in [[true, false], [false, true], [false, false]] {
        assert_eq!(chosen(&open, kinds), (Segments::Cut, usual), "{kinds:?}");
    }
    // What the file says holds, whatever ports can, and so do buffers that are set and memory's bound.
    assert_eq!(chosen(&nat("segments = \"cut\"", ""), [true, true]), (Segments::Cut, usual));
    assert_eq!(chosen(&nat("segments = \"whole\"", ""), [true, false]), (Segments::Whole, long));
    assert_eq!(chosen(&nat("", "buffer_bytes = 4096"), [true, true]), (Segments::Cut, 4096));
    let many = nat("", "rx_entries = 32768");
    assert!(packet_buffers(&many) > SEGMENT_BUFFERS_MAX / long);
    assert_eq!(chosen(&many, [true, true]), (Segments::Cut, usual));
}

/// RFC 6056: who knows the program and saw one run cannot foresee the ports of the next.
#[test]
fn each_run_seeds_the_choice_of_external_ports_anew() {
    let config = nat("", "");
    let seed = || app_config(&config, PortMap::paired(2)).unwrap().seed;
    assert_ne!(seed(), seed());
}
