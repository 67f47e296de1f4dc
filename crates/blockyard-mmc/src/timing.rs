//! Timings, widths and voltages of a bus.

/// How data is clocked.
///
/// The timings of SD come first, then those of eMMC, and within each group the simpler ones come
/// first: of two timings that are equally fast, the earlier is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timing {
    /// SD default speed: 25 MHz at 3.3 V.
    SdDefault,
    /// SD high speed: 50 MHz at 3.3 V.
    SdHighSpeed,
    /// UHS-I: 25 MHz at 1.8 V.
    Sdr12,
    /// UHS-I: 50 MHz at 1.8 V.
    Sdr25,
    /// UHS-I: 50 MHz, both edges, at 1.8 V.
    Ddr50,
    /// UHS-I: 100 MHz at 1.8 V.
    Sdr50,
    /// UHS-I: 208 MHz at 1.8 V, tuned.
    Sdr104,
    /// eMMC after power-up: 26 MHz.
    MmcLegacy,
    /// eMMC high speed: 52 MHz.
    MmcHighSpeed,
    /// eMMC high speed, both edges.
    MmcDdr52,
    /// eMMC: 200 MHz at 1.8 or 1.2 V, tuned.
    Hs200,
    /// eMMC: 200 MHz, both edges, with a strobe for data and responses.
    Hs400Es,
    /// eMMC: 200 MHz, both edges, with a strobe for data, tuned as HS200.
    Hs400,
}

impl Timing {
    /// Every timing.
    pub const ALL: [Self; 13] = [
        Self::SdDefault,
        Self::SdHighSpeed,
        Self::Sdr12,
        Self::Sdr25,
        Self::Ddr50,
        Self::Sdr50,
        Self::Sdr104,
        Self::MmcLegacy,
        Self::MmcHighSpeed,
        Self::MmcDdr52,
        Self::Hs200,
        Self::Hs400Es,
        Self::Hs400,
    ];

    /// Returns the highest clock in Hz.
    #[must_use]
    pub const fn max_clock_hz(self) -> u32 {
        match self {
            Self::SdDefault | Self::Sdr12 => 25_000_000,
            Self::MmcLegacy => 26_000_000,
            Self::SdHighSpeed | Self::Sdr25 | Self::Ddr50 => 50_000_000,
            Self::MmcHighSpeed | Self::MmcDdr52 => 52_000_000,
            Self::Sdr50 => 100_000_000,
            Self::Hs200 | Self::Hs400 | Self::Hs400Es => 200_000_000,
            Self::Sdr104 => 208_000_000,
        }
    }

    /// Returns whether data changes on both edges of the clock (DDR); commands never do.
    #[must_use]
    pub(crate) const fn both_edges(self) -> bool {
        matches!(self, Self::Ddr50 | Self::MmcDdr52 | Self::Hs400 | Self::Hs400Es)
    }

    /// Returns whether the card sends a strobe along with its data.
    #[must_use]
    pub const fn strobe(self) -> bool {
        matches!(self, Self::Hs400 | Self::Hs400Es)
    }

    /// Returns whether the host must find its sampling point by tuning. HS400 is tuned while still
    /// in HS200; SDR50 is tuned if the [host](crate::host::HostCapabilities::tunes_sdr50) needs it.
    #[must_use]
    pub const fn needs_tuning(self) -> bool {
        matches!(self, Self::Sdr104 | Self::Hs200 | Self::Hs400)
    }

    /// Returns whether the timing is one of SD's five UHS-I timings, which are used at 1.8 V only.
    #[must_use]
    pub(crate) const fn is_uhs(self) -> bool {
        matches!(self, Self::Sdr12 | Self::Sdr25 | Self::Sdr50 | Self::Sdr104 | Self::Ddr50)
    }

    /// Returns whether signals must be below 3.3 V.
    #[must_use]
    pub(crate) const fn needs_low_voltage(self) -> bool {
        self.is_uhs() || matches!(self, Self::Hs200 | Self::Hs400 | Self::Hs400Es)
    }

    /// Returns the narrowest bus on which the timing can be used.
    #[must_use]
    pub const fn min_width(self) -> Width {
        match self {
            Self::SdDefault | Self::SdHighSpeed | Self::MmcLegacy | Self::MmcHighSpeed => {
                Width::One
            }
            Self::Hs400 | Self::Hs400Es => Width::Eight,
            _ => Width::Four,
        }
    }
}

/// A set of timings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimingSet(u16);

impl TimingSet {
    /// No timing.
    pub const NONE: Self = Self(0);
    /// Every timing.
    pub const ALL: Self = Self::of(&Timing::ALL);
    /// The timings that every host has, and every card of its kind and voltage:
    /// [`Timing::SdDefault`], [`Timing::Sdr12`] and [`Timing::MmcLegacy`].
    pub const BASIC: Self = Self::of(&[Timing::SdDefault, Timing::Sdr12, Timing::MmcLegacy]);
    /// The basic ones and, at 3.3 V on one edge, high speed.
    pub const HIGH_SPEED: Self = Self::of(&[
        Timing::SdDefault,
        Timing::SdHighSpeed,
        Timing::MmcLegacy,
        Timing::MmcHighSpeed,
    ]);

    /// The set of `timings`.
    #[must_use]
    pub const fn of(timings: &[Timing]) -> Self {
        let mut set = 0;
        let mut at = 0;
        while at < timings.len() {
            set |= 1 << timings[at] as u16;
            at += 1;
        }
        Self(set)
    }

    /// Returns whether `timing` is in the set.
    #[must_use]
    pub const fn has(self, timing: Timing) -> bool {
        self.0 >> timing as u16 & 1 == 1
    }

    /// Returns the set with `timing`.
    #[must_use]
    pub const fn with(self, timing: Timing) -> Self {
        Self(self.0 | 1 << timing as u16)
    }

    /// Returns the set without `timing`.
    #[must_use]
    pub const fn without(self, timing: Timing) -> Self {
        Self(self.0 & !(1 << timing as u16))
    }

    /// Returns the timings that are in both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the timings that are in either set.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the timings of the set, in the order of [`Timing`].
    pub fn iter(self) -> impl Iterator<Item = Timing> {
        Timing::ALL.into_iter().filter(move |&timing| self.has(timing))
    }
}

/// The data lanes of a bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Width {
    /// DAT0 only.
    One,
    /// DAT0 to DAT3.
    Four,
    /// DAT0 to DAT7; eMMC only.
    Eight,
}

impl Width {
    /// Returns the number of lanes.
    #[must_use]
    pub const fn lanes(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// The voltage of the signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SignalVoltage {
    /// 3.3 V.
    V3_3,
    /// 1.8 V.
    V1_8,
    /// 1.2 V; eMMC only.
    V1_2,
}

/// Sets have a bit for each timing, and every host's timings are a part of each larger set.
const _: () = {
    assert!(Timing::ALL.len() <= 16, "a bit for each timing");
    assert!(Timing::ALL[12] as usize == 12, "all timings, in their order");
    assert!(TimingSet::BASIC.and(TimingSet::ALL).0 == TimingSet::BASIC.0);
    assert!(TimingSet::HIGH_SPEED.0.count_ones() == 4, "each timing once");
    assert!(!Timing::MmcLegacy.needs_low_voltage() && !Timing::SdDefault.needs_low_voltage());
};
