//! How a claim's value is read from a record, as text: `max(throughput_gbps{sh_ring, app=nat} / throughput_gbps{priv_ring})`.
//!
//! A metric with its selection in braces is a series: one value for each point that the selection leaves. Arithmetic and
//! comparisons join two series where what varies within both agrees. Functions make one value of a series.

use crate::columns::metric_keys;

/// An expression over the points of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A constant.
    Number(f64),
    /// A metric of the points that are selected.
    Metric(Selection),
    /// Two values at each point.
    Pair(Operator, Box<Expression>, Box<Expression>),
    /// What a function makes of a series; some go along a swept key.
    Call(Function, Option<String>, Box<Expression>),
}

/// A metric and the points at which it is read.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    /// Key of the metric, as `points.csv` has it.
    pub metric: String,
    /// The variant; all when absent.
    pub variant: Option<String>,
    /// Values of swept keys, as written.
    pub params: Vec<(String, String)>,
}

/// What two values are joined by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// Their sum.
    Plus,
    /// Their difference.
    Minus,
    /// Their product.
    Times,
    /// Their ratio.
    Over,
    /// Whether the first is less.
    Less,
    /// Whether the first is more.
    More,
    /// The larger one: `max` of two.
    Larger,
    /// The smaller one: `min` of two.
    Smaller,
    /// Whether both hold.
    And,
}

impl Operator {
    /// Whether the outcome holds or not, and is no number.
    pub fn is_truth(self) -> bool {
        matches!(self, Operator::Less | Operator::More | Operator::And)
    }

    /// Operators bind the more tightly the more this is.
    fn rank(self) -> usize {
        match self {
            Operator::And => 0,
            Operator::Less | Operator::More => 1,
            Operator::Plus | Operator::Minus => 2,
            Operator::Times | Operator::Over => 3,
            // Written as functions.
            Operator::Larger | Operator::Smaller => 4,
        }
    }
}

/// What makes one value of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// The largest value.
    Max,
    /// The smallest value.
    Min,
    /// The mean of all values.
    Mean,
    /// Whether values never fall along a key, and the last is above the first.
    Rising,
    /// Whether values never rise along a key, and the last is below the first.
    Falling,
    /// The largest value of a key up to which a condition holds.
    UpTo,
    /// The smallest value of a key from which on a condition holds.
    From,
}

/// Every function, its name, and whether its first argument is a swept key.
const FUNCTIONS: [(&str, Function, bool); 7] = [
    ("max", Function::Max, false),
    ("min", Function::Min, false),
    ("mean", Function::Mean, false),
    ("rising", Function::Rising, true),
    ("falling", Function::Falling, true),
    ("up_to", Function::UpTo, true),
    ("from", Function::From, true),
];

/// Why a text is no expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{wrong} at character {at}; {right}")]
pub struct SyntaxError {
    /// Character of the text, from 1.
    pub at: usize,
    /// What is wrong there.
    pub wrong: String,
    /// What would be right.
    pub right: String,
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// The text is none, or names no metric or function that there is.
    pub fn parse(text: &str) -> Result<Expression, SyntaxError> {
        let mut parser = Parser { text, at: 0, depth: 0 };
        let expression = parser.pairs(0)?;
        match parser.peek() {
            None => Ok(expression),
            Some(other) => Err(parser.error(format!("`{other}` follows a whole expression"), OPERATORS)),
        }
    }

    /// Whether its outcome holds or not, and is no number.
    pub fn is_truth(&self) -> bool {
        match self {
            Expression::Number(_) | Expression::Metric(_) => false,
            Expression::Pair(operator, ..) => operator.is_truth(),
            Expression::Call(function, ..) => matches!(function, Function::Rising | Function::Falling),
        }
    }

    /// Every selection in it.
    pub fn selections(&self) -> Vec<&Selection> {
        match self {
            Expression::Number(_) => Vec::new(),
            Expression::Metric(selection) => vec![selection],
            Expression::Pair(_, left, right) => [left.selections(), right.selections()].concat(),
            Expression::Call(_, _, inner) => inner.selections(),
        }
    }
}

