//! Programs of one build have equal fingerprints; other layouts and other entries have others.

use std::path::Path;
use std::sync::Arc;

use nicforge_apps::PortMap;
use nicforge_interfaces::describe::{Describe, Queues as Planned, Shape};
use nicforge_interfaces::priv_ring::PrivRing;
use nicforge_interfaces::{Built, Halves, Interface, InterfaceError, Interfaces, KnownGround, Plan};
use nicforge_nic::{Arriving, DropCause, Queues, ReceiveHalf, Waiting};
use nicforge_platform::{AddressSpace, Dma};

use super::super::assemble::app_config;
use super::super::parse_live;
use crate::live::layout::Blueprint;
use crate::registry::Registry;
use crate::settings::Catalogue;

fn blueprint(catalogue: &Arc<Catalogue>, settings: &str) -> Blueprint {
    let text = format!(
        "[live]\nname = \"x\"\nattach = \"x\"\n[settings]\n{settings}\n[[port]]\nread = \"a\"\n[[port]]\nread = \"b\"\n"
    );
    let config = parse_live(&text, Path::new("x.toml"), catalogue).unwrap();
    Blueprint { app: app_config(&config, PortMap::paired(2)).unwrap(), config }
}

fn fingerprint(settings: &str) -> u64 {
    blueprint(&Catalogue::shipped(), settings).fingerprint().unwrap()
}

#[test]
fn runs_alike_have_one_fingerprint_and_others_have_their_own() {
    let same = "interface = \"priv_ring\"\napp = \"l2fwd\"";
    let variants = [
        "interface = \"rx_bisect\"\napp = \"l2fwd\"",
        "interface = \"priv_ring\"\napp = \"counter\"",
        "interface = \"priv_ring\"\napp = \"l2fwd\"\nrx_entries = 512",
        "interface = \"priv_ring\"\napp = \"l2fwd\"\ntx_entries = 512",
        "interface = \"priv_ring\"\napp = \"l2fwd\"\nbuffer_bytes = 4096",
        "interface = \"priv_ring\"\napp = \"l2fwd\"\ncores = 2",
    ];
    assert_eq!(fingerprint(same), fingerprint(same));
    let mut seen = vec![fingerprint(same)];
    for settings in variants {
        let number = fingerprint(settings);
        assert!(!seen.contains(&number), "{settings}");
        seen.push(number);
    }
}

/// Each program chooses the seed of external ports anew.
#[test]
fn what_a_program_chooses_by_itself_does_not_count() {
    for interface in Interfaces::shipped().of_rings() {
        let settings = format!("interface = {interface:?}\napp = \"l2fwd\"\ncores = 2");
        let one = blueprint(&Catalogue::shipped(), &settings);
        let mut other = one.clone();
        other.app.seed ^= 1;
        assert_eq!(one.fingerprint().unwrap(), other.fingerprint().unwrap(), "{interface}");
    }
}

/// A NIC half that has two fields of its completions at each other's place.
struct Swapped<D: Dma>(Box<dyn ReceiveHalf<D>>);

impl<D: Dma> Queues for Swapped<D> {
    fn queues(&self) -> u16 {
        self.0.queues()
    }

    fn waiting(&self, queue: u16) -> Waiting {
        self.0.waiting(queue)
    }
}

impl<D: Dma + 'static> ReceiveHalf<D> for Swapped<D> {
    fn receive(&mut self, dma: &mut D, frame: &Arriving<'_>) -> Result<(), DropCause> {
        let (mark, rss_hash) = (u64::from(frame.rss_hash), frame.mark as u32);
        self.0.receive(dma, &Arriving { mark, rss_hash, ..*frame })
    }

    fn write_register(&mut self, dma: &mut D, index: u32, value: u64) -> bool {
        self.0.write_register(dma, index, value)
    }
}

struct OtherBuild;

impl Describe for OtherBuild {
    const NAME: &'static str = PrivRing::NAME;
    const ABOUT: &'static str = PrivRing::ABOUT;
    type Options = <PrivRing as Describe>::Options;

    fn shape(options: &Self::Options, queues: &Planned<'_>) -> Shape {
        PrivRing::shape(options, queues)
    }
}

impl Interface for OtherBuild {
    fn build<G: KnownGround>(plan: &Plan, space: &mut AddressSpace) -> Result<Built<G>, InterfaceError> {
        let Halves { nic, drivers } = PrivRing::build::<G>(plan, space)?.rings()?;
        Ok(Built::Rings(Halves { nic: Box::new(Swapped(nic)), drivers }))
    }
}

#[test]
fn a_program_with_other_entries_at_the_same_places_is_told_apart() {
    let settings = "interface = \"priv_ring\"\napp = \"l2fwd\"";
    let ours = blueprint(&Catalogue::shipped(), settings);
    let theirs = blueprint(&Arc::new(Catalogue::new(Registry::shipped().interface::<OtherBuild>())), settings);
    assert_eq!(ours.lay_out().unwrap().places(), theirs.lay_out().unwrap().places());
    assert_ne!(ours.fingerprint().unwrap(), theirs.fingerprint().unwrap());
}
