//! Sentences in lines.

/// Breaks `text` into lines of at most `width`. A number and its unit stay together.
pub(crate) fn wrapped(text: &str, width: usize) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match words.last_mut().filter(|_| is_unit(word)) {
            Some(number) => *number += &format!(" {word}"),
            None => words.push(word.to_owned()),
        }
    }
    let mut lines = vec![String::new()];
    for word in words {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(&word),
            Some(line) if line.chars().count() + word.chars().count() < width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines.join("\n")
}

/// Whether a word is a unit, which stays on the line of its number.
fn is_unit(word: &str) -> bool {
    let letters = word.trim_end_matches(|letter: char| !letter.is_alphabetic() && letter != '%');
    ["%", "ns", "us", "ms", "s"].contains(&letters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_keeps_its_unit_and_a_line_its_width() {
        let text = "p99 rises from 35.0 ms to 139 ms, and 12 % of it is new";
        for width in [12, 20, 40] {
            let lines = wrapped(text, width);
            assert_eq!(lines.replace('\n', " "), text);
            assert!(lines.lines().all(|line| line.len() <= width), "{lines}");
            assert!(lines.lines().all(|line| !line.starts_with("ms") && !line.starts_with('%')));
        }
    }
}
