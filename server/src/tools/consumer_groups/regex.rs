//! `--validate-regex`: whether a regular expression follows the syntax of RE2, which the broker's side of KIP-848 has.

use regex_syntax::ast::{self, Ast, ErrorKind};

/// The line that is printed.
pub(super) fn verdict(regex: &str) -> String {
    match check(regex) {
        Ok(()) => format!("The regular expression `{regex}` is valid."),
        Err(reason) => format!("The regular expression `{regex}` is invalid: {reason}."),
    }
}

/// The reason in RE2's words.
fn check(regex: &str) -> Result<(), &'static str> {
    let mut text = regex.to_owned();
    loop {
        let error = match ast::parse::Parser::new().parse(&text) {
            Ok(ast) => return nested(&ast),
            Err(error) => error,
        };
        match error.kind() {
            // RE2 takes a brace that begins no count for itself.
            ErrorKind::RepetitionCountUnclosed
            | ErrorKind::RepetitionCountDecimalEmpty
            | ErrorKind::DecimalEmpty
            | ErrorKind::DecimalInvalid => {
                let end = error.span().end.offset.min(text.len());
                let Some(at) = brace_before(&text, error.span().start.offset, end) else {
                    return Err("invalid repeat count");
                };
                text.insert(at, '\\');
            }
            kind => return Err(reason(kind)),
        }
    }
}

fn brace_before(text: &str, start: usize, end: usize) -> Option<usize> {
    let head = text.get(..end.max(start + 1).min(text.len()))?;
    let at = head.rfind('{')?;
    let is_escaped = head.get(..at)?.ends_with('\\');
    (!is_escaped).then_some(at)
}

fn reason(kind: &ErrorKind) -> &'static str {
    match kind {
        ErrorKind::ClassRangeInvalid | ErrorKind::ClassRangeLiteral => {
            "invalid character class range"
        }
        ErrorKind::ClassUnclosed => "missing closing ]",
        ErrorKind::GroupUnclosed => "missing closing )",
        ErrorKind::GroupUnopened => "unexpected )",
        ErrorKind::EscapeUnexpectedEof => "trailing backslash at end of expression",
        ErrorKind::RepetitionMissing => "missing argument to repetition operator",
        ErrorKind::RepetitionCountInvalid => "invalid repeat count",
        ErrorKind::GroupNameDuplicate { .. } => "duplicate capture group name",
        ErrorKind::GroupNameEmpty
        | ErrorKind::GroupNameInvalid
        | ErrorKind::GroupNameUnexpectedEof => "invalid named capture",
        ErrorKind::UnsupportedLookAround
        | ErrorKind::FlagUnrecognized
        | ErrorKind::FlagUnexpectedEof
        | ErrorKind::FlagDuplicate { .. }
        | ErrorKind::FlagDanglingNegation
        | ErrorKind::FlagRepeatedNegation { .. } => "invalid or unsupported Perl syntax",
        ErrorKind::UnicodeClassInvalid => "invalid character class range",
        ErrorKind::NestLimitExceeded(_) => "expression nests too deeply",
        _ => "invalid escape sequence",
    }
}

/// RE2 has no repetition of a repetition (`a**`); a group in between makes one.
fn nested(ast: &Ast) -> Result<(), &'static str> {
    match ast {
        Ast::Repetition(repetition) => {
            if matches!(*repetition.ast, Ast::Repetition(_)) {
                return Err("invalid nested repetition operator");
            }
            nested(&repetition.ast)
        }
        Ast::Group(group) => nested(&group.ast),
        Ast::Concat(concat) => concat.asts.iter().try_for_each(nested),
        Ast::Alternation(alternation) => alternation.asts.iter().try_for_each(nested),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reasons_are_re2s() {
        for (regex, reason) in [
            ("a.*", None),
            ("^(?i)foo-[0-9]+$", None),
            ("a{", None),
            ("(a*)*", None),
            ("a*?", None),
            ("a.*(", Some("missing closing )")),
            ("[a", Some("missing closing ]")),
            ("a(?=b)", Some("invalid or unsupported Perl syntax")),
            ("[z-a]", Some("invalid character class range")),
            ("a**", Some("invalid nested repetition operator")),
            ("x{2,1}", Some("invalid repeat count")),
            ("\\1", Some("invalid escape sequence")),
            ("a\\", Some("trailing backslash at end of expression")),
            ("*", Some("missing argument to repetition operator")),
        ] {
            assert_eq!(check(regex).err(), reason, "{regex}");
        }
    }
}
