//! Arenas much smaller than any that is made, which the engine takes nevertheless: it believes info blocks
//! that agree with themselves. The memory says that it has 16 MiB, and nearly all of it nobody uses.

use super::omit::Omission;
use super::recorder::{Recorder, Regions, WORD};
use blockyard::btt::arena::Arena;
use blockyard::btt::flog::SlotLayout;
use blockyard::btt::info_block::InfoBlock;
use blockyard::btt::layout::{ARENA_BYTES_MIN, FLOG_GROUP_BYTES, INFO_BYTES, Layout};
use blockyard::btt::{Container, PostmapAba, Uuid};

pub(crate) const CONTAINER: Container = Container::LabelledNamespace;
/// Two words: as many as it takes to be torn.
pub(crate) const SECTOR_BYTES: u32 = 16;
/// Stands for a block whose bytes a crash may have mixed.
pub(crate) const TORN: [u64; 2] = [0xbad, 0xbad];

/// Sectors and lanes of an arena.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) sectors: u32,
    pub(crate) lanes: u32,
}

/// What a sector reads as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Value {
    Zero,
    Lost,
    /// What the write of this number wrote, if that is what these bytes are.
    Bytes([u64; 2]),
}

impl Value {
    /// What the write of number `mark` writes.
    pub(crate) fn of(mark: u64) -> Self {
        Self::Bytes([mark << 8 | 1, mark << 8 | 2])
    }

    pub(crate) fn bytes(self) -> [u8; 16] {
        let words = if let Self::Bytes(words) = self { words } else { [0; 2] };
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&words[0].to_le_bytes());
        bytes[8..].copy_from_slice(&words[1].to_le_bytes());
        bytes
    }

    pub(crate) fn read(bytes: &[u8; 16]) -> Self {
        match u128::from_le_bytes(*bytes) {
            0 => Self::Zero,
            both => Self::Bytes([both as u64, (both >> 64) as u64]),
        }
    }
}

impl Shape {
    pub(crate) fn blocks(self) -> u32 {
        self.sectors + self.lanes
    }

    pub(crate) fn layout(self) -> Layout {
        let dataoff = INFO_BYTES;
        let data_bytes = u64::from(self.blocks() * SECTOR_BYTES);
        let mapoff = (dataoff + data_bytes).next_multiple_of(64);
        let flogoff = (mapoff + u64::from(self.sectors) * 4).next_multiple_of(64);
        Layout {
            external_lbasize: SECTOR_BYTES,
            external_nlba: self.sectors,
            internal_lbasize: SECTOR_BYTES,
            internal_nlba: self.blocks(),
            nfree: self.lanes,
            dataoff,
            mapoff,
            flogoff,
            infooff: ARENA_BYTES_MIN - INFO_BYTES,
        }
    }

    pub(crate) fn arena(self) -> Arena {
        Arena {
            start: 0,
            first_lba: 0,
            layout: self.layout(),
            slots: SlotLayout::Standard,
            dialect: CONTAINER.dialect(),
        }
    }

    /// Map and log, in words: where they begin, and how many there are.
    pub(crate) fn metadata(self) -> (u64, usize) {
        let layout = self.layout();
        let end = layout.flogoff + u64::from(self.lanes) * FLOG_GROUP_BYTES;
        let words = (end - layout.mapoff) / WORD;
        (layout.mapoff, usize::try_from(words).expect("it is small"))
    }

    /// Memory with its info block, and zeroes as map and log. Each block has words of its own that nobody
    /// wrote to any sector.
    fn bare(self, threads: usize, omission: Option<Omission>) -> Recorder {
        let layout = self.layout();
        let (map, words) = self.metadata();
        let end = map + words as u64 * WORD;
        let regions = Regions { len: ARENA_BYTES_MIN, map, log: layout.flogoff, end };
        let mut recorder = Recorder::new(regions, threads, omission);
        let info = InfoBlock {
            uuid: Uuid([3; 16]),
            parent_uuid: Uuid::NIL,
            error: false,
            version: CONTAINER.version(),
            layout,
            nextoff: 0,
        };
        for (at, word) in (0..).step_by(8).zip(info.to_bytes().chunks_exact(8)) {
            let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
            if word != 0 {
                recorder.preset(at, word);
            }
        }
        for block in 0..self.blocks() {
            self.fill(
                &mut recorder,
                block,
                [u64::from(block) << 40 | 1, u64::from(block) << 40 | 2],
            );
        }
        recorder
    }

    fn fill(self, recorder: &mut Recorder, block: u32, words: [u64; 2]) {
        let at = self.arena().block_at(PostmapAba(block));
        recorder.preset(at, words[0]);
        recorder.preset(at + WORD, words[1]);
    }

    /// As formatted.
    pub(crate) fn fresh(self, threads: usize, omission: Option<Omission>) -> Recorder {
        let mut recorder = self.bare(threads, omission);
        for lane in 0..self.lanes {
            let first = CONTAINER.dialect().first(lane, PostmapAba(self.sectors + lane));
            let at = self.arena().entry_at(lane, 0);
            recorder.preset(at, first.words()[0]);
            recorder.preset(at + WORD, first.words()[1]);
        }
        recorder
    }

    /// What a crash left: these words of map and log, and these blocks.
    pub(crate) fn crashed(
        self,
        metadata: &[u64],
        blocks: &[[u64; 2]],
        omission: Option<Omission>,
    ) -> Recorder {
        let mut recorder = self.bare(2, omission);
        let (start, _) = self.metadata();
        for (at, &word) in (start..).step_by(8).zip(metadata) {
            if word != 0 {
                recorder.preset(at, word);
            }
        }
        for (block, &words) in (0..).zip(blocks) {
            self.fill(&mut recorder, block, words);
        }
        recorder
    }

    /// What a block has, or [`TORN`].
    pub(crate) fn block(self, recorder: &Recorder, block: u32) -> [u64; 2] {
        let at = self.arena().block_at(PostmapAba(block));
        match (recorder.certain(at), recorder.certain(at + WORD)) {
            (Some(first), Some(second)) => [first, second],
            _ => TORN,
        }
    }
}
