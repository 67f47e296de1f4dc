//! File systems as profiles: what a sync and a commit of the journal write.
//!
//! ```toml
//! base = "ext4"
//! [filesystem]
//! journal = "ordered"       # or log, as XFS; none: a sync writes data and flushes
//! commit-interval = "30s"   # the age at which changes are committed without a sync
//! [commit]
//! allocate = 3              # in units: what new blocks add to a commit
//! ```

use crate::reader::base::{self, Bases};
use crate::reader::builtin::{Builtin, builtins, text_of};
use crate::reader::error::{Problem, ProfileError};
use crate::reader::reading::Notes;
use crate::reader::source::Source;
use crate::reader::table::{Choices, Table, table_of};
use crate::reader::value::{Bytes, Count, Flag, OneOf, Text, Time};
use blockyard::time::Duration;
use blockyard::unit::SECTOR_BYTES;
use serde::{Deserialize, Serialize};

use super::PAGE_BYTES;

pub(crate) const BUILTIN: &[Builtin] = builtins!("filesystems": "ext4", "xfs");

const KEYS: &[&str] = &["title", "base", "filesystem", "commit"];

/// How a file system keeps its metadata together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Journal {
    /// It does not: a sync writes data and flushes the disk.
    None,
    /// As jbd2: blocks, and when they are written, a commit block with a flush before it and FUA.
    Ordered,
    /// As XFS: one record, with a flush before it and FUA.
    Log,
}

/// The words of [`Journal`] in a profile.
const JOURNAL: &[(&str, Journal)] =
    &[("none", Journal::None), ("ordered", Journal::Ordered), ("log", Journal::Log)];

/// A file system on each disk of a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// The name: that of a built-in profile, or the path of a file.
    pub name: String,
    /// One line that describes it; may be empty.
    pub title: String,
    /// The journal and the writes of data.
    pub rules: FileSystemRules,
    /// The size of a commit.
    pub commit: CommitSizes,
}

/// The journal of a file system, and its writes of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystemRules {
    /// How it keeps metadata together.
    pub journal: Journal,
    /// The age at which changes are committed if no sync asks for it.
    pub commit_interval: Duration,
    /// The length of the journal, in bytes. It is in the middle of the disk, and at most an eighth
    /// of it.
    pub journal_bytes: u64,
    /// The longest bio of data, in bytes: a whole number of pages of 4 KiB.
    pub write_max_bytes: u64,
    /// Whether a sync plugs its bios of data, so that neighbours merge.
    pub plugs: bool,
}

/// The units that a commit writes: a head, and the blocks or items that changes add.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommitSizes {
    /// The bytes of a unit: a whole number of sectors.
    pub unit_bytes: u64,
    /// The longest bio of a commit, in bytes.
    pub write_bytes: u64,
    /// Units of each commit.
    pub head: u32,
    /// Units for the creation of files, once for each commit.
    pub create: u32,
    /// Units for the inodes of changed files.
    pub inode: u32,
    /// The number of neighbouring files whose inodes share these.
    pub inodes: u32,
    /// Units for each file of which preallocated blocks were written.
    pub convert: u32,
    /// Units for new blocks of files, once for each commit.
    pub allocate: u32,
    /// Units for direct writes that made files longer, once for each commit.
    #[serde(default)]
    pub direct_growth: u32,
    /// The extents of a file for which its inode has room; 0: any number.
    pub inline_extents: u32,
    /// The extents of each further unit of a file with more than that.
    pub leaf_extents: u32,
}

impl FileSystem {
    /// Returns the built-in file system with this name, or reads the file at this path.
    ///
    /// # Errors
    ///
    /// No built-in file system has the name, the file cannot be read, or a line of it is wrong.
    pub fn lookup(name_or_path: &str) -> Result<Self, ProfileError> {
        Self::parse(name_or_path, &text_of("file system", name_or_path, BUILTIN)?)
    }

    /// Reads a file system from `text`. `name` becomes its name, and the name of the file in
    /// errors.
    ///
    /// # Errors
    ///
    /// [`ProfileError::Wrong`] for the first error in the text.
    pub fn parse(name: &str, text: &str) -> Result<Self, ProfileError> {
        let notes = Notes::default();
        let files = Bases::of(name, text)?;
        let choices = Choices { bases: BUILTIN, processors: &[], files: &files };
        let top = Table::open(Source::new(name, text, &notes), KEYS, choices)?;
        Self::read(name, &top).map_err(|error| base::with_base(error, text, &[], "ext4"))
    }

    fn read(name: &str, top: &Table<'_>) -> Result<Self, ProfileError> {
        let title = top.take("title", Text)?.unwrap_or_default();
        let file_system =
            Self { name: name.to_owned(), title, rules: rules(top)?, commit: commit(top)? };
        let FileSystemRules { write_max_bytes, journal_bytes, .. } = file_system.rules;
        let table = top.table("filesystem", FILESYSTEM)?;
        if !write_max_bytes.is_multiple_of(PAGE_BYTES) {
            let words = "`write-max` is a whole number of pages of 4KiB";
            return Err(table.wrong("write-max", Problem::Contradiction(words)));
        }
        let CommitSizes { unit_bytes, write_bytes, .. } = file_system.commit;
        let table = top.table("commit", COMMIT)?;
        if !unit_bytes.is_multiple_of(SECTOR_BYTES.into()) {
            let words = "`unit` is a whole number of sectors of 512 bytes";
            return Err(table.wrong("unit", Problem::Contradiction(words)));
        }
        if !write_bytes.is_multiple_of(unit_bytes) {
            let words = "`write` is a whole number of units";
            return Err(table.wrong(table.given(&["write", "unit"]), Problem::Contradiction(words)));
        }
        debug_assert!(write_bytes <= journal_bytes, "a bio of a commit fits the journal");
        Ok(file_system)
    }
}

