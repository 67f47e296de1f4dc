//! A short list of I/Os, and a writer for each trace format. They test the parsers and make the
//! samples in `examples/traces`.

use blockyard::bio::{Flags, Op};
use core::fmt::Write as _;

/// One I/O to record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Io {
    /// The instant of issue, in microseconds from the start.
    pub(crate) at_us: u64,
    /// The response time in microseconds.
    pub(crate) took_us: u64,
    pub(crate) cpu: u32,
    pub(crate) pid: u32,
    pub(crate) op: Op,
    pub(crate) sector: u64,
    pub(crate) sectors: u32,
    pub(crate) flags: Flags,
}

impl Io {
    pub(crate) const fn new(at_us: u64, op: Op, sector: u64, sectors: u32) -> Self {
        Self { at_us, took_us: 80, cpu: 0, pid: 700, op, sector, sectors, flags: Flags::SYNC }
    }
}

/// The names of the processes, by pid.
const PROCESSES: &[(u32, &str)] = &[(700, "db"), (701, "log"), (702, "scan")];

/// A small database. It reads pages on CPU 0, writes and flushes its log on CPU 1, scans with
/// read-ahead, and sometimes discards old space: about 130 I/Os in about 10 ms.
pub(crate) fn database() -> Vec<Io> {
    let mut ios = Vec::new();
    // Any fixed pattern works.
    fn scatter(n: u64) -> u64 {
        (n * 7919 + 13) % 4096 * 16
    }
    for n in 0..50 {
        let page = Io::new(n * 200 + 7, Op::Read, scatter(n), 16);
        ios.push(Io { took_us: 90 + n % 5 * 10, flags: Flags::NONE, ..page });
    }
    for n in 0..24 {
        let at_us = n * 400 + 31;
        let log = Io { cpu: 1, pid: 701, ..Io::new(at_us, Op::Write, 1_000_000 + n * 8, 8) };
        let fua = Flags::SYNC | Flags::FUA;
        let flags = if n % 4 == 3 { fua | Flags::PREFLUSH } else { fua };
        ios.push(Io { took_us: 150, flags, ..log });
        if n % 6 == 5 {
            ios.push(Io { sector: 0, sectors: 0, op: Op::Flush, at_us: at_us + 200, ..log });
        }
    }
    for n in 0..48 {
        let scan = Io::new(5000 + n * 25, Op::Read, 2_000_000 + n * 256, 256);
        ios.push(Io { cpu: 1, pid: 702, took_us: 300, flags: Flags::NONE, ..scan });
    }
    for n in 0..4 {
        let flags = Flags::NONE;
        ios.push(Io { flags, ..Io::new(n * 2500 + 1111, Op::Discard, 3_000_000 + n * 2048, 2048) });
    }
    ios.sort_by_key(|io| io.at_us);
    ios
}

/// Reads and writes at whole milliseconds, one from each of three processes, which every format can
/// record.
pub(crate) fn plain() -> Vec<Io> {
    let io = |n: u64| {
        let op = if n % 3 == 1 { Op::Write } else { Op::Read };
        let sectors = if n.is_multiple_of(5) { 64 } else { 8 };
        let pid = 700 + u32::try_from(n % 3).unwrap();
        Io { pid, ..Io::new(n / 3 * 1000, op, (n * 6007) % 30_000 * 8, sectors) }
    };
    (0..120).map(io).collect()
}

const fn word(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write | Op::WriteZeroes => "write",
        Op::Flush => "sync",
        Op::Discard | Op::SecureErase => "trim",
        Op::DriverIn | Op::DriverOut => panic!("no trace is written of a driver's commands"),
    }
}

