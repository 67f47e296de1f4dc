//! The sections of a page.

use blockyard_text::number::{approximate, count, digits, nanoseconds, size, time};

use crate::render::verdict::rate;
use blockyard_answer::{Figures, JobFigures, Latency, Life, Row, Stream, Unsuited, Verdict};
use blockyard_sim::measure::series::Series;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::charts::{OverTime, bars, latencies, over_time, share, stages};

const STYLE: &str = include_str!("page.css");
/// The hash of [`STYLE`], which a browser compares.
const STYLE_HASH: &str = "sha256-pR4Zp2ZvEZYwaXIJAmnEPr1nTBunJF2SSyUseTKa7m8=";
/// The number of jobs that have charts. The table has all.
const CHARTED_MAX: usize = 8;
/// The number of points of all curves of latencies together. It bounds the size of the page.
const POINTS_MAX: usize = 6000;
/// The length of a text in bytes beyond which the rest is left out.
const TEXT_MAX: usize = 16 << 10;
/// The length of all texts together.
const TEXTS_MAX: usize = 64 << 10;

/// What a page, or a part of it, shows.
pub(crate) struct Page<'a> {
    /// The heading.
    pub(crate) title: String,
    /// The command that made the answer; empty in all parts of a page but the last.
    pub(crate) command: String,
    /// Which runs were stopped early, and in which I/Os failed.
    pub(crate) findings: Vec<String>,
    pub(crate) verdict: &'a Verdict,
    pub(crate) goals: Vec<String>,
    pub(crate) unsuited: &'a [Unsuited],
    pub(crate) designs: Vec<Shown<'a>>,
    /// Why the designs differ; empty if it is not known.
    pub(crate) why: Vec<String>,
    /// How to give a disk the values of the winner, in lines; empty if there is nothing to set.
    pub(crate) recipe: Vec<String>,
    /// How sure the answer is, in sentences.
    pub(crate) trust: Vec<String>,
    /// The job, the device and the designs, with their headings.
    pub(crate) texts: Vec<(String, String)>,
}

/// A run.
pub(crate) struct Shown<'a> {
    pub(crate) name: &'a str,
    pub(crate) jobs: &'a [JobFigures],
    pub(crate) series: &'a Series,
    /// The figures of the whole run; a saved answer has none here.
    pub(crate) figures: Option<&'a Figures>,
}

/// Returns a page with `parts`, one below the other, as a file. The first names the page.
pub(crate) fn page(parts: &[Page<'_>]) -> String {
    debug_assert!(!parts.is_empty(), "a page must show something");
    let title = parts.first().map_or("", |first| first.title.as_str());
    let points_max = POINTS_MAX / parts.len().max(1);
    let policy = format!(
        "default-src 'none'; style-src '{STYLE_HASH}'; base-uri 'none'; form-action 'none'"
    );
    let whole = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { main { @for part in parts { (sections(part, points_max)) } } }
        }
    };
    whole.into_string()
}

fn sections(of: &Page<'_>, points_max: usize) -> Markup {
    html! {
        h1 { (of.title) }
        @for sentence in &of.findings { p class="lead" { (sentence) } }
        @for sentence in &of.goals { p class="lead" { (sentence) } }
        @for (at, sentence) in of.verdict.sentences.iter().enumerate() {
            p class=[(at == 0).then_some("lead")] { (sentence) }
        }
        h2 { "Each job under each design" }
        (verdict(of.verdict, of.unsuited))
        @if !of.verdict.unranked { (reached(of.verdict)) }
        @if !of.trust.is_empty() { h2 { "Certainty" } }
        @for sentence in &of.trust { p { (sentence) } }
        (curves(of, points_max))
        (time_and_stages(of))
        @if !of.why.is_empty() { h2 { "Why" } @for sentence in &of.why { p { (sentence) } } }
        @if !of.recipe.is_empty() {
            h2 { "Setting the winner" }
            pre tabindex="0" { (of.recipe.join("\n")) }
        }
        @if !of.command.is_empty() {
            h2 { "Origin of this page" }
            pre tabindex="0" { (of.command) }
            (texts(&of.texts))
            p class="dim" { "blockyard " (env!("CARGO_PKG_VERSION")) ": modelled devices in virtual time." }
        }
    }
}

