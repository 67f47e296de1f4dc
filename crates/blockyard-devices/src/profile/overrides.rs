//! Single values of a device or a design that replace those of its profile.
//!
//! The values are lines of TOML with dotted keys, `card.read.access = "900us"`. They are read as a
//! file whose base is the profile, so they pass the same checks. An error names the key instead of
//! a file and line.

use toml::de::DeValue;

use crate::families::family_tables;
use crate::reader::error::{MAX_FILE_BYTES, Problem, ProfileError};
use crate::reader::names::nearest;
use crate::reader::reading::Figure;

/// The largest number of parts of a key.
const PARTS_MAX: usize = 8;

/// A value that replaces one of the profile of a device or a design.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// The key with its tables, as `card.read.access`. Tables in the middle may be missing if only
    /// one figure of the device fits: `card.access`.
    pub key: String,
    /// The value: anything that TOML reads as one; other text is a string, so quotes may be
    /// missing.
    pub value: String,
}

/// Overrides as TOML.
pub(crate) struct Overlay {
    pub(crate) text: String,
    /// The first line of each override, in ascending order, and its key as it was given.
    lines: Vec<(usize, String)>,
}

impl Overlay {
    /// Writes `overrides` of a profile with these `figures`, which may have the `keys`. `tables`
    /// are those of the device's model; those of a design are its own. Line 1 is empty: errors
    /// there concern all of the overrides.
    pub(crate) fn new(
        overrides: &[Override],
        tables: &[&str],
        figures: &[Figure],
        keys: &[String],
    ) -> Result<Self, ProfileError> {
        let mut overlay = Self { text: "\n".to_owned(), lines: Vec::new() };
        for Override { key, value } in overrides {
            let wrong = |problem| ProfileError::Override { key: key.clone(), problem };
            overlay.lines.push((1 + overlay.text.matches('\n').count(), key.clone()));
            let full = full_key(key, tables, figures, keys).map_err(wrong)?;
            overlay.text += &format!("{full} = {}\n", written(value));
            if overlay.text.len() as u64 > MAX_FILE_BYTES {
                let words = format!("the values are longer than {} KiB", MAX_FILE_BYTES / 1024);
                return Err(wrong(Problem::Syntax(words)));
            }
        }
        Ok(overlay)
    }

    /// Returns `error`, found while these values were read, as one about their keys. An error about
    /// the profile below stays as it is; its file is not `name`.
    pub(crate) fn blamed(&self, name: &str, error: ProfileError) -> ProfileError {
        match error {
            ProfileError::Wrong { file, line, problem } if file == name => {
                let at = self.lines.partition_point(|(first, _)| *first <= line);
                let keys = match at.checked_sub(1) {
                    Some(at) => self.lines[at].1.clone(),
                    None => {
                        self.lines.iter().map(|of| of.1.as_str()).collect::<Vec<_>>().join(", ")
                    }
                };
                ProfileError::Override { key: keys, problem }
            }
            other => other,
        }
    }
}

/// Whether `part` is a key that TOML lets stand without quotes.
fn is_bare_key(part: &str) -> bool {
    let mut letters = part.chars();
    !part.is_empty()
        && letters.all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter))
}

/// Returns `key` with all its tables.
fn full_key(
    key: &str,
    tables: &[&str],
    figures: &[Figure],
    keys: &[String],
) -> Result<String, Problem> {
    let parts: Vec<_> = key.split('.').collect();
    if parts.len() > PARTS_MAX || !parts.iter().all(|part| is_bare_key(part)) {
        let words = "a key is a path of names, such as `card.read.access`";
        return Err(Problem::Contradiction(words));
    }
    if parts[0] == "base" {
        return Err(Problem::Contradiction("the base of a profile cannot be replaced"));
    }
    let is_of_model = family_tables().any(|tables| tables.contains(&parts[0]));
    if is_of_model && !tables.contains(&parts[0]) {
        let words =
            format!("the device has no `[{}]`, but `[{}]`", parts[0], tables.join("]` and `["));
        return Err(Problem::Unfit(words));
    }
    let [first, last] = parts[..] else { return known_key(key, keys) };
    let fits = |figure: &&Figure| {
        let ends = figure.key.split_once('.').zip(figure.key.rsplit_once('.'));
        ends.is_some_and(|((head, _), (_, tail))| (head, tail) == (first, last))
    };
    if figures.iter().any(|figure| figure.key == key) {
        return Ok(key.to_owned());
    }
    let fitting: Vec<_> = figures.iter().filter(fits).map(|figure| figure.key.as_str()).collect();
    match fitting[..] {
        [] => known_key(key, keys),
        [one] => Ok(one.to_owned()),
        _ => Err(Problem::Syntax(format!("it may be {}", fitting.join(" or ")))),
    }
}

