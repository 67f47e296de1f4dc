//! The charts of a page.

use blockyard_answer::certainty::EQUAL_WITHIN;
use blockyard_answer::{Buckets, Cell, Latency, Life, Row};
use blockyard_sim::measure::series::Series;
use blockyard_text::number::{approximate, count, digits, nanoseconds, percent, time};
use maud::{Markup, html};

use super::plot::{Area, LETTER, Rows, WIDTH, class, curve, drawing, legend, number};
use super::ticks::Axis;

/// The height of the area of a chart.
const HEIGHT: f64 = 220.0;
/// The left end of the area of a chart: there is room for `99.9999 %` before it.
const LEFT: f64 = 9.0 * LETTER;
/// The distance of the names of lines from the area.
const BELOW: f64 = 48.0;

/// Draws the distribution of latencies of one job under each design: the share of I/Os that took at
/// most that long. Each step up of the vertical axis is a tenth of the I/Os of the step before, so
/// tails are as visible as the rest.
pub(super) fn latencies(label: &str, designs: &[(&str, &Latency)], points_max: usize) -> Markup {
    let counted = designs.iter().filter(|(_, of)| of.count > 0);
    let low = counted.clone().map(|(_, of)| of.min.max(1)).min().unwrap_or(1);
    let high = counted.clone().map(|(_, of)| of.max).max().unwrap_or(1).max(low + 1);
    let most = counted.map(|(_, of)| of.count).max().unwrap_or(1);
    let steps = approximate(most).log10().ceil().clamp(1.0, 6.0);
    let axis = Axis::new(approximate(low), approximate(high));
    let x = |ns: u64| axis.at(approximate(ns));
    let y = |share: f64| if share >= 1.0 { 1.0 } else { (-(1.0 - share).log10() / steps).min(1.0) };
    let area = Area { left: LEFT, top: 18.0, right: WIDTH - 48.0, bottom: 18.0 + HEIGHT };
    let names: Vec<_> = designs.iter().map(|(name, _)| *name).collect();
    let (names_drawn, below) = legend(&names, LEFT, area.bottom + BELOW);
    let whole_steps = (1..=6_i32).map(f64::from).filter(|step| *step <= steps);
    // The labels of 0 % and 50 % would touch.
    let is_roomy = HEIGHT * y(0.5) > 2.0 * LETTER;
    let content = html! {
        (area.tick_y(0.0, if is_roomy { "0 %" } else { "" }))
        (area.tick_y(y(0.5), "50 %"))
        @for step in whole_steps {
            (area.tick_y(step / steps, &nines(step)))
        }
        @for tick in axis.ticks() { (area.tick_x(axis.at(tick), &nanoseconds(tick))) }
        @for (at, (_, of)) in designs.iter().enumerate() {
            (curve(&area, &thinned(&steps_of(of, x, y), points_max), at, designs.len()))
        }
        (names_drawn)
    };
    drawing(area.bottom + BELOW + below, &format!("Share of I/Os by latency: {label}"), &content)
}

/// Returns `90 %`, `99 %`, `99.9 %` and so on.
fn nines(step: f64) -> String {
    match step {
        _ if step < 1.5 => "90 %".to_owned(),
        _ if step < 2.5 => "99 %".to_owned(),
        _ => {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "at most 6"
            )]
            let nines = step as usize - 2;
            format!("99.{} %", "9".repeat(nines))
        }
    }
}

/// Returns the corners of the distribution `of`.
fn steps_of(of: &Latency, x: impl Fn(u64) -> f64, y: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    let Buckets { up_to_ns, count } = &of.histogram;
    let mut points = vec![(x(of.min), 0.0)];
    let mut seen = 0_u64;
    let mut reached = 0.0;
    for (up_to, count) in up_to_ns.iter().zip(count) {
        seen += count;
        let at = x((*up_to).min(of.max));
        points.push((at, reached));
        reached = y(approximate(seen) / approximate(of.count.max(1)));
        points.push((at, reached));
    }
    points
}

/// Returns at most about `most` of `points`: those that are far from the one before, and the last.
fn thinned(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    let far = 2.0 / approximate(most.max(2) as u64);
    let mut kept: Vec<(f64, f64)> = Vec::new();
    for (at, point) in points.iter().enumerate() {
        let moved = kept
            .last()
            .is_none_or(|last| (point.0 - last.0).abs() + (point.1 - last.1).abs() >= far);
        if moved || at + 1 == points.len() {
            kept.push(*point);
        }
    }
    kept
}

