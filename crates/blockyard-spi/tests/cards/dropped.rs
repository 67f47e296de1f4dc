//! Futures that are dropped before they are done.

use crate::emulated::{Kind, Model, poll_times};
use crate::{async_disk, block_on, pattern, slot};
use blockyard_spi::disk::{Design, Io};

/// Breaks off a call of five I/Os, and then uses the disk ([memory-is-the-calls],
/// [lost-is-identified]).
#[test]
fn a_future_can_be_dropped_at_any_poll() {
    let mut is_done = false;
    let mut polls = 0_u32;
    while !is_done {
        // At every poll of the first transfers, then less and less often: the card is busy erasing.
        polls += 1 + polls.saturating_sub(800) / 4;
        let slot = slot(Model::new(Kind::ALL[polls as usize % 3]));
        slot.0.borrow_mut().data.fill(1);
        let mut disk = async_disk(&slot, Design::SMALL);
        slot.0.borrow_mut().rough = true;
        let old = vec![1; 6 * 512];
        let new = pattern(1, 6);
        let mut two = [0; 1024];
        let mut one = [0; 512];
        let (many, single) = new.split_at(5 * 512);
        let mut ios = [
            Io::write(100, many),
            Io::read(200, &mut two),
            Io::write(300, single),
            Io::read(400, &mut one),
            Io::erase(500, 10),
        ];
        is_done = poll_times(disk.run(&mut ios), polls).0.is_some();
        // The next call first takes the card out of the transfer. It is broken off there, too.
        let _ = poll_times(disk.read(7, &mut [0; 512]), polls % 61 + 1);

        // The card works, what was not written is intact, and old numbers do not meet new memory.
        let mut back = vec![0; 6 * 512];
        let mut behind = [0; 512];
        let (result, _) = block_on(
            disk.run(&mut [Io::read(100, &mut back[..5 * 512]), Io::read(105, &mut behind)]),
        );
        result.unwrap();
        let written = back.chunks(512).take(5).take_while(|block| **block != old[..512]).count();
        assert_eq!(back[..written * 512], new[..written * 512], "after {polls} polls");
        assert_eq!(back[written * 512..5 * 512], old[written * 512..5 * 512]);
        assert_eq!(behind, [1; 512], "after {polls} polls: the sector behind the write");
        block_on(disk.write(100, &new)).0.unwrap();
        assert_eq!(slot.0.borrow().data[100 * 512..106 * 512], new);
        assert!(is_done || !slot.0.borrow().rough || polls < 3, "the card was reset");
    }
    assert!(polls > 50, "the call has only {polls} polls");
}
