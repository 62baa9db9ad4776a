//! Options of ports, and what is refused.

use std::path::Path;

use super::*;
use crate::live::config::LiveConfig;
use crate::live::parse_live;
use crate::settings::Catalogue;

/// The configuration of a file with one port that has these lines.
fn of(port: &str) -> Result<LiveConfig, ConfigError> {
    let text =
        format!("[live]\nname = \"x\"\n[settings]\ninterface = \"priv_ring\"\napp = \"l2fwd\"\n[[port]]\n{port}\n");
    parse_live(&text, Path::new("x.toml"), &Catalogue::shipped())
}

#[test]
fn a_port_for_another_program_has_its_options() {
    let config = of("memif = \"/m\"\nrole = \"client\"\nid = 3\nqueues = 2\nsecret = \"s\"\nmtu = 9000").unwrap();
    let terms = MemifTerms { id: 3, queues: 2, secret: "s".into() };
    let memif = MemifPlace { socket: "/m".into(), role: MemifRole::Client, terms, mtu: 9000 };
    assert_eq!(config.ports[0].kind, PortKind::Memif(memif));
    let guest = VhostUserPlace { socket: "/v".into(), queues: 1, mtu: 1500 };
    assert_eq!(of("vhost_user = \"/v\"").unwrap().ports[0].kind, PortKind::VhostUser(guest));
}

#[test]
fn wrong_values_and_keys_of_other_kinds_are_refused_where_they_stand() {
    let wrong = [
        ("memif = \"/m\"\nrole = \"master\"", 8),
        ("memif = \"/m\"\nqueues = 0", 8),
        ("memif = \"/m\"\nqueues = 17", 8),
        ("memif = \"/m\"\nmtu = 100", 8),
        ("memif = \"/m\"\nsecret = \"longer than all of its 24 bytes\"", 8),
        ("vhost_user = \"/v\"\nid = 1", 8),
        ("vhost_user = \"/v\"\nmemif = \"/m\"", 6),
        ("tap = \"t\"\nqueues = 2", 8),
        ("memif = \"/m\"\nqueue = 1", 8),
        ("address = \"10.0.0.1\"", 6),
        ("tap = \"t\"\naddress = \"10.0.0\"", 8),
        ("tap = \"t\"\nnext_hop = \"02:00\"", 8),
        ("tap = \"t\"\ninsde = true", 8),
    ];
    for (port, line) in wrong {
        let error = of(port).expect_err(port).to_string();
        assert!(error.starts_with(&format!("x.toml:{line}:")), "{port}: {error}");
    }
    assert!(of("tap = \"t\"\ninsde = true").unwrap_err().right.contains("`inside`"));
}
