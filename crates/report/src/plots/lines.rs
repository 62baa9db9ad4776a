//! Lines over a numeric axis.

use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::{
    Area, CHARACTER, DASH, INK, LIMIT, colour, decade_ticks, failed, grid_line, is_near, limit_line, linear_ticks, svg,
    whisker, write, write_in,
};
use crate::ReportError;
use crate::number::number;

const WIDTH: i32 = 460;
const HEIGHT: i32 = 290;
const LEFT: i32 = 58;
const RIGHT: i32 = 14;
const TOP: i32 = 32;
/// Room above the plot for the words of marks, where they lie on no line.
const MARKS: i32 = 16;
const BOTTOM: i32 = 48;
/// Room that a limit's name takes above its line.
const NAME: i32 = 15;
/// Half the width of an interval's ends.
const WHISKER: (i32, i32) = (3, 0);

/// How an axis runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// From zero, even steps.
    Linear,
    /// Doubling steps, a tick at each value.
    Log2,
    /// Decades.
    Log10,
    /// Percentiles, each further nine as wide as the last: 0, 90, 99, 99.9 %.
    Nines,
}

/// A named line.
#[derive(Default)]
pub struct Series {
    /// Colour and marker.
    pub index: usize,
    /// Points with rising x.
    pub points: Vec<(f64, f64)>,
    /// Whether each point carries a marker, or it is a smooth curve.
    pub marked: bool,
    /// Whether the line is dashed.
    pub dashed: bool,
    /// Intervals: x, and the ends in y.
    pub whiskers: Vec<(f64, f64, f64)>,
    /// What the line is the middle of: x, and the ends in y; empty for a line alone.
    pub band: Vec<(f64, f64, f64)>,
}

/// What a value may meet, over x.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitLine {
    /// Its name.
    pub name: String,
    /// Points with rising x; one for all x.
    pub points: Vec<(f64, f64)>,
}

/// Something that happened at one x: an upright line with a word beside it.
pub struct Mark {
    /// Where.
    pub x: f64,
    /// Colour: that of the series it happened to; that of the text where it happened to all.
    pub index: Option<usize>,
    /// What happened.
    pub label: String,
}

/// A line plot.
pub struct Lines {
    /// What the picture shows, for those who cannot see it.
    pub alternative: String,
    /// Name and unit of x.
    pub x_label: String,
    /// Name and unit of y.
    pub y_label: String,
    /// Direction of x.
    pub x_axis: Axis,
    /// Direction of y: linear or decades.
    pub y_axis: Axis,
    /// At least up to here, so that panels side by side share a scale.
    pub y_at_least: f64,
    /// The lines.
    pub series: Vec<Series>,
    /// What they may meet; those far above all lines are left out.
    pub limits: Vec<LimitLine>,
    /// What happened when.
    pub marks: Vec<Mark>,
}

impl Lines {
    /// The plot as an SVG element.
    pub fn draw(&self) -> Result<String, ReportError> {
        svg((WIDTH as u32, HEIGHT as u32), &self.alternative, |area| self.draw_on(area))
    }

