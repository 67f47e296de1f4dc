//! A sample of faults, and the tests that run with each of them, stage by stage.

use crate::mutants::area::{AREAS, Area};
use crate::mutants::copy::Copy;
use crate::mutants::fault::Fault;
use crate::mutants::run::{Measured, Outcome, measure, parallel, tests};
use std::collections::BTreeMap;
use std::time::Instant;

/// The stages. A fault that one of them catches is not seen by the next.
pub(crate) const STAGES: [&str; 3] = ["unit", "package", "swarm"];

/// What is known of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No test caught it so far.
    Alive,
    /// A test of this stage failed, or hung.
    Caught(usize, Outcome),
    /// The compiler refuses it.
    DoesNotCompile,
    /// It stands in for one that does not compile, and was not needed.
    Spare,
}

/// A fault of a sample.
pub(crate) struct Candidate {
    /// The index of its area.
    pub area: usize,
    /// The fault.
    pub fault: Fault,
    /// What is known of it.
    pub verdict: Verdict,
    /// Whether any test reaches it.
    pub(crate) reached: bool,
}

/// The sample and its build.
pub(crate) struct Session {
    copy: Copy,
    /// Every fault of the sample; its index is its number in the copy.
    pub(crate) candidates: Vec<Candidate>,
}

/// The arguments of cargo for the test programs of a stage of an area.
fn programs(stage: usize, area: &Area) -> Vec<&'static str> {
    let of_stage = match stage.checked_sub(1) {
        None => Some((area.package, "--lib")),
        Some(at) => area.tests.get(at).copied(),
    };
    of_stage.map_or_else(Vec::new, |(package, targets)| {
        vec!["test", "--no-run", "-p", package, targets]
    })
}

impl Session {
    /// Plants `samples` of areas, and keeps `wanted` faults of each that compile.
    #[must_use]
    pub(crate) fn new(copy: Copy, samples: Vec<(usize, Vec<Fault>)>, wanted: usize) -> Self {
        let candidates = samples.into_iter().flat_map(|(area, faults)| {
            let verdict = Verdict::Alive;
            faults.into_iter().map(move |fault| Candidate { area, fault, verdict, reached: false })
        });
        let mut session = Self { copy, candidates: candidates.collect() };
        let start = Instant::now();
        session.plant();
        for area in 0..AREAS.len() {
            for at in session.alive(area).into_iter().skip(wanted) {
                session.candidates[at].verdict = Verdict::Spare;
            }
        }
        println!("planted in {} s", start.elapsed().as_secs());
        session
    }

    /// The numbers of an area's faults that no test caught.
    fn alive(&self, area: usize) -> Vec<usize> {
        let alive = |at: &usize| {
            let one = &self.candidates[*at];
            one.area == area && one.verdict == Verdict::Alive
        };
        (0..self.candidates.len()).filter(alive).collect()
    }

    /// Plants the faults, and removes those that do not compile until the others do.
    fn plant(&mut self) {
        loop {
            let all = self.candidates.iter().enumerate();
            let compiles = all.filter(|(_, one)| one.verdict != Verdict::DoesNotCompile);
            let planted = self.copy.plant(&compiles.map(|(at, one)| (at, &one.fault)).collect());
            let libraries = AREAS.iter().flat_map(|area| ["-p", area.package]);
            let arguments: Vec<_> = ["check", "--lib"].into_iter().chain(libraries).collect();
            let Err(broken) = self.copy.cargo(&planted, &arguments) else { return };
            for at in broken {
                self.candidates[at].verdict = Verdict::DoesNotCompile;
            }
        }
    }

    /// Runs a stage for every fault that is still alive.
    pub(crate) fn stage(&mut self, stage: usize) {
        for (at, area) in AREAS.iter().enumerate() {
            let alive = self.alive(at);
            let arguments = programs(stage, area);
            if !alive.is_empty() && !arguments.is_empty() {
                print!("{} of {}: ", STAGES[stage], area.name);
                self.run(stage, &alive, &arguments);
            }
        }
    }

    /// Runs the programs that `arguments` of cargo select for the faults `alive`.
    fn run(&mut self, stage: usize, alive: &[usize], arguments: &[&str]) {
        let start = Instant::now();
        let programs = self.copy.cargo(&BTreeMap::new(), arguments).expect("faults that compile");
        let built = start.elapsed().as_secs();
        let tests: Vec<_> = programs
            .iter()
            .flat_map(|program| tests(program).into_iter().map(move |test| (program, test)))
            .collect();
        let mut measured = parallel(&tests, |(program, test)| measure(program, test));
        measured.sort_by_key(|test| test.time);
        let without = start.elapsed().as_secs() - built;
        let results = parallel(alive, |at| try_fault(&measured, *at));
        let mut rest = 0;
        for (at, (reached, outcome)) in alive.iter().zip(results) {
            let candidate = &mut self.candidates[*at];
            candidate.reached |= reached;
            match outcome {
                Outcome::Passed => rest += 1,
                outcome => candidate.verdict = Verdict::Caught(stage, outcome),
            }
        }
        println!(
            "{rest} of {} faults alive; {} programs built in {built} s, {} tests without a fault in \
             {without} s, with faults in {} s",
            alive.len(),
            programs.len(),
            tests.len(),
            start.elapsed().as_secs() - built - without,
        );
    }
}

/// Runs the tests that reach a fault, the quickest first, until one fails; also returns whether any
/// reaches it.
fn try_fault(tests: &[Measured], fault: usize) -> (bool, Outcome) {
    let reaching: Vec<_> = tests.iter().filter(|test| test.reached.contains(&fault)).collect();
    let outcomes = reaching.iter().map(|test| test.with(fault));
    let caught = outcomes.into_iter().find(|outcome| *outcome != Outcome::Passed);
    (!reaching.is_empty(), caught.unwrap_or(Outcome::Passed))
}
