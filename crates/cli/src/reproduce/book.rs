//! The file of claims, `docs/predictions/open.toml`: papers, what they state, and how a run's record is asked for it.

use std::path::{Path, PathBuf};

use nicforge_options::{ConfigError, Located, Place, nearest, parse_tree, read_text};
use nicforge_report::claims::{Bound, Claim, Expression};

use crate::fields::{Fields, tables};

/// Where it is in a checkout.
const FILE: &str = "docs/predictions/open.toml";
const CLAIM_KEYS: [&str; 8] = ["scenario", "claim", "published", "bound", "run", "predicted", "not_compared", "known"];
const PAPER_KEYS: [&str; 3] = ["name", "title", "prefix"];

/// The claims of a file, and the papers that state them.
pub struct Book {
    /// Where the published values are from.
    pub source: String,
    /// The papers.
    pub papers: Vec<Paper>,
    /// The papers state these, in the file's order.
    pub claims: Vec<Entry>,
}

/// A paper.
pub struct Paper {
    /// Its short name.
    pub name: String,
    /// The command and its page name the paper so.
    pub title: String,
    /// Scenarios of it are called this and `-` and something.
    pub prefix: String,
}

/// A claim of the file.
pub struct Entry {
    /// The paper claims this.
    pub claim: Claim,
    /// The scenario that runs for it.
    pub run: String,
    /// Where the file says how it is compared.
    pub place: Place,
}

impl Paper {
    /// Whether `scenario` is one of its.
    pub fn has(&self, scenario: &str) -> bool {
        scenario.strip_prefix(&self.prefix).is_some_and(|rest| rest.starts_with('-'))
    }
}

/// The file of claims in the working directory or above it.
///
/// # Errors
/// There is none.
pub fn find() -> Result<PathBuf, ConfigError> {
    let here = std::path::absolute("").unwrap_or_default();
    let found = here.ancestors().map(|folder| folder.join(FILE)).find(|file| file.is_file());
    found.ok_or_else(|| {
        let wrong = format!("there is no {FILE} here or above");
        ConfigError::new(&Place::argument("reproduce"), wrong, "run it in a checkout, or name a file by --claims FILE")
    })
}

/// Reads a file of claims.
///
/// # Errors
/// It cannot be read, or does not say what it should: with the place and what would be right.
pub fn read(file: &Path) -> Result<Book, ConfigError> {
    let root = parse_tree(&read_text(file)?, file)?;
    let mut book = Book { source: String::new(), papers: Vec::new(), claims: Vec::new() };
    let mut claims = Vec::new();
    for field in root.table("a file of claims")? {
        match field.key.as_str() {
            "source" => book.source = field.value.text("source")?.to_owned(),
            "paper" => book.papers = tables(&field.value, "[[paper]]")?.map(paper).collect::<Result<_, _>>()?,
            "claim" => claims = tables(&field.value, "[[claim]]")?.collect(),
            key => return Err(ConfigError::unknown(&field.place, "key", key, &["source", "paper", "claim"])),
        }
    }
    book.claims = claims.into_iter().map(|table| claim(table, &book.papers)).collect::<Result<_, _>>()?;
    if book.source.is_empty() {
        return Err(ConfigError::new(&root.place, "it has no `source`", "say where the published values are from"));
    }
    Ok(book)
}

fn paper(table: &Located) -> Result<Paper, ConfigError> {
    let fields = Fields::of(table, "[[paper]]", &PAPER_KEYS)?;
    let text = |key: &str| fields.needed(key).map(str::to_owned);
    Ok(Paper { name: text("name")?, title: text("title")?, prefix: text("prefix")? })
}

fn claim(table: &Located, papers: &[Paper]) -> Result<Entry, ConfigError> {
    let fields = Fields::of(table, "[[claim]]", &CLAIM_KEYS)?;
    let scenario = fields.needed("scenario")?;
    let paper = papers.iter().find(|paper| paper.has(scenario)).ok_or_else(|| {
        let wrong = format!("no paper has a scenario \"{scenario}\"");
        let place = fields.get("scenario").map_or(&table.place, |value| &value.place);
        ConfigError::new(place, wrong, "add a [[paper]] with its `prefix`")
    })?;
    let (predicted, place) = predicted(&fields)?;
    let claim = Claim {
        paper: paper.name.clone(),
        scenario: scenario.to_owned(),
        claim: fields.needed("claim")?.to_owned(),
        published: fields.number("published")?,
        bound: bound(&fields)?,
        predicted,
        known: fields.text("known")?.unwrap_or_default().to_owned(),
    };
    let is_truth = claim.predicted.as_ref().ok().map(Expression::is_truth);
    if is_truth == Some(claim.published.is_some()) {
        let right = "give a number with `published`, a condition without";
        return Err(ConfigError::new(&place, "`predicted` does not fit the claim", right));
    }
    let run = fields.text("run")?.unwrap_or(scenario).to_owned();
    Ok(Entry { claim, run, place })
}

/// How the model's value is read, or why it is not, and where the file says so.
fn predicted(fields: &Fields) -> Result<(Result<Expression, String>, Place), ConfigError> {
    let value = match (fields.get("predicted"), fields.get("not_compared")) {
        (Some(value), None) => value,
        (None, Some(why)) => return Ok((Err(why.text("`not_compared`")?.to_owned()), why.place.clone())),
        (Some(_), Some(both)) => {
            let wrong = "it has `predicted` and `not_compared`";
            return Err(ConfigError::new(&both.place, wrong, "keep one of the two"));
        }
        (None, None) => {
            let right = "add `predicted`, or `not_compared` with the reason";
            return Err(ConfigError::new(&fields.table.place, "a [[claim]] is not compared", right));
        }
    };
    Ok((Ok(expression(value)?), value.place.clone()))
}

/// The expression that is the text at `value`, a key `predicted`.
pub fn expression(value: &Located) -> Result<Expression, ConfigError> {
    Expression::parse(value.text("`predicted`")?).map_err(|error| {
        let wrong = format!("`predicted`: {} at character {}", error.wrong, error.at);
        ConfigError::new(&value.place, wrong, error.right)
    })
}

/// Whether the value of a table is a bound, and which.
pub fn bound(fields: &Fields) -> Result<Option<Bound>, ConfigError> {
    let Some(value) = fields.get("bound") else {
        return Ok(None);
    };
    match value.text("`bound`")? {
        "at_most" => Ok(Some(Bound::AtMost)),
        "at_least" => Ok(Some(Bound::AtLeast)),
        other => {
            let wrong = format!("`bound` cannot be \"{other}\"");
            Err(ConfigError::new(&value.place, wrong, "write \"at_most\" or \"at_least\""))
        }
    }
}

impl Book {
    /// The paper called `name`.
    ///
    /// # Errors
    /// There is none, with the nearest names.
    pub fn paper(&self, name: &str) -> Result<&Paper, ConfigError> {
        let found = self.papers.iter().find(|paper| paper.name == name || paper.prefix == name);
        found.ok_or_else(|| {
            let known: Vec<&str> = self.papers.iter().map(|paper| paper.name.as_str()).chain(["all"]).collect();
            let right = match nearest(name, &known) {
                Some(near) => format!("did you mean `{near}`? known: {}", known.join(", ")),
                None => format!("known: {}", known.join(", ")),
            };
            ConfigError::new(&Place::argument(&format!("reproduce {name}")), "there is no such paper", right)
        })
    }
}
