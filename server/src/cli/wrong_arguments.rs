//! What is said of arguments that make no sense: one sentence, in the words of Kafka's tools where they have some.

use std::error::Error as _;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The sentence, and a line that points at the help of `program`.
pub(super) fn told(error: &clap::Error, program: &str) -> String {
    let sentence = kafkas_words(error).unwrap_or_else(|| first_paragraph(error));
    format!("{sentence}\nTry '{program} --help'.\n")
}

/// As the parser of most of Kafka's tools says it.
fn kafkas_words(error: &clap::Error) -> Option<String> {
    let argument = texts(error, ContextKind::InvalidArg);
    let first = argument.first()?;
    match error.kind() {
        ErrorKind::UnknownArgument if first.starts_with('-') => {
            let hint = texts(error, ContextKind::SuggestedArg);
            let hint = hint.first().map(|similar| format!(": is {similar} meant?"));
            let (option, hint) = (option_name(first), hint.unwrap_or_default());
            Some(format!("{option} is not a recognized option{hint}"))
        }
        ErrorKind::MissingRequiredArgument => {
            let missing: Vec<_> = argument.iter().map(|one| in_brackets(one)).collect();
            Some(format!("Missing required argument {}", missing.join(", ")))
        }
        ErrorKind::ArgumentConflict => {
            let other = texts(error, ContextKind::PriorArg);
            let others: Vec<_> = other.iter().map(|one| in_brackets(one)).collect();
            let (option, others) = (in_brackets(first), others.join(", "));
            Some(format!(
                "Option {option} can't be used with option {others}"
            ))
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let option = option_name(first);
            let value = texts(error, ContextKind::InvalidValue).pop();
            let Some(value) = value.filter(|value| !value.is_empty()) else {
                return Some(format!("Option {option} requires an argument"));
            };
            let text = format!("Cannot parse argument '{value}' of option {option}");
            let allowed = texts(error, ContextKind::ValidValue);
            match error.source() {
                Some(reason) => Some(format!("{text}: {reason}")),
                None if allowed.is_empty() => Some(text),
                None => Some(format!("{text}: one of {} is expected", allowed.join(", "))),
            }
        }
        _ => None,
    }
}

/// What the parser says before its hints and the usage, as one line.
fn first_paragraph(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines = text.lines().map(str::trim);
    let paragraph: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
    let sentence = paragraph.join(" ");
    sentence.trim_start_matches("error: ").to_owned()
}

fn texts(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

/// `topic` of `--topic <TOPIC>`, `SHELL` of `<SHELL>`.
fn option_name(argument: &str) -> &str {
    let option = argument.split([' ', '=']).next().unwrap_or(argument);
    option.trim_start_matches('-').trim_matches(['<', '>'])
}

/// `"[topic]"` of `--topic <TOPIC>`; of a choice, `<--a <A>|--b <B>>`, all in turn.
fn in_brackets(argument: &str) -> String {
    let choice = argument
        .strip_prefix("<-")
        .and_then(|choice| choice.strip_suffix('>'));
    let options = choice.unwrap_or(argument).split('|');
    let names: Vec<_> = options
        .map(|option| format!("\"[{}]\"", option_name(option)))
        .collect();
    names.join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told_of(arguments: &[&str]) -> String {
        let words = ["highwater"].iter().chain(arguments);
        let error = crate::cli::definition()
            .try_get_matches_from(words)
            .expect_err("wrong");
        let text = told(&error, "kafka-topics.sh");
        let sentence = text.strip_suffix("\nTry 'kafka-topics.sh --help'.\n");
        sentence.expect("a hint").to_owned()
    }

    #[test]
    fn what_kafkas_tools_have_words_for_is_said_in_them() {
        const SERVER: [&str; 2] = ["--bootstrap-server", "a:1"];
        let topics = |more: &[&str]| told_of(&[&["topics"], &SERVER[..], more].concat());
        assert_eq!(topics(&["--nope"]), "nope is not a recognized option");
        assert_eq!(
            topics(&["--topics"]),
            "topics is not a recognized option: is --topic meant?"
        );
        assert_eq!(topics(&["--topic"]), "Option topic requires an argument");
        assert_eq!(
            topics(&["--partitions", "x"]),
            "Cannot parse argument 'x' of option partitions: invalid digit found in string"
        );
        let producer = |more: &[&str]| told_of(&[&["console-producer"], more].concat());
        assert_eq!(producer(&SERVER), "Missing required argument \"[topic]\"");
        assert_eq!(
            producer(&["--property", "a=b", "--reader-property", "c=d"]),
            "Option \"[property]\" can't be used with option \"[reader-property]\""
        );
        assert_eq!(
            told_of(&["reassign-partitions", "--list"]),
            "Missing required argument \"[bootstrap-server]\" or \"[bootstrap-controller]\""
        );
    }

    #[test]
    fn all_else_is_the_parsers_sentence_in_one_line() {
        assert_eq!(told_of(&["strat"]), "unrecognized subcommand 'strat'");
        assert_eq!(
            told_of(&["start", "a", "b"]),
            "unexpected argument 'b' found"
        );
        assert_eq!(
            told_of(&["completions"]),
            "Missing required argument \"[SHELL]\""
        );
        let shells = told_of(&["completions", "csh"]);
        assert!(
            shells.starts_with("Cannot parse argument 'csh' of option SHELL: one of bash, "),
            "{shells}"
        );
    }
}
