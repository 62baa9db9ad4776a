//! What scenarios may name: the same as on the command line, and applications in Python.

use std::sync::{Arc, OnceLock};

use nicforge_lab::Registry;
use nicforge_lab::settings::Catalogue;
use nicforge_p4stage::P4Kind;
use nicforge_p4stage::flexnic::FlexNic;

use crate::app::PythonApp;

/// All keys that there are.
pub fn catalogue() -> Arc<Catalogue> {
    static CATALOGUE: OnceLock<Arc<Catalogue>> = OnceLock::new();
    let registry = || Registry::shipped().stage::<P4Kind>().interface::<FlexNic>().application::<PythonApp>();
    Arc::clone(CATALOGUE.get_or_init(|| Arc::new(Catalogue::new(registry()))))
}
