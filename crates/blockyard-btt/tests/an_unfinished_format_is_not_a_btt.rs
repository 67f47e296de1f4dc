//! A crash while a BTT is formatted, on empty memory and on memory with an older BTT: afterwards
//! the memory has the older BTT, whole, or none, or the new one, empty.
//!
//! Before each fence the memory has the most possible states since the last fence, and they include
//! all states of the moments in between. So these moments are visited, with each part of the arena
//! old or new, and with random words.

mod crash_rig;

use blockyard::prng::Prng;
use blockyard_btt::arena::read_info;
use blockyard_btt::info_block::InfoBlock;
use blockyard_btt::layout::{INFO_BYTES, Layout};
use blockyard_btt::ram::Ram;
use blockyard_btt::{
    Btt, Container, Format, MediaError, Memory, OpenError, OpenOptions, Policy, Uuid,
};
use core::cell::{Cell, RefCell};
use crash_rig::{Omission, Recorder, Regions};

const BYTES: u64 = 16 << 20;
const SECTOR: usize = 512;
/// Sectors that are written and read.
const SECTORS: [u64; 4] = [0, 1, 5, 31_000];
/// Random states of a moment.
const DRAWN: u64 = 8;

/// Memory that is judged before each fence.
struct Formatted {
    recorder: RefCell<Recorder>,
    /// The UUID of the older BTT.
    former: Option<Uuid>,
    judged: bool,
    broken: RefCell<Option<String>>,
    moments: Cell<u32>,
}

fn format(number: u8, blank: bool) -> Format {
    Format {
        container: Container::LabelledNamespace,
        sector_bytes: 512,
        uuid: Uuid([number; 16]),
        parent_uuid: Uuid::NIL,
        blank,
    }
}

fn layout() -> Layout {
    format(1, true).plan(BYTES).expect("plan of a possible BTT")[0].1.layout
}

fn options() -> OpenOptions {
    OpenOptions::new(Container::LabelledNamespace)
}

impl Formatted {
    /// Returns memory with zeroes, or with a BTT of which some sectors were written.
    fn new(former: Option<Uuid>, omission: Option<Omission>) -> Self {
        let layout = layout();
        let regions = Regions {
            len: BYTES,
            first: 0,
            arena: BYTES,
            map: layout.mapoff,
            log: layout.flogoff,
            end: layout.infooff,
        };
        let mut recorder = Recorder::new(regions, 1, omission);
        if let Some(Uuid([number, ..])) = former {
            let ram = Ram::new(BYTES);
            let btt = Btt::create(&ram, &format(number, true), Policy::DEFAULT).expect("a new BTT");
            for lba in SECTORS {
                btt.write(lba, &[7; SECTOR]).expect("write to ram");
            }
            drop(btt);
            for at in (0..BYTES).step_by(8) {
                let mut bytes = [0; 8];
                ram.read(at, &mut bytes).expect("read from ram");
                if bytes != [0; 8] {
                    recorder.preset(at, u64::from_le_bytes(bytes));
                }
            }
        }
        Self::of(recorder, former)
    }

    /// Returns the memory after a crash, which is not judged again.
    fn plain(recorder: Recorder) -> Self {
        Self { judged: false, ..Self::of(recorder, None) }
    }

    fn of(recorder: Recorder, former: Option<Uuid>) -> Self {
        Self {
            recorder: RefCell::new(recorder),
            former,
            judged: true,
            broken: RefCell::default(),
            moments: Cell::new(0),
        }
    }

    /// Judges a crash at this moment. If formatting is `done`, only the new BTT is allowed.
    fn look(&self, done: bool) {
        self.moments.set(self.moments.get() + 1);
        let recorder = self.recorder.borrow();
        let mut prng = Prng::new(u64::from(self.moments.get()));
        // Info block, copy, map and log: each old or new.
        for parts in 0..16 + DRAWN {
            let layout = layout();
            let left = Self::plain(recorder.crashed(&mut |at: u64, values: &[u64]| match at {
                _ if parts >= 16 => prng.pick(values),
                at => {
                    let part = match at {
                        at if at < INFO_BYTES => 0,
                        at if at >= layout.infooff => 1,
                        at if at < layout.flogoff => 2,
                        _ => 3,
                    };
                    let new = parts >> part & 1 == 1;
                    if new { values[values.len() - 1] } else { values[0] }
                }
            }));
            if let Err(broken) = self.judge(&left, done) {
                self.broken.borrow_mut().get_or_insert(broken);
            }
        }
    }

