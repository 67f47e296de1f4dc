//! CMD6 of SD: there are six groups of functions, and each group has one function on (SD 4.3.10).

/// The function that is on in each group, group 1 (access mode) first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Functions([u8; 6]);

/// "Keep the function" in an argument; "none" in a switch status.
const NONE: u8 = 0xf;

impl Functions {
    /// Carries out CMD6 with `argument` on a card with the `supported` functions, one bit each, by
    /// group. Bit 31 switches; without it the host only asks. Returns the switch status. If the
    /// card lacks one of the functions, nothing changes.
    pub(super) fn switch(&mut self, supported: &[u16; 6], argument: u32) -> [u8; 64] {
        let mut selected = self.0;
        for (group, function) in selected.iter_mut().enumerate() {
            let [.., wanted] = (argument >> (4 * group) & 0xf).to_be_bytes();
            if wanted != NONE {
                // Every group has function 0, which is on after power-up.
                let able = wanted == 0 || supported[group] >> wanted & 1 == 1;
                *function = if able { wanted } else { NONE };
            }
        }
        let able = !selected.contains(&NONE);
        if able && argument >> 31 == 1 {
            self.0 = selected;
        }
        let mut status = [0; 64];
        // The current in mA, then support and selection, group 6 first, then the version.
        status[1] = if able { 100 } else { 0 };
        for (group, bits) in supported.iter().enumerate() {
            let at = 12 - 2 * group;
            status[at..at + 2].copy_from_slice(&(bits | 1).to_be_bytes());
        }
        for (at, pair) in selected.chunks_exact(2).rev().enumerate() {
            status[14 + at] = pair[1] << 4 | pair[0];
        }
        status[17] = 1;
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blockyard_mmc::command::Command;
    use blockyard_mmc::register::switch::{Group, SwitchStatus};

    /// Sends CMD6 to a card with SDR104 and all before it; driver types A and C; 400 and 600 mA.
    fn send(functions: &mut Functions, command: Command) -> SwitchStatus {
        let supported = [0b1111, 0, 0b1010, 0b110, 0, 0];
        SwitchStatus::parse(&functions.switch(&supported, command.argument))
    }

    #[test]
    fn a_switch_does_what_the_core_reads_in_its_status() {
        let mut functions = Functions::default();
        let asked = send(&mut functions, Command::check_functions());
        assert!(asked.supports(Group::AccessMode, 3) && !asked.supports(Group::AccessMode, 4));
        assert!(asked.supports(Group::PowerLimit, 2) && !asked.supports(Group::PowerLimit, 3));
        assert_eq!(asked.selected(Group::AccessMode), Some(0));
        let switched = send(&mut functions, Command::set_function(Group::PowerLimit, 2));
        assert_eq!(switched.selected(Group::PowerLimit), Some(2));
        let switched = send(&mut functions, Command::set_function(Group::AccessMode, 3));
        assert_eq!(switched.selected(Group::AccessMode), Some(3));
        // The same without bit 31 only asks what would be on.
        let question = Command { argument: 0x00ff_fff2, ..Command::check_functions() };
        assert_eq!(send(&mut functions, question).selected(Group::AccessMode), Some(2));
        let refused = send(&mut functions, Command::set_function(Group::AccessMode, 4));
        assert_eq!((refused.selected(Group::AccessMode), refused.max_current_ma()), (None, 0));
        let asked = send(&mut functions, Command::check_functions());
        assert_eq!(asked.selected(Group::AccessMode), Some(3));
        assert_eq!(asked.selected(Group::PowerLimit), Some(2));
    }
}
