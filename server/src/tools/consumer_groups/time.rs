//! Points in time and durations as `--to-datetime` and `--by-duration` take them.

/// Milliseconds since 1970 of `2026-01-31T12:00:00.000`, in UTC unless a zone follows (`Z`, `+01`, `+0100`, `+01:00`).
///
/// The text of an error is as Java's.
pub(super) fn parse_datetime(text: &str) -> Result<i64, String> {
    let Some((date, time)) = text.split_once('T') else {
        return Err(
            "java.text.ParseException: Error parsing timestamp. It does not contain a 'T' according to ISO8601 format"
                .to_owned(),
        );
    };
    let parsed = date_days(date).zip(time_millis(time));
    parsed
        .map(|(days, millis)| days * 86_400_000 + millis)
        .ok_or_else(|| format!("java.text.ParseException: Unparseable date: \"{text}\""))
}

fn number(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// Days since 1970-01-01.
fn date_days(date: &str) -> Option<i64> {
    let mut parts = date.split('-').map(number);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || !(1..=12).contains(&month) || !(0..=9999).contains(&year) {
        return None;
    }
    let is_leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let lengths = [
        31,
        if is_leap { 29 } else { 28 },
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    let length = *lengths.get(usize::try_from(month - 1).ok()?)?;
    if !(1..=length).contains(&day) {
        return None;
    }
    // Years begin in March, so that a leap day ends one; eras of 400 years.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

/// Milliseconds of the day, less the zone.
fn time_millis(text: &str) -> Option<i64> {
    let (time, zone) = match text.find(['Z', '+', '-']) {
        Some(at) => text.split_at(at),
        None => (text, "Z"),
    };
    let (time, millis) = time.split_once('.')?;
    let mut parts = time.split(':').map(number);
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    let is_sane = parts.next().is_none() && hour < 24 && minute < 60 && second < 60;
    let millis = number(millis).filter(|millis| *millis < 1000)?;
    let local = ((hour * 60 + minute) * 60 + second) * 1000 + millis;
    is_sane.then_some(local - zone_minutes(zone)? * 60_000)
}

fn zone_minutes(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let digits = zone.get(1..)?.replace(':', "");
    let (hours, minutes) = match digits.len() {
        2 => (number(&digits)?, 0),
        4 => (number(digits.get(..2)?)?, number(digits.get(2..)?)?),
        _ => return None,
    };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

/// Milliseconds of `P1DT2H3M4.5S`, with signs where they are wanted.
///
/// The text of an error is Java's.
pub(super) fn parse_duration(text: &str) -> Result<i64, String> {
    duration(text).ok_or_else(|| "Text cannot be parsed to a Duration".to_owned())
}

fn duration(text: &str) -> Option<i64> {
    let text = text.to_ascii_uppercase();
    let (sign, body) = match text.strip_prefix('-') {
        Some(body) => (-1, body),
        None => (1, text.strip_prefix('+').unwrap_or(&text)),
    };
    let body = body.strip_prefix('P')?;
    let (days, time) = match body.split_once('T') {
        Some((_, "")) => return None,
        Some((days, time)) => (days, time),
        None => (body, ""),
    };
    let mut total = 0i64;
    if !days.is_empty() {
        total = amount(days.strip_suffix('D')?, false)?.checked_mul(86_400)?;
    } else if time.is_empty() {
        return None;
    }
    let mut rest = time;
    for (unit, millis, is_decimal) in [('H', 3_600, false), ('M', 60, false), ('S', 1, true)] {
        if let Some((text, after)) = rest.split_once(unit) {
            total = total.checked_add(amount(text, is_decimal)?.checked_mul(millis)?)?;
            rest = after;
        }
    }
    rest.is_empty().then_some(sign * total)
}

/// A number with an optional sign, times 1000.
fn amount(text: &str, is_decimal: bool) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = match digits.split_once('.') {
        Some((whole, fraction)) if is_decimal && fraction.len() <= 9 => (whole, fraction),
        Some(_) => return None,
        None => (digits, ""),
    };
    let millis = match fraction {
        "" => 0,
        fraction => number(format!("{fraction:0<3}").get(..3)?)?,
    };
    Some(sign * (number(whole)?.checked_mul(1000)? + millis))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_in_time() {
        for (text, millis) in [
            ("1970-01-01T00:00:00.000", 0),
            ("2000-02-29T12:30:01.250", 951_827_401_250),
            ("2026-11-30T06:00:00.000Z", 1_796_018_400_000),
            ("2026-11-30T07:00:00.000+01:00", 1_796_018_400_000),
            ("2026-11-30T04:30:00.000-0130", 1_796_018_400_000),
            ("1969-12-31T23:59:59.999", -1),
        ] {
            assert_eq!(parse_datetime(text), Ok(millis), "{text}");
        }
        for wrong in [
            "2001-02-29T00:00:00.000",
            "2001-01-01T24:00:00.000",
            "2001-01-01T00:00:00",
            "x",
        ] {
            assert!(parse_datetime(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn durations() {
        for (text, millis) in [
            ("PT1H", 3_600_000),
            ("P1DT2H3M4.5S", 93_784_500),
            ("p2d", 172_800_000),
            ("-PT1S", -1_000),
            ("PT-0.25S", -250),
        ] {
            assert_eq!(parse_duration(text), Ok(millis), "{text}");
        }
        for wrong in ["", "P", "PT", "1H", "PT1X", "PT1.5H", "P1H"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
    }
}
