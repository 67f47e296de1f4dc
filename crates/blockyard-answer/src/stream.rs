//! A job in one direction: what a user sees as one thing, however many instances the job has.

use super::direction::Direction;
use super::job_figures::{DirectionFigures, JobFigures};
use super::latency::Latency;
use blockyard_fio::measure::per_second;
use blockyard_text::number::{approximate, ratio};

/// A job, or a group of jobs that reports as one, in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Stream {
    /// The name of the job; for a group, of its first job.
    pub job: String,
    /// The direction.
    pub direction: Direction,
    /// Its figures, all instances together.
    pub figures: DirectionFigures,
}

impl Stream {
    /// Returns the streams of `jobs`. Instances of one name in one reporting group are one stream:
    /// the rate of all is counted over the longest run time of any.
    #[must_use]
    pub fn all(jobs: &[JobFigures]) -> Vec<Self> {
        let mut names: Vec<(u32, &str)> = Vec::new();
        for job in jobs {
            let name = (job.group, job.name.as_str());
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let mut streams = Vec::new();
        for (group, name) in names {
            let of_name: Vec<_> =
                jobs.iter().filter(|job| job.group == group && job.name == name).collect();
            let runtime_ns = of_name.iter().map(|job| job.runtime_ns).max().unwrap_or_default();
            for direction in Direction::ALL {
                let parts = of_name.iter().filter_map(|job| job.direction(direction));
                let parts: Vec<_> = parts.collect();
                let figures = match parts.as_slice() {
                    [] => continue,
                    [only] => (*only).clone(),
                    parts => together(parts, runtime_ns),
                };
                streams.push(Self { job: name.to_owned(), direction, figures });
            }
        }
        streams
    }
}

/// Returns the figures of `parts` as those of one job that ran for `runtime_ns`.
#[expect(clippy::float_arithmetic, reason = "a rate is for reading: nothing is ordered by it")]
fn together(parts: &[&DirectionFigures], runtime_ns: u64) -> DirectionFigures {
    debug_assert!(parts.len() > 1, "one part is already the whole");
    let sum = |of: fn(&DirectionFigures) -> u64| {
        parts.iter().fold(0_u64, |sum, part| sum.saturating_add(of(part)))
    };
    let ios = sum(|part| part.ios);
    let bytes = sum(|part| part.bytes);
    DirectionFigures {
        ios,
        bytes,
        iops: ratio(approximate(ios) * 1e9, approximate(runtime_ns)),
        bytes_per_s: per_second(bytes, runtime_ns),
        slat_ns: latencies_together(parts, |part| &part.slat_ns),
        clat_ns: latencies_together(parts, |part| &part.clat_ns),
        lat_ns: latencies_together(parts, |part| &part.lat_ns),
    }
}

/// The latencies of all parts together.
fn latencies_together(
    parts: &[&DirectionFigures],
    of: fn(&DirectionFigures) -> &Latency,
) -> Latency {
    Latency::together(&parts.iter().map(|part| of(part)).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard::stats::Histogram;

    fn figures(latencies: &[u64], runtime_ns: u64) -> DirectionFigures {
        let mut values = Histogram::new();
        latencies.iter().for_each(|ns| values.record(*ns));
        let lat_ns = Latency::from(&values);
        let ios = lat_ns.count;
        let iops = approximate(per_second(ios, runtime_ns));
        let slat_ns = lat_ns.clone();
        let clat_ns = lat_ns.clone();
        DirectionFigures {
            ios,
            bytes: 4096 * ios,
            iops,
            bytes_per_s: per_second(4096 * ios, runtime_ns),
            slat_ns,
            clat_ns,
            lat_ns,
        }
    }

    fn instance(name: &str, group: u32, runtime_ns: u64, read: &[u64]) -> JobFigures {
        JobFigures {
            name: name.to_owned(),
            group,
            runtime_ns,
            ended_in_ramp: false,
            cpu_ns: 0,
            context_switches: 0,
            errors: 0,
            read: (!read.is_empty()).then(|| figures(read, runtime_ns)),
            write: None,
            trim: None,
            sync: None,
            calls_ns: None,
        }
    }

    #[test]
    fn instances_of_one_job_are_one_stream() {
        let jobs = [
            instance("a", 0, 1_000_000_000, &[10, 20, 5_000_000]),
            instance("b", 0, 1_000_000_000, &[7]),
            instance("a", 0, 2_000_000_000, &[30]),
            instance("a", 1, 1_000_000_000, &[40]),
            instance("idle", 1, 1_000_000_000, &[]),
        ];
        let streams = Stream::all(&jobs);
        let names: Vec<_> = streams.iter().map(|of| (of.job.as_str(), of.figures.ios)).collect();
        assert_eq!(names, [("a", 4), ("b", 1), ("a", 1)]);
        // Four I/Os in the two seconds of the longer instance.
        assert_eq!((streams[0].figures.iops, streams[0].figures.bytes_per_s), (2.0, 8192));
        let whole = figures(&[10, 20, 5_000_000, 30], 2_000_000_000);
        assert_eq!(streams[0].figures, whole);
    }
}
