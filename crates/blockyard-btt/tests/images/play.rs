//! Any bytes as damage to an image, which is then opened, checked, repaired and opened again.
//!
//! The first byte chooses the image, and the second one when the power goes during the repair. Then
//! every seven bytes are a change: its kind (one), position (two) and value (four).

use super::{BYTES, Sparse, WRITTEN, arena, used};
use blockyard_btt::arena::Arena;
use blockyard_btt::check::{Options, Report, Severity, check};
use blockyard_btt::info_block::checksum;
use blockyard_btt::repair::Plan;
use blockyard_btt::{Btt, Container, IoError, OpenOptions, PremapAba};
use std::sync::OnceLock;

/// The largest number of changes.
const CHANGES_MAX: usize = 64;

/// An undamaged image.
struct Good {
    container: Container,
    image: Sparse,
    arena: Arena,
}

/// Plays `bytes`. Returns the worst severity, or `None` if there are too few bytes.
pub(crate) fn play(bytes: &[u8]) -> Option<Option<Severity>> {
    static GOOD: OnceLock<Vec<Good>> = OnceLock::new();
    let good = GOOD.get_or_init(|| {
        let kinds = [
            (Container::LabelledNamespace, 4096),
            (Container::Namespace, 520),
            (Container::Pool, 4096),
        ];
        let good = kinds.map(|(container, sector_bytes)| {
            let image = used(container, sector_bytes);
            Good { container, arena: arena(&image, container), image }
        });
        good.into()
    });
    let (&[choice, power], changes) = bytes.split_first_chunk()?;
    let Good { container, image, arena } = &good[usize::from(choice) % good.len()];
    let mut image = image.clone();
    for change in changes.chunks_exact(7).take(CHANGES_MAX) {
        let at = u16::from_le_bytes([change[1], change[2]]);
        let to = u32::from_le_bytes([change[3], change[4], change[5], change[6]]);
        image = damage(image, arena, change[0], at.into(), to);
    }
    Some(judge(&image, *container, power))
}

/// Applies one change to the image.
fn damage(image: Sparse, arena: &Arena, what: u8, at: u64, to: u32) -> Sparse {
    let layout = &arena.layout;
    let info = [arena.start, arena.start + layout.infooff];
    let blocks = layout.internal_nlba;
    let lane = at % 16;
    match what % 9 {
        // A field of both info blocks, with correct checksums.
        0 => info.iter().for_each(|&info| put_field(&image, info, at, to)),
        // A field of one of them.
        1 => put_field(&image, info[(at / 1024 % 2) as usize], at, to),
        // A byte of one of them.
        2 => image.put(info[(at / 4096 % 2) as usize] + at % 4096, &to.to_le_bytes()[..1]),
        // A word of a log group: any value; an existing block or sector; a sequence number.
        3 => image.put(arena.group_at(lane as u32) + at / 16 % 16 * 4, &to.to_le_bytes()),
        4 => {
            let named = (to & 0xc000_0000) | (to % blocks);
            image.put(arena.group_at(lane as u32) + at / 16 % 8 * 4, &named.to_le_bytes());
        }
        5 => image.put(arena.entry_at(lane as u32, (at / 16 % 2) as usize) + 12, &[(to % 5) as u8]),
        // A map entry: any value; an existing block.
        6 => image.put(arena.map_at(PremapAba((at % 64) as u32)), &to.to_le_bytes()),
        7 => {
            let named = (to & 0xc000_0000) | (to % blocks);
            image.put(arena.map_at(PremapAba((at % 64) as u32)), &named.to_le_bytes());
        }
        // Another size of the image.
        _ => return image.resized(u64::from(to) % (2 * BYTES)),
    }
    image
}

fn put_field(image: &Sparse, info: u64, at: u64, to: u32) {
    if info + 4096 > image.len {
        return;
    }
    image.put(info + at % 32 * 4, &to.to_le_bytes());
    let sum = checksum(&image.bytes(info));
    image.put(info + 4088, &sum.to_le_bytes());
}

