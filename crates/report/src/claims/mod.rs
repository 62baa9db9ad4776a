//! Published values beside those that a run predicts: what is compared, how near it comes, and the page of it.

mod evaluate;
mod expression;
mod page;
mod text;

use nicforge_record::Record;
use serde_json::{Value, json};

pub use evaluate::{Outcome, Sure, evaluate, selected};
pub use expression::{Expression, SyntaxError};
pub use page::claims_page;
pub use text::{claims_markdown, claims_table};

use crate::number::number;

/// A published statement about a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Short name of the paper.
    pub paper: String,
    /// Name of the scenario.
    pub scenario: String,
    /// What is claimed, in words.
    pub claim: String,
    /// The value that is published; absent where the claim is an ordering.
    pub published: Option<f64>,
    /// What the published value bounds, if it is a bound.
    pub bound: Option<Bound>,
    /// How the model's value is read from a record, or why it is not.
    pub predicted: Result<Expression, String>,
    /// What is known of the difference; may be empty.
    pub known: String,
}

/// How a published value bounds the true one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// It is as much, or less.
    AtMost,
    /// It is as much, or more.
    AtLeast,
}

/// How near a prediction comes.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The predicted value is on the right side of a published bound.
    KeepsBound,
    /// The published value lies in the interval of the predicted one.
    Within,
    /// It is not, but it lies in the range of those that members of a calibrated set predict.
    WithinRange,
    /// It is within 10 %.
    WithinTenth,
    /// It is within 25 %.
    WithinQuarter,
    /// It is farther away.
    Misses,
    /// The ordering is right.
    Right,
    /// It is not, or not everywhere.
    Wrong,
    /// There is nothing to compare: why.
    NotCompared(String),
}

/// Farther apart than this share, values are not within a tenth; a digit of rounding is left to the published one.
const TENTH: f64 = 0.1;
/// The same of a quarter.
const QUARTER: f64 = 0.25;

impl Verdict {
    /// In words.
    pub fn said(&self) -> &'static str {
        match self {
            Verdict::KeepsBound => "keeps the bound",
            Verdict::Within => "within its interval",
            Verdict::WithinRange => "within its range",
            Verdict::WithinTenth => "within 10 %",
            Verdict::WithinQuarter => "within 25 %",
            Verdict::Misses => "misses",
            Verdict::Right => "ordering right",
            Verdict::Wrong => "ordering wrong",
            Verdict::NotCompared(_) => "not compared",
        }
    }
}

/// A claim and what became of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The claim.
    pub claim: Claim,
    /// What the run has.
    pub outcome: Option<Outcome>,
    /// What runs on other members of the machine's calibrated set have.
    pub members: Vec<Outcome>,
    /// How near that comes.
    pub verdict: Verdict,
}

impl Judged {
    /// The claim against `record`; that is absent with its reason where the scenario did not run.
    pub fn of(claim: &Claim, record: Result<&Record, &str>) -> Judged {
        let outcome = match (&claim.predicted, record) {
            (Err(why), _) => Err(why.clone()),
            (Ok(_), Err(why)) => Err(why.to_owned()),
            (Ok(expression), Ok(record)) => evaluate(expression, record),
        };
        let (outcome, verdict) = match outcome {
            Ok(outcome) => (Some(outcome), verdict(claim, outcome)),
            Err(why) => (None, Verdict::NotCompared(why)),
        };
        Judged { claim: claim.clone(), outcome, members: Vec::new(), verdict }
    }

    /// The same beside `records` of runs on other members of the machine's calibrated set. What those lack is left out.
    pub fn beside<'a>(mut self, records: impl Iterator<Item = &'a Record>) -> Judged {
        if let (Ok(expression), Some(_)) = (&self.claim.predicted, self.outcome) {
            self.members = records.filter_map(|record| evaluate(expression, record).ok()).collect();
        }
        let is_far = matches!(self.verdict, Verdict::WithinQuarter | Verdict::Misses);
        if let (true, Some(published), Some([low, high])) = (is_far, self.claim.published, self.range())
            && (low..=high).contains(&published)
        {
            self.verdict = Verdict::WithinRange;
        }
        self
    }

    /// From the least to the largest value that the run or a member has; `None` without members or numbers.
    pub fn range(&self) -> Option<[f64; 2]> {
        let number = |outcome: &Outcome| match outcome {
            Outcome::Number(sure) => Some(sure.value),
            _ => None,
        };
        let values: Vec<f64> = self.members.iter().chain(&self.outcome).filter_map(number).collect();
        let least = values.iter().copied().reduce(f64::min)?;
        let largest = values.iter().copied().reduce(f64::max)?;
        (!self.members.is_empty()).then_some([least, largest])
    }

    /// The range as it is shown: of an ordering in how many machines it is right everywhere.
    fn shown_range(&self) -> String {
        if self.members.is_empty() {
            return "–".to_owned();
        }
        if let Some([low, high]) = self.range() {
            return format!("{} to {}", number(low), number(high));
        }
        let all: Vec<&Outcome> = self.members.iter().chain(&self.outcome).collect();
        let right = |outcome: &&&Outcome| matches!(outcome, Outcome::Holds { true_in, of } if true_in == of);
        format!("right on {} of {}", all.iter().filter(right).count(), all.len())
    }

    /// Predicted over published.
    pub fn ratio(&self) -> Option<f64> {
        match (self.outcome, self.claim.published) {
            (Some(Outcome::Number(sure)), Some(published)) if published != 0.0 => Some(sure.value / published),
            _ => None,
        }
    }

    /// The published value as it is shown.
    fn published(&self) -> String {
        let bound = match self.claim.bound {
            Some(Bound::AtMost) => "≤ ",
            Some(Bound::AtLeast) => "≥ ",
            None => "",
        };
        self.claim.published.map_or("ordering".to_owned(), |value| format!("{bound}{}", number(value)))
    }

    /// The prediction as it is shown, with its interval.
    fn predicted(&self) -> String {
        match self.outcome {
            Some(Outcome::Number(Sure { value, half_width: Some(half) })) if half > 0.0 => {
                format!("{} {}", number(value), crate::number::half_width(half).replace('±', "± "))
            }
            Some(Outcome::Number(sure)) => number(sure.value),
            Some(Outcome::Holds { true_in, of: 1 }) => if true_in == 1 { "holds" } else { "does not hold" }.to_owned(),
            Some(Outcome::Holds { true_in, of }) => format!("holds in {true_in} of {of}"),
            Some(Outcome::Nothing) => "nowhere".to_owned(),
            None => "–".to_owned(),
        }
    }

    /// The ratio as it is shown.
    fn shown_ratio(&self) -> String {
        self.ratio().map_or("–".to_owned(), |ratio| format!("{ratio:.2}"))
    }

    /// What is known of it, or why it is not compared.
    fn known(&self) -> String {
        match &self.verdict {
            Verdict::NotCompared(why) => why.clone(),
            _ => self.claim.known.clone(),
        }
    }
}

