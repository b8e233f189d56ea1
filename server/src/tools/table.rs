//! Tables as Kafka's tools print them: columns as wide as their widest cell, a tab after each.

use std::io::{self, Write};

/// Prints the headers and the rows.
pub(super) fn print(headers: &[&str], rows: &[Vec<String>], out: &mut dyn Write) -> io::Result<()> {
    let width = |column: usize, header: &str| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([header.len()]).max().unwrap_or_default()
    };
    let widths: Vec<_> = headers
        .iter()
        .enumerate()
        .map(|(column, header)| width(column, header))
        .collect();
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        for (cell, width) in cells.zip(&widths) {
            write!(out, "{cell:<width$}\t")?;
        }
        writeln!(out)
    };
    line(&mut headers.iter().copied())?;
    for row in rows {
        line(&mut row.iter().map(String::as_str))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [["1", "abc"], ["22", "d"]].map(|row| row.map(str::to_owned).to_vec());
        let mut out = Vec::new();
        print(&["Id", "X"], &rows, &mut out).expect("written");
        assert_eq!(
            String::from_utf8(out).expect("text"),
            "Id\tX  \t\n1 \tabc\t\n22\td  \t\n"
        );
    }
}
