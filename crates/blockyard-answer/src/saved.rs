//! Answers that were saved as JSON, to compare them.

use serde::Deserialize;

use super::buffered::BufferedFigures;
use super::file_system::FileSystemFigures;
use super::job_figures::JobFigures;
use super::latency::Latency;
use super::outcome::Stop;
use super::stream::Stream;
use super::verdict::Verdict;
use blockyard_sim::measure::series::Series;

/// The part of an [`Answer`](super::Answer) that is compared. Unknown keys are ignored, so answers
/// of other versions can be read as long as they have these.
#[derive(Clone, Debug, Deserialize)]
pub struct Saved {
    /// The job: its file, or the names of its sections.
    pub job: String,
    /// The name of the device.
    pub device: String,
    /// The file system on each disk, if one was assumed.
    #[serde(default)]
    pub file_system: Option<FileSystemFigures>,
    /// The seed of all random draws.
    pub seed: u64,
    /// What each design made of the job.
    pub designs: Vec<SavedDesign>,
}

/// What one design made of the job.
#[derive(Clone, Debug, Deserialize)]
pub struct SavedDesign {
    /// The name of the design.
    pub name: String,
    /// The figures of each job's instance, or of each group that reports as one.
    pub jobs: Vec<JobFigures>,
    /// Rates and depths over time.
    pub series: Series,
    /// Why and when the run was stopped before its jobs ended, if it was.
    #[serde(default)]
    pub stopped: Option<Stop>,
    /// Writes on their way to the device, if jobs write through the page cache.
    #[serde(default)]
    pub buffered: Option<BufferedFigures>,
}

/// Runs of two answers that belong to no pair, with their figures in parallel.
#[derive(Clone, Debug)]
pub struct Rest<'a> {
    /// The runs.
    pub designs: Vec<&'a SavedDesign>,
    /// The figures of each, by the name of the design and its answer. They are not ranked.
    pub verdict: Verdict,
}

/// Two runs that belong together, one of each answer.
#[derive(Clone, Debug)]
pub struct Pair<'a> {
    /// The designs of both.
    pub designs: [&'a SavedDesign; 2],
    /// What the second does to each job, against the first.
    pub verdict: Verdict,
}

impl Saved {
    /// Whether the histograms agree with their own counts: someone may have changed the file.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let of_job = |job: &JobFigures| {
            let directions = [&job.sync, &job.read, &job.write, &job.trim].into_iter().flatten();
            directions.flat_map(|of| [&of.slat_ns, &of.clat_ns, &of.lat_ns]).all(Latency::is_sound)
        };
        self.designs.iter().flat_map(|design| &design.jobs).all(of_job)
    }

    /// Pairs the designs of this answer with those of `other`: by name, or the first of this one
    /// with each of the other if no name is in both. `names` are those of the answers.
    #[must_use]
    pub fn pairs<'a>(&'a self, other: &'a Self, names: [&str; 2]) -> Vec<Pair<'a>> {
        let same = |design: &'a SavedDesign| {
            let mine = self.designs.iter().find(|mine| mine.name == design.name)?;
            Some([mine, design])
        };
        let mut pairs: Vec<_> = other.designs.iter().filter_map(same).collect();
        if let (true, Some(first)) = (pairs.is_empty(), self.designs.first()) {
            pairs = other.designs.iter().map(|design| [first, design]).collect();
        }
        let with_verdict = |designs: [&'a SavedDesign; 2]| {
            let labels = [0, 1].map(|at| match designs[0].name == designs[1].name {
                true => names[at].to_owned(),
                false => format!("{} of {}", designs[at].name, names[at]),
            });
            let streams = [0, 1].map(|at| (labels[at].as_str(), Stream::all(&designs[at].jobs)));
            let runs = [0, 1].map(|at| (labels[at].as_str(), designs[at].stopped));
            let jobs = designs.map(|of| of.jobs.as_slice());
            let verdict = Verdict::on(&streams).unless_in_ramp(&jobs).unless_partial(&runs);
            Pair { designs, verdict }
        };
        pairs.into_iter().map(with_verdict).collect()
    }

    /// Returns the designs of this answer and of `other` that are in none of `pairs`, if there are
    /// any. `names` are those of the answers.
    #[must_use]
    pub fn rest<'a>(
        &'a self,
        other: &'a Self,
        pairs: &[Pair<'a>],
        names: [&str; 2],
    ) -> Option<Rest<'a>> {
        let mut labels = Vec::new();
        let mut designs = Vec::new();
        for (side, saved) in [self, other].into_iter().enumerate() {
            let of_side: Vec<_> = pairs.iter().map(|pair| pair.designs[side]).collect();
            let others = saved.designs.iter();
            for design in others.filter(|of| !of_side.iter().any(|one| core::ptr::eq(*one, *of))) {
                labels.push(format!("{} of {}", design.name, names[side]));
                designs.push(design);
            }
        }
        let streams: Vec<_> = labels
            .iter()
            .zip(&designs)
            .map(|(label, design)| (label.as_str(), Stream::all(&design.jobs)))
            .collect();
        let labels: Vec<_> = labels.iter().map(String::as_str).collect();
        let verdict = Verdict::on(&streams).without_counterpart(&labels);
        (!designs.is_empty()).then_some(Rest { designs, verdict })
    }
}
