//! How sure an answer is, in sentences.

use blockyard_sim::answer::Answer;
use blockyard_sim::answer::certainty::{Comparison, GoalsMet, Ranking, Rests, Verdict};

/// Says what the figures of the device rest on.
pub(crate) fn rests(of: Rests) -> String {
    let Rests { fitted, stated, assumed, .. } = of;
    let all = fitted + stated + assumed;
    let parts =
        [(fitted, "fitted to measurements"), (stated, "stated by documents"), (assumed, "assumed")];
    let parts: Vec<_> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    match all {
        0 => "No figure of the device says where it comes from.".to_owned(),
        _ => format!("Of {all} figures of the device: {}.", parts.join(", ")),
    }
}

/// Says what other seeds and other readings of the device show.
///
/// `command` is the job for fio.
pub(crate) fn lines(answer: &Answer, command: &str) -> Vec<String> {
    let mut lines = Vec::new();
    if let (Some(seeds), Some(first)) = (&answer.seeds, answer.designs.first()) {
        lines.push(format!(
            "IOPS against {}, with {} seeds, in intervals of 95 %:",
            first.name, seeds.count
        ));
        lines.extend(seeds.comparisons.iter().map(|one| compared(one, &first.name, command)));
        if is_repeated(&seeds.comparisons) {
            lines.push(REPEATED.to_owned());
        }
        lines.extend(goals_met(&seeds.goals, seeds.count, "with", "seeds"));
    }
    match &answer.readings {
        Some(readings) => {
            let (count, figures) = (readings.count, answer.rests.varied);
            lines.push(format!(
                "With other values of {figures} assumed figures, all at once, in {count} {}:",
                readings_of(count)
            ));
            lines.extend(readings.ranking.iter().map(|pair| ranked(pair, count)));
            lines.extend(goals_met(&readings.goals, count, "in", readings_of(count)));
        }
        None if answer.verdict.unranked => {}
        None if answer.rests.varied > 0 && answer.designs.len() > 1 => lines.push(
            "No assumed figure was varied. --readings 32 says whether they decide the ranking."
                .to_owned(),
        ),
        None => {}
    }
    lines
}

/// Says in how many of `count` runs each design meets the goals; nothing without goals.
fn goals_met(of: &[GoalsMet], count: u32, within: &str, runs: &str) -> Option<String> {
    let met = |GoalsMet { design, met }: &GoalsMet| format!("{design} {within} {met}");
    let all: Vec<_> = of.iter().map(met).collect();
    (!all.is_empty()).then(|| format!("Goals met, of {count} {runs}: {}.", all.join(", ")))
}

/// What is said if no seed made a difference.
const REPEATED: &str = "All seeds gave the same result: nothing in this job and device is left to chance. A job draws the same \
                        offsets with every seed, as in fio, unless it has randrepeat=0.";

/// Whether every seed gave the same ratios. Means of equal numbers are equal but for their last digits.
#[expect(clippy::float_arithmetic, reason = "the width of an interval")]
fn is_repeated(comparisons: &[Comparison]) -> bool {
    let width = |one: &Comparison| one.ratio.high - one.ratio.low;
    !comparisons.is_empty() && comparisons.iter().all(|one| width(one).abs() < 1e-12)
}

const fn readings_of(count: u32) -> &'static str {
    if count == 1 { "reading" } else { "readings" }
}

fn compared(one: &Comparison, first: &str, command: &str) -> String {
    let Comparison { job, design, ratio, verdict } = one;
    let verdict = match verdict {
        Verdict::Faster => "faster".to_owned(),
        Verdict::Slower => "slower".to_owned(),
        Verdict::Equal => "equal within 2 %".to_owned(),
        Verdict::Undecided => {
            format!(
                "undecided. On the device, under {first} and under {design}, this decides: {command}"
            )
        }
    };
    let stop = if one.verdict == Verdict::Undecided { "" } else { "." };
    let of_job = if job.is_empty() { String::new() } else { format!("{job}, ") };
    format!("{of_job}{design}: {:.3} to {:.3}, {verdict}{stop}", ratio.low, ratio.high)
}

