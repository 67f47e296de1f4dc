//! A sample of faults, and the tests that run with each of them, stage by stage.

use crate::area::{AREAS, Area};
use crate::copy::{Copy, Program};
use crate::fault::Fault;
use crate::run::{Measured, Outcome, measure, parallel};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// The stages. A fault that one of them catches is not seen by the next.
pub const STAGES: [&str; 4] = ["unit", "package", "dependents", "swarm"];

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
pub struct Candidate {
    /// The index of its area.
    pub area: usize,
    /// The fault.
    pub fault: Fault,
    /// What is known of it.
    pub verdict: Verdict,
    /// Whether any test reaches it.
    pub reached: bool,
}

/// The sample and its build.
pub struct Session {
    copy: Copy,
    /// Every fault of the sample; its index is its number in the copy.
    pub candidates: Vec<Candidate>,
    measured: Vec<Measured>,
}

/// Whether the programs of a package run in a stage of an area.
fn takes(stage: usize, area: &Area, package: &str) -> bool {
    let (own, dependent) = (area.package == package, area.dependents.contains(&package));
    [own, own, dependent, own || dependent][stage]
}

/// Whether a program runs in a stage of an area.
fn runs(stage: usize, area: &Area, program: &Program) -> bool {
    let (unit, swarm) =
        (program.name == program.package.replace('-', "_"), program.name.starts_with("swarm"));
    takes(stage, area, &program.package) && [unit, !unit && !swarm, !swarm, swarm][stage]
}

impl Session {
    /// Builds the unit tests with the samples of all areas, and keeps `wanted` faults of each that compile.
    #[must_use]
    pub fn new(copy: Copy, samples: Vec<Vec<Fault>>, wanted: usize) -> Self {
        let samples = samples.into_iter().enumerate();
        let candidates = samples.flat_map(|(area, faults)| {
            let verdict = Verdict::Alive;
            faults.into_iter().map(move |fault| Candidate { area, fault, verdict, reached: false })
        });
        let mut session = Self { copy, candidates: candidates.collect(), measured: vec![] };
        session.build(0);
        for area in 0..AREAS.len() {
            let compiled = session.candidates.iter_mut().filter(|one| one.area == area);
            let compiled = compiled.filter(|one| one.verdict == Verdict::Alive);
            compiled.skip(wanted).for_each(|one| one.verdict = Verdict::Spare);
        }
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

    /// Builds the programs of a stage; faults that do not compile are removed until the others do.
    fn build(&mut self, stage: usize) -> Vec<Program> {
        let mut packages = BTreeSet::new();
        let alive = AREAS.iter().enumerate().filter(|(at, _)| !self.alive(*at).is_empty());
        for (_, area) in alive {
            let candidates = [area.package].into_iter().chain(area.dependents.iter().copied());
            packages.extend(candidates.filter(|package| takes(stage, area, package)));
        }
        if packages.is_empty() {
            return vec![];
        }
        let targets = if stage == 0 { "--lib" } else { "--tests" };
        loop {
            let all = self.candidates.iter().enumerate();
            let planted: BTreeMap<_, _> = all
                .filter(|(_, one)| one.verdict != Verdict::DoesNotCompile)
                .map(|(at, one)| (at, &one.fault))
                .collect();
            match self.copy.build(&planted, &packages, targets) {
                Ok(programs) => return programs,
                Err(broken) => {
                    for at in broken {
                        self.candidates[at].verdict = Verdict::DoesNotCompile;
                    }
                }
            }
        }
    }

    /// Runs a stage for every fault that is still alive.
    pub fn stage(&mut self, stage: usize) {
        let start = Instant::now();
        let programs = self.build(stage);
        let built = start.elapsed().as_secs();
        let new = |program: &Program| {
            let area = |(at, area): (usize, &Area)| {
                runs(stage, area, program) && !self.alive(at).is_empty()
            };
            AREAS.iter().enumerate().any(area)
                && self.measured.iter().all(|known| known.program.path != program.path)
        };
        let programs: Vec<_> = programs.into_iter().filter(new).collect();
        self.measured.extend(parallel(&programs, measure));
        self.measured.sort_by_key(|program| program.time);
        let measured = start.elapsed().as_secs() - built;
        let alive: Vec<_> = (0..AREAS.len()).flat_map(|area| self.alive(area)).collect();
        let results = parallel(&alive, |at| self.run(stage, *at));
        for (at, (reached, verdict)) in alive.iter().zip(results) {
            let candidate = &mut self.candidates[*at];
            candidate.reached |= reached;
            candidate.verdict = verdict;
        }
        let rest =
            alive.iter().filter(|at| self.candidates[**at].verdict == Verdict::Alive).count();
        println!(
            "{}: {} of {} faults alive; built in {built} s, {} programs without a fault in {measured} s, \
             with faults in {} s",
            STAGES[stage],
            rest,
            alive.len(),
            programs.len(),
            start.elapsed().as_secs() - built - measured,
        );
    }

    /// Runs the programs of a stage that reach a fault, the quickest first, until one fails.
    fn run(&self, stage: usize, number: usize) -> (bool, Verdict) {
        let area = &AREAS[self.candidates[number].area];
        let mut reached = false;
        for program in &self.measured {
            if runs(stage, area, &program.program) && program.reached.contains(&number) {
                reached = true;
                let outcome = program.with(number);
                if outcome != Outcome::Passed {
                    return (true, Verdict::Caught(stage, outcome));
                }
            }
        }
        (reached, Verdict::Alive)
    }
}
