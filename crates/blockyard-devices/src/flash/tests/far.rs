//! Writes whose data the drive fetches: only what has arrived delays a read.

use super::*;

/// A drive of one die, with rows of four units: 60 us for a page, 20 us to carry a row and 700 us
/// to program it. Its buffer has room for two rows.
fn small() -> FlashProfile {
    FlashProfile { channels: 1, dies: 1, buffer: 32 << 10, ..profile() }
}

/// A row of four units at the `nth` place from unit 1000 on.
fn row(nth: u64) -> Access {
    Access { sectors: 32, ..at(Op::Write, 1000 + 4 * nth) }
}

impl Rig {
    fn announce(&mut self, id: u32, access: Access) {
        self.flash.announce(CommandId(id), access, self.now, &mut self.events);
    }

    fn wanted(&mut self) -> Vec<(u32, u32)> {
        let wanted = core::iter::from_fn(|| self.flash.next_wanted());
        wanted.map(|of| (of.id.0, of.sectors)).collect()
    }

    fn arrived(&mut self, id: u32, sectors: u32) {
        let wanted = Wanted { id: CommandId(id), sectors };
        self.flash.arrived(wanted, self.now, &mut self.events);
    }

    /// Lets time pass until nothing is to be done. Returns which commands end, and when, in us.
    fn ends(&mut self) -> Vec<(u32, u64)> {
        let mut ends = Vec::new();
        while self.step(u64::MAX) {
            let ended = core::iter::from_fn(|| self.flash.next_ended());
            ends.extend(ended.map(|id| (id.0, self.now.as_ns() / 1000)));
        }
        ends
    }
}

#[test]
fn a_write_asks_for_as_much_as_the_buffer_has_room_for() {
    let mut rig = Rig::new(small());
    rig.announce(0, Access { sectors: 48, ..row(0) });
    rig.announce(1, row(2));
    // Of eight units, the first write takes six and the second two.
    assert_eq!(rig.wanted(), [(0, 48), (1, 16)]);
    rig.arrived(0, 32);
    // The first row is programmed by 720 us, which makes room for the rest of the second write.
    assert_eq!(rig.ends(), []);
    assert_eq!((rig.now.as_ns() / 1000, rig.wanted()), (720, vec![(1, 16)]));
    rig.arrived(0, 16);
    assert_eq!(rig.ends(), [(0, 725)], "no whole row has arrived since");
    rig.arrived(1, 16);
    rig.arrived(1, 16);
    let at = 725;
    assert_eq!(rig.ends()[0], (1, at + 5));
}

/// The data of the write is on its way, so the die has nothing else to do.
#[test]
fn data_that_is_on_its_way_delays_no_read() {
    let arrival = FlashProfile { order: DieOrder::Arrival, ..small() };
    for (arrives, end) in [(false, 65), (true, 720 + 65)] {
        let mut rig = Rig::new(arrival);
        rig.announce(0, row(0));
        assert_eq!(rig.wanted(), [(0, 32)]);
        if arrives {
            rig.arrived(0, 32);
        }
        rig.begin(1, at(Op::Read, 0));
        let read = rig.ends().into_iter().find(|(id, _)| *id == 1);
        assert_eq!(read, Some((1, end)));
    }
}

/// Both rows of the buffer are promised. By `full-buffer`, the read waits until the third write is
/// promised room too, when the first row has been programmed.
#[test]
fn a_read_waits_for_room_that_is_promised_to_writes_before_it() {
    for (full_buffer, end) in [(FullBuffer::Writes, 65), (FullBuffer::Commands, 720 + 65)] {
        let mut rig = Rig::new(FlashProfile { full_buffer, ..small() });
        (0..3).for_each(|nth| rig.announce(nth, row(nth.into())));
        assert_eq!(rig.wanted(), [(0, 32), (1, 32)]);
        rig.begin(3, at(Op::Read, 0));
        if full_buffer == FullBuffer::Commands {
            rig.arrived(0, 32);
        }
        let read = rig.ends().into_iter().find(|(id, _)| *id == 3);
        assert_eq!(read, Some((3, end)));
    }
}

/// Sectors from 3 to 28 are parts of units 0 and 3, and whole units 1 and 2. A piece may end within
/// a unit.
#[test]
fn parts_of_units_arrive_with_the_pieces_that_complete_them() {
    let mut rig = Rig::new(FlashProfile { fill: 10, ..small() });
    rig.announce(0, Access { start: 3, sectors: 25, ..row(0) });
    assert_eq!(rig.wanted(), [(0, 25)]);
    for (sectors, units) in [(4, 0), (8, 1), (1, 2), (11, 3), (1, 4)] {
        rig.arrived(0, sectors);
        assert_eq!(rig.count("units_written"), units);
    }
    assert_eq!(rig.ends()[0], (0, 5));
}

/// Data that replaces other data in the buffer takes no room: what was kept for it is free again.
#[test]
fn data_that_replaces_other_data_gives_its_room_back() {
    let mut rig = Rig::new(FlashProfile { fill: 10, ..small() });
    // Three units, of which no row is made, and five to replace some of them.
    rig.announce(0, Access { sectors: 24, ..row(0) });
    rig.announce(1, Access { sectors: 24, ..row(0) });
    rig.announce(2, row(5));
    assert_eq!(rig.wanted(), [(0, 24), (1, 24), (2, 16)]);
    rig.arrived(0, 24);
    assert_eq!(rig.wanted(), []);
    rig.arrived(1, 24);
    assert_eq!((rig.wanted(), rig.count("units_combined")), (vec![(2, 16)], 3));
}

/// A durable write ends when all of it is in flash.
#[test]
fn a_durable_write_is_in_flash_when_all_of_it_has_arrived() {
    let mut rig = Rig::new(FlashProfile { fill: 10, ..small() });
    rig.announce(0, Access { fua: true, ..row(0) });
    rig.arrived(0, 16);
    rig.wait(100_000);
    rig.arrived(0, 16);
    assert_eq!(rig.ends(), [(0, 100 + 720)]);
}
