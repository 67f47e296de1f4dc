//! Readers that publish blocks and writers that scan the table, in every order that the memory
//! model allows. Run with `RUSTFLAGS="--cfg loom" cargo test --release -p blockyard-btt --test
//! readers_model`.
#![cfg(loom)]

use blockyard_btt::PostmapAba;
use blockyard_btt::readers::{BlockId, Readers};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use loom::thread;

/// The read tracking table as readers and writers see it.
trait Table: Send + Sync + 'static {
    fn publish(&self, block: u32);
    fn clear(&self);
    fn reads(&self, block: u32) -> bool;
}

fn id(block: u32) -> BlockId {
    BlockId::new(0, PostmapAba(block))
}

/// The real table.
struct Real(Readers);

impl Table for Real {
    fn publish(&self, block: u32) {
        self.0.publish(0, id(block));
    }

    fn clear(&self) {
        self.0.clear(0);
    }

    fn reads(&self, block: u32) -> bool {
        self.0.reads(id(block))
    }
}

/// A table without sequentially consistent fences: only release and acquire.
struct Weak(AtomicU32);

impl Table for Weak {
    fn publish(&self, block: u32) {
        self.0.store(block + 1, Ordering::Release);
    }

    fn clear(&self) {
        self.0.store(0, Ordering::Release);
    }

    fn reads(&self, block: u32) -> bool {
        self.0.load(Ordering::Acquire) == block + 1
    }
}

/// Copies from or to a block, which nobody else may do at the same time.
fn copy(busy: &AtomicBool) {
    assert!(!busy.swap(true, Ordering::Relaxed), "[reader-or-writer-sees]: read while written");
    busy.store(false, Ordering::Release);
}

/// Sector 0 has block 0. A writer gives it block 1, and writes block 0 if nobody reads it, while a
/// reader reads the sector.
fn model(table: impl Table) {
    let table = Arc::new(table);
    let map = Arc::new(AtomicU32::new(0));
    let busy = Arc::new(AtomicBool::new(false));
    let reader = {
        let table = table.clone();
        let map = map.clone();
        let busy = busy.clone();
        thread::spawn(move || {
            let entry = map.load(Ordering::Acquire);
            table.publish(entry);
            if map.load(Ordering::Acquire) == entry && entry == 0 {
                copy(&busy);
            }
            table.clear();
        })
    };
    map.store(1, Ordering::Release);
    if !table.reads(0) {
        // A block that was found unread stays unread.
        copy(&busy);
    }
    reader.join().expect("reader without a failed assertion");
}

/// [reader-or-writer-sees].
#[test]
fn no_block_is_read_while_it_is_written() {
    for padded in [false, true] {
        loom::model(move || model(Real(Readers::new(1, padded))));
    }
}

#[test]
#[should_panic(expected = "[reader-or-writer-sees]")]
fn without_fences_reader_and_writer_miss_each_other() {
    loom::model(|| model(Weak(AtomicU32::new(0))));
}
