//! An arena: compares its log with its map, and derives what is certain despite damage.

use super::chain::{InfoRepair, Link};
use super::finding::{Finding, Problem, Report, Severity};
use super::log::{self, Lane, Newest};
use super::map::{self, Capped, Owners};
use super::options::{Options, Progress};
use crate::address::{PostmapAba, PremapAba};
use crate::arena::Arena;
use crate::container::Dialect;
use crate::flog::SlotLayout;
use crate::map_entry::MapEntry;
use crate::memory::{MediaError, Memory};
use crate::repair::Step;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The most sectors of an arena that get a new block.
const LOST_MAX: usize = 4096;

/// The result of checking an arena.
pub(super) struct ArenaCheck {
    number: usize,
    link: Link,
    arena: Arena,
    lanes: Vec<Lane>,
    finished: Vec<(PremapAba, MapEntry)>,
    owners: Owners,
    claims: Claims,
    /// The first sector of each block with two owners, as far as these are reported.
    first_owners: BTreeMap<PostmapAba, PremapAba>,
    unowned: Capped<PostmapAba>,
    /// It is certain who owns which block ([owners-add-up]).
    is_certain: bool,
}

/// The free blocks according to the lanes.
#[derive(Default)]
struct Claims {
    /// Free blocks that no other lane and no sector has, with their lanes.
    sole: BTreeMap<PostmapAba, u32>,
    /// Free blocks that a sector has too, with their lanes.
    sectors: Vec<(PostmapAba, u32)>,
    /// Free blocks of two lanes: the first lane, the other lane, and the block.
    shared: Vec<(u32, u32, PostmapAba)>,
    /// Lanes without a free block that is certainly theirs.
    lacking: Vec<u32>,
}

impl Claims {
    fn of(lanes: &[Lane], owners: &mut Owners) -> Self {
        let mut claims = Self::default();
        for (lane, log) in (0..).zip(lanes) {
            let Lane::Sound(newest) = log else {
                claims.lacking.push(lane);
                continue;
            };
            let block = newest.entry.old_block();
            if let Some(&first) = claims.sole.get(&block) {
                claims.shared.push((first, lane, block));
                claims.lacking.push(lane);
            } else if owners.blocks.put(block.0) {
                claims.sole.insert(block, lane);
            } else {
                claims.sectors.push((block, lane));
            }
        }
        debug_assert_eq!(
            claims.sole.len() + claims.sectors.len() + claims.lacking.len(),
            lanes.len(),
            "each lane is counted once"
        );
        claims
    }
}

