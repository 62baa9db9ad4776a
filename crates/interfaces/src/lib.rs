//! interfaces
