//! The certainty of an answer, in sentences.

use blockyard_answer::Answer;
use blockyard_answer::certainty::{
    ComparedFigure, Comparison, GoalsMet, Ranking, Rests, Seeds, Verdict,
};

/// Says what the figures of the device rest on.
pub(crate) fn rests(of: Rests) -> String {
    let Rests { fitted, stated, assumed, .. } = of;
    let all = fitted + stated + assumed;
    let parts =
        [(fitted, "fitted to measurements"), (stated, "from documents"), (assumed, "assumed")];
    let parts: Vec<_> = parts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    match all {
        0 => "No parameter of the device states its origin.".to_owned(),
        _ => format!("Of {all} device parameters: {}.", parts.join(", ")),
    }
}

/// Says what the runs are too short for, and what other seeds and other readings of the device
/// show.
///
/// `command` is the job for fio.
pub(crate) fn lines(answer: &Answer, command: &str) -> Vec<String> {
    let mut lines = answer.verdict.undecided.clone();
    if let (Some(seeds), Some(first)) = (&answer.seeds, answer.designs.first()) {
        lines.extend(with_seeds(seeds, &first.name, command));
        lines.extend(goals_met(&seeds.goals, seeds.count, "with", "seeds"));
    }
    match &answer.readings {
        Some(readings) => {
            let count = readings.count;
            let figures = answer.rests.varied;
            lines.push(format!(
                "With other values of {figures} assumed parameters, drawn together, in {count} {}:",
                readings_of(count)
            ));
            lines.extend(readings.ranking.iter().map(|pair| ranked(pair, count)));
            lines.extend(goals_met(&readings.goals, count, "in", readings_of(count)));
        }
        None if answer.verdict.unranked => {}
        None if answer.rests.varied > 0 && answer.designs.len() > 1 => lines.push(
            "The ranking was not tested against the assumed parameters; --readings 32 does that."
                .to_owned(),
        ),
        None => {}
    }
    lines
}

/// Says how each design compares with the `first` over all seeds, by IOPS and by p99.
fn with_seeds(seeds: &Seeds, first: &str, command: &str) -> Vec<String> {
    if seeds.all_alike {
        return vec![REPEATED.to_owned()];
    }
    let mut lines = Vec::new();
    for figure in [ComparedFigure::Iops, ComparedFigure::P99, ComparedFigure::Median] {
        let of_figure = seeds.comparisons.iter().filter(|one| one.figure == figure);
        let (equal, others): (Vec<_>, Vec<_>) =
            of_figure.partition(|one| one.verdict == Verdict::Equal);
        if equal.is_empty() && others.is_empty() {
            continue;
        }
        lines.push(format!(
            "{} against {first}, with {} seeds, in intervals of 95 %:",
            figure.name(),
            seeds.count
        ));
        lines.extend(others.into_iter().map(|one| compared(one, first, command)));
        if !equal.is_empty() {
            let within = if figure == ComparedFigure::Iops { "2 %" } else { "10 %" };
            let named: Vec<_> = equal.into_iter().map(subject).collect();
            lines.push(format!("Equal within {within}: {}.", named.join("; ")));
        }
    }
    lines
}

/// Says in how many of `count` runs each design meets the goals; nothing without goals.
fn goals_met(of: &[GoalsMet], count: u32, within: &str, runs: &str) -> Option<String> {
    let met = |GoalsMet { design, met }: &GoalsMet| format!("{design} {within} {met}");
    let all: Vec<_> = of.iter().map(met).collect();
    (!all.is_empty()).then(|| format!("Goals met, of {count} {runs}: {}.", all.join(", ")))
}

/// The sentence for a job and a device of which no seed changes anything.
const REPEATED: &str = "All seeds gave the same result: nothing in this job or device is random.";
const fn readings_of(count: u32) -> &'static str {
    if count == 1 { "reading" } else { "readings" }
}

/// Names the job and the design of a comparison.
fn subject(of: &Comparison) -> String {
    match of.job.as_str() {
        "" => of.design.clone(),
        job => format!("{job}, {}", of.design),
    }
}

