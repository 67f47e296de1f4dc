//! A medium loses a block, until it is zeroed. Writing it succeeds, but does not repair it.

mod intercepted_memory;

use blockyard_btt::ram::Ram;
use blockyard_btt::{
    Btt, Container, Format, IoError, LaneChoice, MediaError, OpenOptions, Policy, Uuid,
};
use core::cell::{Cell, RefCell};
use intercepted_memory::{Call, Intercepted};

const BYTES: u64 = 16 << 20;
/// The map of a 16 MiB arena, from the format's table of images.
const MAP: u64 = 16_625_664;
const BAD: Result<(), IoError> = Err(IoError::Media(MediaError::Bad));

/// The lost block, and the calls so far.
#[derive(Default)]
struct Medium {
    lost: Cell<Option<u64>>,
    calls: RefCell<Vec<Call>>,
}

impl Medium {
    fn call(&self, call: Call) -> Result<(), MediaError> {
        match call {
            Call::Read(at) if self.lost.get() == Some(at) => return Err(MediaError::Bad),
            Call::Zero(at) if self.lost.get() == Some(at) => self.lost.set(None),
            _ => {}
        }
        self.calls.borrow_mut().push(call);
        Ok(())
    }

    /// Loses the block that was written last.
    fn lose(&self) -> u64 {
        let calls = self.calls.take();
        let writes = calls.iter().filter_map(|call| match call {
            Call::Write(at) => Some(*at),
            _ => None,
        });
        let block = writes.last().expect("a sector was written");
        self.lost.set(Some(block));
        block
    }
}

fn format() -> Format {
    let container = Container::LabelledNamespace;
    let (uuid, parent_uuid) = (Uuid([1; 16]), Uuid::NIL);
    Format { container, sector_bytes: 512, uuid, parent_uuid, blank: true }
}

#[test]
fn the_mark_of_a_lost_sector_is_durable_when_its_reader_learns_of_it() {
    for policy in [Policy::DEFAULT, Policy::LINUX] {
        let medium = Medium::default();
        let memory = Intercepted { memory: Ram::new(BYTES), intercept: |call| medium.call(call) };
        let btt = Btt::create(memory, &format(), policy).expect("a new BTT");
        btt.write(0, &[5; 512]).expect("successful write");
        medium.lose();
        let mut to = [0; 512];
        assert_eq!(btt.read(0, &mut to), BAD, "{policy:?}");
        let calls = medium.calls.take();
        let marked = |call: &Call| matches!(call, Call::WriteBack(bytes) if bytes.contains(&MAP));
        let marked = calls.iter().position(marked).expect("the mark is written back");
        let fenced = calls.iter().rposition(|call| matches!(call, Call::Fence));
        assert!(fenced.is_some_and(|fenced| fenced > marked), "{policy:?}: a fence follows");
        medium.lost.set(None);
        assert_eq!(btt.read(0, &mut to), Err(IoError::Lost), "{policy:?}: lost for ever");
    }
}

/// The block of a lost sector becomes free when the sector is written again. It is zeroed before it has data
/// again, also if the BTT was opened meanwhile.
#[test]
fn a_lost_block_is_repaired_before_it_is_used_again() {
    for opened_again in [false, true] {
        let (medium, ram) = (Medium::default(), Ram::new(BYTES));
        let memory = || Intercepted { memory: &ram, intercept: |call| medium.call(call) };
        // The only set has all 256 lanes, and takes them in turn.
        let policy = Policy { lanes: LaneChoice::Own { sets: 1 }, ..Policy::DEFAULT };
        let mut btt = Btt::create(memory(), &format(), policy).expect("a new BTT");
        btt.write(0, &[5; 512]).expect("successful write");
        let block = medium.lose();
        let mut to = [0; 512];
        assert_eq!(btt.read(0, &mut to), BAD);
        btt.write(0, &[6; 512]).expect("write of a lost sector");
        if opened_again {
            let options = OpenOptions::new(Container::LabelledNamespace);
            btt = Btt::open(memory(), &OpenOptions { policy, ..options }).expect("the same BTT");
        }
        let mut worker = btt.worker();
        for lba in 1..=600 {
            worker.write(lba, &[7; 512]).expect("successful write");
            assert_eq!(worker.read(lba, &mut to), Ok(()), "sector {lba}, {opened_again}");
        }
        let calls = medium.calls.take();
        let zeroed = calls.iter().filter(|call| matches!(call, Call::Zero(at) if *at == block));
        let written = calls.iter().filter(|call| matches!(call, Call::Write(at) if *at == block));
        assert_eq!((zeroed.count(), written.count()), (1, 1), "repaired once, and used");
    }
}
