//! The results of verifying the media.

use blockyard_answer::{PowerCut, Verified};

/// The maximum number of power losses that get a line each.
const LINES_MAX: usize = 10;

/// Returns the checks and their findings, for people.
pub(super) fn text(verified: &Verified) -> String {
    let Verified { reads, read_sectors, writes, flushes, cached_sectors, .. } = verified;
    let verdict = match verified.violation_count {
        0 => "no errors".to_owned(),
        1 => "1 place is WRONG".to_owned(),
        count => format!("{count} places are WRONG"),
    };
    let mut text = format!(
        "verified: {reads} reads ({read_sectors} sectors), {writes} writes, {flushes} flushes, \
         {cached_sectors} sectors in the cache at the end: {verdict}\n"
    );
    let cuts = &verified.power_cuts;
    if cuts.len() <= LINES_MAX {
        for PowerCut { at_ns, lost_by_right, lost_by_wrong, lost_from_memory } in cuts {
            let memory = from_memory(*lost_from_memory);
            let at = blockyard::time::Instant::from_ns(*at_ns);
            text += &format!(
                "  power lost at {at} s: {lost_by_right} unflushed sectors lost, {memory}{lost_by_wrong} \
                 sectors wrong\n"
            );
        }
    } else {
        let most = cuts.iter().map(|cut| cut.lost_by_right).max().unwrap_or(0);
        let right: u64 = cuts.iter().map(|cut| cut.lost_by_right).sum();
        let wrong: u64 = cuts.iter().map(|cut| cut.lost_by_wrong).sum();
        text += &format!(
            "  power lost {} times: {right} unflushed sectors lost ({most} at most at a time), {}{wrong} \
             sectors wrong\n",
            cuts.len(),
            from_memory(cuts.iter().filter_map(|cut| cut.lost_from_memory).max())
        );
    }
    for violation in &verified.violations {
        text += &format!("  wrong: {violation}\n");
    }
    text
}

/// Says how many sectors of dirty pages were lost, at most at a time, if there were any.
fn from_memory(sectors: Option<u64>) -> String {
    let lost = sectors.filter(|sectors| *sectors > 0);
    lost.map(|sectors| format!("{sectors} unsynced ones in memory, ")).unwrap_or_default()
}
