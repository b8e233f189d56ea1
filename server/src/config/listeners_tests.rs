//! Tests of listeners and their addresses.

use super::*;

const DEFAULT_MAP: &str =
    "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL";

fn resolve(
    listeners: &str,
    advertised: Option<&str>,
    map: &str,
    controller: &str,
) -> Result<Vec<ListenerConfig>, String> {
    resolve_all(listeners, advertised, map, controller, None).map(|listeners| listeners.broker)
}

fn resolve_all(
    listeners: &str,
    advertised: Option<&str>,
    map: &str,
    controller: &str,
    inter_broker: Option<&str>,
) -> Result<Listeners, String> {
    let list = |text: &str| -> Vec<String> {
        text.split(',')
            .filter(|item| !item.is_empty())
            .map(str::to_owned)
            .collect()
    };
    ListenerKeys {
        roles: ProcessRoles {
            broker: true,
            controller: true,
        },
        is_quorum_of_one: true,
        listeners: &list(listeners),
        advertised_listeners: advertised.map(list).as_deref(),
        protocol_map: map,
        controller_listener_names: &list(controller),
        inter_broker_listener_name: inter_broker,
        inter_broker_protocol: "PLAINTEXT",
    }
    .resolve(|| "this-host".to_owned())
    .map_err(|error| error.to_string())
}

#[test]
fn a_listener_is_advertised_as_it_is_bound_unless_told_otherwise() {
    let listeners = resolve(
        "plaintext://127.0.0.1:0,OUT://[::1]:9093",
        None,
        "PLAINTEXT:PLAINTEXT,out:plaintext",
        "",
    );
    let listeners = listeners.expect("two listeners");
    assert_eq!(listeners[0].name, "PLAINTEXT");
    assert_eq!(
        (
            listeners[0].advertised_host.as_str(),
            listeners[0].advertised_port
        ),
        ("127.0.0.1", 0)
    );
    assert_eq!(
        (
            listeners[1].host.as_str(),
            listeners[1].advertised_host.as_str()
        ),
        ("::1", "::1")
    );

    let listeners = resolve("PLAINTEXT://:9092", None, DEFAULT_MAP, "").expect("every interface");
    assert_eq!(
        (
            listeners[0].host.as_str(),
            listeners[0].advertised_host.as_str()
        ),
        ("", "this-host")
    );

    let listeners = resolve(
        "PLAINTEXT://0.0.0.0:9092",
        Some("PLAINTEXT://broker.example:19092"),
        DEFAULT_MAP,
        "",
    );
    let listener = &listeners.expect("advertised elsewhere")[0];
    assert_eq!(
        (listener.advertised_host.as_str(), listener.advertised_port),
        ("broker.example", 19092)
    );
}

#[test]
fn brokers_reach_each_other_by_the_named_listener_or_by_that_of_the_protocol_or_the_first() {
    let name = |listeners: &str, inter_broker| {
        let map = "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,PLAINTEXT:PLAINTEXT";
        resolve_all(listeners, None, map, "", inter_broker)
            .map(|listeners| listeners.inter_broker_name)
    };
    let both = "OUTSIDE://h:1,INSIDE://h:2";
    assert_eq!(name(both, Some("inside")).expect("named"), "INSIDE");
    assert_eq!(name(both, None).expect("the first"), "OUTSIDE");
    let of_protocol = name("OUTSIDE://h:1,PLAINTEXT://h:2", None);
    assert_eq!(of_protocol.expect("of the protocol"), "PLAINTEXT");
    let error = name(both, Some("OTHER")).expect_err("no listener");
    assert!(error.contains("inter.broker.listener.name"), "{error}");
}

