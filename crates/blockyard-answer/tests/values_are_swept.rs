//! Sweeps: the best value is the one that reasoning finds, and the answer says how to set it.

use blockyard_answer::Answer;
use blockyard_answer::certainty::{Demands, NoAnswer, Question, Watch};
use blockyard_answer::goal::Goal;
use blockyard_answer::sweep::{Axis, Sweep};
use blockyard_devices::profile::{Device, Override, ProfileError};
use blockyard_fio::job::{NoSource, parse_args};
use blockyard_sim::simulate::Conditions;

/// One command of 1 ms at a time: 1000 I/Os in a second.
const DEVICE: [(&str, &str); 3] =
    [("null.completion", "timer"), ("null.completion-time", "1ms"), ("null.depth", "1")];

/// Both jobs always have requests in the scheduler.
const JOBS: &str = "--ioengine=libaio --direct=1 --bs=4k --size=1g --runtime=2 --time_based \
                    --iodepth=16 --name=r --rw=randread --name=w --rw=randwrite \
                    --ioengine=libaio --direct=1 --bs=4k --size=1g --runtime=2 --time_based \
                    --iodepth=16";

fn values(pairs: &[(&str, &str)]) -> Vec<Override> {
    let of = |(key, value): &(&str, &str)| Override { key: (*key).into(), value: (*value).into() };
    pairs.iter().map(of).collect()
}

struct Null;

impl Watch for Null {
    type Error = ProfileError;

    fn readings(&self, swept: &[Override], count: u32) -> Result<Vec<Device>, ProfileError> {
        Device::readings("null", &null_with(swept), 1, count)
    }
}

/// Returns the values of the device, of which `swept` replace some.
fn null_with(swept: &[Override]) -> Vec<Override> {
    let own = values(&DEVICE).into_iter().filter(|own| swept.iter().all(|of| of.key != own.key));
    own.chain(swept.iter().cloned()).collect()
}

/// Answers with `demands` what `jobs` make of `axes` under mq-deadline with `set`.
fn swept(
    jobs: &str,
    axes: &[&str],
    set: &[(&str, &str)],
    goals: &[&str],
    demands: Demands,
) -> Result<Answer, NoAnswer<ProfileError>> {
    let axes: Vec<_> = axes.iter().map(|text| Axis::parse(text).expect("an axis")).collect();
    let sweep = Sweep::new(&axes, &["mq-deadline".to_owned()]).expect("few runs");
    let designs = sweep.designs(&values(set)).expect("values of the design");
    let device = Device::lookup_with("null", &null_with(&[])).expect("values of the device");
    let devices = sweep.device_values();
    let devices = devices.iter().map(|own| Device::lookup_with("null", &null_with(own)));
    let devices: Vec<_> = devices.collect::<Result<_, _>>().expect("values of the device");
    let goals: Vec<_> = goals.iter().map(|text| Goal::parse(text).expect("a goal")).collect();
    let jobs = parse_args(jobs.split_whitespace(), &NoSource).expect("jobs");
    let question = Question {
        jobs: &jobs,
        device: &device,
        devices: &devices,
        designs: &designs,
        conditions: &Conditions::new(1),
        goals: &goals,
        sweep: Some(&sweep),
    };
    question.answer(demands, &Null)
}