/// Returns `key` if it is one of `keys`, or if its table is not known here. If not, the error has
/// the keys with this name in other tables, or for a name alone the one that is nearest.
fn known_key(key: &str, keys: &[String]) -> Result<String, Problem> {
    fn name_of(key: &str) -> &str {
        key.rsplit('.').next().unwrap_or(key)
    }
    let (table, name) = key.rsplit_once('.').unwrap_or(("", key));
    debug_assert!(!keys.is_empty(), "a profile without keys");
    let is_known = keys.iter().any(|known| known == key);
    let longer: Vec<_> = keys.iter().filter(|known| known.ends_with(&format!(".{key}"))).collect();
    if let ([one], false) = (&longer[..], is_known || table.is_empty()) {
        return Err(Problem::Syntax(format!("unknown key: did you mean `{one}`?")));
    }
    let has_table =
        keys.iter().any(|known| known.rsplit_once('.').is_some_and(|(of, _)| of == table));
    if is_known || !(table.is_empty() || has_table) {
        return Ok(key.to_owned());
    }
    let named = |name: &str| -> Vec<_> {
        keys.iter().filter(|known| name_of(known) == name).map(String::as_str).collect()
    };
    let mut meant = named(name);
    if meant.is_empty() && table.is_empty() {
        let names: Vec<_> = keys.iter().map(|known| name_of(known)).collect();
        meant = nearest(name, &names).map_or_else(Vec::new, named);
    }
    match meant[..] {
        [] => Ok(key.to_owned()),
        _ => Err(Problem::Syntax(format!("unknown key: did you mean `{}`?", meant.join("` or `")))),
    }
}

/// Returns `value` as TOML.
fn written(value: &str) -> String {
    if DeValue::parse(value).is_ok() {
        return value.to_owned();
    }
    let mut quoted = "\"".to_owned();
    for letter in value.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\0'..='\u{1f}' | '\u{7f}' => quoted += &format!("\\u{:04x}", u32::from(letter)),
            _ => quoted.push(letter),
        }
    }
    quoted + "\""
}

/// Returns the name of a design with `overrides`, which is short because it is the first column of
/// tables: `mq-deadline fifo-batch=4`. Keys of one name keep their tables.
#[must_use]
pub fn variant_name(name: &str, overrides: &[Override]) -> String {
    debug_assert!(!name.is_empty(), "a variant of a design");
    let mut named = name.to_owned();
    for set in overrides {
        let own = last_part(&set.key);
        let alike = overrides.iter().filter(|other| last_part(&other.key) == own);
        let key = if alike.count() == 1 { own } else { &set.key };
        named.extend(format!(" {key}={}", set.value).escape_debug());
    }
    named
}

/// The name of a key without its tables.
fn last_part(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or_default()
}