    fn draw_on(&self, area: &Area) -> Result<(), ReportError> {
        let points = || {
            let of_band = |series: &'_ Series| series.band.iter().map(|at| (at.0, at.2)).collect::<Vec<_>>();
            let all = self.series.iter().flat_map(move |series| series.points.iter().copied().chain(of_band(series)));
            all.filter(|point| self.shows(*point))
        };
        let mut x_ticks = ticks(self.x_axis, points().map(|p| p.0).collect());
        let least = (self.y_axis == Axis::Linear).then_some(self.y_at_least);
        let limits = self.near_limits(points().map(|p| p.1).chain(least).fold(0.0, f64::max));
        let of_limits = limits.iter().flat_map(|limit| limit.points.iter().map(|p| p.1));
        let y_ticks = ticks(self.y_axis, points().map(|p| p.1).chain(least).chain(of_limits).collect());
        let mut x_scale = Scale::over(self.x_axis, &x_ticks);
        let x_end = points().map(|p| p.0).fold(0.0, f64::max);
        if self.x_axis == Axis::Linear && x_end > 0.0 {
            // Lines end where the plot does.
            x_ticks.retain(|tick| *tick <= x_end);
            x_scale.high = x_end;
        }
        let y_scale = Scale::over(self.y_axis, &y_ticks);
        let chart = ChartBuilder::on(area)
            .margin_left(LEFT)
            .margin_right(RIGHT)
            .margin_top(self.top())
            .margin_bottom(BOTTOM)
            .build_cartesian_2d(x_scale.range(), y_scale.range())
            .map_err(failed)?;
        let plot = chart.plotting_area();
        let place = |x, y| plot.map_coordinate(&(x, y));
        for tick in &y_ticks {
            let (_, y) = place(x_scale.low, self.y_axis.place(*tick));
            grid_line(area, (LEFT, y), (WIDTH - RIGHT, y))?;
            write(area, &number(*tick), (LEFT - 7, y), HPos::Right, VPos::Center)?;
        }
        let at = |tick: &f64| (place(self.x_axis.place(*tick), y_scale.low).0, *tick);
        self.draw_x_axis(area, x_ticks.iter().map(at))?;
        write(area, &self.y_label, (2, 6), HPos::Left, VPos::Top)?;
        let at = |mark: &Mark| place(self.x_axis.place(mark.x), y_scale.low).0;
        self.draw_marks(area, self.marks.iter().map(|mark| (at(mark), mark)))?;
        let ends = [x_scale.low, x_scale.high];
        let names = draw_limits(area, &limits, &|limit| {
            let place = |(x, y): (f64, f64)| place(self.x_axis.place(x).clamp(ends[0], ends[1]), self.y_axis.place(y));
            match limit.points[..] {
                [(_, y)] => ends.map(|x| plot.map_coordinate(&(x, self.y_axis.place(y)))).to_vec(),
                _ => limit.points.iter().copied().map(place).collect(),
            }
        })?;
        for series in &self.series {
            let shown = series.points.iter().filter(|p| self.shows(**p));
            let path: Vec<(i32, i32)> =
                shown.map(|(x, y)| place(self.x_axis.place(*x), self.y_axis.place(*y))).collect();
            let ends = |(x, low, high): &(f64, f64, f64)| [(*x, *low), (*x, *high)];
            let bands = series.band.iter().map(ends).filter(|ends| ends.iter().all(|end| self.shows(*end)));
            let bands = bands.map(|ends| ends.map(|(x, y)| place(self.x_axis.place(x), self.y_axis.place(y))));
            draw_band(area, series, &bands.collect::<Vec<_>>())?;
            draw_series(area, series, &path)?;
            for &(x, low, high) in &series.whiskers {
                if self.shows((x, low)) && self.shows((x, high)) {
                    let ends = [low, high].map(|y| place(self.x_axis.place(x), self.y_axis.place(y)));
                    whisker(area, ends, WHISKER, colour(series.index))?;
                }
            }
        }
        // Above the lines that they would lie under.
        for (name, y) in names {
            write_in(LIMIT, area, &name, (WIDTH - RIGHT, y - 2), (HPos::Right, VPos::Bottom))?;
        }
        Ok(())
    }

