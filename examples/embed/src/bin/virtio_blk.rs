//! A virtio-blk device of a VMM, on virtio-queue. `cargo run --bin virtio_blk` lets a small guest
//! use it.
//!
//! The device is a thread. A kick of the guest tells it to take all chains of descriptors and to
//! begin their requests as one batch. Each request is a future, whose waker sends the thread its
//! number; the thread then fills the guest's memory, and interrupts the guest.
//!
//! The memory of a guest changes under a reader, so no safe Rust slice of it exists: data is copied
//! between it and the buffers of the I/O.

use blockyard_std::{Act, Batch, Disk, Error, Io, Status};
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::task::Wake;
use std::thread::JoinHandle;
use virtio_queue::{DescriptorChain, Queue, QueueT, Reader, Writer};
use vm_memory::bitmap::BitmapSlice;
use vm_memory::{Bytes, GuestAddress, GuestMemoryMmap};

/// The size of a virtio-blk sector, in bytes.
const SECTOR: u64 = 512;

/// The longest read, in bytes.
const LONGEST: usize = 1 << 20;

// Types of requests, and their results (virtio 1.2, section 5.2.6).
const IN: u32 = 0;
const OUT: u32 = 1;
const FLUSH: u32 = 4;
const DISCARD: u32 = 11;
const WRITE_ZEROES: u32 = 13;
const OK: u8 = 0;
const IO_ERROR: u8 = 1;
const UNSUPPORTED: u8 = 2;

/// Why the device's thread wakes up.
enum Event {
    /// The guest has made chains available.
    Kick,
    /// The request of the chain with this head may have ended.
    Woken(u16),
    /// The VMM ends.
    Stop,
}

type Memory = Arc<GuestMemoryMmap>;
type Chain = DescriptorChain<Memory>;

/// The device, which its thread runs.
struct Device {
    disk: Disk,
    queue: Queue,
    memory: Memory,
    events: mpsc::Sender<Event>,
    /// Requests by the heads of their chains.
    in_flight: BTreeMap<u16, (Chain, Request)>,
    /// Interrupts the guest.
    interrupt: Box<dyn FnMut() + Send>,
}

/// A request in flight.
enum Request {
    Read(Io<Vec<u8>>),
    Write(Io<Vec<u8>>),
    Act(Act),
}

/// Sends the number of a request to the device's thread.
struct Wakes {
    head: u16,
    events: mpsc::Sender<Event>,
}

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        let _ = self.events.send(Event::Woken(self.head)); // the device may have ended
    }
}

impl Device {
    /// Serves until [`Event::Stop`].
    ///
    /// # Errors
    ///
    /// Fails if the guest breaks the rules of its queue. A VMM then asks the guest for a reset.
    fn run(mut self, events: &mpsc::Receiver<Event>) -> io::Result<()> {
        loop {
            match events.recv() {
                Ok(Event::Kick) => self.take_chains()?,
                Ok(Event::Woken(head)) => self.poll(head)?,
                Ok(Event::Stop) | Err(mpsc::RecvError) => return Ok(()),
            }
        }
    }

    /// Begins the requests of all available chains together.
    fn take_chains(&mut self) -> io::Result<()> {
        let mut heads = Vec::new();
        let disk = self.disk.clone();
        let mut batch = disk.batch();
        while let Some(chain) = self.queue.pop_descriptor_chain(Arc::clone(&self.memory)) {
            let head = chain.head_index();
            match begin(&mut batch, &chain, &self.memory)? {
                Some(request) => {
                    self.in_flight.insert(head, (chain, request));
                    heads.push(head);
                }
                None => self.end(&chain, UNSUPPORTED, &[])?,
            }
        }
        batch.submit();
        heads.into_iter().try_for_each(|head| self.poll(head))
    }

    /// Ends the request of a chain, if the disk has done it.
    fn poll(&mut self, head: u16) -> io::Result<()> {
        let waker = Waker::from(Arc::new(Wakes { head, events: self.events.clone() }));
        let mut cx = Context::from_waker(&waker);
        let Some((_, request)) = self.in_flight.get_mut(&head) else { return Ok(()) };
        let polled = match request {
            Request::Read(io) => Pin::new(io).poll(&mut cx),
            Request::Write(io) => {
                Pin::new(io).poll(&mut cx).map(|(result, _)| (result, Vec::new()))
            }
            Request::Act(act) => Pin::new(act).poll(&mut cx).map(|result| (result, Vec::new())),
        };
        let Poll::Ready((result, data)) = polled else { return Ok(()) };
        let (chain, _) = self.in_flight.remove(&head).expect("the request that was just polled");
        match result {
            Ok(()) => self.end(&chain, OK, &data),
            Err(Error::Failed(Status::NotSupported)) => self.end(&chain, UNSUPPORTED, &[]),
            Err(_) => self.end(&chain, IO_ERROR, &[]),
        }
    }

