//! Control groups: their numbers, and the weights that jobs give them.

use super::error::{Fault, JobError};
use super::limits::CGROUPS_MAX;
use super::model::Job;

/// The weight of a group that no job weighs, as in Linux.
const WEIGHT: u32 = 100;

/// A control group that jobs name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cgroup<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its number: 1 for the first one that a job names, 2 for the next one. Jobs without a group
    /// are in group 0, the root.
    pub number: u32,
    /// The weight that a job gives it, or 100.
    pub weight: u32,
}

/// Returns the control groups that `jobs` name, in the order of their numbers.
#[must_use]
pub fn cgroups(jobs: &[Job]) -> Vec<Cgroup<'_>> {
    let mut groups: Vec<Cgroup<'_>> = Vec::new();
    for job in jobs {
        let Some(name) = &job.cgroup else { continue };
        if groups.iter().all(|group| group.number < job.cgroup_number) {
            groups.push(Cgroup { name, number: job.cgroup_number, weight: WEIGHT });
        }
        if let Some(weight) = job.cgroup_weight
            && let Some(group) = groups.iter_mut().find(|group| group.name == name)
        {
            group.weight = weight;
        }
    }
    groups
}

/// Returns the number of the group of `job`, which follows `before` in the file.
pub(super) fn number(before: &[Job], job: &Job) -> u32 {
    if job.cgroup.is_none() {
        return 0;
    }
    if let Some(known) = before.iter().find(|known| known.cgroup == job.cgroup) {
        return known.cgroup_number;
    }
    before.iter().map(|known| known.cgroup_number).max().unwrap_or(0) + 1
}

/// Checks that the weight of a job's own section is that of a group, and that no job of `before`
/// gives the group another one; fio would use the weight of the job that begins last. A weight of
/// `[global]` is for those jobs that are in a group.
pub(super) fn check(before: &[Job], job: &Job) -> Result<(), JobError> {
    let (option, fault) = match (&job.cgroup, job.cgroup_weight) {
        (None, Some(_)) if job.written().any(|set| matches!(set, ("cgroup_weight", _, true))) => {
            let reason = "the job is in no group that could have a weight";
            let other = "cgroup";
            ("cgroup_weight", Fault::Contradiction { option: "cgroup_weight", other, reason })
        }
        (Some(_), None | Some(_)) if job.cgroup_number > CGROUPS_MAX => {
            ("cgroup", Fault::TooManyCgroups)
        }
        (Some(cgroup), Some(weight)) => {
            let mut others = before.iter().filter(|other| other.cgroup == job.cgroup);
            let other = others.find(|other| other.cgroup_weight.is_some_and(|of| of != weight));
            let Some(other) = other else { return Ok(()) };
            let place = other.place_of("cgroup_weight").clone();
            let cgroup = cgroup.clone();
            ("cgroup_weight", Fault::CgroupHasWeight { cgroup, place })
        }
        (None, Some(_)) | (_, None) => return Ok(()),
    };
    Err(JobError { place: job.place_of(option).clone(), fault })
}

#[cfg(test)]
mod tests {
    use super::super::build::parse_bytes;
    use super::super::source::NoSource;
    use super::*;

    fn message(file: &str) -> String {
        parse_bytes("a.fio", file.as_bytes(), &NoSource).expect_err("an error").to_string()
    }

    #[test]
    fn groups_are_numbered_by_name_and_have_the_weight_that_a_job_gives() {
        let file = "[a]\ncgroup=x\n[b]\n[c]\ncgroup=y\ncgroup_weight=300\n[d]\ncgroup=x\n\
                    cgroup_weight=1000\ncgroup_nodelete=1\n";
        let jobs = parse_bytes("a.fio", file.as_bytes(), &NoSource).expect("jobs").jobs;
        let numbers: Vec<_> = jobs.iter().map(|job| job.cgroup_number).collect();
        assert_eq!(numbers, [1, 0, 2, 1]);
        let groups = cgroups(&jobs);
        let groups: Vec<_> = groups.iter().map(|of| (of.name, of.number, of.weight)).collect();
        assert_eq!(groups, [("x", 1, 1000), ("y", 2, 300)]);
    }

    /// A group that no job weighs has 100.
    #[test]
    fn a_group_without_a_weight_has_that_of_linux() {
        let jobs = parse_bytes("a.fio", b"[a]\ncgroup=x\n", &NoSource).expect("jobs").jobs;
        assert_eq!(cgroups(&jobs), [Cgroup { name: "x", number: 1, weight: 100 }]);
    }

    /// fio makes a group only for a job with `cgroup`, and reads the weight there alone.
    #[test]
    fn a_weight_of_all_jobs_is_for_those_in_a_group() {
        let file = "[global]\ncgroup_weight=200\n[a]\ncgroup=x\n[b]\n";
        let jobs = parse_bytes("a.fio", file.as_bytes(), &NoSource).expect("jobs").jobs;
        assert_eq!(cgroups(&jobs), [Cgroup { name: "x", number: 1, weight: 200 }]);
        let own = message("[global]\ncgroup_weight=200\n[b]\ncgroup_weight=300\n");
        assert!(own.starts_with("a.fio:4: `cgroup_weight` contradicts `cgroup`"), "{own}");
    }

    #[test]
    fn faults_of_groups_name_their_line() {
        let alone = message("[a]\nrw=read\ncgroup_weight=200\n");
        assert!(alone.starts_with("a.fio:3: `cgroup_weight` contradicts `cgroup`"), "{alone}");
        for weight in ["99", "1001", "-1"] {
            let out = message(&format!("[a]\ncgroup=x\ncgroup_weight={weight}\n"));
            assert!(out.starts_with("a.fio:3: `cgroup_weight`"), "{out}");
        }
        let empty = message("[a]\ncgroup=\n");
        assert!(empty.starts_with("a.fio:2: `cgroup`"), "{empty}");
        let twice = "[a]\ncgroup=x\ncgroup_weight=200\n[b]\ncgroup=x\ncgroup_weight=300\n";
        let twice = message(twice);
        assert_eq!(twice, "a.fio:6: control group `x` has another weight already: see a.fio:3");
        let many: String = (1..=16).map(|at| format!("[{at}]\ncgroup=g{at}\n")).collect();
        let many = message(&many);
        assert!(many.starts_with("a.fio:32: more than 15 control groups"), "{many}");
    }
}
