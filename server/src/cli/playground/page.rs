//! The page of the playground, with style and script in it.

/// The page; `{nonce}` is filled in when it is sent.
pub(super) const PLAYGROUND: &str = concat!(
    include_str!("page/playground.html"),
    "<style nonce=\"{nonce}\">\n",
    include_str!("../../web/page/style.css"),
    include_str!("page/playground.css"),
    "</style>\n<script nonce=\"{nonce}\">\n'use strict';\n",
    include_str!("../../web/page/common.js"),
    include_str!("page/playground.js"),
    include_str!("page/controls.js"),
    "</script>\n</body>\n</html>\n"
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::playground::lessons::LESSONS;

    #[test]
    fn every_lesson_is_offered_and_nothing_comes_from_elsewhere() {
        for lesson in LESSONS {
            let offered = format!("data-lesson=\"{}\"", lesson.name);
            assert!(PLAYGROUND.contains(&offered), "{}", lesson.name);
        }
        let page = PLAYGROUND.replace("http://www.w3.org/2000/svg", "");
        for reference in ["https://", "src=\"", "@import", "url("] {
            assert!(!page.contains(reference), "{reference}");
        }
    }
}
