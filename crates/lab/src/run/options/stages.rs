//! Options of stages, whichever they are.

use nicforge_options::{Allowed, options};

options! {
    /// Stages on the path of each NIC.
    pub struct StageOptions {
        /// Stages between the wire and the interface of each NIC, by registry name, in order from the wire and with
        /// commas between them.
        stages: Option<String> = None, "", Allowed::NamedList("stage"), default "none";
    }
}

options! {
    /// What stages compute on.
    pub struct StageProcessor {
        /// Clock of the processor in each NIC that stages compute on; their instructions take no time when unset.
        stage_ghz: Option<f64> = None, "GHz", Allowed::Number(0.01, 100.0), default "no time";
        /// Cores of that processor, each of which handles one frame at a time.
        stage_cores: usize = 1, "cores", Allowed::Whole(1, 1024);
    }
}
