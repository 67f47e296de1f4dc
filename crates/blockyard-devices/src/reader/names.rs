//! The names that a user may mean by one that does not exist.

/// Words for kinds of devices, and how parts of their names begin.
const KINDS: &[(&str, &[&str])] = &[
    ("ssd", &["nvme", "ssd"]),
    ("disk", &["hdd"]),
    ("harddisk", &["hdd"]),
    ("optane", &["3dxpoint"]),
    ("ebs", &["cloud"]),
    ("microsd", &["sd"]),
    ("nvdimm", &["pmem"]),
];

/// The longest word for which a name is looked for.
const LONGEST: usize = 64;

/// Returns the one of `known` that `word` most likely means, if any is close. Case does not matter.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    within(1 + word.len() / 3, word, known)
}

/// Returns the names of built-in profiles that `word` may mean: one with a single slip, or those
/// with a part that it begins or whose kind it is, or those that contain it, or else the nearest.
/// None if nothing is close.
pub(crate) fn alike<'a>(word: &str, known: &[&'a str]) -> Vec<&'a str> {
    debug_assert!(known.iter().all(|name| !name.is_empty()), "a name is empty");
    if let Some(near) = within(1, word, known) {
        return vec![near];
    }
    let word = word.to_lowercase();
    if word.is_empty() {
        return Vec::new();
    }
    let kind = KINDS.iter().find(|(kind, _)| *kind == word).map(|(_, starts)| *starts);
    let named = match kind {
        Some(kind) => select(known, |name| kind.iter().any(|start| has_part(name, start))),
        None => select(known, |name| has_part(name, &word)),
    };
    let near = || within(word.len() / 3, &word, known).into_iter().collect();
    [named, select(known, |name| name.contains(&word))]
        .into_iter()
        .find(|names| !names.is_empty())
        .unwrap_or_else(near)
}

/// Returns those of `known` that satisfy `is`.
fn select<'a>(known: &[&'a str], is: impl Fn(&str) -> bool) -> Vec<&'a str> {
    known.iter().copied().filter(|name| is(name)).collect()
}

/// Whether a part of `name` between hyphens begins with `start`.
fn has_part(name: &str, start: &str) -> bool {
    name.split('-').any(|part| part.starts_with(start))
}

/// Returns the first of `known` that is nearest to `word`, with at most so many slips.
fn within<'a>(slips: usize, word: &str, known: &[&'a str]) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let word = word.to_lowercase();
    let distances =
        known.iter().map(|name| (strsim::damerau_levenshtein(&word, &name.to_lowercase()), *name));
    let (distance, near) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= slips).then_some(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_close_name_is_suggested() {
        assert_eq!(nearest("mq-dedline", &["none", "mq-deadline"]), Some("mq-deadline"));
        assert_eq!(nearest("MQ-Dedline", &["none", "mq-deadline"]), Some("mq-deadline"));
        assert_eq!(nearest("cfq", &["none", "mq-deadline"]), None);
        assert_eq!(nearest("x".repeat(65).as_str(), &["x"]), None);
    }

    #[test]
    fn a_word_means_a_slip_of_one_name_or_the_names_of_its_kind() {
        const NAMES: &[&str] = &[
            "srp", "null", "sd-hs", "nvme-tlc", "nvme-qlc", "sata-ssd", "usb-ssd", "hdd-7200",
            "emmc-hs",
        ];
        for (word, expected) in [
            ("nul", &["null"][..]),
            ("sprp", &["srp"]),
            ("ssd", &["nvme-tlc", "nvme-qlc", "sata-ssd", "usb-ssd"]),
            ("SSD", &["nvme-tlc", "nvme-qlc", "sata-ssd", "usb-ssd"]),
            ("sd", &["sd-hs"]),
            ("nvme", &["nvme-tlc", "nvme-qlc"]),
            ("NVME-TLC", &["nvme-tlc"]),
            ("mmc", &["emmc-hs"]),
            ("disk", &["hdd-7200"]),
            ("hdd-5400", &["hdd-7200"]),
            ("zzzzzzzzz", &[]),
            ("sap", &["srp"]),
            // With two slips of three letters it is another word.
            ("zap", &[]),
            ("", &[]),
        ] {
            assert_eq!(alike(word, NAMES), expected, "{word}");
        }
    }
}
