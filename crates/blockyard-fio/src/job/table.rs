//! The table of options. Each option is defined once, in one of three lists: modelled, without effect, refused.

use super::option::OptionDef;
use super::{effectless, modelled, refused};

/// Returns every known option: the modelled ones first, then those without effect, then those refused.
pub fn options() -> impl Iterator<Item = &'static OptionDef> {
    modelled::OPTIONS.iter().chain(effectless::OPTIONS).chain(refused::OPTIONS)
}

/// Returns the option with this name or alias.
#[must_use]
pub fn find(name: &str) -> Option<&'static OptionDef> {
    options().find(|def| def.name == name || def.aliases.contains(&name))
}

/// Returns the spelling nearest to `name` if one is near enough to be meant.
pub(super) fn nearest(name: &str) -> Option<&'static str> {
    let spellings = options().flat_map(|def| def.aliases.iter().chain([&def.name]));
    let scored = spellings.map(|spelling| (strsim::damerau_levenshtein(name, spelling), *spelling));
    let near = name.len() / 3 + 1;
    // fio's command line takes the beginning of a name for the name.
    let mut begun = options().map(|def| def.name).filter(|spelling| spelling.starts_with(name));
    if let (Some(only), None) = (begun.next(), begun.next()) {
        return Some(only);
    }
    scored.filter(|(distance, _)| *distance <= near).min().map(|(_, spelling)| spelling)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_options_share_a_spelling() {
        let mut spellings: Vec<_> =
            options().flat_map(|def| def.aliases.iter().chain([&def.name])).collect();
        spellings.sort();
        assert!(spellings.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn a_misspelt_name_finds_its_option() {
        assert_eq!(nearest("iodpeth"), Some("iodepth"));
        assert_eq!(nearest("blocksiz"), Some("blocksize"));
        assert_eq!(nearest("xyzzyplugh"), None);
        assert_eq!(nearest("numj"), Some("numjobs"));
    }
}
