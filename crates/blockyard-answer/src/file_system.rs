//! The file system that an answer assumes, with its figures.

use blockyard_devices::profile::{self, CommitSizes, Journal};
use serde::{Deserialize, Serialize};

/// The file system on each disk, as the runs assume it. Without one, jobs use raw disks, which have
/// no journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileSystemFigures {
    /// The name of a built-in file system, or the path of its file.
    pub name: String,
    /// How it keeps its metadata together.
    pub journal: Journal,
    /// The age at which changes are committed if no sync asks for it, in nanoseconds.
    pub commit_interval_ns: u64,
    /// The length of the journal, in bytes, on a disk that has room for it: at most an eighth of a
    /// disk is journal.
    pub journal_bytes: u64,
    /// The longest bio of data, in bytes.
    pub write_max_bytes: u64,
    /// Whether a sync plugs its bios of data, so that neighbours merge.
    pub plugs: bool,
    /// The size of a commit.
    pub commit: CommitSizes,
}

impl From<&profile::FileSystem> for FileSystemFigures {
    fn from(of: &profile::FileSystem) -> Self {
        let profile::FileSystem { name, rules, commit, .. } = of;
        let profile::FileSystemRules {
            journal,
            commit_interval,
            journal_bytes,
            write_max_bytes,
            plugs,
        } = *rules;
        Self {
            name: name.clone(),
            journal,
            commit_interval_ns: commit_interval.as_ns(),
            journal_bytes,
            write_max_bytes,
            plugs,
            commit: *commit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The built-in ext4 commits every 5 s, as its file says, in blocks of 4 KiB.
    #[test]
    fn an_answer_has_the_figures_of_the_file() {
        let ext4 = profile::FileSystem::lookup("ext4").unwrap();
        let figures = FileSystemFigures::from(&ext4);
        assert_eq!((figures.name.as_str(), figures.journal), ("ext4", Journal::Ordered));
        assert_eq!(figures.commit_interval_ns, 5_000_000_000);
        assert_eq!(figures.commit.unit_bytes, 4096);
    }
}