    /// The line, ticks at pixel and value, and those of their labels that have room.
    fn draw_x_axis(&self, area: &Area, ticks: impl Iterator<Item = (i32, f64)>) -> Result<(), ReportError> {
        let y = HEIGHT - BOTTOM;
        let line = PathElement::new(vec![(LEFT, y), (WIDTH - RIGHT, y)], INK);
        area.draw(&line).map_err(failed)?;
        let mut free_from = 0;
        for (x, value) in ticks {
            grid_line(area, (x, y), (x, y + 4))?;
            let label = self.x_axis.tick_label(value);
            let half = label.chars().count() as i32 * CHARACTER / 2;
            if x - half >= free_from {
                write(area, &label, (x.min(WIDTH - half), y + 7), HPos::Center, VPos::Top)?;
                free_from = x + half + CHARACTER;
            }
        }
        let middle = ((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 4);
        write(area, &self.x_label, middle, HPos::Center, VPos::Bottom)
    }

    /// Where the plot begins.
    fn top(&self) -> i32 {
        TOP + MARKS * (i32::from(self.has_marks(true)) + i32::from(self.has_marks(false)))
    }

    /// Whether something happened to one series, or to all.
    fn has_marks(&self, of_one: bool) -> bool {
        self.marks.iter().any(|mark| mark.index.is_some() == of_one)
    }

    /// Upright lines, and above them those of their labels that have room: in one row what happened to one
    /// series, in another above it what happened to all.
    fn draw_marks<'a>(&self, area: &Area, marks: impl Iterator<Item = (i32, &'a Mark)>) -> Result<(), ReportError> {
        let mut free_from = [0; 2];
        let above = MARKS * i32::from(self.has_marks(true));
        for (x, mark) in marks {
            let mut y = self.top();
            while y < HEIGHT - BOTTOM {
                let dash = vec![(x, y), (x, (y + DASH).min(HEIGHT - BOTTOM))];
                area.draw(&PathElement::new(dash, mark.index.map_or(INK, colour))).map_err(failed)?;
                y += 2 * DASH;
            }
            let width = mark.label.chars().count() as i32 * CHARACTER;
            let (row, y) = match mark.index {
                Some(_) => (0, self.top() - 3),
                None => (1, self.top() - 3 - above),
            };
            if x >= free_from[row] && x + width < WIDTH {
                write(area, &mark.label, (x, y), HPos::Left, VPos::Bottom)?;
                free_from[row] = x + width;
            }
        }
        Ok(())
    }

    /// Limits that make no line small.
    fn near_limits(&self, largest: f64) -> Vec<&LimitLine> {
        let fits = |limit: &&LimitLine| {
            let mut points = limit.points.iter();
            !limit.points.is_empty() && points.all(|p| self.shows(*p) && is_near(p.1, largest))
        };
        self.limits.iter().filter(fits).collect()
    }

    fn shows(&self, (x, y): (f64, f64)) -> bool {
        let fits =
            |axis: Axis, value: f64| value.is_finite() && (!matches!(axis, Axis::Log2 | Axis::Log10) || value > 0.0);
        fits(self.x_axis, x) && fits(self.y_axis, y)
    }
}

/// Dashed lines; returns what stands above the right end of each. Those whose ends lie together have one name.
fn draw_limits(
    area: &Area,
    limits: &[&LimitLine],
    path: &dyn Fn(&LimitLine) -> Vec<(i32, i32)>,
) -> Result<Vec<(String, i32)>, ReportError> {
    let mut words: Vec<(String, i32)> = Vec::new();
    for limit in limits {
        let path = path(limit);
        let end = path.last().map_or(0, |end| end.1);
        limit_line(area, path)?;
        match words.iter_mut().find(|(_, y)| (*y - end).abs() < NAME) {
            Some((names, _)) if names.contains(&limit.name) => {}
            Some((names, y)) => (*names, *y) = (format!("{names}, {}", limit.name), (*y).min(end)),
            None => words.push((limit.name.clone(), end)),
        }
    }
    Ok(words)
}

/// A pale area between the two ends at each place.
fn draw_band(area: &Area, series: &Series, ends: &[[(i32, i32); 2]]) -> Result<(), ReportError> {
    if ends.len() < 2 {
        return Ok(());
    }
    let outline: Vec<(i32, i32)> =
        ends.iter().map(|ends| ends[0]).chain(ends.iter().rev().map(|ends| ends[1])).collect();
    area.draw(&Polygon::new(outline, colour(series.index).mix(0.15))).map_err(failed)
}

