//! What each operation does to table and log.

use nicforge_nic::Packet;
use nicforge_platform::{Addr, Cpu};
use nicforge_wire::headers::MemcachedStatus;

use super::message::{self, Message};
use super::request::{Operation, Request, When};
use super::table::{self, ItemHeader, ItemId};
use super::{FlexKvs, MONTH, MOVES, Outcome, crc32, lookup3, nic_log};

impl FlexKvs {
    pub(super) fn serve<C: Cpu>(&mut self, cpu: &mut C, packet: &Packet, request: &Request) -> Outcome {
        let key = packet.span(request.key_at(), request.value_at());
        self.key.clear();
        for piece in key {
            self.key.extend_from_slice(cpu.bytes(piece.at, piece.len as usize));
        }
        let hash = self.hash(&self.key);
        match request.operation {
            Operation::Get { .. } => self.get(cpu, hash),
            Operation::Store(when) => self.store(cpu, packet, request, hash, when),
            Operation::Delete => self.delete(cpu, request, hash),
            Operation::Noop => Outcome::Done,
            Operation::Version => Outcome::Version,
            Operation::Unknown => Outcome::Failed(MemcachedStatus::UnknownCommand),
            Operation::Invalid => Outcome::Failed(MemcachedStatus::Invalid),
        }
    }

    /// The hash of a key, as the NIC computes it where it does.
    pub(super) fn hash(&self, key: &[u8]) -> u32 {
        if self.nic_log.is_some() { crc32(key) } else { lookup3(key, 0) }
    }

