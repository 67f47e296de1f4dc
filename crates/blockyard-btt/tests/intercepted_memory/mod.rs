//! Memory of a BTT with a function that sees each call before it is carried out, and may fail it.
#![allow(dead_code, reason = "each test looks at only some of the calls")]

use blockyard_btt::{MediaError, Memory, Touch};

/// A call, and its position.
pub(crate) enum Call {
    Read(u64),
    Write(u64),
    Zero(u64),
    Load(u64),
    WriteBack(core::ops::Range<u64>),
    Fence,
    Touched(Touch),
}

/// Memory over another one. A call that `intercept` fails is not carried out. It must not fail
/// `WriteBack` or `Touched`.
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
}
