//! Cache lines of words that processors share, and the processors that must fetch them.

/// Cache lines and the processors that have them in their caches. A line stays in a cache until
/// another processor changes it.
#[derive(Debug)]
pub(super) struct Lines {
    lines: Vec<Line>,
    /// The version of each line in each processor's cache, by processor and line.
    seen: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// The number of changes of owner, from 1; 0: no processor has used the line.
    version: u32,
    /// The processor that changed the line last.
    owner: u16,
    /// Whether another processor has read the line since.
    shared: bool,
}

impl Lines {
    /// Returns `lines` unused lines for `cpus` processors.
    pub(super) fn new(lines: usize, cpus: u16) -> Self {
        Self { lines: vec![Line::default(); lines], seen: vec![0; lines * usize::from(cpus)] }
    }

    fn seen(&mut self, cpu: u16, line: usize) -> &mut u32 {
        debug_assert!(line < self.lines.len(), "line {line} of {}", self.lines.len());
        &mut self.seen[usize::from(cpu) * self.lines.len() + line]
    }

    /// Records that `cpu` reads a line. Returns whether it must fetch the line.
    pub(super) fn look(&mut self, cpu: u16, line: usize) -> bool {
        let Line { version, owner, .. } = self.lines[line];
        self.lines[line].shared |= cpu != owner;
        core::mem::replace(self.seen(cpu, line), version) != version
    }

    /// Records that `cpu` changes a line. Returns whether it must fetch the line or take it from
    /// others.
    pub(super) fn change(&mut self, cpu: u16, line: usize) -> bool {
        let Line { version, owner, shared } = self.lines[line];
        if version > 0 && owner == cpu && !shared {
            return false;
        }
        let version = version.wrapping_add(1).max(1);
        let first = self.lines[line].version == 0;
        self.lines[line] = Line { version, owner: cpu, shared: false };
        *self.seen(cpu, line) = version;
        !first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_moves_when_another_processor_changed_it_and_not_else() {
        let mut lines = Lines::new(2, 3);
        assert!(!lines.change(0, 1), "no processor had the line");
        assert!(!lines.change(0, 1) && !lines.look(0, 1), "the line is the processor's own");
        assert!(lines.look(1, 1) && !lines.look(1, 1), "fetched once");
        assert!(lines.change(0, 1), "taken from the processor that read it");
        assert!(lines.look(1, 1) && lines.look(2, 1));
        assert!(lines.change(2, 1) && !lines.change(2, 1));
        assert!(lines.look(0, 1));
        assert!(!lines.look(0, 0), "another line");
    }
}
