//! The weight of a client, by which it shares a disk with others.

use blockyard::elevator::GROUP_WEIGHTS;
use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// A weight: 1 to 1000, the limits of [`GROUP_WEIGHTS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Weight(u32);

impl TryFrom<u32> for Weight {
    type Error = String;

    fn try_from(weight: u32) -> Result<Self, String> {
        match GROUP_WEIGHTS.contains(&weight) {
            true => Ok(Self(weight)),
            false => Err(out_of_range(weight)),
        }
    }
}

impl From<Weight> for u32 {
    fn from(Weight(weight): Weight) -> Self {
        weight
    }
}

impl FromStr for Weight {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let weight: u32 = text.parse().map_err(|_| out_of_range(text))?;
        weight.try_into()
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn out_of_range(given: impl fmt::Display) -> String {
    let [least, most] = [GROUP_WEIGHTS.start(), GROUP_WEIGHTS.end()];
    format!("weight {given}: a weight is {least} to {most}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_has_its_limits_however_it_is_given() {
        for (text, weight) in [("1", Some(1)), ("1000", Some(1000)), ("0", None), ("1001", None)] {
            let words = format!("weight {text}: a weight is 1 to 1000");
            let expected = weight.ok_or(words);
            assert_eq!(text.parse::<Weight>().map(u32::from), expected);
            let number: u32 = text.parse().expect("a number");
            assert_eq!(Weight::try_from(number).map(u32::from), expected);
            let read = serde_json::from_str::<Weight>(text).map_err(|error| error.to_string());
            assert_eq!(read.map(u32::from), expected);
        }
        for text in ["", "-1", "1.5", "4294967297", "many"] {
            let words = format!("weight {text}: a weight is 1 to 1000");
            assert_eq!(text.parse::<Weight>(), Err(words));
        }
    }
}
