//! Memory of a BTT with a function that sees each call before it is carried out, and may fail it.
#![allow(dead_code, reason = "each test looks at only some of the calls")]

use blockyard_btt::{Btt, Container, Format, MediaError, Memory, Policy, Touch, Uuid};

/// Creates a BTT with sectors of 512 bytes.
pub(crate) fn create<M: Memory>(memory: M, policy: Policy) -> Btt<M> {
    create_sized(memory, 512, policy)
}

pub(crate) fn create_sized<M: Memory>(memory: M, sector_bytes: u32, policy: Policy) -> Btt<M> {
    let format = Format {
        container: Container::LabelledNamespace,
        sector_bytes,
        uuid: Uuid([1; 16]),
        parent_uuid: Uuid::NIL,
        blank: true,
    };
    Btt::create(memory, &format, policy).expect("a new BTT in memory")
}

/// A call, and its position.
pub(crate) enum Call {
    Read(u64),
    Write(u64),
    Zero(u64),
    Load(u64),
    WriteBack(core::ops::Range<u64>),
    Fence,
    Touched(Touch),
    Relax(u32),
    Prefetch(core::ops::Range<u64>),
}

/// Memory over another one. A call that `intercept` fails is not carried out. It must not fail
/// `WriteBack`, `Touched`, `Relax` or `Prefetch`.
pub(crate) struct Intercepted<M, F> {
    pub(crate) memory: M,
    pub(crate) intercept: F,
}

impl<M: Memory, F: Fn(Call) -> Result<(), MediaError>> Memory for Intercepted<M, F> {
    fn len(&self) -> u64 {
        self.memory.len()
    }
    fn read(&self, at: u64, to: &mut [u8]) -> Result<(), MediaError> {
        (self.intercept)(Call::Read(at))?;
        self.memory.read(at, to)
    }
    fn write(&self, at: u64, from: &[u8]) -> Result<(), MediaError> {
        (self.intercept)(Call::Write(at))?;
        self.memory.write(at, from)
    }
    fn zero(&self, at: u64, len: u64) -> Result<(), MediaError> {
        (self.intercept)(Call::Zero(at))?;
        self.memory.zero(at, len)
    }
    fn load(&self, at: u64) -> Result<u32, MediaError> {
        (self.intercept)(Call::Load(at))?;
        self.memory.load(at)
    }
    fn store(&self, at: u64, word: u32) -> Result<(), MediaError> {
        self.memory.store(at, word)
    }
    fn store_long(&self, at: u64, word: u64) -> Result<(), MediaError> {
        self.memory.store_long(at, word)
    }
    fn write_back(&self, at: u64, len: u64) {
        let call = Call::WriteBack(at..at + len);
        (self.intercept)(call).expect("success of a write-back, which cannot fail");
        self.memory.write_back(at, len);
    }
    fn fence(&self) -> Result<(), MediaError> {
        (self.intercept)(Call::Fence)?;
        self.memory.fence()
    }
    fn touched(&self, touch: Touch) {
        (self.intercept)(Call::Touched(touch)).expect("success of a report, which cannot fail");
        self.memory.touched(touch);
    }
    fn prefetch(&self, at: u64, len: u64) {
        (self.intercept)(Call::Prefetch(at..at + len))
            .expect("success of a hint, which cannot fail");
        self.memory.prefetch(at, len);
    }
    fn hole(&self, at: u64) -> u64 {
        self.memory.hole(at)
    }
    fn relax(&self, turn: u32) {
        (self.intercept)(Call::Relax(turn)).expect("success of a wait, which cannot fail");
        self.memory.relax(turn);
    }
}