fn verdict(claim: &Claim, outcome: Outcome) -> Verdict {
    let (published, sure) = match (claim.published, outcome) {
        (None, Outcome::Holds { true_in, of }) => {
            return if true_in == of { Verdict::Right } else { Verdict::Wrong };
        }
        (Some(published), Outcome::Number(sure)) => (published, sure),
        (Some(_), Outcome::Nothing) => return Verdict::Misses,
        _ => return Verdict::NotCompared("a value is compared with a number, an ordering with a condition".to_owned()),
    };
    let keeps_bound = match claim.bound {
        Some(Bound::AtMost) => sure.value <= published,
        Some(Bound::AtLeast) => sure.value >= published,
        None => false,
    };
    let apart = (sure.value - published).abs();
    // What rounding makes of a share that is meant to be met.
    let share = |share: f64| published.abs() * share * (1.0 + 1e-9);
    match apart {
        _ if keeps_bound => Verdict::KeepsBound,
        apart if apart <= sure.half_width.unwrap_or(0.0) => Verdict::Within,
        apart if apart <= share(TENTH) => Verdict::WithinTenth,
        apart if apart <= share(QUARTER) => Verdict::WithinQuarter,
        _ => Verdict::Misses,
    }
}

/// How many claims came how near.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All claims.
    pub claims: usize,
    /// Those with a number that were compared.
    pub values: usize,
    /// Of these, within the interval, the range, a bound or 10 %.
    pub within_tenth: usize,
    /// Of these, within the interval, a bound or 25 %.
    pub within_quarter: usize,
    /// Orderings that were compared.
    pub orderings: usize,
    /// Of these, right.
    pub right: usize,
}

impl Tally {
    /// Of `judged`.
    pub fn of<'a>(judged: impl Iterator<Item = &'a Judged>) -> Tally {
        let mut tally = Tally::default();
        for one in judged {
            tally.claims += 1;
            let near = match one.verdict {
                Verdict::KeepsBound | Verdict::Within | Verdict::WithinRange | Verdict::WithinTenth => (1, 1),
                Verdict::WithinQuarter => (0, 1),
                Verdict::Misses => (0, 0),
                Verdict::Right | Verdict::Wrong => {
                    tally.orderings += 1;
                    tally.right += usize::from(one.verdict == Verdict::Right);
                    continue;
                }
                Verdict::NotCompared(_) => continue,
            };
            tally.values += 1;
            tally.within_tenth += near.0;
            tally.within_quarter += near.1;
        }
        tally
    }

    /// Claims that were not compared.
    pub fn not_compared(&self) -> usize {
        self.claims - self.values - self.orderings
    }
}

/// The papers of `judged`, each with its tally, in their order.
pub fn tallies(judged: &[Judged]) -> Vec<(&str, Tally)> {
    let mut papers: Vec<&str> = Vec::new();
    for one in judged {
        if !papers.contains(&one.claim.paper.as_str()) {
            papers.push(&one.claim.paper);
        }
    }
    let of = |paper: &str| Tally::of(judged.iter().filter(|one| one.claim.paper == paper));
    papers.into_iter().map(|paper| (paper, of(paper))).collect()
}

/// All of `judged` for programs.
pub fn claims_json(judged: &[Judged], source: &str) -> String {
    let row = |one: &Judged| {
        let mut row = json!({
            "paper": one.claim.paper, "scenario": one.claim.scenario, "claim": one.claim.claim,
            "verdict": one.verdict.said(), "known": one.known(),
        });
        let mut add = |key: &str, value: Option<Value>| {
            if let Some(value) = value {
                row[key] = value;
            }
        };
        add("published", one.claim.published.map(Value::from));
        add("ratio", one.ratio().map(Value::from));
        add("range", one.range().map(|range| json!(range)));
        match one.outcome {
            Some(Outcome::Number(sure)) => {
                add("predicted", Some(sure.value.into()));
                add("half_width", sure.half_width.map(Value::from));
            }
            Some(Outcome::Holds { true_in, of }) => {
                add("holds_in", Some(true_in.into()));
                add("points", Some(of.into()));
            }
            Some(Outcome::Nothing) | None => {}
        }
        row
    };
    let rows: Vec<Value> = judged.iter().map(row).collect();
    let all = json!({ "source": source, "version": env!("CARGO_PKG_VERSION"), "claims": rows });
    let mut text = serde_json::to_string_pretty(&all).expect("maps with string keys always serialise");
    text.push('\n');
    text
}

#[cfg(test)]
pub mod tests;
