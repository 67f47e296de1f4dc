//! Sums over all seeds.

use crate::draw::KINDS;
use crate::machine::{BIOS, Summary};
use core::fmt;

const NAMES: [&str; 21] = [
    "events",
    "runs",
    "merges",
    "joins",
    "splits",
    "sleeps",
    "refusals",
    "requeues",
    "bios that need a flush",
    "flush commands",
    "timeouts",
    "freezes",
    "quiesces",
    "completions out of nowhere",
    "budgets denied",
    "empty promises",
    "stuck commands",
    "requeued as prepared",
    "taken back on time-out",
    "power cuts",
    "sectors verified",
];

/// Events and injected faults.
#[derive(Default)]
pub(crate) struct Total {
    seeds: u64,
    bios: [u64; BIOS.len()],
    sums: [u64; NAMES.len()],
    injected: [u64; KINDS.len()],
}

fn add<const N: usize>(sums: &mut [u64; N], counts: [u64; N]) {
    sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
}

impl Total {
    pub(crate) const fn seeds(&self) -> u64 {
        self.seeds
    }

    pub(crate) fn add(&mut self, one: &Summary) {
        let tally = &one.tally;
        let misbehaved = &one.misbehaved;
        let counts = [
            one.events,
            one.runs,
            tally.merges,
            tally.joins,
            tally.splits,
            tally.sleeps,
            tally.refusals,
            tally.requeues,
            one.flushed_bios,
            one.flush_commands,
            tally.timeouts,
            one.freezes,
            one.quiesces,
            one.strays,
            misbehaved.no_budget,
            misbehaved.empty_promises,
            misbehaved.stuck,
            misbehaved.again_prepared,
            misbehaved.taken_back,
            one.verified.power_cuts.len() as u64,
            one.verified.read_sectors,
        ];
        self.seeds += 1;
        add(&mut self.bios, one.bios);
        add(&mut self.sums, counts);
        add(&mut self.injected, one.injected);
    }
}

impl fmt::Display for Total {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = |counts: &[u64], names: &[&str]| -> String {
            let parts = counts.iter().zip(names).map(|(count, name)| format!("{count} {name}"));
            parts.collect::<Vec<_>>().join(", ")
        };
        writeln!(f, "{} seeds: {}", self.seeds, parts(&self.sums, &NAMES))?;
        let all: u64 = self.bios.iter().sum();
        writeln!(f, "{all} bios: {}", parts(&self.bios, &BIOS))?;
        write!(f, "injected: {}", parts(&self.injected, &KINDS))
    }
}