/// With batches of one request, mq-deadline gives out `writes-starved` reads for each write. Of
/// 1000 I/Os in a second, 1 leaves 500 to the writes, and 4 leaves 200.
#[test]
fn the_best_value_is_the_one_that_reasoning_finds() {
    let set = [("queue.sched-depth", "64"), ("queue.deadline.fifo-batch", "1")];
    let goals = ["r.iops>=300", "w.iops>=300"];
    let demands = Demands { seeds: Some(3), readings: Some(0) };
    let answer = swept(JOBS, &["queue.deadline.writes-starved=1,4"], &set, &goals, demands);
    let answer = answer.expect("an answer");
    let iops: Vec<_> =
        answer.verdict.rows.iter().map(|row| [row.designs[0].iops, row.designs[1].iops]).collect();
    for (found, expected) in iops.concat().into_iter().zip([500.0, 800.0, 500.0, 200.0]) {
        assert!((found / expected - 1.0_f64).abs() < 0.05, "{found} for {expected}");
    }
    let sweep = answer.sweep.expect("a sweep");
    let one = "mq-deadline sched-depth=64 fifo-batch=1 writes-starved=1";
    let four = "mq-deadline sched-depth=64 fifo-batch=1 writes-starved=4";
    let best: Vec<_> =
        sweep.best.iter().map(|of| (of.goal.as_str(), of.design.as_str(), of.seeds)).collect();
    assert_eq!(best, [("r.iops>=300", four, 3), ("w.iops>=300", one, 3)]);
    assert!(sweep.best.iter().all(|of| of.equal.is_empty() && of.undecided.is_empty()));
    // Only 1 meets both goals.
    assert_eq!(sweep.winner.as_deref(), Some(one));
    let recipe = sweep.recipe.expect("a recipe");
    let written: Vec<_> = recipe.settings.iter().map(|of| of.value.as_str()).collect();
    assert_eq!(written, ["mq-deadline", "64", "1", "1"]);
    assert_eq!(sweep.variants[1].values, ["4"]);
}

/// A read at a time takes the time of the device and little more, so half the time is twice the
/// rate: at 10 ms, 100 in a second.
#[test]
fn a_value_of_the_device_is_swept() {
    let job = "--name=r --rw=randread --direct=1 --bs=4k --size=1g --runtime=1 --time_based";
    let demands = Demands { seeds: Some(2), readings: Some(2) };
    let answer = swept(job, &["null.completion-time=20ms,10ms"], &[], &[], demands);
    let answer = answer.expect("an answer");
    let [slow, fast] = [0, 1].map(|at| answer.designs[at].figures.iops);
    assert!((48.0..=50.0).contains(&slow) && (97.0..=100.0).contains(&fast), "{slow} {fast}");
    let sweep = answer.sweep.expect("a sweep");
    assert_eq!(sweep.winner.as_deref(), Some("mq-deadline completion-time=10ms"));
    assert_eq!(sweep.recipe.expect("a recipe").unset[0].key, "null.completion-time");
    // The readings keep the values, too.
    let ranking = &answer.readings.expect("readings").ranking[0];
    assert_eq!((ranking.faster, ranking.first.as_str()), (2, "mq-deadline completion-time=10ms"));
    let seeds = &answer.seeds.expect("seeds").comparisons[0];
    assert!(seeds.ratio.low > 1.9, "{seeds:?}");
}

/// Nothing takes 10 s here, so it does not matter when a request is looked for.
#[test]
fn equal_values_have_no_winner() {
    let job = "--name=r --rw=randread --direct=1 --bs=4k --size=1g --runtime=1 --time_based";
    let demands = Demands { seeds: Some(2), readings: Some(0) };
    let answer = swept(job, &["queue.timeout=10s,20s"], &[], &[], demands).expect("an answer");
    let sweep = answer.sweep.expect("a sweep");
    assert_eq!((sweep.winner.as_deref(), sweep.recipe.as_ref()), (None, None));
    let last = sweep.sentences().pop();
    let words = "No value is known to be better: there is nothing to set.";
    assert_eq!(last.as_deref(), Some(words));
    assert_eq!(sweep.best[0].equal, ["mq-deadline timeout=20s"]);
}

#[test]
fn every_combination_runs_and_the_last_key_varies_fastest() {
    let axes = ["queue.nomerges=0,2", "queue.deadline.fifo-batch=1,4,16"];
    let axes: Vec<_> = axes.iter().map(|text| Axis::parse(text).expect("an axis")).collect();
    let names = ["mq-deadline", "legacy-deadline"].map(str::to_owned);
    let designs = Sweep::new(&axes, &names).expect("12 runs").designs(&[]).expect("designs");
    let names: Vec<_> = designs.iter().map(|of| of.name.as_str()).collect();
    assert_eq!(names.len(), 12);
    assert_eq!(
        [names[0], names[1], names[3], names[11]],
        [
            "mq-deadline nomerges=0 fifo-batch=1",
            "mq-deadline nomerges=0 fifo-batch=4",
            "mq-deadline nomerges=2 fifo-batch=1",
            "legacy-deadline nomerges=2 fifo-batch=16",
        ]
    );
}
