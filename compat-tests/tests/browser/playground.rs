//! The playground's process: who may control it, what it refuses, and that it leaves nothing behind.

use std::net::TcpListener;
use std::process::Output;
use std::time::Duration;

use compat_tests::process::eventually;
use rustix::process::Signal;

use crate::support::{Playground, command, processes_with};

/// Time to stop three brokers and a controller.
const STOP: Duration = Duration::from_secs(40);

#[test]
fn only_the_page_with_the_token_may_control_it() {
    let playground = Playground::start();
    let host = format!("127.0.0.1:{}", playground.port);
    let token = playground.token.as_str();
    let produce = r#"{"do":"produce","count":1}"#;
    let post = |headers: &[(&str, &str)], body| playground.ask("POST", "/control", headers, body);
    for headers in [
        vec![("Host", host.as_str())],
        vec![
            ("Host", &host),
            ("X-Playground-Token", "0123456789abcdef0123456789abcdef"),
        ],
        vec![
            ("Host", "rebound.example:80"),
            ("X-Playground-Token", token),
        ],
        vec![
            ("Host", &host),
            ("X-Playground-Token", token),
            ("Origin", "http://elsewhere.example"),
        ],
    ] {
        let answer = post(&headers, produce);
        assert!(answer.starts_with("HTTP/1.1 403 "), "{headers:?}: {answer}");
    }
    let page = playground.ask("GET", "/", &[("Host", &host)], "");
    assert!(page.starts_with("HTTP/1.1 403 "), "{page}");
    let own = [("Host", host.as_str()), ("X-Playground-Token", token)];
    assert!(post(&own, produce).starts_with("HTTP/1.1 200 "));
    for (body, status) in [
        ("no action", "400"),
        (r#"{"do":"kill","broker":9}"#, "409"),
        (r#"{"do":"start","broker":1}"#, "409"),
    ] {
        let answer = post(&own, body);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{body}: {answer}"
        );
    }
    let huge = format!(r#"{{"do":"{}"}}"#, "x".repeat(10_000));
    assert!(post(&own, &huge).starts_with("HTTP/1.1 400 "));
    // No such calls on a broker's own port.
    let broker = std::net::TcpStream::connect(("127.0.0.1", playground.port + 8)).unwrap();
    let mut answer = String::new();
    std::io::Write::write_all(
        &mut &broker,
        b"POST /control HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
    )
    .unwrap();
    std::io::Read::read_to_string(&mut &broker, &mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
}

fn refused(arguments: &[&str]) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command(arguments).output().unwrap();
    assert_eq!(status.code(), Some(1), "{arguments:?}");
    assert!(stdout.is_empty(), "{}", String::from_utf8_lossy(&stdout));
    let sentence = String::from_utf8(stderr).unwrap();
    assert_eq!(sentence.lines().count(), 1, "{sentence}");
    sentence
}

#[test]
fn ports_in_use_and_folders_that_are_not_empty_are_refused_in_a_sentence() {
    let (first, _page) = loop {
        let first = compat_tests::process::free_port().unwrap();
        if let Ok(taken) = TcpListener::bind(("127.0.0.1", first + 7)) {
            break (first, taken);
        }
    };
    let sentence = refused(&["--no-open", "--port", &first.to_string()]);
    assert!(
        sentence.starts_with("highwater: port ") && sentence.contains("choose others with --port"),
        "{sentence}"
    );
    assert!(refused(&["--no-open", "--port", "65530"]).contains("65536"));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("precious"), "data").unwrap();
    let path = folder.path().to_str().unwrap();
    let sentence = refused(&["--no-open", "--port", "0", "--data-dir", path]);
    assert!(sentence.contains("is not empty"), "{sentence}");
    assert_eq!(
        std::fs::read(folder.path().join("precious")).unwrap(),
        b"data"
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn a_signal_stops_all_and_removes_the_data() {
    let mut playground = Playground::start();
    let data = playground.data().expect("a folder with the data");
    let folder = data.to_str().unwrap();
    assert_eq!(processes_with(folder).len(), 4);
    playground.act(r#"{"do":"freeze","broker":2}"#);
    playground.process.signal(Signal::INT).unwrap();
    let status = playground.process.wait(STOP).unwrap();
    assert!(status.success(), "{status}: {}", playground.process.log());
    assert_eq!(processes_with(folder), [] as [i32; 0]);
    assert!(!data.exists());
}

#[test]
fn brokers_stop_when_the_playground_is_killed_frozen_ones_too() {
    let mut playground = Playground::start();
    let data = playground.data().expect("a folder with the data");
    let folder = data.to_str().unwrap().to_owned();
    playground.act(r#"{"do":"freeze","broker":3}"#);
    playground.process.kill().unwrap();
    eventually(STOP, "the end of all its brokers", || {
        processes_with(&folder).is_empty().then_some(())
    });
}
