//! A TOML text as a small tree in which everything knows its place.

use std::path::Path;

use toml_edit::{Document, Item, TableLike, TomlError, Value};

use crate::place::Places;
use crate::{ConfigError, Place, shorten};

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Located {
    /// Where the value begins.
    pub place: Place,
    /// The value.
    pub node: Node,
}

/// A TOML value.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A whole number.
    Integer(i64),
    /// A number with a fraction or exponent, `inf` or `nan`.
    Number(f64),
    /// `true` or `false`.
    Flag(bool),
    /// A string.
    Text(String),
    /// A date or time; no key takes one.
    Date(String),
    /// An array, or an array of tables.
    List(Vec<Located>),
    /// A table, in file order.
    Table(Vec<Field>),
}

/// A key of a table and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub place: Place,
    /// Its value.
    pub value: Located,
}

impl Node {
    /// The value as an error shows it.
    pub fn show(&self) -> String {
        match self {
            Node::Integer(value) => value.to_string(),
            // With its point or exponent: it is no whole number even where its fraction is 0.
            Node::Number(value) => format!("{value:?}"),
            Node::Flag(value) => value.to_string(),
            Node::Text(text) => format!("\"{}\"", shorten(text)),
            Node::Date(text) => format!("the date {text}"),
            Node::List(_) => "a list".to_string(),
            Node::Table(_) => "a table".to_string(),
        }
    }
}

impl Located {
    /// The fields of a table; `what` names it in the error.
    pub fn table(&self, what: &str) -> Result<&[Field], ConfigError> {
        match &self.node {
            Node::Table(fields) => Ok(fields),
            other => Err(ConfigError::new(
                &self.place,
                format!("{what} is {}", other.show()),
                format!("{what} is a table of `key = value` lines"),
            )),
        }
    }

    /// A string; `what` names it in the error.
    pub fn text(&self, what: &str) -> Result<&str, ConfigError> {
        match &self.node {
            Node::Text(text) => Ok(text),
            other => Err(ConfigError::new(
                &self.place,
                format!("{what} is {}", other.show()),
                format!("{what} is a string in quotes"),
            )),
        }
    }
}

/// Parses a whole file. The root's place is the file.
pub fn parse_tree(text: &str, file: &Path) -> Result<Located, ConfigError> {
    let places = Places::new(text, file);
    let document = Document::parse(text).map_err(|error| syntax(&error, places.at(error.span())))?;
    Ok(Located { place: Place::file(file), node: table(document.as_table(), &places) })
}

/// Parses one value, as it stands behind `key =`; `None` when it is none.
pub fn parse_value(text: &str) -> Option<Node> {
    let value: Value = text.parse().ok()?;
    Some(node(&value, &Places::new("", Path::new(""))))
}

fn syntax(error: &TomlError, place: Place) -> ConfigError {
    let message = error.message().trim().replace('\n', ", ");
    let right = if message.contains("duplicate key") {
        "a key stands once in its table: remove one of the two"
    } else {
        "write TOML: `key = value` lines under [section] headers, strings in quotes"
    };
    ConfigError::new(&place, message, right)
}

fn table(table: &dyn TableLike, places: &Places<'_>) -> Node {
    let fields = table.iter().map(|(key, item)| {
        let key_span = table.key(key).and_then(|key| key.span());
        let value = located(item, places);
        Field {
            key: key.to_string(),
            place: match key_span {
                Some(span) => places.at(Some(span)),
                None => value.place.clone(),
            },
            value,
        }
    });
    Node::Table(fields.collect())
}

fn located(item: &Item, places: &Places<'_>) -> Located {
    let node = match item {
        Item::None => Node::Table(Vec::new()),
        Item::Value(value) => node(value, places),
        Item::Table(inner) => table(inner, places),
        Item::ArrayOfTables(tables) => Node::List(
            tables.iter().map(|inner| Located { place: places.at(inner.span()), node: table(inner, places) }).collect(),
        ),
    };
    Located { place: places.at(item.span()), node }
}

fn node(value: &Value, places: &Places<'_>) -> Node {
    match value {
        Value::String(text) => Node::Text(text.value().clone()),
        Value::Integer(number) => Node::Integer(*number.value()),
        Value::Float(number) => Node::Number(*number.value()),
        Value::Boolean(flag) => Node::Flag(*flag.value()),
        Value::Datetime(date) => Node::Date(date.value().to_string()),
        Value::InlineTable(inner) => table(inner, places),
        Value::Array(items) => Node::List(
            items.iter().map(|item| Located { place: places.at(item.span()), node: node(item, places) }).collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Located, ConfigError> {
        parse_tree(text, Path::new("x.toml"))
    }

    #[test]
    fn everything_knows_its_line() {
        let root = parse("[a]\nb = [1,\n 2.5]\n[[c]]\nd = true\n").unwrap();
        let fields = root.table("root").unwrap();
        let b = &fields[0].value.table("a").unwrap()[0];
        assert_eq!(b.place.to_string(), "x.toml:2:1");
        let Node::List(items) = &b.value.node else { panic!("a list") };
        assert_eq!(items[1].place.to_string(), "x.toml:3:2");
        assert_eq!(items[1].node, Node::Number(2.5));
        assert_eq!(fields[1].key, "c");
    }

    #[test]
    fn a_duplicate_key_is_an_error_with_its_line() {
        let error = parse("a = 1\na = 2\n").unwrap_err();
        assert!(error.to_string().starts_with("x.toml:2:1: duplicate key"), "{error}");
    }

    #[test]
    fn broken_toml_is_an_error_with_its_line() {
        let error = parse("[scenario\nname = 1").unwrap_err();
        assert!(error.to_string().starts_with("x.toml:1:"), "{error}");
    }
}
