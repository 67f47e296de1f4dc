//! A plain table: columns two spaces apart, each as wide as its widest cell.
//!
//! A long name of a column of numbers is broken into two lines. The width of a table is that with
//! which it is formatted, or [`WIDTH`]. A wider table of numbers continues below itself after an
//! empty line, with its first column repeated. In a table of words, the last column is wrapped.

use core::fmt;
use core::ops::Range;

use anstyle::Style;

use super::wrap::wrapped;

/// The maximum length of lines if no other is asked for.
const WIDTH: usize = 80;
/// The maximum length of a column's name in one line.
const NAME_WIDTH: usize = 11;

/// The alignment of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

/// A cell and its style on a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) text: String,
    /// The style, always written as escape sequences. The stream removes them if it is not a
    /// terminal.
    pub(crate) style: Style,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, style: Style::new() }
    }
}

/// A table with a header of column names.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Row>,
}

/// A row of a table.
#[derive(Clone, Debug)]
enum Row {
    /// A cell for each column.
    Cells(Vec<Cell>),
    /// Words over the whole table, above the rows that they describe.
    Heading(String),
    /// A cell of the first column, and words in place of all others.
    Words(String, String),
}

/// A column. Its name has two lines, of which the first is usually empty.
#[derive(Clone, Debug)]
struct Column {
    head: [String; 2],
    align: Align,
}

impl Column {
    fn new(name: &str, align: Align) -> Self {
        let spaces = name.match_indices(' ').map(|(at, _)| at);
        let longer_line = |at: &usize| (*at).max(name.len() - at - 1);
        let is_long = align == Align::Right && name.len() > NAME_WIDTH;
        let head = match spaces.min_by_key(longer_line).filter(|_| is_long) {
            Some(at) => [name[..at].to_owned(), name[at + 1..].to_owned()],
            None => [String::new(), name.to_owned()],
        };
        Self { head, align }
    }
}

impl Table {
    /// Returns a table with the columns `columns`.
    pub(crate) fn new(columns: &[(&str, Align)]) -> Self {
        let columns = columns.iter().map(|(name, align)| Column::new(name, *align));
        Self { columns: columns.collect(), rows: Vec::new() }
    }

    /// Returns a table of words.
    pub(crate) fn of_words(columns: &[&str]) -> Self {
        Self::new(&columns.iter().map(|name| (*name, Align::Left)).collect::<Vec<_>>())
    }

