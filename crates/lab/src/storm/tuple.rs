//! Tuples: a destination, a source, when their origin was, and up to five users with counts.

use nicforge_units::Time;

/// Bytes of a tuple.
pub const TUPLE_BYTES: usize = 360;
/// Bytes of a name.
pub const NAME_BYTES: usize = 64;
/// Users of a tuple.
pub const USERS: usize = 5;
/// Where users begin, and what each takes: name and count.
const USERS_AT: usize = 16;
const USER_BYTES: usize = NAME_BYTES + 4;
/// When its worker gave it away, as nanoseconds modulo 2^32: in what the users leave.
const LEFT_AT: usize = USERS_AT + USERS * USER_BYTES;

/// A user's name, padded with zeros.
pub type Name = [u8; NAME_BYTES];

/// A tuple as it lies in memory and goes over the wire, numbers most significant byte first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuple(pub [u8; TUPLE_BYTES]);

impl Default for Tuple {
    fn default() -> Tuple {
        Tuple([0; TUPLE_BYTES])
    }
}

impl Tuple {
    /// A tuple of `users`, at most five, whose origin was at `start`.
    pub fn new(to: u32, from: u32, start: Time, users: &[(Name, u32)]) -> Tuple {
        let mut tuple = Tuple::default();
        tuple.put(0, to);
        tuple.put(4, from);
        tuple.0[8..16].copy_from_slice(&start.as_ps().to_be_bytes());
        for ((name, count), place) in users.iter().zip(tuple.0[USERS_AT..LEFT_AT].chunks_exact_mut(USER_BYTES)) {
            place[..NAME_BYTES].copy_from_slice(name);
            place[NAME_BYTES..].copy_from_slice(&count.to_be_bytes());
        }
        tuple
    }

    fn put(&mut self, at: usize, word: u32) {
        self.0[at..at + 4].copy_from_slice(&word.to_be_bytes());
    }

    fn get(&self, at: usize) -> u32 {
        u32::from_be_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }

    /// The task that it is for; 0 is none.
    pub fn to(&self) -> u32 {
        self.get(0)
    }

    /// The task that it is from.
    pub fn from(&self) -> u32 {
        self.get(4)
    }

    /// Its users with their counts, up to the first without a name.
    pub fn users(&self) -> impl Iterator<Item = (Name, u32)> {
        let users = self.0[USERS_AT..LEFT_AT].chunks_exact(USER_BYTES).map(|user| {
            let (mut name, mut count) = ([0; NAME_BYTES], [0; 4]);
            name.copy_from_slice(&user[..NAME_BYTES]);
            count.copy_from_slice(&user[NAME_BYTES..]);
            (name, u32::from_be_bytes(count))
        });
        users.take_while(|(name, _)| name[0] != 0)
    }

    /// Its worker gives it away at `now`.
    pub fn leave(&mut self, now: Time) {
        self.put(LEFT_AT, nanoseconds(now));
    }

    /// How long before `now` that was; up to four seconds are told apart.
    pub fn since_left(&self, now: Time) -> Time {
        Time::from_ps(u64::from(nanoseconds(now).wrapping_sub(self.get(LEFT_AT))) * 1000)
    }
}

fn nanoseconds(time: Time) -> u32 {
    (time.as_ps() / 1000) as u32
}

/// The name of user `number`.
pub fn name_of(number: u64) -> Name {
    let mut name = [0; NAME_BYTES];
    let text = format!("user{number:010}");
    name[..text.len()].copy_from_slice(text.as_bytes());
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_come_out_as_they_went_in() {
        let users: Vec<_> = (0..3).map(|number| (name_of(number), number as u32 + 7)).collect();
        let mut tuple = Tuple::new(5, 1, Time::from_us(3), &users);
        assert_eq!((tuple.to(), tuple.from(), tuple.users().collect::<Vec<_>>()), (5, 1, users));
        tuple.leave(Time::from_us(9));
        assert_eq!(tuple.since_left(Time::from_us(10)), Time::from_us(1));
        assert_eq!(tuple.users().count(), 3);
    }
}