/// fio's iolog, version 2. Waits are whole milliseconds.
pub(crate) fn iolog_v2(ios: &[Io]) -> String {
    let mut text = "fio version 2 iolog\n/dev/a add\n/dev/a open\n".to_owned();
    let mut now_ms = 0;
    for io in ios {
        let at_ms = io.at_us / 1000;
        if at_ms > now_ms {
            now_ms = at_ms;
            writeln!(text, "/dev/a wait {now_ms} 0").unwrap();
        }
        let offset = io.sector * 512;
        let len = u64::from(io.sectors) * 512;
        writeln!(text, "/dev/a {} {offset} {len}", word(io.op)).unwrap();
    }
    text + "/dev/a close\n"
}

/// fio's iolog, version 3.
pub(crate) fn iolog_v3(ios: &[Io]) -> String {
    let mut text = "fio version 3 iolog\n0 /dev/a add\n0 /dev/a open\n".to_owned();
    for io in ios {
        let offset = io.sector * 512;
        let len = u64::from(io.sectors) * 512;
        writeln!(text, "{} /dev/a {} {offset} {len}", io.at_us, word(io.op)).unwrap();
    }
    let end_us = ios.last().map_or(0, |io| io.at_us);
    text + &format!("{end_us} /dev/a close\n")
}

/// The CSV of the MSR-Cambridge traces, which has reads and writes only.
pub(crate) fn msr(ios: &[Io]) -> String {
    const FIRST: u64 = 128_166_372_000_000_000;
    let mut text = String::new();
    for io in ios {
        let kind = match io.op {
            Op::Read => "Read",
            Op::Write => "Write",
            _ => continue,
        };
        let offset = io.sector * 512;
        let len = u64::from(io.sectors) * 512;
        let at = FIRST + io.at_us * 10;
        let took = io.took_us * 10;
        writeln!(text, "{at},web,0,{kind},{offset},{len},{took}").unwrap();
    }
    text
}

/// An event of blktrace.
struct Event {
    at_ns: u64,
    letter: char,
    io: Io,
}

/// Returns the queue, get-request, issue and complete events of all `ios` in order of time.
fn events(ios: &[Io]) -> Vec<Event> {
    let mut events = Vec::new();
    for io in ios {
        let begin = io.at_us * 1000;
        let end = begin + io.took_us * 1000;
        for (at_ns, letter) in [(begin, 'Q'), (begin + 500, 'G'), (begin + 900, 'D'), (end, 'C')] {
            events.push(Event { at_ns, letter, io: *io });
        }
    }
    events.sort_by_key(|event| event.at_ns);
    events
}

/// blktrace's files, one for each of `cpus` processors.
pub(crate) fn blktrace(ios: &[Io], cpus: u32, big_endian: bool) -> Vec<Vec<u8>> {
    let mut written: Vec<(u32, Words, String)> = Vec::new();
    for (pid, name) in PROCESSES {
        let notice = Words { action: 1 << 26, pid: *pid, ..Words::default() };
        written.extend((0..cpus).map(|cpu| (cpu, notice, format!("{name}\0"))));
    }
    for Event { at_ns, letter, io } in events(ios) {
        let sector = if io.op == Op::Flush { 0 } else { io.sector };
        let pid = if letter == 'C' { 0 } else { io.pid };
        let bytes = io.sectors * 512;
        let action = action(letter, &io);
        written.push((io.cpu, Words { at_ns, sector, bytes, action, pid }, String::new()));
    }
    let mut files = vec![Vec::new(); cpus as usize];
    let mut sequences = vec![0; cpus as usize];
    for (cpu, words, follows) in written {
        let file = &mut files[cpu as usize];
        sequences[cpu as usize] += 1;
        words.write(file, sequences[cpu as usize], cpu, follows.as_bytes(), big_endian);
    }
    files
}

#[derive(Clone, Copy, Default)]
struct Words {
    at_ns: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    pid: u32,
}

