//! Files that are made for a new image.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions, Permissions, remove_file};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The permissions of a file until it has those that were asked for.
const OWNER_ONLY: u32 = 0o600;

/// The new files of an image that is not complete yet. They are removed unless they are
/// [kept](Self::keep).
#[derive(Debug)]
pub(crate) struct NewFiles {
    paths: Vec<PathBuf>,
    mode: Option<u32>,
}

impl NewFiles {
    /// Files with the permissions `mode`, or with those that the process gives to new files.
    pub(crate) const fn new(mode: Option<u32>) -> Self {
        Self { paths: Vec::new(), mode }
    }

    /// Makes a file of `bytes` zeroes. Nobody can open it who may not do so later.
    ///
    /// # Errors
    ///
    /// The file exists, or the system refuses it.
    pub(crate) fn make(&mut self, path: &Path, bytes: u64) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        if self.mode.is_some() {
            options.mode(OWNER_ONLY);
        }
        let file = options.open(path)?;
        self.paths.push(path.to_owned());
        if let Some(mode) = self.mode {
            file.set_permissions(Permissions::from_mode(mode))?;
        }
        file.set_len(bytes)?;
        file.sync_all()?;
        Ok(file)
    }

    /// Keeps the files, whose names are durable afterwards.
    ///
    /// # Errors
    ///
    /// A folder cannot be synchronised. The files are removed then.
    pub(crate) fn keep(mut self) -> io::Result<()> {
        let folders: BTreeSet<_> = self.paths.iter().map(|path| folder(path)).collect();
        folders.into_iter().try_for_each(|folder| File::open(folder)?.sync_all())?;
        self.paths.clear();
        Ok(())
    }
}

impl Drop for NewFiles {
    fn drop(&mut self) {
        for path in &self.paths {
            let _ = remove_file(path); // nobody else knows of it
        }
    }
}

/// The folder of a file.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