    /// Fills the guest's memory, gives the chain back, and interrupts the guest if it wants that.
    fn end(&mut self, chain: &Chain, status: u8, data: &[u8]) -> io::Result<()> {
        let mut to = chain.clone().writer(&self.memory).map_err(io::Error::other)?;
        let mut last = to.split_at(room(&to)?).map_err(io::Error::other)?;
        to.write_all(data)?;
        last.write_all(&[status])?;
        let written = u32::try_from(data.len() + 1).expect("the length of a chain has 32 bits");
        self.queue
            .add_used(&*self.memory, chain.head_index(), written)
            .map_err(io::Error::other)?;
        if self.queue.needs_notification(&*self.memory).map_err(io::Error::other)? {
            (self.interrupt)();
        }
        Ok(())
    }
}

/// Begins the request of a chain. Returns `None` if the device does not know it.
fn begin(batch: &mut Batch<'_>, chain: &Chain, memory: &Memory) -> io::Result<Option<Request>> {
    let mut from = chain.clone().reader(memory).map_err(io::Error::other)?;
    let kind = number(&mut from)?;
    let _ = number(&mut from)?;
    // A sector beyond every disk stays beyond this one.
    let offset = long(&mut from)?.saturating_mul(SECTOR);
    Ok(Some(match kind {
        IN => {
            let to = chain.clone().writer(memory).map_err(io::Error::other)?;
            Request::Read(batch.read(vec![0; room(&to)?], offset))
        }
        OUT => {
            let mut data = vec![0; bounded(from.available_bytes())?];
            from.read_exact(&mut data)?;
            Request::Write(batch.write(data, offset))
        }
        FLUSH => Request::Act(batch.flush()),
        DISCARD | WRITE_ZEROES => {
            let offset = long(&mut from)?.saturating_mul(SECTOR);
            let len = u64::from(number(&mut from)?);
            let _flags = number(&mut from)?;
            if from.available_bytes() > 0 {
                return Ok(None); // of several segments; the device offers one
            }
            Request::Act(match kind {
                DISCARD => batch.discard(offset, len * SECTOR),
                _ => batch.write_zeroes(offset, len * SECTOR),
            })
        }
        _ => return Ok(None),
    }))
}