    /// Returns a table of numbers after a first column of words.
    pub(crate) fn of_numbers<'a>(first: &str, numbers: impl IntoIterator<Item = &'a str>) -> Self {
        let mut table = Self::of_words(&[first]);
        table.columns.extend(numbers.into_iter().map(|name| Column::new(name, Align::Right)));
        table
    }

    /// Adds a row.
    ///
    /// # Panics
    ///
    /// Panics if the row does not have a cell for each column.
    pub(crate) fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        let cells: Vec<Cell> = cells.into_iter().map(Into::into).collect();
        assert_eq!(cells.len(), self.columns.len(), "a row has a cell for each column");
        self.rows.push(Row::Cells(cells));
    }

    /// Adds `words` as a heading of the rows below.
    pub(crate) fn heading(&mut self, words: String) {
        self.rows.push(Row::Heading(words));
    }

    /// Adds a row with `words` in place of its numbers.
    pub(crate) fn words(&mut self, first: String, words: String) {
        self.rows.push(Row::Words(first, words));
    }

    fn cells(&self) -> impl Iterator<Item = &Vec<Cell>> {
        self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) => Some(cells),
            Row::Heading(_) | Row::Words(..) => None,
        })
    }

    /// Returns the length of the longest line, if the table does not continue below itself.
    pub(crate) fn full_width(&self) -> usize {
        let columns = (0..self.columns.len()).map(|column| 2 + self.width(column));
        columns.sum::<usize>() - 2
    }

    /// Adds a column of numbers after the others.
    ///
    /// # Panics
    ///
    /// Panics if the column does not have a cell for each row.
    pub(crate) fn column<C: Into<Cell>>(
        &mut self,
        name: &str,
        cells: impl ExactSizeIterator<Item = C>,
    ) {
        assert_eq!(cells.len(), self.rows.len(), "a column has a cell for each row");
        self.columns.push(Column::new(name, Align::Right));
        for (row, cell) in self.rows.iter_mut().zip(cells) {
            match row {
                Row::Cells(of_row) => of_row.push(cell.into()),
                Row::Heading(_) | Row::Words(..) => {
                    unreachable!("such a table has all its columns")
                }
            }
        }
    }

    fn width(&self, column: usize) -> usize {
        let cells = self.cells().map(|row| row[column].text.as_str());
        let firsts = self.rows.iter().filter_map(|row| match row {
            Row::Words(first, _) if column == 0 => Some(first.as_str()),
            _ => None,
        });
        let head = self.columns[column].head.iter().map(String::as_str);
        cells.chain(firsts).chain(head).map(|text| text.chars().count()).max().unwrap_or(0)
    }

    /// Returns the columns after the first, in as many parts as lines of at most `most` require.
    fn parts(&self, most: usize) -> Vec<Range<usize>> {
        let rest = 1..self.columns.len();
        let is_of_numbers =
            self.columns[rest.clone()].iter().all(|column| column.align == Align::Right);
        if !is_of_numbers || rest.is_empty() {
            return vec![rest];
        }
        let mut parts: Vec<Range<usize>> = Vec::new();
        let mut width = 0;
        for column in rest {
            let wide = 2 + self.width(column);
            match parts.last_mut().filter(|_| width + wide <= most) {
                Some(part) => part.end = column + 1,
                None => {
                    parts.push(column..column + 1);
                    width = self.width(0);
                }
            }
            width += wide;
        }
        parts
    }

    /// Returns the last cell of a row of words, wrapped within its column so that no line is longer
    /// than `most`.
    fn last_words(&self, row: &[Cell], most: usize) -> String {
        let last = row.len() - 1;
        let indent: usize = (0..last).map(|column| self.width(column) + 2).sum();
        let room = most.saturating_sub(indent).max(WIDTH / 4);
        wrapped(&row[last].text, room).replace('\n', &format!("\n{}", " ".repeat(indent)))
    }

    /// Formats `cells` of the columns `of` as a line.
    fn line(&self, of: &[usize], cells: &[(&str, Style)]) -> String {
        let last = of.len() - 1;
        let mut line = String::new();
        for (at, (column, (text, style))) in of.iter().zip(cells).enumerate() {
            let pad = " ".repeat(self.width(*column).saturating_sub(text.chars().count()));
            match self.columns[*column].align {
                Align::Right => line += &format!("{pad}{style}{text}{style:#}"),
                Align::Left if at == last => line += &format!("{style}{text}{style:#}"),
                Align::Left => line += &format!("{style}{text}{style:#}{pad}"),
            }
            line += if at == last { "" } else { "  " };
        }
        line
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = f.width().unwrap_or(WIDTH);
        let is_of_words = self.columns.iter().all(|column| column.align == Align::Left);
        for (number, part) in self.parts(most).into_iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            let of: Vec<_> = [0].into_iter().chain(part).collect();
            for line in 0..2 {
                let head = of.iter().map(|column| self.columns[*column].head[line].as_str());
                let head: Vec<_> = head.map(|text| (text, Style::new())).collect();
                if head.iter().any(|(text, _)| !text.is_empty()) {
                    writeln!(f, "{}", self.line(&of, &head).trim_end())?;
                }
            }
            for row in &self.rows {
                let line = match row {
                    Row::Cells(row) => {
                        let words = is_of_words.then(|| self.last_words(row, most));
                        let cells = of.iter().map(|column| &row[*column]);
                        let mut cells: Vec<_> =
                            cells.map(|cell| (cell.text.as_str(), cell.style)).collect();
                        if let (Some(words), Some((text, _))) = (&words, cells.last_mut()) {
                            *text = words;
                        }
                        self.line(&of, &cells)
                    }
                    Row::Heading(words) => words.clone(),
                    Row::Words(first, words) => {
                        format!("{first:0$}  {words}", self.width(0))
                    }
                };
                writeln!(f, "{line}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use anstyle::AnsiColor;

    use super::*;

    #[test]
    fn words_line_up_left_and_numbers_right() {
        let mut table = Table::of_numbers("design", ["IOPS"]);
        table.row(["none".to_owned(), "587k".to_owned()]);
        table.row(["mq-deadline".to_owned(), "9".to_owned()]);
        assert_eq!(
            table.to_string(),
            "design       IOPS\n\
             none         587k\n\
             mq-deadline     9\n"
        );
    }

    #[test]
    fn long_words_are_wrapped_in_their_column() {
        let mut table = Table::of_words(&["design", "what it is"]);
        table.row(["none", "blk-mq without an elevator, as in Linux"].map(str::to_owned));
        let lines = "design  what it is\n\
                     none    blk-mq without an elevator,\n        as in Linux\n";
        assert_eq!(format!("{table:36}"), lines);
    }

    #[test]
    fn a_style_takes_no_width() {
        let style = Style::new().fg_color(Some(AnsiColor::Green.into()));
        let mut table = Table::new(&[("ratio", Align::Right)]);
        table.row([Cell { text: "1.00".to_owned(), style }]);
        assert_eq!(table.to_string(), "ratio\n \u{1b}[32m1.00\u{1b}[0m\n");
    }

    #[test]
    fn a_long_name_has_two_lines() {
        let mut table = Table::of_numbers("design", ["waiting for a tag"]);
        table.row(["none".to_owned(), "9".to_owned()]);
        assert_eq!(table.to_string(), "          waiting\ndesign  for a tag\nnone            9\n");
    }

    #[test]
    fn a_table_of_numbers_that_is_too_wide_continues_below_itself() {
        let names: Vec<_> = (10..40).map(|number| format!("CMD{number}")).collect();
        let mut table = Table::of_numbers("design", names.iter().map(String::as_str));
        table.row((0..31).map(|number| number.to_string()));
        let text = table.to_string();
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        let parts = text.split("\n\n").filter(|part| part.starts_with("design  CMD"));
        assert_eq!(parts.count(), 3, "{text}");
        let shown: Vec<_> = text.split_whitespace().filter(|word| word.starts_with('C')).collect();
        assert_eq!(shown, names);
    }
}