const OPERATORS: &str = "join two by + - * / < > or `and`";
/// So deep may one expression lie in another: far more than a claim needs, and far less than a stack has.
const DEEPEST: usize = 50;

struct Parser<'a> {
    text: &'a str,
    /// Byte up to which the text is read.
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    /// The next character that is no space.
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn takes(&mut self, wanted: char) -> bool {
        let is_there = self.peek() == Some(wanted);
        self.at += if is_there { wanted.len_utf8() } else { 0 };
        is_there
    }

    fn expect(&mut self, wanted: char, right: &str) -> Result<(), SyntaxError> {
        if self.takes(wanted) { Ok(()) } else { Err(self.error(format!("there is no `{wanted}`"), right)) }
    }

    fn error(&self, wrong: String, right: &str) -> SyntaxError {
        SyntaxError { at: self.text[..self.at].chars().count() + 1, wrong, right: right.to_owned() }
    }

    /// Letters, digits and what names of metrics, variants and values have.
    fn word(&mut self) -> Option<&'a str> {
        self.peek();
        let rest = &self.text[self.at..];
        let is_part = |character: char| character.is_alphanumeric() || matches!(character, '_' | '.' | '-');
        let length = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
        self.at += length;
        Some(&rest[..length]).filter(|word| !word.is_empty())
    }

    fn operator(&mut self) -> Option<Operator> {
        let operator = match self.peek()? {
            '+' => Operator::Plus,
            '-' => Operator::Minus,
            '*' => Operator::Times,
            '/' => Operator::Over,
            '<' => Operator::Less,
            '>' => Operator::More,
            _ if self.text[self.at..].starts_with("and ") => Operator::And,
            _ => return None,
        };
        Some(operator)
    }

    /// Values joined by operators of at least `rank`.
    fn pairs(&mut self, rank: usize) -> Result<Expression, SyntaxError> {
        let mut left = self.single()?;
        while let Some(operator) = self.operator().filter(|operator| operator.rank() >= rank) {
            let length = if operator == Operator::And { "and".len() } else { 1 };
            let at = self.at;
            self.at += length;
            let right = self.pairs(operator.rank() + 1)?;
            let both = operator == Operator::And;
            if left.is_truth() != both || right.is_truth() != both {
                self.at = at;
                return Err(self.error("values do not fit".to_owned(), "`and` joins conditions, all others numbers"));
            }
            left = Expression::Pair(operator, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn single(&mut self) -> Result<Expression, SyntaxError> {
        if self.depth == DEEPEST {
            return Err(self.error("brackets lie too deep".to_owned(), "leave some out"));
        }
        if self.takes('(') {
            self.depth += 1;
            let inner = self.pairs(0)?;
            self.depth -= 1;
            self.expect(')', "close what ( opens")?;
            return Ok(inner);
        }
        let begin = self.at;
        let Some(word) = self.word() else {
            return Err(self.error("a value is missing".to_owned(), "write a number, a metric{...} or a function(...)"));
        };
        match self.peek() {
            Some('{') => self.selection(word, begin),
            Some('(') => self.call(word, begin),
            _ => word.parse().ok().filter(|number: &f64| number.is_finite()).map(Expression::Number).ok_or_else(|| {
                self.at = begin;
                self.error(format!("`{word}` is no number"), "a metric has its points behind it, in {}")
            }),
        }
    }

    fn selection(&mut self, metric: &str, begin: usize) -> Result<Expression, SyntaxError> {
        let known = metric_keys();
        if !known.contains(&metric) {
            self.at = begin;
            return Err(self.error(format!("no metric is called `{metric}`"), "use a column of points.csv"));
        }
        self.expect('{', "")?;
        let mut selection = Selection { metric: metric.to_owned(), variant: None, params: Vec::new() };
        while !self.takes('}') {
            let Some(word) = self.word() else {
                return Err(self.error("a name is missing".to_owned(), "write {variant, key=value}"));
            };
            if self.takes('=') {
                let value =
                    self.word().ok_or_else(|| self.error("a value is missing".to_owned(), "write key=value"))?;
                selection.params.push((word.to_owned(), value.to_owned()));
            } else if selection.variant.is_none() {
                selection.variant = Some(word.to_owned());
            } else {
                return Err(self.error("there is a second variant".to_owned(), "write {variant, key=value}"));
            }
            if !self.takes(',') && self.peek() != Some('}') {
                return Err(self.error("the selection does not end".to_owned(), "write {variant, key=value}"));
            }
        }
        Ok(Expression::Metric(selection))
    }

    fn call(&mut self, name: &str, begin: usize) -> Result<Expression, SyntaxError> {
        let Some((_, function, along_key)) = FUNCTIONS.into_iter().find(|(known, ..)| *known == name) else {
            self.at = begin;
            let known: Vec<&str> = FUNCTIONS.iter().map(|(name, ..)| *name).collect();
            return Err(self.error(format!("no function is called `{name}`"), &format!("known: {}", known.join(", "))));
        };
        self.expect('(', "")?;
        let mut key = None;
        if along_key {
            let word =
                self.word().ok_or_else(|| self.error("a key is missing".to_owned(), "write the swept key first"))?;
            key = Some(word.to_owned());
            self.expect(',', "write the swept key and a comma first")?;
        }
        self.depth += 1;
        let inside = self.at;
        let inner = self.pairs(0)?;
        let of_two = match function {
            Function::Max => Some(Operator::Larger),
            Function::Min => Some(Operator::Smaller),
            _ => None,
        };
        let second = match of_two.filter(|_| self.takes(',')) {
            Some(operator) => Some((operator, self.pairs(0)?)),
            None => None,
        };
        self.depth -= 1;
        self.expect(')', "close what ( opens")?;
        let wants_truth = matches!(function, Function::UpTo | Function::From);
        if inner.is_truth() != wants_truth || second.as_ref().is_some_and(|(_, other)| other.is_truth()) {
            self.at = inside;
            let right = if wants_truth { "write a condition, such as a < b" } else { "write a number" };
            return Err(self.error(format!("`{name}` cannot take this"), right));
        }
        Ok(match second {
            Some((operator, other)) => Expression::Pair(operator, Box::new(inner), Box::new(other)),
            None => Expression::Call(function, key, Box::new(inner)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_expression_is_refused_with_its_place() {
        let cases = [
            ("", 1, "a value is missing"),
            ("throughput_gbp{a}", 1, "no metric is called `throughput_gbp`"),
            ("1 + throughput_gbps", 5, "`throughput_gbps` is no number"),
            ("throughput_gbps{a, b}", 21, "there is a second variant"),
            ("throughput_gbps{a b}", 19, "the selection does not end"),
            ("throughput_gbps{a", 18, "the selection does not end"),
            ("throughput_gbps{reads=}", 23, "a value is missing"),
            ("largest(1)", 1, "no function is called `largest`"),
            ("max(1, 2 < 3)", 5, "`max` cannot take this"),
            ("mean(1, 2)", 7, "there is no `)`"),
            ("max(1 < 2)", 5, "`max` cannot take this"),
            ("up_to(reads, 3)", 13, "`up_to` cannot take this"),
            ("1 and 2", 3, "values do not fit"),
            ("(1 < 2) + 3", 9, "values do not fit"),
            ("(1", 3, "there is no `)`"),
            ("1 2", 3, "`2` follows a whole expression"),
        ];
        for (text, at, wrong) in cases {
            let error = Expression::parse(text).unwrap_err();
            assert_eq!((error.at, error.wrong.as_str()), (at, wrong), "{text}");
        }
        assert!(Expression::parse(&"(".repeat(100_000)).is_err());
    }

    #[test]
    fn ratios_bind_before_sums_and_sums_before_comparisons() {
        let brackets = "((1 + (2 / 4)) < 5) and (1 > 0)";
        assert_eq!(Expression::parse("1 + 2 / 4 < 5 and 1 > 0"), Expression::parse(brackets));
        assert_eq!(Expression::parse("8 / 4 / 2"), Expression::parse("(8 / 4) / 2"));
    }
}