/// Draws what each design reaches for each job.
fn reached(verdict: &Verdict) -> Markup {
    html! {
        @for row in verdict.rows.iter().take(CHARTED_MAX) {
            h3 { (row.job) ", " (row.direction) }
            (bars(row))
        }
        (left_out(verdict.rows.len()))
    }
}

fn left_out(rows: usize) -> Markup {
    html! {
        @if rows > CHARTED_MAX {
            p class="dim" { "The first " (CHARTED_MAX) " of " (rows) " jobs and directions have charts." }
        }
    }
}

fn verdict(verdict: &Verdict, unsuited: &[Unsuited]) -> Markup {
    html! {
        div class="wide" tabindex="0" {
            table {
                thead { tr {
                    th scope="col" { "design" }
                    @for name in ["I/Os", "IOPS", "MiB/s", "mean", "p50", "p99", "p99.9", "max", "ratio"] {
                        th scope="col" { (name) }
                    }
                } }
                tbody {
                    @for row in &verdict.rows { (rows(row)) }
                    @for Unsuited { design, why } in unsuited {
                        tr { th scope="row" { (design) } td class="words" colspan="9" { "n/a: " (why) } }
                    }
                }
            }
        }
    }
}

fn rows(row: &Row) -> Markup {
    html! {
        tr class="head" { th scope="rowgroup" colspan="10" { (row.job) ", " (row.direction) } }
        @for cell in &row.designs {
            tr {
                th scope="row" { (cell.design) }
                td { (count(approximate(cell.ios))) }
                td { (count(cell.iops)) }
                td { (rate(cell)) }
                @for ns in [cell.mean_ns, cell.p50_ns, cell.p99_ns, cell.p99_9_ns, cell.max_ns] {
                    td { (time(ns)) }
                }
                td { (digits(cell.ratio.unwrap_or(f64::NAN))) }
            }
        }
    }
}

/// Draws the latencies of each job, with about `points_max` points in all.
fn curves(of: &Page<'_>, points_max: usize) -> Markup {
    let streams: Vec<_> = of.designs.iter().map(|design| Stream::all(design.jobs)).collect();
    let charted = of.verdict.rows.len().min(CHARTED_MAX);
    let points_max = (points_max / (charted * of.designs.len()).max(1)).clamp(24, 200);
    html! {
        h2 { "Latency" }
        p class="dim" {
            "The share of I/Os that took at most that long. Each step up leaves a tenth of the I/Os of the step below, so the \
             tail is as visible as the rest."
        }
        @for row in of.verdict.rows.iter().take(CHARTED_MAX) {
            @let found = |at: usize| streams[at].iter().find(|of| of.job == row.job && of.direction.name() == row.direction);
            @let all: Vec<(&str, &Latency)> = (0..streams.len())
                .filter_map(|at| Some((of.designs[at].name, &found(at)?.figures.lat_ns)))
                .collect();
            h3 { (row.job) ", " (row.direction) }
            (latencies(&format!("{}, {}", row.job, row.direction), &all, points_max))
        }
    }
}

