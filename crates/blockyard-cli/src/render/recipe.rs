//! Recipes in lines: the commands and rules that give a disk the values of a design.

use blockyard_answer::Answer;
use blockyard_devices::knobs::{Recipe, Unset};

use super::wrap::wrapped;

/// The file for the rules, after those of distributions that set schedulers.
const RULES: &str = "/etc/udev/rules.d/90-blockyard.rules";

/// Returns how to give a disk the values of the winner of a sweep, in lines; nothing without one.
pub(crate) fn of_winner(answer: &Answer) -> Vec<String> {
    let Some(sweep) = &answer.sweep else { return Vec::new() };
    match (&sweep.winner, &sweep.recipe) {
        (Some(winner), Some(recipe)) => lines(winner, recipe),
        _ => Vec::new(),
    }
}

/// Returns how to give a disk the values of the design `name`, in lines. Commands and rules are
/// indented.
pub(crate) fn lines(name: &str, recipe: &Recipe) -> Vec<String> {
    let mut lines = Vec::new();
    if !recipe.settings.is_empty() {
        lines.push(format!("{name} for the disk DEV of /sys/block, until the next start:"));
        lines.extend(recipe.commands().iter().map(|line| format!("  {line}")));
    }
    if !recipe.rules.is_empty() {
        lines.push(format!("For every such disk, in {RULES}:"));
        lines.extend(recipe.rules.lines().map(|line| format!("  {line}")));
    }
    let unset = recipe.unset.iter().map(|Unset { key, why }| format!("{key}: {why}."));
    lines.extend(unset.chain(recipe.notes.iter().cloned()));
    lines
}

/// Returns the lines after an empty line, if there are any. Only sentences are wrapped.
pub(crate) fn text(lines: &[String], width: usize) -> String {
    let of_line = |line: &String| match line.starts_with(' ') {
        true => line.clone(),
        false => wrapped(line, width),
    };
    let lines: Vec<_> = lines.iter().map(of_line).collect();
    if lines.is_empty() { String::new() } else { format!("\n{}\n", lines.join("\n")) }
}