/// Draws the IOPS of each design for one job. Where several designs reach the same, as those of a
/// job that keeps to a rate do, it draws the 99th percentile of their latencies.
pub(super) fn bars(row: &Row) -> Markup {
    let highest = row.designs.iter().map(|cell| cell.iops).fold(0.0, f64::max);
    let is_equal = |cell: &Cell| cell.iops > 0.0 && cell.iops >= highest * (1.0 - EQUAL_WITHIN);
    let all_equal = row.designs.len() > 1 && row.designs.iter().all(is_equal);
    let bars = row.designs.iter().map(|cell| match (all_equal, cell.ratio) {
        (true, _) => (approximate(cell.p99_ns), tail(cell)),
        (false, Some(ratio)) => {
            (cell.iops, format!("{} IOPS ({})", count(cell.iops), digits(ratio)))
        }
        (false, None) => (cell.iops, format!("{} IOPS", count(cell.iops))),
    });
    let what = if all_equal { "p99" } else { "IOPS" };
    let names: Vec<_> = row.designs.iter().map(|cell| cell.design.as_str()).collect();
    html! {
        @if all_equal {
            p class="dim" { (count(highest)) " IOPS under each design, within 2 %. The 99th percentile of latency:" }
        }
        (horizontal(&format!("{what}: {} {}", row.job, row.direction), &names, &bars.collect::<Vec<_>>()))
    }
}

/// Returns the 99th percentile in words. A p99 of few I/Os is a matter of luck, so their number is
/// shown.
fn tail(cell: &Cell) -> String {
    const FEW: u64 = 1000;
    let p99 = time(cell.p99_ns);
    if cell.ios < FEW { format!("{p99} ({} I/Os)", cell.ios) } else { p99 }
}

/// Draws a bar for each name, as long as its value, with a text at its end.
fn horizontal(label: &str, names: &[&str], bars: &[(f64, String)]) -> Markup {
    let longest = bars.iter().map(|(value, _)| *value).fold(0.0, f64::max).max(1e-9);
    let rows = Rows::of(names);
    let room = WIDTH - 18.0 * LETTER - rows.left;
    let content = html! {
        @for (at, (name, (value, words))) in names.iter().zip(bars).enumerate() {
            @let y = rows.bar(at);
            @let long = room * value / longest;
            (rows.name(at, name))
            rect class=(class("bar", "f", at)) x=(number(rows.left)) y=(number(y + 4.0)) height="22"
                width=(number(long.max(1.0))) {}
            text x=(number(rows.left + long + 6.0)) y=(number(y + 20.0)) { (words) }
        }
    };
    drawing(rows.bar(names.len()) + 4.0, label, &content)
}

/// A value over time, and how it is drawn.
pub(super) struct OverTime<'a> {
    /// The description of the chart.
    pub(super) label: &'a str,
    /// The value at a sample.
    pub(super) value: fn(&Series, usize) -> u64,
    /// A value in words.
    pub(super) words: fn(f64) -> String,
    /// Values with names, which are drawn as lines if the values come near them.
    pub(super) limits: &'a [(u64, &'a str)],
}

/// Draws a value of each design over time.
pub(super) fn over_time(designs: &[(&str, &Series)], of: &OverTime<'_>) -> Markup {
    let OverTime { label, value, words, limits } = *of;
    let end =
        designs.iter().filter_map(|(_, of)| of.at_ns.last()).max().copied().unwrap_or(1).max(1);
    let values = |of: &Series| (0..of.at_ns.len()).map(|at| value(of, at)).collect::<Vec<_>>();
    let all: Vec<Vec<u64>> = designs.iter().map(|(_, of)| values(of)).collect();
    let high = all.iter().flatten().max().copied().unwrap_or(1).max(1);
    // A limit of 32 MiB is drawn if the values reach 24 MiB.
    let near = limits.iter().filter(|(limit, _)| limit / 4 * 3 <= high);
    let limits: Vec<_> = near.copied().collect();
    let high = limits.iter().map(|(limit, _)| *limit).max().unwrap_or(0).max(high);
    // Half of a small odd number is no whole one.
    let halves = high >= 100 || high.is_multiple_of(2);
    let parts: &[f64] = if halves { &[0.0, 0.5, 1.0] } else { &[0.0, 1.0] };
    let area = Area { left: LEFT, top: 18.0, right: WIDTH - 48.0, bottom: 18.0 + HEIGHT / 1.5 };
    let names: Vec<_> = designs.iter().map(|(name, _)| *name).collect();
    let (names_drawn, below) = legend(&names, LEFT, area.bottom + BELOW);
    let content = html! {
        @for part in parts.iter().copied() { (area.tick_y(part, &words(part * approximate(high)))) }
        @for part in [0.0, 0.5, 1.0] {
            (area.tick_x(part, &nanoseconds(part * approximate(end))))
        }
        @for (at, ((_, of), values)) in designs.iter().zip(&all).enumerate() {
            @let point = |(ns, value): (&u64, &u64)| (
                approximate(*ns) / approximate(end),
                approximate(*value) / approximate(high),
            );
            @let points: Vec<_> = of.at_ns.iter().zip(values).map(point).collect();
            (curve(&area, &points, at, designs.len()))
        }
        @for (limit, name) in &limits {
            (area.limit(approximate(*limit) / approximate(high), &format!("{name}: {}", words(approximate(*limit)))))
        }
        (names_drawn)
    };
    drawing(area.bottom + BELOW + below, label, &content)
}

