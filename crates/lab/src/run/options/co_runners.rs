//! Options of what runs beside the application.

use nicforge_interfaces::emulated::Socket;
use nicforge_options::{Allowed, choice, options};

choice! {
    /// Between which memories a core copies.
    pub enum Copying {
        /// None does.
        None = "none",
        /// Host memory.
        HostToHost = "host_to_host",
        /// To the NIC.
        HostToNicmem = "host_to_nicmem",
        /// From the NIC.
        NicmemToHost = "nicmem_to_host",
    }
}

options! {
    /// What else runs.
    pub struct CoRunners {
        /// Co-runners that run STREAM triad, each on a core of its own.
        stream_cores: usize = 0, "cores", Allowed::Whole(0, 256);
        /// Co-runners that run a random-access graph kernel, each on a core of its own.
        graph_cores: usize = 0, "cores", Allowed::Whole(0, 256);
        /// A co-runner that copies a buffer over and over, on a core of its own: from where to where.
        copy: Copying = Copying::None, "", Copying::ALLOWED;
    }
}

options! {
    /// The copying co-runner.
    pub struct Copies {
        /// Size of the buffer that is copied.
        copy_kib: u64 = 64, "KiB", Allowed::Whole(1, 1_048_576);
    }
}

options! {
    /// Where co-runners run.
    pub struct CoRunnerPlace {
        /// Where other co-runners run: on cores of the same socket, with the workers' LLC, or on the other
        /// socket, from where they use the same memory but none of its caches.
        co_runner_socket: Socket = Socket::Same, "", Allowed::Choice(&["same", "other"]);
    }
}
