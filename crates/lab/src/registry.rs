//! What a run may name, as a value: interfaces, applications and stages, shipped ones and others.

use nicforge_apps::{AppKind, Apps};
use nicforge_interfaces::{Interface, Interfaces};
use nicforge_stages::{StageKind, Stages};

/// All that a run may name. A program that has interfaces, applications or stages of its own adds them here.
#[derive(Clone, Debug)]
pub struct Registry {
    /// NIC-host interfaces.
    pub interfaces: Interfaces,
    /// Applications.
    pub apps: Apps,
    /// Stages on NICs' paths.
    pub stages: Stages,
}

impl Registry {
    /// What is shipped with Nicforge.
    pub fn shipped() -> Registry {
        Registry { interfaces: Interfaces::shipped(), apps: Apps::shipped(), stages: Stages::shipped() }
    }

    /// Adds interface `I`; one of the same name is replaced.
    pub fn interface<I: Interface>(mut self) -> Registry {
        self.interfaces.add::<I>();
        self
    }

    /// Adds application `A`; one of the same name is replaced.
    pub fn application<A: AppKind>(mut self) -> Registry {
        self.apps.add::<A>();
        self
    }

    /// Adds stage `K`; one of the same name is replaced.
    pub fn stage<K: StageKind>(mut self) -> Registry {
        self.stages.add::<K>();
        self
    }
}

impl Default for Registry {
    fn default() -> Registry {
        Registry::shipped()
    }
}
