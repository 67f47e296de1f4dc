//! The effects of commands (tables 7-3 and 7-4 of the specification).

use super::model::{Model, Phase, SECTORS, Sent};
use super::registers::Kind;

const ILLEGAL: u8 = 0x04;
const ADDRESS: u8 = 0x20;
const PARAMETER: u8 = 0x40;

impl Model {
    pub(super) fn act(&mut self, Sent { index, app, argument }: Sent) {
        let in_transfer = self.phase != Phase::Ready;
        if in_transfer && index != 12 {
            assert!(self.rough, "CMD{index} within a transfer: {:?}", self.phase);
            return self.respond(ILLEGAL);
        }
        match (index, app) {
            (0, _) => self.reset(),
            (8, false) if self.kind != Kind::Sdsc1 && self.idle => {
                self.respond(0);
                self.out.extend([0, 0, argument.to_be_bytes()[2] & 0xf, argument.to_be_bytes()[3]]);
            }
            (59, false) => {
                self.crc_on = argument & 1 == 1;
                self.respond(0);
            }
            (55, false) => {
                self.app = true;
                self.respond(0);
            }
            (41, true) => {
                let admits = self.kind != Kind::Sdhc || argument >> 30 & 1 == 1;
                self.power_ups = self.power_ups.saturating_sub(u32::from(admits));
                self.idle = self.power_ups > 0;
                self.respond(0);
            }
            (58, false) => {
                self.respond(u8::from(self.says_idle));
                let ready = u32::from(!self.idle) << 31;
                let is_high = (self.kind == Kind::Sdhc) != self.flips_capacity;
                let high = u32::from(is_high && !self.idle) << 30;
                self.out.extend((0x00ff_8000 | ready | high).to_be_bytes());
            }
            _ if self.idle => self.respond(ILLEGAL),
            (12, false) if in_transfer => self.stop(),
            (_, false) => self.plain(index, argument),
            (_, true) => self.application(index),
        }
    }

    fn reset(&mut self) {
        self.out.clear();
        self.phase = Phase::Ready;
        (self.idle, self.crc_on, self.power_ups, self.block_bytes) = (true, false, 3, 1024);
        self.respond(0);
    }

    /// The byte after CMD12 is whatever the card had begun to send.
    fn stop(&mut self) {
        self.out.clear();
        self.phase = Phase::Ready;
        self.out.push_back(0x00);
        self.respond(0);
        self.busy_until_ns = self.now_ns + 200_000;
    }

    fn plain(&mut self, index: u8, argument: u32) {
        match index {
            9 | 10 => {
                let register = if index == 9 { self.csd() } else { self.cid() };
                self.respond(0);
                self.out.push_back(0xff);
                self.push_block(&register);
            }
            13 => {
                self.respond(0);
                let status = std::mem::take(&mut self.status);
                self.out.push_back(status);
            }
            16 => {
                self.block_bytes = argument;
                self.respond(if argument == 512 { 0 } else { PARAMETER });
            }
            17 | 18 | 24 | 25 => self.transfer(index, argument),
            32 | 33 => {
                self.erase[usize::from(index - 32)] = Some(argument / self.kind.unit());
                self.respond(0);
            }
            38 => self.erase_range(),
            _ => self.respond(ILLEGAL),
        }
    }

    fn application(&mut self, index: u8) {
        match index {
            22 => {
                self.respond(0);
                let written = self.written.to_be_bytes();
                self.push_block(&written);
            }
            23 => self.respond(0),
            _ => self.respond(ILLEGAL),
        }
    }

    fn transfer(&mut self, index: u8, argument: u32) {
        let unit = self.kind.unit();
        let sector = argument / unit;
        let many = matches!(index, 18 | 25);
        if !argument.is_multiple_of(unit) {
            return self.respond(ADDRESS);
        }
        if sector >= SECTORS || (unit == 512 && self.block_bytes != 512) {
            return self.respond(PARAMETER);
        }
        self.respond(0);
        self.phase = if matches!(index, 17 | 18) {
            Phase::Reading { sector, many }
        } else {
            self.written = 0;
            Phase::Token { sector, many }
        };
    }

    fn erase_range(&mut self) {
        let [Some(first), Some(last)] = std::mem::take(&mut self.erase) else {
            return self.respond(0x10);
        };
        assert!(first <= last && last < SECTORS && self.erases_all, "erase of {first} to {last}");
        for sector in first..=last {
            self.sector(sector).fill(0xff);
        }
        self.respond(0);
        self.busy_until_ns = self.now_ns + 4_000_000_000;
    }
}
