//! Tables of the figures of a family, for people.

/// A table with a row for each run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FigureTable {
    /// The words above it.
    pub caption: &'static str,
    /// The name of each column of numbers, and its cells in the order of the runs.
    pub columns: Vec<(String, Vec<String>)>,
}

impl FigureTable {
    /// Returns a table without columns.
    pub(crate) const fn new(caption: &'static str) -> Self {
        Self { caption, columns: Vec::new() }
    }

    /// Adds a column whose cells `cell` writes, one for each of `runs`.
    pub(crate) fn column<F>(&mut self, name: &str, runs: &[&F], cell: impl Fn(&F) -> String) {
        self.columns.push((name.to_owned(), runs.iter().map(|run| cell(run)).collect()));
    }
}
