//! Discards of block devices. Each lane has a thread for them: io_uring has no such operation
//! before Linux 6.12, and the system call blocks for as long as the device takes.
//!
//! # Safety
//!
//! The only unsafe call is an ioctl that reads two numbers from a copy of ours.
#![allow(unsafe_code, reason = "an ioctl has no safe form; see Safety above")]

use crate::parts::bell;
use rustix::ioctl::{Setter, ioctl, opcode};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, mpsc};

/// A discard for the lane to begin.
#[derive(Debug)]
pub struct Discard {
    /// The device's number for the operation, which its result carries.
    pub number: u32,
    /// The block device.
    pub fd: Arc<OwnedFd>,
    /// The first byte.
    pub offset: u64,
    /// The length, in bytes.
    pub len: u64,
}

/// The result of a discard: the number of the disk, the number of the operation, and the result of
/// the system call.
pub type Discarded = (u16, u32, io::Result<usize>);

/// The discards of a lane. Their thread starts with the first one, and ends with the lane.
#[derive(Debug)]
pub struct Discards {
    bell: Arc<OwnedFd>,
    thread: Option<mpsc::Sender<(u16, Discard)>>,
    ended: (mpsc::Sender<Discarded>, mpsc::Receiver<Discarded>),
}

impl Discards {
    /// Returns an empty set of discards. `bell` wakes the lane.
    pub fn new(bell: Arc<OwnedFd>) -> Self {
        Self { bell, thread: None, ended: mpsc::channel() }
    }

    /// Begins a discard of the disk with the number `disk`.
    pub fn begin(&mut self, disk: u16, discard: Discard) {
        let number = discard.number;
        let begun = self.thread().and_then(|thread| {
            thread.send((disk, discard)).map_err(|_| io::ErrorKind::BrokenPipe.into())
        });
        if let Err(error) = begun {
            drop(self.ended.0.send((disk, number, Err(error)))); // this lane receives it
            bell::ring(&self.bell);
        }
    }

    /// Returns the result of a discard that has ended.
    pub fn next_ended(&self) -> Option<Discarded> {
        self.ended.1.try_recv().ok()
    }

    fn thread(&mut self) -> io::Result<&mpsc::Sender<(u16, Discard)>> {
        if self.thread.is_none() {
            let (begin, begun) = mpsc::channel::<(u16, Discard)>();
            let bell = Arc::clone(&self.bell);
            let ended = self.ended.0.clone();
            std::thread::Builder::new().name("discards".to_owned()).spawn(move || {
                for (disk, one) in begun {
                    // A lane that has ended needs no result.
                    drop(ended.send((disk, one.number, discard(&one))));
                    bell::ring(&bell);
                }
            })?;
            self.thread = Some(begin);
        }
        Ok(self.thread.as_ref().expect("thread that was started"))
    }
}

/// Discards a range of a block device, by the ioctl `BLKDISCARD`.
fn discard(Discard { fd, offset, len, .. }: &Discard) -> io::Result<usize> {
    // SAFETY: the kernel reads the first byte and the length, two numbers of 64 bits.
    unsafe {
        let call = Setter::<{ opcode::none(0x12, 119) }, [u64; 2]>::new([*offset, *len]);
        ioctl(fd, call)?;
    }
    Ok(0)
}
