//! Arenas much smaller than any real one, which the code accepts because it believes consistent
//! info blocks. Each claims to have 16 MiB, and uses almost none of it.

use super::crash::State;
use super::omit::Omission;
use super::recorder::{BadBlock, Recorder, Regions, WORD};
use blockyard_btt::arena::Arena;
use blockyard_btt::flog::{FlogEntry, SlotLayout};
use blockyard_btt::info_block::InfoBlock;
use blockyard_btt::layout::{ARENA_BYTES_MIN, FLOG_GROUP_BYTES, INFO_BYTES, Layout};
use blockyard_btt::{Container, MapEntry, PostmapAba, PremapAba, Uuid};

/// Two words: the smallest sector that can be torn.
pub(crate) const SECTOR_BYTES: u32 = 16;
/// Marks a block whose bytes a crash may have mixed.
pub(crate) const TORN: [u64; 2] = [0xbad, 0xbad];
/// Marks a block that the medium lost.
pub(crate) const BAD: [u64; 2] = [0xbad, 0xb10c];

/// The state of some blocks of a new arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Media {
    /// All blocks are good.
    Sound,
    /// The blocks of sector 0 and of lane 0 cannot be read, nor written until they were zeroed.
    Refuses,
    /// The block of sector 0 cannot be read until it was zeroed. A write alone succeeds but does
    /// not help.
    Keeps,
}

/// The parameters of a BTT.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Sectors of each arena.
    pub(crate) sectors: u32,
    /// Lanes of each arena.
    pub(crate) lanes: u32,
    pub(crate) arenas: u32,
    pub(crate) container: Container,
    /// The position of second log entries. The old position shows only in a written second entry:
    /// lane 0 of each arena has then written its last sector once.
    pub(crate) slots: SlotLayout,
    pub(crate) media: Media,
}

/// The value of a sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Value {
    Zero,
    Lost,
    /// The bytes of a write; which write shows in them.
    Bytes([u64; 2]),
}

impl Value {
    /// Returns the value that write number `mark` writes.
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
    /// One arena of a labelled namespace, as it is formatted today.
    pub(crate) const fn new(sectors: u32, lanes: u32) -> Self {
        Self {
            sectors,
            lanes,
            arenas: 1,
            container: Container::LabelledNamespace,
            slots: SlotLayout::Standard,
            media: Media::Sound,
        }
    }

    /// Sectors of all arenas.
    pub(crate) fn all_sectors(self) -> u64 {
        u64::from(self.sectors) * u64::from(self.arenas)
    }

    /// Blocks of each arena.
    pub(crate) fn blocks(self) -> u32 {
        self.sectors + self.lanes
    }

