//! Workers whose receive rings hold nonsense: they are told apart, ended with the reason, and nobody else
//! loses a frame.

use nicforge_interfaces::Interfaces;
use nicforge_interfaces::emulated::played_by_cores;
use nicforge_units::Time;

use super::liar::Lie;
use super::{PATIENCE, Running, running};

/// Worker 0 tells `lie` until the run says so, where workers share a ring or each has its own.
fn lies(run: &mut Running<'_>, lie: Lie, shares: bool) {
    let reason = lie.reason(shares);
    let before = run.events(reason);
    let _liar = run.start(&format!("{lie:?}"));
    let until = run.cables.clock.now() + PATIENCE;
    while run.events(reason) == before {
        let now = run.cables.clock.now();
        assert!(now < until, "{lie:?} is not noticed: {}", run.said());
        for _ in 0..8 {
            run.cables.send(0);
        }
        let number = run.cables.send(1);
        // In a ring that both share its frame may have met a wrong descriptor.
        let patience = if shares { Time::from_ms(1) } else { PATIENCE };
        let came = run.cables.comes(number, patience);
        assert!(came || shares, "{lie:?}: a frame is lost: {}", run.said());
    }
    run.cables.wait_for(1);
}

#[test]
fn wrong_receive_rings_are_closed_with_their_reason() {
    let plain = Interfaces::shipped().of_rings().into_iter().map(|name| (name, name));
    let plain = plain.filter(|(interface, _)| *interface != "emulated");
    let played = played_by_cores().into_iter().map(|emulates| ("emulated", emulates));
    for (interface, rings) in plain.chain(played) {
        let sizes = match rings {
            "rx_bisect" => "ax_entries = 32\nbx_entries = 64\n",
            _ => "rx_entries = 64\n",
        };
        let sizes = match interface {
            "emulated" => format!("emulates = {rings:?}\n{sizes}"),
            _ => sizes.to_owned(),
        };
        let shares = rings.starts_with("sh_ring");
        let told = || Lie::ALL.into_iter().filter(|lie| lie.is_for(rings));
        let ended = running(interface, &sizes, 2, |run| {
            let sound = run.start("1");
            run.cables.wait_for(1);
            told().for_each(|lie| lies(run, lie, shares));
            let another = run.start("0");
            run.cables.wait_for(0);
            for worker in [0, 1].repeat(50) {
                let number = run.cables.send(worker);
                assert!(run.cables.comes(number, PATIENCE), "{number} is lost: {}", run.said());
            }
            (sound, another)
        });
        let ended = ended.unwrap_or_else(|error| panic!("{interface}, {rings}: {error}"));
        let drops = ended.snapshot.drops();
        let mut bad = drops.causes().iter().filter(|(cause, _)| *cause == "bad_descriptor");
        let bad = bad.next().map_or(0, |(_, count)| *count);
        // More than are forgiven, for each lie in descriptors.
        let least = 64 * (told().count() as u64 - 1);
        assert!(bad > least, "{interface}, {rings}: {drops:?}");
    }
}