    /// Serves a request whose headers the NIC took off, and whose key it hashed.
    pub(super) fn serve_message<C: Cpu>(
        &mut self,
        cpu: &mut C,
        message: Message,
        hash: u32,
    ) -> Result<Outcome, &'static str> {
        match message {
            Message::Get(key) => {
                self.key.clear();
                self.key.extend_from_slice(&key);
                Ok(self.get(cpu, hash))
            }
            Message::Set(at) => self.enter(cpu, at).ok_or("bad_message"),
        }
    }

    /// Enters the item that the NIC put into the log at `at`; `None` if there can be none.
    pub(super) fn enter<C: Cpu>(&mut self, cpu: &mut C, at: Addr) -> Option<Outcome> {
        let least = table::ITEM_HEADER + message::KEY_BYTES as u64;
        let offset = nic_log::offset_of(self.writer.segments(), at, least)?;
        let header: ItemHeader = cpu.load(at);
        let nic_log = self.nic_log.as_mut()?;
        if usize::from(header.key_len) != message::KEY_BYTES
            || header.references != 1
            || !nic_log.appended(cpu, &mut self.writer, offset, header.size())
        {
            return None;
        }
        self.counts.stores += 1;
        self.key.clear();
        self.key.extend_from_slice(cpu.bytes(at + table::ITEM_HEADER, message::KEY_BYTES));
        let bucket = self.table.lock(cpu, header.hash);
        match self.table.find(cpu, bucket, header.hash, &self.key) {
            Some(old) => {
                self.table.replace(cpu, bucket, &old, ItemId::at(offset));
                self.release(cpu, &old);
            }
            None => self.table.insert(cpu, bucket, header.hash, ItemId::at(offset)),
        }
        self.table.unlock(cpu, bucket);
        Some(Outcome::Done)
    }

    pub(super) fn get<C: Cpu>(&mut self, cpu: &mut C, hash: u32) -> Outcome {
        self.counts.gets += 1;
        let now = seconds(cpu);
        let bucket = self.table.lock(cpu, hash);
        let found = self.table.find(cpu, bucket, hash, &self.key).filter(|found| is_alive(&found.header, now));
        if let Some(found) = &found {
            self.table.hold(cpu, found.item);
        }
        self.table.unlock(cpu, bucket);
        let Some(found) = found else { return Outcome::Failed(MemcachedStatus::NotFound) };
        self.flags = found.header.flags;
        self.value.clear();
        self.value.extend_from_slice(cpu.bytes(found.value.at, found.value.len as usize));
        self.release(cpu, &found);
        self.counts.get_hits += 1;
        Outcome::Value
    }

    pub(super) fn store<C: Cpu>(
        &mut self,
        cpu: &mut C,
        packet: &Packet,
        request: &Request,
        hash: u32,
        when: When,
    ) -> Outcome {
        self.counts.stores += 1;
        let extras = packet.span(request.extras_at(), request.key_at());
        let mut bytes = [0; 8];
        let mut filled = 0;
        for piece in extras {
            let part = cpu.bytes(piece.at, piece.len as usize);
            bytes[filled..filled + part.len()].copy_from_slice(part);
            filled += part.len();
        }
        let [a, b, c, d, expiry @ ..] = bytes;
        self.value.clear();
        for piece in packet.span(request.value_at(), request.value_at() + request.value_len) {
            self.value.extend_from_slice(cpu.bytes(piece.at, piece.len as usize));
        }
        let now = seconds(cpu);
        let expires = match u32::from_be_bytes(expiry) {
            0 => 0,
            soon if soon <= MONTH => now.saturating_add(soon).max(1),
            _ => 0,
        };
        let header = ItemHeader::new(hash, request.key_len, request.value_len, [a, b, c, d], expires);
        let bucket = self.table.lock(cpu, hash);
        let outcome = self.store_locked(cpu, bucket, header, when, request.cas, now);
        self.table.unlock(cpu, bucket);
        outcome
    }

    /// Stores the pair in hand, in a locked bucket.
    pub(super) fn store_locked<C: Cpu>(
        &mut self,
        cpu: &mut C,
        bucket: table::Locked,
        header: ItemHeader,
        when: When,
        cas: u64,
        now: u32,
    ) -> Outcome {
        let found = self.table.find(cpu, bucket, header.hash, &self.key);
        let alive = found.as_ref().is_some_and(|found| is_alive(&found.header, now));
        let refused = match (alive, when) {
            (true, When::Missing) => Some(MemcachedStatus::Exists),
            (false, When::There) => Some(MemcachedStatus::NotFound),
            // No pair has a CAS.
            (true, _) if cas != 0 => Some(MemcachedStatus::Exists),
            (false, _) if cas != 0 => Some(MemcachedStatus::NotFound),
            _ => None,
        };
        if let Some(status) = refused {
            return Outcome::Failed(status);
        }
        let Some(item) = self.append(cpu, header) else {
            self.counts.out_of_memory += 1;
            return Outcome::Failed(MemcachedStatus::OutOfMemory);
        };
        match found {
            Some(old) => {
                self.table.replace(cpu, bucket, &old, item);
                self.release(cpu, &old);
            }
            None => self.table.insert(cpu, bucket, header.hash, item),
        }
        Outcome::Done
    }

    /// Writes an item with the key and the value in hand to the log.
    pub(super) fn append<C: Cpu>(&mut self, cpu: &mut C, header: ItemHeader) -> Option<ItemId> {
        let size = header.size();
        let offset = self.writer.append(cpu, size)?;
        let at = self.writer.segments().log + offset;
        cpu.store(at, header);
        let body = cpu.bytes_mut(at + table::ITEM_HEADER, self.key.len() + self.value.len());
        let (key, value) = body.split_at_mut(self.key.len());
        key.copy_from_slice(&self.key);
        value.copy_from_slice(&self.value);
        Some(ItemId::at(offset))
    }

    pub(super) fn delete<C: Cpu>(&mut self, cpu: &mut C, request: &Request, hash: u32) -> Outcome {
        self.counts.deletes += 1;
        let now = seconds(cpu);
        let bucket = self.table.lock(cpu, hash);
        let found = self.table.find(cpu, bucket, hash, &self.key);
        let outcome = match &found {
            Some(found) if is_alive(&found.header, now) && request.cas != 0 => Outcome::Failed(MemcachedStatus::Exists),
            Some(found) => {
                let was_alive = is_alive(&found.header, now);
                self.table.remove(cpu, bucket, found);
                self.release(cpu, found);
                if was_alive { Outcome::Done } else { Outcome::Failed(MemcachedStatus::NotFound) }
            }
            None => Outcome::Failed(MemcachedStatus::NotFound),
        };
        self.table.unlock(cpu, bucket);
        outcome
    }

    /// Drops a reference to an item, that of the table or of a GET. The last one frees it.
    pub(super) fn release<C: Cpu>(&self, cpu: &mut C, found: &table::Found) {
        if self.table.release(cpu, found.item)
            && let Some(offset) = found.item.offset()
        {
            self.writer.segments().free(cpu, offset, found.header.size());
        }
    }

    /// Moves some items out of a segment of which most is freed.
    pub(super) fn compact<C: Cpu>(&mut self, cpu: &mut C) {
        for _ in 0..MOVES {
            let Some(offset) = self.writer.candidate(cpu) else {
                return;
            };
            let at = self.writer.segments().log + offset;
            let header: ItemHeader = cpu.load(at);
            let item = ItemId::at(offset);
            let bucket = self.table.lock(cpu, header.hash);
            if self.table.names(cpu, bucket, item) {
                let (key, value) = (usize::from(header.key_len), header.value_len as usize);
                let body = cpu.bytes(at + table::ITEM_HEADER, key + value);
                self.key.clear();
                self.key.extend_from_slice(&body[..key]);
                self.value.clear();
                self.value.extend_from_slice(&body[key..]);
                let found = self.table.find(cpu, bucket, header.hash, &self.key);
                let moved = self.append(cpu, ItemHeader { references: 1, ..header });
                let (Some(found), Some(moved)) = (found, moved) else {
                    // Without a free segment it stays where it is.
                    self.table.unlock(cpu, bucket);
                    return;
                };
                self.table.replace(cpu, bucket, &found, moved);
                self.release(cpu, &found);
                self.counts.moved += 1;
            }
            self.table.unlock(cpu, bucket);
            self.writer.pass(header.size());
        }
    }
}

/// Seconds of the run.
pub(super) fn seconds<C: Cpu>(cpu: &C) -> u32 {
    (cpu.now().as_ps() / 1_000_000_000_000) as u32
}

pub(super) fn is_alive(header: &ItemHeader, now: u32) -> bool {
    header.expires == 0 || now < header.expires
}
