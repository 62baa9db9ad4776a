//! apps