fn time_and_stages(of: &Page<'_>) -> Markup {
    let series: Vec<_> = of.designs.iter().map(|design| (design.name, design.series)).collect();
    let figures: Vec<_> =
        of.designs.iter().filter_map(|design| Some((design.name, design.figures?))).collect();
    let lives: Vec<(&str, &Life)> = figures.iter().map(|(name, of)| (*name, &of.life_ns)).collect();
    html! {
        h2 { "Over time" }
        h3 { "IOPS, all jobs together" }
        (over_time(&series, &OverTime {
            label: "IOPS over time",
            value: |of, at| [&of.read, &of.write, &of.trim].into_iter().filter_map(|of| of.iops.get(at)).sum(),
            words: count,
            limits: &[],
        }))
        h3 { "I/Os that jobs have in flight" }
        (over_time(&series, &OverTime {
            label: "I/Os in flight over time",
            value: |of, at| of.depth.get(at).copied().unwrap_or_default(),
            words: count,
            limits: &[],
        }))
        @if series.iter().any(|(_, of)| !of.dirty_bytes.is_empty()) {
            h3 { "Dirty memory" }
            (over_time(&series, &OverTime {
                label: "Dirty memory over time",
                value: |of, at| of.dirty_bytes.get(at).copied().unwrap_or_default(),
                words: size,
                limits: &dirty_limits(&figures),
            }))
        }
        @if !figures.is_empty() {
            h2 { "Where requests spend their time" }
            (stages(&lives))
            (stage_table(&lives))
            h2 { "Work of the device" }
            (device(&figures))
        }
    }
}

/// Returns the limits on dirty pages, with their names.
fn dirty_limits(figures: &[(&str, &Figures)]) -> Vec<(u64, &'static str)> {
    let first = figures.iter().find_map(|(_, of)| of.buffered);
    let limits = first.map(|of| {
        [
            (of.background_limit_bytes, "written back above"),
            (of.hard_limit_bytes, "writers stay below"),
        ]
    });
    limits.into_iter().flatten().collect()
}

fn stage_table(lives: &[(&str, &Life)]) -> Markup {
    let heads: Vec<_> =
        Life::default().parts().into_iter().map(|(stage, _)| stage.name()).collect();
    html! {
        div class="wide" tabindex="0" { table {
            thead { tr { th scope="col" { "design" } th scope="col" { "total" } @for head in heads { th scope="col" { (head) } } } }
            tbody { @for (name, life) in lives { tr {
                th scope="row" { (name) }
                td { (nanoseconds(life.total())) }
                @for (_, ns) in life.parts() { td { (share(ns, life.total())) } }
            } } }
        } }
    }
}

fn device(designs: &[(&str, &Figures)]) -> Markup {
    html! {
        div class="wide" tabindex="0" { table {
            thead { tr {
                th scope="col" { "design" }
                @for head in ["commands", "I/Os/cmd", "at the device", "busy %", "mean gap", "CPU %", "wakes/I/O"] {
                    th scope="col" { (head) }
                }
            } }
            tbody { @for (name, of) in designs { tr {
                th scope="row" { (name) }
                td { (count(approximate(of.commands))) }
                td { (digits(of.ios_per_command)) }
                td { (digits(of.at_device)) }
                td { (digits(of.device_busy_percent)) }
                td { (time(of.mean_idle_gap_ns)) }
                td { (digits(of.cpu_percent)) }
                td { (digits(of.wakeups_per_io)) }
            } } }
        } }
    }
}

fn texts(texts: &[(String, String)]) -> Markup {
    let mut left = TEXTS_MAX;
    let mut shown = Vec::new();
    for (name, text) in texts {
        let part = cut(text, TEXT_MAX.min(left));
        left -= part.len();
        shown.push((name, part, text.len() - part.len()));
    }
    html! {
        @for (name, part, rest) in shown {
            details {
                summary { (name) }
                pre tabindex="0" { (part) @if rest > 0 { "\n... " (rest) " more bytes" } }
            }
        }
    }
}

/// Returns at most `most` bytes of `text`.
fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use ring::digest::{SHA256, digest};

    use super::*;

    #[test]
    fn the_policy_allows_the_style_sheet() {
        let hash = STANDARD.encode(digest(&SHA256, STYLE.as_bytes()));
        assert_eq!(STYLE_HASH, format!("sha256-{hash}"));
    }

    #[test]
    fn a_text_is_cut_between_letters() {
        assert_eq!((cut("aäb", 2), cut("aäb", 3), cut("aäb", 9)), ("a", "aä", "aäb"));
    }
}
