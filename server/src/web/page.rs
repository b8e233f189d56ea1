//! The pages as one file each, with style and script in them, and the little that a page's request needs.

use hyper::header::{CONTENT_SECURITY_POLICY, HeaderValue, REFERRER_POLICY};
use hyper::{Response, StatusCode};
use uuid::Uuid;

use super::{Body, response, text};

/// The console of a broker.
pub const CONSOLE: &str = concat!(
    include_str!("page/console.html"),
    "<style nonce=\"{nonce}\">\n",
    include_str!("page/style.css"),
    "</style>\n<script nonce=\"{nonce}\">\n'use strict';\n",
    include_str!("page/common.js"),
    include_str!("page/console.js"),
    "</script>\n</body>\n</html>\n"
);

/// A page, whose `{nonce}` is filled in: nothing but its own style and script is used, and no other site may frame it.
pub fn html(page: &'static str) -> Response<Body> {
    let nonce = Uuid::new_v4().simple().to_string();
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; \
         img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let Ok(policy) = HeaderValue::from_str(&policy) else {
        return text(StatusCode::INTERNAL_SERVER_ERROR, "no page\n");
    };
    let body = page.replace("{nonce}", &nonce);
    let mut response = response(StatusCode::OK, "text/html; charset=utf-8", body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// The keys and values of a URL's query, decoded.
pub fn query_pairs(query: &str) -> impl Iterator<Item = (String, String)> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(key), decode(value))
        })
}

/// Undoes the escapes of a form; what is no escape stays as it is.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        rest = tail;
        let escaped = match (first, tail) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)),
            _ => None,
        };
        match (first, escaped) {
            (_, Some((high, low))) => {
                bytes.push(high << 4 | low);
                rest = &tail[2..];
            }
            (b'+', None) => bytes.push(b' '),
            (other, None) => bytes.push(*other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn hex(digit: u8) -> Option<u8> {
    let digit = char::from(digit).to_digit(16)?;
    u8::try_from(digit).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_and_others_stay() {
        let pairs: Vec<_> = query_pairs("a=1&b=%C3%A9%2B+x&c&%=%4&&").collect();
        let text = |text: &str| text.to_owned();
        assert_eq!(
            pairs,
            [
                (text("a"), text("1")),
                (text("b"), text("é+ x")),
                (text("c"), text("")),
                (text("%"), text("%4")),
            ]
        );
    }

    #[test]
    fn the_pages_need_nothing_from_elsewhere_and_each_answer_has_its_own_nonce() {
        let policy = || {
            let page = html(CONSOLE);
            page.headers()[CONTENT_SECURITY_POLICY].clone()
        };
        assert_ne!(policy(), policy());
        for reference in ["http://", "https://", "src=\"", "@import", "url("] {
            let without_svg = CONSOLE.replace("http://www.w3.org/2000/svg", "");
            assert!(!without_svg.contains(reference), "{reference}");
        }
    }
}
