//! An answer to render in tests.

use blockyard::trace::Hold;
use blockyard_answer::certainty::Rests;
use blockyard_answer::{
    Answer, Explanation, Factor, FamilyFigures, Figures, Held, Holds, JobFigures, JobTime, Latency,
    Life, Outcome, Verdict,
};
use blockyard_sim::measure::series::Series;

pub(super) fn figures(iops: f64) -> Figures {
    let lat_ns = Latency {
        mean: 7_000_000,
        p50: 6_970_000,
        p99: 8_100_400,
        p99_9: 12_345_678,
        ..Latency::default()
    };
    let life_ns = Life {
        queued: 1_000_000.0,
        dequeued: 250_000.0,
        in_driver: 5_750_000.4,
        not_reaped: 3000.0,
        ..Life::default()
    };
    Figures {
        ios: 0,
        bytes: 0,
        iops,
        read_bytes: 0,
        written_bytes: 0,
        bytes_per_s: 2_404_352_000,
        lat_ns,
        cpu_percent: 41.27,
        jobs_cpu_percent: 0.0,
        spinning_percent: 0.0,
        polling_percent: 0.0,
        commands: 1_151_234,
        ios_per_command: 5.1,
        commands_per_s: 0.0,
        at_device: 0.0,
        command_ns: 0.0,
        device_busy_percent: 100.0,
        mean_idle_gap_ns: 0,
        wakeups_per_io: 0.031,
        runs_per_io: 0.0,
        refusals_per_io: 0.0,
        dequeued_percent: 0.0,
        jobs_ns: JobTime::default(),
        one_at_a_time: false,
        life_ns,
        read_life_ns: Life::default(),
        write_life_ns: Life::default(),
        holds: holds(),
        locks: Vec::new(),
        family: FamilyFigures::default(),
        buffered: None,
    }
}

fn holds() -> Holds {
    let shares = [(Hold::Budget, 99.4), (Hold::Leftovers, 0.2)];
    shares
        .map(|(hold, percent)| (hold, Held { count: 7, per_io: 0.209, percent }))
        .into_iter()
        .collect()
}

/// Returns a job without I/O.
pub(super) fn job(name: &str) -> JobFigures {
    JobFigures {
        name: name.to_owned(),
        group: 0,
        runtime_ns: 0,
        ended_in_ramp: false,
        cpu_ns: 0,
        context_switches: 0,
        errors: 0,
        read: None,
        write: None,
        trim: None,
        sync: None,
        calls_ns: None,
    }
}

pub(super) fn outcome(name: &str, iops: f64, ratio: f64) -> Outcome {
    Outcome {
        name: name.to_owned(),
        ratio,
        figures: figures(iops),
        jobs: Vec::new(),
        series: Series::default(),
        bfq: None,
        ignores_groups: false,
        latency_from: None,
        late_ns: None,
        faults: None,
        verified: None,
        stopped: None,
    }
}

pub(super) fn answer() -> Answer {
    Answer {
        job: "seq.fio".to_owned(),
        device: "srp".to_owned(),
        rests: Rests { fitted: 9, stated: 4, assumed: 20, varied: 18 },
        file_system: None,
        seed: 1,
        verdict: Verdict::default(),
        goals: Vec::new(),
        unsuited: Vec::new(),
        designs: vec![
            outcome("legacy-deadline", 587_000.0, 1.0),
            outcome("mq-deadline-2017", 155_000.0, 0.264),
            outcome("mq-deadline", 590_000.0, 1.005),
        ],
        explanation: Explanation {
            low: "mq-deadline-2017".to_owned(),
            high: Some("legacy-deadline".to_owned()),
            factor: Factor::Merging,
            share: 0.264,
            evidence: Vec::new(),
        },
        reasons: Vec::new(),
        why: "mq-deadline-2017 reaches 26 % of legacy-deadline's IOPS.".to_owned(),
        sweep: None,
        seeds: None,
        readings: None,
    }
}

/// Returns `text` without escape sequences.
pub(super) fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}
