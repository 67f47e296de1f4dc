//! Renders answers, for people and as JSON. The values and their numbers are those of
//! `blockyard_answer`.

mod bfq;
pub(crate) mod buffered;
pub(crate) mod certainty;
mod colour;
pub(crate) mod control;
mod details;
pub(crate) mod device;
pub(crate) mod faults;
pub(crate) mod job_time;
mod life;
mod locks;
pub(crate) mod recipe;
#[cfg(test)]
mod samples;
pub(crate) mod table;
pub(crate) mod verdict;
pub(crate) mod verified;
pub(crate) mod whatif;
mod wrap;

pub(crate) use wrap::wrapped;

use blockyard_text::number::{approximate, nanoseconds, percent, share_percent};
use serde::Serialize;

/// Returns the share that `part` has of `all`; `-` if it has none.
fn share(part: u64, all: u64) -> String {
    if part == 0 { "-".to_owned() } else { percent(share_percent(part, approximate(all))) }
}

/// Formats `answer` as JSON with a final newline. An array of numbers is one line.
pub(crate) fn json(answer: &impl Serialize) -> String {
    let pretty =
        serde_json::to_string_pretty(answer).expect("the keys of an answer should be strings");
    let mut text = String::with_capacity(pretty.len());
    let mut lines = pretty.lines();
    while let Some(line) = lines.next() {
        text += line;
        let rest = lines.clone().map(str::trim_start);
        let numbers: Vec<_> =
            rest.take_while(|line| is_number(line.trim_end_matches(','))).collect();
        if line.ends_with('[') && !numbers.is_empty() {
            text += &numbers.join(" ");
            text += lines.nth(numbers.len()).expect("an array should end").trim_start();
        }
        text.push('\n');
    }
    text
}

fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

/// Returns a cell with a mean time and its share of the whole.
fn time_and_share(ns: f64, share: f64) -> String {
    if ns < 0.5 { "-".to_owned() } else { format!("{} {:>5}", nanoseconds(ns), percent(share)) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    #[test]
    fn an_array_of_numbers_is_one_line_of_json() {
        let value = json!({ "a": [1, -2.5, 3e9], "b": ["1", 2], "c": [[1, 2], [3]], "d": [] });
        let text = super::json(&value);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        let expected = "\
{
  \"a\": [1, -2.5, 3000000000.0],
  \"b\": [
    \"1\",
    2
  ],
  \"c\": [
    [1, 2],
    [3]
  ],
  \"d\": []
}
";
        assert_eq!(text, expected);
    }
}
