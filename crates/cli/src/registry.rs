//! What scenarios may name.

use std::sync::LazyLock;

use nicforge_lab::Registry;
use nicforge_lab::settings::Names;

static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::shipped);

static INTERFACES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let mut names = REGISTRY.interfaces.names();
    names.extend(nicforge_interfaces::kernel::registry::names());
    names
});

static APPS: LazyLock<Vec<&'static str>> = LazyLock::new(|| REGISTRY.apps.names());

/// The interfaces and applications themselves.
pub fn registry() -> &'static Registry {
    &REGISTRY
}

/// Their names.
pub fn names() -> Names<'static> {
    Names { interfaces: &INTERFACES, apps: &APPS }
}
