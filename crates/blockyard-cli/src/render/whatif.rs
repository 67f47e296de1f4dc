//! The human-readable answer of `whatif`: the verdict first, then how sure it is, then why.

use blockyard_answer::sweep::Swept;
use blockyard_answer::{Answer, JobReason, Outcome};

use super::wrap::wrapped;
use super::{certainty, details, device, recipe, verdict};

/// How an answer is laid out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// The maximum length of lines.
    pub(crate) width: usize,
    /// Whether the tables about whole runs are shown.
    pub(crate) details: bool,
}

/// Formats `answer` with escape sequences for a terminal. `command` is the job for fio.
pub(crate) fn text(answer: &Answer, command: &str, layout: Layout) -> String {
    let Layout { width, details } = layout;
    let mut text = wrapped(&title(answer), width) + "\n";
    for sentence in findings(&answer.designs) {
        text += &(wrapped(&sentence, width) + "\n");
    }
    for sentence in goals(answer).iter().chain(&answer.verdict.sentences) {
        text += &(wrapped(sentence, width) + "\n");
    }
    text += &(wrapped(&certainty::rests(answer.rests), width) + "\n\n");
    text += &verdict::table(&answer.verdict, &answer.unsuited, width);
    if details {
        text += &format!("\n{}", details::text(answer, width));
    }
    let named: Vec<_> = answer.designs.iter().map(|of| (Some(of.name.as_str()), of)).collect();
    text += &device::findings(&named, width);
    text += &paragraph(&certainty::lines(answer, command), width);
    text += &paragraph(&why(answer), width);
    text += &recipe::text(&recipe::of_winner(answer), width);
    let more = if details { "" } else { "--details shows where requests spend their time. " };
    text + &wrapped(&format!("{more}`blockyard help columns` explains the columns."), width) + "\n"
}

/// Returns the job, the device with its file system if it has one, and the seed.
pub(crate) fn title(answer: &Answer) -> String {
    let Answer { job, device, seed, .. } = answer;
    match &answer.file_system {
        Some(on_disk) => format!("{job} on {device} with {}, seed {seed}", on_disk.name),
        None => format!("{job} on {device}, seed {seed}"),
    }
}

/// Says which designs meet the goals, and which values of a sweep are best.
pub(crate) fn goals(answer: &Answer) -> Vec<String> {
    let best = answer.sweep.as_ref().map_or_else(Vec::new, Swept::sentences);
    [answer.goal_sentences(), best].concat()
}

/// Lines after an empty line, if there are any.
fn paragraph(lines: &[String], width: usize) -> String {
    let lines: Vec<_> = lines.iter().map(|line| wrapped(line, width)).collect();
    if lines.is_empty() { String::new() } else { format!("\n{}\n", lines.join("\n")) }
}

/// Says which runs were stopped early, in which I/Os failed, how late those of a trace were, and
/// under which design control groups have no effect.
/// That one of several was interrupted, the verdict says.
pub(crate) fn findings(designs: &[Outcome]) -> Vec<String> {
    let said = designs.len() > 1 && designs.iter().any(Outcome::is_partial);
    let stopped = designs.iter().filter(|_| !said);
    let stopped = stopped.filter_map(|of| Some(of.stopped?.words(&of.name) + "."));
    let failed = designs.iter().filter_map(|of| {
        let errors: u64 = of.jobs.iter().map(|job| job.errors).sum();
        (errors > 0).then(|| format!("{}: {errors} I/Os failed.", of.name))
    });
    let late = designs.iter().filter_map(|of| Some(of.lateness()? + "."));
    let any_late = designs.iter().find_map(Outcome::lateness);
    let counted = any_late.map(|_| "Latencies count from the recorded instants.".to_owned());
    let unshared = designs.iter().filter_map(|of| Some(of.without_groups()? + "."));
    stopped.chain(failed).chain(late).chain(counted).chain(unshared).collect()
}

