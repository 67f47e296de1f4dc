//! A temporary folder for one test.

use std::fs;
use std::path::PathBuf;

/// A temporary folder for one test, removed when dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("blockyard-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a file, and returns its path.
    #[allow(dead_code, reason = "not every test writes files")]
    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Returns the path of a file.
    #[allow(dead_code, reason = "not every test needs paths")]
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If this fails, the files stay in the temporary directory.
        drop(fs::remove_dir_all(&self.0));
    }
}
