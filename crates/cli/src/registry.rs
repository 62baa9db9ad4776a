//! What scenarios may name.

use std::sync::{Arc, OnceLock};

use nicforge_lab::Registry;
use nicforge_lab::settings::Catalogue;

static CATALOGUE: OnceLock<Arc<Catalogue>> = OnceLock::new();

/// Makes `registry` the one that all commands use. The first call of a process counts.
pub fn set(registry: Registry) {
    CATALOGUE.get_or_init(|| Arc::new(Catalogue::new(registry)));
}

/// All keys that the registry's entries and the lab declare.
pub fn catalogue() -> Arc<Catalogue> {
    Arc::clone(CATALOGUE.get_or_init(Catalogue::shipped))
}
