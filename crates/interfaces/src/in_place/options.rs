//! What a ring with completions in place says about itself.

use super::InPlace;
use crate::describe::{Describe, Queues, Shape};
use crate::options::RxRing;

impl Describe for InPlace {
    const NAME: &'static str = "in_place";
    const ABOUT: &'static str = "a private ring whose completions overwrite its descriptors";
    const PLAYED: Result<(), &'static str> = Err(
        "its completion overwrites the descriptor and names no buffer, so that the core could put no other in the \
         place",
    );
    type Options = RxRing;

    fn shape(options: &RxRing, queues: &Queues<'_>) -> Shape {
        Shape { supplies: Vec::new(), ..Shape::of_rings(queues, options.rx_entries, 1) }
    }
}
