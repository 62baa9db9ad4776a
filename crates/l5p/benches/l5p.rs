//! Speed of the engine beside the libraries that it stands on.
fn main() {}
