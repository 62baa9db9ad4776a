//! Numbers of what the kernel's epoll reports.

/// What the kernel's epoll reports, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Door,
    Stop,
    Control(usize),
    Bell(usize),
    Flow(u32),
    Wire,
}

impl Source {
    pub(super) fn number(self) -> u64 {
        let (kind, index) = match self {
            Source::Door => (0, 0),
            Source::Stop => (1, 0),
            Source::Control(index) => (2, index as u64),
            Source::Bell(index) => (3, index as u64),
            Source::Flow(name) => (4, u64::from(name)),
            Source::Wire => (5, 0),
        };
        kind << 56 | index
    }

    pub(super) fn of(number: u64) -> Source {
        let index = number & ((1 << 56) - 1);
        match number >> 56 {
            0 => Source::Door,
            1 => Source::Stop,
            2 => Source::Control(index as usize),
            3 => Source::Bell(index as usize),
            4 => Source::Flow(index as u32),
            _ => Source::Wire,
        }
    }
}
