//! Horizontal bars: one group per category, its parts side by side or end to end.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::{
    Area, CHARACTER, INK, LIMIT, Paint, failed, grid_line, is_near, limit_line, linear_ticks, svg, whisker, write,
    write_in,
};
use crate::ReportError;
use crate::number::{fixed, number};

const WIDTH: u32 = 460;
const RIGHT: i32 = 54;
const TOP: i32 = 6;
const BOTTOM: i32 = 48;
/// Height of a row of words above the bars.
const ROW: i32 = 16;
const LONGEST_LABEL: usize = 24;

/// A text, and the place of its left end.
type Word = (String, (i32, i32));

/// A category and the values of its parts.
pub struct Group {
    /// Its name, left of the bars.
    pub label: String,
    /// Colour and value of each part.
    pub parts: Vec<(Paint, f64)>,
    /// Names and values of what the bar may meet.
    pub limits: Vec<(&'static str, f64)>,
    /// Half the width of the interval of the only part, if it has one.
    pub half_width: Option<f64>,
}

/// A bar plot.
pub struct Bars {
    /// What the picture shows, for those who cannot see it.
    pub alternative: String,
    /// Name and unit of the values.
    pub x_label: String,
    /// At least up to here, so that panels side by side share a scale.
    pub at_least: f64,
    /// Parts end to end instead of side by side.
    pub stacked: bool,
    /// From top to bottom.
    pub groups: Vec<Group>,
}

impl Bars {
    /// The plot as an SVG element.
    pub fn draw(&self) -> Result<String, ReportError> {
        let height: i32 = self.groups.iter().map(|group| self.thickness(group) + gap(group)).sum();
        let top = TOP + ROW * self.words().len().min(2) as i32;
        svg((WIDTH, (top + BOTTOM + height) as u32), &self.alternative, |area| self.draw_on(area, top, top + height))
    }