/// Draws in which stages the requests of each design spend their time.
pub(super) fn stages(designs: &[(&str, &Life)]) -> Markup {
    let longest = designs.iter().map(|(_, life)| life.total()).fold(0.0, f64::max).max(1e-9);
    let drawn: Vec<_> = designs.iter().map(|(name, _)| *name).collect();
    let rows = Rows::of(&drawn);
    let left = rows.left;
    let right = WIDTH - 8.0 * LETTER;
    let below = rows.bar(designs.len()) + 14.0;
    let names: Vec<_> =
        Life::default().parts().into_iter().map(|(stage, _)| stage.name()).collect();
    let content = html! {
        @for (at, (name, life)) in designs.iter().enumerate() {
            @let y = rows.bar(at);
            (rows.name(at, name))
            @let total = life.total();
            @for (nth, (from, ns)) in running(life).into_iter().enumerate() {
                @let (x, long) = (left + (right - left) * from / longest, (right - left) * ns / longest);
                @if long >= 0.3 {
                    rect class=(class("bar", "f", nth)) x=(number(x)) y=(number(y + 3.0)) height="20" width=(number(long)) {}
                    (hatched(x, y + 3.0, long, nth))
                }
            }
            text x=(number(left + (right - left) * total / longest + 6.0)) y=(number(y + 20.0)) { (nanoseconds(total)) }
        }
        @for (nth, name) in names.iter().enumerate() {
            @let (x, y) = (WIDTH / 2.0 * approximate((nth % 2) as u64), below + 28.0 * approximate((nth / 2) as u64));
            rect class=(class("bar", "f", nth)) x=(number(x)) y=(number(y)) height="14" width="24" {}
            (hatched(x, y, 24.0, nth))
            text x=(number(x + 32.0)) y=(number(y + 12.0)) { (name) }
        }
    };
    drawing(below + 84.0, "Mean time of a request in each stage", &content)
}

/// Returns where each stage begins, and how long it is.
fn running(life: &Life) -> Vec<(f64, f64)> {
    let mut from = 0.0;
    life.parts()
        .into_iter()
        .map(|(_, ns)| {
            let begin = from;
            from += ns;
            (begin, ns)
        })
        .collect()
}

/// Draws strokes over a bar, at distances that differ from stage to stage.
fn hatched(x: f64, y: f64, long: f64, nth: usize) -> Markup {
    const DISTANCES: [f64; 6] = [0.0, 6.0, 12.0, 20.0, 4.0, 9.0];
    let distance = DISTANCES[nth % DISTANCES.len()];
    let strokes = if distance > 0.0 { (long / distance).min(120.0) } else { 0.0 };
    let mut path = String::new();
    let mut at = distance;
    while at < long && approximate(path.len() as u64) < strokes * 24.0 {
        path += &format!(
            "M{} {}v12",
            number(x + at),
            number(y + if nth.is_multiple_of(2) { 0.0 } else { 4.0 })
        );
        at += distance;
    }
    html! { @if !path.is_empty() { path class="hatch" d=(path) {} } }
}

/// Returns the share of a stage in words, for the table below the drawing.
pub(super) fn share(ns: f64, total: f64) -> String {
    if ns < 0.5 {
        "-".to_owned()
    } else {
        format!("{} ({})", nanoseconds(ns), percent(100.0 * ns / total))
    }
}