impl ArenaCheck {
    /// Checks the arena of `link`. This needs a bit for each block, and a few bytes for each lane.
    pub(super) fn new<M: Memory>(
        memory: &M,
        number: usize,
        link: Link,
        options: &Options,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Self, MediaError> {
        let arena = Arena {
            start: link.start,
            first_lba: link.first_lba,
            layout: link.info.layout,
            slots: SlotLayout::Standard,
            dialect: options.container.dialect(),
        };
        let (slots, lanes) = log::read(memory, &arena)?;
        let arena = Arena { slots, ..arena };
        let finished = log::finished(&lanes);
        let of = arena.layout.external_nlba;
        let keep = options.keep;
        let mut owners =
            map::owners(memory, &arena, &finished, keep, LOST_MAX, &mut |done: u32| {
                if done.is_multiple_of(Progress::STEP) || done == of {
                    progress(Progress { arena: number, done, of });
                }
            })?;
        let claims = Claims::of(&lanes, &mut owners);
        let reported = claims.sectors.iter().take(keep).map(|&(block, _)| block);
        let reported = reported.chain(owners.shared.first.iter().map(|&(block, _)| block));
        let first_owners = map::first_owners(memory, &arena, &finished, reported)?;
        let mut unowned = Capped::new(keep.max(LOST_MAX));
        owners.blocks.missing().for_each(|block| unowned.push(PostmapAba(block)));
        let mut arena_check = Self {
            number,
            link,
            arena,
            lanes,
            finished,
            owners,
            claims,
            first_owners,
            unowned,
            is_certain: false,
        };
        arena_check.is_certain = arena_check.owners_are_certain(memory)?;
        Ok(arena_check)
    }

    /// Decides whether the owners are certain ([owners-add-up]).
    fn owners_are_certain<M: Memory>(&self, memory: &M) -> Result<bool, MediaError> {
        let Self { owners, claims, unowned, .. } = self;
        let no_block = &owners.no_block;
        let lacking = claims.lacking.len() as u64;
        // A lost log may have held a cut write.
        let lost_log = self.lanes.iter().any(|lane| matches!(lane, Lane::Lost));
        let one_kind = lacking == 0 || no_block.count == 0;
        // There are as many blocks as owners, so a block with two owners leaves another one
        // unowned.
        let add_up = unowned.count == lacking + no_block.count;
        // Another lane may have written to the block that a cut write will free: its sector still
        // has it.
        let cut_twice = claims.shared.iter().any(|&(a, b, _)| self.is_cut(a) || self.is_cut(b));
        if lost_log || !one_kind || !add_up || cut_twice || no_block.dropped() > 0 {
            return Ok(false);
        }
        for lane in &self.lanes {
            if let Lane::Unsound(_, group) = lane
                && log::may_be_cut(memory, &self.arena, group, |block: PostmapAba| {
                    !owners.blocks.has(block.0)
                })?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn is_cut(&self, lane: u32) -> bool {
        matches!(self.lanes[lane as usize], Lane::Sound(Newest { is_cut: true, .. }))
    }

    fn sector(&self, lba: PremapAba) -> u64 {
        self.arena.first_lba + u64::from(lba.0)
    }

    /// The number of sectors.
    pub(super) const fn sectors(&self) -> u64 {
        self.arena.layout.external_nlba as u64
    }

    /// Adds all findings to a report.
    pub(super) fn report_to(&self, report: &mut Report) {
        self.report_info(report);
        self.report_log(report);
        self.report_map(report);
    }

    fn add(&self, report: &mut Report, at: u64, problem: Problem, severity: Severity) {
        let at_risk = self.puts_at_risk(&problem);
        report.add(Finding { arena: self.number, at, problem, severity, at_risk });
    }

    /// The severity of damage that a repair corrects if the owners are certain.
    const fn if_certain(&self) -> Severity {
        if self.is_certain { Severity::Repairable } else { Severity::Broken }
    }

    fn puts_at_risk(&self, problem: &Problem) -> bool {
        match problem {
            // Some readers take the BTT for empty, and the next write puts a new BTT over it.
            Problem::FirstInfo(_)
            | Problem::Log { .. }
            | Problem::LostLog { .. }
            | Problem::Misread { .. }
            | Problem::DuplicateFree { .. }
            | Problem::BadMapEntry { .. }
            | Problem::LostEntry { .. }
            | Problem::TwoSectors { .. }
            | Problem::SectorAndLane { .. } => true,
            // libpmemblk takes a cut write in this form for finished, and its old block for free.
            Problem::Dialect { wanted, .. } => {
                *wanted == Dialect::Flagged && !self.finished.is_empty()
            }
            _ => false,
        }
    }

    fn report_info(&self, report: &mut Report) {
        let (first, copy) = self.info_blocks();
        match self.link.repair {
            InfoRepair::Nothing => {}
            InfoRepair::First(error) => {
                self.add(report, first, Problem::FirstInfo(error), Severity::Repairable);
            }
            InfoRepair::Neither(error) => {
                self.add(report, first, Problem::FirstInfo(error), Severity::Broken)
            }
            InfoRepair::Copy(error) => {
                self.add(report, copy, Problem::CopyInfo(error), Severity::Repairable)
            }
            InfoRepair::CopyIfSound(problem) => self.add(report, copy, problem, self.if_certain()),
        }
        for &(at, problem) in &self.link.problems {
            let severity = match problem {
                Problem::NonzeroUnused => Severity::Note,
                _ => Severity::Broken,
            };
            self.add(report, at, problem, severity);
        }
    }

    fn info_blocks(&self) -> (u64, u64) {
        (self.arena.start, self.arena.start + self.arena.layout.infooff)
    }

    fn report_log(&self, report: &mut Report) {
        for (lane, log) in (0..).zip(&self.lanes) {
            let at = self.arena.group_at(lane);
            match log {
                Lane::Sound(newest) => self.report_sound(report, lane, newest),
                &Lane::Unsound(error, _) => {
                    self.add(report, at, Problem::Log { lane, error }, self.if_certain());
                }
                Lane::Lost => {
                    self.add(report, at, Problem::LostLog { lane }, Severity::Broken);
                }
            }
        }
        for &(lane, other, block) in &self.claims.shared {
            let problem = Problem::DuplicateFree { lane, other, block };
            self.add(report, self.arena.group_at(other), problem, self.if_certain());
        }
        let wanted = self.arena.dialect;
        let lanes = log::lanes_in_other_dialect(&self.lanes, wanted);
        if lanes > 0 {
            let problem = Problem::Dialect { lanes, wanted };
            self.add(report, self.arena.group_at(0), problem, Severity::Note);
        }
    }

    fn report_sound(&self, report: &mut Report, lane: u32, newest: &Newest) {
        let at = self.arena.group_at(lane);
        if newest.is_misread() {
            let problem = Problem::Misread { lane, numbers: newest.numbers };
            self.add(report, at, problem, self.if_certain());
        }
        if newest.is_cut {
            let entry = newest.entry;
            let sector = self.sector(entry.sector());
            let block = entry.new_block();
            self.add(report, at, Problem::CutWrite { lane, sector, block }, Severity::Note);
        }
    }

    fn report_map(&self, report: &mut Report) {
        let Owners { shared, no_block, lost, .. } = &self.owners;
        for &(lba, entry) in &no_block.first {
            let problem = Problem::BadMapEntry { sector: self.sector(lba), entry };
            self.add(report, self.arena.map_at(lba), problem, self.if_certain());
        }
        report.count_only(self.if_certain(), no_block.dropped(), true);
        for &lba in &lost.first {
            let problem = Problem::LostEntry { sector: self.sector(lba) };
            self.add(report, self.arena.map_at(lba), problem, Severity::Broken);
        }
        report.count_only(Severity::Broken, lost.dropped(), true);
        // The other owner is missing if somebody wrote to the BTT during the check.
        let mut not_kept = shared.dropped();
        for &(block, lba) in &shared.first {
            let Some(&first) = self.first_owners.get(&block) else {
                not_kept += 1;
                continue;
            };
            let other = self.sector(lba);
            let problem = Problem::TwoSectors { block, sector: self.sector(first), other };
            self.add(report, self.arena.block_at(block), problem, Severity::Broken);
        }
        for &(block, lane) in &self.claims.sectors {
            let Some(&lba) = self.first_owners.get(&block) else {
                not_kept += 1;
                continue;
            };
            let problem = Problem::SectorAndLane { block, sector: self.sector(lba), lane };
            self.add(report, self.arena.block_at(block), problem, Severity::Broken);
        }
        report.count_only(Severity::Broken, not_kept, true);
        for &block in &self.unowned.first {
            let problem = Problem::Unowned { block };
            self.add(report, self.arena.block_at(block), problem, self.if_certain());
        }
        report.count_only(self.if_certain(), self.unowned.dropped(), false);
    }

    /// Returns the step that removes the arena's broken mark, if nothing else will be wrong with
    /// it.
    pub(super) fn clear_error(&self) -> Option<Step> {
        let (first, copy) = self.info_blocks();
        let is_sound = self.is_certain && !matches!(self.link.repair, InfoRepair::Neither(_));
        (self.link.info.error && is_sound).then_some(Step::ClearError {
            arena: self.number,
            first,
            copy,
        })
    }

    /// Adds the steps that are certain ([owners-add-up]). They may be interrupted anywhere.
    pub(super) fn plan(&self, steps: &mut Vec<Step>) {
        let arena = self.number;
        let (first, copy) = self.info_blocks();
        match self.link.repair {
            InfoRepair::First(_) => steps.push(Step::CopyInfo { arena, from: copy, to: first }),
            InfoRepair::Copy(_) => steps.push(Step::CopyInfo { arena, from: first, to: copy }),
            InfoRepair::CopyIfSound(_) if self.is_certain => {
                steps.push(Step::CopyInfo { arena, from: first, to: copy })
            }
            InfoRepair::CopyIfSound(_) | InfoRepair::Neither(_) | InfoRepair::Nothing => {}
        }
        if !self.is_certain {
            return;
        }
        let takers = self.claims.lacking.len() + self.owners.no_block.first.len();
        debug_assert_eq!(takers, self.unowned.first.len(), "[owners-add-up]");
        for &(lba, entry) in &self.finished {
            let sector = self.sector(lba);
            let at = self.arena.map_at(lba);
            steps.push(Step::FinishWrite { arena, sector, at, entry });
        }
        for (lane, log) in (0..).zip(&self.lanes) {
            match log {
                // The entry is as formatted, except for its number.
                Lane::Sound(newest) if newest.is_misread_first() => {
                    let at = self.arena.entry_at(lane, 0);
                    let entry = self.arena.dialect.first_entry(lane, newest.entry.old_block());
                    steps.push(Step::OlderEntry { arena, lane, at, entry });
                }
                Lane::Sound(newest) if newest.is_misread() => {
                    let at = self.arena.entry_at(lane, 1 - newest.slot);
                    let entry = newest.older_entry();
                    steps.push(Step::OlderEntry { arena, lane, at, entry });
                }
                _ => {}
            }
        }
        let mut unowned = self.unowned.first.iter();
        for (&lane, &block) in self.claims.lacking.iter().zip(&mut unowned) {
            let at = self.arena.group_at(lane);
            let entry = self.arena.dialect.first_entry(lane, block);
            steps.push(Step::ResetLane { arena, lane, block, at, entry });
        }
        for (&(lba, _), &block) in self.owners.no_block.first.iter().zip(unowned) {
            let sector = self.sector(lba);
            let at = self.arena.map_at(lba);
            let entry = MapEntry::normal(block).errored(lba);
            steps.push(Step::MarkLost { arena, sector, block, at, entry });
        }
    }
}
