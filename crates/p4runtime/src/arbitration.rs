//! Which client may write: the one with the highest election id of its role (specification, section 5).

use std::collections::BTreeMap;

use tokio::sync::mpsc;
use tonic::{Code, Status};

use crate::proto::google::rpc;
use crate::proto::p4::v1 as p4;
use crate::refusal::Refusal;

/// Messages that may wait for one client; more are dropped.
pub const WAITING_MAX: usize = 4096;

/// Where messages for a client go.
pub type ToClient = mpsc::Sender<Result<p4::StreamMessageResponse, Status>>;

/// The number of a client's stream.
pub type StreamId = u64;

struct Client {
    role: String,
    election: Option<u128>,
    to: ToClient,
    role_message: Option<p4::Role>,
}

/// The clients with an open stream.
#[derive(Default)]
pub struct Clients {
    all: BTreeMap<StreamId, Client>,
    /// The highest election id that each role ever had.
    highest: BTreeMap<String, u128>,
    next: StreamId,
}

/// An election id as a number.
pub fn number(id: &p4::Uint128) -> u128 {
    u128::from(id.high) << 64 | u128::from(id.low)
}

impl Clients {
    /// A number for a new stream.
    pub fn open(&mut self) -> StreamId {
        self.next += 1;
        self.next
    }

    /// A client says its role and election id, for the first time or again; everybody whose standing it changes hears.
    pub fn arbitrate(
        &mut self,
        stream: StreamId,
        to: &ToClient,
        device_id: u64,
        update: &p4::MasterArbitrationUpdate,
    ) -> Result<(), Refusal> {
        if update.device_id != device_id {
            return Err(Refusal::missing(format!("there is no device {}; this is {device_id}", update.device_id)));
        }
        let role = update.role.as_ref().map_or_else(String::new, |role| role.name.clone());
        if update.role.as_ref().is_some_and(|role| role.config.is_some()) {
            return Err(Refusal::unimplemented(
                "roles have no configuration here: `application:N` may write entries of its tag, all others everything",
            ));
        }
        let election = update.election_id.as_ref().map(number).filter(|id| *id != 0);
        let others = || self.all.iter().filter(|(id, client)| **id != stream && client.role == role);
        if election.is_some() && others().any(|(_, client)| client.election == election) {
            return Err(Refusal::invalid("another client has this election id"));
        }
        if self.all.get(&stream).is_some_and(|client| client.role != role) {
            return Err(Refusal::new(Code::FailedPrecondition, "a stream keeps its role"));
        }
        let before = self.primary(&role);
        let first = !self.all.contains_key(&stream);
        let unchanged = self.all.get(&stream).is_some_and(|client| client.election == election);
        let client = Client { role: role.clone(), election, to: to.clone(), role_message: update.role.clone() };
        self.all.insert(stream, client);
        if let Some(election) = election {
            let highest = self.highest.entry(role.clone()).or_default();
            *highest = (*highest).max(election);
        }
        let after = self.primary(&role);
        let is_primary_again = after == Some(stream) && !unchanged;
        if before != after || (is_primary_again && !first) {
            self.tell_all(&role, device_id);
        } else {
            self.tell(stream, device_id);
        }
        Ok(())
    }

    /// A stream ended; backups hear that their role has no primary any more.
    pub fn close(&mut self, stream: StreamId, device_id: u64) {
        let Some(client) = self.all.get(&stream) else { return };
        let role = client.role.clone();
        let was_primary = self.primary(&role) == Some(stream);
        self.all.remove(&stream);
        if was_primary {
            self.tell_all(&role, device_id);
        }
    }

    fn primary(&self, role: &str) -> Option<StreamId> {
        let highest = *self.highest.get(role)?;
        let of = |(_, client): &(&StreamId, &Client)| client.role == role && client.election == Some(highest);
        self.all.iter().find(of).map(|(id, _)| *id)
    }

    /// Refuses a request that does not come from the primary client.
    pub fn check_primary(&self, role: &str, election: Option<&p4::Uint128>) -> Result<(), Refusal> {
        let denied = |message: &str| Err(Refusal::new(Code::PermissionDenied, message));
        let Some(primary) = self.primary(role) else {
            return denied("no client is primary: open a stream and send an arbitration update");
        };
        let election = election.map(number).filter(|id| *id != 0);
        if election.is_none() || self.all[&primary].election != election {
            return denied("only the primary client may write");
        }
        Ok(())
    }

    /// The stream belongs to the primary client of its role.
    pub fn is_primary(&self, stream: StreamId) -> bool {
        self.all.get(&stream).is_some_and(|client| self.primary(&client.role) == Some(stream))
    }

    /// Sends a message to the primary client of each role; false where nobody takes it.
    pub fn send_to_primaries(&self, message: &p4::StreamMessageResponse) -> bool {
        let mut sent = false;
        for stream in self.highest.keys().filter_map(|role| self.primary(role)) {
            sent |= self.all[&stream].to.try_send(Ok(message.clone())).is_ok();
        }
        sent
    }

    fn tell_all(&self, role: &str, device_id: u64) {
        let of_role = self.all.iter().filter(|(_, client)| client.role == role);
        of_role.for_each(|(stream, _)| self.tell(*stream, device_id));
    }

    fn tell(&self, stream: StreamId, device_id: u64) {
        let client = &self.all[&stream];
        let primary = self.primary(&client.role);
        let (code, message) = match primary {
            Some(primary) if primary == stream => (Code::Ok, "you are the primary client"),
            Some(_) => (Code::AlreadyExists, "another client is primary"),
            None => (Code::NotFound, "no client is primary"),
        };
        let highest = self.highest.get(&client.role).copied();
        let update = p4::MasterArbitrationUpdate {
            device_id,
            role: client.role_message.clone(),
            election_id: highest.map(|id| p4::Uint128 { high: (id >> 64) as u64, low: id as u64 }),
            status: Some(rpc::Status { code: code as i32, message: message.to_owned(), details: Vec::new() }),
        };
        let update = Some(p4::stream_message_response::Update::Arbitration(update));
        // A client that reads nothing misses news; its stream ends if it is gone.
        let _ = client.to.try_send(Ok(p4::StreamMessageResponse { update }));
    }
}
