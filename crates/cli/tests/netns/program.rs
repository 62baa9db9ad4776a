//! A process that does not outlive the test that started it, however that ends.

use std::process::{Child, Command, Output, Stdio};

/// A running program; it is killed with the value.
pub struct Program {
    /// Until somebody waits for it.
    child: Option<Child>,
}

impl Program {
    /// Starts `command`.
    pub fn start(command: &mut Command) -> Program {
        let child = Some(command.spawn().unwrap());
        Program { child }
    }

    /// The same, and nobody hears what it says.
    pub fn start_silent(command: &mut Command) -> Program {
        Program::start(command.stdout(Stdio::null()).stderr(Stdio::null()))
    }

    /// Waits until it ends by itself.
    pub fn ends(mut self) {
        self.child.take().unwrap().wait().unwrap();
    }

    /// Asks it to stop; how it ended, and what it said where that is piped.
    pub fn stop(mut self) -> Output {
        let child = self.child.take().unwrap();
        let id = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        child.wait_with_output().unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