/// Returns the reason of each job that differs, and why the designs differ for all jobs together.
pub(crate) fn why(answer: &Answer) -> Vec<String> {
    let whole = match answer.why.strip_prefix("All designs") {
        _ if answer.verdict.rows.len() < 2 || answer.verdict.unranked => answer.why.clone(),
        Some(rest) => format!("All jobs together, all designs{rest}"),
        None => format!("All jobs together: {}", answer.why),
    };
    let whole = Some(whole).filter(|words| !words.is_empty());
    answer.reasons.iter().map(JobReason::sentence).chain(whole).collect()
}

#[cfg(test)]
mod tests {
    use blockyard_answer::{Cell, Row, Unsuited, Verdict};

    use super::super::samples::{answer, plain};
    use super::*;

    fn cell(design: &str, iops: f64, ratio: f64) -> Cell {
        Cell {
            design: design.to_owned(),
            ios: 100,
            iops,
            bytes_per_s: 1 << 20,
            mean_ns: 2_000,
            p50_ns: 1_000,
            p99_ns: 9_990_000,
            p99_within_ns: [9_990_000; 2],
            p99_9_ns: 99_900_000,
            max_ns: 999_000_000,
            ratio: Some(ratio),
            differs: false,
        }
    }

    fn row(job: &str, direction: &str) -> Row {
        Row {
            job: job.to_owned(),
            direction: direction.to_owned(),
            label: job.to_owned(),
            designs: vec![cell("legacy-deadline", 1234.0, 1.0), cell("cqe", 309.0, 0.25)],
        }
    }

    fn of(rows: Vec<Row>) -> Answer {
        let sentences = vec!["legacy-deadline is fastest.".to_owned()];
        let unsuited =
            vec![Unsuited { design: "hsq".to_owned(), why: "needs eMMC or SD".to_owned() }];
        Answer { verdict: Verdict { sentences, rows, ..Verdict::default() }, unsuited, ..answer() }
    }

    fn shown(answer: &Answer, width: usize, details: bool) -> String {
        plain(&text(answer, "fio seq.fio", Layout { width, details }))
    }

    #[test]
    fn the_verdict_comes_first_and_details_only_if_asked_for() {
        let answer = of(vec![row("log", "write"), row("reader", "read")]);
        let expected = "\
seq.fio on srp, seed 1
legacy-deadline is fastest.
Of 33 device parameters: 9 fitted to measurements, 4 from documents, 20 assumed.

                    IOPS  MiB/s      p50      p99     max  ratio
log, write
  legacy-deadline  1.23k   1.00  1.00 us  9.99 ms  999 ms   1.00
  cqe                309   1.00  1.00 us  9.99 ms  999 ms   0.25
reader, read
  legacy-deadline  1.23k   1.00  1.00 us  9.99 ms  999 ms   1.00
  cqe                309   1.00  1.00 us  9.99 ms  999 ms   0.25
hsq                n/a: needs eMMC or SD

The ranking was not tested against the assumed parameters; --readings 32 does
that.

All jobs together: mq-deadline-2017 reaches 26 % of legacy-deadline's IOPS.
--details shows where requests spend their time. `blockyard help columns`
explains the columns.
";
        assert_eq!(shown(&answer, 80, false), expected);
        let detailed = shown(&answer, 80, true);
        assert!(detailed.contains("\nDevice utilisation:\n"), "{detailed}");
        assert!(detailed.lines().all(|line| line.chars().count() <= 80), "{detailed}");
    }

    #[test]
    fn a_wide_terminal_has_more_columns() {
        let answer = of(vec![row("log", "write")]);
        let head = |width| {
            let text = shown(&answer, width, false);
            text.lines().find(|line| line.starts_with("design")).map(str::to_owned)
        };
        assert!(!head(80).is_some_and(|head| head.contains("p99.9")), "{:?}", head(80));
        assert!(head(120).is_some_and(|head| head.contains("p99.9") && head.contains("I/Os ")));
    }

    #[test]
    fn the_best_ratio_is_green_and_the_worst_red() {
        let layout = Layout { width: 80, details: false };
        let text = text(&of(vec![row("log", "write")]), "fio x", layout);
        assert!(
            text.contains("\u{1b}[32m1.00\u{1b}[0m") && text.contains("\u{1b}[31m0.25\u{1b}[0m")
        );
    }
}
