//! The harness itself: both brokers start, stop, are killed and start again on their data.

use std::net::TcpStream;
use std::path::Path;

use compat_tests::broker::BrokerOptions;
use compat_tests::each_broker::for_each_broker_with;

#[test]
fn broker_starts_again_on_its_data_after_kill_and_stop() {
    for_each_broker_with(&BrokerOptions::new(), |broker| {
        assert!(broker.log_dir().join("meta.properties").exists());
        broker.kill().unwrap();
        assert!(TcpStream::connect(broker.address()).is_err());
        broker.start_again().unwrap();
        let status = broker.stop().unwrap();
        // A JVM ended by SIGTERM exits with 143 after its shutdown hooks have run.
        assert_eq!(
            status.code(),
            Some(if broker.is_highwater() { 0 } else { 143 })
        );
        assert!(broker.log_dir().join(".kafka_cleanshutdown").exists());
        broker.start_again().unwrap();
    });
}

#[test]
fn nothing_is_left_when_a_broker_is_dropped() {
    let left = std::sync::Mutex::new(Vec::new());
    for_each_broker_with(&BrokerOptions::new(), |broker| {
        left.lock()
            .unwrap()
            .push((broker.id().unwrap(), broker.log_dir().to_owned()));
    });
    for (id, log_dir) in left.into_inner().unwrap() {
        assert!(!Path::new(&format!("/proc/{id}")).exists());
        assert!(!log_dir.exists());
    }
}