    /// The layout of each arena.
    fn layout(self) -> Layout {
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

    pub(crate) fn arenas(self) -> impl Iterator<Item = Arena> {
        (0..self.arenas).map(move |n| Arena {
            start: self.container.first_arena() + u64::from(n) * ARENA_BYTES_MIN,
            first_lba: u64::from(n * self.sectors),
            layout: self.layout(),
            slots: self.slots,
            dialect: self.container.dialect(),
        })
    }

    fn arena(self, n: u32) -> Arena {
        self.arenas().nth(n as usize).expect("number of an arena of this shape")
    }

    /// The number of words of map and log of one arena.
    pub(crate) fn metadata_words(self) -> usize {
        let layout = self.layout();
        let end = layout.flogoff + u64::from(self.lanes) * FLOG_GROUP_BYTES;
        usize::try_from((end - layout.mapoff) / WORD).expect("a small number of words")
    }

    /// The positions of the words of map and log, arena after arena.
    pub(crate) fn metadata(self) -> impl Iterator<Item = u64> {
        let words = self.metadata_words();
        self.arenas()
            .map(|arena| arena.start + arena.layout.mapoff)
            .flat_map(move |start| (start..).step_by(8).take(words))
    }

    /// Returns the index of the word of map or log at `at`, if there is one.
    pub(crate) fn metadata_place(self, at: u64) -> Option<usize> {
        let (arena, within) = self.within(at)?;
        let word = usize::try_from(within.checked_sub(self.layout().mapoff)? / WORD).ok()?;
        let words = self.metadata_words();
        (word < words).then(|| arena as usize * words + word)
    }

    /// Returns the block at `at` and the word within it, if there is one.
    pub(crate) fn block_place(self, at: u64) -> Option<(usize, usize)> {
        let (arena, within) = self.within(at)?;
        let word = usize::try_from(within.checked_sub(INFO_BYTES)? / WORD).ok()?;
        let blocks = self.blocks() as usize;
        (word / 2 < blocks).then(|| (arena as usize * blocks + word / 2, word % 2))
    }

    /// Returns the number of the arena with this byte, and the position within it.
    fn within(self, at: u64) -> Option<(u64, u64)> {
        let at = at.checked_sub(self.container.first_arena())?;
        Some((at / ARENA_BYTES_MIN, at % ARENA_BYTES_MIN))
    }

    /// Returns the position of block `block`, counted through all arenas.
    pub(crate) fn block_at(self, block: u32) -> u64 {
        self.arena(block / self.blocks()).block_at(PostmapAba(block % self.blocks()))
    }

    /// Blocks of all arenas.
    pub(crate) fn all_blocks(self) -> u32 {
        self.blocks() * self.arenas
    }

    pub(crate) fn regions(self) -> Regions {
        let layout = self.layout();
        Regions {
            first: self.container.first_arena(),
            arena: ARENA_BYTES_MIN,
            len: self.container.first_arena() + u64::from(self.arenas) * ARENA_BYTES_MIN,
            map: layout.mapoff,
            log: layout.flogoff,
            end: layout.infooff,
        }
    }

    /// Returns memory with info blocks, and a map and log of zeroes. Each block has words of its
    /// own that no write wrote.
    fn bare(self, threads: usize, omission: Option<Omission>) -> Recorder {
        let mut recorder = Recorder::new(self.regions(), threads, omission);
        for (n, arena) in (1..).zip(self.arenas()) {
            let info = InfoBlock {
                uuid: Uuid([3; 16]),
                parent_uuid: Uuid::NIL,
                error: false,
                version: self.container.version(),
                layout: arena.layout,
                nextoff: if n == self.arenas { 0 } else { ARENA_BYTES_MIN },
            };
            for (at, word) in (0..).step_by(8).zip(info.to_bytes().chunks_exact(8)) {
                let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
                if word != 0 {
                    recorder.preset(arena.start + at, word);
                    recorder.preset(arena.start + arena.layout.infooff + at, word);
                }
            }
        }
        for block in 0..self.all_blocks() {
            self.fill(&mut recorder, block, Self::initial_words(block));
        }
        recorder
    }

    /// Returns the first words of block `block`, counted through all arenas.
    fn initial_words(block: u32) -> [u64; 2] {
        [u64::from(block) << 40 | 1, u64::from(block) << 40 | 2]
    }

    fn fill(self, recorder: &mut Recorder, block: u32, words: [u64; 2]) {
        let at = self.block_at(block);
        if words == BAD {
            recorder.lose(BadBlock {
                at,
                len: SECTOR_BYTES.into(),
                refuses: self.media == Media::Refuses,
            });
            return;
        }
        recorder.preset(at, words[0]);
        recorder.preset(at + WORD, words[1]);
    }

    /// Returns a formatted BTT, changed as `slots` and `media` require, and the value of each
    /// sector.
    pub(crate) fn fresh(
        self,
        threads: usize,
        omission: Option<Omission>,
    ) -> (Recorder, Vec<Value>) {
        let mut recorder = self.bare(threads, omission);
        let mut values = vec![Value::Zero; self.all_sectors() as usize];
        let dialect = self.container.dialect();
        for (n, arena) in (0..).zip(self.arenas()) {
            let mut map = vec![MapEntry(0); self.sectors as usize];
            for lane in 0..self.lanes {
                let first = dialect.first_entry(lane, PostmapAba(self.sectors + lane));
                put_entry(&mut recorder, arena.entry_at(lane, 0), first);
            }
            if self.slots == SlotLayout::OldLinux {
                let lba = PremapAba(self.sectors - 1);
                let block = PostmapAba(self.sectors);
                let second = FlogEntry {
                    lba: lba.0,
                    old_map: dialect.logged_old(MapEntry(0), lba),
                    new_map: dialect.logged_new(block),
                    seq: 2,
                };
                put_entry(&mut recorder, arena.entry_at(0, 1), second);
                map[lba.0 as usize] = MapEntry::normal(block);
                let all = n * self.blocks() + block.0;
                values[(arena.first_lba + u64::from(lba.0)) as usize] =
                    Value::Bytes(Self::initial_words(all));
            }
            if self.media != Media::Sound && n == 0 {
                map[0] = MapEntry::normal(PostmapAba(0));
                values[0] = Value::Lost;
                self.fill(&mut recorder, 0, BAD);
            }
            if self.media == Media::Refuses && n == 0 {
                let free = match self.slots {
                    SlotLayout::Standard => self.sectors,
                    SlotLayout::OldLinux => self.sectors - 1,
                };
                self.fill(&mut recorder, free, BAD);
            }
            for (at, two) in (arena.map_at(PremapAba(0))..).step_by(8).zip(map.chunks(2)) {
                if word(two, 0) | word(two, 1) != 0 {
                    recorder.preset(at, word(two, 1) << 32 | word(two, 0));
                }
            }
        }
        (recorder, values)
    }

    /// Returns the memory after a crash that left these words of map and log, and these blocks.
    pub(crate) fn crashed(
        self,
        metadata: &[u64],
        blocks: &[[u64; 2]],
        omission: Option<Omission>,
    ) -> Recorder {
        let mut recorder = self.bare(2, omission);
        for (at, &word) in self.metadata().zip(metadata) {
            if word != 0 {
                recorder.preset(at, word);
            }
        }
        for (block, &words) in (0..).zip(blocks) {
            self.fill(&mut recorder, block, words);
        }
        recorder
    }

    /// Returns map and log, and the words of each block or [`TORN`] or [`BAD`].
    pub(crate) fn state(self, recorder: &Recorder) -> State {
        let metadata = self.words_of_arenas(
            recorder,
            |arena| arena.start + arena.layout.mapoff,
            self.metadata_words(),
        );
        let data: Vec<u64> = self.words_of_arenas(
            recorder,
            |arena| arena.start + arena.layout.dataoff,
            self.blocks() as usize * 2,
        );
        let mut blocks: Vec<[u64; 2]> = data.chunks(2).map(|two| [two[0], two[1]]).collect();
        for (block, _) in recorder.open().filter_map(|(at, _)| self.block_place(at)) {
            blocks[block] = TORN;
        }
        for (at, _) in recorder.bad().filter(|&(_, is_bad)| is_bad) {
            blocks[self.block_place(at).expect("position of a block").0] = BAD;
        }
        State { metadata, blocks }
    }

    fn words_of_arenas(self, recorder: &Recorder, at: fn(&Arena) -> u64, count: usize) -> Vec<u64> {
        self.arenas().flat_map(move |arena| recorder.words(at(&arena), count)).collect()
    }
}

fn word(two: &[MapEntry], n: usize) -> u64 {
    two.get(n).map_or(0, |entry| u64::from(entry.0))
}

fn put_entry(recorder: &mut Recorder, at: u64, entry: FlogEntry) {
    let [first, second] = entry.words();
    recorder.preset(at, first);
    recorder.preset(at + WORD, second);
}
