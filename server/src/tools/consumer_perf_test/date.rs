//! Times in the form of Java's SimpleDateFormat, in UTC.

/// A form: letters for parts of the time, and text between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DateFormat(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// A letter and how often it stands there.
    Field(char, usize),
    Text(String),
}

impl DateFormat {
    /// Reads a form; the text of an error is a sentence.
    pub(super) fn parse(pattern: &str) -> Result<Self, String> {
        let mut parts: Vec<Part> = Vec::new();
        let mut characters = pattern.chars().peekable();
        while let Some(character) = characters.next() {
            if character == '\'' {
                let text: String = characters
                    .by_ref()
                    .take_while(|next| *next != '\'')
                    .collect();
                parts.push(Part::Text(if text.is_empty() {
                    "'".to_owned()
                } else {
                    text
                }));
            } else if character.is_ascii_alphabetic() {
                if !"yMdHkhmsSa".contains(character) {
                    return Err(format!(
                        "The letter {character} in --date-format is not supported; there are y, M, d, H, k, h, m, s, S \
                         and a."
                    ));
                }
                let mut width = 1;
                while characters.next_if_eq(&character).is_some() {
                    width += 1;
                }
                if character == 'M' && width > 2 {
                    return Err("Names of months in --date-format are not supported.".to_owned());
                }
                parts.push(Part::Field(character, width));
            } else {
                parts.push(Part::Text(character.to_string()));
            }
        }
        Ok(DateFormat(parts))
    }

    /// The text of a time in milliseconds since 1970.
    pub(super) fn format(&self, millis: i64) -> String {
        let (day, of_day) = (millis.div_euclid(86_400_000), millis.rem_euclid(86_400_000));
        let (year, month, date) = civil(day);
        let hour = of_day / 3_600_000;
        let mut text = String::new();
        for part in &self.0 {
            let (letter, width) = match part {
                Part::Text(part) => {
                    text.push_str(part);
                    continue;
                }
                Part::Field(letter, width) => (*letter, *width),
            };
            let value = match letter {
                'y' if width == 2 => year % 100,
                'y' => year,
                'M' => month,
                'd' => date,
                'H' => hour,
                'k' => (hour + 23) % 24 + 1,
                'h' => (hour + 11) % 12 + 1,
                'm' => of_day / 60_000 % 60,
                's' => of_day / 1000 % 60,
                'S' => of_day % 1000,
                _ => {
                    text.push_str(if hour < 12 { "AM" } else { "PM" });
                    continue;
                }
            };
            text.push_str(&format!("{value:0width$}"));
        }
        text
    }
}

/// Year, month and day of the month of a day since 1970-01-01.
fn civil(day: i64) -> (i64, i64, i64) {
    // Years begin in March, so that a leap day ends one; eras of 400 years.
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let of_era = day.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    (year, month, date)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(pattern: &str, millis: i64) -> String {
        DateFormat::parse(pattern).expect("sound").format(millis)
    }

    #[test]
    fn times_in_javas_forms() {
        let kafkas = "yyyy-MM-dd HH:mm:ss:SSS";
        assert_eq!(format(kafkas, 0), "1970-01-01 00:00:00:000");
        assert_eq!(format(kafkas, 951_827_401_250), "2000-02-29 12:30:01:250");
        assert_eq!(
            format("yy/M/d h 'Uhr' a", 951_827_401_250),
            "00/2/29 12 Uhr PM"
        );
        assert!(DateFormat::parse("zzz").is_err());
        assert!(DateFormat::parse("MMM").is_err());
    }
}