fn ranked(pair: &Ranking, count: u32) -> String {
    let Ranking { job, first, second, faster, equal, slower, decider } = pair;
    let of_job = if job.is_empty() { String::new() } else { format!("{job}: ") };
    if *equal == count {
        let all = if count == 1 { "1 of" } else { "all" };
        return format!("{of_job}{first} = {second} within 2 % in {all} {count}.");
    }
    // Three quarters of the readings call them equal: the rest shows how far they may be apart.
    if equal * 4 >= count * 3 {
        let mut text = format!("{of_job}{first} = {second} within 2 % in {equal} of {count}");
        for (count, how) in [(*faster, "faster"), (*slower, "slower")] {
            if count > 0 {
                text += &format!(", {how} in {count}");
            }
        }
        return text + ".";
    }
    let mut text = format!("{of_job}{first} > {second} in {faster} of {count}");
    for (count, how) in [(*equal, "equal within 2 %"), (*slower, "slower")] {
        if count > 0 {
            text += &format!(", {how} in {count}");
        }
    }
    if !pair.is_decided() {
        text += ": not decided by what is known of this device";
        if let Some(decider) = decider {
            let [low, high] = &decider.range;
            let favours = if decider.more_favours_first { first } else { second };
            let key = &decider.key;
            text +=
                &format!("; it depends most on {key} ({low} to {high}), more favours {favours}");
        }
    }
    text + "."
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;
    use blockyard_sim::answer::certainty::{Decider, Readings, Seeds};
    use blockyard_sim::measure::Interval;

    #[test]
    fn what_figures_rest_on_is_a_sentence() {
        let words = |fitted, stated, assumed| rests(Rests { fitted, stated, assumed, varied: 0 });
        assert_eq!(words(0, 0, 0), "No figure of the device says where it comes from.");
        assert_eq!(words(0, 1, 2), "Of 3 figures of the device: 1 stated by documents, 2 assumed.");
    }

    #[test]
    fn an_undecided_answer_names_the_command_that_decides() {
        let of = |low, high| {
            let ratio = Interval { low, mean: 1.0, high };
            let (job, design) = (String::new(), "hsq".to_owned());
            let one = Comparison { job, design, ratio, verdict: Verdict::of(ratio) };
            compared(&one, "cqe", "fio job.fio")
        };
        assert_eq!(of(0.99, 1.01), "hsq: 0.990 to 1.010, equal within 2 %.");
        assert_eq!(
            of(0.9, 1.1),
            "hsq: 0.900 to 1.100, undecided. On the device, under cqe and under hsq, this decides: fio job.fio"
        );
    }

    #[test]
    fn an_answer_says_so_if_no_seed_made_a_difference() {
        let lines_of = |intervals: &[(f64, f64)]| {
            let compared = intervals.iter().map(|&(low, high)| {
                let ratio = Interval { low, mean: low, high };
                let (job, design) = (String::new(), "hsq".to_owned());
                Comparison { job, design, ratio, verdict: Verdict::of(ratio) }
            });
            let seeds = Seeds { count: 3, comparisons: compared.collect(), goals: Vec::new() };
            lines(&Answer { seeds: Some(seeds), ..samples::answer() }, "fio x").join("\n")
        };
        let repeated = |intervals: &[(f64, f64)]| lines_of(intervals).contains("randrepeat=0");
        assert!(repeated(&[(0.9, 0.9), (1.1, 1.1 + 1e-15)]));
        assert!(!repeated(&[(0.9, 0.9), (1.1, 1.2)]));
        assert!(!repeated(&[]), "a single design is compared with nothing");
    }

    #[test]
    fn one_reading_is_no_plural() {
        let readings = |count| {
            let readings = Readings { count, ranking: Vec::new(), goals: Vec::new() };
            lines(&Answer { readings: Some(readings), ..samples::answer() }, "fio x").join("\n")
        };
        assert!(readings(1).contains(" in 1 reading:"), "{}", readings(1));
        assert!(readings(2).contains(" in 2 readings:"), "{}", readings(2));
    }

    #[test]
    fn a_ranking_that_depends_on_a_figure_names_it() {
        let pair = Ranking {
            job: String::new(),
            first: "cqe".to_owned(),
            second: "hsq".to_owned(),
            faster: 19,
            equal: 3,
            slower: 10,
            decider: Some(Decider {
                key: "card.read.access".to_owned(),
                range: ["50us".to_owned(), "200us".to_owned()],
                more_favours_first: false,
            }),
        };
        assert_eq!(
            ranked(&pair, 32),
            "cqe > hsq in 19 of 32, equal within 2 % in 3, slower in 10: not decided by what is known of \
             this device; it depends most on card.read.access (50us to 200us), more favours hsq."
        );
        let decided = Ranking { faster: 32, equal: 0, slower: 0, decider: None, ..pair.clone() };
        assert_eq!(ranked(&decided, 32), "cqe > hsq in 32 of 32.");
        let mostly = Ranking { faster: 1, equal: 24, slower: 7, decider: None, ..pair.clone() };
        assert_eq!(
            ranked(&mostly, 32),
            "cqe = hsq within 2 % in 24 of 32, faster in 1, slower in 7."
        );
        let equal = Ranking { faster: 0, equal: 32, slower: 0, decider: None, ..pair };
        assert_eq!(ranked(&equal, 32), "cqe = hsq within 2 % in all 32.");
    }
}