    /// The limits that the plot shows.
    fn limits<'a>(&'a self, group: &'a Group) -> impl Iterator<Item = (&'static str, f64)> + 'a {
        let largest = self.groups.iter().map(|group| self.extent(group)).fold(self.at_least, f64::max);
        group.limits.iter().copied().filter(move |(_, value)| is_near(*value, largest))
    }

    /// Names of the limits, each with its mean place over the groups, from left to right; those that lie on one
    /// another have one name.
    fn words(&self) -> Vec<(String, f64)> {
        let mut words: Vec<(&str, Vec<f64>)> = Vec::new();
        for (name, value) in self.groups.iter().flat_map(|group| self.limits(group)) {
            match words.iter_mut().find(|(other, _)| *other == name) {
                Some((_, values)) => values.push(value),
                None => words.push((name, vec![value])),
            }
        }
        let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
        let mut means: Vec<(&str, f64)> = words.into_iter().map(|(name, values)| (name, mean(values))).collect();
        means.sort_by(|a, b| a.1.total_cmp(&b.1));
        let mut merged: Vec<(String, f64)> = Vec::new();
        for (name, value) in means {
            match merged.last_mut() {
                Some((names, last)) if value <= *last * 1.03 => *names = format!("{names}, {name}"),
                _ => merged.push((name.into(), value)),
            }
        }
        merged
    }

    fn draw_on(&self, area: &Area, top: i32, bottom: i32) -> Result<(), ReportError> {
        let label = |group: &Group| group.label.chars().count().min(LONGEST_LABEL) as i32;
        let left = 12 + (CHARACTER - 1) * self.groups.iter().map(label).max().unwrap_or(0);
        let words = self.words();
        let totals = self.groups.iter().map(|group| self.extent(group)).chain(words.iter().map(|word| word.1));
        let totals = totals.filter(|v| v.is_finite());
        let ticks = linear_ticks(totals.fold(self.at_least, f64::max));
        // `linear_ticks` is never empty.
        let end = ticks.last().copied().unwrap_or(1.0);
        let right = WIDTH as i32 - RIGHT;
        let x_of = |value: f64| left + (value / end * f64::from(right - left)).round() as i32;
        for tick in &ticks {
            grid_line(area, (x_of(*tick), top), (x_of(*tick), bottom))?;
            write(area, &number(*tick), (x_of(*tick), bottom + 7), HPos::Center, VPos::Top)?;
        }
        write(area, &self.x_label, ((left + right) / 2, bottom + BOTTOM - 4), HPos::Center, VPos::Bottom)?;
        let mut y = top;
        for group in &self.groups {
            let (begin, thickness) = (y, self.thickness(group));
            y += gap(group) / 2;
            write(area, &shortened(&group.label), (left - 8, y + thickness / 2), HPos::Right, VPos::Center)?;
            let values = self.draw_group(area, group, y, &x_of)?;
            y = begin + thickness + gap(group);
            for (_, value) in self.limits(group) {
                limit_line(area, vec![(x_of(value), begin), (x_of(value), y)])?;
            }
            // Above the lines, so that none crosses a number.
            for (text, at) in values {
                write(area, &text, at, HPos::Left, VPos::Center)?;
            }
        }
        draw_words(area, &words, top, &x_of)?;
        area.draw(&PathElement::new(vec![(left, top), (left, bottom)], INK)).map_err(failed)
    }

    /// The bars of a group; returns the numbers that stand behind them, and where.
    fn draw_group(
        &self,
        area: &Area,
        group: &Group,
        top: i32,
        x_of: &impl Fn(f64) -> i32,
    ) -> Result<Vec<Word>, ReportError> {
        let (mut from, mut values) = (0.0, Vec::new());
        let finite = group.parts.iter().filter(|part| part.1.is_finite());
        for (row, (paint, value)) in finite.enumerate() {
            let y = if self.stacked { top } else { top + row as i32 * self.bar() };
            let (start, end) = (x_of(from), x_of(from + value));
            let fill = paint.colour().filled();
            area.draw(&Rectangle::new([(start, y), (end, y + self.bar() - 1)], fill)).map_err(failed)?;
            let spread = group.half_width.unwrap_or(0.0);
            if spread > 0.0 {
                let ends = [(value - spread).max(0.0), value + spread];
                whisker(area, ends.map(|value| (x_of(value), y + self.bar() / 2)), (0, 4), INK)?;
            }
            if self.stacked {
                from += value;
            } else {
                let end = x_of(from + value + spread);
                values.push((number(*value), (end + 5, y + self.bar() / 2)));
            }
        }
        if self.stacked {
            let middle = top + self.bar() / 2;
            values.push((total(from), (x_of(from) + 5, middle)));
        }
        Ok(values)
    }

    fn bar(&self) -> i32 {
        let side_by_side = !self.stacked && self.groups.iter().any(|group| group.parts.len() > 1);
        if side_by_side { 18 } else { 24 }
    }

    fn thickness(&self, group: &Group) -> i32 {
        if self.stacked { self.bar() } else { self.bar() * group.parts.len().max(1) as i32 }
    }

    fn extent(&self, group: &Group) -> f64 {
        let values = group.parts.iter().map(|part| part.1).filter(|v| v.is_finite());
        if self.stacked { values.sum() } else { values.fold(0.0, f64::max) }
    }
}

/// Names of limits above the bars, in two rows in turn, so that neighbours have room.
fn draw_words(area: &Area, words: &[(String, f64)], top: i32, x_of: &impl Fn(f64) -> i32) -> Result<(), ReportError> {
    for (number, (name, value)) in words.iter().enumerate().take(2) {
        let half = name.chars().count() as i32 * CHARACTER / 2;
        let x = x_of(*value).clamp(half, WIDTH as i32 - half);
        let y = top - ROW * (words.len().min(2) - 1 - number) as i32;
        write_in(LIMIT, area, name, (x, y - 2), (HPos::Center, VPos::Bottom))?;
    }
    Ok(())
}

fn gap(group: &Group) -> i32 {
    if group.parts.len() > 1 { 12 } else { 10 }
}

fn shortened(label: &str) -> String {
    if label.chars().count() <= LONGEST_LABEL {
        return label.into();
    }
    label.chars().take(LONGEST_LABEL - 1).chain(['…']).collect()
}

/// What stands behind a bar of parts end to end.
fn total(value: f64) -> String {
    match value {
        value if value >= 100.0 => fixed(value, 0),
        // A little is not nothing.
        value if value > 0.0 && value < 0.05 => number(value),
        value => fixed(value, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_little_is_told_from_nothing() {
        let totals = [0.0, 0.000_044, 0.008_889, 0.05, 17.94, 123.4].map(total);
        let expected = ["0.0", "0.000044", "0.008889", "0.1", "17.9", "123"];
        assert_eq!(totals, expected);
    }
}
