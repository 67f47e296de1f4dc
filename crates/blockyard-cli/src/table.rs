//! A plain table: columns two spaces apart, each as wide as its widest cell.

use core::fmt;

use anstyle::Style;

/// On which side the cells of a column line up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A cell and its look on a terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) text: String,
    /// Written as escape sequences always: the stream takes them out where they have no place.
    pub(crate) style: Style,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, style: Style::new() }
    }
}

/// A table with a line of column names.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    align: Vec<Align>,
    /// The first holds the names of the columns.
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table of the columns `columns`.
    pub(crate) fn new(columns: &[(&str, Align)]) -> Self {
        let names = columns.iter().map(|(name, _)| Cell::from((*name).to_owned())).collect();
        Self { align: columns.iter().map(|(_, align)| *align).collect(), rows: vec![names] }
    }

    /// Adds a row.
    ///
    /// # Panics
    ///
    /// If it has not a cell for each column.
    pub(crate) fn row<C: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = C>) {
        let cells: Vec<Cell> = cells.into_iter().map(Into::into).collect();
        assert_eq!(cells.len(), self.align.len(), "a row has a cell for each column");
        self.rows.push(cells);
    }

    /// Adds a column behind the others.
    ///
    /// # Panics
    ///
    /// If it has not a cell for each row.
    pub(crate) fn column<C: Into<Cell>>(
        &mut self,
        (name, align): (&str, Align),
        cells: impl ExactSizeIterator<Item = C>,
    ) {
        assert_eq!(cells.len() + 1, self.rows.len(), "a column has a cell for each row");
        self.align.push(align);
        let cells = cells.map(Into::into);
        let cells = [Cell::from(name.to_owned())].into_iter().chain(cells);
        self.rows.iter_mut().zip(cells).for_each(|(row, cell)| row.push(cell));
    }

    fn width(&self, column: usize) -> usize {
        self.rows.iter().map(|row| row[column].text.chars().count()).max().unwrap_or(0)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.align.len().saturating_sub(1);
        let widths: Vec<_> = (0..self.align.len()).map(|column| self.width(column)).collect();
        for row in &self.rows {
            for (column, Cell { text, style }) in row.iter().enumerate() {
                let pad = " ".repeat(widths[column] - text.chars().count());
                match self.align[column] {
                    Align::Right => write!(f, "{pad}{style}{text}{style:#}")?,
                    Align::Left if column == last => write!(f, "{style}{text}{style:#}")?,
                    Align::Left => write!(f, "{style}{text}{style:#}{pad}")?,
                }
                f.write_str(if column == last { "\n" } else { "  " })?;
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
        let mut table = Table::new(&[("design", Align::Left), ("IOPS", Align::Right)]);
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
    fn a_style_takes_no_width() {
        let style = Style::new().fg_color(Some(AnsiColor::Green.into()));
        let mut table = Table::new(&[("ratio", Align::Right)]);
        table.row([Cell { text: "1.00".to_owned(), style }]);
        assert_eq!(table.to_string(), "ratio\n \u{1b}[32m1.00\u{1b}[0m\n");
    }
}
