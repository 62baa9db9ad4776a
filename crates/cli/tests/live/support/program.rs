//! A process that does not outlive the test that started it, however that ends.

use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};

use rustix::process::Pid;

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

    fn child(&mut self) -> &mut Child {
        self.child.as_mut().unwrap()
    }

    pub fn id(&mut self) -> Pid {
        Pid::from_child(self.child())
    }

    pub fn is_running(&mut self) -> bool {
        self.child().try_wait().unwrap().is_none()
    }

    /// What it says from now on, which must be piped.
    pub fn stdout(&mut self) -> ChildStdout {
        self.child().stdout.take().unwrap()
    }

    /// Waits until it ends by itself.
    pub fn ends(mut self) -> ExitStatus {
        self.child.take().unwrap().wait().unwrap()
    }

    /// The same, and what it said where that is piped.
    pub fn ends_with_output(mut self) -> Output {
        self.child.take().unwrap().wait_with_output().unwrap()
    }

    /// SIGKILL; how it ended, and what it said where that is piped.
    pub fn killed(mut self) -> Output {
        // It may have ended by itself.
        let _ = self.child().kill();
        self.ends_with_output()
    }

    /// Asks it to stop; how it ended, and what it said where that is piped.
    pub fn stop(mut self) -> Output {
        rustix::process::kill_process(self.id(), rustix::process::Signal::TERM).unwrap();
        self.ends_with_output()
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
