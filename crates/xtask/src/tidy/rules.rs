//! The rules that module headers declare, and where they are cited.
//!
//! A header declares a rule with `//! - **[its-name]** The invariant.`; a comment cites it as
//! `[its-name]`, and so may the message of an assertion. A name is words in lower case, joined by
//! hyphens.

use crate::tidy::tree::rust_files;
use std::collections::BTreeMap;
use std::path::Path;

/// A place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, from the root of the repository, and the line from 1.
    pub at: String,
    /// Whether the place is in code for tests.
    pub test: bool,
}

/// All declarations and citations of rules in the source.
#[derive(Debug, Default)]
pub struct Rules {
    /// Where each rule is declared.
    pub declared: BTreeMap<String, Vec<Place>>,
    /// Where each name is cited in a comment, declarations apart.
    pub(crate) cited: BTreeMap<String, Vec<Place>>,
    /// Where the message of an assertion has each name, of a rule or not.
    pub(crate) asserted: BTreeMap<String, Vec<Place>>,
}

/// The rules of all crates.
#[must_use]
pub fn rules() -> Rules {
    let mut rules = Rules::default();
    for (file, text) in rust_files() {
        if !file.starts_with("crates/xtask") {
            rules.read(&file, &text);
        }
    }
    rules
}

impl Rules {
    /// What is wrong: rules that are declared twice, rules that no code or no test cites, and
    /// citations of rules that do not exist. A rule of a test's own header needs no citation by
    /// other code.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = vec![];
        for (name, places) in &self.declared {
            let at = &places[0].at;
            if let Some(again) = places.get(1) {
                faults.push(format!("{}: [{name}] is declared at {at} already", again.at));
            }
            if !places[0].test && !self.is_cited(name, false) {
                faults.push(format!("{at}: no code cites [{name}]"));
            }
            if !self.is_cited(name, true) {
                faults.push(format!("{at}: no test cites [{name}]"));
            }
        }
        for (name, places) in
            self.cited.iter().filter(|(name, _)| !self.declared.contains_key(*name))
        {
            faults.push(format!("{}: [{name}] is declared nowhere", places[0].at));
        }
        faults
    }

    /// Whether code for tests, or else other code, cites a rule.
    fn is_cited(&self, name: &str, test: bool) -> bool {
        let cited = self.cited.get(name).into_iter().flatten();
        let asserted = self.asserted.get(name).into_iter().flatten();
        cited.chain(asserted).any(|place| place.test == test)
    }

    /// Adds what a file says.
    pub fn read(&mut self, file: &Path, text: &str) {
        let mut test = file.iter().any(|name| name == "tests" || name == "tests.rs");
        let mut lines = text.lines().enumerate().peekable();
        while let Some((number, line)) = lines.next() {
            // Unit tests are at the foot of a file.
            test |= line.starts_with("#[cfg(test)]")
                && lines
                    .peek()
                    .is_some_and(|(_, next)| next.starts_with("mod ") && next.ends_with('{'));
            let place = Place { at: format!("{}:{}", file.display(), number + 1), test };
            let (code, comment) = line.split_once("//").unwrap_or((line, ""));
            for (name, declares) in names(comment) {
                let into = if declares { &mut self.declared } else { &mut self.cited };
                into.entry(name).or_default().push(place.clone());
            }
            for (name, _) in names(code) {
                self.asserted.entry(name).or_default().push(place.clone());
            }
        }
    }
}

/// The names of rules in a part of a line, and whether each is declared there.
fn names(comment: &str) -> Vec<(String, bool)> {
    let mut found = vec![];
    let mut rest = comment;
    while let Some(start) = rest.find('[') {
        let (before, after) = rest.split_at(start);
        let Some(end) = after.find(']') else { break };
        let name = &after[1..end];
        let behind = &after[end + 1..];
        rest = behind;
        // In code, and in links of Markdown, brackets mean something else.
        let code = before.ends_with('`') || behind.starts_with('`');
        let link = behind.starts_with('(');
        if is_name(name) && !code && !link {
            found.push((name.to_owned(), before.ends_with("**") && behind.starts_with("**")));
        }
    }
    found
}

fn is_name(name: &str) -> bool {
    let word = |word: &str| {
        !word.is_empty()
            && word.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit())
    };
    name.contains('-')
        && name.split('-').all(word)
        && name.starts_with(|c: char| c.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_citations_and_neither() {
        let mut rules = Rules::default();
        let text = "//! - **[no-lost-tag]** None is lost.\n\
            fn f() {} // [no-lost-tag]: here, by [a-link](x) and `[card-x]`\n\
            #[cfg(test)]\nmod tests {\n/// [no-lost-tag], [no-such-rule]\n";
        rules.read(Path::new("src/a.rs"), text);
        assert_eq!(rules.declared.keys().collect::<Vec<_>>(), ["no-lost-tag"]);
        let cited: Vec<_> = rules.cited["no-lost-tag"].iter().map(|place| place.test).collect();
        assert_eq!(cited, [false, true]);
        assert_eq!(rules.cited.keys().collect::<Vec<_>>(), ["no-lost-tag", "no-such-rule"]);
    }
}