/// Returns the name of a device with `overrides`.
pub(crate) fn named(name: &str, overrides: &[Override]) -> String {
    if overrides.is_empty() {
        return name.to_owned();
    }
    let of = |set: &Override| format!("{}={}", set.key, set.value).escape_debug().to_string();
    format!("{name} with {}", overrides.iter().map(of).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Design, Device, DeviceModel};
    use blockyard::time::Duration;

    fn set(pairs: &[(&str, &str)]) -> Result<Device, ProfileError> {
        let of =
            |(key, value): &(&str, &str)| Override { key: (*key).into(), value: (*value).into() };
        Device::lookup_with("emmc-hs400", &pairs.iter().map(of).collect::<Vec<_>>())
    }

    fn error(pairs: &[(&str, &str)]) -> String {
        set(pairs).unwrap_err().to_string()
    }

    #[test]
    fn a_value_is_the_same_as_in_a_file_with_the_device_as_base() {
        let text = "title = \"generic eMMC, HS400\"\nbase = \"emmc-hs400\"\n[card.read]\naccess = \"900us\"\n\
                    parallel = 4\n[host]\nqueue-engine-direct = false\n";
        let file = Device::parse("x.toml", text).unwrap();
        let values = [
            ("card.read.access", "900us"),
            ("card.read.parallel", "4"),
            ("host.queue-engine-direct", "false"),
        ];
        let device = set(&values).unwrap();
        assert_eq!(
            device.name,
            "emmc-hs400 with card.read.access=900us, card.read.parallel=4, \
             host.queue-engine-direct=false"
        );
        assert_eq!(Device { name: file.name.clone(), ..device }, file);
        assert_ne!(file.model, Device::lookup("emmc-hs400").unwrap().model);
    }

    #[test]
    fn tables_in_the_middle_may_be_missing_if_one_figure_fits() {
        let DeviceModel::Mmc(mmc) = set(&[("card.access", "900us")]).unwrap().model else {
            panic!("another model than the base has");
        };
        assert_eq!(mmc.card.timing.read.access, Duration::from_us(900));
        assert_eq!(
            error(&[("card.spread", "1")]),
            "setting `card.spread`: it may be card.read.spread or card.stall.spread or card.write.spread"
        );
    }

    #[test]
    fn an_error_names_the_key() {
        for (key, value, words) in [
            (
                "card.read.acess",
                "1us",
                "unknown key `acess` in `[card.read]`: did you mean `access`?",
            ),
            (
                "card.read.access",
                "900",
                "`access` is `900`, not a time with its unit: write \"900ns\" or \"900us\"",
            ),
            ("card.read.parallel", "0", "`parallel` is `0`, out of range (1 to 32)"),
            ("card.read", "1us", "`read` is `string`, not a table"),
            ("cart.read", "1us", "unknown key `cart`: did you mean `card`?"),
            ("null.depth", "1", "the device has no `[null]`, but `[card]` and `[host]`"),
            ("access", "1us", "unknown key: did you mean `card.read.access`?"),
            ("acess", "1us", "unknown key: did you mean `card.read.access`?"),
            (
                "spread",
                "1",
                "unknown key: did you mean `card.read.spread` or `card.stall.spread` or `card.write.spread`?",
            ),
            ("capacity", "1TiB", "unknown key: did you mean `limits.capacity`?"),
            ("card.capacity", "1TiB", "unknown key: did you mean `limits.capacity`?"),
            ("zzzzzz", "1", "unknown key `zzzzzz` (one of title, base, "),
            ("base", "null", "the base of a profile cannot be replaced"),
            ("", "1", "a key is a path of names"),
            ("card..read", "1", "a key is a path of names"),
            ("a.b = 1\n[c]", "1", "a key is a path of names"),
            (&"a.".repeat(20_000), "1", "a key is a path of names"),
            ("card.read.access", &"x".repeat(70_000), "the values are longer than 64 KiB"),
            (
                "card.read.access",
                "1us\"\nbad = \"",
                "`access` is `1us\\\"\\nbad = \\\"`, not a time",
            ),
            ("card.read.access", "[\n1]", "`access` is `[1]`, not a time"),
            ("card.read.access", &"[".repeat(9_000), "`access` is `[[["),
        ] {
            let message = error(&[(key, value)]);
            let start = format!("setting `{}`: {words}", quoted_start(key));
            assert!(message.starts_with(&start), "{message}");
        }
    }

    /// The key as messages show it: cut, and safe for a terminal.
    fn quoted_start(key: &str) -> String {
        let shown: String = key.chars().take(60).flat_map(char::escape_debug).collect();
        if key.len() > 60 { shown + "..." } else { shown }
    }

    #[test]
    fn the_second_of_two_values_is_blamed_for_its_own_error() {
        let first = ("card.write.spread", "[[0, 90],\n[100, 110]]");
        assert!(set(&[first]).is_ok());
        let of = error(&[first, ("card.read.access", "1")]);
        assert!(of.starts_with("setting `card.read.access`: "), "{of}");
        let twice = error(&[("card.read.access", "1us"), ("card.read.access", "2us")]);
        assert!(twice.starts_with("setting `card.read.access`: "), "{twice}");
    }

    fn design(name: &str, pairs: &[(&str, &str)]) -> Result<Design, ProfileError> {
        let of =
            |(key, value): &(&str, &str)| Override { key: (*key).into(), value: (*value).into() };
        Design::lookup_with(name, &pairs.iter().map(of).collect::<Vec<_>>())
    }

    /// The same values in a file with the design as its base give the same design.
    #[test]
    fn a_value_of_a_design_is_the_same_as_in_a_file() {
        let text = "title = \"mq-deadline\"\nbase = \"mq-deadline\"\n[queue]\nnomerges = 2\n\
                    [queue.deadline]\nfifo-batch = 4\n";
        let file = Design::parse("x.toml", text).unwrap();
        let set =
            design("deadline", &[("queue.deadline.fifo-batch", "4"), ("queue.nomerges", "2")]);
        let set = set.unwrap();
        assert_eq!(set.name, "deadline fifo-batch=4 nomerges=2");
        assert_eq!(set.policies, file.policies);
        assert_ne!(file.policies, Design::lookup("mq-deadline").unwrap().policies);
    }

    #[test]
    fn a_scheduler_and_a_host_take_their_own_values() {
        let both = [("queue.deadline.fifo-batch", "4"), ("host.hsq.limit", "3")];
        let mixed = design("mq-deadline+hsq", &both).unwrap();
        assert_eq!(mixed.name, "mq-deadline+hsq fifo-batch=4 limit=3");
        assert_eq!(mixed.policies, design("mq-deadline", &both[..1]).unwrap().policies);
        assert_eq!(mixed.host, design("hsq", &both[1..]).unwrap().host);
        assert_ne!(mixed.host, Design::lookup("hsq").unwrap().host);
    }

    #[test]
    fn an_error_about_a_design_names_the_key() {
        for (name, key, value, words) in [
            (
                "mq-deadline",
                "queue.deadline.fifo-bach",
                "4",
                "unknown key `fifo-bach` in `[queue.deadline]`: did you mean `fifo-batch`?",
            ),
            (
                "mq-deadline",
                "queue.deadline.fifo-batch",
                "few",
                "`fifo-batch` is `few`, not a whole number",
            ),
            ("mq-deadline", "queue.nomerges", "3", "`nomerges` is `3`, out of range (0 to 2)"),
            (
                "mq-deadline",
                "fifo-batch",
                "4",
                "unknown key: did you mean `queue.deadline.fifo-batch`?",
            ),
            (
                "mq-deadline",
                "deadline.fifo-batch",
                "4",
                "unknown key: did you mean `queue.deadline.fifo-batch`?",
            ),
            (
                "kyber",
                "queue.deadline.fifo-batch",
                "4",
                "`[queue.deadline]` goes only with `elevator = \"mq-deadline\"`",
            ),
            (
                "none",
                "queue.bfq.slice-idle",
                "1ms",
                "`[queue.bfq]` goes only with `elevator = \"bfq\"`",
            ),
            ("none", "queue.async-depth", "4", "`async-depth` goes only with an elevator"),
        ] {
            let message = design(name, &[(key, value)]).unwrap_err().to_string();
            let start = format!("setting `{key}`: {words}");
            assert!(message.starts_with(&start), "{message}");
        }
    }

    fn set_of(key: &str, value: &str) -> Override {
        Override { key: key.into(), value: value.into() }
    }

    #[test]
    fn a_key_belongs_to_a_design_or_to_a_device() {
        for key in [
            "queue.nomerges",
            "queue.bfq.slice-idle",
            "btt.lanes",
            "host.pipeline",
            "host.hsq.limit",
            "fifo-batch",
        ] {
            assert!(set_of(key, "").is_of_design(), "{key}");
        }
        // Both have `host.unmap`: a way of a design, and a time of a device.
        for key in [
            "card.read.access",
            "host.unmap",
            "host.busy-detect",
            "host.issue",
            "limits.rotational",
            "depth",
            "",
        ] {
            assert!(!set_of(key, "").is_of_design(), "{key}");
        }
    }

    #[test]
    fn keys_of_one_name_keep_their_tables_in_the_name_of_a_variant() {
        let one = [set_of("queue.deadline.async-depth", "4"), set_of("queue.depth", "2")];
        assert_eq!(variant_name("none", &one), "none async-depth=4 depth=2");
        let two = [set_of("hba.depth", "4"), set_of("queue.depth", "2")];
        assert_eq!(variant_name("none", &two), "none hba.depth=4 queue.depth=2");
    }

    #[test]
    fn a_reading_leaves_a_value_that_was_set() {
        let value = Override { key: "card.read.access".into(), value: "900us".into() };
        for device in Device::readings("emmc-hs400", &[value], 1, 4).unwrap() {
            let DeviceModel::Mmc(mmc) = device.model else { panic!("{:?}", device.model) };
            assert_eq!(mmc.card.timing.read.access, Duration::from_us(900));
            assert!(device.figures.iter().any(|figure| figure.place.is_some()));
        }
    }
}
