//! A core that runs something else and only uses memory.

use nicforge_apps::CoRunner;

use super::program::{Account, Here, Next, Program};

impl Program for CoRunner {
    fn step(&mut self, here: &mut Here<'_>) -> Next {
        here.core.begin_burst();
        CoRunner::step(self, &mut *here.cpu());
        Next::Again
    }

    fn is_endless(&self) -> bool {
        true
    }

    fn account(&self) -> Account {
        Account { copied: self.copied(), ..Account::default() }
    }
}
