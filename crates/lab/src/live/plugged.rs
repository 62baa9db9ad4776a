//! Keys of ports that another program plugs into.

use std::path::PathBuf;

use nicforge_platform::live::ports::{MEMIF_QUEUES_MAX, MemifRole, MemifTerms};

use super::config::{MemifPlace, PortKind, VhostUserPlace};
use super::parse::count;
use crate::config::{ConfigError, Field, Place};

/// All of them.
pub(super) const PLUGGED_KEYS: [&str; 5] = ["role", "id", "queues", "secret", "mtu"];
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
