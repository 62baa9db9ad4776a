//! What one key of a scenario file is: its declaration, and the check of a value against it.

use nicforge_interfaces::emulated::{EMULATED, why_not};

use nicforge_options::{Node, convert, nearest, number_and_unit, powers_next_to};

use super::conditions::{WHOLE_SYSTEMS, holds, value_of};
use super::rings::RINGS_MAX;
use super::{RingGroups, Settings};

/// Keys that both worlds have: that of one server, and that of whole systems.
const COMMON: [&str; 6] = ["workload", "interface", "cores", "cpu_ghz", "warmup_ms", "window_ms"];

/// The value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A whole number, never negative.
    Integer(u64),
    /// A finite number.
    Number(f64),
    /// Yes or no.
    Flag(bool),
    /// A name or a path.
    Text(String),
}

impl Value {
    /// As `report.json` has it.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Value::Integer(value) => (*value).into(),
            Value::Number(value) => (*value).into(),
            Value::Flag(value) => (*value).into(),
            Value::Text(text) => text.as_str().into(),
        }
    }
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::Integer(value) => write!(f, "{value}"),
            Value::Number(value) => write!(f, "{value}"),
            Value::Flag(value) => write!(f, "{value}"),
            Value::Text(text) => write!(f, "\"{text}\""),
        }
    }
}

/// What values a key takes.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    /// A name in the registry of interfaces.
    Interface,
    /// A name in the registry of interfaces whose NIC a core can play.
    Emulated,
    /// A name in the registry of applications.
    App,
    /// A place that the machine gives its NICs; checked when the machine is known.
    Placement,
    /// A file that exists: relative to the scenario file or the working directory.
    File,
    /// Numbers of rings.
    RingNumbers,
    /// Groups of numbers of rings.
    RingSets,
}

/// The names that the registries know; the lab is told them by whoever owns the registries.
#[derive(Clone, Copy, Debug)]
pub struct Names<'a> {
    /// NIC-host interfaces.
    pub interfaces: &'a [&'a str],
    /// Applications.
    pub apps: &'a [&'a str],
}

/// What is wrong with a value, and what would be right.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// What is wrong.
    pub wrong: String,
    /// What would be right.
    pub right: String,
}

