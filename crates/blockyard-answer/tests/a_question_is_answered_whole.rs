//! The way from a question to an answer: first runs, goals, repetitions, and an observer that ends
//! them early.

use blockyard_answer::certainty::{Demands, NoAnswer, Question, Watch};
use blockyard_answer::goal::Goal;
use blockyard_answer::{Answer, whatif};
use blockyard_devices::profile::{Design, Device, Override, ProfileError};
use blockyard_fio::job::{JobFile, NoSource, parse_args};
use blockyard_sim::simulate::Conditions;
use core::sync::atomic::{AtomicUsize, Ordering};

const DEVICE: &str = "emmc-hs200";

/// Counts what it is told, and interrupts after so many repeated runs.
#[derive(Default)]
struct Counting {
    first: AtomicUsize,
    announced: AtomicUsize,
    repeated: AtomicUsize,
    interrupts_after: Option<usize>,
    /// Figures of the device that have other values in all readings.
    overrides: Vec<Override>,
}

impl Watch for Counting {
    type Error = ProfileError;

    fn readings(&self, values: &[Override], count: u32) -> Result<Vec<Device>, ProfileError> {
        let set: Vec<_> = self.overrides.iter().chain(values).cloned().collect();
        Device::readings(DEVICE, &set, 1, count)
    }

    fn on_first_runs(&self, answer: &Answer) -> Result<(), ProfileError> {
        self.first.fetch_add(answer.designs.len(), Ordering::Relaxed);
        Ok(())
    }

    fn on_repetition(&self, runs: usize) {
        self.announced.fetch_add(runs, Ordering::Relaxed);
    }

    fn on_repeated_run(&self) {
        self.repeated.fetch_add(1, Ordering::Relaxed);
    }

    fn is_interrupted(&self) -> bool {
        self.interrupts_after.is_some_and(|runs| self.repeated.load(Ordering::Relaxed) >= runs)
    }
}

fn jobs() -> JobFile {
    let job = "--name=x --rw=randread --bs=4k --direct=1 --ioengine=libaio --iodepth=8 --size=1m";
    parse_args(job.split(' '), &NoSource).unwrap()
}

/// Answers the question with `goals` under two designs.
fn answered(goals: &[Goal], watch: &Counting) -> Result<Answer, NoAnswer<ProfileError>> {
    answered_on(&jobs(), goals, watch)
}

/// Answers the question about `jobs`, as [`answered`].
fn answered_on(
    jobs: &JobFile,
    goals: &[Goal],
    watch: &Counting,
) -> Result<Answer, NoAnswer<ProfileError>> {
    let device = Device::lookup_with(DEVICE, &watch.overrides).unwrap();
    let designs = ["mmc-blkmq", "hsq"].map(|name| Design::lookup(name).unwrap());
    let conditions = Conditions::new(1);
    let question = Question {
        jobs,
        device: &device,
        devices: &[],
        designs: &designs,
        conditions: &conditions,
        goals,
        sweep: None,
    };
    question.answer(Demands { seeds: Some(3), readings: Some(2) }, watch)
}

#[test]
fn the_observer_is_told_of_every_run() {
    let watch = Counting::default();
    let answer = answered(&[], &watch).unwrap();
    assert_eq!(watch.first.into_inner(), 2);
    // Two more seeds and two readings, under two designs.
    assert_eq!((watch.announced.into_inner(), watch.repeated.into_inner()), (8, 8));
    assert_eq!((answer.seeds.unwrap().count, answer.readings.unwrap().count), (3, 2));
}

#[test]
fn an_interrupted_repetition_leaves_the_answer_of_the_first_runs() {
    let watch = Counting { interrupts_after: Some(1), ..Counting::default() };
    let answer = answered(&[], &watch).unwrap();
    assert!(answer.seeds.is_none() && answer.readings.is_none());
    let device = Device::lookup(DEVICE).unwrap();
    let designs = ["mmc-blkmq", "hsq"].map(|name| Design::lookup(name).unwrap());
    let first = whatif(&jobs(), &device, &designs, &Conditions::new(1)).unwrap();
    assert_eq!(answer.verdict.sentences, first.verdict.sentences);
}

#[test]
fn a_goal_for_a_job_that_is_not_there_is_named() {
    let goal = Goal::parse("y.read.p99<20ms").unwrap();
    let error = answered(&[goal], &Counting::default()).unwrap_err();
    assert!(error.to_string().starts_with("y.read.p99<20ms: "), "{error}");
}

/// Both hosts start the next read from a thread or an interrupt, so `run-delay` is one of the
/// figures that decide. With the range of the class the verdict and the readings say "equal", with
/// a value that replaces it both say "not tested": the verdict said "no difference" there.
#[test]
fn the_verdict_calls_designs_equal_only_where_the_readings_test_it() {
    let job = "--name=x --rw=read --bs=512k --direct=1 --number_ios=1100 --rate_iops=50";
    let jobs = parse_args(job.split(' '), &NoSource).unwrap();
    let equal = answered_on(&jobs, &[], &Counting::default()).unwrap();
    let overrides = vec![Override { key: "cpu.run-delay".into(), value: "20us".into() }];
    let watch = Counting { overrides, ..Counting::default() };
    let untested = answered_on(&jobs, &[], &watch).unwrap();
    for (answer, keys, known) in [(equal, &[][..], ""), (untested, &["cpu.run-delay"], " known")] {
        let ranking = answer.readings.unwrap().ranking;
        assert!(ranking.iter().all(|pair| pair.untested == keys), "{ranking:?}");
        let words = format!("hsq: no{known} difference from mmc-blkmq.");
        assert!(answer.verdict.sentences.contains(&words), "{:?}", answer.verdict.sentences);
    }
}
