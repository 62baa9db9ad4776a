//! What one key is: its declaration, and the check of a value against it.

use crate::near::{nearest, powers_next_to};
use crate::unit::{convert, number_and_unit};
use crate::{Located, Node, Place, Value, Vocabulary};

/// The declaration of one key, as [`options!`](crate::options) makes it of a field.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The key, as scenario files have it.
    pub name: &'static str,
    /// Unit; empty for names, flags and plain numbers.
    pub unit: &'static str,
    /// What it is: sentences.
    pub doc: &'static str,
    /// What values it takes.
    pub allowed: Allowed,
    /// The default value; `None` when the key is unset by default.
    pub default: fn() -> Option<Value>,
    /// What stands for the default when there is no plain one.
    pub default_says: &'static str,
    /// Where the default comes from; empty when it is a choice of this project.
    pub source: &'static str,
}

/// What values a key takes.
#[derive(Clone, Copy, Debug)]
pub enum Allowed {
    /// A whole number in a range, both ends included.
    Whole(u64, u64),
    /// A power of two in a range, both ends included.
    PowerOfTwo(u64, u64),
    /// A number in a range, both ends included.
    Number(f64, f64),
    /// `true` or `false`.
    Flag,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// The name of an owner of this kind, such as `"interface"`.
    Named(&'static str),
    /// Names of owners of this kind, with commas between them.
    NamedList(&'static str),
    /// A file that exists: relative to the scenario file or the working directory.
    File,
    /// Text in a form of its own.
    Form(&'static Form),
    /// A list of texts in a form of their own.
    List(&'static Form),
}

/// A form that texts have.
#[derive(Debug)]
pub struct Form {
    /// What the text is, as a person reads it.
    pub says: &'static str,
    /// The text as it is kept; `None` where it does not have the form.
    pub parse: fn(&str) -> Option<String>,
}

/// What is wrong with a value, and what would be right.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// What is wrong.
    pub wrong: String,
    /// What would be right.
    pub right: String,
    /// Where the wrong item of a list stands; `None`: the whole value is wrong.
    pub place: Option<Place>,
}

impl Key {
    /// The default as a person reads it.
    pub fn default_text(&self) -> String {
        match (self.default)() {
            _ if !self.default_says.is_empty() => self.default_says.to_string(),
            Some(value) => value.to_string(),
            None => "none".to_string(),
        }
    }

    /// The smallest and the largest number that it takes, if it takes numbers.
    pub fn range(&self) -> Option<(f64, f64)> {
        match self.allowed {
            Allowed::Whole(least, most) | Allowed::PowerOfTwo(least, most) => Some((least as f64, most as f64)),
            Allowed::Number(least, most) => Some((least, most)),
            _ => None,
        }
    }

    /// Whether values are texts, which need no quotes on a command line.
    pub fn takes_text(&self) -> bool {
        matches!(
            self.allowed,
            Allowed::Choice(_)
                | Allowed::Named(_)
                | Allowed::NamedList(_)
                | Allowed::File
                | Allowed::Form(_)
                | Allowed::List(_)
        )
    }

    /// Whether `other` declares the same values in the same unit, so that one line of a file serves both.
    pub fn agrees_with(&self, other: &Key) -> bool {
        self.name == other.name
            && self.unit == other.unit
            && format!("{:?}", self.allowed.without_code()) == format!("{:?}", other.allowed.without_code())
    }

    /// `node` as a value of this key.
    ///
    /// # Errors
    /// What is wrong with it, and what would be right.
    pub fn check(&self, node: &Node, vocabulary: &Vocabulary) -> Result<Value, Refusal> {
        if let Some(value) = self.number(node) {
            return Ok(value);
        }
        match (self.allowed, node) {
            (Allowed::PowerOfTwo(least, most), Node::Integer(value)) => Err(self.refuse_size(*value, least, most)),
            (Allowed::Flag, Node::Flag(value)) => Ok(Value::Flag(*value)),
            (Allowed::Choice(known), Node::Text(text)) => self.choose(text, known),
            (Allowed::Named(kind), Node::Text(text)) => self.choose(text, &vocabulary.names(kind)),
            (Allowed::NamedList(kind), Node::Text(text)) => self.choose_all(text, &vocabulary.names(kind)),
            (Allowed::File, Node::Text(text)) if !text.is_empty() => Ok(Value::Text(text.clone())),
            (Allowed::Form(form), Node::Text(text)) => {
                (form.parse)(text).map(Value::Text).ok_or_else(|| self.refuse(node, vocabulary))
            }
            (Allowed::List(form), Node::List(items)) => self.list(form, items, vocabulary),
            _ => Err(self.refuse(node, vocabulary)),
        }
    }

    /// What it takes, as a person reads it.
    pub fn takes(&self, vocabulary: &Vocabulary) -> String {
        let unit = match self.unit {
            "" => String::new(),
            unit => format!(" {unit}"),
        };
        match self.allowed {
            Allowed::Whole(least, most) => format!("a whole number, {least} to {most}{unit}"),
            Allowed::PowerOfTwo(least, most) => format!("a power of two, {least} to {most}{unit}"),
            Allowed::Number(least, most) => format!("a number, {least} to {most}{unit}"),
            Allowed::Flag => "true or false".to_string(),
            Allowed::Choice(known) => format!("one of {}", known.join(", ")),
            Allowed::Named(kind) => format!("one of {}", vocabulary.names(kind).join(", ")),
            Allowed::NamedList(kind) => {
                format!("any of {}, with commas between them", vocabulary.names(kind).join(", "))
            }
            Allowed::File => "a path of a file, in quotes".to_string(),
            Allowed::Form(form) => form.says.to_string(),
            Allowed::List(form) => format!("a list, in brackets, each {}", form.says),
        }
    }

    /// `node` as a number that the key takes.
    fn number(&self, node: &Node) -> Option<Value> {
        let value = match (self.allowed, node) {
            (Allowed::Whole(..) | Allowed::PowerOfTwo(..), Node::Integer(value)) => {
                Value::Integer(u64::try_from(*value).ok()?)
            }
            (Allowed::Number(..), Node::Integer(value)) => Value::Number(*value as f64),
            (Allowed::Number(..), Node::Number(value)) => Value::Number(*value),
            _ => return None,
        };
        let fits = match (self.allowed, &value) {
            (Allowed::Whole(least, most), Value::Integer(value)) => (least..=most).contains(value),
            (Allowed::PowerOfTwo(least, most), Value::Integer(value)) => {
                (least..=most).contains(value) && value.is_power_of_two()
            }
            // NaN is in no range.
            (Allowed::Number(least, most), Value::Number(value)) => (least..=most).contains(value),
            _ => false,
        };
        fits.then_some(value)
    }

    /// Each item of a list, with commas between them.
    fn list(&self, form: &Form, items: &[Located], vocabulary: &Vocabulary) -> Result<Value, Refusal> {
        let item = |item: &Located| {
            let text = match &item.node {
                Node::Text(text) => (form.parse)(text),
                _ => None,
            };
            text.ok_or_else(|| Refusal { place: Some(item.place.clone()), ..self.refuse(&item.node, vocabulary) })
        };
        let texts = items.iter().map(item).collect::<Result<Vec<_>, _>>()?;
        Ok(Value::Text(texts.join(", ")))
    }

    fn choose(&self, text: &str, known: &[&str]) -> Result<Value, Refusal> {
        if known.contains(&text) {
            return Ok(Value::Text(text.to_string()));
        }
        Err(Refusal {
            wrong: format!("`{}` knows no {}", self.name, Node::Text(text.to_string()).show()),
            right: match nearest(text, known) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("known: {}", known.join(", ")),
            },
            place: None,
        })
    }

    /// Each name of a list must be known, and stand there once.
    fn choose_all(&self, text: &str, known: &[&str]) -> Result<Value, Refusal> {
        let names: Vec<&str> = text.split(',').map(str::trim).collect();
        for (number, name) in names.iter().enumerate() {
            self.choose(name, known)?;
            if names[..number].contains(name) {
                let wrong = format!("`{}` names \"{name}\" twice", self.name);
                return Err(Refusal { wrong, right: "name each once".to_string(), place: None });
            }
        }
        Ok(Value::Text(names.join(", ")))
    }

    fn refuse(&self, node: &Node, vocabulary: &Vocabulary) -> Refusal {
        Refusal {
            wrong: format!("`{}` cannot be {}", self.name, node.show()),
            right: format!("`{}` takes {}{}", self.name, self.takes(vocabulary), self.plain_number(node)),
            place: None,
        }
    }

    fn refuse_size(&self, value: i64, least: u64, most: u64) -> Refusal {
        let wrong = format!("`{}` cannot be {value}: not a power of two from {least} to {most}", self.name);
        let right = powers_next_to(u64::try_from(value).unwrap_or(0), least, most);
        Refusal { wrong, right, place: None }
    }

    /// For a number that was written in another form than the key takes: the same as it takes it.
    /// Empty where that would be refused, too.
    fn plain_number(&self, node: &Node) -> String {
        let (number, without) = match node {
            Node::Number(number) => (Some(*number), "without a point or exponent"),
            Node::Text(text) => {
                let parts = number_and_unit(text);
                let converted = parts.and_then(|(number, unit)| convert(number, unit, self.unit));
                (converted, "without quotes or unit")
            }
            _ => return String::new(),
        };
        let plain = number.map(
            |number| {
                if number.fract() == 0.0 { Node::Integer(number as i64) } else { Node::Number(number) }
            },
        );
        match plain.and_then(|plain| self.number(&plain)) {
            Some(value) => format!(", {without}: {} = {value}", self.name),
            None => String::new(),
        }
    }
}

impl Allowed {
    /// A function's address says nothing about what it does.
    fn without_code(self) -> Result<Allowed, &'static str> {
        match self {
            Allowed::Form(form) | Allowed::List(form) => Err(form.says),
            other => Ok(other),
        }
    }
}
