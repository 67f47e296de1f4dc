//! Variables in values: `${NAME}`, and `$pagesize` and its like.

use super::error::Fault;
use super::limits::LINE_BYTES_MAX;
use super::reader::clip;
use super::source::Source;

/// The value of `$pagesize`, in bytes.
const PAGE_SIZE: &str = "4096";

/// The words that fio replaces with facts about its machine.
const MACHINE: &[(&str, &str)] = &[("$ncpus", "ncpus"), ("$mb_memory", "mb_memory")];

/// Returns `value` with `${NAME}`, `$pagesize`, `$ncpus` and `$mb_memory` replaced.
pub(super) fn expand(value: &str, source: &dyn Source) -> Result<String, Fault> {
    if !value.contains('$') {
        return Ok(value.to_owned());
    }
    let mut value = value.replace("$pagesize", PAGE_SIZE);
    for (word, name) in MACHINE {
        if value.contains(word) {
            let given = source.given(name).ok_or(Fault::MachineKeyword(word))?;
            value = value.replace(word, &given);
            if value.len() > LINE_BYTES_MAX {
                return Err(Fault::LineTooLong);
            }
        }
    }
    let mut expanded = String::new();
    let mut rest = value.as_str();
    while let Some((before, after)) = rest.split_once("${") {
        let bad = || Fault::BadVariable(clip(after).to_owned());
        let (name, tail) = after.split_once('}').ok_or_else(bad)?;
        let variable =
            source.variable(name).ok_or_else(|| Fault::BadVariable(clip(name).to_owned() + "}"))?;
        expanded.push_str(before);
        expanded.push_str(&variable);
        rest = tail;
        if expanded.len() > LINE_BYTES_MAX {
            return Err(Fault::LineTooLong);
        }
    }
    expanded.push_str(rest);
    Ok(expanded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    struct Variables;

    impl Source for Variables {
        fn read(&self, _path: &str) -> Result<Vec<u8>, io::ErrorKind> {
            Err(io::ErrorKind::NotFound)
        }

        fn variable(&self, name: &str) -> Option<String> {
            match name {
                "BS" => Some("16k".to_owned()),
                "EMPTY" => Some(String::new()),
                "LONG" => Some("x".repeat(LINE_BYTES_MAX)),
                _ => None,
            }
        }

        fn given(&self, name: &str) -> Option<String> {
            (name == "ncpus").then(|| "8".to_owned())
        }
    }

    fn value(text: &str) -> Result<String, Fault> {
        expand(text, &Variables)
    }

    #[test]
    fn variables_are_replaced_in_values() {
        assert_eq!(value("${BS}"), Ok("16k".to_owned()));
        assert_eq!(value("1${EMPTY}m"), Ok("1m".to_owned()));
        assert_eq!(value("$pagesize"), Ok("4096".to_owned()));
        assert_eq!(value("$jobname"), Ok("$jobname".to_owned()));
        assert_eq!(value("${NOPE}"), Err(Fault::BadVariable("NOPE}".to_owned())));
        assert_eq!(value("${BS"), Err(Fault::BadVariable("BS".to_owned())));
        assert_eq!(value("${LONG}${LONG}"), Err(Fault::LineTooLong));
    }

    #[test]
    fn facts_about_the_machine_must_be_given() {
        assert_eq!(expand("$ncpus", &Variables), Ok("8".to_owned()));
        assert_eq!(expand("$mb_memory", &Variables), Err(Fault::MachineKeyword("$mb_memory")));
    }
}
