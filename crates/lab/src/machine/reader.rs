//! Takes numbers out of a machine file by section and key, and remembers what was asked for,
//! so that a key that nobody asked for is an error.

use std::collections::BTreeMap;

use nicforge_options::{ConfigError, Field, Located, Node, Place, shorten};

use super::Row;

/// Largest number of cycles per packet that an application may be said to take.
const MOST_WORK_CYCLES: usize = 10_000_000;

/// Sections that hold tables with names of their own.
const NESTED: [&str; 2] = ["apps", "placements"];

/// Reads one machine file; keeps the problems it meets until [`Reader::finish`].
pub(super) struct Reader<'a> {
    root: &'a [Field],
    file: Place,
    asked: Vec<(String, &'static str)>,
    /// Applications that may be named.
    apps: Vec<&'static str>,
    rows: Vec<Row>,
    problems: Vec<ConfigError>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(root: &'a [Field], file: Place) -> Reader<'a> {
        Reader { root, file, asked: Vec::new(), apps: Vec::new(), rows: Vec::new(), problems: Vec::new() }
    }

    /// `[machine] title`.
    pub(super) fn title(&mut self) -> String {
        self.asked.push(("machine".to_string(), "title"));
        let Some(field) = find(self.section("machine"), "title") else {
            return String::new();
        };
        let title = field.value.text("title").map(str::to_string);
        title.map_err(|error| self.problems.push(error)).unwrap_or_default()
    }

    /// A number from `least` to `most`, both included.
    pub(super) fn number(
        &mut self,
        section: &str,
        key: &'static str,
        unit: &'static str,
        least: f64,
        most: f64,
        doc: &'static str,
    ) -> f64 {
        self.asked.push((section.to_string(), key));
        let read = match find(self.section(section), key) {
            Some(field) => entry(field, (least, most)),
            None => Err(self.missing(section, key)),
        };
        match read {
            Ok((value, source, fitted)) => {
                let section = section.to_string();
                self.rows.push(Row { section, key, unit, doc, value, source, fitted });
                value
            }
            Err(problem) => {
                self.problems.push(problem);
                least
            }
        }
    }

    /// A whole number from `least` to `most`, both included.
    pub(super) fn count(
        &mut self,
        section: &str,
        key: &'static str,
        unit: &'static str,
        least: usize,
        most: usize,
        doc: &'static str,
    ) -> usize {
        let value = self.number(section, key, unit, least as f64, most as f64, doc);
        if value.fract() != 0.0 {
            let right = format!("`{key}` takes a whole number, such as {}", value.trunc());
            self.refuse(section, key, format!("`{key}` cannot be {value}"), right);
        }
        value as usize
    }

    /// Whether there is such a section.
    pub(super) fn has(&self, section: &str) -> bool {
        find(self.root, section).is_some()
    }

    /// Names of the tables in a section that holds such.
    pub(super) fn names(&self, section: &str) -> Vec<String> {
        let tables = self.section(section).iter();
        tables.map(|table| table.key.clone()).collect()
    }

    /// Keeps the problem that the file has no table in section `outer`.
    pub(super) fn needs_one_of(&mut self, outer: &str, wrong: &str) {
        let right = format!("add [{outer}.NAME], as the shipped machines have them");
        self.problems.push(ConfigError::new(&self.file, wrong.to_string(), right));
    }

    /// `[apps.<name>] work_cycles` of every application that the file names, which may be those of `known`.
    pub(super) fn apps(&mut self, known: Vec<&'static str>) -> BTreeMap<String, u64> {
        self.apps = known;
        let mut cycles = BTreeMap::new();
        for name in self.names("apps") {
            let doc = "work per packet beyond the memory accesses";
            let section = format!("apps.{name}");
            let work = self.count(&section, "work_cycles", "cycles", 0, MOST_WORK_CYCLES, doc);
            cycles.insert(name, work as u64);
        }
        cycles
    }

    /// Keeps a problem with a value that was read.
    pub(super) fn refuse(&mut self, section: &str, key: &str, wrong: String, right: String) {
        if let Some(field) = find(self.section(section), key) {
            self.problems.push(ConfigError::new(&field.value.place, wrong, right));
        }
    }

    /// All rows, or the first problem. Keys that nobody knows come first, because a
    /// misspelt key is also a missing one.
    pub(super) fn finish(self) -> Result<Vec<Row>, ConfigError> {
        if let Some(problem) = self.unknown_key() {
            return Err(problem);
        }
        match self.problems.into_iter().next() {
            Some(problem) => Err(problem),
            None => Ok(self.rows),
        }
    }

    fn unknown_key(&self) -> Option<ConfigError> {
        let mut sections: Vec<&str> = NESTED.to_vec();
        for (section, _) in &self.asked {
            if !section.contains('.') && !sections.contains(&section.as_str()) {
                sections.push(section);
            }
        }
        for field in self.root {
            if !sections.contains(&field.key.as_str()) {
                return Some(ConfigError::unknown(&field.place, "section", &field.key, &sections));
            }
            let found = match field.key.as_str() {
                outer if NESTED.contains(&outer) => {
                    let tables = field.value.table(&format!("[{outer}]"));
                    tables.err().or_else(|| {
                        self.section(outer).iter().find_map(|inner| {
                            let is_app = outer == "apps";
                            let app = is_app.then(|| self.unknown_app(inner)).flatten();
                            let section = format!("{outer}.{}", inner.key);
                            app.or_else(|| self.unknown_in(&section, &inner.value))
                        })
                    })
                }
                section => self.unknown_in(section, &field.value),
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }

    fn unknown_app(&self, field: &Field) -> Option<ConfigError> {
        let name = field.key.as_str();
        (!self.apps.contains(&name)).then(|| ConfigError::unknown(&field.place, "application", name, &self.apps))
    }

    fn unknown_in(&self, section: &str, value: &Located) -> Option<ConfigError> {
        let of_section = self.asked.iter().filter(|(asked, _)| asked == section);
        let known: Vec<&str> = of_section.map(|(_, key)| *key).collect();
        let fields = match value.table(&format!("[{section}]")) {
            Ok(fields) => fields,
            Err(problem) => return Some(problem),
        };
        let field = fields.iter().find(|field| !known.contains(&field.key.as_str()))?;
        let what = format!("key of [{section}]");
        Some(ConfigError::unknown(&field.place, &what, &field.key, &known))
    }

    /// The fields of a section such as `llc` or `apps.nat`; none when there is no such table.
    fn section(&self, name: &str) -> &'a [Field] {
        let (outer, inner) = match name.split_once('.') {
            Some((outer, inner)) => (outer, Some(inner)),
            None => (name, None),
        };
        let found = find(self.root, outer).map_or(&[][..], |field| fields(&field.value));
        match inner {
            Some(inner) => find(found, inner).map_or(&[][..], |field| fields(&field.value)),
            None => found,
        }
    }

    fn missing(&self, section: &str, key: &str) -> ConfigError {
        let (outer, inner) = section.split_once('.').unwrap_or((section, ""));
        let header = find(self.root, outer);
        let header = find(self.section(outer), inner).or(header);
        let place = header.map_or(&self.file, |field| &field.place);
        let wrong = format!("[{section}] has no `{key}`");
        let right = format!("add {key} = {{ value = …, source = \"…\" }}");
        ConfigError::new(place, wrong, right)
    }
}

fn fields(value: &Located) -> &[Field] {
    match &value.node {
        Node::Table(fields) => fields,
        _ => &[],
    }
}

fn find<'a>(fields: &'a [Field], key: &str) -> Option<&'a Field> {
    fields.iter().find(|field| field.key == key)
}