/// Returns the room for data. The last byte is that of the status.
fn room<B: BitmapSlice>(to: &Writer<'_, B>) -> io::Result<usize> {
    let room = to.available_bytes().checked_sub(1);
    bounded(room.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a chain without room"))?)
}

/// Returns `bytes`, the length of a chain's data, unless it is more than [`LONGEST`].
fn bounded(bytes: usize) -> io::Result<usize> {
    (bytes <= LONGEST)
        .then_some(bytes)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a chain with too much data"))
}

fn number<B: BitmapSlice>(from: &mut Reader<'_, B>) -> io::Result<u32> {
    let mut bytes = [0; 4];
    from.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn long<B: BitmapSlice>(from: &mut Reader<'_, B>) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// The number of descriptors of the queue.
const QUEUE: u16 = 64;
/// The number of requests that the guest has in flight at most: each has four descriptors.
const SLOTS: u16 = QUEUE / 4;
/// The size of a slot's data, in bytes.
const DATA: u32 = 4096;

// Where the guest has its queue and its buffers.
const DESCRIPTORS: u64 = 0x1000;
const AVAILABLE: u64 = 0x2000;
const USED: u64 = 0x3000;
const BUFFERS: u64 = 0x1_0000;
const GUEST_BYTES: usize = 1 << 20;

/// A driver of the device, as a guest has one.
struct Guest {
    memory: Memory,
    kicks: mpsc::Sender<Event>,
    interrupts: mpsc::Receiver<()>,
    /// The number of requests made available, and of those found used.
    made: u16,
    found: u16,
}

impl Guest {
    fn put<T: vm_memory::ByteValued>(&self, value: T, at: u64) {
        self.memory.write_obj(value, GuestAddress(at)).expect("memory of the guest");
    }

    fn get<T: vm_memory::ByteValued>(&self, at: u64) -> T {
        self.memory.read_obj(GuestAddress(at)).expect("memory of the guest")
    }

    /// Returns the place of a slot's header, of its status, and of its data.
    fn places(slot: u16) -> [u64; 3] {
        let start = BUFFERS + u64::from(slot) * 2 * u64::from(DATA);
        [start, start + 64, start + u64::from(DATA)]
    }

    /// Makes a request of `len` bytes available in `slot`, as a chain of header, data in two parts,
    /// and status.
    fn submit(&mut self, slot: u16, kind: u32, sector: u64, len: u32) {
        assert!(slot < SLOTS, "each slot has four descriptors");
        let [header, status, data] = Self::places(slot);
        self.put(kind.to_le(), header);
        self.put(sector.to_le(), header + 8);
        self.put(0xFF_u8, status);
        let to_guest = if kind == IN { 2 } else { 0 };
        let first = len / 3;
        let mut parts = vec![(header, 16, 0)];
        if first > 0 {
            parts.push((data, first, to_guest));
            parts.push((data + u64::from(first), len - first, to_guest));
        }
        parts.push((status, 1, 2));
        let last = parts.len() - 1;
        for (at, (address, len, flags)) in parts.into_iter().enumerate() {
            let number = slot * 4 + u16::try_from(at).expect("one of four");
            let place = DESCRIPTORS + 16 * u64::from(number);
            self.put(address.to_le(), place);
            self.put(len.to_le(), place + 8);
            let more = u16::from(at != last);
            self.put((flags | more).to_le(), place + 12);
            self.put((number + more).to_le(), place + 14);
        }
        self.put((slot * 4).to_le(), AVAILABLE + 4 + 2 * u64::from(self.made % QUEUE));
        self.made = self.made.wrapping_add(1);
        let index = GuestAddress(AVAILABLE + 2);
        self.memory
            .store(self.made.to_le(), index, Ordering::Release)
            .expect("memory of the guest");
    }

    fn kick(&self) {
        self.kicks.send(Event::Kick).expect("a device that runs");
    }

    /// Waits for an interrupt, and returns the slots of the requests that have ended, with their
    /// status and length.
    fn wait(&mut self) -> Vec<(u16, u8, u32)> {
        self.interrupts.recv().expect("a device that runs");
        let index = GuestAddress(USED + 2);
        let used: u16 = self.memory.load(index, Ordering::Acquire).expect("memory of the guest");
        let mut ended = Vec::new();
        while self.found != u16::from_le(used) {
            let place = USED + 4 + 8 * u64::from(self.found % QUEUE);
            let head = u32::from_le(self.get(place));
            let slot = u16::try_from(head / 4).expect("head of one of the chains");
            ended.push((slot, self.get(Self::places(slot)[1]), u32::from_le(self.get(place + 4))));
            self.found = self.found.wrapping_add(1);
        }
        ended
    }

    /// Makes one request, and waits for its status.
    fn one(&mut self, kind: u32, sector: u64, len: u32) -> u8 {
        self.submit(0, kind, sector, len);
        self.kick();
        loop {
            if let [(0, status, _)] = self.wait()[..] {
                return status;
            }
        }
    }

    fn data(&self, slot: u16) -> Vec<u8> {
        let mut data = vec![0; DATA as usize];
        let place = GuestAddress(Self::places(slot)[2]);
        self.memory.read_slice(&mut data, place).expect("memory of the guest");
        data
    }

    fn fill(&self, slot: u16, data: &[u8]) {
        let place = GuestAddress(Self::places(slot)[2]);
        self.memory.write_slice(data, place).expect("memory of the guest");
    }
}

/// Returns a guest with a device, and the thread of the device.
fn boot(disk: Disk) -> (Guest, JoinHandle<io::Result<()>>) {
    let memory = GuestMemoryMmap::from_ranges(&[(GuestAddress(0), GUEST_BYTES)]);
    let memory = Arc::new(memory.expect("memory for a guest"));
    let mut queue = Queue::new(QUEUE).expect("a power of two");
    queue.set_size(QUEUE);
    queue.try_set_desc_table_address(GuestAddress(DESCRIPTORS)).expect("an aligned address");
    queue.try_set_avail_ring_address(GuestAddress(AVAILABLE)).expect("an aligned address");
    queue.try_set_used_ring_address(GuestAddress(USED)).expect("an aligned address");
    queue.set_ready(true);
    let (kicks, events) = mpsc::channel();
    let (line, interrupts) = mpsc::channel();
    let device = Device {
        disk,
        queue,
        memory: Arc::clone(&memory),
        events: kicks.clone(),
        in_flight: BTreeMap::new(),
        interrupt: Box::new(move || {
            let _ = line.send(()); // the guest may have ended
        }),
    };
    let thread = std::thread::spawn(move || device.run(&events));
    (Guest { memory, kicks, interrupts, made: 0, found: 0 }, thread)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let disk = Disk::memory(1 << 20)?;
    let (mut guest, device) = boot(disk.clone());
    guest.fill(0, &[7; DATA as usize]);
    let statuses = [guest.one(OUT, 8, DATA), guest.one(FLUSH, 0, 0), guest.one(IN, 8, DATA)];
    println!("statuses {statuses:?}, the first byte read is {}", guest.data(0)[0]);
    guest.kicks.send(Event::Stop)?;
    device.join().expect("no panic")?;
    println!("{:?}", disk.shutdown()?.stats);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sixteen requests at a time, at random places, against a model. A slot has 4096 bytes of the
    /// disk to itself.
    #[test]
    fn a_guest_reads_what_it_wrote() {
        let disk = Disk::memory(u64::from(SLOTS) * u64::from(DATA)).unwrap();
        let (mut guest, device) = boot(disk.clone());
        let mut model = vec![vec![0_u8; DATA as usize]; usize::from(SLOTS)];
        let mut random = 1_u64;
        let mut rounds = 0;
        while rounds < 200 {
            let mut asked = BTreeMap::new();
            for slot in 0..SLOTS {
                let kind = [IN, OUT, OUT, FLUSH][usize::try_from(draw(&mut random, 4)).unwrap()];
                let first = draw(&mut random, 8);
                let len = if kind == FLUSH {
                    0
                } else {
                    u32::try_from((1 + draw(&mut random, 8 - first)) * SECTOR).unwrap()
                };
                let data = vec![u8::try_from(draw(&mut random, 256)).unwrap(); DATA as usize];
                guest.fill(slot, &data);
                asked.insert(slot, (kind, usize::try_from(first * SECTOR).unwrap(), len, data));
                guest.submit(slot, kind, u64::from(slot) * 8 + first, len);
            }
            guest.kick();
            while !asked.is_empty() {
                for (slot, status, written) in guest.wait() {
                    let (kind, start, len, data) =
                        asked.remove(&slot).expect("each chain ends once");
                    assert_eq!(status, OK);
                    assert_eq!(written, if kind == IN { len + 1 } else { 1 });
                    let part = start..start + len as usize;
                    match kind {
                        IN => assert!(
                            guest.data(slot)[..len as usize] == model[usize::from(slot)][part]
                        ),
                        OUT => {
                            model[usize::from(slot)][part].copy_from_slice(&data[..len as usize])
                        }
                        _ => {}
                    }
                }
            }
            rounds += 1;
        }
        assert_eq!(guest.one(IN, u64::from(SLOTS) * 8, 512), IO_ERROR, "beyond the end");
        assert_eq!(guest.one(IN, 1 << 55, 512), IO_ERROR, "no sector wraps around");
        assert_eq!(guest.one(99, 0, 512), UNSUPPORTED);
        let segment: Vec<u8> = [0_u64.to_le_bytes(), 1_u64.to_le_bytes()].concat();
        guest.fill(0, &segment.repeat(DATA as usize / 16));
        assert_eq!(guest.one(WRITE_ZEROES, 0, 16), OK);
        assert_eq!(guest.one(WRITE_ZEROES, 0, 32), UNSUPPORTED, "two segments");
        guest.kicks.send(Event::Stop).unwrap();
        device.join().unwrap().unwrap();
        let report = disk.shutdown().unwrap();
        assert_eq!(report.ok(), Ok(()));
        let stats = report.stats;
        assert_eq!(
            stats.reads.ended + stats.writes.ended + stats.flushes.ended,
            200 * u64::from(SLOTS)
        );
    }

    fn draw(random: &mut u64, end: u64) -> u64 {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (*random >> 33) % end
    }

    /// A guest that breaks the rules of its queue ends its device, and nothing else.
    #[test]
    fn a_chain_without_room_for_a_status_ends_the_device() {
        let disk = Disk::memory(1 << 20).unwrap();
        let (mut guest, device) = boot(disk.clone());
        guest.submit(0, IN, 0, 512);
        guest.put(0_u16, DESCRIPTORS + 12); // the chain ends behind its header
        guest.kick();
        assert_eq!(device.join().unwrap().unwrap_err().kind(), io::ErrorKind::InvalidData);
        disk.write_at(b"fine", 0).unwrap();
    }
}
