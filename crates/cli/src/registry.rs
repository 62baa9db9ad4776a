//! What scenarios may name.

use std::sync::{Arc, LazyLock};

use nicforge_lab::Registry;
use nicforge_lab::settings::Catalogue;

static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::shipped);

static CATALOGUE: LazyLock<Arc<Catalogue>> = LazyLock::new(|| Arc::new(Catalogue::new(&REGISTRY)));

/// The interfaces and applications themselves.
pub fn registry() -> &'static Registry {
    &REGISTRY
}

/// All keys that they and the lab declare.
pub fn catalogue() -> Arc<Catalogue> {
    Arc::clone(&CATALOGUE)
}
