//! The reference of all settings, as Markdown.

use super::{KEYS, Names};

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
        let used: Vec<String> = used
            .chain(unused)
            .map(|(verb, (name, values))| format!("`{name}` {verb} {}", values.join(", ")))
            .collect();
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
