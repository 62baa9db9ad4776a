//! The names that scenarios may use, from the registries.

use std::sync::LazyLock;

use nicforge_lab::settings::Names;

static INTERFACES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let mut names = nicforge_interfaces::registry::names();
    names.extend(nicforge_interfaces::kernel::registry::names());
    names
});

/// Interfaces and applications that are built in.
pub fn names() -> Names<'static> {
    Names { interfaces: &INTERFACES, apps: nicforge_apps::names() }
}
