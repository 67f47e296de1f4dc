//! Memory of a BTT that tells of its calls before they are done, and may be told to fail them.
#![allow(dead_code, reason = "each test listens to a part of it")]

use blockyard_btt::{MediaError, Memory, Touch};

/// A call, and where.
pub(crate) enum Call {
    Write(u64),
    Zero(u64),
    Load(u64),
    Fence,
    Touched(Touch),
}

/// Memory over another one. A call that `told` fails is not done; one that touches cannot fail.
pub(crate) struct Told<M, F> {
    pub(crate) memory: M,
    pub(crate) told: F,
}

impl<M: Memory, F: Fn(Call) -> Result<(), MediaError>> Memory for Told<M, F> {
    fn len(&self) -> u64 {
        self.memory.len()
    }
    fn read(&self, at: u64, to: &mut [u8]) -> Result<(), MediaError> {
        self.memory.read(at, to)
    }
    fn write(&self, at: u64, from: &[u8]) -> Result<(), MediaError> {
        (self.told)(Call::Write(at))?;
        self.memory.write(at, from)
    }
    fn zero(&self, at: u64, len: u64) -> Result<(), MediaError> {
        (self.told)(Call::Zero(at))?;
        self.memory.zero(at, len)
    }
    fn load(&self, at: u64) -> Result<u32, MediaError> {
        (self.told)(Call::Load(at))?;
        self.memory.load(at)
    }
    fn store(&self, at: u64, word: u32) -> Result<(), MediaError> {
        self.memory.store(at, word)
    }
    fn store_long(&self, at: u64, word: u64) -> Result<(), MediaError> {
        self.memory.store_long(at, word)
    }
    fn write_back(&self, at: u64, len: u64) {
        self.memory.write_back(at, len);
    }
    fn fence(&self) -> Result<(), MediaError> {
        (self.told)(Call::Fence)?;
        self.memory.fence()
    }
    fn touched(&self, touch: Touch) {
        (self.told)(Call::Touched(touch)).expect("only who calls the medium can fail");
        self.memory.touched(touch);
    }
}