    /// Returns the info block at `at`, if it is whole.
    fn info(&self, at: u64) -> Option<InfoBlock> {
        read_info(self, at, BYTES).expect("read of the recorder").ok()
    }

    fn judge(&self, left: &Self, done: bool) -> Result<(), String> {
        let first = left.info(0);
        let copy = left.info(layout().infooff);
        // Other readers look only at the first info block, and may rely on its copy.
        let has_copy = first == copy || first.is_some_and(|info| Some(info.uuid) == self.former);
        if first.is_some() && !has_copy || first.is_none() && done {
            return Err(format!("the info block is {first:?}, and its copy {copy:?}"));
        }
        let btt = match Btt::open(left, &options()) {
            Ok(btt) => btt,
            Err(OpenError::Find(_)) if !done => return Ok(()),
            Err(error) => return Err(format!("refused: {error}")),
        };
        let is_former = Some(btt.uuid()) == self.former;
        if is_former && done {
            return Err("the older BTT is still there".to_owned());
        }
        for lba in SECTORS {
            let mut bytes = [1; SECTOR];
            btt.read(lba, &mut bytes).map_err(|error| format!("sector {lba}: {error}"))?;
            let expected = if is_former { 7 } else { 0 };
            if bytes != [expected; SECTOR] {
                return Err(format!("sector {lba} of {} reads {:?}...", btt.uuid(), &bytes[..8]));
            }
        }
        Ok(())
    }
}

impl Memory for Formatted {
    fn len(&self) -> u64 {
        BYTES
    }

    fn read(&self, at: u64, to: &mut [u8]) -> Result<(), MediaError> {
        self.recorder.borrow().read(at, to);
        Ok(())
    }

    fn write(&self, at: u64, from: &[u8]) -> Result<(), MediaError> {
        self.recorder.borrow_mut().write(0, at, from);
        Ok(())
    }

    fn zero(&self, at: u64, len: u64) -> Result<(), MediaError> {
        self.write(at, &vec![0; usize::try_from(len).expect("length of a small range")])
    }

    fn load(&self, at: u64) -> Result<u32, MediaError> {
        let mut bytes = [0; 4];
        self.read(at, &mut bytes).map(|()| u32::from_le_bytes(bytes))
    }

    fn store(&self, at: u64, word: u32) -> Result<(), MediaError> {
        self.recorder.borrow_mut().store(0, at, &word.to_le_bytes());
        Ok(())
    }

    fn store_long(&self, at: u64, word: u64) -> Result<(), MediaError> {
        self.recorder.borrow_mut().store(0, at, &word.to_le_bytes());
        Ok(())
    }

    fn write_back(&self, at: u64, len: u64) {
        self.recorder.borrow_mut().write_back(0, at, len);
    }

    fn fence(&self) -> Result<(), MediaError> {
        if self.judged {
            self.look(false);
        }
        self.recorder.borrow_mut().fence(0);
        Ok(())
    }
}

/// Formats a BTT on zeroes or over the `former` one. Returns the first failure.
fn make(former: Option<Uuid>, omission: Option<Omission>) -> Option<String> {
    let memory = Formatted::new(former, omission);
    format(2, former.is_none()).write(&memory).expect("formatting of the recorder");
    memory.look(true);
    println!("{former:?}, {omission:?}: {} moments", memory.moments.get());
    memory.broken.into_inner()
}

const FORMER: Option<Uuid> = Some(Uuid([1; 16]));

#[test]
fn a_crash_leaves_the_old_btt_or_none_or_an_empty_one() {
    assert_eq!(make(None, None), None);
    assert_eq!(make(FORMER, None), None);
}

#[test]
fn each_fence_is_needed() {
    for (former, omission) in [
        (FORMER, Omission::FenceBehindCopy),
        (None, Omission::FenceBehindSecondWords),
        (None, Omission::FenceBehindCopy),
        (None, Omission::FenceBehindInfo),
    ] {
        let broken = make(former, Some(omission));
        println!("{omission:?}: {broken:?}");
        assert!(broken.is_some(), "{omission:?} was not detected");
    }
}
