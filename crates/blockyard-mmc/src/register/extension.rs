//! Extension registers of SD cards (SD 5.7 and 5.8): the general information, which lists them, and
//! the performance enhancement register, which has the cache and the command queue of class A2.

/// The code of the performance enhancement function.
const PERFORMANCE: u16 = 2;
/// Bytes of the general information before its list of functions.
const HEADER: usize = 16;
/// Bytes of a function in the list up to the first of its registers.
const FUNCTION: usize = 48;
/// The byte of the performance enhancement register whose bit 0 turns the cache on.
pub const CACHE_ENABLE: u16 = 260;
/// The byte whose bit 0 flushes the cache. The card clears it when the cache is flushed.
pub const CACHE_FLUSH: u16 = 261;
/// The byte whose bit 0 turns the command queue on.
pub const QUEUE_ENABLE: u16 = 262;

/// Returns the data of CMD49 that writes one byte: `first`, and 511 bytes that mean nothing.
pub(crate) const fn byte_block(first: u8) -> [u8; 512] {
    let mut block = [0; 512];
    block[0] = first;
    block
}

/// The place of an extension register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtensionPlace {
    /// The number of the function, 0 to 15.
    function: u8,
    page: u8,
    /// The byte in the page, 0 to 511.
    offset: u16,
}

impl ExtensionPlace {
    /// The general information.
    pub const GENERAL: Self = Self { function: 0, page: 0, offset: 0 };

    /// Returns the place of an address in the general information: the offset in bits 8 to 0, the
    /// page in bits 16 to 9, and the function in bits 21 to 18.
    pub(crate) fn of_address(address: u32) -> Self {
        let [low, page, high, _] = (address >> 1).to_le_bytes();
        let offset = u16::from(low) << 1 | u16::from(address.to_le_bytes()[0] & 1);
        Self { function: high >> 1 & 0xf, page, offset: offset & 0x1ff }
    }

    /// Returns the place in the argument of CMD48 and CMD49.
    pub(crate) fn argument(self) -> u32 {
        u32::from(self.function) << 27 | u32::from(self.page) << 18 | u32::from(self.offset) << 9
    }

    /// Returns the place in the argument of CMD48 and CMD49.
    #[must_use]
    pub const fn of_argument(argument: u32) -> Self {
        Self {
            function: (argument >> 27 & 0xf) as u8,
            page: (argument >> 18 & 0xff) as u8,
            offset: (argument >> 9 & 0x1ff) as u16,
        }
    }

    /// Returns the number of the function, 0 to 15.
    #[must_use]
    pub const fn function(self) -> u8 {
        self.function
    }

    /// Returns the byte in the page, 0 to 511.
    #[must_use]
    pub const fn offset(self) -> u16 {
        self.offset
    }

    /// Returns the place of the byte that turns the cache on, if this is the place of a performance
    /// enhancement register.
    pub(crate) const fn cache_enable(self) -> Self {
        self.plus(CACHE_ENABLE)
    }

    /// Returns the place of the byte that flushes the cache, likewise. The card clears it when the
    /// cache is flushed.
    pub(crate) const fn cache_flush(self) -> Self {
        self.plus(CACHE_FLUSH)
    }

    /// Returns the place of the byte that turns the command queue on, likewise. Bit 1 would make
    /// the queue sequential, for which no class promises a rate.
    pub(crate) const fn queue_enable(self) -> Self {
        self.plus(QUEUE_ENABLE)
    }

    const fn plus(self, bytes: u16) -> Self {
        debug_assert!(self.has_settings(), "a setting beyond the page");
        Self { offset: self.offset + bytes, ..self }
    }

    /// Returns whether the settings of a performance enhancement register here are on its page.
    const fn has_settings(self) -> bool {
        self.offset + QUEUE_ENABLE < 512
    }
}

/// Returns the place of the performance enhancement register by the first page of the general
/// information; `None` if the card has no such register, lists it beyond this page, or has it so
/// far back on its page that the settings are on the next one.
#[must_use]
pub fn performance_place(general: &[u8; 512]) -> Option<ExtensionPlace> {
    let revision = word(general, 0)?;
    let mut at = HEADER;
    // Each entry names the next one, so a wrong list might never end.
    for _ in 0..general[4] {
        let entry = general.get(at..at + FUNCTION)?;
        let registers = entry[42];
        if revision == 0 && word(entry, 0)? == PERFORMANCE && registers == 1 {
            let address = entry[44..48].try_into().map(u32::from_le_bytes).ok()?;
            return Some(ExtensionPlace::of_address(address)).filter(|place| place.has_settings());
        }
        at = usize::from(word(entry, 40)?);
    }
    None
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// The performance enhancement register: what the card can do, and whether it is on. All of it is
/// off until the host turns it on with CMD49.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Performance {
    /// Where the register is.
    pub place: ExtensionPlace,
    /// The register's revision.
    pub revision: u8,
    /// Whether the card maintains itself when it chooses to.
    pub card_maintenance: bool,
    /// Whether the host can start maintenance.
    pub host_maintenance: bool,
    /// Whether there is a volatile cache.
    pub cache: bool,
    /// The number of tasks that the command queue holds, 2 to 32; 0 if there is no queue.
    pub queue_depth: u8,
    /// Whether the cache is on, so that a write that has ended is not durable yet.
    pub cache_on: bool,
}