/// `{ value, source, fitted }` of one key.
fn entry(field: &Field, (least, most): (f64, f64)) -> Result<(f64, String, Option<String>), ConfigError> {
    let key = &field.key;
    let shown = match &field.value.node {
        Node::Table(parts) => find(parts, "value").map(|part| part.value.node.show()),
        number => Some(number.show()),
    };
    let shown = shown.map_or("…".to_string(), |shown| shown.trim_matches('"').to_string());
    let example = format!("write {key} = {{ value = {shown}, source = \"where it comes from\" }}");
    let Node::Table(parts) = &field.value.node else {
        let wrong = format!("`{key}` has no source");
        return Err(ConfigError::new(&field.value.place, wrong, example));
    };
    const PARTS: [&str; 3] = ["value", "source", "fitted"];
    if let Some(part) = parts.iter().find(|part| !PARTS.contains(&part.key.as_str())) {
        return Err(ConfigError::unknown(&part.place, &format!("part of `{key}`"), &part.key, &PARTS));
    }
    let part = |name: &str| {
        find(parts, name)
            .ok_or_else(|| ConfigError::new(&field.place, format!("`{key}` has no `{name}`"), example.clone()))
    };
    let value = number_in(&part("value")?.value, key, least, most)?;
    let source = part("source")?;
    let text = source.value.text("source")?.trim();
    if text.is_empty() {
        let wrong = format!("the source of `{key}` is empty");
        let right = "name a data sheet, a paper's section, or \"estimate: reason\"";
        return Err(ConfigError::new(&source.value.place, wrong, right));
    }
    let fitted = find(parts, "fitted").map(|part| part.value.text("fitted")).transpose()?;
    Ok((value, text.to_string(), fitted.map(str::to_string)))
}

fn number_in(value: &Located, key: &str, least: f64, most: f64) -> Result<f64, ConfigError> {
    let number = match value.node {
        Node::Integer(number) => number as f64,
        Node::Number(number) => number,
        _ => f64::NAN,
    };
    // NaN is in no range.
    if (least..=most).contains(&number) {
        return Ok(number);
    }
    let shown = match &value.node {
        Node::Text(text) => format!("\"{}\"", shorten(text)),
        node => node.show(),
    };
    let quoted = match &value.node {
        Node::Text(_) => ", without quotes",
        _ => "",
    };
    let right = format!("`{key}` takes a number from {least} to {most}, in the unit of its name{quoted}");
    Err(ConfigError::new(&value.place, format!("`{key}` cannot be {shown}"), right))
}