/// Opens, checks and repairs an image, and asserts that the results agree.
fn judge(image: &Sparse, container: Container, power: u8) -> Option<Severity> {
    let before = checked(image, container);
    let opened = open(image, container);
    let read = contents(image, container);
    assert_eq!(opened, read.is_some(), "opening for writing and for reading agree");
    if before.0.is_clean() {
        assert!(opened, "a clean image can be opened");
    }
    let (report, plan) = repaired(image, container, &before);
    assert!(report.is_clean() || before.0.worst() == Some(Severity::Broken));
    assert!(report.count(Severity::Broken) <= before.0.count(Severity::Broken));
    assert_eq!(plan.steps(), [], "a second repair has nothing to do");

    // The same with a power cut during the repair: [repair-steps-durable].
    let cut = image.clone();
    let whole = image.clone();
    whole.power_for(None);
    before.1.apply(&whole, &mut || {}).expect("successful write");
    cut.power_for(Some(whole.written() * u64::from(power) / 256));
    before
        .1
        .apply(&cut, &mut || {})
        .expect("success, because the writer does not notice the power cut");
    cut.power_for(None);
    if let Some(read) = read {
        assert!(
            reads_like(container, &read, &whole) && reads_like(container, &read, &cut),
            "a repair changes no readable sector"
        );
    }
    let (_, rest) = checked(&cut, container);
    rest.apply(&cut, &mut || {}).expect("successful write");
    assert!(cut.same(&whole), "a second repair completes the first one");
    before.0.worst()
}

fn reads_like(container: Container, read: &[Result<Vec<u8>, IoError>], now: &Sparse) -> bool {
    let now = contents(now, container).expect("an image that can still be opened");
    now.iter()
        .zip(read)
        .all(|(now, read)| now == read || *read == Err(IoError::Map) && *now == Err(IoError::Lost))
}

fn checked(image: &Sparse, container: Container) -> (Report, Plan) {
    let before = image.clone();
    let options = Options { keep: 8, ..Options::new(container) };
    let (report, plan) = check(image, &options, &mut |_| {}).expect("check of a readable image");
    assert!(image.same(&before), "a check writes nothing");
    for finding in report.findings() {
        assert!(!finding.to_string().is_empty() && finding.at <= image.len.max(8192));
    }
    (report, plan)
}

fn repaired(image: &Sparse, container: Container, before: &(Report, Plan)) -> (Report, Plan) {
    let image = image.clone();
    before.1.apply(&image, &mut || {}).expect("successful write");
    let after = checked(&image, container);
    if after.0.is_clean() {
        assert!(open(&image, container), "a clean image can be opened");
    }
    after
}

/// Whether a copy of the image can be opened. If sector 0 can be written, it must read as written.
fn open(image: &Sparse, container: Container) -> bool {
    let opened = image.clone();
    let Ok(btt) = Btt::open(&opened, &OpenOptions::new(container)) else {
        assert!(opened.same(image), "[refused-arena-untouched]");
        return false;
    };
    let mut sector = vec![0x5a; btt.sector_bytes() as usize];
    if btt.write(0, &sector).is_ok() {
        sector.fill(0);
        assert_eq!(btt.read(0, &mut sector), Ok(()));
        assert!(sector.iter().all(|&byte| byte == 0x5a));
    }
    true
}

/// Reads the first sectors.
fn contents(image: &Sparse, container: Container) -> Option<Vec<Result<Vec<u8>, IoError>>> {
    let options = OpenOptions { read_only: true, ..OpenOptions::new(container) };
    let btt = Btt::open(image, &options).ok()?;
    Some(
        (0..btt.sectors().min(WRITTEN + 8))
            .map(|lba| {
                let mut sector = vec![0; btt.sector_bytes() as usize];
                btt.read(lba, &mut sector).map(|()| sector)
            })
            .collect(),
    )
}
