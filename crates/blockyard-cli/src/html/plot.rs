//! Parts of charts: lines that can be told apart without colour, and axes.

use core::fmt::Write;

use maud::{Markup, html};

/// The length of a drawing, in units of its own.
pub(super) const WIDTH: f64 = 800.0;
/// The mean length of a letter where letters are largest: on a narrow screen. See `page.css`.
pub(super) const LETTER: f64 = 16.0;
/// The number of styles of lines. The ninth design looks like the first.
const STYLES: usize = 8;

/// The area of a chart between its axes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl Area {
    /// Returns the place at these shares of the width, from the left, and of the height, from the
    /// bottom.
    pub(super) fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let x = x.clamp(0.0, 1.0);
        let y = y.clamp(0.0, 1.0);
        (self.left + x * (self.right - self.left), self.bottom - y * (self.bottom - self.top))
    }

    /// Draws a tick of the vertical axis with its line through the chart.
    pub(super) fn tick_y(&self, y: f64, label: &str) -> Markup {
        let (_, y) = self.at((0.0, y));
        html! {
            line class="grid" x1=(number(self.left)) x2=(number(self.right)) y1=(number(y)) y2=(number(y)) {}
            text class="end dim" x=(number(self.left - 6.0)) y=(number(y + 4.0)) { (label) }
        }
    }

    /// Draws a limit as a line through the chart, with its name above the line.
    pub(super) fn limit(&self, y: f64, name: &str) -> Markup {
        let (_, y) = self.at((0.0, y));
        html! {
            line class="axis" stroke-dasharray="4 4" x1=(number(self.left)) x2=(number(self.right)) y1=(number(y))
                y2=(number(y)) {}
            text class="end dim" x=(number(self.right - 6.0)) y=(number(y - 5.0)) { (name) }
        }
    }

    /// Draws a tick of the horizontal axis with its line through the chart.
    pub(super) fn tick_x(&self, x: f64, label: &str) -> Markup {
        let (x, _) = self.at((x, 0.0));
        html! {
            line class="grid" x1=(number(x)) x2=(number(x)) y1=(number(self.top)) y2=(number(self.bottom)) {}
            text class="mid dim" x=(number(x)) y=(number(self.bottom + 22.0)) { (label) }
        }
    }
}

/// Returns a number for an attribute, with one decimal.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Returns `name` with the style of design `at`: `l` for lines, `f` for areas.
pub(super) fn class(name: &str, kind: &str, at: usize) -> String {
    format!("{name} {kind}{}", at % STYLES)
}

/// Draws the line of design `at` of `count` through `points`, given in shares of `area`. Lines that
/// coincide stay visible: the first is the broadest, and each has its dashes and its marks at other
/// places.
pub(super) fn curve(area: &Area, points: &[(f64, f64)], at: usize, count: usize) -> Markup {
    const DASHES: [&str; STYLES] =
        ["none", "10 5", "2 4", "14 4 2 4", "6 3", "1 3", "18 6", "8 3 2 3 2 3"];
    let behind = f64::from(u8::try_from(count.saturating_sub(at + 1).min(6)).unwrap_or(6));
    let mut path = String::new();
    for (x, y) in points.iter().map(|point| area.at(*point)) {
        let _ =
            write!(path, "{}{} {}", if path.is_empty() { "M" } else { "L" }, number(x), number(y));
    }
    let marks = marked(points, at, count);
    html! {
        path class=(class("curve", "l", at)) d=(path) stroke-width=(number(1.6 + 1.3 * behind))
            stroke-dasharray=(DASHES[at % STYLES]) {}
        @for point in marks { (mark(area.at(point), at)) }
    }
}

/// Returns where the marks of a line are: three, at other points for each design.
fn marked(points: &[(f64, f64)], at: usize, count: usize) -> Vec<(f64, f64)> {
    let places = 3 * count.max(1);
    let of = |nth: usize| {
        let place = (nth * count.max(1) + at) % places;
        points.get((2 * place + 1) * points.len() / (2 * places)).copied()
    };
    (0..3).filter_map(of).collect()
}

/// Draws the mark of design `at`.
pub(super) fn mark((x, y): (f64, f64), at: usize) -> Markup {
    const SHAPES: [&[(f64, f64)]; STYLES] = [
        &[(-4.0, -4.0), (4.0, -4.0), (4.0, 4.0), (-4.0, 4.0)],
        &[(0.0, -5.0), (5.0, 4.0), (-5.0, 4.0)],
        &[(0.0, -5.5), (5.5, 0.0), (0.0, 5.5), (-5.5, 0.0)],
        &[(0.0, 5.0), (5.0, -4.0), (-5.0, -4.0)],
        &[(-5.0, -2.0), (5.0, -2.0), (5.0, 2.0), (-5.0, 2.0)],
        &[(-2.0, -5.0), (2.0, -5.0), (2.0, 5.0), (-2.0, 5.0)],
        &[(-4.0, 0.0), (-2.0, -4.0), (2.0, -4.0), (4.0, 0.0), (2.0, 4.0), (-2.0, 4.0)],
        &[
            (0.0, -5.0),
            (1.5, -1.5),
            (5.0, 0.0),
            (1.5, 1.5),
            (0.0, 5.0),
            (-1.5, 1.5),
            (-5.0, 0.0),
            (-1.5, -1.5),
        ],
    ];
    let points: Vec<_> = SHAPES[at % STYLES]
        .iter()
        .map(|(dx, dy)| format!("{},{}", number(x + dx), number(y + dy)))
        .collect();
    html! { polygon class=(class("mark", "f", at)) points=(points.join(" ")) {} }
}

