//! Keys of ports that another program plugs into.

use std::path::PathBuf;

use nicforge_platform::live::ports::{MEMIF_QUEUES_MAX, MemifRole, MemifTerms};

use super::config::{MemifPlace, PortKind, VhostUserPlace};
use super::parse::count;
use nicforge_options::{ConfigError, Field, Place};

/// All of them.
pub(super) const PLUGGED_KEYS: [&str; 7] = ["memif", "vhost_user", "role", "id", "queues", "secret", "mtu"];
/// What an Ethernet carries where nobody says more.
const MTU: usize = 1500;
/// The least that IPv6 needs, and the most that a frame can have.
const MTUS: std::ops::RangeInclusive<usize> = 1280..=65_535;
const SECRET_BYTES_MAX: usize = 23;

/// Those that a port has.
#[derive(Default)]
pub(super) struct Plugged {
    role: Option<MemifRole>,
    id: Option<u32>,
    queues: Option<u16>,
    secret: Option<String>,
    mtu: Option<usize>,
    /// The last one, and where it stands.
    last: Option<(String, Place)>,
}

impl Plugged {
    /// A port at `socket` that a guest is plugged into, before the rest is known.
    pub(super) fn vhost_user(socket: &str) -> PortKind {
        PortKind::VhostUser(VhostUserPlace { socket: PathBuf::from(socket), queues: 1, mtu: MTU })
    }

    /// A memif port at `socket`, before the rest is known.
    pub(super) fn memif(socket: &str) -> PortKind {
        PortKind::Memif(MemifPlace {
            socket: PathBuf::from(socket),
            role: MemifRole::default(),
            terms: MemifTerms { id: 0, queues: 1, secret: String::new() },
            mtu: MTU,
        })
    }

    /// Takes `field` if it is one of them.
    ///
    /// # Errors
    /// Its value is none.
    pub(super) fn read(&mut self, field: &Field) -> Result<bool, ConfigError> {
        let wrong = |right: String| {
            let wrong = format!("`{}` is {}", field.key, field.value.node.show());
            Err(ConfigError::new(&field.value.place, wrong, right))
        };
        match field.key.as_str() {
            "role" => match field.value.text(&field.key)? {
                "server" => self.role = Some(MemifRole::Server),
                "client" => self.role = Some(MemifRole::Client),
                _ => return wrong("use \"server\" or \"client\"".into()),
            },
            "id" => self.id = Some(count(field)?),
            "queues" => match u16::try_from(count(field)?) {
                Ok(queues @ 1..=MEMIF_QUEUES_MAX) => self.queues = Some(queues),
                _ => return wrong(format!("use 1 to {MEMIF_QUEUES_MAX}")),
            },
            "secret" => match field.value.text(&field.key)? {
                secret if secret.len() <= SECRET_BYTES_MAX => self.secret = Some(secret.to_owned()),
                _ => return wrong(format!("use at most {SECRET_BYTES_MAX} bytes")),
            },
            "mtu" => match count(field)? as usize {
                mtu if MTUS.contains(&mtu) => self.mtu = Some(mtu),
                _ => return wrong(format!("use {} to {}", MTUS.start(), MTUS.end())),
            },
            _ => return Ok(false),
        }
        self.last = Some((field.key.clone(), field.place.clone()));
        Ok(true)
    }

    /// `kind` with what the port says of it.
    ///
    /// # Errors
    /// The port is of another kind.
    pub(super) fn complete(self, kind: PortKind) -> Result<PortKind, ConfigError> {
        match (kind, self.last) {
            (PortKind::Memif(memif), _) => Ok(PortKind::Memif(MemifPlace {
                role: self.role.unwrap_or(memif.role),
                terms: MemifTerms {
                    id: self.id.unwrap_or(memif.terms.id),
                    queues: self.queues.unwrap_or(memif.terms.queues),
                    secret: self.secret.unwrap_or(memif.terms.secret),
                },
                mtu: self.mtu.unwrap_or(memif.mtu),
                ..memif
            })),
            (PortKind::VhostUser(place), _) if self.role.is_none() && self.id.is_none() && self.secret.is_none() => {
                let (queues, mtu) = (self.queues.unwrap_or(place.queues), self.mtu.unwrap_or(place.mtu));
                Ok(PortKind::VhostUser(VhostUserPlace { queues, mtu, ..place }))
            }
            (kind, None) => Ok(kind),
            (_, Some((key, place))) => Err(ConfigError::new(
                &place,
                format!("`{key}` of a port that has none"),
                "leave it out: `role`, `id` and `secret` are of `memif`, `queues` and `mtu` of `memif` and `vhost_user`",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::live::config::LiveConfig;
    use crate::live::parse_live;
    use crate::settings::Catalogue;

    /// What a file with one port says that has these lines.
    fn of(port: &str) -> Result<LiveConfig, ConfigError> {
        let text =
            format!("[live]\nname = \"x\"\n[settings]\ninterface = \"priv_ring\"\napp = \"l2fwd\"\n[[port]]\n{port}\n");
        parse_live(&text, Path::new("x.toml"), &Catalogue::shipped())
    }

    #[test]
    fn ports_for_other_programs_are_read_with_what_belongs_to_them() {
        let config = of("memif = \"/m\"\nrole = \"client\"\nid = 3\nqueues = 2\nsecret = \"s\"\nmtu = 9000").unwrap();
        let terms = MemifTerms { id: 3, queues: 2, secret: "s".into() };
        let memif = MemifPlace { socket: "/m".into(), role: MemifRole::Client, terms, mtu: 9000 };
        assert_eq!(config.ports[0].kind, PortKind::Memif(memif));
        let guest = VhostUserPlace { socket: "/v".into(), queues: 1, mtu: 1500 };
        assert_eq!(of("vhost_user = \"/v\"").unwrap().ports[0].kind, PortKind::VhostUser(guest));
    }

    #[test]
    fn what_does_not_belong_to_a_port_is_refused() {
        let wrong = [
            "memif = \"/m\"\nrole = \"master\"",
            "memif = \"/m\"\nqueues = 0",
            "memif = \"/m\"\nqueues = 17",
            "memif = \"/m\"\nmtu = 100",
            "memif = \"/m\"\nsecret = \"longer than all of its 24 bytes\"",
            "vhost_user = \"/v\"\nid = 1",
            "vhost_user = \"/v\"\nmemif = \"/m\"",
            "tap = \"t\"\nqueues = 2",
            "memif = \"/m\"\nqueue = 1",
        ];
        for port in wrong {
            assert!(of(port).is_err(), "{port}");
        }
    }
}
