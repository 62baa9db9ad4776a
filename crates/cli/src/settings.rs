//! Keys of scenarios and live files, as a person reads them: `nicforge list settings`, `nicforge help KEY`.

use nicforge_options::{Key, Vocabulary, nearest};

use crate::registry::catalogue;

/// Columns of a line of text.
const COLUMNS: usize = 120;

/// Every key, under the modules that read it.
pub fn all() -> String {
    let catalogue = catalogue();
    let vocabulary = catalogue.vocabulary();
    let scenarios = vocabulary.groups().into_iter().map(|(title, keys)| Listing { title, keys });
    let blocks = scenarios.chain(live_listings()).map(|Listing { title, keys }| {
        let keys: String = keys.iter().map(|key| entry(key, vocabulary)).collect();
        wrapped(&title, "") + &keys
    });
    blocks.collect::<Vec<_>>().join("\n")
}

/// What is known of key `name`, in every section that has one of this name; `None` where none has.
pub fn about(name: &str) -> Option<String> {
    let catalogue = catalogue();
    let vocabulary = catalogue.vocabulary();
    let of_scenarios = vocabulary.key(name).map(|key| (vocabulary.owners_of(name), key));
    let of_live = live_listings().into_iter().flat_map(|Listing { title, keys }| {
        let found = keys.into_iter().find(|key| key.name == name);
        found.map(|key| (title, key))
    });
    let found: Vec<String> = of_scenarios
        .into_iter()
        .chain(of_live)
        .map(|(owners, key)| {
            let source = if key.source.is_empty() { String::new() } else { line("source of the default", key.source) };
            [
                format!("{name}\n"),
                wrapped(key.doc, "  "),
                line("takes", &key.takes(vocabulary)),
                line("default", &key.default_text()),
                source,
                line("read by", &owners),
            ]
            .concat()
        })
        .collect();
    (!found.is_empty()).then(|| found.join("\n"))
}

/// The key that a person most likely meant by `name`.
pub fn meant(name: &str) -> Option<&'static str> {
    let catalogue = catalogue();
    let mut keys = catalogue.vocabulary().keys();
    keys.extend(live_listings().into_iter().flat_map(|listing| listing.keys));
    let names: Vec<&'static str> = keys.into_iter().map(|key| key.name).collect();
    nearest(name, &names)
}

fn line(what: &str, text: &str) -> String {
    wrapped(&format!("{what}: {text}"), "  ")
}

fn wrapped(text: &str, indent: &str) -> String {
    let options = textwrap::Options::new(COLUMNS).initial_indent(indent).subsequent_indent(indent);
    textwrap::fill(text, options) + "\n"
}

/// A key in the list.
fn entry(key: &Key, vocabulary: &Vocabulary) -> String {
    let head = format!("{} = {}: {}", key.name, key.default_text(), key.takes(vocabulary));
    let options = textwrap::Options::new(COLUMNS).initial_indent("  ").subsequent_indent("      ");
    textwrap::fill(&head, options) + "\n" + &wrapped(key.doc, "      ")
}

/// docs/settings.md.
pub fn page() -> String {
    let catalogue = catalogue();
    let vocabulary = catalogue.vocabulary();
    let live = live_listings();
    let tables: Vec<String> = live.iter().map(|listing| vocabulary.table(&listing.title, &listing.keys)).collect();
    vocabulary.markdown() + &tables.concat()
}

/// Keys of one owner in one section of live files.
struct Listing {
    title: String,
    keys: Vec<&'static Key>,
}

/// The keys of live files except those of scenarios.
#[cfg(target_os = "linux")]
fn live_listings() -> Vec<Listing> {
    let mut listings: Vec<Listing> = Vec::new();
    for section in nicforge_lab::live::sections(&catalogue()) {
        for owner in section.owners.iter().filter(|owner| !owner.keys.is_empty()) {
            let title = format!("{} of live files: {owner}", section.header);
            match listings.iter_mut().find(|known| known.title == title) {
                Some(known) => known.keys.extend(&owner.keys),
                None => listings.push(Listing { title, keys: owner.keys.clone() }),
            }
        }
    }
    listings
}

/// Live runs need Linux.
#[cfg(not(target_os = "linux"))]
fn live_listings() -> Vec<Listing> {
    Vec::new()
}
