//! Verdicts that rank nothing: on runs of which one was interrupted, because rates and latencies of
//! different spans of virtual time are no comparison, and on runs without a counterpart.
//!
//! A run is not cut back to the span of the shortest: its counts and histograms are those of its
//! end.

use super::{Verdict, listed};
use crate::outcome::Stop;
use blockyard_text::number::time;

impl Verdict {
    /// Returns the verdict without a ranking if one of several `runs` was interrupted. Each is
    /// given by its name and its stop.
    pub(crate) fn unless_partial(self, runs: &[(&str, Option<Stop>)]) -> Self {
        let is_partial = |(_, stop): &(&str, Option<Stop>)| stop.is_some_and(Stop::is_partial);
        if runs.len() < 2 || !runs.iter().any(is_partial) {
            return self;
        }
        let reached = |(name, stop): &(&str, Option<Stop>)| match stop {
            Some(stop) => format!("{name} {}", time(stop.span_ns)),
            None => format!("{name} to its end"),
        };
        let reached: Vec<_> = runs.iter().map(reached).collect();
        let reached: Vec<_> = reached.iter().map(String::as_str).collect();
        self.not_ranked(format!(
            "Interrupted: the designs are not ranked, because they ran for different virtual times: {}. The figures are partial.",
            listed(&reached)
        ))
    }

    /// Returns the verdict on designs, called `names`, that have no counterpart in the other of two
    /// answers.
    pub(crate) fn without_counterpart(self, names: &[&str]) -> Self {
        let has = if names.len() == 1 { "has" } else { "have" };
        self.not_ranked(format!("{} {has} no counterpart in the other answer.", listed(names)))
    }

    /// Returns the verdict with this sentence in place of a ranking.
    pub(super) fn not_ranked(mut self, sentence: String) -> Self {
        self.sentences = vec![sentence];
        self.undecided.clear();
        for cell in self.rows.iter_mut().flat_map(|row| &mut row.designs) {
            cell.ratio = None;
            cell.differs = false;
        }
        self.unranked = true;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Cell, Row};
    use super::*;
    use blockyard_sim::simulate::Stopped;

    fn cell(design: &str, iops: f64, ratio: f64) -> Cell {
        Cell {
            design: design.to_owned(),
            ios: 9,
            iops,
            bytes_per_s: 0,
            mean_ns: 0,
            p50_ns: 0,
            p99_ns: 0,
            p99_within_ns: [0; 2],
            p99_9_ns: 0,
            max_ns: 0,
            ratio: Some(ratio),
            differs: true,
        }
    }

    fn verdict() -> Verdict {
        let row = Row {
            job: "db".to_owned(),
            direction: "read".to_owned(),
            label: String::new(),
            designs: vec![cell("a", 100.0, 1.0), cell("b", 257.0, 2.57)],
        };
        let sentences = vec!["b is fastest.".to_owned()];
        Verdict { sentences, rows: vec![row], ..Verdict::default() }
    }

    const CUT: Stop = Stop { why: Stopped::Interrupted, span_ns: 39_000_000 };
    const STEADY: Stop = Stop { why: Stopped::Steady, span_ns: 9_000_000_000 };

    /// Ctrl-C once ranked a run of 39 ms above one of 1.52 s, where whole runs are equal.
    #[test]
    fn interrupted_runs_are_not_ranked_and_say_how_far_they_got() {
        let long = Stop { span_ns: 1_520_000_000, ..CUT };
        let of = verdict().unless_partial(&[("a", Some(long)), ("b", Some(CUT))]);
        assert_eq!(
            of.sentences,
            [
                "Interrupted: the designs are not ranked, because they ran for different virtual times: \
                 a 1.52 s and b 39.0 ms. The figures are partial."
            ]
        );
        assert!(
            of.unranked && of.rows[0].designs.iter().all(|cell| cell.ratio.is_none()),
            "{of:?}"
        );
        assert!(of.rows[0].designs.iter().all(|cell| cell.iops > 0.0), "the figures stay: {of:?}");
        let one = verdict().unless_partial(&[("a", None), ("b", Some(CUT))]);
        assert!(one.sentences[0].contains("a to its end and b 39.0 ms"), "{one:?}");
    }

    /// The words went to the first sentence, which told of the ramp time or of the interruption.
    #[test]
    fn only_a_sentence_on_the_fastest_is_qualified() {
        let mut of = verdict().unless_partial(&[("a", None), ("b", Some(CUT))]);
        let before = of.clone();
        of.qualify_fastest("most readings say otherwise");
        assert_eq!(of, before);
        let mut of = verdict();
        of.sentences.insert(0, "db ended before the ramp time was over.".to_owned());
        of.qualify_fastest("most readings say otherwise");
        assert_eq!(of.sentences[1], "b is fastest; most readings say otherwise.");
    }

    #[test]
    fn whole_runs_runs_of_known_rates_and_lone_runs_keep_their_verdict() {
        for runs in [
            &[("a", None), ("b", None)][..],
            &[("a", Some(STEADY)), ("b", None)],
            &[("a", Some(CUT))],
        ] {
            assert_eq!(verdict().unless_partial(runs), verdict());
        }
    }
}
