//! Cache lines of words that processors share: which processor has to fetch a line.

/// Lines, and the processors that have them in their caches. A line stays in a cache until another processor
/// changes it.
#[derive(Debug)]
pub(super) struct Lines {
    lines: Vec<Line>,
    /// The version of each line that each processor has seen, by processor and line.
    seen: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// Counts the changes of owner, from 1; 0: nobody ever used the line.
    version: u32,
    /// The processor that changed it last.
    owner: u16,
    /// Another processor has read it since.
    shared: bool,
}

impl Lines {
    /// `lines` lines that nobody has used, and `cpus` processors.
    pub(super) fn new(lines: usize, cpus: u16) -> Self {
        Self { lines: vec![Line::default(); lines], seen: vec![0; lines * usize::from(cpus)] }
    }

    fn seen(&mut self, cpu: u16, line: usize) -> &mut u32 {
        debug_assert!(line < self.lines.len(), "line {line} of {}", self.lines.len());
        &mut self.seen[usize::from(cpu) * self.lines.len() + line]
    }

    /// `cpu` reads a line. Returns whether it has to fetch the line.
    pub(super) fn look(&mut self, cpu: u16, line: usize) -> bool {
        let Line { version, owner, .. } = self.lines[line];
        self.lines[line].shared |= cpu != owner;
        core::mem::replace(self.seen(cpu, line), version) != version
    }

    /// `cpu` changes a line. Returns whether it has to fetch the line, or to take it from others.
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
        assert!(!lines.change(0, 1), "nobody had it");
        assert!(!lines.change(0, 1) && !lines.look(0, 1), "it is its own");
        assert!(lines.look(1, 1) && !lines.look(1, 1), "fetched once");
        assert!(lines.change(0, 1), "taken from who looked");
        assert!(lines.look(1, 1) && lines.look(2, 1));
        assert!(lines.change(2, 1) && !lines.change(2, 1));
        assert!(lines.look(0, 1));
        assert!(!lines.look(0, 0), "another line");
    }
}
