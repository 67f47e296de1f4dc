//! Colours of figures in tables.

use anstyle::{AnsiColor, Style};
use blockyard_answer::certainty::EQUAL_WITHIN;

/// Returns green if `figure` is the highest of `all` and red if it is the lowest, unless `all` are
/// within 2 % of each other. What is within 2 % of the highest is green, too.
#[expect(clippy::float_arithmetic, reason = "the bounds of equality")]
pub(super) fn of(figure: f64, all: impl Iterator<Item = f64> + Clone) -> Style {
    let best = all.clone().fold(figure, f64::max);
    let worst = all.fold(figure, f64::min);
    let tie = best * (1.0 - EQUAL_WITHIN);
    let colour = match figure {
        _ if worst >= tie => None,
        _ if figure >= tie => Some(AnsiColor::Green),
        _ if figure <= worst => Some(AnsiColor::Red),
        _ => None,
    };
    Style::new().fg_color(colour.map(Into::into))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn colours(all: [f64; 4]) -> [char; 4] {
        all.map(|figure| match of(figure, all.into_iter()).get_fg_color() {
            Some(anstyle::Color::Ansi(AnsiColor::Green)) => 'g',
            Some(anstyle::Color::Ansi(AnsiColor::Red)) => 'r',
            _ => '-',
        })
    }

    #[test]
    fn ties_are_coloured_alike() {
        assert_eq!(colours([1.0, 0.99, 0.9, 0.5]), ['g', 'g', '-', 'r']);
        assert_eq!(colours([1.0, 0.99, 0.985, 1.0]), ['-'; 4]);
    }
}