fn compared(one: &Comparison, first: &str, command: &str) -> String {
    let Comparison { design, figure, ratio, verdict, .. } = one;
    let words = match (verdict, figure) {
        (Verdict::Faster, ComparedFigure::Iops) => "faster.".to_owned(),
        (Verdict::Slower, ComparedFigure::Iops) => "slower.".to_owned(),
        (Verdict::Undecided, ComparedFigure::Iops) => format!(
            "undecided. To decide, run on the device, under {first} and under {design}: {command}"
        ),
        (Verdict::Faster, _) => "shorter.".to_owned(),
        (Verdict::Slower, _) => "longer.".to_owned(),
        (Verdict::Equal, _) => "equal.".to_owned(),
        (Verdict::Undecided, _) => "undecided.".to_owned(),
    };
    format!("{}: {:.3} to {:.3}, {words}", subject(one), ratio.low, ratio.high)
}

fn ranked(pair: &Ranking, count: u32) -> String {
    let Ranking { job, figure, first, second, faster, equal, slower, decider, untested } = pair;
    let is_rate = *figure == ComparedFigure::Iops;
    let of_job = match (job.as_str(), is_rate) {
        ("", true) => String::new(),
        ("", false) => format!("{}: ", figure.name()),
        (job, true) => format!("{job}: "),
        (job, false) => format!("{job} {}: ", figure.name()),
    };
    let within = if is_rate { "2 %" } else { "10 %" };
    // A better rate is higher, and a better p99 is shorter.
    let better = if is_rate { '>' } else { '<' };
    let [up, down] = if is_rate { ["faster", "slower"] } else { ["shorter", "longer"] };
    if !untested.is_empty() {
        let have = if untested.len() == 1 { "has" } else { "have" };
        let keys = untested.join(", ");
        return format!(
            "{of_job}{first} = {second} within {within}, not tested: {keys} {have} no range."
        );
    }
    if *equal == count {
        let all = if count == 1 { "1 of" } else { "all" };
        return format!("{of_job}{first} = {second} within {within} in {all} {count}.");
    }
    // Three quarters of the readings call them equal: the rest shows how far they may be apart.
    if pair.is_mostly_equal() {
        let mut text = format!("{of_job}{first} = {second} within {within} in {equal} of {count}");
        for (count, how) in [(*faster, up), (*slower, down)] {
            if count > 0 {
                text += &format!(", {how} in {count}");
            }
        }
        return text + ".";
    }
    let mut text = format!("{of_job}{first} {better} {second} in {faster} of {count}");
    if *equal > 0 {
        text += &format!(", equal within {within} in {equal}");
    }
    if *slower > 0 {
        text += &format!(", {down} in {slower}");
    }
    if !pair.is_decided() {
        text += "; undecided: it depends on parameters that are only assumed";
        if let Some(decider) = decider {
            let [low, high] = &decider.range;
            let favours = if decider.more_favours_first { first } else { second };
            let key = &decider.key;
            // The ends of a range of words are words.
            let more = if low.starts_with(|first: char| first.is_ascii_lowercase()) {
                "later words favour"
            } else {
                "higher values favour"
            };
            text += &format!(", most on {key} ({low} to {high}; {more} {favours})");
        }
    }
    text + "."
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;
    use blockyard_answer::certainty::{Decider, Readings};
    use blockyard_sim::measure::Interval;

    #[test]
    fn what_figures_rest_on_is_a_sentence() {
        assert_eq!(
            rests(Rests { fitted: 0, stated: 0, assumed: 0, varied: 0 }),
            "No parameter of the device states its origin."
        );
        assert_eq!(
            rests(Rests { fitted: 0, stated: 1, assumed: 2, varied: 0 }),
            "Of 3 device parameters: 1 from documents, 2 assumed."
        );
    }

    fn compared_in(low: f64, high: f64) -> String {
        let ratio = Interval { low, mean: 1.0, high };
        let job = String::new();
        let design = "hsq".to_owned();
        let figure = ComparedFigure::Iops;
        let verdict = Verdict::of(figure, ratio);
        let one = Comparison { job, design, figure, ratio, verdict };
        compared(&one, "cqe", "fio job.fio")
    }

    #[test]
    fn an_undecided_answer_names_the_command_that_decides() {
        assert_eq!(compared_in(0.99, 1.01), "hsq: 0.990 to 1.010, equal.");
        assert_eq!(
            compared_in(0.9, 1.1),
            "hsq: 0.900 to 1.100, undecided. To decide, run on the device, under cqe and under hsq: fio job.fio"
        );
    }

    fn seeds(all_alike: bool, compared: &[(ComparedFigure, f64, f64)]) -> Seeds {
        let comparisons = compared.iter().map(|&(figure, low, high)| {
            let ratio = Interval { low, mean: low, high };
            let verdict = Verdict::of(figure, ratio);
            let job = "log".to_owned();
            let design = "hsq".to_owned();
            Comparison { job, design, figure, ratio, verdict }
        });
        Seeds { count: 8, all_alike, comparisons: comparisons.collect(), goals: Vec::new() }
    }

    fn told(all_alike: bool) -> String {
        let seeds = seeds(all_alike, &[(ComparedFigure::Iops, 1.0, 1.0)]);
        lines(&Answer { seeds: Some(seeds), ..samples::answer() }, "fio x").join("\n")
    }

    #[test]
    fn an_answer_says_so_if_no_seed_made_a_difference() {
        assert!(told(true).contains("All seeds gave the same result"), "{}", told(true));
        assert!(told(false).contains("Equal within 2 %: log, hsq."), "{}", told(false));
    }

    #[test]
    fn rates_and_tails_are_compared_apart() {
        let compared = [(ComparedFigure::Iops, 1.1, 1.2), (ComparedFigure::P99, 1.1001, 3.0)];
        assert_eq!(
            with_seeds(&seeds(false, &compared), "cqe", "fio x"),
            [
                "IOPS against cqe, with 8 seeds, in intervals of 95 %:",
                "log, hsq: 1.100 to 1.200, faster.",
                "p99 against cqe, with 8 seeds, in intervals of 95 %:",
                "log, hsq: 1.100 to 3.000, longer.",
            ]
        );
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
            figure: ComparedFigure::Iops,
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
            untested: Vec::new(),
        };
        assert_eq!(
            ranked(&pair, 32),
            "cqe > hsq in 19 of 32, equal within 2 % in 3, slower in 10; undecided: it depends on parameters \
             that are only assumed, most on card.read.access (50us to 200us; higher values favour hsq)."
        );
        let decided = Ranking { faster: 32, equal: 0, slower: 0, decider: None, ..pair.clone() };
        assert_eq!(ranked(&decided, 32), "cqe > hsq in 32 of 32.");
        let mostly = Ranking { faster: 1, equal: 24, slower: 7, decider: None, ..pair.clone() };
        assert_eq!(
            ranked(&mostly, 32),
            "cqe = hsq within 2 % in 24 of 32, faster in 1, slower in 7."
        );
        let equal = Ranking { faster: 0, equal: 32, slower: 0, decider: None, ..pair };
        let keys = |keys: &[&str]| keys.iter().map(|&key| key.to_owned()).collect();
        let untested = Ranking { untested: keys(&["cpu.run-delay"]), ..equal.clone() };
        assert_eq!(
            ranked(&untested, 32),
            "cqe = hsq within 2 %, not tested: cpu.run-delay has no range."
        );
        let two = Ranking { untested: keys(&["cpu.lock-lines", "cpu.tag"]), ..equal.clone() };
        assert_eq!(
            ranked(&two, 32),
            "cqe = hsq within 2 %, not tested: cpu.lock-lines, cpu.tag have no range."
        );
        assert_eq!(ranked(&equal, 32), "cqe = hsq within 2 % in all 32.");
    }
}