/// A condition under which a key matters: another key has one of these values. `emulated/sh_ring` is interface
/// `emulated` where it plays `sh_ring`, and `above 0` any such number.
pub type Condition = (&'static str, &'static [&'static str]);

/// The declaration of one key.
pub struct Key {
    /// As scenario files spell it.
    pub name: &'static str,
    /// Unit of its numbers; empty when it has none.
    pub unit: &'static str,
    /// One line.
    pub doc: &'static str,
    /// The values it takes.
    pub allowed: Allowed,
    /// All must hold, else the key is unused.
    pub used_when: &'static [Condition],
    /// If one of these holds, the key is unused all the same.
    pub unused_when: &'static [Condition],
    /// If one of these holds, nothing uses the key, but to set it is no mistake: a scenario changes its
    /// interface or its traffic by one word, and keeps the other's sizes.
    pub moot_when: &'static [Condition],
    /// And so it is where none of these holds, if there are any.
    pub counts_with: &'static [Condition],
    /// What stands for the default when there is no plain one.
    pub default_says: &'static str,
    /// Where the default comes from; empty when it is a choice of this project.
    pub source: &'static str,
    /// Its value in `Settings`; `None` when it is unset.
    pub get: fn(&Settings) -> Option<Value>,
    /// Stores a value; `false` when the value has another type (then nothing is stored).
    pub set: fn(&mut Settings, &Value) -> bool,
}

impl Key {
    /// The default as a person reads it.
    pub fn default_text(&self) -> String {
        match (self.get)(&Settings::default()) {
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

    /// Whether the key matters in a point with these settings.
    pub fn is_used(&self, settings: &Settings) -> bool {
        let all = self.used_when.iter().all(|when| holds(when, settings));
        all && !self.is_replaced(settings)
    }

    /// Whether its value makes a difference in a point with these settings.
    pub fn counts(&self, settings: &Settings) -> bool {
        let counts = |when: &Condition| holds(when, settings) && other_counts(when, settings);
        let any = self.counts_with.is_empty() || self.counts_with.iter().any(counts);
        any && self.is_used(settings) && !self.moot_when.iter().any(counts)
    }

    /// Why its value makes no difference in a point with these settings; `None` where it does.
    pub fn why_moot(&self, settings: &Settings) -> Option<String> {
        if self.counts(settings) {
            return None;
        }
        let fails = self.used_when.iter().find(|when| !holds(when, settings));
        let mut against = self.unused_when.iter().chain(self.moot_when);
        let against = against.find(|when| holds(when, settings));
        // What is left is a key of one server where whole systems run, or one that nothing counts with.
        let reasons = match fails.or(against) {
            Some(reason) => vec![reason],
            None if self.is_replaced(settings) => vec![&WHOLE_SYSTEMS],
            None => self.lacking(settings),
        };
        let said = reasons.iter().map(|(name, _)| {
            let value = value_of(name, settings).map_or("none".to_string(), |v| v.to_string());
            match *name == "interface" && settings.interface == "emulated" {
                true => format!("{name} = {value} and emulates = \"{}\"", settings.emulates),
                false => format!("{name} = {value}"),
            }
        });
        let said: Vec<String> = said.collect();
        Some(format!("nothing uses it with {}", said.join(" and ")))
    }

    /// Those of `counts_with` to name as the reason: what a scenario says, or all where it says nothing.
    fn lacking(&self, settings: &Settings) -> Vec<&'static Condition> {
        let mut all: Vec<&Condition> = self.counts_with.iter().collect();
        all.retain(|when| other_counts(when, settings));
        let default = Settings::default();
        let says = |name: &str| value_of(name, settings) != value_of(name, &default);
        let said: Vec<_> = all.iter().copied().filter(|when| says(when.0)).collect();
        match said.is_empty() {
            true => all,
            false => said,
        }
    }

    /// Whether something else takes the key's place in a point with these settings.
    pub fn is_replaced(&self, settings: &Settings) -> bool {
        self.is_of_one_server() && holds(&WHOLE_SYSTEMS, settings)
            || self.unused_when.iter().any(|when| holds(when, settings))
    }

    /// Whether only the one server that frames are sent to uses it.
    pub fn is_of_one_server(&self) -> bool {
        !self.is_of_whole_systems() && !COMMON.contains(&self.name)
    }

    fn is_of_whole_systems(&self) -> bool {
        let workload = |when: &Condition| when.0 == WHOLE_SYSTEMS.0;
        self.used_when.iter().any(workload)
    }

    /// The keys that decide whether this one matters.
    pub fn depends_on(&self) -> impl Iterator<Item = &'static str> {
        let conditions = self.used_when.iter().chain(self.unused_when);
        let more = |(name, values): &'static Condition| {
            let plays = values.iter().any(|value| value.contains('/'));
            [Some(*name), plays.then_some("emulates")]
        };
        let workload = std::iter::once(WHOLE_SYSTEMS.0);
        conditions.flat_map(more).flatten().chain(workload)
    }

    /// `node` as a value of this key.
    pub fn check(&self, node: &Node, names: &Names<'_>) -> Result<Value, Refusal> {
        if let Some(value) = self.number(node) {
            return Ok(value);
        }
        match (self.allowed, node) {
            (Allowed::PowerOfTwo(least, most), Node::Integer(value)) => Err(self.refuse_size(*value, least, most)),
            (Allowed::Flag, Node::Flag(value)) => Ok(Value::Flag(*value)),
            (Allowed::Choice(known), Node::Text(text)) => self.choose(text, known),
            (Allowed::Interface, Node::Text(text)) => self.choose(text, names.interfaces),
            (Allowed::Emulated, Node::Text(text)) => self.emulated(text, names),
            (Allowed::App, Node::Text(text)) => self.choose(text, names.apps),
            (Allowed::Placement | Allowed::File, Node::Text(text)) if !text.is_empty() => Ok(Value::Text(text.clone())),
            (Allowed::RingNumbers | Allowed::RingSets, Node::Text(text)) => {
                let sets = self.allowed == Allowed::RingSets;
                let rings = RingGroups::parse(text)
                    .filter(|groups| sets || groups.one_group().is_some_and(|group| !group.is_empty()));
                let rings = rings.ok_or_else(|| self.refuse(node, names))?;
                Ok(Value::Text(rings.to_string()))
            }
            _ => Err(self.refuse(node, names)),
        }
    }

    /// What it takes, as a person reads it.
    pub fn takes(&self, names: &Names<'_>) -> String {
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
            Allowed::Interface => format!("one of {}", names.interfaces.join(", ")),
            Allowed::Emulated => format!("one of {}", EMULATED.join(", ")),
            Allowed::App => format!("one of {}", names.apps.join(", ")),
            Allowed::Placement => "a place of the machine, in quotes".to_string(),
            Allowed::File => "a path of a file, in quotes".to_string(),
            Allowed::RingNumbers => {
                format!("numbers of rings, below {RINGS_MAX}, in quotes: \"0 1 4-7\"")
            }
            Allowed::RingSets => format!("groups of numbers of rings, below {RINGS_MAX}, in quotes: \"0-1, 0-1, 2 3\""),
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
        })
    }

    /// A name that is no slip of the pen is refused with the reason.
    fn emulated(&self, text: &str, names: &Names<'_>) -> Result<Value, Refusal> {
        if EMULATED.contains(&text) || !names.interfaces.contains(&text) {
            return self.choose(text, &EMULATED);
        }
        Err(Refusal {
            wrong: format!("`{}` cannot be \"{text}\": {}", self.name, why_not(text)),
            right: format!("{} can be emulated", EMULATED.join(", ")),
        })
    }

    fn refuse(&self, node: &Node, names: &Names<'_>) -> Refusal {
        Refusal {
            wrong: format!("`{}` cannot be {}", self.name, node.show()),
            right: format!("`{}` takes {}{}", self.name, self.takes(names), self.plain_number(node)),
        }
    }

    fn refuse_size(&self, value: i64, least: u64, most: u64) -> Refusal {
        let wrong = format!("`{}` cannot be {value}: not a power of two from {least} to {most}", self.name);
        let right = powers_next_to(u64::try_from(value).unwrap_or(0), least, most);
        Refusal { wrong, right }
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
        let plain = number.map(|number| match number.fract() == 0.0 {
            true => Node::Integer(number as i64),
            false => Node::Number(number),
        });
        match plain.and_then(|plain| self.number(&plain)) {
            Some(value) => format!(", {without}: {} = {value}", self.name),
            None => String::new(),
        }
    }
}

fn other_counts((name, _): &Condition, settings: &Settings) -> bool {
    super::key(name).is_some_and(|key| key.counts(settings))
}
