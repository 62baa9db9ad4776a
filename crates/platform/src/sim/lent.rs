//! A host, a core or a link that one agent at a time has.
//!
//! A core at work has the host and its own state in one value without lifetimes, so that software for cores can be an
//! object. The value holds both for one turn and returns them when the turn ends.

use std::ops::{Deref, DerefMut};

use super::Host;

/// Something that is lent to one agent at a time.
pub struct Lent<T>(Option<Box<T>>);

impl<T> Lent<T> {
    /// Nobody has it yet.
    pub fn new(value: T) -> Lent<T> {
        Lent(Some(Box::new(value)))
    }

    /// Takes it for a turn.
    pub(super) fn take(&mut self) -> Box<T> {
        self.0.take().unwrap_or_else(|| is_lent())
    }

    /// The turn is over.
    pub(super) fn give_back(&mut self, value: Box<T>) {
        self.0 = Some(value);
    }
}

#[cold]
fn is_lent() -> ! {
    panic!("it is lent to an agent whose turn has not ended")
}

impl<T> Deref for Lent<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.0.as_deref().unwrap_or_else(|| is_lent())
    }
}

impl<T> DerefMut for Lent<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_deref_mut().unwrap_or_else(|| is_lent())
    }
}

/// An agent at work: the host, and its own state.
pub trait Agent {
    /// What it keeps between its turns.
    type State;

    /// Gives both back.
    fn into_parts(self) -> (Box<Host>, Box<Self::State>);
}

/// A turn of an agent. When it ends, the host and the agent's state are back where they were.
pub struct Turn<'a, A: Agent> {
    agent: Option<A>,
    host: &'a mut Lent<Host>,
    state: &'a mut Lent<A::State>,
}

impl<'a, A: Agent> Turn<'a, A> {
    /// `agent` makes the agent from both.
    pub(super) fn begin(
        host: &'a mut Lent<Host>,
        state: &'a mut Lent<A::State>,
        agent: impl FnOnce(Box<Host>, Box<A::State>) -> A,
    ) -> Turn<'a, A> {
        let agent = Some(agent(host.take(), state.take()));
        Turn { agent, host, state }
    }

    /// Ends the turn, and lets others have the host and the agent's state.
    fn end(&mut self) {
        if let Some(agent) = self.agent.take() {
            let (host, state) = agent.into_parts();
            self.host.give_back(host);
            self.state.give_back(state);
        }
    }

    /// Interrupts the turn for `other`, which may let others have the host.
    pub(super) fn pause<R>(
        &mut self,
        other: impl FnOnce(&mut Lent<Host>, &mut Lent<A::State>) -> R,
        agent: impl FnOnce(Box<Host>, Box<A::State>) -> A,
    ) -> R {
        self.end();
        let done = other(self.host, self.state);
        self.agent = Some(agent(self.host.take(), self.state.take()));
        done
    }
}

impl<A: Agent> Drop for Turn<'_, A> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<A: Agent> Deref for Turn<'_, A> {
    type Target = A;

    #[inline]
    fn deref(&self) -> &A {
        self.agent.as_ref().unwrap_or_else(|| is_lent())
    }
}

impl<A: Agent> DerefMut for Turn<'_, A> {
    #[inline]
    fn deref_mut(&mut self) -> &mut A {
        self.agent.as_mut().unwrap_or_else(|| is_lent())
    }
}
