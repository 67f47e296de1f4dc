//! The switch status, which CMD6 of SD brings: which functions there are and which are on
//! (SD 4.3.10.4).
//!
//! Functions come in six groups of sixteen; one function of each group is on. It only informs: a
//! function that is not there cannot be chosen, and that shows in [`SwitchStatus::selected`] (R2).

use super::Bits;

/// A group of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Access mode: the bus timing.
    AccessMode,
    /// Command system.
    CommandSystem,
    /// Driver strength.
    DriverStrength,
    /// Power limit.
    PowerLimit,
}

impl Group {
    /// The number of the group less 1.
    pub(crate) const fn index(self) -> usize {
        match self {
            Self::AccessMode => 0,
            Self::CommandSystem => 1,
            Self::DriverStrength => 2,
            Self::PowerLimit => 3,
        }
    }
}

/// Access mode 1: high speed, SDR25.
pub(crate) const ACCESS_HIGH_SPEED: u8 = 1;
/// Access mode 2: SDR50.
pub(crate) const ACCESS_SDR50: u8 = 2;
/// Access mode 3: SDR104.
pub(crate) const ACCESS_SDR104: u8 = 3;
/// Access mode 4: DDR50.
pub(crate) const ACCESS_DDR50: u8 = 4;

/// The status that CMD6 brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchStatus(Bits<64>);

impl SwitchStatus {
    /// Reads the 64 bytes.
    #[must_use]
    pub const fn parse(bytes: &[u8; 64]) -> Self {
        Self(Bits(*bytes))
    }

    /// Largest current that the functions asked for would draw, in mA; 0: one of them is not there.
    #[must_use]
    pub fn max_current_ma(&self) -> u16 {
        self.0.short(511, 496)
    }

    /// Returns whether the card has function `number`, 0 to 15, of `group`.
    ///
    /// # Panics
    ///
    /// Panics if `number` is above 15.
    #[must_use]
    pub fn supports(&self, group: Group, number: u8) -> bool {
        assert!(number < 16, "function {number} of 16");
        self.0.bit(400 + 16 * group.index() + usize::from(number))
    }

    /// The function of `group` that is on now (after a switch) or would be (after a question);
    /// `None`: what was asked for cannot be had, and nothing has changed.
    #[must_use]
    pub fn selected(&self, group: Group) -> Option<u8> {
        let low = 376 + 4 * group.index();
        Some(self.0.byte(low + 3, low)).filter(|&number| number != 0xf)
    }

    /// Returns whether function `number` of `group` is busy and cannot be left or entered now.
    /// Cards before version 1 of the structure do not tell: never.
    ///
    /// # Panics
    ///
    /// Panics if `number` is above 15.
    #[must_use]
    pub fn is_busy(&self, group: Group, number: u8) -> bool {
        assert!(number < 16, "function {number} of 16");
        let tells = self.0.byte(375, 368) >= 1;
        tells && self.0.bit(272 + 16 * group.index() + usize::from(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uhs_card_s_answer_is_read_by_the_standard_s_positions() {
        // Byte n holds bits 511 - 8n to 504 - 8n. Bytes 0, 1: 200 mA. Support bits: group 4 in
        // bytes 6, 7; group 1 in bytes 12, 13. Selection: groups 4, 3 in byte 15, groups 2, 1 in
        // byte 16. Byte 17: version 1. Busy: group 1 in bytes 28, 29.
        let mut bytes = [0; 64];
        bytes[1] = 200;
        bytes[7] = 0x0f;
        bytes[12] = 0x80;
        bytes[13] = 0x1f;
        bytes[15] = 0x1f;
        bytes[16] = 0x03;
        bytes[17] = 1;
        bytes[29] = 0x10;
        let status = SwitchStatus::parse(&bytes);
        assert_eq!(status.max_current_ma(), 200);
        let modes = (0..16).filter(|&mode| status.supports(Group::AccessMode, mode));
        assert!(modes.eq([0, 1, 2, 3, 4, 15]));
        assert!(status.supports(Group::PowerLimit, 3) && !status.supports(Group::PowerLimit, 4));
        assert!(!status.supports(Group::CommandSystem, 1));
        assert_eq!(status.selected(Group::AccessMode), Some(ACCESS_SDR104));
        assert_eq!(status.selected(Group::DriverStrength), None);
        assert_eq!(status.selected(Group::PowerLimit), Some(1));
        assert!(status.is_busy(Group::AccessMode, 4) && !status.is_busy(Group::AccessMode, 3));
        use Group::*;
        let groups = [AccessMode, CommandSystem, DriverStrength, PowerLimit];
        for (number, group) in groups.into_iter().enumerate() {
            let mut bytes = bytes;
            bytes[29 - 2 * number] = 2;
            assert!(SwitchStatus::parse(&bytes).is_busy(group, 1), "{group:?}");
        }
        bytes[17] = 0;
        assert!(!SwitchStatus::parse(&bytes).is_busy(Group::AccessMode, 4));
    }
}
