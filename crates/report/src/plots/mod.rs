//! Plots as SVG that takes its colours from the page.
//!
//! plotters draws with a few marker colours, which are then replaced by CSS variables, so that
//! one picture is right in light, in dark and on paper.

mod bars;
mod lines;

pub use bars::{Bars, Group};
pub use lines::{Axis, LimitLine, Lines, Mark, Series};

use plotters::backend::SVGBackend;
use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::ReportError;

/// Colours that the page gives to series; more series than that repeat them.
pub const SERIES_COLOURS: usize = 8;

/// Colours of parts of a whole, none of which is a series' colour.
pub const PART_COLOURS: usize = 6;

const INK: RGBColor = RGBColor(1, 2, 3);
const GRID: RGBColor = RGBColor(1, 2, 4);
/// Of limits alone.
const LIMIT: RGBColor = RGBColor(1, 2, 5);
/// Length of a dash.
const DASH: i32 = 4;
/// Width of a character of the labels, at most.
const CHARACTER: i32 = 8;
/// In plotters' points, of which the library makes about 12 pixels.
const TEXT_SIZE: i32 = 15;

/// The marker colour that stands for the page's `--series-<index>`.
fn colour(index: usize) -> RGBColor {
    RGBColor(2, 2, (index % SERIES_COLOURS) as u8)
}

/// What a colour means: one of what is compared, or a part of a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// The variant, or series, of that number.
    Series(usize),
    /// The part of that number.
    Part(usize),
}

impl Paint {
    /// The page's name for it.
    pub fn css(self) -> String {
        match self {
            Paint::Series(index) => format!("var(--series-{})", index % SERIES_COLOURS),
            Paint::Part(index) => format!("var(--part-{})", index % PART_COLOURS),
        }
    }

    fn colour(self) -> RGBColor {
        match self {
            Paint::Series(index) => colour(index),
            Paint::Part(index) => RGBColor(2, 3, (index % PART_COLOURS) as u8),
        }
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// Draws with `draw` on a canvas of `size` and returns an `<svg>` element for a page.
fn svg(
    size: (u32, u32),
    alternative: &str,
    draw: impl FnOnce(&Area) -> Result<(), ReportError>,
) -> Result<String, ReportError> {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        draw(&area)?;
        area.present().map_err(failed)?;
    }
    let body = text.find("<svg").and_then(|at| text[at..].find('>').map(|end| &text[at + end + 1..]));
    let mut themed =
        body.unwrap_or("").replace("\"#010203\"", "\"var(--ink)\"").replace("\"#010204\"", "\"var(--grid)\"");
    themed = themed.replace("\"#010205\"", "\"var(--limit)\"");
    for index in 0..SERIES_COLOURS {
        themed = themed.replace(&format!("\"#02020{index}\""), &format!("\"var(--series-{index})\""));
    }
    for index in 0..PART_COLOURS {
        themed = themed.replace(&format!("\"#02030{index}\""), &format!("\"var(--part-{index})\""));
    }
    // Fonts come from the page, and `opacity="1"` is what it is anyway.
    themed = themed.replace(" opacity=\"1\"", "").replace(" font-family=\"sans-serif\"", "");
    let (width, height) = size;
    let label = super::html::escape(alternative);
    Ok(format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">{themed}"))
}

fn failed(error: impl std::fmt::Display) -> ReportError {
    ReportError::Plot(error.to_string())
}

fn write(area: &Area, text: &str, at: (i32, i32), horizontal: HPos, vertical: VPos) -> Result<(), ReportError> {
    write_in(INK, area, text, at, (horizontal, vertical))
}

fn write_in(ink: RGBColor, area: &Area, text: &str, at: (i32, i32), pos: (HPos, VPos)) -> Result<(), ReportError> {
    let style = ("sans-serif", TEXT_SIZE).into_font().color(&ink).pos(Pos::new(pos.0, pos.1));
    area.draw_text(text, &style, at).map_err(failed)
}

/// A dashed line along `path` in the colour of limits.
fn limit_line(area: &Area, path: Vec<(i32, i32)>) -> Result<(), ReportError> {
    let style = LIMIT.stroke_width(1);
    area.draw(&DashedPathElement::new(path, 3 * DASH / 2, DASH, style)).map_err(failed)
}

/// Whether a limit is near enough to values up to `largest` to lie in their plot without making them small.
pub fn is_near(limit: f64, largest: f64) -> bool {
    limit.is_finite() && limit <= largest * 2.5
}

fn grid_line(area: &Area, from: (i32, i32), to: (i32, i32)) -> Result<(), ReportError> {
    area.draw(&PathElement::new(vec![from, to], GRID)).map_err(failed)
}

/// Round values from zero to `largest` or past it, about five of them; `largest` may stand out
/// by a fiftieth of a step.
fn linear_ticks(largest: f64) -> Vec<f64> {
    if !(largest > 0.0 && largest.is_finite()) {
        return vec![0.0, 1.0];
    }
    let rough = largest / 4.0;
    let magnitude = 10_f64.powf(rough.log10().floor());
    let factors = [1.0, 2.0, 2.5, 5.0, 10.0];
    let step = factors.iter().map(|f| f * magnitude).find(|step| *step >= rough * 0.999).unwrap_or(rough);
    let count = (largest / step - 0.02).ceil() as usize;
    (0..=count.max(1)).map(|index| index as f64 * step).collect()
}

/// Values 1, 2 and 5 of each decade (1 only when there are many) around `least..=largest`.
fn decade_ticks(least: f64, largest: f64) -> Vec<f64> {
    let (low, high) = (least.log10().floor() as i32, largest.log10().ceil().max(least.log10().floor() + 1.0) as i32);
    let factors: &[f64] = if high - low <= 3 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let all = (low..=high).flat_map(|decade| factors.iter().map(move |f| f * 10_f64.powi(decade)));
    let mut ticks: Vec<f64> = all.collect();
    let from = ticks.iter().rposition(|tick| *tick <= least).unwrap_or(0);
    let to = ticks.iter().position(|tick| *tick >= largest).unwrap_or(ticks.len() - 1);
    ticks.truncate(to.max(from + 1) + 1);
    ticks.split_off(from)
}

/// An interval: a line between `ends`, closed by strokes of `half` to both sides.
fn whisker(area: &Area, ends: [(i32, i32); 2], half: (i32, i32), ink: RGBColor) -> Result<(), ReportError> {
    area.draw(&PathElement::new(ends.to_vec(), ink)).map_err(failed)?;
    for (x, y) in ends {
        let stroke = vec![(x - half.0, y - half.1), (x + half.0, y + half.1)];
        area.draw(&PathElement::new(stroke, ink)).map_err(failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_ticks_cover_the_values_in_round_steps() {
        assert_eq!(linear_ticks(200.0), [0.0, 50.0, 100.0, 150.0, 200.0]);
        assert_eq!(linear_ticks(0.9).last(), Some(&1.0));
        assert_eq!(linear_ticks(0.0), [0.0, 1.0]);
        assert_eq!(linear_ticks(f64::NAN), [0.0, 1.0]);
    }

    #[test]
    fn decade_ticks_cover_the_values() {
        assert_eq!(decade_ticks(3.0, 40.0), [2.0, 5.0, 10.0, 20.0, 50.0]);
        assert_eq!(decade_ticks(1.5, 900_000.0).len(), 7);
        assert_eq!(decade_ticks(5.0, 5.0), [5.0, 10.0]);
    }
}