impl Performance {
    /// Reads the register at `place`, from the 512 bytes that begin there.
    #[must_use]
    pub fn parse(place: ExtensionPlace, bytes: &[u8; 512]) -> Self {
        Self {
            place,
            revision: bytes[0],
            card_maintenance: bytes[2] & 1 != 0,
            host_maintenance: bytes[2] & 2 != 0,
            cache: bytes[4] & 1 != 0,
            queue_depth: match bytes[6] & 0x1f {
                0 => 0,
                depth => depth + 1,
            },
            cache_on: bytes[usize::from(CACHE_ENABLE)] & 1 != 0,
        }
    }
}

#[cfg(test)]
pub(crate) mod example {
    //! Extension registers of a card of class A2, written from the standard.

    /// The general information of a card with the functions of these codes, whose registers are on
    /// page 0 of function 1, 2 and so on, from byte 0 on.
    pub(crate) fn general(codes: &[u16]) -> [u8; 512] {
        let mut bytes = [0; 512];
        bytes[4] = u8::try_from(codes.len()).unwrap();
        for (nth, code) in codes.iter().enumerate() {
            let at = super::HEADER + nth * super::FUNCTION;
            let next = u16::try_from(at + super::FUNCTION).unwrap();
            let function = u32::try_from(nth + 1).unwrap();
            bytes[at..at + 2].copy_from_slice(&code.to_le_bytes());
            bytes[at + 40..at + 42].copy_from_slice(&next.to_le_bytes());
            bytes[at + 42] = 1;
            bytes[at + 44..at + 48].copy_from_slice(&(function << 18).to_le_bytes());
        }
        bytes
    }

    /// Maintenance by the card and by the host, a cache, and 32 tasks.
    pub(crate) fn performance() -> [u8; 512] {
        let mut bytes = [0; 512];
        (bytes[2], bytes[4], bytes[6]) = (3, 1, 31);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_general_information_names_the_place_of_a_function() {
        let third = ExtensionPlace { function: 3, page: 0, offset: 0 };
        assert_eq!(performance_place(&example::general(&[1, 7, 2])), Some(third));
        assert_eq!(performance_place(&example::general(&[1, 7])), None);
        assert_eq!(performance_place(&example::general(&[])), None);
        // Another layout, a function with two registers, and a list that leads out of the page.
        for (at, byte) in [(0, 1), (HEADER + 42, 2), (4, 0)] {
            let mut general = example::general(&[2]);
            general[at] = byte;
            assert_eq!(performance_place(&general), None, "byte {at}");
        }
        let mut general = example::general(&[1, 2]);
        general[HEADER + 40..HEADER + 42].copy_from_slice(&500_u16.to_le_bytes());
        assert_eq!(performance_place(&general), None);
        // The last setting is 262 bytes behind the start of the register, on a page of 512.
        for (offset, is_there) in [(249_u16, true), (250, false)] {
            let mut general = example::general(&[2]);
            general[HEADER + 44..HEADER + 46].copy_from_slice(&offset.to_le_bytes());
            assert_eq!(performance_place(&general).is_some(), is_there, "{offset}");
        }
    }

    #[test]
    fn a_place_is_function_page_and_offset() {
        // 0b0010 in bits 21 to 18, 0x81 in bits 16 to 9, 0x155 in bits 8 to 0.
        let place = ExtensionPlace::of_address(2 << 18 | 0x81 << 9 | 0x155);
        assert_eq!(place, ExtensionPlace { function: 2, page: 0x81, offset: 0x155 });
        assert_eq!(place.argument(), 2 << 27 | 0x81 << 18 | 0x155 << 9);
        // Bit 26, the mask of a write, and LEN are no part of it.
        assert_eq!(ExtensionPlace::of_argument(place.argument() | 1 << 26 | 0x1ff), place);
    }

    #[test]
    fn the_depth_is_one_more_than_its_field() {
        let performance = Performance::parse(ExtensionPlace::GENERAL, &example::performance());
        assert!(performance.cache && performance.card_maintenance && performance.host_maintenance);
        assert_eq!((performance.queue_depth, performance.revision), (32, 0));
        assert!(!performance.cache_on);
        let none = Performance::parse(ExtensionPlace::GENERAL, &[0; 512]);
        assert_eq!((none.queue_depth, none.cache), (0, false));
        let mut on = example::performance();
        on[260] = 1;
        assert!(Performance::parse(ExtensionPlace::GENERAL, &on).cache_on);
    }
}