#[test]
fn the_controllers_listener_is_apart() {
    let listeners = resolve_all(
        "PLAINTEXT://:9092,CONTROLLER://:9093",
        Some("PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093"),
        "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL",
        "CONTROLLER",
        None,
    );
    let listeners = listeners.expect("a combined node");
    let names = |listeners: &[ListenerConfig]| -> Vec<String> {
        let names = listeners.iter().map(|listener| listener.name.clone());
        names.collect()
    };
    assert_eq!(names(&listeners.broker), ["PLAINTEXT"]);
    assert_eq!(names(&listeners.controller), ["CONTROLLER"]);
    assert_eq!(listeners.controller[0].advertised_host, "localhost");
    let missing =
        resolve("PLAINTEXT://:9092", None, DEFAULT_MAP, "CONTROLLER").expect_err("not listened on");
    assert!(missing.contains("controller.listener.names"), "{missing}");
    let unmapped = resolve(
        "PLAINTEXT://:9092,CONTROLLER://:9093",
        None,
        DEFAULT_MAP,
        "CONTROLLER",
    );
    assert!(
        unmapped.is_ok(),
        "Kafka maps the controller's listener to PLAINTEXT by itself: {unmapped:?}"
    );
}

#[test]
fn what_cannot_work_is_refused_with_the_reason() {
    let refused = |listeners: &str, advertised: Option<&str>, map: &str, part: &str| {
        let error = resolve(listeners, advertised, map, "").expect_err(part);
        assert!(error.contains(part), "{error} does not say: {part}");
    };
    refused("", None, DEFAULT_MAP, "at least one NAME://host:port");
    refused(
        "PLAINTEXT:9092",
        None,
        DEFAULT_MAP,
        "in place of 'PLAINTEXT:9092'",
    );
    refused("PLAINTEXT://h:70000", None, DEFAULT_MAP, "in place of");
    refused("PLAINTEXT://::1:9092", None, DEFAULT_MAP, "in place of");
    refused("PLAINTEXT://a b:9092", None, DEFAULT_MAP, "in place of");
    refused(
        "PLAINTEXT://h:1,plaintext://h:2",
        None,
        DEFAULT_MAP,
        "there twice",
    );
    refused(
        "PLAINTEXT://h:1,OTHER://h:1",
        None,
        DEFAULT_MAP,
        "share one",
    );
    refused(
        "OTHER://h:1",
        None,
        DEFAULT_MAP,
        "an entry for the listener OTHER",
    );
    refused("SSL://h:1", None, DEFAULT_MAP, "only PLAINTEXT is served");
    refused(
        "PLAINTEXT://0.0.0.0:1",
        None,
        DEFAULT_MAP,
        "advertised.listeners is expected",
    );
    refused(
        "PLAINTEXT://[::]:1",
        None,
        DEFAULT_MAP,
        "advertised.listeners is expected",
    );
    refused(
        "PLAINTEXT://:1",
        Some("PLAINTEXT://0.0.0.0:1"),
        DEFAULT_MAP,
        "a host that clients can reach",
    );
    refused(
        "PLAINTEXT://:1",
        Some("PLAINTEXT://:1"),
        DEFAULT_MAP,
        "a host that clients can reach",
    );
    refused(
        "PLAINTEXT://:1",
        Some("OTHER://h:1"),
        DEFAULT_MAP,
        "OTHER is none",
    );
    refused(
        "PLAINTEXT://h:1",
        None,
        "PLAINTEXT:TLS",
        "in place of 'PLAINTEXT:TLS'",
    );
    refused(
        "PLAINTEXT://h:1",
        None,
        "PLAINTEXT:SSL,PLAINTEXT:SSL",
        "there twice",
    );
}

#[test]
fn an_ipv4_and_an_ipv6_address_may_share_a_port() {
    let map = "A:PLAINTEXT,B:PLAINTEXT";
    assert!(resolve("A://127.0.0.1:9092,B://[::1]:9092", None, map, "").is_ok());
    assert!(resolve("A://127.0.0.1:0,B://127.0.0.1:0", None, map, "").is_ok());
}
