//! The reference of all settings, as Markdown.

use super::{Condition, KEYS, Names};

/// docs/settings.md: one table row per key.
pub fn markdown(names: &Names<'_>) -> String {
    let mut text = String::from(
        "# Settings\n\n\
         Keys of `[settings]`, `[[variant]]`, `[sweep]` and `--set key=value`. This page is \
         written by `nicforge list settings --markdown`.\n\n\
         | key | takes | default | what it is | used when | source of the default |\n\
         | --- | --- | --- | --- | --- | --- |\n",
    );
    for key in KEYS {
        let used = key.used_when.iter().map(|when| ("is", when));
        let unused = key.unused_when.iter().chain(key.moot_when);
        let unused = unused.map(|when| ("is not", when));
        let said = |(name, values): &Condition| format!("`{name}` is {}", values.join(", "));
        let any: Vec<String> = key.counts_with.iter().map(said).collect();
        let any = (!any.is_empty()).then(|| any.join(" or "));
        let used = used.chain(unused);
        let used = used.map(|(verb, (name, values))| format!("`{name}` {verb} {}", values.join(", ")));
        let used: Vec<String> = used.chain(any).collect();
        text.push_str(&format!(
            "| `{}` | {} | {} | {} | {} | {} |\n",
            key.name,
            key.takes(names),
            key.default_text(),
            key.doc.trim(),
            used.join("; "),
            key.source,
        ));
    }
    text
}
