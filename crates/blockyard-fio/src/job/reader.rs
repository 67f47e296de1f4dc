//! Splits bytes or arguments into sections of settings. `build` interprets the settings later.

use core::str;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::error::{Fault, JobError, Place};
use super::limits::{
    FILE_BYTES_MAX, INCLUDE_DEPTH_MAX, INCLUDES_MAX, INSTANCES_MAX, LINE_BYTES_MAX, SETTINGS_MAX,
};
use super::source::Source;
use super::table::find;

/// `[name]` or `--name=name`, and the settings that follow.
pub(super) struct Section {
    /// `None` for `[global]`, and as in fio for each name that begins so: `[globals]`.
    pub(super) name: Option<String>,
    pub(super) place: Place,
    pub(super) settings: Vec<Setting>,
}

/// `option` or `option=value`, with variables not yet replaced.
pub(super) struct Setting {
    pub(super) option: String,
    pub(super) value: Option<String>,
    pub(super) place: Place,
}

/// Reads a job file and the files that it includes.
pub(super) fn read_file(
    path: &str,
    bytes: &[u8],
    source: &dyn Source,
) -> Result<Vec<Section>, JobError> {
    let mut reader =
        Reader { source, sections: Vec::new(), open: Vec::new(), included: 0, count: 0 };
    reader.file(path, bytes)?;
    Ok(reader.sections)
}

/// Reads command line arguments, as fio's `getopt_long_only` does: `--rw=read`, `-rw=read` or `--rw
/// read`.
///
/// `--name=x` opens a section; arguments before the first section are global.
pub(super) fn read_args<'a>(
    args: impl IntoIterator<Item = &'a str>,
    source: &dyn Source,
) -> Result<Vec<Section>, JobError> {
    let mut reader =
        Reader { source, sections: Vec::new(), open: Vec::new(), included: 0, count: 0 };
    let file: Arc<str> = Arc::from("command line");
    let mut args = args.into_iter().zip(1..).peekable();
    while let Some((arg, line)) = args.next() {
        let place = Place { file: Arc::clone(&file), line };
        let fail = |fault| JobError { place: place.clone(), fault };
        let word =
            option_word(arg).ok_or_else(|| fail(Fault::NotAnOption(clip(arg).to_owned())))?;
        let (option, value) = split(word);
        let value = match value {
            // A flag has its value after `=`, and a word with a dash is the next option.
            None if find(option).is_some_and(|known| !known.is_flag()) => {
                args.next_if(|(next, _)| option_word(next).is_none()).map(|(next, _)| next)
            }
            _ => value,
        };
        reader.argument(option, value, &place).map_err(fail)?;
    }
    Ok(reader.sections)
}

/// Returns the argument without its dashes, if it is an option: `--rw=read` or `-rw=read`, but not
/// `-1`.
pub fn option_word(arg: &str) -> Option<&str> {
    let word = arg.strip_prefix("--").or_else(|| arg.strip_prefix('-'))?;
    word.starts_with(|first: char| first.is_ascii_alphabetic()).then_some(word)
}

/// Splits `option=value`.
fn split(text: &str) -> (&str, Option<&str>) {
    text.split_once('=').map_or((text, None), |(option, value)| (option, Some(value)))
}

struct Reader<'a> {
    source: &'a dyn Source,
    sections: Vec<Section>,
    /// The files that are being read. Each file is included by the one before it.
    open: Vec<String>,
    included: usize,
    count: usize,
}