/// A line along `path`, with its markers.
fn draw_series(area: &Area, series: &Series, path: &[(i32, i32)]) -> Result<(), ReportError> {
    let style = colour(series.index).stroke_width(2);
    let points = path.iter().copied();
    let drawn = if series.dashed {
        area.draw(&DashedPathElement::new(points, 2 * DASH, DASH, style))
    } else {
        area.draw(&PathElement::new(path.to_vec(), style))
    };
    drawn.map_err(failed)?;
    for at in path.iter().filter(|_| series.marked || path.len() == 1) {
        mark(area, *at, series.index)?;
    }
    Ok(())
}

/// A marker whose form changes when colours repeat.
fn mark(area: &Area, at: (i32, i32), index: usize) -> Result<(), ReportError> {
    let fill = colour(index).filled();
    match index / super::SERIES_COLOURS % 3 {
        0 => area.draw(&Circle::new(at, 3, fill)),
        1 => area.draw(&TriangleMarker::new(at, 5, fill)),
        _ => area.draw(&Rectangle::new([(at.0 - 3, at.1 - 3), (at.0 + 3, at.1 + 3)], fill)),
    }
    .map_err(failed)
}

impl Axis {
    /// Where a value lies, in units that are even on paper.
    fn place(self, value: f64) -> f64 {
        match self {
            Axis::Linear => value,
            Axis::Log2 => value.log2(),
            Axis::Log10 => value.log10(),
            // Five nines at most: beyond, the curve is a few frames.
            Axis::Nines => -(1.0 - value / 100.0).max(1e-5).log10(),
        }
    }

    fn tick_label(self, tick: f64) -> String {
        match self {
            Axis::Nines => tick.to_string(),
            _ => number(tick),
        }
    }
}

fn ticks(axis: Axis, mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values.dedup();
    let (Some(least), Some(largest)) = (values.first().copied(), values.last().copied()) else {
        return vec![1.0, 2.0];
    };
    match axis {
        Axis::Linear => linear_ticks(largest),
        Axis::Log2 => values,
        Axis::Log10 => decade_ticks(least, largest),
        Axis::Nines => {
            let mut ticks = vec![0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999];
            let end = ticks.iter().position(|tick| *tick >= largest).unwrap_or(ticks.len() - 1);
            ticks.truncate(end + 1);
            ticks
        }
    }
}

/// The ends of an axis, in units that are even on paper.
struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    fn over(axis: Axis, ticks: &[f64]) -> Scale {
        let place = |tick: Option<&f64>| tick.map_or(0.0, |tick| axis.place(*tick));
        let (low, high) = (place(ticks.first()), place(ticks.last()));
        match axis {
            Axis::Log2 => Scale { low: low - 0.25, high: high + 0.25 },
            _ => Scale { low, high: if high > low { high } else { low + 1.0 } },
        }
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.low..self.high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_marks_lie_above_all_lines() {
        let lines = Lines {
            alternative: String::new(),
            x_label: "x".into(),
            y_label: "y".into(),
            x_axis: Axis::Linear,
            y_axis: Axis::Linear,
            y_at_least: 0.0,
            series: vec![Series {
                index: 0,
                points: vec![(0.0, 0.0), (10.0, 8.0)],
                marked: false,
                ..Series::default()
            }],
            limits: Vec::new(),
            marks: vec![Mark { x: 5.0, index: Some(0), label: "shared".into() }],
        };
        let picture = lines.draw().unwrap();
        let (before, _) = picture.split_once("\nshared\n").unwrap();
        let text = before.rsplit("<text").next().unwrap();
        let y = text.split(" y=\"").nth(1).and_then(|rest| rest.split('"').next());
        let y: i32 = y.unwrap().parse().unwrap();
        assert!(TOP < y && y < TOP + MARKS, "{y}");
    }
}
