//! Lists as Kafka's tools read and print them.

use super::ToolError;

/// The items with commas between them.
pub(super) fn joined<'a, T: ToString + 'a>(items: impl IntoIterator<Item = &'a T>) -> String {
    let items: Vec<_> = items.into_iter().map(T::to_string).collect();
    items.join(",")
}

/// A number as Java's `Integer.parseInt` reads it.
///
/// # Errors
/// In Java's words.
pub(super) fn java_int(text: &str) -> Result<i32, ToolError> {
    text.parse()
        .map_err(|_| ToolError::failed(format!("For input string: \"{text}\"")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_an_int_of_java() {
        assert_eq!(java_int("-7").expect("a number"), -7);
        for text in ["", " 1", "x", "2147483648"] {
            let error = java_int(text).expect_err(text);
            assert_eq!(error.to_string(), format!("For input string: \"{text}\""));
        }
    }

    #[test]
    fn items_are_joined_by_commas() {
        assert_eq!(joined(&[2, 1]), "2,1");
        assert_eq!(joined::<i32>(&[]), "");
    }
}