table_of!(FILESYSTEM, fn rules("filesystem") -> FileSystemRules {
    journal: "journal" need(OneOf(JOURNAL)),
    commit_interval: "commit-interval" need(Time),
    journal_bytes: "journal-size" need(Bytes(1 << 20..=1 << 40)),
    write_max_bytes: "write-max" need(Bytes(PAGE_BYTES..=16 << 20)),
    plugs: "plugs" need(Flag),
});

table_of!(COMMIT, fn commit("commit") -> CommitSizes {
    unit_bytes: "unit" need(Bytes(512..=65_536)),
    write_bytes: "write" need(Bytes(512..=1 << 20)),
    head: "head" need(Count(1..=64)),
    create: "create" need(Count(0..=64)),
    inode: "inode" need(Count(0..=64)),
    inodes: "inodes" need(Count(1..=1024)),
    convert: "convert" need(Count(0..=64)),
    allocate: "allocate" need(Count(0..=64)),
    direct_growth: "direct-growth" need(Count(0..=64)),
    inline_extents: "inline-extents" need(Count(0..=65_536)),
    leaf_extents: "leaf-extents" need(Count(0..=65_536)),
});

impl CommitSizes {
    /// Returns the units beside the inode that a file with so many `extents` needs if `changed` of
    /// its extents changed: 1 for each leaf of extents that changed.
    ///
    /// ext4 has room for 4 extents in the inode, and for 340 in a leaf. Of a file with 816 extents,
    /// three leaves, 408 changes change all three; one change changes one.
    #[must_use]
    pub const fn leaves(&self, extents: u64, changed: u64) -> u64 {
        if self.inline_extents == 0 || extents <= self.inline_extents as u64 {
            return 0;
        }
        let of_leaf = if self.leaf_extents == 0 { 1 } else { self.leaf_extents as u64 };
        let leaves = extents.div_ceil(of_leaf);
        if changed < leaves { changed } else { leaves }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        FileSystem::parse("my.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn the_built_in_file_systems_are_read_and_may_be_built_on() {
        let [ext4, xfs] = ["ext4", "xfs"].map(|name| FileSystem::lookup(name).unwrap());
        assert_eq!([ext4.rules.journal, xfs.rules.journal], [Journal::Ordered, Journal::Log]);
        let mine = "base = \"ext4\"\n[filesystem]\ncommit-interval = \"30s\"\n";
        let mine = FileSystem::parse("my.toml", mine).unwrap();
        assert_eq!(mine.rules.commit_interval, Duration::from_secs(30));
        assert_eq!((mine.commit, mine.name.as_str()), (ext4.commit, "my.toml"));
    }

    #[test]
    fn wrong_keys_and_sizes_are_reported_with_their_line() {
        let base = "base = \"ext4\"\n";
        let cases = [
            ("[filesystem]\njournal = \"data\"\n", "my.toml:3: unknown value `data` for `journal`"),
            ("[filesystem]\nwrite-max = \"6KiB\"\n", "my.toml:3: `write-max` is a whole number of"),
            ("[commit]\nunit = \"700B\"\n", "my.toml:3: `unit` is a whole number of sectors"),
            ("[commit]\nwrite = \"6KiB\"\n", "my.toml:3: `write` is a whole number of units"),
            ("[commit]\nhead = 0\n", "my.toml:3: `head` is `0`, out of range (1 to 64)"),
            ("[comit]\n", "my.toml:2: unknown key `comit`"),
        ];
        for (text, words) in cases {
            let error = error(&format!("{base}{text}"));
            assert!(error.starts_with(words), "{error}");
        }
        assert!(error("[filesystem]\n").contains("base = \"ext4\""), "{}", error("[filesystem]\n"));
        let unknown = FileSystem::lookup("ext3").unwrap_err().to_string();
        assert!(unknown.starts_with("unknown file system `ext3`"), "{unknown}");
    }

    /// With 4 extents in the inode and 340 in a leaf: 5 extents are one leaf, 341 are two.
    #[test]
    fn extents_beyond_those_in_the_inode_are_in_leaves() {
        let ext4 = FileSystem::lookup("ext4").unwrap().commit;
        let cases = [(4, 4), (5, 1), (5, 3), (341, 300), (341, 1), (816, 408)];
        let leaves = cases.map(|(extents, changed)| ext4.leaves(extents, changed));
        assert_eq!(leaves, [0, 1, 1, 2, 1, 3]);
        let xfs = FileSystem::lookup("xfs").unwrap().commit;
        assert_eq!(xfs.leaves(1000, 1000), 0);
    }
}