/// The height of a row of a legend.
const ROW: f64 = 26.0;

/// Draws the names of the designs with their lines, from the place `top` on, two in a row, or one
/// if a name is long. Returns the height, too.
pub(super) fn legend(names: &[&str], left: f64, top: f64) -> (Markup, f64) {
    let longest = names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    let has_room = LETTER * f64::from(u32::try_from(longest).unwrap_or(u32::MAX)) + 40.0
        <= (WIDTH - left) / 2.0;
    let columns = if has_room { 2 } else { 1 };
    let rows = f64::from(u32::try_from(names.len().div_ceil(columns)).unwrap_or(u32::MAX));
    let drawn = html! {
        @for (at, name) in names.iter().enumerate() {
            @let (x, y) = legend_place(at, columns, left, top);
            (curve(&Area { left: x, right: x + 30.0, top: y, bottom: y }, &[(0.0, 0.0), (1.0, 0.0)], at, at + 1))
            (mark((x + 15.0, y), at))
            text x=(number(x + 38.0)) y=(number(y + 5.0)) { (name) }
        }
    };
    (drawn, ROW * rows)
}

/// The left end and the middle of the `at`-th name of a legend, row by row.
fn legend_place(at: usize, columns: usize, left: f64, top: f64) -> (f64, f64) {
    let column = if at.is_multiple_of(columns) { 0.0 } else { (WIDTH - left) / 2.0 };
    let row = f64::from(u32::try_from(at / columns).unwrap_or(u32::MAX));
    (left + column, top + ROW * row)
}

/// The rows of a chart with horizontal bars. Names stand before their bars, or above them if one is
/// long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows {
    /// Where bars begin.
    pub(super) left: f64,
    /// The height above a bar that its name takes.
    above: f64,
}

impl Rows {
    /// The height of a row whose name stands before its bar.
    const HEIGHT: f64 = 30.0;
    /// The most letters of a name before its bar.
    const LETTERS_MAX: u32 = 18;

    pub(super) fn of(names: &[&str]) -> Self {
        let letters = names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
        let letters = u32::try_from(letters).unwrap_or(u32::MAX);
        if letters > Self::LETTERS_MAX {
            return Self { left: 0.0, above: 26.0 };
        }
        Self { left: (f64::from(letters) * LETTER).max(60.0) + 8.0, above: 0.0 }
    }

    /// Returns where the bar of row `at` has its top; after the last row, where the rows end.
    pub(super) fn bar(&self, at: usize) -> f64 {
        let rows = f64::from(u32::try_from(at).unwrap_or(u32::MAX));
        rows * (Self::HEIGHT + self.above) + self.above
    }

    /// Draws the name of row `at`.
    pub(super) fn name(&self, at: usize, name: &str) -> Markup {
        let is_above = self.above > 0.0;
        let x = if is_above { 0.0 } else { self.left - 8.0 };
        let y = self.bar(at) - self.above + 20.0;
        html! { text class=[(!is_above).then_some("end")] x=(number(x)) y=(number(y)) { (name) } }
    }
}

/// Returns a drawing of this height with a description for those who do not see it.
pub(super) fn drawing(height: f64, label: &str, content: &Markup) -> Markup {
    html! {
        svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label=(label)
            viewBox=(format!("0 0 {} {}", number(WIDTH), number(height))) { (content) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(of: &str, name: &str) -> String {
        let from = of.find(name).expect("the attribute") + name.len() + 2;
        of[from..].split('"').next().expect("its value").to_owned()
    }

    #[test]
    fn coinciding_lines_have_other_widths_dashes_and_marks() {
        let area = Area { left: 0.0, top: 0.0, right: 100.0, bottom: 100.0 };
        let points: Vec<_> = (0..=90).map(|n| (f64::from(n) / 90.0, 0.5)).collect();
        let drawn: Vec<_> = (0..3).map(|at| curve(&area, &points, at, 3).into_string()).collect();
        for name in ["stroke-width", "stroke-dasharray", "points"] {
            let mut values: Vec<_> = drawn.iter().map(|of| attribute(of, name)).collect();
            values.dedup();
            assert_eq!(values.len(), 3, "{name}: {values:?}");
        }
        // Nine marks of three lines are at nine places.
        let mut places: Vec<_> =
            (0..3).flat_map(|at| marked(&points, at, 3)).map(|(x, _)| number(x * 90.0)).collect();
        places.sort();
        places.dedup();
        assert_eq!(places.len(), 9, "{places:?}");
    }
}
