//! No text makes the parser panic.

use proptest::prelude::*;

use super::*;

const SHIPPED: [&str; 4] = [
    include_str!("../../../../../scenarios/nat-200g.toml"),
    include_str!("../../../../../scenarios/nat-capture.toml"),
    include_str!("../../../../../scenarios/paper/rxb-02.toml"),
    include_str!("../../../../../scenarios/paper/rxb-03.toml"),
];

/// Pieces that mean something in a scenario file.
const PIECES: [&str; 16] = [
    "[sweep]\n",
    "[[variant]]\n",
    "[settings]\n",
    "= [",
    "]",
    "\"",
    "'''",
    "-1",
    "nan",
    "1e999",
    "9223372036854775807",
    "{ a = 1 }",
    "\u{0}",
    "µ",
    "\r\n",
    "cores = [1, 2]\n",
];

#[test]
fn the_shipped_scenarios_parse() {
    for text in SHIPPED {
        parse(text).unwrap();
    }
}

proptest! {
    #[test]
    fn mutated_scenarios_never_panic(
        which in 0..SHIPPED.len(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..12usize, 0..PIECES.len()), 1..6),
    ) {
        let mut text: Vec<char> = SHIPPED[which].chars().collect();
        for (at, removed, piece) in edits {
            let at = at.index(text.len() + 1);
            let end = (at + removed).min(text.len());
            text.splice(at..end, PIECES[piece].chars());
        }
        let text: String = text.into_iter().collect();
        if let Ok(scenario) = parse(&text) {
            let _ = scenario.expand(&machine(), &[]);
        }
        let _ = parse_machine(&text, Path::new("m.toml"));
    }

    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,200}") {
        let _ = parse(&text);
        let _ = parse_override(&text, &NAMES);
    }
}
