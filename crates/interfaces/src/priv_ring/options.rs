//! What a private ring says about itself.

use super::PrivRing;
use crate::describe::{Describe, Queues, Shape};
use crate::options::RxRing;

impl Describe for PrivRing {
    const NAME: &'static str = "priv_ring";
    const ABOUT: &'static str = "a private receive ring and completion ring per core";
    const PLAYED: Result<(), &'static str> = Ok(());
    type Options = RxRing;

    fn shape(options: &RxRing, queues: &Queues<'_>) -> Shape {
        Shape::of_rings(queues, options.rx_entries, 1)
    }
}