impl Reader<'_> {
    fn file(&mut self, path: &str, bytes: &[u8]) -> Result<(), JobError> {
        let file: Arc<str> = Arc::from(path);
        let text = text_of(bytes).map_err(|fault| JobError { place: place_in(&file, 0), fault })?;
        self.open.push(path.to_owned());
        for (line, number) in text.lines().zip(1..) {
            let line = line.split([';', '#']).next().unwrap_or("").trim();
            if let Some(included) = include_of(line) {
                self.include(included, &place_in(&file, number))?;
            } else {
                let place = place_in(&file, number);
                self.line(line, &place).map_err(|fault| JobError { place, fault })?;
            }
        }
        let closed = self.open.pop();
        debug_assert_eq!(closed.as_deref(), Some(path), "the innermost file ends first");
        Ok(())
    }

    fn line(&mut self, line: &str, place: &Place) -> Result<(), Fault> {
        if line.is_empty() {
            return Ok(());
        }
        if let Some(rest) = line.strip_prefix('[') {
            let name = rest.strip_suffix(']').ok_or(Fault::BadSection)?;
            if name.is_empty() || name.contains(['[', ']']) {
                return Err(Fault::BadSection);
            }
            if self.open.len() > 1 {
                return Err(Fault::SectionInInclude);
            }
            return self.section(name, place);
        }
        let (option, value) = split(line);
        self.setting(option, value, place)
    }

    fn argument(&mut self, option: &str, value: Option<&str>, place: &Place) -> Result<(), Fault> {
        match (option, value) {
            ("name", Some(name)) => self.section(name, place),
            _ => {
                if self.sections.is_empty() {
                    self.section("global", place)?;
                }
                self.setting(option, value, place)
            }
        }
    }

    fn section(&mut self, name: &str, place: &Place) -> Result<(), Fault> {
        if self.sections.len() >= INSTANCES_MAX as usize {
            return Err(Fault::TooManyInstances { asked: self.sections.len() as u64 + 1 });
        }
        debug_assert!(self.open.len() <= 1, "a section in an included file");
        let name = (!name.starts_with("global")).then(|| name.to_owned());
        self.sections.push(Section { name, place: place.clone(), settings: Vec::new() });
        Ok(())
    }

    fn setting(&mut self, option: &str, value: Option<&str>, place: &Place) -> Result<(), Fault> {
        if option.len() + value.map_or(0, str::len) > LINE_BYTES_MAX {
            return Err(Fault::LineTooLong);
        }
        self.count += 1;
        if self.count > SETTINGS_MAX {
            return Err(Fault::TooManySettings);
        }
        let section = self.sections.last_mut().ok_or(Fault::OutsideSection)?;
        let option = option.trim_end().to_owned();
        let value = value.map(str::to_owned);
        section.settings.push(Setting { option, value, place: place.clone() });
        Ok(())
    }

    fn include(&mut self, name: &str, place: &Place) -> Result<(), JobError> {
        if self.sections.is_empty() {
            return Err(error_at(place, Fault::OutsideSection));
        }
        debug_assert!(!self.open.is_empty(), "only a file includes files");
        self.included += 1;
        if self.open.len() > INCLUDE_DEPTH_MAX || self.included > INCLUDES_MAX {
            return Err(error_at(place, Fault::TooManyIncludes));
        }
        let (path, bytes) = self.find(name).map_err(|fault| error_at(place, fault))?;
        self.file(&path, &bytes)
    }

    /// Returns an included file with its path. As in fio, the working directory comes before that
    /// of the file which includes it.
    fn find(&self, name: &str) -> Result<(String, Vec<u8>), Fault> {
        let nearby = beside(self.open.last().map_or("", String::as_str), name);
        let mut unreadable = Fault::Unreadable(io::ErrorKind::NotFound);
        for path in [name.to_owned(), nearby] {
            if self.open.contains(&path) {
                return Err(Fault::IncludeLoop);
            }
            // [input-through-source]
            match self.source.read(&path) {
                Ok(bytes) => return Ok((path, bytes)),
                Err(kind) => unreadable = Fault::Unreadable(kind),
            }
        }
        Err(unreadable)
    }
}

/// A fault at a place.
fn error_at(place: &Place, fault: Fault) -> JobError {
    JobError { place: place.clone(), fault }
}

/// A line of a file.
fn place_in(file: &Arc<str>, line: u32) -> Place {
    Place { file: Arc::clone(file), line }
}

/// U+FEFF in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Returns the whole file as text.
fn text_of(bytes: &[u8]) -> Result<&str, Fault> {
    // [any-bytes-are-safe]
    if bytes.len() > FILE_BYTES_MAX {
        return Err(Fault::FileTooLarge);
    }
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(Fault::Utf16);
    }
    // Editors of Windows put it at the head of a text. fio takes it for a part of the first line,
    // and refuses that.
    if bytes.starts_with(BYTE_ORDER_MARK) {
        return Err(Fault::ByteOrderMark);
    }
    match str::from_utf8(bytes) {
        Ok(text) if !bytes.contains(&0) => Ok(text),
        _ => Err(Fault::NotText),
    }
}

/// Returns the file that `include FILE` or `include=FILE` names.
fn include_of(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("include")?;
    let name = rest.strip_prefix([' ', '\t', '='])?.trim();
    (!name.is_empty()).then_some(name)
}

/// Returns the path of `name` relative to the directory of `file`.
fn beside(file: &str, name: &str) -> String {
    let directory = Path::new(file).parent().unwrap_or(Path::new(""));
    directory.join(name).to_string_lossy().into_owned()
}

