//! The way from a question to an answer: first runs, goals, repetitions, and an observer that ends
//! them early.

use blockyard_answer::certainty::{Demands, NoAnswer, Question, Watch};
use blockyard_answer::goal::Goal;
use blockyard_answer::{Answer, whatif};
use blockyard_devices::profile::{Design, Device, ProfileError};
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
}

impl Watch for Counting {
    type Error = ProfileError;

    fn readings(&self, count: u32) -> Result<Vec<Device>, ProfileError> {
        Device::readings(DEVICE, &[], 1, count)
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
    let device = Device::lookup(DEVICE).unwrap();
    let designs = ["mmc-blkmq", "hsq"].map(|name| Design::lookup(name).unwrap());
    let conditions = Conditions::new(1);
    let jobs = jobs();
    let question = Question {
        jobs: &jobs,
        device: &device,
        designs: &designs,
        conditions: &conditions,
        goals,
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
