//! Fractions as Java prints them.

use std::fmt;

/// A number with so many decimals; what has no value is `Infinity` or `NaN`, such as a rate over no time at all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fixed<const DECIMALS: usize>(pub(crate) f64);

impl<const DECIMALS: usize> fmt::Display for Fixed<DECIMALS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            number if number == f64::INFINITY => f.write_str("Infinity"),
            number if number == f64::NEG_INFINITY => f.write_str("-Infinity"),
            number => write!(f, "{number:.DECIMALS$}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_java_does() {
        assert_eq!(Fixed::<2>(1.005e3).to_string(), "1005.00");
        assert_eq!(Fixed::<1>(-0.26).to_string(), "-0.3");
        assert_eq!(Fixed::<2>(f64::INFINITY).to_string(), "Infinity");
        assert_eq!(Fixed::<2>(f64::NEG_INFINITY).to_string(), "-Infinity");
        assert_eq!(Fixed::<2>(f64::NAN).to_string(), "NaN");
    }
}