/// Shortens `text` for a message.
pub(super) fn clip(text: &str) -> &str {
    text.char_indices().nth(60).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Tree;

    impl Source for Tree {
        fn read(&self, path: &str) -> Result<Vec<u8>, io::ErrorKind> {
            match path {
                "d/a" => Ok(b"bs=8k\ninclude b\n".to_vec()),
                "d/b" => Ok(b"rw=read".to_vec()),
                "loop" => Ok(b"include loop2".to_vec()),
                "loop2" => Ok(b"include loop".to_vec()),
                "section" => Ok(b"[x]".to_vec()),
                "h/inc" => Ok(b"bs=64k".to_vec()),
                "inc" => Ok(b"bs=8k".to_vec()),
                "wide" => Ok(b"include d/b\n".repeat(100)),
                _ => Err(io::ErrorKind::NotFound),
            }
        }

        fn variable(&self, _name: &str) -> Option<String> {
            None
        }
    }

    fn settings(text: &str) -> Result<Vec<(String, Option<String>)>, Fault> {
        let sections = read_file("f", text.as_bytes(), &Tree).map_err(|e| e.fault)?;
        Ok(sections.into_iter().flat_map(|s| s.settings).map(|s| (s.option, s.value)).collect())
    }

    #[test]
    fn comments_spaces_and_line_ends_are_ignored() {
        let read = settings("# c\n [a]\r\n\tbs =4k ; c\r\n\n  thread# c\n").unwrap();
        assert_eq!(read, [("bs".into(), Some("4k".into())), ("thread".into(), None)]);
    }

    /// [input-through-source]: no file exists outside the tree of the test.
    #[test]
    fn includes_are_found_beside_the_file_that_names_them() {
        let read = settings("[a]\ninclude d/a\nsize=1m").unwrap();
        assert_eq!(read.iter().map(|(o, _)| o.as_str()).collect::<Vec<_>>(), ["bs", "rw", "size"]);
    }

    /// fio 3.33: `sub/j.fio` with `include inc.fio` reads `./inc.fio` if it exists, of 8k, and not
    /// `sub/inc.fio`, of 64k: 512 I/Os. fio 3.42: init.c, `access(filename, F_OK)`.
    #[test]
    fn includes_are_found_in_the_working_directory_first() {
        let value = |path| {
            let sections = read_file(path, b"[a]\ninclude inc", &Tree).unwrap();
            sections[0].settings[0].value.clone()
        };
        assert_eq!(value("h/j"), Some("8k".to_owned()));
        assert_eq!(value("j"), Some("8k".to_owned()));
        let sections = read_file("h/j", b"[a]\ninclude h/inc", &Tree).unwrap();
        assert_eq!(sections[0].settings[0].value.as_deref(), Some("64k"));
    }

    /// [any-bytes-are-safe]
    #[test]
    fn includes_are_bounded() {
        assert_eq!(settings("[a]\ninclude loop"), Err(Fault::IncludeLoop));
        assert_eq!(settings("[a]\ninclude f"), Err(Fault::IncludeLoop));
        assert_eq!(settings("[a]\ninclude wide"), Err(Fault::TooManyIncludes));
        assert_eq!(settings("[a]\ninclude section"), Err(Fault::SectionInInclude));
        assert_eq!(settings("[a]\ninclude none"), Err(Fault::Unreadable(io::ErrorKind::NotFound)));
        assert_eq!(settings("include d/b\n[a]"), Err(Fault::OutsideSection));
    }

    #[test]
    fn the_encoding_of_a_file_that_is_not_plain_utf_8_is_named() {
        assert_eq!(settings("\u{feff}[a]\nbs=4k"), Err(Fault::ByteOrderMark));
        let utf16 = read_file("f", b"\xff\xfe[\0a\0]\0", &Tree).map(drop);
        assert_eq!(utf16.map_err(|error| error.fault), Err(Fault::Utf16));
    }

    fn arguments(line: &str) -> Result<String, String> {
        let sections = read_args(line.split(' '), &Tree).map_err(|e| e.to_string())?;
        let words = |section: Section| {
            let settings = section.settings.into_iter();
            let words = settings.map(|s| format!("{}={}", s.option, s.value.unwrap_or_default()));
            format!(
                "[{}] {}",
                section.name.unwrap_or_default(),
                words.collect::<Vec<_>>().join(" ")
            )
        };
        Ok(sections.into_iter().map(words).collect::<Vec<_>>().join(" "))
    }

    /// As fio 3.33 and 3.42 read them with `getopt_long_only`.
    #[test]
    fn arguments_have_one_dash_or_two_and_values_behind_a_sign_or_a_blank() {
        let expected = "[] direct=1 iodepth=32 thread= [a] rw=randread flow=-1".to_owned();
        for line in [
            "--direct=1 --iodepth=32 --thread --name=a --rw=randread --flow=-1",
            "-direct=1 -iodepth 32 -thread -name a -rw randread -flow -1",
        ] {
            assert_eq!(arguments(line), Ok(expected.clone()), "{line}");
        }
        assert_eq!(arguments("--name a --bs --rw=read"), Ok("[a] bs= rw=read".to_owned()));
        let stray = arguments("--name a --thread 1").unwrap_err();
        assert!(stray.starts_with("command line:4: `1` is not an option; write"), "{stray}");
    }

    fn fault_of(bytes: &[u8]) -> Result<(), Fault> {
        read_file("f", bytes, &Tree).map(drop).map_err(|e| e.fault)
    }

    /// [any-bytes-are-safe]
    #[test]
    fn bytes_that_are_no_job_file_are_refused() {
        assert_eq!(fault_of(b"[a]\0"), Err(Fault::NotText));
        assert_eq!(fault_of(b"[a]\n\xff"), Err(Fault::NotText));
        assert_eq!(fault_of(&vec![b'\n'; FILE_BYTES_MAX + 1]), Err(Fault::FileTooLarge));
        assert_eq!(fault_of(b"bs=4k"), Err(Fault::OutsideSection));
        assert_eq!(fault_of(b"[a"), Err(Fault::BadSection));
        assert_eq!(fault_of(b"[]"), Err(Fault::BadSection));
    }
}