impl Words {
    fn write(self, to: &mut Vec<u8>, sequence: u32, cpu: u32, follows: &[u8], big_endian: bool) {
        let word = |word: u32| if big_endian { word.to_be_bytes() } else { word.to_le_bytes() };
        let long = |long: u64| if big_endian { long.to_be_bytes() } else { long.to_le_bytes() };
        let device = 8 << 20;
        to.extend(word(0x6561_7407));
        to.extend(word(sequence));
        to.extend(long(self.at_ns));
        to.extend(long(self.sector));
        for value in [self.bytes, self.action, self.pid, device, cpu] {
            to.extend(word(value));
        }
        // No error, then the length of the payload, two bytes each.
        let len = u16::try_from(follows.len()).unwrap();
        to.extend([0, 0]);
        to.extend(if big_endian { len.to_be_bytes() } else { len.to_le_bytes() });
        to.extend(follows);
    }
}

fn action(letter: char, io: &Io) -> u32 {
    const READ: u32 = 1 << 16;
    const WRITE: u32 = 1 << 17;
    const FLUSH: u32 = 1 << 18;
    const SYNC: u32 = 1 << 19;
    const DISCARD: u32 = 1 << 29;
    const FUA: u32 = 1 << 31;
    let step = match letter {
        'Q' => 1 | 1 << 20,
        'G' => 4 | 1 << 20,
        'D' => 7 | 1 << 22,
        _ => 8 | 1 << 23,
    };
    let op = match io.op {
        Op::Read => READ,
        Op::Write | Op::WriteZeroes => WRITE,
        Op::Flush => WRITE | FLUSH,
        Op::Discard | Op::SecureErase => WRITE | DISCARD,
        Op::DriverIn | Op::DriverOut => panic!("no trace is written of a driver's commands"),
    };
    let bits = [(Flags::SYNC, SYNC), (Flags::FUA, FUA), (Flags::PREFLUSH, FLUSH)];
    let set = bits.into_iter().filter(|(flag, _)| io.flags.contains(*flag));
    set.fold(step | op, |action, (_, bit)| action | bit)
}

/// The output of blkparse for the files of [`blktrace`].
pub(crate) fn blkparse(ios: &[Io]) -> String {
    let mut text = String::new();
    let begin = ios.iter().map(|io| io.at_us * 1000).min().unwrap_or(0);
    let cpus = ios.iter().map(|io| io.cpu).max().map_or(0, |cpu| cpu as usize + 1);
    let mut sequences = vec![PROCESSES.len(); cpus];
    for Event { at_ns, letter, io } in events(ios) {
        sequences[io.cpu as usize] += 1;
        let at = at_ns - begin;
        let seconds = at / 1_000_000_000;
        let nanoseconds = at % 1_000_000_000;
        let pid = if letter == 'C' { 0 } else { io.pid };
        let letters = letters(&io);
        let name =
            PROCESSES.iter().find(|(known, _)| *known == io.pid).map_or("", |(_, name)| name);
        let behind = match (letter, io.sectors) {
            ('C', 0) => "0 [0]".to_owned(),
            ('C', sectors) => format!("{} + {sectors} [0]", io.sector),
            (_, 0) => format!("[{name}]"),
            (_, sectors) => format!("{} + {sectors} [{name}]", io.sector),
        };
        writeln!(
            text,
            "  8,0   {:2} {:8} {seconds:5}.{nanoseconds:09} {pid:5} {letter:>2} {letters:>3} {behind}",
            io.cpu, sequences[io.cpu as usize],
        )
        .unwrap();
    }
    text
}

fn letters(io: &Io) -> String {
    let flush = io.op == Op::Flush || io.flags.contains(Flags::PREFLUSH);
    let op = match io.op {
        Op::Read => "R",
        Op::Write | Op::WriteZeroes | Op::Flush => "W",
        Op::Discard | Op::SecureErase => "D",
        Op::DriverIn | Op::DriverOut => panic!("no trace is written of a driver's commands"),
    };
    let mut letters = if flush { "F".to_owned() } else { String::new() };
    letters += op;
    letters += if io.flags.contains(Flags::FUA) { "F" } else { "" };
    letters + if io.flags.contains(Flags::SYNC) { "S" } else { "" }
}
